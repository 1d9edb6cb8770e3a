//! Tests that statements have PostgreSQL's meaning: casts, division, NULL, names of columns, ids.

use std::sync::Arc;

use proto::expr::ColumnType;
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::ids::{BucketId, NodeId};
use proto::value::Value;

use super::tests::{index, plan_of, scan};
use super::{ConstantValue, IndexPlan, Plan, Relation, resolve};
use crate::sql::ast::Statement;

/// Returns the value of a SELECT without FROM as text.
fn value_of(sql: &str) -> proto::Result<String> {
    let Plan::Constant(plan) = plan_of(None, sql, &[])? else { panic!("{sql}: constants") };
    let values = plan.values.unwrap_or_else(|| panic!("{sql}: a row"));
    match &values[..] {
        [ConstantValue::Known(value)] => {
            Ok(proto::value::text(value).map_or("NULL".into(), |text| text.into_owned()))
        }
        other => panic!("{sql}: {other:?}"),
    }
}

#[test]
fn casts_and_division_are_those_of_postgresql() {
    for (expr, value) in [
        ("19.99::int8", "20"),
        ("2.5::int4", "3"),
        ("2.5::float8::int4", "2"),
        ("(2.5::float8 + 1)::int8", "4"),
        ("-2.5::float8::int8", "-2"),
        ("7/2", "3"),
        ("-7/2", "-3"),
        ("7/2/2", "1"),
        ("7.0/2", "3.5"),
        ("7/2.0", "3.5"),
        ("7e0/2", "3.5"),
        ("7::numeric/2", "3.5"),
        ("'7'::int8/2", "3"),
        ("7/2::float8", "3.5"),
        ("length('seven77')/2", "3"),
        ("abs(-7)/2", "3"),
        ("coalesce(NULL, 7)/2", "3"),
        ("coalesce(NULL::int8, '7')/2", "3"),
        ("('7' + 0)/2", "3"),
        ("9007199254740993::int8 BETWEEN '9007199254740993' AND 1e17::float8", "true"),
        ("9007199254740992::int8 BETWEEN '9007199254740993' AND 1e17::float8", "false"),
        ("2 IN ('2.0', 3.5)", "true"),
        ("coalesce(1, '1.5', 2.5)", "1"),
        ("coalesce(NULL::int4, '3000000000', 5000000000)", "3000000000"),
        ("7 % 4", "3"),
        ("-7 % 4", "-3"),
        ("7.5 % 2", "1.5"),
        ("'yes'::bool", "true"),
        ("' OFF '::bool", "false"),
        ("1::bool", "true"),
        ("0::bool", "false"),
        ("true::int4", "1"),
        ("'Infinity'::float8", "Infinity"),
        ("-'inf'::float8", "-Infinity"),
        ("'Infinity'::float8 > 1e308", "true"),
        ("1.50::text", "1.5"),
        ("NULL::int8 IS NULL", "true"),
    ] {
        assert_eq!(value_of(&format!("SELECT {expr}")).as_deref(), Ok(value), "{expr}");
    }
}

#[test]
fn what_has_no_value_is_an_error_that_names_it() {
    for (expr, sqlstate, named) in [
        ("'abc'::int8", "22P02", "\"abc\" is not a valid bigint"),
        ("'19.99'::int8", "22P02", "\"19.99\""),
        ("'maybe'::bool", "22P02", "boolean"),
        ("99999999999::int4", "22003", "99999999999 is out of range for type integer"),
        ("'9223372036854775808'::int8", "22003", "bigint"),
        ("1/0", "22012", "division by zero"),
        ("1.5 % 0", "22012", "division by zero"),
        ("'NaN'::float8", "0A000", "NaN"),
        ("1e308 * 10", "22003", "out of range"),
        ("coalesce(1::int4, '3000000000')", "22003", "integer"),
        ("coalesce(1, 'x')", "22P02", "\"x\" is not a valid integer"),
        ("1::int8 BETWEEN '1.5' AND 2.5", "22P02", "bigint"),
        ("1 AND true", "42804", "argument of AND must be type boolean, not type integer"),
        ("true OR '2020'", "22P02", "boolean"),
        ("NOT 1.5", "42804", "argument of NOT must be type boolean, not type numeric"),
    ] {
        let error = value_of(&format!("SELECT {expr}")).expect_err(expr);
        assert_eq!(error.code.sqlstate(), sqlstate, "{expr}");
        assert!(error.message.contains(named), "{expr}: {}", error.message);
    }
    let index = Relation::Index(index("CREATE INDEX i ON b (a)"));
    let error = plan_of(Some(&index), "SELECT id FROM i WHERE a > 'abc'::int8", &[]).unwrap_err();
    assert_eq!(error.code.sqlstate(), "22P02");
    for guarded in ["'' = '' OR a > (10/0)::text", "0 <> 0 AND a > (10/0)::text"] {
        plan_of(Some(&index), &format!("SELECT id FROM i WHERE {guarded}"), &[]).expect(guarded);
    }
    assert_eq!(value_of("SELECT coalesce(1, 1/0)").as_deref(), Ok("1"));
}

