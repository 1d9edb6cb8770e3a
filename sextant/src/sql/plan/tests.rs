//! Tests of the planner with tables of statements, and of its ranges by comparison with evaluation
//! of the condition for each entry.

use std::borrow::Cow;
use std::sync::Arc;

use proto::expr::cost::CostMeter;
use proto::expr::eval::{Evaluation, Scope};
use proto::expr::{ColumnType, Expr};
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::ids::{BucketId, Generation, IndexId, TopologyNo};
use proto::model::index::{IndexInfo, IndexState};
use proto::model::topology::{IndexTopology, PartitionKey, TopologyProvider};
use proto::value::Value;
use proto::value::key::encode_entry;
use proto::value::path::Step;

use super::{Cell, IndexPlan, Plan, Relation, resolve};
use crate::sql::ast::Statement;
use crate::sql::definitions::define::definition;

pub(super) fn index(sql: &str) -> Arc<IndexInfo> {
    let Statement::CreateIndex(create) = crate::sql::parse(sql).unwrap().remove(0).statement else {
        panic!("an index")
    };
    Arc::new(IndexInfo {
        id: IndexId(1),
        bucket: BucketId(1),
        spec: Arc::new(definition(&create).expect("a definition")),
        state: IndexState::Maintenance,
        generation: Generation(1),
        topology: Arc::new(IndexTopology { number: TopologyNo(1), placement: vec![vec![]; 8] }),
        moves: Vec::new(),
        revision: 0,
        defined: 0,
    })
}

fn cities() -> Relation {
    Relation::Index(index(
        "CREATE INDEX cities ON b (country, population::int8 DESC, lower(name)) \
         INCLUDE (address.zip, tags)",
    ))
}

pub(super) fn plan_of(
    relation: Option<&Relation>,
    sql: &str,
    values: &[Value],
) -> proto::Result<Plan> {
    let parsed = crate::sql::parse(sql).unwrap_or_else(|e| panic!("{sql}: {}", e.error)).remove(0);
    let Statement::Select(select) = parsed.statement else { panic!("a select") };
    resolve(&select, relation)?.plan(values)
}

pub(super) fn scan(relation: &Relation, sql: &str, values: &[Value]) -> IndexPlan {
    match plan_of(Some(relation), sql, values) {
        Ok(Plan::Index(plan)) => *plan,
        other => panic!("{sql}: {other:?}"),
    }
}

#[test]
fn explain_describes_plans() {
    let cities = cities();
    for (sql, expected) in [
        (
            "SELECT * FROM cities",
            "Scan of index cities on b|Ranges: the whole index\
             |Output, with included columns: id, country, population, lower(name), zip, tags",
        ),
        (
            "SELECT id FROM cities WHERE country = 'DE' AND population::int8 > 100000 \
             ORDER BY population DESC LIMIT 5",
            "Scan of index cities on b, in its order\
             |Ranges: 1, for country = 'DE' AND population > 100000|Limit: 5|Output: id",
        ),
        (
            "SELECT country, population FROM cities ORDER BY country DESC, population OFFSET 2",
            "Scan of index cities on b, in reverse|Ranges: the whole index|Offset: 2\
             |Output: country, population",
        ),
        (
            "SELECT lower(name) FROM cities WHERE country IN ('DE', 'AT') AND lower(name) LIKE 'u%'",
            "Scan of index cities on b|Ranges: 2, for country IN ('DE', 'AT')\
             |Filter: lower(name) LIKE 'u%'|Output: lower(name)",
        ),
        (
            "SELECT DISTINCT population FROM cities WHERE country = 'DE'",
            "Scan of index cities on b, in its order|Ranges: 1, for country = 'DE'\
             |Distinct: country, population|Output: population",
        ),
        (
            "SELECT count(*), max(population) FROM cities WHERE address.zip = '1' AND id > 'a'",
            "Scan of index cities on b|Ranges: the whole index\
             |Filter: META().id > 'a' AND zip = '1'|Aggregates: count, max",
        ),
        (
            "SELECT id FROM cities WHERE country = 'A' AND country = 'B'",
            "Scan of index cities on b|Ranges: none, the conditions exclude each other|Output: id",
        ),
    ] {
        let plan = plan_of(Some(&cities), sql, &[]).unwrap_or_else(|e| panic!("{sql}: {e}"));
        let mut lines = plan.explain();
        assert_eq!(lines.pop().as_deref(), Some("  Slices: 8, by hash of META().id"));
        let lines: Vec<_> = lines.iter().map(|line| line.trim()).collect();
        assert_eq!(lines.join("|"), expected, "{sql}");
    }
}

