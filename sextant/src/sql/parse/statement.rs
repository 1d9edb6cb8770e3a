//! Parses query texts, which consist of any number of statements.

use sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use crate::audit::EventKind;
use crate::sql::ast::Statement;
use crate::sql::audited;
use crate::sql::error::{SqlResult, unsupported};

/// A statement with information about its text.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedStatement {
    /// The syntax tree.
    pub statement: Statement,
    /// The highest number of a parameter in the statement.
    pub parameters: u16,
    /// The offset of the statement in the query text, in bytes.
    pub start: usize,
    /// The kind of the statement and its text without literals, if the audit records the statement.
    pub audited: Option<(EventKind, Box<str>)>,
}

/// Parses a query text: any number of statements, separated by semicolons.
pub fn parse(sql: &str) -> SqlResult<Vec<ParsedStatement>> {
    let mut cursor = Cursor::new(sql)?;
    let mut statements = Vec::new();
    loop {
        while cursor.eat(&Token::SemiColon) {}
        if cursor.at_end() {
            return Ok(statements);
        }
        cursor.parameters = 0;
        cursor.statement_start = cursor.offset();
        cursor.has_secrets = false;
        let first = cursor.place();
        let statement = cursor.statement()?;
        if !cursor.at_end() {
            return Err(cursor.expected("; or the end of the statement"));
        }
        let audited = audited::kind(&statement).map(|kind| {
            let text = audited::text(kind, cursor.tokens_from(first));
            (kind, text.into_boxed_str())
        });
        let (parameters, start) = (cursor.parameters, cursor.statement_start);
        statements.push(ParsedStatement { statement, parameters, start, audited });
    }
}

/// Statements of PostgreSQL that Sextant does not have, each with an alternative.
const ABSENT: [(&str, &str); 11] = [
    ("UPDATE", "INSERT … ON CONFLICT (id) DO UPDATE SET doc = excluded.doc replaces a document"),
    ("MERGE", "INSERT … ON CONFLICT (id) DO UPDATE SET doc = excluded.doc replaces a document"),
    ("TRUNCATE", "DROP BUCKET and CREATE BUCKET"),
    ("WITH", "write one SELECT over one index"),
    ("VALUES", "SELECT of constants"),
    ("TABLE", "SELECT * FROM index"),
    ("PREPARE", "prepare through the extended protocol, as drivers do"),
    ("EXECUTE", "execute through the extended protocol, as drivers do"),
    ("DECLARE", "execute with a row limit suspends a portal in the extended protocol"),
    ("LISTEN", "poll with SELECT"),
    ("VACUUM", "old versions are removed automatically"),
];

impl Cursor<'_> {
    /// Parses one statement.
    fn statement(&mut self) -> SqlResult<Statement> {
        let word = match self.peek() {
            Token::Word(word) if word.quote_style.is_none() => word.value.to_uppercase(),
            _ => return Err(self.expected("a statement")),
        };
        match word.as_str() {
            "SELECT" | "WITH" if self.reads_catalogue() => self.catalogue_query(),
            "SELECT" => Ok(Statement::Select(self.select()?)),
            "EXPLAIN" => self.explain(),
            "INSERT" => self.insert(),
            "DELETE" => self.delete(),
            "COPY" => self.copy(),
            "CREATE" => self.create(),
            "DROP" => self.drop_object(),
            "BUILD" => self.build(),
            "ALTER" => self.alter(),
            "REINDEX" => self.reindex(),
            "REBALANCE" => self.rebalance(),
            "CANCEL" => self.cancel(),
            "DRAIN" => self.drain(true),
            "REMOVE" => self.remove(),
            "ADD" => self.add(),
            "GRANT" => self.grant(),
            "REVOKE" => self.revoke(),
            "SHOW" => self.show(),
            "SET" => self.set(),
            "RESET" => self.reset(),
            "BEGIN" | "START" | "COMMIT" | "END" | "ROLLBACK" | "ABORT" => self.transaction(),
            "SAVEPOINT" | "RELEASE" => self.savepoint(),
            "DISCARD" => self.discard(),
            "CLOSE" | "UNLISTEN" => self.no_effect_statement(),
            "DEALLOCATE" => self.deallocate(),
            _ => match ABSENT.iter().find(|(absent, _)| *absent == word) {
                Some((_, hint)) => {
                    let message = format!("{word} is not supported");
                    Err(self.error_at_next(unsupported(message, format!("what works: {hint}"))))
                }
                None => Err(self.expected("a statement")),
            },
        }
    }
}
