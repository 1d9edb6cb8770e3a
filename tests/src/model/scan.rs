//! A SELECT over an index: its SQL and its answer.

use std::collections::BTreeMap;

use super::Bucket;
use super::expr::{Expr, Predicate, Scope, Type, cast};
use super::index::{Entry, Index};
use super::json::{Json, Num, Value, compare, text};
use super::text::SqlWriter;

/// The columns of a scan's rows.
#[derive(Clone, Debug)]
pub enum Items {
    /// `*`
    Star,
    /// Expressions: a column, the id, or a cast of one.
    Exprs(Vec<Expr>),
    /// Aggregates, each with its column; `count(*)` has none.
    Aggregates(Vec<(&'static str, Option<usize>)>),
}

/// `ORDER BY`
#[derive(Clone, Debug)]
pub struct Order {
    /// The first key part in the clause; each part before it has a single value.
    pub from: usize,
    /// The exclusive end of the key parts in the clause.
    pub to: usize,
    /// True if the id follows the key parts.
    pub id: bool,
    /// True for the reverse order of the index.
    pub reverse: bool,
}

/// A SELECT over an index.
#[derive(Clone, Debug)]
pub struct Scan {
    /// The columns of a row.
    pub items: Items,
    /// `DISTINCT`; the items are then the leading key columns.
    pub distinct: bool,
    /// `WHERE`
    pub predicate: Option<Predicate>,
    /// `ORDER BY`
    pub order: Option<Order>,
    /// `LIMIT`
    pub limit: Option<u64>,
    /// `OFFSET`
    pub offset: Option<u64>,
}

/// A result row: each column as text, or `None` for NULL.
pub type Row = Vec<Option<String>>;

/// The required answer of a scan.
#[derive(Clone, Debug)]
pub enum Answer {
    /// These rows, in this order.
    Ordered(Vec<Row>),
    /// This number of these rows, in any order.
    Some(usize, Vec<Row>),
}

impl Scan {
    /// Returns the SQL of the scan, and its parameters if `with_parameters`.
    pub fn sql(&self, index: &Index, with_parameters: bool) -> (String, Vec<Json>) {
        let names = index.column_names();
        let parameters = with_parameters.then(Vec::new);
        let kinds: Vec<Type> = index.columns().iter().map(|column| column.kind).collect();
        let mut writer = SqlWriter { columns: &names, kinds: &kinds, explicit: false, parameters };
        let items = match &self.items {
            Items::Star => "*".to_owned(),
            Items::Exprs(exprs) => join(exprs.iter().map(|e| match e {
                Expr::Id => "id".to_owned(),
                e => writer.expr(e),
            })),
            Items::Aggregates(list) => join(list.iter().map(|(function, column)| {
                format!("{function}({})", column.map_or("*", |n| &names[n]))
            })),
        };
        let distinct = if self.distinct { "DISTINCT " } else { "" };
        let mut sql = format!("SELECT {distinct}{items} FROM {}", index.name);
        if let Some(predicate) = &self.predicate {
            sql += &format!(" WHERE {}", writer.predicate(predicate));
        }
        if let Some(order) = &self.order {
            sql += &format!(" ORDER BY {}", order.sql(index, &names));
        }
        for (word, rows) in [("LIMIT", self.limit), ("OFFSET", self.offset)] {
            if let Some(rows) = rows {
                sql += &format!(" {word} {}", writer.value(&Json::from(rows as i64)));
            }
        }
        (sql, writer.parameters.unwrap_or_default())
    }

    /// Returns the required answer over the documents of a bucket.
    pub fn answer(&self, index: &Index, bucket: &Bucket) -> Answer {
        let mut entries = index.entries(bucket);
        if let Some(predicate) = &self.predicate {
            entries.retain(|entry| predicate.truth(&scope(entry)) == Some(true));
        }
        if let Items::Aggregates(list) = &self.items {
            let row =
                list.iter().map(|(function, column)| aggregate(function, *column, &entries, index));
            return Answer::Ordered(self.window(vec![row.collect()]));
        }
        if self.order.as_ref().is_some_and(|order| order.reverse) {
            entries.reverse();
        }
        if self.distinct
            && let Items::Exprs(exprs) = &self.items
        {
            // Equal rows are adjacent, because the columns lead the key. MISSING reads like NULL.
            let known = |value: Value| value.unwrap_or(Json::Null);
            let same = |a: &mut Entry, b: &mut Entry| {
                let (a, b) = (scope(a), scope(b));
                let equal =
                    |e: &Expr| compare(Some(&known(e.eval(&a))), Some(&known(e.eval(&b)))).is_eq();
                exprs.iter().all(equal)
            };
            entries.dedup_by(same);
        }
        let rows: Vec<Row> = entries.iter().map(|entry| self.row(index, entry)).collect();
        match &self.order {
            Some(order) if order.decides(&entries) => Answer::Ordered(self.window(rows)),
            _ => Answer::Some(self.window(rows.clone()).len(), rows),
        }
    }

    fn window(&self, rows: Vec<Row>) -> Vec<Row> {
        let limit = self.limit.unwrap_or(u64::MAX) as usize;
        rows.into_iter().skip(self.offset.unwrap_or(0) as usize).take(limit).collect()
    }

    fn row(&self, index: &Index, entry: &Entry) -> Row {
        let kinds: Vec<Type> = index.columns().iter().map(|column| column.kind).collect();
        match &self.items {
            Items::Exprs(exprs) => {
                exprs.iter().map(|e| shown(e.eval(&scope(entry)), e.kind(&kinds))).collect()
            }
            _ => {
                let columns = entry.columns.iter().zip(&kinds);
                let columns = columns.map(|(value, kind)| shown(value.clone(), *kind));
                [Some(entry.id.clone())].into_iter().chain(columns).collect()
            }
        }
    }
}

fn join(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

fn scope(entry: &Entry) -> Scope<'_> {
    Scope { id: &entry.id, document: None, columns: &entry.columns }
}

/// Returns the text of a value in a column of this type.
fn shown(value: Value, kind: Type) -> Option<String> {
    let value = if kind == Type::Text { value } else { cast(value, kind) };
    match (kind, &value) {
        (Type::Bool, Some(Json::Bool(truth))) => Some(if *truth { "t" } else { "f" }.to_owned()),
        (Type::Numeric, Some(Json::Number(number))) => Some(plain(&Num::of(number).text())),
        // PostgreSQL's texts have no NUL.
        _ => text(value.as_ref()).map(|text| text.replace('\0', "\\u0000")),
    }
}

impl Order {
    /// True if the clause determines the order of all rows. Ties are ordered by the following
    /// columns of the index, in the direction of the clause's columns that have more than one
    /// value; without such a column there is no order.
    fn decides(&self, entries: &[Entry]) -> bool {
        let differ = |n: usize| {
            let differ = |pair: &[Entry]| {
                compare(pair[0].columns[n].as_ref(), pair[1].columns[n].as_ref()).is_ne()
            };
            entries.windows(2).any(differ)
        };
        self.id || (self.from..self.to).any(differ)
    }

    fn sql(&self, index: &Index, names: &[String]) -> String {
        let parts = (self.from..self.to).map(|n| {
            let descending = index.keys[n].descending != self.reverse;
            format!("{}{}", names[n], if descending { " DESC" } else { "" })
        });
        let id = self.id.then(|| format!("id{}", if self.reverse { " DESC" } else { "" }));
        join(parts.chain(id))
    }
}

fn aggregate(
    function: &str,
    column: Option<usize>,
    entries: &[Entry],
    index: &Index,
) -> Option<String> {
    let Some(column) = column else { return Some(entries.len().to_string()) };
    let values = entries.iter().filter_map(|entry| entry.columns[column].as_ref());
    let values: Vec<&Json> = values.filter(|value| !value.is_null()).collect();
    let kind = index.columns()[column].kind;
    let order = |a: &&&Json, b: &&&Json| compare(Some(a), Some(b));
    match function {
        "count" => Some(values.len().to_string()),
        "min" => shown(values.iter().min_by(order).map(|v| (*v).clone()), kind),
        "max" => shown(values.iter().max_by(order).map(|v| (*v).clone()), kind),
        _ => sum(&values).map(|sum| sum.text()),
    }
}

/// The number of decimal places of a sum: the maximum of the generator's numbers.
const PLACES: u32 = 8;

/// An exact sum of numbers with few decimal places.
struct Sum(i128);

fn sum(values: &[&Json]) -> Option<Sum> {
    let numbers = values.iter().filter_map(|value| match value {
        Json::Number(number) => Some(Num::of(number)),
        _ => None,
    });
    let units = |number: Num| scaled(&plain(&number.text())).expect("few decimal places");
    numbers.map(units).reduce(|a, b| a + b).map(Sum)
}

impl Sum {
    fn text(&self) -> String {
        let one = 10u128.pow(PLACES);
        let sign = if self.0 < 0 { "-" } else { "" };
        let (whole, rest) = (self.0.unsigned_abs() / one, self.0.unsigned_abs() % one);
        let rest = format!("{rest:0width$}", width = PLACES as usize);
        let rest = rest.trim_end_matches('0');
        format!("{sign}{whole}{}{rest}", if rest.is_empty() { "" } else { "." })
    }
}

/// Returns a plain decimal in units of the last decimal place; `None` if it has too many digits.
fn scaled(text: &str) -> Option<i128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > PLACES as usize || whole.len() > 21 {
        return None;
    }
    format!("{whole}{fraction:0<width$}", width = PLACES as usize).parse().ok()
}

/// True if the model can add up this column, because its numbers have few decimal places.
pub fn summable(index: &Index, bucket: &Bucket, column: usize) -> bool {
    index.entries(bucket).iter().all(|entry| match &entry.columns[column] {
        Some(Json::Number(number)) => scaled(&plain(&Num::of(number).text())).is_some(),
        _ => true,
    })
}

/// Returns the text of a number without an exponent.
pub fn plain(text: &str) -> String {
    match text.parse::<f64>() {
        Ok(float) if text.contains('e') => float.to_string(),
        _ => text.to_owned(),
    }
}

impl Answer {
    /// Returns a text about the difference between rows and the answer; `None` if they are right.
    pub fn fault(&self, got: &[Row]) -> Option<String> {
        match self {
            Self::Ordered(rows) => {
                let at = rows.iter().zip(got).position(|(a, b)| a != b);
                let at = at.or((rows.len() != got.len()).then_some(rows.len().min(got.len())))?;
                Some(format!(
                    "row {at} must be {:?}, and is {:?}; {} rows, must be {}",
                    rows.get(at),
                    got.get(at),
                    got.len(),
                    rows.len()
                ))
            }
            Self::Some(count, rows) => {
                if got.len() != *count {
                    let mut left = count_rows(rows);
                    got.iter().for_each(|row| *left.entry(row).or_default() -= 1);
                    let wrong: Vec<_> = left.iter().filter(|(_, n)| **n != 0).take(5).collect();
                    return Some(format!(
                        "{} rows, must be {count}; missing (+) and too many (-): {wrong:?}",
                        got.len()
                    ));
                }
                let mut left = count_rows(rows);
                for row in got {
                    let left = left.entry(row).or_default();
                    *left -= 1;
                    if *left < 0 {
                        return Some(format!(
                            "{row:?} is no row of the answer, or comes too often"
                        ));
                    }
                }
                None
            }
        }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Ordered(rows) => rows.len(),
            Self::Some(count, _) => *count,
        }
    }