#[test]
fn columns_have_the_names_and_types_of_the_index() {
    let sql = "SELECT id, country AS c, population, address.zip, count, population + 1, \
               upper(country), country::bool FROM cities";
    // An unknown column is refused with the list of columns.
    let refused = plan_of(Some(&cities()), sql, &[]).unwrap_err();
    assert_eq!(refused.code.sqlstate(), "42703");
    assert!(refused.hint.unwrap().contains("population"));

    let plan = scan(&cities(), &sql.replace(" count,", ""), &[]);
    let columns: Vec<_> = plan.columns.iter().map(|c| (c.name.as_str(), c.column_type)).collect();
    use ColumnType::{Bool, Int8, Text};
    assert_eq!(
        columns,
        [
            ("id", Text),
            ("c", Text),
            ("population", Int8),
            ("zip", Text),
            ("?column?", Int8),
            ("upper", Text),
            ("country", Bool),
        ]
    );
    assert_eq!(plan.cells[..4], [Cell::Id, Cell::Key(0), Cell::Key(1), Cell::Include(0)]);
    let plan = scan(
        &cities(),
        "SELECT min(population), avg(population)::float8, count(*) FROM cities",
        &[],
    );
    let types: Vec<_> = plan.columns.iter().map(|c| c.column_type).collect();
    assert_eq!(types, [Int8, ColumnType::Float8, Int8]);
}

#[test]
fn unsupported_selects_are_refused_with_an_alternative() {
    let cities = cities();
    for sql in [
        "SELECT id FROM cities ORDER BY population",
        "SELECT id FROM cities ORDER BY country, population",
        "SELECT id FROM cities ORDER BY country NULLS LAST",
        "SELECT id FROM cities ORDER BY id",
        "SELECT id FROM cities ORDER BY lower(country)",
        "SELECT id, count(*) FROM cities",
        "SELECT DISTINCT population FROM cities",
        "SELECT DISTINCT zip FROM cities",
        "SELECT version() FROM cities",
    ] {
        let error = plan_of(Some(&cities), sql, &[]).unwrap_err();
        assert_eq!(error.code.sqlstate(), "0A000", "{sql}: {error}");
        assert!(error.hint.is_some(), "{sql}: what would work?");
    }
    let error =
        plan_of(Some(&cities), "SELECT id FROM cities WHERE elevation > 5", &[]).unwrap_err();
    assert_eq!(error.code.sqlstate(), "42703");
    for sql in [
        "SELECT id FROM cities WHERE country = 'DE' ORDER BY population DESC, country, \"lower(name)\", id",
        "SELECT country x FROM cities ORDER BY x, 1",
        "SELECT id FROM cities WHERE country = 'DE' AND population = 5 ORDER BY lower(name) DESC, id DESC",
        "SELECT DISTINCT id, zip FROM cities",
        "SELECT DISTINCT population, country FROM cities",
    ] {
        assert!(plan_of(Some(&cities), sql, &[]).is_ok(), "{sql}");
    }
    for (sql, state) in [
        ("SELECT id FROM cities LIMIT -1", "22023"),
        ("SELECT id FROM cities LIMIT 'x'", "22P02"),
        ("SELECT id FROM cities ORDER BY 2", "22023"),
    ] {
        assert_eq!(plan_of(Some(&cities), sql, &[]).unwrap_err().code.sqlstate(), state, "{sql}");
    }
}

