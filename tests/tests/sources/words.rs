//! Counts patterns in comments that make a reader stop; the count must be zero. CONTRIBUTING.md has
//! the list of words.
//!
//! The sources are read as text. A comment is a block of neighbouring lines with one marker, `//`,
//! `///` or `//!`; quoted code in it is left out.
#![allow(clippy::disallowed_methods, reason = "a test that reads source files")]

use std::path::{Path, PathBuf};

/// The folders with sources of the workspace.
const FOLDERS: [&str; 8] =
    ["proto", "coordinator", "projector", "router", "indexer", "sextant", "tests", "fuzz"];

/// Words that stand for an unnamed person or process, in lower case.
const PERSONS: [&str; 6] = ["whoever", "nobody", "somebody", "anybody", "someone", "everybody"];

/// Verbs before "behind" with which it means a lag or an order in time, in lower case.
const BEFORE_BEHIND: [&str; 14] = [
    "is", "are", "be", "was", "were", "far", "falls", "fell", "fallen", "further", "too", "left",
    "lies", "comes",
];

/// Words that say nothing more than the name of an item does.
const ARTICLES: [&str; 10] = ["the", "a", "an", "of", "its", "all", "for", "in", "is", "this"];

/// The longest comment, in words, that is compared with the name of its item.
const REPEATED_WORDS_MAX: usize = 3;

/// Words with which no doc comment of an item begins: a noun describes the item, or a verb says
/// what a function does.
const PRONOUNS: [&str; 8] = ["It", "Its", "They", "Their", "That", "Those", "What", "Whether"];

/// Phrases for which doc comments use a plain word, each with this word, in lower case.
const PHRASES: [(&str, &str, &str); 5] = [
    ("go", "on", "continue"),
    ("goes", "on", "continues"),
    ("as", "above", "the name of the other item"),
    ("as", "below", "the name of the other item"),
    ("the", "ones", "the noun"),
];

/// A comment, the line at which it begins, and the code after it.
struct Comment {
    line: usize,
    is_doc: bool,
    text: String,
    code: String,
}

/// Returns the marker of a line of a comment, and its text.
fn comment_of(line: &str) -> Option<(&'static str, &str)> {
    let line = line.trim_start();
    let marker = ["///", "//!", "//"].into_iter().find(|marker| line.starts_with(marker))?;
    Some((marker, line[marker.len()..].trim()))
}

/// Returns the comments of a source.
fn comments(source: &str) -> Vec<Comment> {
    let lines: Vec<&str> = source.lines().collect();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < lines.len() {
        let Some((marker, _)) = comment_of(lines[at]) else {
            at += 1;
            continue;
        };
        let rest = lines[at..].iter().map_while(|line| comment_of(line));
        let block: Vec<&str> =
            rest.take_while(|(other, _)| *other == marker).map(|(_, text)| text).collect();
        let end = at + block.len();
        let is_code =
            |line: &&&str| !line.trim().is_empty() && !line.trim_start().starts_with("#[");
        let code = lines[end..].iter().find(is_code).map_or("", |line| line.trim());
        let (is_doc, text) = (marker == "///", block.join(" "));
        found.push(Comment { line: at + 1, is_doc, text, code: code.to_owned() });
        at = end;
    }
    found
}

