//! Parses `INSERT`, `DELETE` and `COPY`.

use proto::expr::Expr;
use sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use crate::sql::ast::{Insert, Statement};
use crate::sql::error::{SqlError, SqlResult, unsupported};
use crate::sql::qualifier::Qualifier;
use crate::sql::walk::ids_of;

impl Cursor<'_> {
    pub(super) fn insert(&mut self) -> SqlResult<Statement> {
        self.expect_words(&["INSERT", "INTO"])?;
        let bucket = self.object_name("the name of a bucket")?;
        let swapped = match self.peek() == &Token::LParen {
            true => self.insert_columns()?,
            false => false,
        };
        if self.is("SELECT") {
            let hint = "INSERT INTO b (id, doc) VALUES …, or COPY … FROM STDIN";
            return Err(self.error_at_next(unsupported("INSERT … SELECT is not supported", hint)));
        }
        self.expect_word("VALUES")?;
        let mut rows = Vec::new();
        loop {
            rows.push(self.insert_row(swapped)?);
            if !self.eat(&Token::Comma) {
                break;
            }
        }
        let replace = self.on_conflict()?;
        self.refuse_returning()?;
        Ok(Statement::Insert(Insert { bucket, rows, replace }))
    }

    /// Parses the column list. Returns true for `(doc, id)` and false for `(id, doc)`.
    fn insert_columns(&mut self) -> SqlResult<bool> {
        let columns = self.list(|cursor| {
            let place = cursor.expected("id or doc");
            let name = cursor.name("id or doc")?;
            match name.as_str() {
                "id" | "doc" => Ok(name),
                _ => Err(place),
            }
        })?;
        match columns.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["id", "doc"] => Ok(false),
            ["doc", "id"] => Ok(true),
            _ => Err(self.expected("the columns (id, doc) before it")),
        }
    }

    /// Parses a row; returns the expressions of the id and the document.
    fn insert_row(&mut self, swapped: bool) -> SqlResult<(Expr, Expr)> {
        self.expect(&Token::LParen)?;
        let first = self.expr()?;
        self.expect(&Token::Comma)?;
        let second = self.expr()?;
        self.expect(&Token::RParen)?;
        Ok(if swapped { (second, first) } else { (first, second) })
    }

    /// Parses an optional `ON CONFLICT … DO UPDATE …`; returns true if it is present.
    fn on_conflict(&mut self) -> SqlResult<bool> {
        if !self.eat_words(&["ON", "CONFLICT"]) {
            return Ok(false);
        }
        if self.peek() == &Token::LParen {
            self.list(|cursor| cursor.expect_name("id"))?;
        }
        self.expect_word("DO")?;
        if self.is("NOTHING") {
            let hint = "ON CONFLICT (id) DO UPDATE SET doc = excluded.doc";
            return Err(self.error_at_next(unsupported("DO NOTHING is not supported", hint)));
        }
        self.expect_words(&["UPDATE", "SET"])?;
        self.expect_name("doc")?;
        self.expect(&Token::Eq)?;
        self.expect_name("excluded")?;
        self.expect(&Token::Period)?;
        self.expect_name("doc")?;
        Ok(true)
    }

    /// Returns an error if `RETURNING` follows.
    fn refuse_returning(&self) -> SqlResult<()> {
        match self.is("RETURNING") {
            true => {
                let hint = "SHOW write_position returns the position of the write";
                Err(self.error_at_next(unsupported("RETURNING is not supported", hint)))
            }
            false => Ok(()),
        }
    }

    pub(super) fn delete(&mut self) -> SqlResult<Statement> {
        self.expect_words(&["DELETE", "FROM"])?;
        let bucket = self.object_name("the name of a bucket")?;
        let has_alias = self.eat_word("AS") || self.at_identifier() && !self.is("USING");
        let alias = if has_alias { Some(self.name("an alias")?) } else { None };
        let hint = "DELETE FROM b WHERE id = 'k', or id IN ('k', …)";
        if !self.eat_word("WHERE") {
            return Err(
                self.error_at_next(unsupported("DELETE of a whole bucket is not supported", hint))
            );
        }
        let place = self.expected("a condition");
        let mut filter = self.expr()?;
        Qualifier::new(alias.as_ref().unwrap_or(&bucket))
            .strip_from_bucket(&mut filter)
            .map_err(|error| SqlError { error, position: place.position })?;
        self.refuse_returning()?;
        match ids_of(filter) {
            Some(ids) => Ok(Statement::Delete { bucket, ids }),
            None => Err(SqlError {
                error: unsupported("documents can be deleted by id only", hint),
                position: place.position,
            }),
        }
    }

    pub(super) fn copy(&mut self) -> SqlResult<Statement> {
        self.expect_word("COPY")?;
        if self.eat(&Token::LParen) {
            return self.copy_out();
        }
        let bucket = self.object_name("the name of a bucket, or (SELECT …)")?;
        if self.peek() == &Token::LParen {
            let hint = "COPY b FROM STDIN (FORMAT jsonl): each line is one whole document";
            return Err(self.error_at_next(unsupported("COPY of columns is not supported", hint)));
        }
        if self.is("TO") {
            let hint = "COPY (SELECT … FROM index) TO STDOUT";
            return Err(self.error_at_next(unsupported("COPY of a bucket is not supported", hint)));
        }
        self.expect_word("FROM")?;
        if !self.eat_word("STDIN") {
            let hint = "COPY b FROM STDIN; psql's \\copy sends a file that way";
            return Err(self.error_at_next(unsupported("COPY reads from the client only", hint)));
        }
        let (mut id_field, mut is_atomic) = ("id".to_owned(), false);
        for (name, value) in self.copy_options()? {
            match (name.as_str(), value) {
                ("atomic", value) if flag(value.as_deref()).is_some() => {
                    is_atomic = flag(value.as_deref()) == Some(true);
                }
                ("format", Some(format)) if format.eq_ignore_ascii_case("jsonl") => {}
                ("id", Some(field)) if !field.is_empty() => id_field = field,
                _ => {
                    let hint = "COPY b FROM STDIN (FORMAT jsonl, id 'field', atomic on)";
                    let message = format!("COPY … FROM STDIN with this {name} is not supported");
                    return Err(self.error_at_next(unsupported(message, hint)));
                }
            }
        }
        Ok(Statement::CopyIn { bucket, id_field, is_atomic })
    }

    /// Parses `COPY (SELECT …) TO STDOUT`.
    fn copy_out(&mut self) -> SqlResult<Statement> {
        let select = self.select()?;
        self.expect(&Token::RParen)?;
        self.expect_word("TO")?;
        if !self.eat_word("STDOUT") {
            let hint = "COPY (SELECT …) TO STDOUT; psql's \\copy writes a file that way";
            return Err(self.error_at_next(unsupported("COPY writes to the client only", hint)));
        }
        for (name, value) in self.copy_options()? {
            match (name.as_str(), value) {
                ("format", Some(format)) if format.eq_ignore_ascii_case("text") => {}
                _ => {
                    let hint = "COPY (SELECT …) TO STDOUT (FORMAT text)";
                    let message = format!("COPY … TO STDOUT with this {name} is not supported");
                    return Err(self.error_at_next(unsupported(message, hint)));
                }
            }
        }
        Ok(Statement::CopyOut(select))
    }

    /// Parses `[WITH] (name value, …)`. An `=` between name and value is allowed.
    fn copy_options(&mut self) -> SqlResult<Vec<(String, Option<String>)>> {
        self.eat_word("WITH");
        if self.peek() != &Token::LParen {
            return Ok(Vec::new());
        }
        self.list(|cursor| {
            let name = cursor.name("the name of an option")?;
            cursor.eat(&Token::Eq);
            let reserved = ["on", "true", "false"];
            let value = match cursor.eat_string() {
                Some(text) => Some(text),
                None if let Some(word) = reserved.into_iter().find(|w| cursor.eat_word(w)) => {
                    Some(word.to_owned())
                }
                None if cursor.at_identifier() => Some(cursor.name("a value")?),
                None => None,
            };
            Ok((name, value))
        })
    }
}

/// Returns the value of an option that is on or off. An option without a value is on. Returns
/// `None` for other values.
fn flag(value: Option<&str>) -> Option<bool> {
    match value.map(str::to_lowercase).as_deref() {
        None | Some("on" | "true") => Some(true),
        Some("off" | "false") => Some(false),
        Some(_) => None,
    }
}
