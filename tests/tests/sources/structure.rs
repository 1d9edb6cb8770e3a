//! The structure of the crates: imports run downwards and never in a circle, a module with children is a `mod.rs` in a
//! folder of its name, and no folder has more files than a reader takes in.
//!
//! The sources are read as text: each file's `mod` declarations give the module tree, its `use` items and the paths in
//! its code give the imports. A re-export is an import too, so that a child which imports through its parent's
//! re-exports is part of a circle. Tests are left out.
#![allow(clippy::disallowed_methods, reason = "a test that reads source files")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

pub(super) const CRATES: [&str; 8] = [
    "proto",
    "coordinator",
    "projector",
    "projector/documents",
    "router",
    "indexer",
    "indexer/storage",
    "sextant",
];

/// The limit of source files in a folder: as many names as a reader can remember.
const FILES_MAX: usize = 25;

pub(super) type Module = Vec<String>;

/// A crate's files: the module of each, and its text without comments and tests.
pub(super) struct Sources {
    pub(super) files: BTreeMap<Module, (PathBuf, String)>,
}

impl Sources {
    pub(super) fn read(krate: &str) -> Self {
        let src = workspace().join(krate).join("src");
        let top = ["lib.rs", "main.rs"].map(|name| src.join(name)).into_iter().find(|p| p.exists());
        let mut sources = Self { files: BTreeMap::new() };
        sources.visit(Vec::new(), &top.expect("a crate has a top"), &src);
        sources
    }

    /// Reads a module and its child modules.
    fn visit(&mut self, module: Module, file: &Path, folder: &Path) {
        let text =
            without_tests(&without_comments(&std::fs::read_to_string(file).expect("a file")));
        for name in declared(&text) {
            let child = [module.clone(), vec![name.clone()]].concat();
            let flat = folder.join(format!("{name}.rs"));
            let below = folder.join(&name);
            match flat.exists() {
                true => self.visit(child, &flat, &below),
                false if below.join("mod.rs").exists() => {
                    self.visit(child, &below.join("mod.rs"), &below);
                }
                false => {}
            }
        }
        self.files.insert(module, (file.to_path_buf(), text));
    }

    /// Returns the modules from which a module imports.
    fn imports(&self, module: &Module) -> BTreeSet<Module> {
        let text = &self.files[module].1;
        let mut found = BTreeSet::new();
        let used = used(text).into_iter().map(|path| (path, true));
        for (path, is_use) in used.chain(paths(text).into_iter().map(|path| (path, false))) {
            let mut parts: Vec<&str> = path.split("::").collect();
            let mut at = match parts[0] {
                "crate" => Vec::new(),
                "self" => module.clone(),
                "super" => module[..module.len().saturating_sub(1)].to_vec(),
                child if self.files.contains_key(&[&module[..], &[child.into()]].concat()) => {
                    parts.insert(0, "self");
                    module.clone()
                }
                _ => continue,
            };
            parts.remove(0);
            while parts.first() == Some(&"super") {
                at.pop();
                parts.remove(0);
            }
            while let Some(next) = parts.first() {
                let below = [&at[..], &[(*next).to_owned()]].concat();
                if !self.files.contains_key(&below) {
                    break;
                }
                at = below;
                parts.remove(0);
            }
            // A path in the code that ends at a module only names it; a `use` of a module imports from it.
            let imports = is_use || !parts.is_empty();
            if at != *module && self.files.contains_key(&at) && imports {
                found.insert(at);
            }
        }
        found
    }

    /// Returns the circles of imports: sets of files, each of which leads to all others.
    fn circles(&self) -> Vec<Vec<String>> {
        self.circles_with(&BTreeMap::new())
    }

    /// Returns the circles of imports and of further dependencies between files.
    pub(super) fn circles_with(
        &self,
        more: &BTreeMap<Module, BTreeSet<Module>>,
    ) -> Vec<Vec<String>> {
        let edges_of = |module: &Module| {
            let more = more.get(module).into_iter().flatten().filter(|to| *to != module);
            self.imports(module).into_iter().chain(more.cloned()).collect()
        };
        let edges: BTreeMap<&Module, BTreeSet<Module>> =
            self.files.keys().map(|module| (module, edges_of(module))).collect();
        let reach = |from: &Module| {
            let (mut seen, mut next) = (BTreeSet::new(), vec![from.clone()]);
            while let Some(at) = next.pop() {
                for to in &edges[&at] {
                    if seen.insert(to.clone()) {
                        next.push(to.clone());
                    }
                }
            }
            seen
        };
        let reached: BTreeMap<&Module, BTreeSet<Module>> =
            edges.keys().map(|module| (*module, reach(module))).collect();
        let mut circles = BTreeSet::new();
        for (module, all) in &reached {
            if all.contains(*module) {
                let of_it = |other: &&Module| reached[*other].contains(*module);
                let names = all.iter().filter(of_it).map(|module| module.join("::"));
                circles.insert(names.collect::<Vec<_>>());
            }
        }
        circles.into_iter().collect()
    }
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_path_buf()
}

