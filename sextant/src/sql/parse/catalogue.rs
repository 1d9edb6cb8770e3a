//! Parses queries of PostgreSQL's catalogue (its system tables), such as those of psql's `\\d`
//! and of drivers.
//!
//! Sextant has no such catalogue yet. These queries return no rows, since an error would fail the
//! transaction in which psql completes a word, and some drivers do not start without an answer.
//! The grammar does not cover the SQL of these queries. Only the names of the result columns are
//! read, from the tokens of the select list.

use sqlparser::tokenizer::{Token, Word};

use super::cursor::{Cursor, is_reserved_name};
use crate::sql::ast::{CatalogueQuery, Statement};
use crate::sql::error::SqlResult;
use crate::sql::limits;

impl Cursor<'_> {
    /// Returns true if the statement reads a table of PostgreSQL's catalogue.
    pub(super) fn reads_catalogue(&self) -> bool {
        let mut before = Token::EOF;
        let mut is_from = false;
        for token in self.rest_of_statement() {
            if let Token::Whitespace(_) = token {
                continue;
            }
            // Only the name of a table is checked: a field of a document may have any name.
            if is_from && is_catalogue(&token) {
                return true;
            }
            is_from = before != Token::Period
                && ["FROM", "JOIN"].iter().any(|word| is_unquoted(&token, word));
            before = token;
        }
        false
    }

    /// Parses a query of PostgreSQL's catalogue up to its end.
    pub(super) fn catalogue_query(&mut self) -> SqlResult<Statement> {
        let mut items: Vec<Vec<Token>> = Vec::new();
        let (mut depth, mut is_list, mut limited) = (0usize, false, false);
        while !self.at_end() {
            let token = self.peek().clone();
            match &token {
                Token::LParen | Token::LBracket => depth += 1,
                Token::RParen | Token::RBracket => depth = depth.saturating_sub(1),
                Token::Placeholder(name) => self.count_parameter(name),
                _ => {}
            }
            let outside = depth == 0;
            limited |= outside && is_unquoted(&token, "LIMIT");
            if outside && items.is_empty() && is_unquoted(&token, "SELECT") {
                (is_list, items) = (true, vec![Vec::new()]);
            } else if outside && is_unquoted(&token, "FROM") {
                is_list = false;
            } else if outside && is_list && token == Token::Comma {
                limits::check_columns(items.len() + 1)
                    .map_err(|error| self.error_at_next(error))?;
                items.push(Vec::new());
            } else if let Some(item) = items.last_mut().filter(|_| is_list) {
                item.push(token);
            }
            self.advance();
        }
        let columns = items.iter().filter_map(|item| column_name(item)).collect();
        Ok(Statement::Catalogue(CatalogueQuery { columns, limited }))
    }

    /// Counts a parameter that occurs in the query.
    fn count_parameter(&mut self, name: &str) {
        if let Some(number) = name.strip_prefix('$').and_then(|number| number.parse().ok()) {
            self.parameters = self.parameters.max(number);
        }
    }
}

fn is_unquoted(token: &Token, name: &str) -> bool {
    matches!(token, Token::Word(word)
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(name))
}

/// Returns true for `pg_…` and `information_schema`, and for quoted names of these schemas.
fn is_catalogue(token: &Token) -> bool {
    match token {
        Token::Word(Word { value, quote_style: Some(_), .. }) => {
            value == "pg_catalog" || value == "information_schema"
        }
        Token::Word(word) => is_reserved_name(&word.value),
        _ => false,
    }
}

/// Returns the name of an item of a select list by PostgreSQL's rules; `None` for `*`.
fn column_name(item: &[Token]) -> Option<String> {
    let item = match item {
        [first, rest @ ..] if is_unquoted(first, "DISTINCT") || is_unquoted(first, "ALL") => rest,
        item => item,
    };
    let folded = |word: &Word| match word.quote_style {
        Some(_) => word.value.clone(),
        None => word.value.to_lowercase(),
    };
    let value = match item {
        [.., Token::Mul] if item.len() == 1 || item[item.len() - 2] == Token::Period => {
            return None;
        }
        [.., before, Token::Word(word)] if may_precede_alias(before) && !is_end(word) => {
            return Some(folded(word));
        }
        item => item,
    };
    // A cast does not name its value.
    let cast = value.iter().position(|token| *token == Token::DoubleColon);
    let value = &value[..cast.unwrap_or(value.len())];
    let path = value.iter().take_while(|token| matches!(token, Token::Word(_) | Token::Period));
    let name = match path.last() {
        _ if value.first().is_some_and(|first| is_unquoted(first, "CASE")) => "case".to_owned(),
        Some(Token::Word(word)) => folded(word),
        _ => "?column?".to_owned(),
    };
    Some(name)
}

/// Returns true if a word after this token is an alias, because the token ends a value or is
/// `AS`.
fn may_precede_alias(token: &Token) -> bool {
    matches!(
        token,
        Token::Word(_)
            | Token::RParen
            | Token::RBracket
            | Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::Placeholder(_)
    )
}

/// Returns true for the word that ends `CASE … END`.
fn is_end(word: &Word) -> bool {
    word.quote_style.is_none() && word.value.eq_ignore_ascii_case("END")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_of_the_catalogue_has_the_columns_of_its_select_list() {
        for (sql, columns) in [
            (
                "SELECT c.oid, n.nspname AS \"Schema\", relname name FROM pg_class c",
                "oid|Schema|name",
            ),
            (
                "SELECT pg_catalog.format_type(a, b), x::text, 1 + 2 FROM pg_catalog.pg_type",
                "format_type|x|?column?",
            ),
            ("SELECT CASE WHEN a THEN 'b' END, CASE c WHEN 1 THEN 2 END AS d FROM pg_am", "case|d"),
            ("SELECT * FROM information_schema.tables", ""),
            ("SELECT DISTINCT t.*, (SELECT x FROM y) AS z FROM \"pg_catalog\".\"pg_type\" t", "z"),
            ("WITH a AS (SELECT b FROM pg_type) SELECT b, $2 FROM a", "b|?column?"),
            ("SELECT relname FROM pg_class UNION SELECT 'x' LIMIT 1000", "relname"),
        ] {
            let mut parsed = crate::sql::parse(sql).unwrap();
            let parsed = parsed.remove(0);
            let Statement::Catalogue(query) = parsed.statement else { panic!("{sql}") };
            assert_eq!(query.columns.join("|"), columns, "{sql}");
            assert_eq!(query.limited, sql.contains("LIMIT"), "{sql}");
            assert_eq!(parsed.parameters, if sql.contains("$2") { 2 } else { 0 });
        }
    }
}
