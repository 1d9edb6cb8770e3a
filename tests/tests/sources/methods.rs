//! The methods of one type in several files: calls between the files run one way too.
//!
//! A file that calls a method of its type, by `self.` or `Self::`, imports nothing for it, and still depends on the file
//! that has the method. For a type with methods in more than three files these calls count like imports.

use std::collections::{BTreeMap, BTreeSet};

use super::structure::{CRATES, Module, Sources};

/// The number of files up to which the methods of a type are not checked, as if they were in one
/// file.
const FILES_MAX: usize = 3;

/// The methods of a type in one file.
#[derive(Default)]
struct Methods {
    declared: BTreeSet<String>,
    called: BTreeSet<String>,
}

/// The files of each type of a crate, by the type's name.
type Types = BTreeMap<String, BTreeMap<Module, Methods>>;

fn types_of(sources: &Sources) -> Types {
    let mut types = Types::new();
    for (module, (_, text)) in &sources.files {
        for (name, body) in impl_blocks(text) {
            let methods = types.entry(name).or_default().entry(module.clone()).or_default();
            methods.declared.extend(names_after(&body, "fn "));
            for receiver in ["self.", "Self::"] {
                methods.called.extend(names_after(&body, receiver));
            }
        }
    }
    types
}

/// Returns the type and the body of each `impl` block. The body has no line breaks before a `.`, so
/// that each call follows its receiver.
fn impl_blocks(text: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if !line.starts_with("impl") || line.ends_with("{}") {
            continue;
        }
        let (mut head, mut body) = (line.to_owned(), String::new());
        while !head.ends_with('{') {
            let Some(next) = lines.next() else { return blocks };
            head = format!("{head} {}", next.trim());
        }
        for line in lines.by_ref().take_while(|line| *line != "}") {
            let line = line.trim();
            if !line.starts_with('.') {
                body.push(' ');
            }
            body += line;
        }
        blocks.extend(type_of(&head).map(|name| (name, body)));
    }
    blocks
}

/// Returns the name of the type in the head of an `impl` block.
fn type_of(head: &str) -> Option<String> {
    let head = head.split(" where ").next()?;
    let after = match head.split_once(" for ") {
        Some((_, after)) => after,
        None if head.starts_with("impl<") => head.split_once("> ")?.1,
        None => head.strip_prefix("impl ")?,
    };
    let path = after.split(['<', '{', ' ']).find(|part| !part.is_empty())?;
    let name = path.rsplit("::").next()?.trim_start_matches('&');
    name.starts_with(|c: char| c.is_uppercase()).then(|| name.to_owned())
}

/// Returns the names that follow the text `before` and are followed by the arguments of a call.
fn names_after(body: &str, before: &str) -> Vec<String> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut names = Vec::new();
    for (at, _) in body.match_indices(before) {
        if body[..at].ends_with(is_part) {
            continue;
        }
        let rest = &body[at + before.len()..];
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        if rest[end..].starts_with(['(', '<']) || rest[end..].starts_with("::<") {
            names.push(rest[..end].to_owned());
        }
    }
    names
}

/// Returns the files that each file calls, for the types with methods in many files.
fn calls(types: &Types) -> BTreeMap<Module, BTreeSet<Module>> {
    let mut calls: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for files in types.values().filter(|files| files.len() > FILES_MAX) {
        for (file, methods) in files {
            for name in methods.called.difference(&methods.declared) {
                let homes = files.iter().filter(|(_, other)| other.declared.contains(name));
                calls.entry(file.clone()).or_default().extend(homes.map(|(home, _)| home.clone()));
            }
        }
    }
    calls
}

#[test]
fn no_files_of_a_crate_depend_on_each_other_in_a_circle_by_calls_of_methods() {
    let circles = CRATES.map(|krate| {
        let sources = Sources::read(krate);
        (krate, sources.circles_with(&calls(&types_of(&sources))))
    });
    let circles: Vec<_> = circles.into_iter().filter(|(_, found)| !found.is_empty()).collect();
    assert!(
        circles.is_empty(),
        "move the method that both sides need into a file below them, or join the files: {circles:#?}"
    );
}

#[test]
fn a_circle_through_methods_of_one_type_is_found() {
    let file = |text: &str| (std::path::PathBuf::new(), text.to_owned());
    let module = |name: &str| vec![name.to_owned()];
    let body = |own: &str, other: &str| {
        format!(
            "impl<'a> Seen for super::Type<'a> {{\n    fn {own}(&self) {{\n        self\n            .{other}()\n    }}\n}}\n"
        )
    };
    let files = BTreeMap::from([
        (Vec::new(), file("mod a;\nmod b;\nmod c;\nmod d;\n")),
        (module("a"), file(&body("a", "b"))),
        (module("b"), file(&body("b", "c"))),
        (module("c"), file(&body("c", "a"))),
        (module("d"), file(&body("d", "a"))),
    ]);
    let sources = Sources { files };
    let calls = calls(&types_of(&sources));
    assert_eq!(sources.circles_with(&calls), [["a", "b", "c"].map(str::to_owned).to_vec()]);
    assert_eq!(sources.circles_with(&BTreeMap::new()), Vec::<Vec<String>>::new());
}