    /// True if the answer has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn count_rows(rows: &[Row]) -> BTreeMap<&Row, i64> {
    let mut counts = BTreeMap::new();
    rows.iter().for_each(|row| *counts.entry(row).or_default() += 1);
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sums_are_exact() {
        let add = |values: &[Json]| sum(&values.iter().collect::<Vec<_>>()).map(|sum| sum.text());
        assert_eq!(add(&[json!(0.1), json!(0.2), json!("x")]).as_deref(), Some("0.3"));
        assert_eq!(add(&[json!(-1), json!(0.25)]).as_deref(), Some("-0.75"));
        assert_eq!(add(&[json!(u64::MAX), json!(1)]).as_deref(), Some("18446744073709551616"));
        assert_eq!(add(&[json!("x")]), None);
        assert_eq!(scaled("1.123456789"), None);
        assert_eq!(plain("1e-7"), "0.0000001");
    }

    #[test]
    fn a_wrong_answer_is_told() {
        let rows = |list: &[&str]| -> Vec<Row> {
            list.iter().map(|text| vec![Some((*text).to_owned())]).collect()
        };
        let ordered = Answer::Ordered(rows(&["a", "b"]));
        assert_eq!(ordered.fault(&rows(&["a", "b"])), None);
        for wrong in [&["b", "a"][..], &["a"], &["a", "b", "b"]] {
            assert!(ordered.fault(&rows(wrong)).is_some(), "{wrong:?}");
        }
        let any = Answer::Some(2, rows(&["a", "b", "b"]));
        assert_eq!(any.fault(&rows(&["b", "b"])), None);
        for wrong in [&["a", "a"][..], &["a"], &["a", "c"], &["a", "b", "b"]] {
            assert!(any.fault(&rows(wrong)).is_some(), "{wrong:?}");
        }
    }
}