#[test]
fn a_parameter_has_the_type_of_the_other_side_of_its_comparison() {
    let cities = cities();
    let sql = "SELECT id FROM cities WHERE population > $1 AND country = $2 AND $3::float8 < 2 \
               AND population IN (1, $4) AND name_is($5) LIMIT $6"
        .replace(" AND name_is($5)", " AND $5 LIKE 'x'");
    let parsed = crate::sql::parse(&sql).unwrap().remove(0);
    let Statement::Select(select) = &parsed.statement else { panic!("a select") };
    let types = resolve(select, Some(&cities)).unwrap().parameter_types(parsed.parameters);
    use ColumnType::{Float8, Int8, Text};
    assert_eq!(types, [Int8, Text, Float8, Int8, Text, Int8]);
    let values = [5.into_value(), Value::from("DE"), 1.into_value(), 7.into_value()];
    let values = [&values[..], &[Value::from("x"), 3.into_value()]].concat();
    let plan = scan(&cities, &sql, &values);
    assert_eq!(plan.request.limit, Some(3));
    assert_eq!(plan.request.filter, None, "all is constant or in the ranges");
    assert_eq!(plan.request.ranges.len(), 1);
    assert!(plan_of(Some(&cities), &sql, &values[..5]).is_err(), "a value is missing");
}

trait IntoValue {
    fn into_value(self) -> Value;
}

impl IntoValue for i64 {
    fn into_value(self) -> Value {
        Value::int(self)
    }
}

#[test]
fn buckets_are_read_by_id_and_constants_without_a_source() {
    let bucket = Relation::Bucket(Arc::new(BucketInfo::new(
        BucketId(1),
        "b",
        64,
        SourceKind::Embedded,
        proto::model::ids::NodeId(1),
    )));
    let Ok(Plan::Documents(plan)) = plan_of(
        Some(&bucket),
        "SELECT doc, id FROM b WHERE id IN ('z', $1, 'z', 5) ORDER BY id",
        &[Value::from("a")],
    ) else {
        panic!("documents")
    };
    assert_eq!(plan.ids, ["5", "a", "z"]);
    for sql in [
        "SELECT id FROM b",
        "SELECT id FROM b WHERE id > 'a'",
        "SELECT doc.name FROM b WHERE id = 'a'",
        "SELECT count(*) FROM b WHERE id = 'a'",
    ] {
        let error = plan_of(Some(&bucket), sql, &[]).unwrap_err();
        assert_eq!(error.code.sqlstate(), "0A000", "{sql}");
    }
    let Ok(Plan::Constant(plan)) = plan_of(None, "SELECT 1 + 1 AS two, 'x', version()", &[]) else {
        panic!("constants")
    };
    assert_eq!(plan.columns[0].name, "two");
    assert_eq!(plan.values.map(|values| values.len()), Some(3));
    assert_eq!(plan_of(None, "SELECT a", &[]).unwrap_err().code.sqlstate(), "42703");
}

/// An entry of an index over (a, b DESC), for the evaluation of conditions.
struct Entry {
    id: String,
    parts: [Value; 2],
}

fn holds(predicate: &Expr, entry: &Entry) -> bool {
    let cost = CostMeter::for_evaluation();
    Evaluation::of_query(entry, &cost).truth(predicate) == Ok(Some(true))
}

impl Scope for Entry {
    fn path<'a>(&'a self, _: &[Step]) -> Cow<'a, Value> {
        Cow::Owned(Value::Missing)
    }

    fn document_id(&self) -> &str {
        &self.id
    }

    fn column(&self, n: u16) -> Cow<'_, Value> {
        Cow::Borrowed(&self.parts[usize::from(n)])
    }
}

