//! Compares compiled filters with the evaluator, for random entries and conditions.

use proptest::collection::vec;
use proptest::prelude::*;
use proto::expr::{ColumnType, Function};
use proto::model::index::{IncludedColumn, KeyPart};
use proto::rpc::scan::Output;
use proto::value::Value;
use proto::value::key::encode_part;

use super::*;

const KEYS: usize = 3;
const COLUMNS: usize = KEYS + 2;

/// Returns values of all types, many of them equal or close to each other.
fn value() -> impl Strategy<Value = Value> {
    let text = || "[\u{0}\u{1}\u{2}ab\u{ffff}]{0,3}";
    let json = |json: String| Value::parse_json(json.as_bytes()).expect("JSON");
    let number = prop_oneof![
        3 => (-3i64..4).prop_map(Value::int),
        1 => (-20i64..20).prop_map(|n| Value::float(n as f64 / 8.0)),
        1 => any::<i64>().prop_map(Value::int),
        1 => any::<f64>().prop_filter("finite", |f| f.is_finite()).prop_map(Value::float),
        1 => (u64::MAX - 3..).prop_map(move |n| json(n.to_string())),
    ];
    let leaf = prop_oneof![
        1 => Just(Value::Missing),
        1 => Just(Value::Null),
        2 => any::<bool>().prop_map(Value::Bool),
        4 => number,
        4 => text().prop_map(Value::String),
    ];
    prop_oneof![
        8 => leaf,
        1 => vec(0..3u8, 0..3).prop_map(move |items| json(format!("{items:?}"))),
        1 => vec("[ab]", 0..3).prop_map(move |items| json(format!("{items:?}"))),
        1 => (0..3u8, "[ab]").prop_map(move |(n, name)| json(format!("{{\"{name}\":{n}}}"))),
        1 => Just(json("{}".to_owned())),
    ]
}

fn boxed(expr: Expr) -> Box<Expr> {
    Box::new(expr)
}

fn column() -> impl Strategy<Value = Expr> {
    (0..COLUMNS as u16).prop_map(Expr::Column)
}

fn literal() -> impl Strategy<Value = Expr> {
    value().prop_map(Expr::Literal)
}

/// Returns an operand, which in most cases can be tested by bytes.
fn operand() -> impl Strategy<Value = Expr> {
    prop_oneof![
        6 => column(),
        4 => literal(),
        1 => column().prop_map(|column| Expr::Call(Function::Lower, vec![column])),
        1 => Just(Expr::DocumentId),
    ]
}

fn comparison() -> impl Strategy<Value = Expr> {
    use CompareOp::{Eq, Greater, GreaterEq, Less, LessEq, NotEq};
    let op = proptest::sample::select(vec![Eq, NotEq, Less, LessEq, Greater, GreaterEq]);
    (op, operand(), operand()).prop_map(|(op, l, r)| Expr::Compare(op, boxed(l), boxed(r)))
}

fn condition() -> impl Strategy<Value = Expr> {
    let negated = any::<bool>;
    let among = prop_oneof![4 => literal(), 1 => operand()];
    let leaf = prop_oneof![
        6 => comparison(),
        2 => (operand(), literal(), operand(), negated()).prop_map(|(expr, low, high, negated)| {
            Expr::Between { expr: boxed(expr), low: boxed(low), high: boxed(high), negated }
        }),
        2 => (column(), vec(literal(), 0..6), negated()).prop_map(|(expr, list, negated)| {
            Expr::In { expr: boxed(expr), list: list.into(), negated }
        }),
        1 => (operand(), vec(among, 0..4), negated()).prop_map(|(expr, list, negated)| {
            Expr::In { expr: boxed(expr), list: list.into(), negated }
        }),
        1 => (operand(), negated())
            .prop_map(|(expr, negated)| Expr::IsNull { expr: boxed(expr), negated }),
        1 => (operand(), negated())
            .prop_map(|(expr, negated)| Expr::IsMissing { expr: boxed(expr), negated }),
        1 => (operand(), negated()).prop_map(|(expr, negated)| Expr::Like {
            expr: boxed(expr),
            pattern: boxed(Expr::Literal(Value::from("%a%"))),
            negated,
        }),
        1 => operand(),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Expr::And),
            vec(inner.clone(), 0..4).prop_map(Expr::Or),
            inner.prop_map(|inner| Expr::Not(boxed(inner))),
        ]
    })
}

fn spec(descending: [bool; KEYS]) -> IndexSpec {
    let part = |descending| KeyPart {
        expr: Expr::DocumentId,
        name: String::new(),
        column_type: ColumnType::Text,
        descending,
        include_missing: true,
    };
    let included = IncludedColumn {
        expr: Expr::DocumentId,
        name: String::new(),
        column_type: ColumnType::Text,
    };
    IndexSpec {
        primary: false,
        keys: descending.map(part).into(),
        include: vec![included; COLUMNS - KEYS],
        ..IndexSpec::new("i", "b")
    }
}

/// Returns the encoded entry and included values.
fn encode(spec: &IndexSpec, values: &[Value]) -> (Vec<u8>, Vec<u8>) {
    let (mut entry, mut include) = (Vec::new(), Vec::new());
    for (n, value) in values.iter().enumerate() {
        match spec.keys.get(n) {
            Some(part) => encode_part(value, part.descending, &mut entry),
            None => encode_part(value, false, &mut include),
        }
    }
    entry.extend_from_slice(b"\0\xffid");
    (entry, include)
}

