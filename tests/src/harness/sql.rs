//! Functions that run statements and return their results as text, over both protocols.

use bytes::Bytes;
use futures::{SinkExt, TryStreamExt};
use tokio_postgres::types::{FromSql, ToSql, Type};
use tokio_postgres::{Client, Row, SimpleQueryMessage};

use crate::model::json::{Json, Num};
use crate::model::scan::plain;

/// Rows as text.
pub type Rows = Vec<Vec<Option<String>>>;

/// Returns the rows of a statement, over the simple protocol.
pub async fn simple(client: &Client, sql: &str) -> Result<Rows, tokio_postgres::Error> {
    let messages = client.simple_query(sql).await?;
    let row = |message| match message {
        SimpleQueryMessage::Row(row) => {
            Some((0..row.len()).map(|n| row.get(n).map(str::to_owned)).collect())
        }
        _ => None,
    };
    Ok(messages.into_iter().filter_map(row).collect())
}

/// Returns the only value of a statement's only row.
pub async fn value(client: &Client, sql: &str) -> String {
    let rows = simple(client, sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    match &rows[..] {
        [row] if row.len() == 1 => row[0].clone().unwrap_or_default(),
        _ => panic!("{sql}: {rows:?}"),
    }
}

/// Runs statements that must succeed.
pub async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
}

/// Returns the SQLSTATE with which a statement fails; empty if it succeeds.
pub async fn sqlstate(client: &Client, sql: &str) -> String {
    match client.simple_query(sql).await {
        Ok(_) => String::new(),
        Err(error) => state_of(&error),
    }
}

/// Returns the SQLSTATE of an error that the server sent.
pub fn state_of(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(error) => error.code().code().to_owned(),
        None => format!("not from the server: {error:?}"),
    }
}

/// Returns the rows of a statement with parameters, over the extended protocol, with binary
/// results.
pub async fn extended(
    client: &Client,
    sql: &str,
    parameters: &[Json],
) -> Result<Rows, tokio_postgres::Error> {
    let statement = client.prepare(sql).await?;
    let parameters: Vec<_> = parameters.iter().map(parameter).collect();
    let rows = client.query_raw(&statement, parameters).await?;
    rows.map_ok(|row| texts(&row)).try_collect().await
}

/// Returns a JSON value as a driver's parameter.
pub fn parameter(value: &Json) -> Box<dyn ToSql + Sync + Send> {
    match value {
        Json::Bool(truth) => Box::new(*truth),
        Json::String(text) => Box::new(text.clone()),
        Json::Number(number) if number.is_i64() => Box::new(number.as_i64()),
        Json::Number(number) => Box::new(number.as_f64()),
        other => panic!("{other} is no parameter"),
    }
}

/// Returns a row of binary values in the text form of the simple protocol.
pub fn texts(row: &Row) -> Vec<Option<String>> {
    (0..row.len())
        .map(|n| match *row.columns()[n].type_() {
            Type::BOOL => row.get::<_, Option<bool>>(n).map(|b| if b { "t" } else { "f" }.into()),
            Type::INT4 => row.get::<_, Option<i32>>(n).map(|int| int.to_string()),
            Type::INT8 => row.get::<_, Option<i64>>(n).map(|int| int.to_string()),
            Type::FLOAT8 => row.get::<_, Option<f64>>(n).map(|float| Num::real(float).text()),
            Type::NUMERIC => row.get::<_, Option<Numeric>>(n).map(|numeric| numeric.0),
            _ => row.get(n),
        })
        .collect()
}

/// A PostgreSQL `numeric`, decoded from its binary form, as a plain decimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numeric(pub String);

impl<'a> FromSql<'a> for Numeric {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        let words: Vec<u16> =
            raw.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
        let [groups, weight, sign, scale, digits @ ..] = &words[..] else {
            return Err("a numeric of less than eight bytes".into());
        };
        if usize::from(*groups) != digits.len() || !raw.len().is_multiple_of(2) {
            return Err(format!("a numeric of {groups} groups, and {} came", digits.len()).into());
        }
        let weight = i32::from(*weight as i16);
        let group = |power: i32| {
            let at = usize::try_from(weight - power).ok();
            at.and_then(|at| digits.get(at)).copied().unwrap_or(0)
        };
        let whole: String = (0..=weight.max(0)).rev().map(|p| format!("{:04}", group(p))).collect();
        let places = usize::from(*scale);
        let fraction: String =
            (1..=places.div_ceil(4) as i32).map(|p| format!("{:04}", group(-p))).collect();
        let whole = whole.trim_start_matches('0');
        let sign = if *sign == 0x4000 { "-" } else { "" };
        let whole = if whole.is_empty() { "0" } else { whole };
        let fraction =
            if places == 0 { String::new() } else { format!(".{}", &fraction[..places]) };
        Ok(Self(format!("{sign}{whole}{fraction}")))
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::NUMERIC
    }
}

/// Returns the rows of `COPY (SELECT …) TO STDOUT`, without escapes.
pub async fn copy_out(client: &Client, select: &str) -> Result<Rows, tokio_postgres::Error> {
    let stream = client.copy_out(&format!("COPY ({select}) TO STDOUT")).await?;
    let data: Vec<Bytes> = stream.try_collect().await?;
    let text = String::from_utf8(data.concat()).expect("COPY's text is UTF-8");
    let lines = text.strip_suffix('\n').map(|text| text.split('\n')).into_iter().flatten();
    Ok(lines.map(|line| line.split('\t').map(unescape).collect()).collect())
}

/// Returns the value of a field in COPY's text format; `None` for NULL.
fn unescape(field: &str) -> Option<String> {
    if field == "\\N" {
        return None;
    }
    let mut chars = field.chars();
    let mut out = String::new();
    while let Some(ch) = chars.next() {
        out.push(match ch {
            '\\' => match chars.next().expect("a character behind the backslash") {
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\u{b}',
                '\\' => '\\',
                other => panic!("COPY does not escape {other:?}: {field}"),
            },
            ch => ch,
        });
    }
    Some(out)
}

/// Sends the data of `COPY … FROM STDIN` in pieces of `piece_bytes`; returns the number of rows.
pub async fn copy_in(
    client: &Client,
    sql: &str,
    data: &[u8],
    piece_bytes: usize,
) -> Result<u64, tokio_postgres::Error> {
    let sink = client.copy_in(sql).await?;
    futures::pin_mut!(sink);
    for piece in data.chunks(piece_bytes) {
        sink.send(Bytes::copy_from_slice(piece)).await?;
    }
    sink.finish().await
}

/// Rewrites the values of numeric columns without exponents, as the model prints them.
pub fn without_exponents(rows: &mut Rows, columns: &[usize]) {
    for row in rows {
        for column in columns {
            row[*column] = row[*column].take().map(|text| plain(&text));
        }
    }
}
