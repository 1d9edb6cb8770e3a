//! `./test` runs the test programs in lanes, by patterns of their names: each program is in exactly one of them, and the tests
//! within the crates run once.
#![allow(clippy::disallowed_methods, reason = "a test that reads source files")]

use std::path::Path;

/// Returns the test programs of a package: files below `tests`, and folders with a `main.rs`.
fn programs(package: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(package.join("tests")) else { return Vec::new() };
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let is_program = |path: &std::path::PathBuf| {
        path.join("main.rs").exists() || path.extension().is_some_and(|ending| ending == "rs")
    };
    let name = |path: std::path::PathBuf| path.file_stem()?.to_str().map(str::to_owned);
    paths.filter(is_program).filter_map(name).collect()
}

/// Returns true if a pattern of characters, `[…]`, `[!…]` and a `*` at the end matches a name.
fn matches(pattern: &str, name: &str) -> bool {
    let Some(first) = pattern.chars().next() else { return name.is_empty() };
    match (first, name.chars().next()) {
        ('*', _) => true,
        (_, None) => false,
        ('[', Some(letter)) => {
            let (set, rest) = pattern[1..].split_once(']').expect("an end of the set");
            let (is_other, set) = set.strip_prefix('!').map_or((false, set), |set| (true, set));
            let is_in = match set.split_once('-') {
                Some((from, to)) => from <= &*letter.to_string() && &*letter.to_string() <= to,
                None => set.contains(letter),
            };
            is_in != is_other && matches(rest, &name[letter.len_utf8()..])
        }
        (plain, Some(letter)) => {
            plain == letter && matches(&pattern[plain.len_utf8()..], &name[letter.len_utf8()..])
        }
    }
}

#[test]
fn each_test_program_is_in_one_lane() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let script = std::fs::read_to_string(workspace.join("test")).expect("the script");
    let lanes = script.lines().filter(|line| line.contains("cargo test"));
    let patterns: Vec<&str> = lanes
        .flat_map(|line| line.split("--test ").skip(1))
        .map(|rest| rest.split('\'').nth(1).expect("a pattern in quotes"))
        .collect();
    let is_within = |line: &&str| line.contains("--lib") && !line.contains("--no-run");
    let within = script.lines().filter(|line| line.contains("cargo test")).filter(is_within);
    assert_eq!(within.count(), 1, "the tests within the crates run once");
    let manifest = std::fs::read_to_string(workspace.join("Cargo.toml")).expect("the workspace");
    let members = manifest.lines().find_map(|line| line.strip_prefix("members = "));
    let members = members.expect("the members").split('"').skip(1).step_by(2);
    let all: Vec<_> = members.flat_map(|member| programs(&workspace.join(member))).collect();
    assert!(all.len() > 10 && all.iter().any(|name| name == "sources"), "{all:?}");
    // Programs have none within them: their manifests say `test = false`.
    for program in [workspace.join("sextant/src/main.rs"), workspace.join("tests/src/bin")] {
        let files = match program.is_dir() {
            true => std::fs::read_dir(program)
                .expect("a folder")
                .map(|entry| entry.expect("an entry").path())
                .collect(),
            false => vec![program],
        };
        for file in files {
            let text = std::fs::read_to_string(&file).expect("a source file");
            assert!(!text.contains("#[test]") && !text.contains("::test]"), "{}", file.display());
        }
    }
    for name in all {
        let lanes = patterns.iter().filter(|pattern| matches(pattern, &name)).count();
        assert_eq!(lanes, 1, "{name} is in {lanes} lanes of ./test: {patterns:?}");
    }
}
