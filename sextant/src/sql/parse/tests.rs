//! Tests of the grammar, as tables of texts with the expected statement or SQLSTATE.

use proto::expr::{ColumnType, Expr};
use proto::model::bucket::SourceKind;
use proto::value::Value;

use super::parse;
use crate::sql::SqlError;
use crate::sql::ast::{
    Partition, Select, SelectExpr, SelectItem, Show, Statement, TransactionModes,
};

pub(super) fn one(sql: &str) -> Statement {
    let mut statements = parse(sql).unwrap_or_else(|e| panic!("{sql}: {}", e.error));
    assert_eq!(statements.len(), 1, "{sql}");
    statements.remove(0).statement
}

pub(super) fn refused(sql: &str) -> SqlError {
    match parse(sql) {
        Err(error) => error,
        Ok(statements) => panic!("{sql} must be refused, was read as {statements:?}"),
    }
}

fn select(sql: &str) -> Select {
    match one(sql) {
        Statement::Select(select) => select,
        other => panic!("{sql}: {other:?}"),
    }
}

/// Returns an expression as text with all brackets.
fn show(expr: &Expr) -> String {
    use proto::expr::{ArithmeticOp, CompareOp};
    use proto::value::path::Step;
    let list = |items: &[Expr], between: &str| {
        format!("({})", items.iter().map(show).collect::<Vec<_>>().join(between))
    };
    let not = |negated: &bool| if *negated { "not " } else { "" };
    match expr {
        Expr::Literal(value) => format!("{value}"),
        Expr::Path(steps) => {
            let steps = steps.iter().map(|step| match step {
                Step::Field(name) => format!(".{name}"),
                Step::Index(n) => format!("[{n}]"),
            });
            steps.collect::<String>().trim_start_matches('.').to_owned()
        }
        Expr::DocumentId => "meta().id".into(),
        Expr::Column(n) => format!("#{n}"),
        Expr::Parameter(n) => format!("${}", n + 1),
        Expr::Not(e) => format!("(not {})", show(e)),
        Expr::Negate(e) => format!("(- {})", show(e)),
        Expr::Arithmetic(op, l, r) => {
            let op = match op {
                ArithmeticOp::DivideIntegers => "div",
                ArithmeticOp::Add => "+",
                ArithmeticOp::Subtract => "-",
                ArithmeticOp::Multiply => "*",
                ArithmeticOp::Divide => "/",
                ArithmeticOp::Modulo => "%",
            };
            format!("({} {op} {})", show(l), show(r))
        }
        Expr::Compare(op, l, r) => {
            let op = match op {
                CompareOp::Eq => "=",
                CompareOp::NotEq => "<>",
                CompareOp::Less => "<",
                CompareOp::LessEq => "<=",
                CompareOp::Greater => ">",
                CompareOp::GreaterEq => ">=",
            };
            format!("({} {op} {})", show(l), show(r))
        }
        Expr::And(items) => list(items, " and "),
        Expr::Or(items) => list(items, " or "),
        Expr::In { expr, list: items, negated } => {
            format!("({} {}in {})", show(expr), not(negated), list(items, ", "))
        }
        Expr::Between { expr, low, high, negated } => {
            format!("({} {}between {} and {})", show(expr), not(negated), show(low), show(high))
        }
        Expr::Like { expr, pattern, negated } => {
            format!("({} {}like {})", show(expr), not(negated), show(pattern))
        }
        Expr::IsNull { expr, negated } => format!("({} is {}null)", show(expr), not(negated)),
        Expr::IsMissing { expr, negated } => format!("({} is {}missing)", show(expr), not(negated)),
        Expr::Cast(e, t) => format!("{}::{t:?}", show(e)),
        Expr::Call(function, items) => format!("{function:?}{}", list(items, ", ")),
        Expr::Unnest(e) => format!("unnest({})", show(e)),
    }
}