fn truth_of(
    condition: &Condition,
    entry: &EntryScope<'_>,
    cost: &CostMeter,
) -> Result<Option<bool>, EvalError> {
    let mut beginnings = PartOffsets::default();
    beginnings.reset();
    condition.truth(entry, &mut beginnings, cost)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn a_compiled_filter_has_the_truth_of_the_evaluator(
        descending: [bool; KEYS],
        entries in vec(vec(value(), COLUMNS), 1..6),
        filter in condition(),
    ) {
        let spec = spec(descending);
        let compiled = compile(&filter, &spec);
        for values in &entries {
            let (entry, include) = encode(&spec, values);
            let scope = EntryScope { spec: &spec, entry: &entry, include: &include };
            let meter = CostMeter::for_evaluation;
            let expected = Evaluation::of_query(&scope, &meter()).truth(&filter).expect("cheap");
            if let Some(compiled) = &compiled {
                let truth = truth_of(compiled, &scope, &meter()).expect("cheap");
                prop_assert_eq!(truth, expected, "{:?} of {:?}", filter, values);
            }
        }
    }

    /// Compares values with constants that are equal or adjacent: the constant is a value of the
    /// entry.
    #[test]
    fn a_value_is_compared_with_itself_and_others_of_its_type(
        descending: [bool; KEYS],
        values in vec(value(), COLUMNS),
        n in 0..COLUMNS,
        constant in 0..COLUMNS,
    ) {
        let spec = spec(descending);
        let (entry, include) = encode(&spec, &values);
        let scope = EntryScope { spec: &spec, entry: &entry, include: &include };
        let cost = CostMeter::for_evaluation();
        let literal = || boxed(Expr::Literal(values[constant].clone()));
        for op in [CompareOp::Eq, CompareOp::Less, CompareOp::GreaterEq] {
            let filter = Expr::Compare(op, boxed(Expr::Column(n as u16)), literal());
            let compiled = compile(&filter, &spec).expect("a comparison with a constant");
            let expected = Evaluation::of_query(&scope, &cost).truth(&filter).expect("cheap");
            prop_assert_eq!(truth_of(&compiled, &scope, &cost).expect("cheap"), expected);
        }
    }

    #[test]
    fn damaged_entries_never_panic(
        entry: Vec<u8>,
        include: Vec<u8>,
        filter in condition(),
    ) {
        let spec = spec([false, true, false]);
        let scope = EntryScope { spec: &spec, entry: &entry, include: &include };
        if let Some(compiled) = compile(&filter, &spec) {
            truth_of(&compiled, &scope, &CostMeter::for_evaluation()).expect("cheap");
        }
    }
}

fn scan_with(filter: Expr) -> ShardScan {
    ShardScan {
        bucket: proto::model::ids::BucketId(1),
        index: proto::model::ids::LocalIndexId {
            index: proto::model::ids::IndexId(1),
            generation: proto::model::ids::Generation(0),
        },
        slices: Vec::new(),
        epoch: proto::model::ids::Epoch(1),
        own: None,
        ranges: Arc::default(),
        filter: Some(filter.into()),
        reverse: false,
        distinct_parts: None,
        resume_after: None,
        limit: None,
        output: Output::Rows { include: false },
        timeout_ms: 1000,
    }
}

#[test]
fn conditions_over_bytes_are_compiled_and_others_evaluated() {
    let spec = spec([false; KEYS]);
    let equal = |n| {
        Expr::Compare(CompareOp::Eq, boxed(Expr::Literal(Value::int(n))), boxed(Expr::Column(1)))
    };
    let like = || Expr::Like {
        expr: boxed(Expr::Column(0)),
        pattern: boxed(Expr::Literal(Value::from("a%"))),
        negated: false,
    };
    assert!(compile(&like(), &spec).is_none());
    assert!(compile(&Expr::Not(boxed(Expr::And(vec![like(), like()]))), &spec).is_none());
    let Some(Condition::Or(list)) = compile(&Expr::Or(vec![equal(1), like(), equal(2)]), &spec)
    else {
        panic!("an OR")
    };
    assert!(matches!(&list[..], [Condition::Of(..), Condition::Evaluated(_), Condition::Of(..)]));
}

/// The cost limit of an evaluation also covers conditions over bytes, each of which has a cost.
#[test]
fn a_filter_of_many_conditions_ends_at_the_limit() {
    let spec = spec([false; KEYS]);
    let text = Value::String("a".repeat(3000));
    let (entry, include) = encode(&spec, &vec![text.clone(); COLUMNS]);
    let scope = EntryScope { spec: &spec, entry: &entry, include: &include };
    let equal = Expr::Compare(CompareOp::Eq, boxed(Expr::Column(2)), boxed(Expr::Literal(text)));
    let passes = |conditions: usize, cost: &CostMeter| {
        let scan = Arc::new(scan_with(Expr::And(vec![equal.clone(); conditions])));
        Filter::new(&scan, &spec).copy_for_scanner().passes(&scope, cost)
    };
    let cost = CostMeter::for_evaluation();
    assert_eq!(passes(10, &cost), Ok(true));
    assert!(cost.spent() > 10 * 3000, "{}", cost.spent());
    assert!(passes(4000, &CostMeter::for_evaluation()).is_err());
}

/// The filter has the greatest depth that a filter from another process may have.
#[test]
fn a_deep_filter_fits_on_the_stack() {
    let spec = spec([false; KEYS]);
    let deep = (0..700).fold(Expr::Column(0), |inner, _| Expr::Not(boxed(inner)));
    let (entry, include) = encode(&spec, &vec![Value::Bool(true); COLUMNS]);
    let scope = EntryScope { spec: &spec, entry: &entry, include: &include };
    let compiled = compile(&deep, &spec).expect("a boolean column");
    let cost = CostMeter::for_evaluation();
    assert_eq!(truth_of(&compiled, &scope, &cost), Ok(Some(true)));
}