/// Counts the source files of a folder and of the folders below it. A folder's own files count, tests among them.
fn count_files(folder: &Path, counts: &mut BTreeMap<PathBuf, usize>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            count_files(&path, counts);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            *counts.entry(folder.to_path_buf()).or_default() += 1;
        }
    }
}

fn without_comments(text: &str) -> String {
    let code = |line: &str| match line.find("//") {
        Some(at) if line[..at].matches('"').count().is_multiple_of(2) => line[..at].to_owned(),
        _ => line.to_owned(),
    };
    text.lines().map(|line| code(line) + "\n").collect()
}

/// Returns the text without the items that only tests compile.
fn without_tests(text: &str) -> String {
    let mut kept = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if !line.trim_start().starts_with("#[cfg(test)]") {
            kept += line;
            kept.push('\n');
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        // Skips the item: up to its `;`, or up to the brace that closes it.
        for line in lines.by_ref() {
            let closes = line.len() - line.trim_start().len() == indent && line.trim() == "}";
            if closes || (line.trim_end().ends_with(';') && !line.starts_with("    ")) {
                break;
            }
        }
    }
    kept
}

/// Returns the modules that a file declares without a body.
fn declared(text: &str) -> Vec<String> {
    let name = |line: &str| {
        let line = line.trim().strip_suffix(';')?;
        let (before, name) = line.rsplit_once(' ')?;
        (before == "mod" || before.ends_with(" mod")).then(|| name.to_owned())
    };
    text.lines().filter_map(name).collect()
}

/// Returns the paths of all `use` items, one for each name.
fn used(text: &str) -> Vec<String> {
    // The words before `use` on its line are a visibility or nothing: text in a string is no item.
    let begins = |before: &str| {
        let line = before.rsplit('\n').next().unwrap_or("").trim();
        line.is_empty() || line == "pub" || (line.starts_with("pub(") && line.ends_with(')'))
    };
    let mut found = Vec::new();
    for item in text.split(';') {
        let Some(at) = item.rfind("use ").filter(|at| begins(&item[..*at])) else {
            continue;
        };
        let tree: String = item[at + 4..].split_whitespace().collect::<Vec<_>>().join(" ");
        expand("", &tree, &mut found);
    }
    found
}

fn expand(before: &str, tree: &str, found: &mut Vec<String>) {
    let Some(open) = tree.find('{') else {
        let name = tree.split(" as ").next().unwrap_or(tree).trim();
        return found.push(format!("{before}{name}"));
    };
    let before = format!("{before}{}", tree[..open].trim());
    let inner = &tree[open + 1..tree.rfind('}').unwrap_or(tree.len())];
    let (mut depth, mut from) = (0, 0);
    for (at, c) in inner.char_indices().chain([(inner.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !inner[from..at].trim().is_empty() {
                    expand(&before, inner[from..at].trim(), found);
                }
                from = at + 1;
            }
            _ => {}
        }
    }
}

/// Returns the paths with several parts in a file's code.
fn paths(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let words = text.split(|c: char| !is_part(c)).filter(|word| word.contains("::"));
    words.map(|word| word.trim_matches(':').to_owned()).collect()
}

#[test]
fn no_files_of_a_crate_import_each_other_in_a_circle() {
    for krate in CRATES {
        let sources = Sources::read(krate);
        assert!(sources.files.len() > 5, "{krate}: its files are found");
        assert_eq!(sources.circles(), Vec::<Vec<String>>::new(), "circles in {krate}");
    }
}

#[test]
fn a_circle_is_found_through_a_re_export_and_through_a_path() {
    let file = |text: &str| (PathBuf::new(), text.to_owned());
    let module = |name: &str| vec![name.to_owned()];
    let files = BTreeMap::from([
        (Vec::new(), file("mod a;\nmod b;\n")),
        (module("a"), file("use crate::b::{self, X as Y};\n")),
        (module("b"), file("fn f() { crate::a::g(); }\n")),
    ]);
    assert_eq!(Sources { files }.circles(), [["a", "b"].map(str::to_owned).to_vec()]);
}

#[test]
fn a_module_with_children_is_a_folder_with_a_mod_file() {
    for krate in CRATES {
        for (module, (file, _)) in &Sources::read(krate).files {
            let beside = file.with_extension("").is_dir();
            assert!(!beside, "{krate}: {} stands beside its folder", module.join("::"));
        }
    }
}

#[test]
fn no_folder_has_more_files_than_a_reader_takes_in() {
    let mut counts = BTreeMap::new();
    // A crate within the folder of another one is counted with it.
    for krate in CRATES.into_iter().filter(|krate| !krate.contains('/')).chain(["tests"]) {
        count_files(&workspace().join(krate), &mut counts);
    }
    assert!(counts.len() > 50, "the folders are found");
    let full: Vec<String> = counts
        .iter()
        .filter(|(_, count)| **count > FILES_MAX)
        .map(|(folder, count)| format!("{}: {count} files", folder.display()))
        .collect();
    assert!(
        full.is_empty(),
        "a folder has at most {FILES_MAX} source files. Find the concepts in these, and make a folder for each, whose \
         mod.rs says what it is for; tests go with their files: {full:#?}"
    );
}