#[test]
fn ranges_and_filter_together_equal_the_condition() {
    let values: Vec<Value> = [
        "null",
        "false",
        "true",
        "-1e300",
        "-5",
        "-0.5",
        "0",
        "4.5",
        "5",
        "6",
        "1e300",
        "\"\"",
        "\"a\"",
        "\"a\\u0000\"",
        "\"ab\"",
        "\"b\"",
        "[]",
        "[5]",
        "{}",
        "{\"x\":1}",
    ]
    .iter()
    .map(|json| Value::parse_json(json.as_bytes()).unwrap())
    .chain([Value::Missing])
    .collect();
    let mut entries = Vec::new();
    for a in &values {
        for b in &values {
            for id in ["a", "ab", "b"] {
                entries.push(Entry { id: id.into(), parts: [a.clone(), b.clone()] });
            }
        }
    }
    let tests = [
        "{} = 5",
        "{} > 5",
        "{} >= 5",
        "{} < 5",
        "{} <= 5",
        "{} <> 5",
        "5 < {}",
        "{} > 'a'",
        "{} <= 'a'",
        "{} = ''",
        "{} LIKE 'a%'",
        "{} LIKE 'a'",
        "{} LIKE '%a'",
        "{} LIKE 'a_'",
        "{} IN (5, 'a', NULL, 5, true)",
        "{} NOT IN (5)",
        "{} BETWEEN 0 AND 5",
        "{} BETWEEN 5 AND 0",
        "{} BETWEEN 'a' AND 6",
        "{} NOT BETWEEN 0 AND 5",
        "{} IS NULL",
        "{} IS NOT NULL",
        "{} IS NOT MISSING",
        "{} IS MISSING",
        "{} = NULL",
        "{} > false",
        "{} = true",
        "{} < 0 OR {} > 5",
        "{} = 5 OR {} LIKE 'a%' OR {} IS NULL",
        "({} > 0 AND {} < 6) OR {} = 'b'",
        "{} > 0 OR {} > 4 OR {} = 5",
        "NOT {} = 5",
        "{} = 5 OR id = 'a'",
        "true",
        "false",
    ];
    let index = Relation::Index(index("CREATE INDEX i ON b (a INCLUDE MISSING, b DESC)"));
    for on_a in tests {
        for on_b in tests {
            for on_id in ["true", "id = 'a'", "id > 'a'", "id LIKE 'a%'", "id = 5"] {
                let condition = [on_a.replace("{}", "a"), on_b.replace("{}", "b"), on_id.into()]
                    .map(|term| format!("({term})"))
                    .join(" AND ");
                let plan = scan(&index, &format!("SELECT id FROM i WHERE {condition}"), &[]);
                check(&plan, &condition, &entries);
            }
        }
    }
}

/// Asserts that a plan selects exactly the entries for which the condition is true.
fn check(plan: &IndexPlan, condition: &str, entries: &[Entry]) {
    let ranges = &plan.request.ranges;
    for pair in ranges.windows(2) {
        let high = pair[0].high.as_ref().expect("only the last range is open");
        assert!(high <= &pair[1].low, "{condition}: ranges ascend and are disjoint");
    }
    let whole = super::super::parse(&format!("SELECT id FROM i WHERE {condition}")).unwrap();
    let Statement::Select(select) = &whole[0].statement else { panic!("a select") };
    let mut plain: Expr = select.filter.clone().unwrap();
    super::columns::Columns::from_index(&plan.index).resolve(&mut plain).unwrap();
    for entry in entries {
        let mut bytes = Vec::new();
        encode_entry(&entry.parts, &[false, true], &entry.id, &mut bytes).unwrap();
        let inside = ranges.iter().any(|range| range.contains(&bytes));
        let passes = plan.request.filter.as_ref().is_none_or(|f| holds(f, entry));
        let expected = holds(&plain, entry);
        assert_eq!(
            inside && passes,
            expected,
            "{condition} for a = {}, b = {}, id = {} (inside: {inside}, passes: {passes})",
            entry.parts[0],
            entry.parts[1],
            entry.id
        );
    }
}

#[test]
fn the_values_of_parameters_do_not_decide_whether_an_order_is_possible() {
    let cities = cities();
    let sql = "SELECT id FROM cities WHERE country = $1 AND country > $2 ORDER BY population DESC";
    let (a, b) = (Value::from("a"), Value::from("b"));
    for (values, ranges) in [
        ([b.clone(), a.clone()], 1),
        ([a.clone(), b], 0),
        ([Value::Null, a.clone()], 0),
        ([a, Value::Null], 0),
    ] {
        assert_eq!(scan(&cities, sql, &values).request.ranges.len(), ranges, "{values:?}");
    }
}

#[test]
fn a_long_list_becomes_one_range_and_a_filter() {
    let index = Relation::Index(index("CREATE INDEX i ON b (a, b)"));
    let list = |n: usize| (0..n).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    let ranges = |condition: &str| {
        let plan = scan(&index, &format!("SELECT id FROM i WHERE {condition}"), &[]);
        (plan.request.ranges.len(), plan.request.filter.is_some())
    };
    assert_eq!(ranges(&format!("a IN ({})", list(1000))), (1000, false));
    assert_eq!(ranges(&format!("a IN ({})", list(1001))), (1, true));
    assert_eq!(ranges(&format!("a IN ({}) AND b IN ({})", list(20), list(50))), (1000, false));
    assert_eq!(ranges(&format!("a IN ({}) AND b IN ({})", list(20), list(51))), (20, true));
}

