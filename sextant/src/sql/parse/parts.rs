//! Parses a SELECT whose clauses are separate texts, as in a scan over gRPC.
//!
//! Each text is parsed separately. Otherwise a text could contain the end of its clause and
//! continue with another clause of the statement.

use proto::value::{Number, Value};
use proto::{Error, ErrorCode};
use sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use crate::sql::ast::{Select, SelectItem};
use crate::sql::error::{SqlError, SqlResult};
use crate::sql::limits;

/// The clauses of a SELECT from one index, as texts.
#[derive(Clone, Debug, Default)]
pub struct SelectParts {
    /// The name of the index.
    pub from: String,
    /// The items of the select list, as names.
    pub columns: Vec<String>,
    /// The condition of WHERE; empty if there is none.
    pub filter: String,
    /// The maximum number of rows.
    pub limit: Option<u64>,
    /// The number of rows to skip.
    pub offset: u64,
}

impl SelectParts {
    /// Returns the total length of all texts, in bytes.
    pub fn len_bytes(&self) -> usize {
        self.columns.iter().chain([&self.from, &self.filter]).map(String::len).sum()
    }

    /// Parses the clauses. An error contains the name of the clause.
    pub fn parse(&self) -> proto::Result<Select> {
        limits::check_columns(self.columns.len())?;
        let item = |(n, text): (usize, &String)| {
            let parsed = parse_clause(text, |cursor| cursor.select_item());
            parsed.map_err(|error| error.context(format!("column {}", n + 1)))
        };
        let items = match self.columns.is_empty() {
            true => vec![SelectItem::Star],
            false => self.columns.iter().enumerate().map(item).collect::<proto::Result<_>>()?,
        };
        let filter = match self.filter.is_empty() {
            true => None,
            false => {
                let parsed = parse_clause(&self.filter, |cursor| cursor.expr());
                Some(parsed.map_err(|error| error.context("where"))?)
            }
        };
        let number = |rows: u64| proto::expr::Expr::Literal(Value::Number(Number::from_u64(rows)));
        Ok(Select {
            distinct: false,
            items,
            from: Some(self.from.clone()),
            alias: None,
            filter,
            order_by: Vec::new(),
            limit: self.limit.map(number),
            offset: Some(self.offset).filter(|rows| *rows > 0).map(number),
        })
    }
}

/// Parses a text that must consist of exactly one clause.
fn parse_clause<T>(
    text: &str,
    part: impl FnOnce(&mut Cursor<'_>) -> SqlResult<T>,
) -> proto::Result<T> {
    let parsed = || {
        let mut cursor = Cursor::new(text)?;
        let parsed = part(&mut cursor)?;
        match (cursor.peek(), cursor.parameters) {
            (Token::EOF, 0) => Ok(parsed),
            (Token::EOF, _) => {
                let what = "a scan over gRPC takes no parameters";
                Err(Error::new(ErrorCode::InvalidParameter, what).into())
            }
            _ => Err(cursor.expected("the end of the expression")),
        }
    };
    parsed().map_err(|error: SqlError| error.error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(columns: &[&str], filter: &str) -> SelectParts {
        let columns = columns.iter().map(|column| (*column).to_owned()).collect();
        SelectParts { from: "by_city".into(), columns, filter: filter.into(), ..Default::default() }
    }

    #[test]
    fn separate_clauses_give_the_same_select() {
        let parts = SelectParts {
            limit: Some(3),
            offset: 2,
            ..parts(&["city", "age::int8 AS years"], "age > 3 OR city = 'x' -- why")
        };
        let sql = "SELECT city, age::int8 AS years FROM by_city WHERE age > 3 OR city = 'x' LIMIT 3 OFFSET 2";
        let parsed = super::super::parse(sql).expect("a statement").remove(0);
        let select = parts.parse().expect("a select");
        assert_eq!(crate::sql::ast::Statement::Select(select), parsed.statement);
    }

    #[test]
    fn each_text_is_exactly_one_clause() {
        for (columns, filter, place) in [
            (&["*"][..], "TRUE) OR (TRUE", "where"),
            (&["*"], "TRUE; DROP INDEX by_city", "where"),
            (&["*"], "TRUE ORDER BY city", "where"),
            (&["*"], "city = $1", "where"),
            (&["*"], " ", "where"),
            (&["city, age"], "", "column 1"),
            (&["city", "age FROM other"], "", "column 2"),
            (&[""], "", "column 1"),
        ] {
            let error = parts(columns, filter).parse().expect_err("refused");
            assert!(error.message.starts_with(place), "{columns:?} {filter:?}: {error}");
        }
    }
}
