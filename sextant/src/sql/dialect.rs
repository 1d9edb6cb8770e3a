//! The tokenizer's dialect: PostgreSQL's literals, quoting, comments and parameters. The dialect
//! has no user-defined operators, so that `a>-5` is a comparison with -5.

use std::any::TypeId;

use sqlparser::dialect::{Dialect, PostgreSqlDialect};

/// The token rules of Sextant's SQL.
#[derive(Debug)]
pub struct SextantDialect;

impl Dialect for SextantDialect {
    /// Returns the type of PostgreSQL's dialect, since the tokenizer compares the type in a few
    /// places.
    fn dialect(&self) -> TypeId {
        TypeId::of::<PostgreSqlDialect>()
    }

    fn identifier_quote_style(&self, _identifier: &str) -> Option<char> {
        Some('"')
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        ch == '"'
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        ch.is_alphabetic() || ch == '_' || !ch.is_ascii()
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        ch.is_alphanumeric() || ch == '$' || ch == '_' || !ch.is_ascii()
    }

    fn supports_unicode_string_literal(&self) -> bool {
        true
    }

    fn supports_string_escape_constant(&self) -> bool {
        true
    }

    fn supports_nested_comments(&self) -> bool {
        true
    }

    fn supports_numeric_literal_underscores(&self) -> bool {
        true
    }
}
