//! Patterns: LIKE, and PostgreSQL's regular expressions in the syntax of the crate `regex`.
//!
//! The time of a match is linear in the text, so no pattern of a client can stop a thread. The crate's
//! syntax has most of PostgreSQL's; what only PostgreSQL has is translated (`\y`, `\m`, `\M`, `\A`,
//! `\Z`, bounds of classes such as `[[:<:]]`), and lookaround and back-references are refused. Of
//! several matches at one place PostgreSQL takes the longest one, the crate the first alternative:
//! this shows only where a match is cut out of a text, with alternatives that begin alike.

use std::collections::BTreeMap;
use std::sync::Arc;

use regex::{Regex, RegexBuilder};

use crate::error::{Error, Result};

/// The patterns that a statement keeps. One that has more compiles them again.
const PATTERNS_MAX: usize = 64;

/// The size of a compiled pattern, in bytes: 100 times that of the longest recorded pattern.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// Compiled patterns of a statement, by their text and flags.
#[derive(Default)]
pub(crate) struct Patterns(BTreeMap<(String, String), Arc<Regex>>);

impl Patterns {
    /// Returns a regular expression with flags of PostgreSQL: `i`, `n`, `m`, `s`, `x`, `q`, `c`.
    /// An error if it is none (2201B).
    pub fn regex(&mut self, pattern: &str, flags: &str) -> Result<Arc<Regex>> {
        let (options, pattern) = embedded_options(pattern);
        let flags = &format!("{flags}{options}");
        self.get(pattern, flags, |pattern| {
            if flags.contains('q') { Ok(regex::escape(pattern)) } else { translate(pattern) }
        })
    }

    /// Returns the expression of a LIKE pattern. An error if it ends with an escape (22025).
    pub fn like(&mut self, pattern: &str, ignores_case: bool) -> Result<Arc<Regex>> {
        // The flag `L` is none of PostgreSQL's: it keeps LIKE patterns apart.
        let flags = if ignores_case { "Li" } else { "L" };
        self.get(pattern, flags, like)
    }

    fn get(
        &mut self,
        pattern: &str,
        flags: &str,
        translate: impl FnOnce(&str) -> Result<String>,
    ) -> Result<Arc<Regex>> {
        let key = (pattern.to_owned(), flags.to_owned());
        if let Some(regex) = self.0.get(&key) {
            return Ok(regex.clone());
        }
        // Newlines are ordinary characters unless a flag says otherwise.
        let by_lines = flags.contains(['n', 'm']);
        let regex = RegexBuilder::new(&translate(pattern)?)
            .case_insensitive(flags.contains('i'))
            .ignore_whitespace(flags.contains('x'))
            .dot_matches_new_line(!flags.contains(['n', 'p', 'm']))
            .multi_line(by_lines || flags.contains('w'))
            .size_limit(PATTERN_BYTES_MAX)
            .dfa_size_limit(PATTERN_BYTES_MAX)
            .build();
        let regex = regex.map_err(|error| {
            let why = error.to_string();
            let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ");
            Error::new("2201B", format!("invalid regular expression: {why}"))
        })?;
        if self.0.len() >= PATTERNS_MAX {
            self.0.clear();
        }
        let regex = Arc::new(regex);
        self.0.insert(key, regex.clone());
        Ok(regex)
    }
}

/// Splits off the options with which a pattern may begin, such as `(?i)`.
fn embedded_options(pattern: &str) -> (&str, &str) {
    let options = pattern.strip_prefix("(?").and_then(|rest| rest.split_once(')'));
    let is_option = |c: char| "bceimnpqstwx".contains(c);
    match options {
        Some((options, rest)) if !options.is_empty() && options.chars().all(is_option) => {
            (options, rest)
        }
        _ => ("", pattern),
    }
}

/// Returns the expression that a LIKE pattern stands for.
fn like(pattern: &str) -> Result<String> {
    let mut out = String::from("\\A(?s:");
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '%' => out.push_str(".*"),
            '_' => out.push('.'),
            '\\' => match chars.next() {
                Some(c) => out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
                None => {
                    return Err(Error::new(
                        "22025",
                        "LIKE pattern must not end with escape character",
                    ));
                }
            },
            c => out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
        }
    }
    out.push_str(")\\z");
    Ok(out)
}

fn refused(what: &str) -> Error {
    Error::unsupported(format!("{what} in a regular expression"))
        .with_hint("write the pattern without it")
}

/// Translates a regular expression of PostgreSQL.
fn translate(pattern: &str) -> Result<String> {
    // `***=` makes the rest a literal text; `***:` says that it is an expression.
    if let Some(literal) = pattern.strip_prefix("***=") {
        return Ok(regex::escape(literal));
    }
    let pattern = pattern.strip_prefix("***:").unwrap_or(pattern);
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                let c = chars.next();
                let c = c.ok_or_else(|| {
                    Error::new("2201B", "invalid regular expression: invalid escape \\ sequence")
                })?;
                escape(c, &mut out)?;
            }
            '(' => {
                out.push('(');
                let rest: String = chars.clone().take(3).collect();
                if ["?=", "?!", "?<=", "?<!"].iter().any(|look| rest.starts_with(look)) {
                    return Err(refused("lookahead or lookbehind"));
                }
            }
            '[' => class(&mut chars, &mut out)?,
            // A brace that begins no repetition is a character.
            '{' if !chars.peek().is_some_and(char::is_ascii_digit) => out.push_str("\\{"),
            '}' if !is_in_repetition(&out) => out.push_str("\\}"),
            c => out.push(c),
        }
    }
    Ok(out)
}

