//! Identifiers of SQL: keywords, quoted names, parts of qualified names.

use std::sync::LazyLock;

const KEYWORDS: &str = include_str!("../../data/keywords.tsv");

/// A keyword of SQL: the word, its category (`U`, `C`, `T`, `R`), and whether it is a label without AS.
pub struct Keyword {
    /// The word, in lower case.
    pub word: &'static str,
    /// The category: `U` unreserved, `C` name of a column, `T` name of a type or function, `R` reserved.
    pub category: char,
    /// True if it may be the label of a column without AS.
    pub is_bare_label: bool,
}

static WORDS: LazyLock<Vec<Keyword>> = LazyLock::new(|| {
    let keyword = |line: &'static str| {
        let mut fields = line.split('\t');
        Keyword {
            word: fields.next().unwrap_or_default(),
            category: fields.next().and_then(|field| field.chars().next()).unwrap_or('U'),
            is_bare_label: fields.next() == Some("t"),
        }
    };
    KEYWORDS.lines().map(keyword).collect()
});

/// Returns the keywords of SQL, in the order of the words.
pub fn keywords() -> &'static [Keyword] {
    &WORDS
}

/// Returns a name as SQL reads it: in quotes unless it is a plain name in lower case.
pub fn quote_ident(name: &str) -> String {
    let is_start = |c: char| c.is_ascii_lowercase() || c == '_';
    let is_plain =
        name.starts_with(is_start) && name.chars().all(|c| is_start(c) || c.is_ascii_digit());
    let is_keyword = || {
        let found = WORDS.binary_search_by(|keyword| keyword.word.cmp(name));
        found.is_ok_and(|at| WORDS[at].category != 'U')
    };
    if is_plain && !is_keyword() {
        return name.to_owned();
    }
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Returns the parts of a qualified name, such as `public."My table"`; `None` if it is none. A part without quotes
/// is a plain identifier.
pub fn parse_name(text: &str) -> Option<Vec<String>> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let parts = split(text, is_part)?;
    let is_start = |(part, is_quoted): &(String, bool)| {
        *is_quoted || !part.starts_with(|c: char| c.is_ascii_digit() || c == '$')
    };
    parts.iter().all(is_start).then(|| parts.into_iter().map(|(part, _)| part).collect())
}

/// Returns the parts of a name as the `reg…` types read it: a part without quotes has any characters but spaces.
pub fn split_name(text: &str) -> Option<Vec<String>> {
    let is_part = |c: char| c != '.' && !c.is_whitespace();
    Some(split(text, is_part)?.into_iter().map(|(part, _)| part).collect())
}

/// Splits a name at its dots; parts in quotes are marked.
fn split(text: &str, is_part: impl Fn(char) -> bool) -> Option<Vec<(String, bool)>> {
    let mut parts = Vec::new();
    let mut rest = text.trim();
    loop {
        let (part, is_quoted, after) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (part, after) = quoted_part(quoted)?;
                (part, true, after)
            }
            None => {
                let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
                (rest[..end].to_lowercase(), false, &rest[end..])
            }
        };
        if part.is_empty() {
            return None;
        }
        parts.push((part, is_quoted));
        rest = after.trim_start();
        match rest.strip_prefix('.') {
            Some(after) => rest = after.trim_start(),
            None => return rest.is_empty().then_some(parts),
        }
    }
}

/// Reads a part in quotes, whose first quote has been read, and returns the rest of the text.
fn quoted_part(text: &str) -> Option<(String, &str)> {
    let mut part = String::new();
    let mut chars = text.char_indices().peekable();
    loop {
        let (at, c) = chars.next()?;
        match (c, chars.peek()) {
            ('"', Some((_, '"'))) => {
                part.push('"');
                chars.next();
            }
            ('"', _) => return Some((part, &text[at + 1..])),
            (c, _) => part.push(c),
        }
    }
}
