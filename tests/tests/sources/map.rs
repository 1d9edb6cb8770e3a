//! The documents about the sources: ARCHITECTURE.md stays short, the files and items that it and docs/limits.md name
//! exist, and each limit has the value of its constant.
//!
//! A document names a file in back-quotes, `path/file.rs`, a folder, `path/`, or an item of a file,
//! `path/file.rs::name`. In a table of limits the second cell begins with a number and perhaps a unit; the rest of it is
//! text.
#![allow(clippy::disallowed_methods, reason = "a test that reads source files")]

use std::path::{Path, PathBuf};

const MAP: &str = "ARCHITECTURE.md";
const LIMITS: &str = "docs/limits.md";

/// The items that a document may name.
const ITEMS: [&str; 8] = ["fn", "struct", "enum", "trait", "const", "static", "mod", "type"];

/// The units of limits, in bytes or milliseconds. Any other word after a number is text.
const UNITS: [(&str, u64); 7] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("ms", 1),
    ("s", 1_000),
    ("min", 60_000),
    ("h", 3_600_000),
];

/// The limit of nested constants in an expression, so that a constant that names itself ends the
/// evaluation.
const DEPTH_MAX: u32 = 16;

/// A file or a folder that a document names, and possibly an item of the file.
struct Named {
    path: String,
    item: Option<String>,
}

impl Named {
    /// Reads a text in back-quotes; `None` if it names no file and no folder.
    fn from_quoted(text: &str) -> Option<Self> {
        let (path, item) = match text.split_once("::") {
            Some((path, item)) => (path, Some(item.to_owned())),
            None => (text, None),
        };
        let is_plain = path.chars().all(|c| c.is_ascii_alphanumeric() || "/_-.".contains(c));
        let is_file = path.ends_with(".rs") || path.ends_with(".md") || path.ends_with('/');
        let is_below = path.contains('/') && !path.starts_with('/');
        (is_plain && is_file && is_below).then(|| Self { path: path.to_owned(), item })
    }

    /// Returns the reason if the file, the folder or the item does not exist.
    fn problem(&self) -> Option<String> {
        let path = workspace().join(&self.path);
        if self.path.ends_with('/') {
            return (!path.is_dir()).then(|| "there is no such folder".to_owned());
        }
        if !path.is_file() {
            return Some("there is no such file".to_owned());
        }
        let item = self.item.as_deref()?;
        let source = without_comments(&read(&self.path));
        let is_there = declares(&source, item) || limit_of(&source, item).is_some();
        (!is_there).then(|| format!("the file declares no {item}"))
    }
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_path_buf()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(workspace().join(path)).expect("a file of the workspace")
}

/// Returns the code without comments. Text after `//` in a string is removed too, which hides no
/// item.
fn without_comments(text: &str) -> String {
    let code = |line: &str| line.split("//").next().unwrap_or_default().to_owned() + "\n";
    text.lines().map(code).collect()
}

/// Returns the texts in back-quotes, without blocks of code.
fn quoted(text: &str) -> Vec<String> {
    let (mut found, mut is_block) = (Vec::new(), false);
    for line in text.lines() {
        if line.starts_with("```") {
            is_block = !is_block;
        } else if !is_block {
            found.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    found
}

fn is_part_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns true if a source declares an item of this name.
fn declares(source: &str, name: &str) -> bool {
    source.lines().any(|line| {
        let words = line.split(|c: char| !is_part_of_name(c)).filter(|word| !word.is_empty());
        let words: Vec<&str> = words.collect();
        words.windows(2).any(|two| ITEMS.contains(&two[0]) && two[1] == name)
    })
}

/// Returns the limit that a constant, or the default of a field, sets: a number, bytes or
/// milliseconds.
fn limit_of(source: &str, name: &str) -> Option<u64> {
    let value = value_of(source, name, DEPTH_MAX)?;
    if name.contains("_KB_") { value.checked_mul(1 << 10) } else { Some(value) }
}

/// Returns the value of a constant, `NAME: type = value;`, or of a field, `name: value,`.
fn value_of(source: &str, name: &str, depth: u32) -> Option<u64> {
    let pattern = format!("{name}:");
    for (at, _) in source.match_indices(pattern.as_str()) {
        if source[..at].chars().next_back().is_some_and(is_part_of_name) {
            continue;
        }
        let rest = &source[at + pattern.len()..];
        let expression = match is_constant(name) {
            true => rest.split(';').next().and_then(|constant| Some(constant.split_once('=')?.1)),
            false => rest.split([',', '}']).next(),
        };
        let value = expression.and_then(|text| evaluate(text, source, depth.checked_sub(1)?));
        if value.is_some() {
            return value;
        }
    }
    None
}

fn is_constant(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    name.starts_with(|c: char| c.is_ascii_uppercase()) && name.chars().all(is_part)
}

/// Evaluates numbers, `<<`, `+`, `-`, `*`, durations in milliseconds, and constants of the same source.
fn evaluate(expression: &str, source: &str, depth: u32) -> Option<u64> {
    let text = expression.trim();
    let depth = depth.checked_sub(1)?;
    if let Some(inner) = argument(text, "Some(") {
        return evaluate(inner, source, depth);
    }
    if let Some(seconds) = argument(text, "Duration::from_secs(") {
        return evaluate(seconds, source, depth)?.checked_mul(1_000);
    }
    if let Some(milliseconds) = argument(text, "Duration::from_millis(") {
        return evaluate(milliseconds, source, depth);
    }
    // From the operator with the lowest precedence to the one with the highest.
    for operator in ["<<", "+", "-", "*"] {
        let Some((left, right)) = text.rsplit_once(operator) else { continue };
        let left = evaluate(left, source, depth)?;
        let right = evaluate(right, source, depth)?;
        return match operator {
            "<<" => left.checked_shl(u32::try_from(right).ok()?),
            "+" => left.checked_add(right),
            "-" => left.checked_sub(right),
            _ => left.checked_mul(right),
        };
    }
    if is_constant(text) {
        return value_of(source, text, depth);
    }
    text.replace('_', "").parse().ok()
}

/// Returns the argument of `call`, if the whole text is one such call.
fn argument<'t>(text: &'t str, call: &str) -> Option<&'t str> {
    text.strip_prefix(call)?.strip_suffix(')')
}