fn is_in_repetition(out: &str) -> bool {
    let digits = out.trim_end_matches(|c: char| c.is_ascii_digit() || c == ',');
    digits.len() < out.len() && digits.ends_with('{') && !digits.ends_with("\\{")
}

fn escape(c: char, out: &mut String) -> Result<()> {
    match c {
        'y' => out.push_str("\\b"),
        'Y' => out.push_str("\\B"),
        'm' => out.push_str("\\b{start}"),
        'M' => out.push_str("\\b{end}"),
        'Z' => out.push_str("\\z"),
        'A' | 'd' | 'D' | 's' | 'S' | 'w' | 'W' | 'n' | 'r' | 't' | 'f' | 'v' | 'a' => {
            out.push('\\');
            out.push(c);
        }
        'e' => out.push_str("\\x1B"),
        'b' => out.push_str("\\x08"),
        'B' => out.push_str("\\\\"),
        'x' | 'u' | 'U' => {
            out.push('\\');
            out.push(c);
        }
        '1'..='9' => return Err(refused("a back-reference")),
        c if c.is_alphanumeric() => {
            return Err(Error::new(
                "2201B",
                format!("invalid regular expression: invalid escape \\{c} sequence"),
            ));
        }
        c => out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
    }
    Ok(())
}

/// Translates a class in brackets, whose `[` has been read.
fn class(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) -> Result<()> {
    let rest: String = chars.clone().take(6).collect();
    for (bound, translated) in [("[:<:]]", "\\b{start}"), ("[:>:]]", "\\b{end}")] {
        if rest == bound {
            chars.nth(5);
            out.push_str(translated);
            return Ok(());
        }
    }
    let unbalanced = || Error::new("2201B", "invalid regular expression: brackets [] not balanced");
    out.push('[');
    if chars.peek() == Some(&'^') {
        chars.next();
        out.push('^');
    }
    let mut is_first = true;
    loop {
        let c = chars.next().ok_or_else(unbalanced)?;
        match c {
            ']' if !is_first => break,
            '[' if chars.peek() == Some(&':') => {
                out.push('[');
                loop {
                    let c = chars.next().ok_or_else(unbalanced)?;
                    out.push(c);
                    if c == ']' {
                        break;
                    }
                }
            }
            '[' if matches!(chars.peek(), Some('.' | '=')) => {
                return Err(refused("a collating element"));
            }
            '\\' => {
                let c = chars.next().ok_or_else(unbalanced)?;
                escape(c, out)?;
            }
            // The crate has operators of sets within classes.
            '[' | ']' | '&' | '~' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
        is_first = false;
    }
    out.push(']');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_mean_what_they_mean_to_postgresql() {
        let mut patterns = Patterns::default();
        let mut matches = |text: &str, pattern: &str| {
            patterns.regex(pattern, "").map(|regex| regex.is_match(text)).map_err(|e| e.sqlstate)
        };
        assert_eq!(matches("people", "^(people)$"), Ok(true));
        assert_eq!(matches("a{b", "a{b"), Ok(true));
        assert_eq!(matches("aab", "a{2}b"), Ok(true));
        assert_eq!(matches("a word", r"\mword\M"), Ok(true));
        assert_eq!(matches("swords", r"\yword\y"), Ok(false));
        assert_eq!(matches("a word", "[[:<:]]word[[:>:]]"), Ok(true));
        assert_eq!(matches("a]b", "[]]"), Ok(true));
        assert_eq!(matches("a\nb", "a.b"), Ok(true));
        assert_eq!(matches("x", "(?=x)"), Err("0A000"));
        assert_eq!(matches("aa", r"(a)\1"), Err("0A000"));
        assert_eq!(matches("x", "("), Err("2201B"));
    }

    #[test]
    fn like_takes_everything_else_literally() {
        let mut patterns = Patterns::default();
        let mut like = |text: &str, pattern: &str| {
            patterns.like(pattern, false).map(|regex| regex.is_match(text)).map_err(|e| e.sqlstate)
        };
        assert_eq!(like("pg_toast", r"pg\_%"), Ok(true));
        assert_eq!(like("pgxtoast", r"pg\_%"), Ok(false));
        assert_eq!(like("a.c", "a.c"), Ok(true));
        assert_eq!(like("abc", "a.c"), Ok(false));
        assert_eq!(like("a\nc", "a_c"), Ok(true));
        assert_eq!(like("a", "a\\"), Err("22025"));
    }
}