#[test]
fn an_indexed_cast_is_the_column_and_divides_as_its_type() {
    let index = Relation::Index(index(
        "CREATE INDEX i ON b (n::int8, n::int8 / 2, n / 2, r::float8::int8)",
    ));
    let plan = scan(&index, "SELECT n::int8 / 2, n / 2, r::float8::int8, n FROM i", &[]);
    let columns: Vec<_> = plan.cells.iter().map(|cell| format!("{cell:?}")).collect();
    assert_eq!(columns, ["Key(1)", "Key(2)", "Key(3)", "Key(0)"]);
    use ColumnType::{Int8, Numeric};
    let types: Vec<_> = plan.columns.iter().map(|column| column.column_type).collect();
    assert_eq!(types, [Int8, Numeric, Int8, Int8]);
}

fn explained(plan: &IndexPlan) -> String {
    Plan::Index(Box::new(IndexPlan { request: plan.request.clone(), ..clone_of(plan) }))
        .explain()
        .join("|")
}

fn clone_of(plan: &IndexPlan) -> IndexPlan {
    IndexPlan {
        index: Arc::clone(&plan.index),
        columns: Arc::clone(&plan.columns),
        cells: plan.cells.clone(),
        request: plan.request.clone(),
        merge: plan.merge.clone(),
        skip_aggregates: plan.skip_aggregates,
        texts: Arc::clone(&plan.texts),
        used: plan.used.clone(),
    }
}

#[test]
fn null_is_a_range_with_missing_where_a_part_can_be_missing() {
    let index = Relation::Index(index("CREATE INDEX i ON b (a, c)"));
    let ranges = |condition: &str| {
        let plan = scan(&index, &format!("SELECT id FROM i WHERE {condition}"), &[]);
        assert_eq!(plan.request.filter, None, "{condition}");
        plan.request.ranges.len()
    };
    assert_eq!(ranges("a IS NULL"), 1, "a document without it has no entry");
    assert_eq!(ranges("a = 1 AND c IS NULL"), 2);
    assert_eq!(ranges("a = 1 AND c IS NOT NULL"), 1);
    let order = "SELECT id FROM i WHERE a IS NULL ORDER BY c";
    assert!(plan_of(Some(&index), order, &[]).is_ok(), "a single value");
}

#[test]
fn distinct_reads_an_index_once_where_null_and_missing_are_not_apart() {
    let index = Relation::Index(index("CREATE INDEX i ON b (a, c, d)"));
    let plan = |sql: &str| plan_of(Some(&index), sql, &[]).map_err(|error| error.code.sqlstate());
    assert!(plan("SELECT DISTINCT a, c FROM i").is_ok());
    for condition in ["c IS NOT NULL", "c IS MISSING", "c IS NOT MISSING", "c > 1", "c = 'x'"] {
        let sql = format!("SELECT DISTINCT a, c, d FROM i WHERE {condition}");
        assert!(matches!(plan(&sql), Ok(Plan::Index(plan)) if plan.merge.is_none()), "{condition}");
    }
}

