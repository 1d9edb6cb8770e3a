//! Tests that the documents match the product. Each SQL block of `docs/sql.md` runs in psql, in
//! order, on one cluster; the text block after it is psql's output. The tables of
//! `docs/configuration.md` are generated from the command line. `UPDATE=1` rewrites the text blocks
//! and tables.
#![allow(clippy::disallowed_methods, reason = "a test that runs psql and reads a document")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::CommandFactory;
use sextant::cli::Cli;
use tests::harness::TestCluster;

/// A part of a document: an example, or the lines between two examples.
enum Part {
    Prose(String),
    Sql(String),
    Text(String),
}

fn parts(document: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let (mut block, mut kind) = (String::new(), None);
    for line in document.lines() {
        match (line, kind) {
            ("```sql" | "```text", None) => {
                parts.push(Part::Prose(std::mem::take(&mut block)));
                kind = Some(line);
            }
            ("```", Some("```sql")) => {
                parts.push(Part::Sql(std::mem::take(&mut block)));
                kind = None;
            }
            ("```", Some("```text")) => {
                parts.push(Part::Text(std::mem::take(&mut block)));
                kind = None;
            }
            _ => block = block + line + "\n",
        }
    }
    parts.push(Part::Prose(block));
    parts
}

/// Returns psql's output of a script; an error fails the test.
fn psql(address: std::net::SocketAddr, script: &str) -> String {
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    let arguments =
        ["-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", &host, "-p", &port, "-U", "reader", "sextant"];
    let mut child = Command::new("psql")
        .args(arguments)
        .env("LC_ALL", "C.UTF-8")
        .env("PGCLIENTENCODING", "UTF8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("psql starts");
    child.stdin.take().expect("piped").write_all(script.as_bytes()).expect("psql reads");
    let ran = child.wait_with_output().expect("psql ends");
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && errors.trim().is_empty(), "{script}\n{errors}");
    let printed = String::from_utf8(ran.stdout).expect("text");
    let lines = printed.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    lines.trim_matches('\n').to_owned() + "\n"
}

fn document(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    root.join("docs").join(name)
}

#[test]
fn the_examples_of_the_sql_document_print_its_output() {
    let path = document("sql.md");
    let document = std::fs::read_to_string(&path).expect("the document");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let cluster = runtime.block_on(TestCluster::start(1, 2));
    let update = std::env::var_os("UPDATE").is_some();
    let (mut printed, mut updated, mut examples) = (String::new(), String::new(), 0);
    for part in parts(&document) {
        match part {
            Part::Prose(text) => updated += &text,
            Part::Sql(sql) => {
                printed = psql(cluster.sql_address(), &sql);
                examples += 1;
                updated += &format!("```sql\n{sql}```\n");
            }
            Part::Text(text) => {
                updated += &format!("```text\n{printed}```\n");
                assert!(update || text == printed, "the document shows\n{text}psql\n{printed}");
            }
        }
    }
    assert!(examples > 15, "{examples} examples were found");
    if update {
        std::fs::write(&path, updated).expect("the document is written");
    }
}

/// Returns a table of the options of a subcommand.
fn settings(subcommand: &str) -> String {
    let cli = Cli::command();
    let command = cli.find_subcommand(subcommand).expect("the subcommand exists");
    let has_variables = command.get_arguments().any(|argument| argument.get_env().is_some());
    let (head, line) = if has_variables { ("| variable ", "|---") } else { ("", "") };
    let mut table = format!("| flag {head}| value | meaning |\n|---{line}|---|---|\n");
    for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
        let Some(flag) = argument.get_long().filter(|flag| *flag != "help") else { continue };
        let takes_value = argument.get_action().takes_values();
        let value =
            argument.get_value_names().filter(|_| takes_value).map_or(String::new(), |names| {
                format!(
                    "`{}`",
                    names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" ")
                )
            });
        let mut meaning = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let defaults = argument.get_default_values();
        if let Some(default) = defaults.first().filter(|_| takes_value) {
            meaning += &format!(" (default: `{}`)", default.to_string_lossy());
        }
        let variable = argument.get_env().map(|name| format!("`{}` ", name.to_string_lossy()));
        let variable = match has_variables {
            true => format!("| {}", variable.unwrap_or_default()),
            false => String::new(),
        };
        table += &format!("| `--{flag}` {variable}| {value} | {meaning} |\n");
    }
    table
}

#[test]
fn the_settings_in_the_configuration_document_are_those_of_the_command_line() {
    let path = document("configuration.md");
    let kept = std::fs::read_to_string(&path).expect("the document");
    let (mut fresh, mut inside) = (String::new(), false);
    for line in kept.lines() {
        if line == "<!-- end -->" {
            inside = false;
        }
        if !inside {
            fresh += line;
            fresh.push('\n');
        }
        let begins = line.strip_prefix("<!-- settings of `").and_then(|l| l.strip_suffix("` -->"));
        if let Some(subcommand) = begins {
            fresh += &settings(subcommand);
            inside = true;
        }
    }
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, fresh).expect("the document is written");
    } else {
        assert!(
            fresh == kept,
            "run `UPDATE=1 cargo test -p tests --test clusters docs::`; it would be\n{fresh}"
        );
    }
}
