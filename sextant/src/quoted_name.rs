//! Names in the text of statements.

use proto::expr::RESERVED;

/// Words that mean something else at the place of a name of an index.
const NO_NAMES: [&str; 2] = ["concurrently", "if"];

/// A name as a statement has it: in quotes, unless it is folded to itself without.
pub(crate) fn quoted_name(name: &str) -> String {
    let is_free = RESERVED.binary_search(&name).is_err() && !NO_NAMES.contains(&name);
    let is_word = is_free
        && name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    match is_word {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}