#[test]
fn what_missing_and_null_keep_apart_is_merged() {
    let four = Relation::Index(index("CREATE INDEX i ON b (a, c, d DESC, e)"));
    let merged = |sql: &str| {
        let plan = scan(&four, sql, &[]);
        let merge = plan.merge.clone().unwrap_or_else(|| panic!("{sql}: one scan"));
        (plan, merge)
    };
    let (plan, merge) = merged("SELECT DISTINCT a, c, d FROM i LIMIT 5 OFFSET 2");
    assert_eq!((merge.others.len(), &merge.parts[..]), (1, &[1][..]));
    assert_eq!((merge.limit, merge.offset), (Some(5), 2));
    for request in [&plan.request, &merge.others[0]] {
        assert_eq!((request.limit, request.offset, request.distinct_parts), (Some(7), 0, Some(3)));
        assert!(request.ordered && !request.reverse);
    }
    let (plan, merge) = merged("SELECT id FROM i WHERE a = 1 AND c IS NULL ORDER BY d, e DESC");
    for request in [&plan.request, &merge.others[0]] {
        assert_eq!((request.ranges.len(), request.filter.clone()), (1, None));
        assert!(request.reverse);
    }
    let (_, merge) = merged("SELECT DISTINCT d FROM i WHERE a = 1 AND c IS NULL");
    assert_eq!(merge.others.len(), 1);
    let (_, merge) = merged("SELECT DISTINCT a, c, d, e FROM i");
    assert_eq!((merge.others.len(), &merge.parts[..]), (3, &[1, 2][..]));
    for single in [
        "SELECT id FROM i WHERE c IS NULL ORDER BY a",
        "SELECT id FROM i WHERE a IS NULL ORDER BY c",
    ] {
        assert!(scan(&four, single, &[]).merge.is_none(), "{single}");
    }
    let five = Relation::Index(index("CREATE INDEX i ON b (a INCLUDE MISSING, c, d, e)"));
    let refused = plan_of(Some(&five), "SELECT DISTINCT a, c, d, e FROM i", &[]).unwrap_err();
    assert_eq!(refused.code.sqlstate(), "0A000");
    assert!(refused.message.contains("a, c, d can each be NULL and MISSING"), "{refused:?}");
    assert!(refused.hint.expect("a hint").contains("a IS NOT NULL"));
}

#[test]
fn conditions_that_cannot_fail_stand_before_the_others() {
    let index = Relation::Index(index("CREATE INDEX i ON b (a, c)"));
    let plan = scan(&index, "SELECT id FROM i WHERE a / c > 1 AND c > 0", &[]);
    assert!(explained(&plan).contains("Filter: c > 0 AND a / c > 1"), "{}", explained(&plan));
}

#[test]
fn columns_are_qualified_by_the_relation_or_its_alias() {
    let places = Relation::Index(index("CREATE INDEX i ON b (address.city, lower(name), i.x)"));
    for sql in [
        "SELECT i.city, i.* FROM i WHERE i.city = 'Ulm' ORDER BY i.city, lower(i.name)",
        "SELECT \"t\".\"city\" FROM \"public\".\"i\" AS \"t\" WHERE \"t\".\"city\" = 'Ulm'",
        "SELECT t.address.city FROM i t WHERE lower(t.name) = 'x' AND t.id > 'a'",
        "SELECT \"public\".\"i\".\"city\" FROM public.i",
        "SELECT count(t.city) FROM i AS t",
        "SELECT address.city FROM i AS address WHERE address.city = 'Ulm'",
        "SELECT t.i.x FROM i AS t WHERE i.x = 1",
    ] {
        assert!(plan_of(Some(&places), sql, &[]).is_ok(), "{sql}");
    }
    let plan = scan(&places, "SELECT t.city FROM i AS t WHERE t.city = 'Ulm'", &[]);
    assert_eq!((plan.request.ranges.len(), &*plan.columns[0].name), (1, "city"));
    let unknown = plan_of(Some(&places), "SELECT t.nothing FROM i AS t", &[]).unwrap_err();
    assert_eq!(unknown.code.sqlstate(), "42703");
    let parsed = crate::sql::parse("SELECT u.* FROM i AS t").unwrap_err();
    assert_eq!(parsed.error.code.sqlstate(), "42P01");
}

