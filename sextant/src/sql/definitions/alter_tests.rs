use proto::value::Value;

use super::*;

fn spec(sql: &str) -> IndexSpec {
    let Statement::CreateIndex(create) = parse(sql).unwrap().remove(0).statement else {
        panic!("{sql} declares no index")
    };
    definition(&create).unwrap()
}

/// Returns the definition of an index after an `ALTER INDEX i …`.
fn altered(before: &str, change: &str) -> Result<IndexSpec> {
    let sql = format!("ALTER INDEX i {change}");
    let Statement::AlterIndex { change, .. } = parse(&sql).unwrap().remove(0).statement else {
        panic!("{sql} builds no generation")
    };
    let mut create = present_declaration(&spec(before))?;
    apply(&mut create, &change)?;
    definition_of(create)
}

/// True if two definitions are equal apart from their texts.
fn same(one: &IndexSpec, other: &IndexSpec) -> bool {
    *one == IndexSpec { sql: one.sql.clone(), ..other.clone() }
}

const DECLARATIONS: [&str; 13] = [
    "CREATE INDEX i ON b (a,\n  c -- the city\n)",
    "CREATE INDEX i ON b (a -- first\n DESC, c) INCLUDE (d /* not\n all */, e -- last\n)",
    "CREATE INDEX \"order\" ON \"end\" (\"group\") WHERE \"end\" > 3 PARTITION BY HASH (\"with\")",
    "CREATE INDEX \"if\" ON concurrently (a) WHERE \"union\".\"join\" = 1",
    "CREATE INDEX i ON b (a) WHERE a > -(3) AND c < -(3::int8) AND d = -3 AND e = -(-3)",
    "CREATE INDEX i ON b (\"Ünï\", \"a\"\"b\") WHERE c LIKE 'ü''%' AND d IS NOT NULL AND e IS MISSING",
    "CREATE INDEX i ON b (a) PARTITION BY RANGE (lower(c)) SPLIT AT (-5, 2.50, 1e3, 'it''s', 'z') WITH (replicas = 1)",
    "CREATE INDEX i ON b (country, age::int8 DESC INCLUDE MISSING, lower( \"A b\" ))",
    "CREATE INDEX \"I\"\"x\" ON \"The bucket\" (UNNEST(tags), META().id) INCLUDE (a, b.c, tags[0])",
    "CREATE INDEX i ON b (a) WHERE a > 3 AND (b = 'it''s' OR c IS NOT MISSING) AND NOT d LIKE 'x%'",
    "CREATE INDEX i ON b (a) WHERE a IN (1, 2.5, -3) OR b BETWEEN 1 AND 2 + 3 * c",
    "CREATE INDEX i ON b (a) PARTITION BY HASH (lower(a), b.c) WITH (slices = 3, replicas = 2)",
    "CREATE PRIMARY INDEX i ON b WITH (compression = 'zstd', included_kb_max = 9, separate_included_columns)",
];

#[test]
fn a_written_declaration_declares_the_same_again() {
    for sql in DECLARATIONS {
        let before = spec(sql);
        let rewritten = definition_of(present_declaration(&before).unwrap()).unwrap();
        assert!(same(&rewritten, &before), "{sql} became {}", rewritten.sql);
        let again = spec(&rewritten.sql);
        assert_eq!(again, rewritten, "{}", rewritten.sql);
    }
}

#[test]
fn each_change_is_one_of_the_declaration() {
    let before = "CREATE INDEX i ON b (a) INCLUDE (c, d) WHERE e > 1 PARTITION BY HASH (a)";
    let cases = [
        (
            "SET (slices = 16)",
            "(a) INCLUDE (c, d) WHERE e > 1 PARTITION BY HASH (a) WITH (slices = 16)",
        ),
        (
            "SET (slices = 2, replicas = 1, compression = 'lz4')",
            "(a) INCLUDE (c, d) WHERE e > 1 PARTITION BY HASH (a) WITH (slices = 2, replicas = 1, compression = 'lz4')",
        ),
        ("SET KEYS (f DESC, a)", "(f DESC, a) INCLUDE (c, d) WHERE e > 1 PARTITION BY HASH (a)"),
        ("SET WHERE g = 2", "(a) INCLUDE (c, d) WHERE g = 2 PARTITION BY HASH (a)"),
        ("DROP WHERE", "(a) INCLUDE (c, d) PARTITION BY HASH (a)"),
        ("ADD INCLUDE (f, g.h)", "(a) INCLUDE (c, d, f, g.h) WHERE e > 1 PARTITION BY HASH (a)"),
        ("DROP INCLUDE (c)", "(a) INCLUDE (d) WHERE e > 1 PARTITION BY HASH (a)"),
        ("DROP INCLUDE (c, d)", "(a) WHERE e > 1 PARTITION BY HASH (a)"),
        ("PARTITION BY HASH (c)", "(a) INCLUDE (c, d) WHERE e > 1 PARTITION BY HASH (c)"),
        ("PARTITION BY HASH (META().id)", "(a) INCLUDE (c, d) WHERE e > 1"),
    ];
    for (change, expected) in cases {
        let after = altered(before, change).unwrap();
        let expected = spec(&format!("CREATE INDEX i ON b {expected}"));
        assert!(same(&after, &expected), "{change} gives {}", after.sql);
    }
}

