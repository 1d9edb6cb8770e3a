//! Names in the text of statements.

use proto::expr::RESERVED;

/// Words that have another meaning than a name where a statement expects the name of an index.
const NO_NAMES: [&str; 2] = ["concurrently", "if"];

/// Returns a name as it must be written in a statement: in quotes, unless the name without quotes
/// means the same.
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
