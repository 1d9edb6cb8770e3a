//! Finds the position of an unknown column in the query text, for errors.
//!
//! Expressions do not store positions, because most expressions exist much longer than the text.
//! An error about a column is rare, so the position is searched only then. It is the first
//! occurrence of the name in the failed statement.

use proto::{Error, ErrorCode};
use sqlparser::tokenizer::{Token, Tokenizer};

use super::dialect::SextantDialect;
use super::error::SqlError;

/// The beginning of the message about an unknown column. The name of the column follows.
pub(crate) const NO_COLUMN: &str = "there is no column ";

/// Adds the position of the column to an error about an unknown column. `start` is the offset of
/// the statement in the text, in bytes. Other errors get no position.
pub fn with_column_position(error: Error, sql: &str, start: usize) -> SqlError {
    let name = match error.code {
        ErrorCode::UnknownColumn => error.message.strip_prefix(NO_COLUMN).and_then(first_field),
        _ => None,
    };
    let place = name.and_then(|name| place_of(&name, sql.get(start..)?));
    let before = || sql[..start].chars().count() as u32;
    SqlError { position: place.map(|place| before() + place), error }
}

/// Returns the first field of the path at the beginning of a text.
fn first_field(path: &str) -> Option<String> {
    let mut tokens = Tokenizer::new(&SextantDialect, path).tokenize().ok()?.into_iter();
    tokens.find_map(|token| match token {
        Token::Word(word) => Some(word.value),
        _ => None,
    })
}

/// Returns the position of the first column with a name in a text. A position is the number of
/// the character, counted from 1.
fn place_of(name: &str, sql: &str) -> Option<u32> {
    let tokens = Tokenizer::new(&SextantDialect, sql).tokenize_with_location().ok()?;
    let is_qualified = |at: usize| at > 0 && tokens[at - 1].token == Token::Period;
    let is_name =
        |at: &usize| matches!(&tokens[*at].token, Token::Word(word) if word.value == name);
    let mut found = (0..tokens.len()).filter(is_name);
    // After a period follows the field of another path, or a column after its qualifiers.
    let first = found.clone().next()?;
    let mut at = found.find(|at| !is_qualified(*at)).unwrap_or(first);
    while at >= 2 && is_qualified(at) {
        at -= 2;
    }
    let start = tokens[at].span.start;
    let lines = sql.split_inclusive('\n').take(start.line.saturating_sub(1) as usize);
    let lines_before: usize = lines.map(|line| line.chars().count()).sum();
    u32::try_from(lines_before as u64 + start.column).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_column_has_its_place_in_the_failed_statement() {
        let place = |name: &str, sql: &str, start: usize| {
            let error =
                Error::new(ErrorCode::UnknownColumn, format!("{NO_COLUMN}{name} in index i"));
            with_column_position(error, sql, start).position
        };
        assert_eq!(place("colour", "SELECT colour FROM i", 0), Some(8));
        assert_eq!(place("colour", "SELECT a.colour,\n  'colour', colour FROM i", 0), Some(30));
        assert_eq!(place("\"Über\".x", "SELECT 'ä', \"Über\".x FROM i", 0), Some(13));
        let two = "SELECT 'ä', x; SELECT x FROM i";
        assert_eq!(place("x", two, two.rfind("SELECT").unwrap()), Some(23));
        assert_eq!(place("nowhere", two, 0), None);
        assert_eq!(place("colour", "SELECT t.id, \"public\".t.colour FROM t", 0), Some(14));
        let other = Error::new(ErrorCode::Unknown, format!("{NO_COLUMN}x"));
        assert_eq!(with_column_position(other, two, 0).position, None);
    }
}