#[test]
fn a_change_that_does_not_fit_is_refused_with_what_is_there() {
    let before = "CREATE INDEX i ON b (a) INCLUDE (c, d)";
    let error = altered(before, "DROP INCLUDE (x)").unwrap_err();
    assert_eq!(error.code, ErrorCode::Unknown);
    assert_eq!(error.hint.as_deref(), Some("it includes c, d"));
    assert_eq!(altered(before, "ADD INCLUDE (c)").unwrap_err().code, ErrorCode::Exists);
    let primary = "CREATE PRIMARY INDEX i ON b";
    assert_eq!(altered(primary, "SET KEYS (a)").unwrap_err().code, ErrorCode::WrongState);
}

#[test]
fn settings_that_were_changed_in_place_stay() {
    let mut now = spec("CREATE INDEX i ON b (a) WITH (replicas = 1)");
    (now.replicas, now.separate_included_columns, now.name) = (3, true, "j".into());
    let after = definition_of(present_declaration(&now).unwrap()).unwrap();
    assert!(same(&after, &now), "{}", after.sql);
    assert!(after.sql.starts_with("CREATE INDEX j ON b"), "{}", after.sql);
}

#[test]
fn ranges_that_were_split_by_themselves_stay() {
    let declared_at = |points: &str| {
        format!("CREATE INDEX i ON b (a, c) PARTITION BY RANGE (a) SPLIT AT ({points})")
    };
    for (points, at, split) in [
        ("20", Value::int(30), "20, 30"),
        ("'m'", Value::String("it's".into()), "'it''s', 'm'"),
        ("2.5, 'm'", Value::int(-3), "-3, 2.5, 'm'"),
    ] {
        let before = spec(&declared_at(points));
        let mut bound = Vec::new();
        proto::value::key::encode_part(&at, false, &mut bound);
        let PartitionBy::Range(ranges) = &before.partition else { panic!("no ranges") };
        let now = before.with_split(ranges.slice(&bound), &bound).unwrap();
        assert!(same(&now, &spec(&declared_at(split))), "{split}");
        let after = definition_of(present_declaration(&now).unwrap()).unwrap();
        assert!(same(&after, &now), "{}", after.sql);
        let told = declaration(&now, Some(1 << 20));
        let with = format!("{} WITH (slice_bytes_max = 1048576)", declared_at(split));
        assert_eq!(told, with);
    }
}

#[test]
fn a_limit_of_slices_needs_ranges_of_an_ascending_first_key() {
    let declare = |first: &str, ranges: &str| {
        let sql = format!(
            "CREATE INDEX i ON b ({first}, c) PARTITION BY RANGE ({ranges}) SPLIT AT (5) WITH (slice_bytes_max = 100000)"
        );
        let Statement::CreateIndex(create) = parse(&sql).unwrap().remove(0).statement else {
            panic!("{sql} declares no index")
        };
        definition(&create).map(|_| ()).map_err(|error| error.code)
    };
    assert_eq!(declare("a", "a"), Ok(()));
    assert_eq!(declare("a DESC", "a"), Err(ErrorCode::InvalidParameter));
    assert_eq!(declare("a", "c"), Err(ErrorCode::InvalidParameter));
    assert_eq!(declare("a", "lower(a)"), Err(ErrorCode::InvalidParameter));
}

#[test]
fn a_declaration_that_means_something_else_is_not_rebuilt() {
    let mut other = spec("CREATE INDEX i ON b (a)");
    other.sql = "CREATE INDEX i ON b (c)".into();
    assert_eq!(present_declaration(&other).unwrap_err().code, ErrorCode::WrongState);
}