#[test]
fn a_name_that_is_a_qualified_column_and_another_path_is_ambiguous() {
    let both = Relation::Index(index("CREATE INDEX address ON b (city, address.city, zip, name)"));
    let column_of = |relation: &Relation, sql: &str| {
        let plan = plan_of(Some(relation), sql, &[])?;
        let Plan::Index(plan) = plan else { panic!("{sql}: a scan") };
        Ok(format!("{:?}", plan.cells[0]))
    };
    for sql in [
        "SELECT address.city FROM address",
        "SELECT public.address.zip, id FROM address ORDER BY address.city",
        "SELECT address.zip FROM address WHERE lower(address.city) = 'ulm'",
    ] {
        let refused: proto::Error = column_of(&both, sql).expect_err(sql);
        assert_eq!(refused.code.sqlstate(), "42702", "{sql}");
        assert!(refused.message.starts_with("address.city is ambiguous"), "{}", refused.message);
        let hint = refused.hint.expect("a hint");
        assert!(hint.contains("write city for the first"), "{hint}");
    }
    let one = Relation::Index(index("CREATE INDEX address ON b (city, zip)"));
    let path = Relation::Index(index("CREATE INDEX address ON b (zip, address.city, address.zap)"));
    for (relation, sql, column) in [
        (&both, "SELECT address.zip FROM address", "Key(2)"),
        (&both, "SELECT city FROM address", "Key(0)"),
        (&both, "SELECT t.city FROM address AS t", "Key(0)"),
        (&both, "SELECT address.city FROM address AS t", "Key(1)"),
        (&both, "SELECT address.address.city FROM address", "Key(1)"),
        (&one, "SELECT address.city FROM address", "Key(0)"),
        (&path, "SELECT address.city FROM address", "Key(1)"),
        (&path, "SELECT address.zap FROM address WHERE address.zip = 1", "Key(2)"),
    ] {
        assert_eq!(column_of(relation, sql), Ok(column.to_owned()), "{sql}");
    }
}

fn bucket() -> Relation {
    let (id, node) = (BucketId(1), NodeId(1));
    Relation::Bucket(Arc::new(BucketInfo::new(id, "b", 64, SourceKind::Embedded, node)))
}

#[test]
fn the_columns_of_a_bucket_are_qualified_too_and_ids_keep_their_text() {
    let ids = |sql: &str| match plan_of(Some(&bucket()), sql, &[Value::from("2")]) {
        Ok(Plan::Documents(plan)) => (plan.ids, plan.limit),
        other => panic!("{sql}: {other:?}"),
    };
    let (read, _) = ids("SELECT x.id, x.doc FROM b AS x WHERE x.id IN ('k') ORDER BY x.id");
    assert_eq!(read, ["k"]);
    assert_eq!(ids("SELECT \"b\".* FROM \"b\" WHERE \"b\".\"id\" = 'k'").0, ["k"]);
    let (read, limit) =
        ids("SELECT id FROM b WHERE id IN (1, 1.0, 1.50, -2.0, 1e2, 007) LIMIT '3'");
    assert_eq!(read, ["1", "1.0", "1.50", "-2.0", "1e2", "7"]);
    assert_eq!(limit, Some(3));
    assert_eq!(ids("SELECT id FROM b WHERE id = 'k' LIMIT $1").1, Some(2));
    assert_eq!(ids("SELECT id FROM b WHERE id = 'k' LIMIT 1.5").1, Some(2));
    let other = "SELECT id FROM b AS x WHERE b.id = 'k'";
    let unknown = plan_of(Some(&bucket()), other, &[]).unwrap_err();
    assert_eq!(unknown.code.sqlstate(), "42P01");
    for sql in ["DELETE FROM b WHERE b.id = 'k'", "DELETE FROM public.b AS x WHERE x.id IN ('k')"] {
        assert!(crate::sql::parse(sql).is_ok(), "{sql}");
    }
    let refused = crate::sql::parse("DELETE FROM b WHERE c.id = 'k'").unwrap_err();
    assert_eq!(refused.error.code.sqlstate(), "42P01");
}

