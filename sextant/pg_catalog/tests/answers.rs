//! Statements have PostgreSQL's answers: joins, groups, subqueries, functions, casts, and the codes of errors.
//!
//! The file has PostgreSQL's own answers, as the program `compare` has written them.

mod common;

use std::sync::Arc;

use pg_catalog::analyse::{Names, analyse, parse};
use pg_catalog::error::Result;
use pg_catalog::execute::run;
use pg_catalog::limits::Limits;
use pg_catalog::relations::Snapshot;
use pg_catalog::types::names;
use pg_catalog::types::text::print;

use self::common::{User, snapshot};

const ANSWERS: &str = include_str!("answers.txt");

/// Runs a statement within limits of steps and bytes, and returns its rows as COPY writes them.
fn answer(
    text: &str,
    relations: &Snapshot,
    steps_max: u64,
    bytes_max: usize,
) -> Result<Vec<String>> {
    let names = Names { database: "app", search_path: &[], is_relation: &|_, _| false };
    let plan = analyse(&parse(text)?, &[], names)?;
    let mut limits = Limits::new(steps_max, bytes_max, Arc::default());
    let rows = run(&plan, &[], relations, &User, &mut limits)?;
    let names = names::Names { relations, session: &User };
    let mut lines = Vec::new();
    for row in rows {
        let mut fields = Vec::new();
        for (value, column) in row.iter().zip(&plan.query.columns) {
            fields.push(match value.is_absent() {
                true => "\\N".to_owned(),
                false => {
                    let text = print(value, &column.ty, &names)?;
                    text.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t")
                }
            });
        }
        lines.push(fields.join("\t"));
    }
    Ok(lines)
}

#[test]
fn statements_have_the_answers_of_postgresql() {
    let relations = snapshot();
    let mut wrong = Vec::new();
    let blocks = ANSWERS.strip_prefix("> ").unwrap_or_default().split("\n> ");
    for block in blocks {
        let mut lines = block.trim_end_matches('\n').split('\n');
        let statement = lines.next().unwrap_or_default();
        let expected: Vec<&str> = lines.collect();
        let own = match answer(statement, &relations, 10_000_000, 100 << 20) {
            Ok(rows) => rows,
            Err(error) => vec![format!("! {}", error.sqlstate)],
        };
        // Rows without an order are compared as sets.
        let (mut own_sorted, mut expected_sorted) = (own.clone(), expected.clone());
        if !statement.contains("order by") {
            own_sorted.sort();
            expected_sorted.sort_unstable();
        }
        if own_sorted != expected_sorted {
            wrong.push(format!("{statement}\n   expected {expected:?}\n        got {own:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} answers differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_statement_ends_at_its_limits_of_steps_and_bytes() {
    let relations = snapshot();
    let code =
        |text: &str| answer(text, &relations, 3_000_000, 10 << 20).map_err(|error| error.sqlstate);
    let cross = "select count(*) from generate_series(1, 1000) a, generate_series(1, 1000) b, generate_series(1, 1000) c where a + b + c < 0";
    assert_eq!(code(cross), Err("54001"));
    let endless =
        "with recursive t(n) as (select 1 union all select n + 1 from t) select max(n) from t";
    assert!(matches!(code(endless), Err("53200" | "54001")));
    assert_eq!(
        code("select array_agg(repeat('x', 100000)) from generate_series(1, 1000)"),
        Err("53200")
    );
    assert_eq!(code("select repeat('x', 1000000000)"), Err("54000"));
    assert_eq!(code("select lpad('', 1000000000, 'x')"), Err("54000"));
    assert_eq!(code("select array_fill(1, array[10000, 10000])"), Err("54000"));
    assert_eq!(code("select count(*) from generate_series(1, 1000000000000)"), Err("53200"));
    let many = "select count(*) from regexp_matches(repeat('x', 10000000), '', 'g')";
    assert!(matches!(code(many), Err("53200" | "54001")));
    assert_eq!(code("select string_to_array(repeat(',', 10000000), ',')"), Err("54000"));
    assert_eq!(
        code("select json_array_length(('[' || repeat('1,', 1000000) || '1]')::json)"),
        Err("54000")
    );
    let long = "with recursive t(x) as (select 'x' union all select x || x from t) select max(length(x)) from t";
    assert!(matches!(code(long), Err("54000" | "53200" | "54001")));
}

#[test]
fn an_uncorrelated_subquery_runs_once_and_a_correlated_one_has_no_memory() {
    let relations = snapshot();
    // 2,000 rows and a subquery over 2,000 rows: if it ran for each row, that would be four million steps.
    let text = "select count(*) from generate_series(1, 2000) a where a in (select b from generate_series(1, 2000) b)";
    assert_eq!(answer(text, &relations, 100_000, 10 << 20), Ok(vec!["2000".to_owned()]));
    // Each run of the correlated subquery stores 100 rows; only those of one run count.
    let text = "select sum((select count(*) from (select b from generate_series(1, 100) b where b <> a order by b) s)) from generate_series(1, 2000) a";
    assert_eq!(answer(text, &relations, 5_000_000, 1 << 20), Ok(vec!["199900".to_owned()]));
}

#[test]
fn deep_statements_are_refused_before_the_stack_ends() {
    let relations = snapshot();
    let code = |text: &str| {
        answer(text, &relations, 10_000_000, 100 << 20).map_err(|error| error.sqlstate)
    };
    let items = |count: usize| {
        let items: Vec<String> =
            (0..count).map(|n| format!("generate_series(1, 1) a{n}")).collect();
        format!("select count(*) from {}", items.join(", "))
    };
    assert_eq!(code(&items(150)), Ok(vec!["1".to_owned()]));
    assert_eq!(code(&items(300)), Err("54001"));
    let nested =
        |depth: usize| format!("select {}1{}", "(select ".repeat(depth), ")".repeat(depth));
    assert_eq!(code(&nested(12)), Ok(vec!["1".to_owned()]));
    assert_eq!(code(&nested(500)), Err("54001"));
    let sum = |count: usize| format!("select {}", vec!["1"; count].join(" + "));
    assert_eq!(code(&sum(100)), Ok(vec!["100".to_owned()]));
    assert_eq!(code(&sum(450)), Err("54001"));
}
