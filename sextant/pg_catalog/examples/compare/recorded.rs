//! The recorded statements.

use std::path::Path;

use super::load::Loaded;

/// A recorded statement, without parameters and placeholders.
pub struct Recorded {
    /// The file and the number in it.
    pub place: String,
    /// The statement.
    pub text: String,
}

/// Reads the statements of class `catalogue` of a folder, or those of a file of answers: the lines after `> `.
pub fn recorded(folder: &Path, names: &[String], loaded: &Loaded) -> Vec<Recorded> {
    if folder.is_file() {
        let text = std::fs::read_to_string(folder).expect("a file");
        let statements = text.lines().filter_map(|line| line.strip_prefix("> "));
        let statement = |text: &str| Recorded { place: text.to_owned(), text: text.to_owned() };
        return statements.map(statement).collect();
    }
    let entries = std::fs::read_dir(folder).expect("the folder of the recorded statements");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let mut all = Vec::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|ending| ending == "sql")) {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if !names.is_empty() && !names.contains(&name) {
            continue;
        }
        let text = std::fs::read_to_string(file).expect("a file");
        let blocks = text.split("\n-- [").skip(1);
        all.extend(blocks.filter_map(|block| statement(&name, block, loaded)));
    }
    all
}

fn statement(file: &str, block: &str, loaded: &Loaded) -> Option<Recorded> {
    let (number, rest) = block.split_once("] ")?;
    if !rest.starts_with("catalogue ") {
        return None;
    }
    let mut lines = rest.lines().skip(1).peekable();
    let mut values = Vec::new();
    while let Some(line) = lines.next_if(|line| line.starts_with("-- ")) {
        if let Some(list) = line.strip_prefix("-- parameters: ") {
            values = parameters(&replaced(list, loaded));
        }
    }
    let text = replaced(&lines.collect::<Vec<_>>().join("\n"), loaded);
    let text = with_values(&text, &values);
    let word = text.trim_start().get(..6).unwrap_or_default().to_lowercase();
    let is_query =
        word.starts_with("select") || word.starts_with("with") || word.starts_with("values");
    // COPY takes a query without the semicolon, which a comment may follow.
    let mut text = text.trim_end().to_owned();
    if let Some(at) = text.rfind(';').filter(|_| {
        !text.ends_with(';')
            || text
                .lines()
                .last()
                .is_some_and(|line| line.contains("; --") || line.contains(";  --"))
    }) {
        let line = text[..at].rfind('\n').map_or(0, |at| at + 1);
        let comment = text[line..].find("--").map_or(text.len(), |at| line + at);
        text.truncate(comment);
    }
    let text = text.trim_end().trim_end_matches(';').to_owned();
    is_query.then(|| Recorded { place: format!("{file} {number}"), text })
}

/// Returns the parameters as literals of SQL, in their order.
fn parameters(list: &str) -> Vec<String> {
    let mut values = Vec::new();
    let mut rest = list;
    while let Some(at) = rest.find(" = ") {
        let ty = &rest[..at];
        let (value, after) = match rest[at + 3..].find(", $") {
            Some(end) => (&rest[at + 3..at + 3 + end], &rest[at + 3 + end..]),
            None => (&rest[at + 3..], ""),
        };
        let declared = ty.split_once("(Parse says ").map(|(_, ty)| ty.trim_end_matches(')'));
        let value = match value.strip_prefix("\\x") {
            Some(hex) => format!("'{}'", text_of(hex)),
            None if value.starts_with('\'') => value.to_owned(),
            None if value.eq_ignore_ascii_case("null") => "NULL".to_owned(),
            None => format!("'{value}'"),
        };
        values.push(match declared {
            Some("unspecified") => value,
            Some(ty) => format!("{value}::{ty}"),
            None => {
                let ty = ty.trim_start_matches([',', ' ']).split_once(' ').map_or("", |(_, ty)| ty);
                format!("{value}::{ty}")
            }
        });
        rest = after;
    }
    values
}

fn text_of(hex: &str) -> String {
    let bytes: Vec<u8> = (0..hex.len() / 2)
        .filter_map(|at| u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok())
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn with_values(text: &str, values: &[String]) -> String {
    let mut text = text.to_owned();
    for (number, value) in values.iter().enumerate().rev() {
        text = text.replace(&format!("${}", number + 1), value);
    }
    text
}

/// Replaces what varied when the statements were recorded.
fn replaced(text: &str, loaded: &Loaded) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        out.push_str(before);
        let is_name = |name: &str| {
            !name.is_empty()
                && name
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || ":_ -.".contains(c))
        };
        match after.split_once('>') {
            Some((name, tail)) if is_name(name) => {
                match name.strip_prefix("oid:") {
                    Some(name) => out.push_str(&loaded.oid_of(name).to_string()),
                    None if name == "oid" => out.push_str("99999"),
                    None if name == "n" => out.push('1'),
                    None => out.push_str("x1"),
                }
                rest = tail;
            }
            _ => {
                out.push('<');
                rest = after;
            }
        }
    }
    out + rest
}
