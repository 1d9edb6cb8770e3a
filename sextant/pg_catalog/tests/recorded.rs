//! The recorded catalogue statements of clients are described as PostgreSQL describes them: names and types of the
//! result's columns, and the types of the parameters.

use std::path::Path;

use pg_catalog::analyse::{Names, analyse, parse};
use pg_catalog::types::name::format_type;

/// A recorded statement.
struct Recorded {
    /// The file and the number in it.
    place: String,
    text: String,
    /// Name and type of each column; `None` if it returned none.
    columns: Option<String>,
    /// The types that PostgreSQL inferred for the parameters.
    parameters: Vec<String>,
    /// The types that the client declared, where it did.
    declared: Vec<String>,
}

/// Reads the statements of class `catalogue`.
fn recorded() -> Vec<Recorded> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recorded");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut all = Vec::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|ext| ext == "sql")) {
        let text = std::fs::read_to_string(file).unwrap();
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        all.extend(text.split("\n-- [").skip(1).filter_map(|block| statement(&name, block)));
    }
    all
}

fn statement(file: &str, block: &str) -> Option<Recorded> {
    let (number, rest) = block.split_once("] ")?;
    if !rest.starts_with("catalogue ") {
        return None;
    }
    let mut lines = rest.lines().skip(1).peekable();
    let (mut columns, mut parameters, mut declared) = (None, Vec::new(), Vec::new());
    while let Some(line) = lines.next_if(|line| line.starts_with("-- ")) {
        if let Some(list) = line.strip_prefix("-- result: ") {
            columns = Some(list.to_owned()).filter(|list| !list.starts_with("none"));
        } else if let Some(list) = line.strip_prefix("-- parameters: ") {
            for parameter in list.split('$').skip(1) {
                let (_, parameter) = parameter.split_once(' ')?;
                let (ty, parse) =
                    parameter.split_once(" (Parse says ").unwrap_or((parameter, "unspecified)"));
                let parse = parse.split(')').next()?;
                let inferred = ty.split(" = ").next()?.trim().trim_end_matches(',');
                parameters.push(
                    if parse == "unspecified" { inferred } else { parse }
                        .replace("character", "bpchar")
                        .replace("bpchar varying", "character varying"),
                );
                declared.push(parse.to_owned());
            }
        }
    }
    let text: Vec<&str> = lines.collect();
    // A text of several statements is divided before.
    const ONE: [&str; 3] = ["SELECT", "WITH", "VALUES"];
    let word = text.join(" ").trim_start_matches('(').split_whitespace().next()?.to_uppercase();
    if !ONE.contains(&word.as_str()) {
        return None;
    }
    let text = replace_placeholders(&text.join("\n"));
    Some(Recorded { place: format!("{file} {number}"), text, columns, parameters, declared })
}

/// Replaces what varied when the statements were recorded.
fn replace_placeholders(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        out.push_str(before);
        match after.split_once('>') {
            Some((name, tail))
                if !name.is_empty()
                    && name.chars().all(|c| {
                        c.is_ascii_lowercase() || c.is_ascii_digit() || ":_ -.".contains(c)
                    }) =>
            {
                out.push_str(if name.starts_with("oid") || name == "n" { "16384" } else { "x" });
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

#[test]
fn recorded_statements_are_described_as_postgresql_describes_them() {
    let names =
        Names { database: "app", search_path: &["public".to_owned()], is_relation: &|_, _| false };
    let mut wrong = Vec::new();
    let mut right = 0;
    for statement in recorded() {
        let described = parse(&statement.text).and_then(|query| {
            let declared = statement
                .declared
                .iter()
                .map(|ty| pg_catalog::types::name::type_of_name(ty).unwrap_or(0));
            analyse(&query, &declared.collect::<Vec<_>>(), names)
        });
        let plan = match described {
            Ok(plan) => plan,
            Err(error) => {
                wrong.push(format!("{}: {error}", statement.place));
                continue;
            }
        };
        let shown = |column: &pg_catalog::plan::OutputColumn| {
            format!("{} {}", column.name, format_type(column.ty.oid(), -1))
        };
        let columns: Vec<String> = plan.query.columns.iter().map(shown).collect();
        let parameters: Vec<String> =
            plan.parameters.iter().map(|ty| format_type(*ty, -1)).collect();
        let columns = columns.join(", ");
        if statement.columns.as_ref().is_some_and(|expected| *expected != columns) {
            wrong.push(format!(
                "{}: columns\n   {}\n   {columns}",
                statement.place,
                statement.columns.unwrap()
            ));
        } else if !statement.parameters.is_empty() && statement.parameters != parameters {
            wrong.push(format!(
                "{}: parameters {:?} {parameters:?}",
                statement.place, statement.parameters
            ));
        } else {
            right += 1;
        }
    }
    // It reads a table of the user, as well as the catalogue.
    let expected = ["jdbc 33: relation \"people\" does not exist (42P01)"];
    assert_eq!(wrong, expected, "{right} statements are described rightly");
    assert!(right > 950, "only {right} statements were read");
}
