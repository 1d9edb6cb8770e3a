//! Compares the answers of the catalogue's engine with PostgreSQL's, over PostgreSQL's own rows.
//!
//! The relations are copied from a PostgreSQL 16 that `psql` reaches by the variables `PGHOST`,
//! `PGPORT`, `PGUSER` and `PGDATABASE`. Each recorded statement of class `catalogue` runs there and
//! here. So the analyser, the executor and the functions are compared, and not Sextant's own rows.
//!
//! `cargo run -p sextant-pg-catalog --example compare -- FOLDER [NAME…]`: the folder of the recorded
//! statements, and the names of files; all files without a name. With a file of answers instead of
//! the folder, its statements are compared; with `UPDATE=1` PostgreSQL's answers are written to it.
#![allow(clippy::disallowed_methods, reason = "a program of the campaign that reads files")]

mod load;
mod psql;
mod recorded;
mod server;

use std::sync::Arc;
use std::time::Instant;

use pg_catalog::analyse::{Names, analyse, parse};
use pg_catalog::execute::run;
use pg_catalog::limits::Limits;
use pg_catalog::types::names;
use pg_catalog::types::text::print;

use self::load::Loaded;
use self::recorded::{Recorded, recorded};

/// The comparison of two answers.
enum Outcome {
    Same,
    OtherOrder,
    /// Both gave an error; its code differs perhaps.
    BothFailed(String),
    Differs(String),
    Failed(String),
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().expect("the folder of the recorded statements");
    let files: Vec<String> = arguments.collect();
    let loaded = Loaded::load();
    let statements = recorded(folder.as_ref(), &files, &loaded);
    let expected = server::answers(&statements);
    if std::env::var("UPDATE").is_ok() && std::path::Path::new(&folder).is_file() {
        std::fs::write(&folder, answers_file(&statements, &expected)).expect("the file");
    }
    let mut counts = [0; 5];
    let mut slowest = Vec::new();
    for (statement, expected) in statements.iter().zip(expected) {
        let started = Instant::now();
        let answer =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| answer(&loaded, statement)));
        let answer = answer.unwrap_or_else(|_| Err("PANIC".to_owned()));
        slowest.push((started.elapsed(), statement.place.clone()));
        let outcome = compare(answer, expected);
        let (kind, what) = match outcome {
            Outcome::Same => (0, None),
            Outcome::OtherOrder => (1, None),
            Outcome::BothFailed(what) => (2, Some(what)),
            Outcome::Differs(what) => (3, Some(what)),
            Outcome::Failed(what) => (4, Some(what)),
        };
        counts[kind] += 1;
        let name = ["same", "order", "both failed", "DIFFERS", "FAILED"][kind];
        if let Some(what) = what {
            println!("{name} {}: {what}", statement.place);
        } else if kind == 1 {
            println!("{name} {}", statement.place);
        }
    }
    slowest.sort_by(|a, b| b.cmp(a));
    for (time, place) in slowest.iter().take(8) {
        println!("slow {place}: {} ms", time.as_millis());
    }
    println!(
        "{} statements: {} same, {} in another order, {} failed on both, {} differ, {} failed",
        statements.len(),
        counts[0],
        counts[1],
        counts[2],
        counts[3],
        counts[4]
    );
}

/// Returns the text of a file of answers: each statement after `> `, then its rows, or `! ` and the code of its error.
fn answers_file(statements: &[Recorded], expected: &[Result<Vec<String>, String>]) -> String {
    let mut out = String::new();
    for (statement, expected) in statements.iter().zip(expected) {
        out += &format!("> {}\n", statement.text);
        match expected {
            Ok(rows) => rows.iter().for_each(|row| out += &format!("{row}\n")),
            Err(error) => out += &format!("! {}\n", error.split(' ').nth(1).unwrap_or_default()),
        }
    }
    out
}

/// Runs a statement here, and returns its rows as the text of COPY.
fn answer(loaded: &Loaded, statement: &Recorded) -> Result<Vec<String>, String> {
    let path = ["public".to_owned()];
    let analyser_names = Names { database: "app", search_path: &path, is_relation: &|_, _| false };
    let parsed = parse(&statement.text).map_err(|error| format!("parse: {error}"))?;
    let plan =
        analyse(&parsed, &[], analyser_names).map_err(|error| format!("analyse: {error}"))?;
    let mut limits = Limits::new(200_000_000, 1 << 30, Arc::default());
    let rows =
        run(&plan, &[], loaded, loaded, &mut limits).map_err(|error| format!("run: {error}"))?;
    let names = names::Names { relations: loaded, session: loaded };
    let mut lines = Vec::new();
    for row in rows {
        let mut fields = Vec::new();
        for (value, column) in row.iter().zip(&plan.query.columns) {
            fields.push(match value.is_absent() {
                true => "\\N".to_owned(),
                false => load::escape(
                    &print(value, &column.ty, &names).map_err(|error| format!("print: {error}"))?,
                ),
            });
        }
        lines.push(fields.join("\t"));
    }
    Ok(lines)
}

fn compare(answer: Result<Vec<String>, String>, expected: Result<Vec<String>, String>) -> Outcome {
    let (answer, expected) = match (answer, expected) {
        (Ok(answer), Ok(expected)) => (answer, expected),
        (Err(own), Err(other)) => return Outcome::BothFailed(format!("{own} | {other}")),
        (Err(own), Ok(rows)) => return Outcome::Failed(format!("{own} ({} rows)", rows.len())),
        (Ok(rows), Err(other)) => {
            return Outcome::Differs(format!("{} rows where PostgreSQL says {other}", rows.len()));
        }
    };
    if answer == expected {
        return Outcome::Same;
    }
    let (mut own, mut other) = (answer, expected);
    own.sort();
    other.sort();
    if own == other {
        return Outcome::OtherOrder;
    }
    let more: Vec<&String> = own.iter().filter(|row| !other.contains(row)).take(2).collect();
    let fewer: Vec<&String> = other.iter().filter(|row| !own.contains(row)).take(2).collect();
    let short = |rows: &[&String]| {
        let rows = rows.iter().map(|row| row.chars().take(300).collect::<String>());
        rows.collect::<Vec<_>>().join("\n      ")
    };
    Outcome::Differs(format!(
        "{} rows for {}\n    + {}\n    - {}",
        own.len(),
        other.len(),
        short(&more),
        short(&fewer)
    ))
}