#[test]
fn the_id_as_a_key_part_is_found_by_conditions_and_orders() {
    let index = Relation::Index(index("CREATE INDEX i ON b (META().id DESC, a)"));
    let plan = scan(&index, "SELECT id FROM i WHERE META().id > 'k' ORDER BY id DESC", &[]);
    let text = explained(&plan);
    assert!(text.contains("Ranges: 1, for META().id > 'k'"), "{text}");
    assert_eq!((plan.request.filter.clone(), plan.request.reverse), (None, false));
    let plan = scan(&index, "SELECT id FROM i WHERE id = 'k' ORDER BY a", &[]);
    assert_eq!(
        (plan.request.ranges.len(), plan.request.slices(&plan.index).map(|s| s.len())),
        (1, Some(1))
    );
    let plan = scan(&index, "SELECT id FROM i ORDER BY META().id", &[]);
    assert!(plan.request.reverse);
    let two = Relation::Index(self::index("CREATE INDEX i ON b (a, META().id)"));
    assert!(plan_of(Some(&two), "SELECT id FROM i WHERE a = 1 ORDER BY id", &[]).is_ok());
    assert!(plan_of(Some(&two), "SELECT id FROM i ORDER BY id", &[]).is_err());
}

#[test]
fn the_hint_for_a_partition_by_elements_does_not_ask_for_what_is_there() {
    let sql = "CREATE INDEX i ON b (UNNEST(t)) PARTITION BY RANGE (UNNEST(t)) SPLIT AT (5)";
    let refused = crate::sql::parse(sql).unwrap_err().error;
    assert_eq!(refused.code.sqlstate(), "0A000");
    assert!(!refused.hint.unwrap().contains("key part"), "there is one");
}

#[test]
fn names_of_postgresqls_catalogue_are_refused() {
    for sql in [
        "CREATE BUCKET pg_logs",
        "CREATE BUCKET IF NOT EXISTS \"PG_logs\"",
        "CREATE BUCKET information_schema",
        "CREATE INDEX pg_i ON b (a)",
        "ALTER INDEX i RENAME TO pg_j",
        "CREATE USER pg_me",
        "CREATE USER public",
    ] {
        let refused = crate::sql::parse(sql).expect_err(sql);
        assert_eq!(refused.error.code.sqlstate(), "42939", "{sql}");
    }
    assert!(crate::sql::parse("CREATE BUCKET pgx").is_ok());
}

#[test]
fn a_parameter_declared_with_a_fraction_divides_as_a_number() {
    let value = |declared: Option<ColumnType>, sql: &str, value: Value| {
        let parsed = crate::sql::parse(sql).expect("a statement").remove(0);
        let crate::sql::ast::Statement::Select(mut select) = parsed.statement else { panic!() };
        super::declare(&mut select, &|_| declared);
        let planned = super::resolve(&select, None).and_then(|resolved| resolved.plan(&[value]));
        let Ok(Plan::Constant(plan)) = planned else { panic!("{sql}: constants") };
        match &plan.values.expect("a row")[..] {
            [ConstantValue::Known(value)] => {
                proto::value::text(value).map(|text| text.into_owned())
            }
            other => panic!("{other:?}"),
        }
    };
    for (declared, sql, given, expected) in [
        (Some(ColumnType::Float8), "SELECT 7 / $1", Value::int(2), "3.5"),
        (Some(ColumnType::Numeric), "SELECT ($1 + 1) / 2", Value::int(6), "3.5"),
        (Some(ColumnType::Float8), "SELECT $1::int8", Value::float(2.5), "2"),
        (Some(ColumnType::Numeric), "SELECT $1::int8", Value::float(2.5), "3"),
        (Some(ColumnType::Float8), "SELECT abs($1) / 2", Value::int(7), "3.5"),
        (Some(ColumnType::Float8), "SELECT coalesce($1, 1) / 2", Value::int(7), "3.5"),
        (None, "SELECT 7 / $1", Value::int(2), "3"),
    ] {
        assert_eq!(value(declared, sql, given).as_deref(), Some(expected), "{declared:?} {sql}");
    }
}