/// Returns the text without quoted code.
fn without_code(text: &str) -> String {
    text.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

/// Returns the words of a text in lower case, without punctuation.
fn words(text: &str) -> Vec<String> {
    let is_letter = |c: char| c.is_alphanumeric() || c == '\'';
    let words = text.split(|c| !is_letter(c)).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// Returns a word without the ending of a plural or of a verb.
fn stem(word: &str) -> &str {
    let ending = ["ing", "ed", "es", "s", "e"].into_iter().find_map(|end| word.strip_suffix(end));
    ending.filter(|stem| stem.len() >= 3).unwrap_or(word)
}

/// Returns the words in the name of the item that some code declares, in lower case.
fn name_words(code: &str) -> Vec<String> {
    const KEYWORDS: [&str; 11] = [
        "pub", "async", "const", "unsafe", "fn", "struct", "enum", "trait", "type", "mod", "static",
    ];
    let code = match code.strip_prefix("pub(").and_then(|code| code.split_once(')')) {
        Some((_, code)) => code,
        None => code,
    };
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut names = code.split(|c| !is_part(c)).filter(|word| !word.is_empty());
    let Some(name) = names.find(|word| !KEYWORDS.contains(word)) else { return Vec::new() };
    let mut spaced = String::new();
    for c in name.chars() {
        match c {
            '_' => spaced.push(' '),
            c if c.is_uppercase() => spaced.extend([' ', c]),
            c => spaced.push(c),
        }
    }
    words(&spaced)
}

/// Returns the advice for a comment with one of the patterns; `None` for any other comment.
fn advice(comment: &Comment) -> Option<String> {
    let plain = without_code(&comment.text);
    let all = words(&plain);
    if let Some(person) = all.iter().find(|word| PERSONS.contains(&word.as_str())) {
        return Some(format!("write a noun in place of \"{person}\": a caller, a reader, a user"));
    }
    let mut pairs = all.windows(2);
    let is_late = |pair: &[String]| pair[1] == "behind" && BEFORE_BEHIND.contains(&&*pair[0]);
    if pairs.any(is_late) {
        return Some("write \"after\", or \"lags\", in place of \"behind\"".to_owned());
    }
    if comment.is_doc && (plain.starts_with("The same") || plain.starts_with("Same as")) {
        return Some("say what the item does, not \"The same\"".to_owned());
    }
    if comment.is_doc && PRONOUNS.iter().any(|word| plain.split(' ').next() == Some(word)) {
        return Some("begin with a noun or a verb, not with a pronoun".to_owned());
    }
    let phrase = PHRASES.iter().find(|(first, second, _)| {
        comment.is_doc && all.windows(2).any(|pair| pair[0] == *first && pair[1] == *second)
    });
    if let Some((first, second, plain)) = phrase {
        return Some(format!("write {plain}, not \"{first} {second}\""));
    }
    let is_short = all.len() <= REPEATED_WORDS_MAX && !comment.text.contains('`');
    let own = all.iter().filter(|word| !ARTICLES.contains(&word.as_str()));
    let name = name_words(&comment.code);
    let is_in_name = |word: &String| name.iter().any(|part| stem(part) == stem(word));
    let (mut count, mut is_repeated) = (0, true);
    for word in own {
        count += 1;
        is_repeated &= is_in_name(word);
    }
    let repeats = comment.is_doc && is_short && count > 0 && is_repeated;
    repeats
        .then(|| "say more than the name: the unit, the order, the reason; or delete it".to_owned())
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_path_buf()
}

/// Finds the sources below a folder, without generated ones.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of the workspace") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && !["generated", "target"].contains(&name) {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn comments_name_their_subjects_and_say_more_than_a_name() {
    let mut files = Vec::new();
    FOLDERS.iter().for_each(|folder| sources(&workspace().join(folder), &mut files));
    files.sort();
    let mut wrong = Vec::new();
    for file in &files {
        let source = std::fs::read_to_string(file).expect("a source");
        for comment in comments(&source) {
            if let Some(advice) = advice(&comment) {
                let short = file.strip_prefix(workspace()).unwrap_or(file).display();
                wrong.push(format!("{short}:{}: {advice}: {}", comment.line, comment.text));
            }
        }
    }
    assert!(files.len() > 1_000, "the test has found {} sources", files.len());
    assert!(wrong.is_empty(), "mend these comments (CONTRIBUTING.md, Words): {wrong:#?}");
}

#[test]
fn each_pattern_is_found_and_others_are_not() {
    let check = |text: &str, code: &str| {
        let source = format!("{text}\n{code}\n");
        comments(&source).iter().filter_map(advice).count()
    };
    for (text, code) in [
        ("/// Wakes whoever waits.", "fn wake() {}"),
        ("// Nobody reads it.", "read();"),
        ("/// A copy that is behind.", "struct Copy;"),
        ("/// The same for an index.", "fn of_index() {}"),
        ("/// It used the most memory.", "Memory,"),
        ("/// Writes while reads go on.", "fn write() {}"),
        ("/// Returns the ones that serve.", "fn serving() {}"),
        ("/// The moves.", "pub(crate) moves: Vec<Move>,"),
        ("/// A bucket.", "#[derive(Debug)]\npub struct Bucket;"),
    ] {
        assert_eq!(check(text, code), 1, "{text}");
    }
    for (text, code) in [
        ("/// The moves in progress, by index.", "moves: Vec<Move>,"),
        ("/// Reads `nobody` and `behind`.", "fn read() {}"),
        ("/// The services behind the ports.", "struct Parts;"),
        ("/// Items that continue.", "struct Items;"),
        ("/// `moves`", "moves: Vec<Move>,"),
    ] {
        assert_eq!(check(text, code), 0, "{text}");
    }
}