#[test]
fn expressions_bind_as_postgres_binds_them() {
    for (text, expected) in [
        ("a = 1 OR b = 2 AND NOT c = 3", "((a = 1) or ((b = 2) and (not (c = 3))))"),
        ("a AND b AND c", "(a and b and c)"),
        ("a + 2 * 3 - -4", "((a + (2 * 3)) - -4)"),
        ("a>-5", "(a > -5)"),
        ("-a::int8", "(- a::Int8)"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("a BETWEEN 1 AND 2 AND b", "((a between 1 and 2) and b)"),
        ("a NOT BETWEEN 1 + 1 AND 2", "(a not between (1 + 1) and 2)"),
        ("a NOT IN (1, 2) OR NOT b IS NULL", "((a not in (1, 2)) or (not (b is null)))"),
        ("a = b IS NOT MISSING", "((a = b) is not missing)"),
        ("name LIKE 'x%'", "(name like \"x%\")"),
        ("Address.City = 'Ulm'", "(Address.City = \"Ulm\")"),
        ("tags[0].Name = tags[-1]", "(tags[0].Name = tags[-1])"),
        ("\"order\".select = 1", "(order.select = 1)"),
        ("META().id = $2", "(meta().id = $2)"),
        ("CAST(a AS double precision) < 1e3", "(a::Float8 < \"1e3\"::Numeric)"),
        ("population::numeric != .5", "(population::Numeric <> 0.5)"),
        ("lower(coalesce(a, 'B'))", "Lower(Coalesce(a, \"B\"))"),
        ("E'a\\n' = $$it's$$", "(\"a\\n\" = \"it's\")"),
        ("user = position", "(user = position)"),
    ] {
        let filter = select(&format!("SELECT id FROM i WHERE {text}")).filter.expect("a filter");
        assert_eq!(show(&filter), expected, "{text}");
    }
}

#[test]
fn all_clauses_of_select_are_parsed() {
    let all = select(
        "select distinct Country c, population::int8 AS \"P\" from \"I\" where country >= 'A' \
         order by Country desc, 2 nulls last limit $1 offset 3 rows;",
    );
    assert!(all.distinct);
    assert_eq!(all.from.as_deref(), Some("I"));
    let aliases: Vec<_> = all
        .items
        .iter()
        .map(|item| match item {
            SelectItem::Expr { alias, .. } => alias.as_deref(),
            SelectItem::Star => None,
        })
        .collect();
    assert_eq!(aliases, [Some("c"), Some("P")]);
    assert_eq!(all.order_by.len(), 2);
    assert!(all.order_by[0].descending);
    assert_eq!(all.order_by[1].nulls_first, Some(false));
    assert_eq!(all.limit, Some(Expr::Parameter(0)));

    assert_eq!(select("SELECT * FROM Public.Cities").from.as_deref(), Some("cities"));
    let aggregates = select("SELECT count(*), MIN(a)::int8, avg(b + 1) x FROM i");
    let aggregates = aggregates
        .items
        .iter()
        .filter(|item| matches!(item, SelectItem::Expr { expr: SelectExpr::Aggregate { .. }, .. }));
    assert_eq!(aggregates.count(), 3);
    for session in ["version()", "pg_catalog.version()", "current_user", "current_schema()"] {
        let items = select(&format!("SELECT {session}")).items;
        assert!(
            matches!(&items[..], [SelectItem::Expr { expr: SelectExpr::Session(..), .. }]),
            "{session}: {items:?}"
        );
    }
}

#[test]
fn definitions_keep_case_of_paths_and_fold_names() {
    let Statement::CreateIndex(index) =
        one(" CREATE INDEX IF NOT EXISTS Idx ON Cities (Address.City DESC INCLUDE MISSING, \
         lower( Name ), UNNEST(tags)) INCLUDE (population::int8) WHERE country = 'DE' \
         PARTITION BY HASH (country) WITH (slices = 4, replicas = 1, defer_build = true) ; ")
    else {
        panic!("an index")
    };
    assert_eq!((index.name.as_str(), index.bucket.as_str()), ("idx", "cities"));
    assert!(index.if_not_exists && !index.primary && index.defer_build);
    let texts: Vec<_> = index.keys.iter().map(|item| item.key.text.as_str()).collect();
    assert_eq!(texts, ["Address.City", "lower( Name )", "UNNEST(tags)"]);
    assert!(index.keys[0].descending && index.keys[0].include_missing && !index.keys[1].descending);
    assert_eq!(index.include[0].text, "population::int8");
    assert_eq!((index.slices, index.replicas), (Some(4), Some(1)));
    assert!(matches!(&index.partition, Some(Partition::Hash(exprs)) if exprs.len() == 1));
    assert!(index.sql.starts_with("CREATE INDEX") && index.sql.ends_with("= true)"));

    let Statement::CreateIndex(index) =
        one("CREATE PRIMARY INDEX p ON b PARTITION BY HASH (META().id) WITH (defer_build)")
    else {
        panic!("an index")
    };
    assert!(index.primary && index.partition.is_none() && index.defer_build);
    let Statement::CreateBucket(bucket) =
        one("create bucket b from push with (vbuckets = 16, projectors = 2)")
    else {
        panic!("a bucket")
    };
    assert_eq!((bucket.source, bucket.vbuckets), (SourceKind::Push, Some(16)));
    assert_eq!(bucket.projectors, Some(2));
}

#[test]
fn the_other_statements_are_parsed() {
    use Statement as S;
    let name = |s: &str| s.to_owned();
    let modes = |read_only, isolation| TransactionModes { read_only, isolation };
    let set = |n: &str, v: Option<&str>| S::Set { name: name(n), value: v.map(name), local: false };
    let setting = |s: &str| S::Show(Show::Setting(name(s)));
    for (sql, expected) in [
        (
            "DROP BUCKET IF EXISTS B RESTRICT",
            S::DropBucket { name: name("b"), if_exists: true, restrict: true },
        ),
        (
            "DROP BUCKET b CASCADE",
            S::DropBucket { name: name("b"), if_exists: false, restrict: false },
        ),
        ("DROP INDEX \"I\"", S::DropIndex { name: name("I"), if_exists: false }),
        (
            "BUILD INDEX ON b (i, j)",
            S::BuildIndex { bucket: name("b"), indexes: vec![name("i"), name("j")] },
        ),
        (
            "COPY b FROM STDIN",
            S::CopyIn { bucket: name("b"), id_field: name("id"), is_atomic: false },
        ),
        (
            "COPY b FROM STDIN WITH (atomic = on)",
            S::CopyIn { bucket: name("b"), id_field: name("id"), is_atomic: true },
        ),
        (
            "COPY b FROM STDIN (atomic true, id k, atomic off)",
            S::CopyIn { bucket: name("b"), id_field: name("k"), is_atomic: false },
        ),
        (
            "COPY b FROM STDIN WITH (FORMAT jsonl, id 'Key')",
            S::CopyIn { bucket: name("b"), id_field: name("Key"), is_atomic: false },
        ),
        ("SHOW buckets", S::Show(Show::Buckets)),
        ("SHOW write_position", setting("write_position")),
        ("SHOW TRANSACTION ISOLATION LEVEL", setting("transaction_isolation")),
        ("SET consistency = 'request_plus'", set("consistency", Some("request_plus"))),
        ("SET SESSION statement_timeout TO 250", set("statement_timeout", Some("250"))),
        ("SET search_path = public, x", set("search_path", Some("public, x"))),
        ("SET at_plus TO DEFAULT", set("at_plus", None)),
        ("RESET Consistency", set("consistency", None)),
        (
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
            S::SetCharacteristics(modes(Some(true), None)),
        ),
        ("BEGIN READ ONLY", S::Begin(modes(Some(true), None))),
        (
            "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
            S::Begin(modes(Some(true), Some("repeatable read"))),
        ),
        ("SET TRANSACTION READ WRITE", S::SetTransaction(modes(Some(false), None))),
        (
            "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            S::SetCharacteristics(modes(None, Some("serializable"))),
        ),
        (
            "SET LOCAL TIME ZONE 'UTC'",
            S::Set { name: name("timezone"), value: Some(name("UTC")), local: true },
        ),
        ("START TRANSACTION READ ONLY", S::Begin(modes(Some(true), None))),
        ("END", S::Commit),
        ("ROLLBACK WORK", S::Rollback),
        ("SAVEPOINT a", S::Savepoint(name("a"))),
        ("ROLLBACK TO SAVEPOINT \"A\"", S::RollbackTo(name("A"))),
        ("ROLLBACK WORK TO a", S::RollbackTo(name("a"))),
        ("ABORT TO a", S::RollbackTo(name("a"))),
        ("RELEASE a", S::Release(name("a"))),
        ("RELEASE SAVEPOINT a", S::Release(name("a"))),
        ("DISCARD ALL", S::DiscardAll),
        ("DEALLOCATE PREPARE s1", S::Deallocate(Some(name("s1")))),
    ] {
        assert_eq!(one(sql), expected, "{sql}");
    }
    let S::Insert(insert) = one("INSERT INTO b (doc, id) VALUES ('{}', 'k'), ($2::jsonb, $1) \
         ON CONFLICT (id) DO UPDATE SET doc = EXCLUDED.doc")
    else {
        panic!("an insert")
    };
    assert!(insert.replace);
    assert_eq!(show(&insert.rows[0].0), "\"k\"");
    assert_eq!(insert.rows.len(), 2);
    let S::Delete { ids, .. } = one("DELETE FROM b WHERE id IN ('a', $1)") else {
        panic!("a delete")
    };
    assert_eq!(ids.len(), 2);
}

#[test]
fn a_query_text_has_any_number_of_statements() {
    assert_eq!(parse(" ; ;; -- nothing\n").unwrap(), []);
    let parsed = parse("SELECT $2; BEGIN; /* x */ SELECT 'a;b'").unwrap();
    let parameters: Vec<_> = parsed.iter().map(|p| p.parameters).collect();
    assert_eq!(parameters, [2, 0, 0]);
}

#[test]
fn errors_have_a_sqlstate_and_a_position() {
    for (sql, state, position) in [
        ("SELEC 1", "42601", 1),
        ("SELECT 1 2", "42601", 10),
        ("SELECT id FROM i WHERE", "42601", 23),
        ("SELECT 'ü', FROM i", "42601", 13),
        ("SELECT 'abc", "42601", 8),
        ("SELECT id FROM i WHERE a < b < c", "42601", 30),
        ("INSERT INTO b (id, doc) VALUES ('k')", "42601", 36),
        ("INSERT INTO b (id, body) VALUES ('k', '{}')", "42601", 20),
        ("CREATE PRIMARY INDEX i ON b (a)", "42601", 29),
        ("CREATE INDEX i ON b (a) WITH (slices = 0)", "22023", 31),
        ("CREATE INDEX i ON b (a) WITH (included_kb_max = 1025)", "22023", 31),
        ("CREATE INDEX i ON b (a) WITH (colour = 1)", "42704", 31),
        ("CREATE INDEX i ON b (a) WITH (slices = 8, slices = 9)", "42601", 43),
        ("DROP INDEX CONCURRENTLY i", "0A000", 12),
        ("CREATE INDEX i ON b (a = $1)", "0A000", 22),
        ("CREATE INDEX i ON b (UNNEST(a), UNNEST(b))", "0A000", 43),
        ("CREATE INDEX i ON b (lower(UNNEST(a)))", "0A000", 22),
        ("CREATE UNIQUE INDEX i ON b (a)", "0A000", 8),
        ("CREATE TABLE t (a int)", "0A000", 8),
        ("SELECT a FROM i GROUP BY a", "0A000", 17),
        ("SELECT a FROM i JOIN j ON a = b", "0A000", 17),
        ("SELECT a FROM i, j", "0A000", 16),
        ("SELECT a FROM (SELECT b FROM i)", "0A000", 15),
        ("SELECT nosuch(a) FROM i", "0A000", 8),
        ("SELECT 1 + count(*) FROM i", "0A000", 12),
        ("SELECT a::money FROM i", "0A000", 11),
        ("EXPLAIN SELECT c.relname FROM pg_catalog.pg_class c", "0A000", 9),
        ("COPY (SELECT x FROM information_schema.tables) TO STDOUT", "0A000", 7),
        ("UPDATE b SET doc = '{}'", "0A000", 1),
        ("DELETE FROM b", "0A000", 14),
        ("DELETE FROM b WHERE age > 5", "0A000", 21),
        ("COPY b FROM '/etc/passwd'", "0A000", 13),
        ("SELECT 1; SELECT 2 FROM", "42601", 24),
        ("SELECT 1e400", "22003", 8),
    ] {
        let error = refused(sql);
        assert_eq!(error.error.code.sqlstate(), state, "{sql}: {}", error.error);
        assert_eq!(error.position, Some(position), "{sql}: {}", error.error);
        assert!(state != "0A000" || error.error.hint.is_some(), "{sql}: what would work?");
    }
}

#[test]
fn a_select_list_has_at_most_1664_columns() {
    let ones = |n: usize| format!("SELECT {} FROM i", vec!["1"; n].join(", "));
    assert!(parse(&ones(1664)).is_ok());
    assert_eq!(refused(&ones(1665)).error.code.sqlstate(), "54011");
}

#[test]
fn decimal_literals_are_exact() {
    // The text is kept: a number with a point is no integer, even if its value is one.
    for text in ["9007199254740993.0", "9007199254740993.", "900719925474099.3e1"] {
        let items = select(&format!("SELECT {text}")).items;
        let SelectItem::Expr {
            expr: SelectExpr::Scalar(Expr::Cast(literal, ColumnType::Numeric)),
            ..
        } = &items[0]
        else {
            panic!("{text}: {items:?}")
        };
        let Expr::Literal(value) = &**literal else { panic!("{text}: {literal:?}") };
        let exact = proto::expr::cast::cast(value, ColumnType::Numeric);
        assert_eq!(exact, Ok(Value::int(9_007_199_254_740_993)), "{text}");
    }
    assert_eq!(refused("SELECT 1e400").error.code.sqlstate(), "22003");
}

#[test]
fn a_field_may_have_the_name_of_a_catalogue_table() {
    for sql in [
        "SELECT id FROM i WHERE pg_version = 1",
        "SELECT pg_name FROM i ORDER BY pg_name",
        "SELECT a.from, pg_name FROM i WHERE a.pg_class = 'from' AND pg_catalog.x IS NULL",
    ] {
        assert!(parse(sql).is_ok(), "{sql}");
    }
    for sql in ["SELECT 1 FROM pg_class", "SELECT a FROM (SELECT b FROM pg_catalog.pg_type) c"] {
        assert!(matches!(one(sql), Statement::Catalogue(_)), "{sql}");
    }
}

#[test]
fn operators_are_counted_before_anything_recurses() {
    let chain = |n: usize| format!("SELECT 1{}", " + 1".repeat(n));
    assert!(parse(&chain(500)).is_ok());
    assert_eq!(refused(&chain(501)).error.code.sqlstate(), "54001");
    let nots = |n: usize| format!("SELECT {} true", "NOT ".repeat(n));
    assert!(parse(&nots(500)).is_ok());
    assert_eq!(refused(&nots(100_000)).error.code.sqlstate(), "54001");
    let nested = format!("SELECT {}1{}", "(".repeat(100_000), ")".repeat(100_000));
    assert_eq!(refused(&nested).error.code.sqlstate(), "54001");
    let list = vec!["-1"; 5000].join(", ");
    assert!(parse(&format!("SELECT id FROM i WHERE a IN ({list})")).is_ok());
    let rows = vec!["('k', '{}')"; 5000].join(", ");
    assert!(parse(&format!("INSERT INTO b (id, doc) VALUES {rows}")).is_ok());
    let long = format!("SELECT '{}'", "x".repeat(crate::sql::limits::STATEMENT_BYTES_MAX));
    assert_eq!(refused(&long).error.code.sqlstate(), "54000");
}

#[test]
fn the_parser_never_panics() {
    let seeds = [
        "SELECT DISTINCT a.b[0]::int8 x, count(*) FROM i WHERE a IN (1,$2) ORDER BY 1 DESC LIMIT 5",
        "CREATE INDEX i ON b (a DESC, lower(b)) INCLUDE (c) WHERE d LIKE 'x%' WITH (slices = 2)",
        "COPY b FROM STDIN (FORMAT jsonl, id 'k'); SET a TO 'b', 3; SHOW ALL; BEGIN READ ONLY",
        "INSERT INTO b (id, doc) VALUES (E'\\u00e4', U&'\\0441') ON CONFLICT (id) DO UPDATE",
    ];
    for seed in seeds {
        let ends: Vec<_> = seed.char_indices().map(|(at, _)| at).collect();
        for &at in &ends {
            let _ = parse(&seed[..at]);
            let _ = parse(&seed[at..]);
            for noise in ["(", ")", "'", "\"", "$", "::", ".", "[", "ü", ",", "NOT ", "\n", "/*"] {
                let _ = parse(&format!("{}{noise}{}", &seed[..at], &seed[at..]));
            }
        }
    }
}