#[test]
fn a_text_that_is_written_with_a_type_is_a_value_of_it_wherever_it_stands() {
    for condition in
        ["true OR 'yes'::numeric > 1", "false AND 'a'::int4 = 1", "1 / 0 = 1 OR 'a'::int8 = 1"]
    {
        let error = value_of(&format!("SELECT {condition}")).expect_err(condition);
        assert!(error.message.contains("is not a valid"), "{condition}: {error:?}");
    }
}

#[test]
fn a_constant_that_decides_a_condition_keeps_the_others_from_failing() {
    for (condition, value) in [("1 / 0 = 1 OR 2 > 1", "true"), ("1 / 0 = 1 AND 2 < 1", "false")] {
        assert_eq!(value_of(&format!("SELECT {condition}")).as_deref(), Ok(value), "{condition}");
    }
}

#[test]
fn a_condition_is_boolean() {
    let i = Relation::Index(index(
        "CREATE INDEX i ON b (a, n::int8, a::bool, a::text, lower(a), coalesce(c, 'f'))",
    ));
    for (condition, sqlstate) in [
        ("1", "42804"),
        ("n", "42804"),
        ("lower(a)", "42804"),
        ("a::text", "42804"),
        ("id", "42804"),
        ("n + 1", "42804"),
        ("a = 1 AND n", "42804"),
        ("length(a)", "42804"),
        ("'maybe'", "22P02"),
        ("NOT 'maybe'", "22P02"),
    ] {
        for sql in
            [format!("SELECT id FROM i WHERE {condition}"), format!("SELECT 1 WHERE {condition}")]
        {
            let relation = sql.contains("FROM").then_some(&i);
            let Err(error) = plan_of(relation, &sql, &[]) else { panic!("{sql}") };
            // Without FROM there are no columns.
            let expected = match (relation, error.code.sqlstate()) {
                (None, "42703") => "42703",
                _ => sqlstate,
            };
            assert_eq!(error.code.sqlstate(), expected, "{sql}: {}", error.message);
        }
    }
    for condition in [
        "'true'",
        "NOT 'no'",
        "true",
        "a",
        "a::bool",
        "a::bool AND 'on'",
        "coalesce(a, 'f')",
        "coalesce(c, 'f')",
        "coalesce(c, 'f') AND id > 'a'",
        "NOT coalesce(c, 'f')",
        "a = coalesce(n, a, 'none')",
    ] {
        scan(&i, &format!("SELECT id FROM i WHERE {condition}"), &[]);
    }
    let none = scan(&i, "SELECT id FROM i WHERE 'off'", &[]);
    assert!(none.request.ranges.is_empty(), "{:?}", none.request.ranges);
    let given = plan_of(Some(&i), "SELECT id FROM i WHERE $1", &[Value::from("perhaps")]);
    assert_eq!(given.expect_err("no boolean").code.sqlstate(), "22P02");
}

#[test]
fn parameters_have_the_types_of_their_places() {
    use ColumnType::{Bool, Int8, Numeric, Text};
    let i = Relation::Index(index("CREATE INDEX i ON b (a, n::int8)"));
    for (condition, types) in [
        ("$1", vec![Bool]),
        ("n = 1 AND NOT $1", vec![Bool]),
        ("$1 = '' OR n = $1::int8", vec![Text]),
        ("n = $1 OR $1 = $2", vec![Int8, Int8]),
        ("$1 = $2", vec![Text, Text]),
        ("n = 1 OR coalesce($1 AND a = 1, false)", vec![Bool]),
        ("n = coalesce($1, 1, 2.5)", vec![Numeric]),
        ("n BETWEEN $1 AND 10.5", vec![Int8]),
        ("n IN ($1, 10.5)", vec![Numeric]),
        ("a = coalesce(n, a, $1)", vec![Text]),
        ("n = coalesce($1, 0::int8)", vec![Int8]),
        ("a = coalesce($1, $2)", vec![Text, Text]),
    ] {
        let sql = format!("SELECT id FROM i WHERE {condition}");
        let parsed = crate::sql::parse(&sql).expect("a statement").remove(0);
        let Statement::Select(select) = &parsed.statement else { panic!("a select") };
        let resolved = resolve(select, Some(&i)).expect("its plan");
        assert_eq!(resolved.parameter_types(parsed.parameters), types, "{sql}");
    }
}
