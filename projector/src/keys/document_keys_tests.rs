//! Tests of the entries of a document.

use proto::expr::{ColumnType, CompareOp, Expr};
use proto::model::index::{INCLUDED_KB_DEFAULT, IncludedColumn, KeyPart};
use proto::value::key::decode_part;
use proto::value::path::Step;

use super::*;

fn path(name: &str) -> Expr {
    Expr::Path(vec![Step::Field(name.into())])
}

fn spec(keys: Vec<(Expr, bool)>) -> IndexSpec {
    let part = |(expr, descending): (Expr, bool)| KeyPart {
        expr,
        name: String::new(),
        column_type: ColumnType::Text,
        descending,
        include_missing: false,
    };
    IndexSpec {
        primary: keys.is_empty(),
        keys: keys.into_iter().map(part).collect(),
        ..IndexSpec::new("i", "b")
    }
}

/// The decoded entries of a document.
fn entries(spec: &IndexSpec, doc: &str) -> Vec<Vec<Value>> {
    let doc = Value::parse_json(doc.as_bytes()).expect("a document");
    let keys =
        document_keys(spec, "id", &doc, &CostMeter::for_evaluation()).expect("within limits").keys;
    let decode = |key: &Vec<u8>| {
        let mut rest = &key[..];
        let parts = spec.keys.iter().map(|part| decode_part(&mut rest, part.descending));
        parts.collect::<proto::Result<_>>().expect("well formed")
    };
    keys.iter().map(decode).collect()
}

#[test]
fn an_array_key_has_one_entry_for_each_distinct_element() {
    let spec = spec(vec![
        (path("a"), false),
        (Expr::Unnest(Box::new(path("tags"))), true),
        (path("z"), false),
    ]);
    let found = entries(&spec, r#"{"a":1,"tags":["x",2,"x",2.0,null],"z":3}"#);
    let expect = |element| vec![Value::int(1), element, Value::int(3)];
    // In encoded order, because the array part is descending.
    assert_eq!(found, [expect(Value::from("x")), expect(Value::int(2)), expect(Value::Null)]);
    for none in [r#"{"a":1,"tags":[]}"#, r#"{"a":1,"tags":"x"}"#, r#"{"a":1}"#] {
        assert!(entries(&spec, none).is_empty(), "{none}");
    }
}

#[test]
fn a_missing_leading_key_or_an_untrue_predicate_means_no_entry() {
    let mut spec = spec(vec![(path("a"), false), (path("b"), false)]);
    assert!(entries(&spec, r#"{"b":1}"#).is_empty());
    assert_eq!(entries(&spec, r#"{"a":null}"#), [[Value::Null, Value::Missing]]);
    spec.keys[0].include_missing = true;
    assert_eq!(entries(&spec, r#"{"b":1}"#), [[Value::Missing, Value::int(1)]]);
    let literal = Expr::Literal(Value::int(5));
    spec.predicate = Some(Expr::Compare(CompareOp::Less, Box::new(path("b")), Box::new(literal)));
    assert_eq!(entries(&spec, r#"{"b":1}"#).len(), 1);
    for out in [r#"{"b":5}"#, r#"{"b":"1"}"#, r#"{"a":1}"#] {
        assert!(entries(&spec, out).is_empty(), "{out}");
    }
}

#[test]
fn a_primary_index_has_one_entry_for_each_document() {
    assert_eq!(entries(&spec(Vec::new()), "{}"), [Vec::<Value>::new()]);
}

#[test]
fn keys_and_included_values_over_their_limits_are_refused() {
    let mut spec = spec(vec![(Expr::Unnest(Box::new(path("a"))), false)]);
    spec.include.push(IncludedColumn {
        expr: path("b"),
        name: String::new(),
        column_type: ColumnType::Text,
    });
    let keys_of = |spec: &IndexSpec, a: usize, b: usize| {
        let doc = format!(r#"{{"a":[1,"{}"],"b":"{}"}}"#, "x".repeat(a), "y".repeat(b));
        let doc = Value::parse_json(doc.as_bytes()).expect("a document");
        document_keys(spec, "id", &doc, &CostMeter::for_evaluation())
            .map(|keys| keys.keys.len())
            .map_err(|e| e.reason)
    };
    // A string takes two bytes more than its text.
    let include_bytes_max = usize::from(INCLUDED_KB_DEFAULT) << 10;
    let keys = |a, b| keys_of(&spec, a, b);
    assert_eq!(keys(KEY_BYTES_MAX - 2, include_bytes_max - 2), Ok(2));
    assert_eq!(keys(KEY_BYTES_MAX - 1, 0), Err(LeftOutReason::KeyTooLong));
    assert_eq!(keys(0, include_bytes_max - 1), Err(LeftOutReason::IncludeTooLong));
    let wider = IndexSpec { included_kb_max: INCLUDED_KB_DEFAULT + 1, ..spec.clone() };
    assert_eq!(keys_of(&wider, 0, include_bytes_max + 1022), Ok(2), "the index has its own limit");
    assert_eq!(keys_of(&wider, 0, include_bytes_max + 1023), Err(LeftOutReason::IncludeTooLong));
}

#[test]
fn a_document_with_too_many_or_too_long_entries_together_is_refused() {
    let spec = spec(vec![
        (path("a"), false),
        (Expr::Unnest(Box::new(path("tags"))), false),
        (path("z"), false),
    ]);
    let keys = |a: usize, tags: usize| {
        let tags: Vec<_> = (0..tags).collect();
        let doc = format!(r#"{{"a":"{}","tags":{tags:?},"z":1}}"#, "x".repeat(a));
        let doc = Value::parse_json(doc.as_bytes()).expect("a document");
        document_keys(&spec, "id", &doc, &CostMeter::for_evaluation())
    };
    assert_eq!(keys(1, ENTRIES_MAX).map(|keys| keys.keys.len()), Ok(ENTRIES_MAX));
    let many = keys(1, ENTRIES_MAX + 1).expect_err("too many");
    assert!(many.what.contains("16385 entries"), "{many:?}");
    let fit = keys(4000, 250).expect("about a million bytes");
    let bytes: usize = fit.keys.iter().map(Vec::len).sum();
    assert!(bytes <= ENTRIES_BYTES_MAX && bytes > 1_000_000, "{bytes}");
    let long = keys(4000, 270).expect_err("too long");
    assert_eq!(long.reason, LeftOutReason::EntriesTooLong);
    assert!(long.what.contains("270 entries"), "{long:?}");
}

#[test]
fn a_document_whose_expressions_cost_too_much_is_refused_soon() {
    let mut spec = spec(vec![(path("a"), false)]);
    let pattern = Expr::Literal(Value::String(format!("%_{}b%", "a".repeat(20_000))));
    let (expr, pattern) = (Box::new(path("text")), Box::new(pattern));
    spec.predicate = Some(Expr::Like { expr, pattern, negated: false });
    let doc = format!(r#"{{"a":1,"text":"{}"}}"#, "a".repeat(50_000));
    let doc = Value::parse_json(doc.as_bytes()).expect("a document");
    let cost = CostMeter::for_evaluation();
    let refused = document_keys(&spec, "id", &doc, &cost).expect_err("too costly");
    assert_eq!(refused.reason, LeftOutReason::TooCostly);
    assert!(cost.spent() < 11_000_000, "{}", cost.spent());
}