#[test]
fn conditions_on_ids_are_ranges_of_a_primary_index() {
    let index = Relation::Index(index("CREATE PRIMARY INDEX p ON b"));
    for (condition, low, high) in [
        ("id = 'k'", "k", Some("k\0")),
        ("id > 'k' AND id <= 'n'", "k\0", Some("n\0")),
        ("META().id LIKE 'ab%'", "ab", Some("ac")),
        ("id >= 'k'", "k", None),
    ] {
        let plan =
            scan(&index, &format!("SELECT * FROM p WHERE {condition} ORDER BY id DESC"), &[]);
        let [range] = &plan.request.ranges[..] else { panic!("{condition}: one range") };
        let high = high.map(str::as_bytes);
        assert_eq!((&range.low[..], range.high.as_deref()), (low.as_bytes(), high), "{condition}");
        assert!(plan.request.reverse && plan.request.filter.is_none(), "{condition}");
    }
}

#[test]
fn an_untyped_literal_takes_the_type_of_the_other_side() {
    let cities = cities();
    for (quoted, plain) in [
        ("population > '1000'", "population > 1000"),
        ("'1000' < population", "1000 < population"),
        ("population BETWEEN ' 5' AND '7'", "population BETWEEN 5 AND 7"),
        ("population IN ('1', '2', NULL)", "population IN (1, 2, NULL)"),
        ("population + '1' = 3", "population + 1 = 3"),
        ("id = 424242", "id = '424242'"),
        ("id IN (1, 'a', 2.50)", "id IN ('1', 'a', '2.50')"),
    ] {
        let request = |condition: &str| {
            scan(&cities, &format!("SELECT id FROM cities WHERE {condition}"), &[]).request
        };
        assert_eq!(request(quoted), request(plain), "{quoted}");
    }
    for bad in ["population > 'many'", "population IN (1, '')", "population = '1.5'"] {
        let sql = format!("SELECT id FROM cities WHERE {bad}");
        let refused = plan_of(Some(&cities), &sql, &[]).unwrap_err();
        assert_eq!(refused.code.sqlstate(), "22P02", "{bad}");
    }
    // A parameter that a client sends as text.
    let with = |value: Value| {
        scan(&cities, "SELECT id FROM cities WHERE population = $1", &[value]).request
    };
    assert_eq!(with(Value::from("7")), with(Value::int(7)));
}

#[test]
fn a_computed_column_has_the_same_type_in_an_index_and_in_a_select() {
    let parsed = crate::sql::parse(
        "CREATE INDEX i ON b (a, n::int8, a + 1, length(a), a > 'x', n::int8 * 2, coalesce(a, 0), \
         coalesce(n::int8, 0))",
    );
    let Statement::CreateIndex(create) = parsed.unwrap().remove(0).statement else { panic!() };
    let spec = definition(&create).unwrap();
    use ColumnType::{Bool, Int4, Int8, Numeric, Text};
    let types: Vec<_> = spec.keys.iter().map(|key| key.column_type).collect();
    assert_eq!(types, [Text, Int8, Numeric, Int4, Bool, Int8, Text, Int8]);
    // The expressions over an index that has only their operands.
    let mut narrow = spec.clone();
    narrow.keys.truncate(2);
    let index = IndexInfo::new(IndexId(9), BucketId(1), narrow, vec![vec![]; 8]);
    let sql =
        "SELECT a, n, a + 1, length(a), a > 'x', n * 2, coalesce(a, 0), coalesce(n, 0) FROM i";
    let plan = scan(&Relation::Index(Arc::new(index)), sql, &[]);
    let types: Vec<_> = plan.columns.iter().map(|column| column.column_type).collect();
    assert_eq!(types, [Text, Int8, Numeric, Int4, Bool, Int8, Text, Int8]);
}