/// Returns the number at the beginning of a cell, in bytes or milliseconds if it has a unit.
fn told(cell: &str) -> Option<u64> {
    let mut words = cell.split_whitespace().map(|word| word.trim_end_matches([',', ';', ':']));
    let number: u64 = words.next()?.replace(',', "").parse().ok()?;
    let word = words.next().unwrap_or_default();
    let factor = UNITS.iter().find(|(unit, _)| *unit == word).map_or(1, |(_, factor)| *factor);
    number.checked_mul(factor)
}

#[test]
fn the_documents_that_are_read_first_are_short() {
    for (document, lines_max) in [(MAP, 300), ("CHANGELOG.md", 60)] {
        let lines = read(document).lines().count();
        assert!(
            lines <= lines_max,
            "{document} has {lines} lines, at most {lines_max}: move details into the head of the module that they are about"
        );
    }
    let map = read(MAP);
    let long: Vec<&str> = map.lines().filter(|line| line.chars().count() > 120).collect();
    assert!(long.is_empty(), "{MAP}: break these lines at 120 columns: {long:#?}");
}

#[test]
fn the_files_and_items_that_the_documents_name_exist() {
    for document in [MAP, LIMITS] {
        let (mut count, mut wrong) = (0, Vec::new());
        for text in quoted(&read(document)) {
            let Some(named) = Named::from_quoted(&text) else { continue };
            count += 1;
            wrong.extend(named.problem().map(|problem| format!("{text}: {problem}")));
        }
        assert!(count > 100, "{document} names {count} files: write their paths in back-quotes");
        assert!(
            wrong.is_empty(),
            "{document}: write where these are now, or what has taken their place: {wrong:#?}"
        );
    }
}

#[test]
fn each_limit_has_the_value_of_its_constant() {
    let (mut count, mut wrong) = (0, Vec::new());
    for line in read(LIMITS).lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [what, limit, constant, _] = cells[..] else { continue };
        for text in quoted(constant) {
            let Some(Named { path, item: Some(item) }) = Named::from_quoted(&text) else {
                continue;
            };
            let source = std::fs::read_to_string(workspace().join(path)).unwrap_or_default();
            let value = limit_of(&without_comments(&source), &item);
            count += 1;
            if value.is_none() || value != told(limit) {
                wrong.push(format!("{what}: {limit}, but {text} has {value:?}"));
            }
        }
    }
    assert!(count > 100, "{LIMITS} has {count} constants: write one as `path/file.rs::NAME`");
    assert!(
        wrong.is_empty(),
        "{LIMITS}: write the values of the constants in bytes, milliseconds or numbers as they are now; one that the test \
         cannot evaluate is named by its file alone: {wrong:#?}"
    );
}

#[test]
fn constants_and_defaults_are_evaluated() {
    let source = without_comments(
        "
        /// A: 7
        const A: usize = 64 << 20;
        pub const INCLUDED_KB_MAX: u16 = 1_024; // KiB
        const MINUTES: Duration = Duration::from_secs(10 * 60);
        const SUM: usize = 2 * A + 1;
        const LIST: [u8; 2] = [1, 2];
        const ITSELF: u8 = ITSELF;
        struct Settings { idle: Option<Duration>, count_max: usize }
        fn usual() -> Settings {
            Settings { idle: Some(Duration::from_millis(500)), count_max: 3 }
        }
        ",
    );
    let of = |name: &str| limit_of(&source, name);
    assert_eq!(of("A"), Some(64 << 20));
    assert_eq!(of("INCLUDED_KB_MAX"), Some(1 << 20), "it counts KiB");
    assert_eq!(of("MINUTES"), Some(600_000));
    assert_eq!(of("SUM"), Some((128 << 20) + 1));
    assert_eq!((of("idle"), of("count_max")), (Some(500), Some(3)), "defaults, not types");
    assert_eq!((of("LIST"), of("ITSELF"), of("max")), (None, None, None));
    assert!(declares(&source, "usual") && declares(&source, "Settings") && declares(&source, "A"));
    assert!(!declares(&source, "idle") && !declares(&source, "Setting"));

    assert_eq!(told("64 MiB of each bucket"), Some(64 << 20));
    assert_eq!(told("1,024, or fewer"), Some(1_024));
    assert_eq!((told("10 min"), told("500 ms")), (Some(600_000), Some(500)));
    assert_eq!((told("2 of a bucket"), told("a quarter")), (Some(2), None));
}
