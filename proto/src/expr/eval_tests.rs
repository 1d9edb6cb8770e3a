use super::*;
use crate::ErrorCode;

fn json(text: &str) -> Value {
    Value::parse_json(text.as_bytes()).expect(text)
}

fn literal(text: &str) -> Box<Expr> {
    Box::new(Expr::Literal(if text == "missing" { Value::Missing } else { json(text) }))
}

/// Returns the value of an expression in a definition, which equals its value in a query unless
/// that fails.
fn value_of(expr: &Expr) -> Value {
    let doc = json(r#"{"a":{"b":[1,"x",null]},"n":3.0}"#);
    let (scope, cost) = (DocumentScope { id: "doc-1", doc: &doc }, CostMeter::for_evaluation());
    let value = Evaluation::of_definition(&scope, &cost).eval(expr).unwrap().into_owned();
    match Evaluation::of_query(&scope, &cost).eval(expr) {
        Ok(in_query) => assert_eq!(*in_query, value),
        Err(_) => assert_eq!(value, Value::Null, "only what has no value fails"),
    }
    value
}

/// Returns the error of an expression in a query.
fn error_of(expr: &Expr) -> Error {
    let (scope, cost) = (DocumentScope { id: "", doc: &MISSING }, CostMeter::for_evaluation());
    assert_eq!(*Evaluation::of_definition(&scope, &cost).eval(expr).unwrap(), Value::Null);
    Evaluation::of_query(&scope, &cost).eval(expr).unwrap_err().into()
}

fn truth(
    expr: &Expr,
    scope: &dyn Scope,
    cost: &CostMeter,
) -> std::result::Result<Option<bool>, EvalError> {
    Evaluation::of_query(scope, cost).truth(expr)
}

fn arithmetic_of(l: &str, op: ArithmeticOp, r: &str) -> Value {
    value_of(&Expr::Arithmetic(op, literal(l), literal(r)))
}

fn cast_of(value: &str, to: ColumnType) -> Value {
    value_of(&Expr::Cast(literal(value), to))
}

fn call_of(function: Function, argument: &str) -> Value {
    value_of(&Expr::Call(function, vec![*literal(argument)]))
}

#[test]
fn paths_and_the_id() {
    let steps = vec![Step::Field("a".into()), Step::Field("b".into()), Step::Index(1)];
    assert_eq!(value_of(&Expr::Path(steps)), json("\"x\""));
    assert_eq!(value_of(&Expr::Path(vec![Step::Field("A".into())])), Value::Missing);
    assert_eq!(value_of(&Expr::DocumentId), Value::from("doc-1"));
}

#[test]
fn comparisons_stay_within_one_type() {
    let holds = |l: &str, op, r: &str| value_of(&Expr::Compare(op, literal(l), literal(r)));
    assert_eq!(holds("1", CompareOp::Less, "1.5"), Value::Bool(true));
    assert_eq!(holds("false", CompareOp::Less, "true"), Value::Bool(true));
    assert_eq!(holds("[1,2]", CompareOp::Less, "[1,2,0]"), Value::Bool(true));
    assert_eq!(holds("9007199254740993", CompareOp::Eq, "9007199254740992"), Value::Bool(false));
    for (l, r) in [("1", "\"1\""), ("null", "null"), ("missing", "missing"), ("1", "null")] {
        assert_eq!(holds(l, CompareOp::Eq, r), Value::Null, "{l} = {r}");
        assert_eq!(holds(l, CompareOp::NotEq, r), Value::Null, "{l} <> {r}");
    }
}

#[test]
fn logic_has_three_values() {
    let values = ["true", "false", "null"];
    let and = ["true", "false", "null", "false", "false", "false", "null", "false", "null"];
    let or = ["true", "true", "true", "true", "false", "null", "true", "null", "null"];
    for (n, (l, r)) in values.iter().flat_map(|l| values.iter().map(move |r| (l, r))).enumerate() {
        let both = || vec![*literal(l), *literal(r)];
        assert_eq!(value_of(&Expr::And(both())), json(and[n]), "{l} AND {r}");
        assert_eq!(value_of(&Expr::Or(both())), json(or[n]), "{l} OR {r}");
    }
    assert_eq!(value_of(&Expr::Not(literal("null"))), Value::Null);
    assert_eq!(value_of(&Expr::And(vec![])), Value::Bool(true));
    assert_eq!(value_of(&Expr::Or(vec![])), Value::Bool(false));
}

#[test]
fn in_and_between_are_unknown_where_sql_says_so() {
    let within = |e: &str, list: &[&str], negated| {
        let list = list.iter().map(|item| *literal(item)).collect();
        value_of(&Expr::In { expr: literal(e), list, negated })
    };
    assert_eq!(within("1", &["2", "1.0"], false), Value::Bool(true));
    assert_eq!(within("1", &["2", "null"], false), Value::Null);
    assert_eq!(within("1", &["1", "null"], true), Value::Bool(false));
    assert_eq!(within("1", &["2", "null"], true), Value::Null);
    assert_eq!(within("1", &["2"], true), Value::Bool(true));
    let between = |e: &str, low: &str, high: &str, negated| {
        let (expr, low, high) = (literal(e), literal(low), literal(high));
        value_of(&Expr::Between { expr, low, high, negated })
    };
    assert_eq!(between("1", "1", "2", false), Value::Bool(true));
    assert_eq!(between("3", "1", "2", true), Value::Bool(true));
    assert_eq!(between("3", "null", "2", false), Value::Bool(false));
    assert_eq!(between("1", "null", "2", false), Value::Null);
    assert_eq!(between("1", "\"a\"", "\"b\"", true), Value::Null);
}

#[test]
fn a_long_list_is_looked_up_and_says_the_same_as_one_comparison_after_the_other() {
    let values = ["1", "2.5", "\"1\"", "\"b\"", "true", "null", "missing", "[1]", "7"];
    let items = ["7", "2.5", "\"b\"", "null", "true", "[1]", "missing"];
    for picked in 0..1u32 << items.len() {
        let list: Vec<_> =
            (0..items.len()).filter(|n| picked >> n & 1 == 1).map(|n| *literal(items[n])).collect();
        for value in values {
            let equal =
                |item: &Expr| Expr::Compare(CompareOp::Eq, literal(value), Box::new(item.clone()));
            let one_by_one = Expr::Or(list.iter().map(equal).collect());
            let mut looked_up = InList::from(list.clone());
            let within = |list| Expr::In { expr: literal(value), list, negated: false };
            assert_eq!(value_of(&within(looked_up.clone())), value_of(&one_by_one));
            looked_up.normalize();
            assert_eq!(value_of(&within(looked_up)), value_of(&one_by_one));
        }
    }
    let long: InList = (0..50_000).map(|n| Expr::Literal(Value::int(n * 7 % 50_000))).collect();
    let expr = Expr::In { expr: literal("50001"), list: long, negated: false };
    let (cost, scope) = (CostMeter::with_max(200), DocumentScope { id: "", doc: &MISSING });
    assert_eq!(truth(&expr, &scope, &cost), Ok(Some(false)));
}

#[test]
fn an_evaluation_ends_at_its_cost_limit() {
    let long = Expr::Literal(Value::String("x".repeat(1 << 20)));
    let lower = Expr::Call(Function::Lower, vec![long]);
    let list: InList = (0..1000).map(|_| lower.clone()).collect();
    let expr = Expr::In { expr: literal("\"y\""), list, negated: false };
    let (cost, scope) = (CostMeter::for_evaluation(), DocumentScope { id: "", doc: &MISSING });
    assert!(truth(&expr, &scope, &cost).is_err());
    assert!(cost.spent() < 12_000_000, "it ends soon: {}", cost.spent());
    let refused = crate::Error::from(truth(&expr, &scope, &cost).unwrap_err());
    assert_eq!(refused.code.sqlstate(), "54001");
}

#[test]
fn missing_is_null_and_null_is_not_missing() {
    let is_null = |e, negated| value_of(&Expr::IsNull { expr: literal(e), negated });
    let is_missing = |e, negated| value_of(&Expr::IsMissing { expr: literal(e), negated });
    assert_eq!(is_null("null", false), Value::Bool(true));
    assert_eq!(is_null("missing", false), Value::Bool(true));
    assert_eq!(is_null("missing", true), Value::Bool(false));
    assert_eq!(is_null("1", true), Value::Bool(true));
    assert_eq!(is_missing("missing", false), Value::Bool(true));
    assert_eq!(is_missing("null", true), Value::Bool(true));
}

#[test]
fn integers_are_exact_until_64_bits_end() {
    use ArithmeticOp::*;
    assert_eq!(arithmetic_of("9223372036854775807", Add, "1"), json("9223372036854775808"));
    assert_eq!(arithmetic_of("9007199254740993", Multiply, "3"), json("27021597764222979"));
    assert_eq!(arithmetic_of("18446744073709551615", Add, "1"), json("18446744073709551616"));
    assert_eq!(
        arithmetic_of("18446744073709551615", Multiply, "18446744073709551615"),
        Value::float(2f64.powi(128))
    );
    assert_eq!(arithmetic_of("6", Divide, "3"), json("2"));
    assert_eq!(arithmetic_of("7", Divide, "2"), json("3.5"));
    assert_eq!(arithmetic_of("7", DivideIntegers, "2"), json("3"));
    assert_eq!(arithmetic_of("-7", DivideIntegers, "2"), json("-3"));
    assert_eq!(arithmetic_of("-7", Modulo, "3"), json("-1"));
    assert_eq!(arithmetic_of("0.5", Add, "0.5"), json("1"));
    assert_eq!(
        value_of(&Expr::Negate(literal("9223372036854775808"))),
        json("-9223372036854775808")
    );
}

#[test]
fn what_has_no_value_is_null_in_a_definition_and_an_error_in_a_query() {
    use ArithmeticOp::*;
    let infinity = || Expr::Cast(literal("\"Infinity\""), ColumnType::Float8);
    let arithmetic = |l: &str, op, r: &str| Expr::Arithmetic(op, literal(l), literal(r));
    let cast = |value: &str, to| Expr::Cast(literal(value), to);
    for (expr, sqlstate) in [
        (arithmetic("1", Divide, "0"), "22012"),
        (arithmetic("1", DivideIntegers, "0"), "22012"),
        (arithmetic("1", Modulo, "0"), "22012"),
        (arithmetic("1.5", Divide, "0"), "22012"),
        (arithmetic("1e308", Multiply, "10"), "22003"),
        (cast("\"abc\"", ColumnType::Int8), "22P02"),
        (cast("\"19.99\"", ColumnType::Int8), "22P02"),
        (cast("\"99999999999\"", ColumnType::Int4), "22003"),
        (cast("\"NaN\"", ColumnType::Float8), "0A000"),
        (Expr::Arithmetic(Subtract, Box::new(infinity()), Box::new(infinity())), "0A000"),
    ] {
        assert_eq!(error_of(&expr).code.sqlstate(), sqlstate, "{expr}");
    }
    let error = error_of(&cast("\"abc\"", ColumnType::Int8));
    assert_eq!(
        (error.code, &*error.message),
        (ErrorCode::InvalidText, "\"abc\" is not a valid bigint")
    );
    // A condition is not evaluated if another one decides the result.
    let fails =
        Expr::Compare(CompareOp::Eq, Box::new(cast("\"abc\"", ColumnType::Int8)), literal("1"));
    assert_eq!(value_of(&Expr::And(vec![*literal("false"), fails.clone()])), Value::Bool(false));
    assert_eq!(value_of(&Expr::Or(vec![*literal("true"), fails])), Value::Bool(true));
}

#[test]
fn operands_of_a_wrong_type_give_null_and_missing_stays_missing() {
    use ArithmeticOp::*;
    for (l, op, r) in [("1", Add, "\"1\""), ("null", Add, "1"), ("null", Divide, "0")] {
        assert_eq!(arithmetic_of(l, op, r), Value::Null, "{l} {op:?} {r}");
    }
    assert_eq!(arithmetic_of("missing", Add, "1"), Value::Missing);
    assert_eq!(call_of(Function::Lower, "missing"), Value::Missing);
    assert_eq!(cast_of("missing", ColumnType::Int8), Value::Missing);
}

#[test]
fn a_double_is_rounded_to_even_before_its_cast() {
    for (double, even) in [("2.5", "2"), ("3.5", "4"), ("-2.5", "-2"), ("7", "7"), ("null", "null")]
    {
        let rounded = Expr::Call(Function::RoundToEven, vec![*literal(double)]);
        assert_eq!(value_of(&Expr::Cast(Box::new(rounded), ColumnType::Int8)), json(even));
    }
}

#[test]
fn functions() {
    assert_eq!(call_of(Function::Lower, "\"ÄB\""), json("\"äb\""));
    assert_eq!(call_of(Function::Upper, "\"äb\""), json("\"ÄB\""));
    assert_eq!(call_of(Function::Length, "\"äb😀\""), json("3"));
    assert_eq!(call_of(Function::Length, "[1,2]"), Value::Null);
    assert_eq!(call_of(Function::Abs, "-9223372036854775808"), json("9223372036854775808"));
    assert_eq!(call_of(Function::Abs, "-1.5"), json("1.5"));
    let coalesce = |list: &[&str]| {
        value_of(&Expr::Call(Function::Coalesce, list.iter().map(|item| *literal(item)).collect()))
    };
    assert_eq!(coalesce(&["missing", "null", "false", "1"]), Value::Bool(false));
    assert_eq!(coalesce(&["missing", "null"]), Value::Null);
}

/// The expression has 500 operators, the limit of the parsers; the stack has 1 MiB, half of a
/// worker thread's stack, in a build without optimization.
#[test]
fn deep_expressions_do_not_overflow_the_stack() {
    let deep = |wrap: fn(Box<Expr>) -> Expr| {
        (0..500).fold(*literal("1"), |inner, _| wrap(Box::new(inner)))
    };
    let shapes: [fn(Box<Expr>) -> Expr; 7] = [
        |inner| Expr::Arithmetic(ArithmeticOp::Add, inner, literal("1")),
        |inner| Expr::Cast(inner, ColumnType::Text),
        Expr::Negate,
        Expr::Not,
        |inner| Expr::And(vec![*inner]),
        |inner| Expr::Call(Function::Coalesce, vec![*inner]),
        |inner| Expr::In { expr: inner, list: InList::from(vec![]), negated: false },
    ];
    #[allow(clippy::disallowed_methods, reason = "the test needs a stack of its own size")]
    let builder = std::thread::Builder::new().stack_size(1 << 20);
    let thread = builder.spawn(move || {
        for shape in shapes {
            let expr = deep(shape);
            assert_eq!(expr.operators(), 500);
            assert_eq!(value_of(&expr.clone()), value_of(&expr));
            assert!(!expr.to_string().is_empty());
        }
    });
    thread.expect("a thread starts").join().expect("the stack is deep enough");
}