#[test]
fn only_slices_that_can_have_rows_are_read() {
    let by_id = cities();
    let by_values = Relation::Index(index(
        "CREATE INDEX spread ON b (country, n::int8 DESC, lower(name)) \
         PARTITION BY HASH (lower(name), n::int8)",
    ));
    let by_array = Relation::Index(index(
        "CREATE INDEX tags ON b (UNNEST(tags), country) PARTITION BY HASH (country, META().id)",
    ));
    let slices = |relation: &Relation, condition: &str, values: &[Value]| {
        let Relation::Index(info) = relation else { panic!("an index") };
        let sql = format!("SELECT id FROM {} WHERE {condition}", info.spec.name);
        let plan = scan(relation, &sql, values);
        plan.request.slices(info).map(|slices| slices.iter().map(|s| s.0).collect::<Vec<_>>())
    };
    let topology = IndexTopology { number: TopologyNo(1), placement: vec![vec![]; 8] };
    let of_id = |id: &str| topology.partition(PartitionKey::Id(id)).0;
    let of_values = |name: &str, n: i64| {
        let mut bytes = Vec::new();
        encode_entry(&[Value::from(name), Value::int(n)], &[], "x", &mut bytes).unwrap();
        topology.partition(PartitionKey::Encoded(&bytes[..bytes.len() - 1])).0
    };
    let x = of_values("x", 7);
    let both = || {
        let mut both = vec![x, of_values("y", 7)];
        both.sort_unstable();
        both.dedup();
        Some(both)
    };
    assert_eq!(slices(&by_id, "id = 'k1'", &[]), Some(vec![of_id("k1")]));
    assert_eq!(
        slices(&by_id, "country = 'a' AND id = $1", &["k1".into()]),
        Some(vec![of_id("k1")])
    );
    assert_eq!(slices(&by_id, "country = 'a'", &[]), None);
    assert_eq!(slices(&by_id, "id >= 'k1' AND id <= 'k1'", &[]), None, "an interval");
    assert_eq!(slices(&by_values, "n::int8 = 7 AND lower(name) = 'x'", &[]), Some(vec![x]));
    assert_eq!(slices(&by_values, "n::int8 = 7.0 AND lower(name) = 'x'", &[]), Some(vec![x]));
    assert_eq!(slices(&by_values, "n::int8 = 7 AND lower(name) IN ('x', 'y')", &[]), both());
    assert_eq!(slices(&by_values, "n::int8 = 7 AND lower(name) = NULL", &[]), Some(vec![]));
    for unknown in
        ["n::int8 = 7", "n::int8 > 7 AND lower(name) = 'x'", "n::int8 = 7 OR lower(name) = 'x'"]
    {
        assert_eq!(slices(&by_values, unknown, &[]), None, "{unknown}");
    }
    assert_eq!(slices(&by_array, "country = 'a' AND id = 'k1'", &[]), None, "an id is no key part");
    let plan = plan_of(Some(&by_id), "SELECT id FROM cities WHERE id = 'k1'", &[]).unwrap();
    assert_eq!(plan.explain().pop().as_deref(), Some("  Slices: 1 of 8, by hash of META().id"));
}

#[test]
fn conditions_exclude_the_ranges_that_they_do_not_meet() {
    let ranged = Relation::Index(index(
        "CREATE INDEX ranged ON b (country, n::int8 DESC) PARTITION BY RANGE (n::int8) SPLIT AT (10, 20, 30)",
    ));
    let Relation::Index(info) = &ranged else { panic!("an index") };
    let read = |condition: &str| {
        let plan = scan(&ranged, &format!("SELECT id FROM ranged WHERE {condition}"), &[]);
        plan.request.slices(info).map(|slices| slices.iter().map(|s| s.0).collect::<Vec<_>>())
    };
    for (condition, slices) in [
        ("n::int8 < 10", vec![0]),
        ("n::int8 <= 10", vec![0, 1]),
        ("n::int8 >= 10 AND n::int8 < 20", vec![1]),
        ("country = 'a' AND n::int8 > 10 AND n::int8 <= 20", vec![1, 2]),
        ("n::int8 = 20", vec![2]),
        ("n::int8 IN (5, 35)", vec![0, 3]),
        ("n::int8 > 100", vec![3]),
        ("n::int8 > -5", vec![0, 1, 2, 3]),
    ] {
        assert_eq!(read(condition), Some(slices), "{condition}");
    }
    assert_eq!(read("country = 'a'"), None);
    let plan = plan_of(Some(&ranged), "SELECT id FROM ranged WHERE n::int8 = 7", &[]).unwrap();
    assert_eq!(plan.explain().pop().as_deref(), Some("  Slices: 1 of 4, by range of n::int8"));
}
