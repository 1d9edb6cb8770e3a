//! Targets for values, keys, expressions and settings, which come from several origins.

use std::cell::OnceCell;

use proto::env::Env;
use proto::expr::cost::CostMeter;
use proto::expr::eval::{DocumentScope, Evaluation};
use proto::expr::{Expr, Fields};
use proto::value::key::{
    decode_part, encode_part, part_as_bool, part_type_rank, skip_part, write_part_text,
};
use proto::value::{CheckedField, Value, check_json, check_json_with_field};

use super::target::Target;
use super::world;

/// The targets that read values and expressions.
pub const TARGETS: &[Target] = &[
    Target::new("json", json, documents).with_bytes_each(512).with_words(&[
        "{",
        "}",
        "[",
        "]",
        "\"",
        ":",
        ",",
        "true",
        "null",
        "1e999",
        "-0",
        "\\u0000",
        "\\ud83d\\ude00",
        "\\",
        "\"a\":",
        "0.1",
        "9007199254740993",
        "18446744073709551616",
    ]),
    Target::new("key_part", key_part, key_parts).with_bytes_each(512),
    Target::new("expression", expression, expressions).with_bytes_each(1 << 14),
    Target::new("settings", settings, || vec![SETTINGS.as_bytes().to_vec()])
        .with_bytes_each(1 << 12)
        .with_share(0.3)
        .with_words(&[
            "[",
            "]",
            "\"\"\"",
            "''",
            "= ",
            "\n",
            "coordinators",
            "1979-05-27",
            "inf",
            "0x",
            "{",
            "}",
            ".",
            "true",
        ]),
];

const DOCUMENTS: [&str; 5] = [
    r#"{"country":"DE","name":"Ulm","population":120000,"tags":["a","b"],"kind":"city"}"#,
    r#"{"a":{"b":[1,-2.5e-3,0.1,{"c":null}]},"d":true,"e":"\u00e9\n\ud83d\ude00","a":1}"#,
    r#"[9007199254740993, 1e308, -0.0, 18446744073709551615, "x\\y"]"#,
    " \t\r\n \"text\" ",
    r#"{"id":7,"":{"":""}}"#,
];

fn documents() -> Vec<Vec<u8>> {
    let deep = ["[".repeat(32), "]".repeat(32)].concat();
    DOCUMENTS.iter().map(|text| text.as_bytes().to_vec()).chain([deep.into_bytes()]).collect()
}

/// Asserts that the checker and the parser agree, and that printed values are parsed again.
fn json(data: &[u8]) {
    let parsed = Value::parse_json(data);
    assert_eq!(
        check_json(data),
        parsed.as_ref().map(|_| ()).map_err(Clone::clone),
        "both judge alike"
    );
    let names = ["a".to_owned(), "tags".to_owned()];
    let fields = Value::parse_json_fields(data, &names);
    assert_eq!(fields.is_ok(), parsed.is_ok(), "the reader of fields judges alike");
    let found = check_json_with_field(data, "a");
    let Ok(value) = parsed else {
        assert!(found.is_err(), "the finder of a field judges alike");
        return;
    };
    let printed = value.to_json();
    assert_eq!(Value::parse_json(printed.as_bytes()).as_ref(), Ok(&value), "read as it is printed");
    let Value::Object(object) = &value else { return };
    let of_field = match found {
        Ok(CheckedField::Text(text)) => Some(Value::from(text)),
        Ok(CheckedField::Value(value)) => value,
        other => panic!("an object, and {other:?}"),
    };
    assert_eq!(of_field.as_ref(), object.get("a"), "the same value of a field");
    if let Ok(Value::Object(fields)) = fields {
        assert!(names.iter().all(|name| fields.get(name) == object.get(name)), "the same fields");
    }
}

fn key_parts() -> Vec<Vec<u8>> {
    let values = DOCUMENTS.iter().filter_map(|text| Value::parse_json(text.as_bytes()).ok());
    let mut parts = Vec::new();
    for value in values.chain([Value::Missing, Value::Null, Value::int(-7), Value::float(0.1)]) {
        for descending in [false, true] {
            let mut part = vec![u8::from(descending)];
            encode_part(&value, descending, &mut part);
            parts.push(part);
        }
    }
    parts
}

/// Asserts that a decodable part has only one encoding, and that the shortcuts for reading it agree
/// with the decoder.
fn key_part(data: &[u8]) {
    let Some((first, bytes)) = data.split_first() else { return };
    let descending = first & 1 == 1;
    let mut rest = bytes;
    let decoded = decode_part(&mut rest, descending);
    let skipped = skip_part(bytes, descending);
    let _ = (part_type_rank(bytes, descending), part_as_bool(bytes, descending));
    let mut printed = Vec::new();
    let _ = write_part_text(&mut &*bytes, descending, &mut printed);
    if let Ok(value) = decoded {
        let length = bytes.len() - rest.len();
        assert_eq!(skipped, Ok(length), "a part is as long for both");
        let mut again = Vec::new();
        encode_part(&value, descending, &mut again);
        let mut behind = &again[..];
        assert_eq!(
            decode_part(&mut behind, descending).as_ref(),
            Ok(&value),
            "read as it is written"
        );
    }
}

fn expressions() -> Vec<Vec<u8>> {
    let spec = world::spec(
        "CREATE INDEX i ON b (a.b[0] + 2 * -c, coalesce(lower(x), 'y')::text, n % 3) INCLUDE (t IN ('a', 'b', 'c')) \
         WHERE (kind LIKE 'c%' OR NOT x IS MISSING) AND n BETWEEN 1 AND 5",
    );
    let keys = spec.keys.iter().map(|key| &key.expr).chain(&spec.predicate);
    let all = keys.chain(spec.include.iter().map(|column| &column.expr));
    all.filter_map(|expr| postcard::to_stdvec(expr).ok()).collect()
}

/// Prints and evaluates an expression of another process, within its cost limit.
fn expression(data: &[u8]) {
    let Ok(expr) = postcard::from_bytes::<Expr>(data) else { return };
    let _ = (expr.to_string().len(), Fields::of([&expr]));
    for text in &DOCUMENTS[..2] {
        let doc = Value::parse_json(text.as_bytes()).expect("a document");
        let scope = DocumentScope { id: "a", doc: &doc };
        let cost = CostMeter::for_evaluation();
        let _ = Evaluation::of_definition(&scope, &cost).eval(&expr);
        let _ = Evaluation::of_query(&scope, &cost).truth(&expr);
    }
}

const SETTINGS: &str = "id = 3\npeer_listen = \"127.0.0.1:7000\"\nadvertise = \"node-3\"\ndata = \"/tmp/x\"\n\
    coordinators = [\"1=127.0.0.1:7001\", \"2=[::1]:7002\"]\nzone = 'z1'\ninsecure = true\n\
    memory_mb = 1_024\nscans_max = 64\ntls_cert = \"a.pem\"\nlost_after_s = 60\nsql = \"localhost:5432\"\n";

fn settings(data: &[u8]) {
    thread_local! {
        static ENV: OnceCell<Env> = const { OnceCell::new() };
    }
    ENV.with(|env| sextant::cli::fuzz::settings(env.get_or_init(Env::real), data));
}
