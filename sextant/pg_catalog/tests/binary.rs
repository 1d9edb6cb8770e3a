//! Values have PostgreSQL's binary form, and are read from it.

mod common;

use pg_catalog::types::binary::{read, write};
use pg_catalog::types::names::Names;
use pg_catalog::types::oid::{self, Oid};
use pg_catalog::types::text::parse;
use pg_catalog::types::{Field, Type};
use proto::value::Value;

use self::common::{User, snapshot};

/// Writes a value, and reads it again.
fn round_trip(text: &str, ty: Oid) -> Vec<u8> {
    let relations = snapshot();
    let names = Names { relations: &relations, session: &User };
    let value = parse(text, ty, &names).expect(text);
    let mut bytes = Vec::new();
    write(&value, &ty.into(), &names, &mut bytes).expect(text);
    assert_eq!(read(&bytes, ty, &names), Ok(value), "{text}");
    assert!(bytes.is_empty() || read(&bytes[1..], ty, &names).is_err() || ty == oid::TEXT);
    bytes
}

#[test]
fn values_have_the_binary_form_of_postgresql() {
    assert_eq!(round_trip("t", oid::BOOL), [1]);
    assert_eq!(round_trip("-2", oid::INT2), [0xFF, 0xFE]);
    assert_eq!(round_trip("4294967295", oid::OID), [0xFF; 4]);
    assert_eq!(round_trip("1.5", oid::FLOAT8), [0x3F, 0xF8, 0, 0, 0, 0, 0, 0]);
    assert_eq!(round_trip("abc", oid::TEXT), *b"abc");
    assert_eq!(round_trip("{\"a\": 1}", oid::JSONB), *b"\x01{\"a\": 1}");
    // As PostgreSQL's numeric_send writes them: count, weight, sign, scale, digits.
    assert_eq!(
        round_trip("12345.67", oid::NUMERIC),
        [0, 3, 0, 1, 0, 0, 0, 2, 0, 1, 0x09, 0x29, 0x1A, 0x2C]
    );
    assert_eq!(round_trip("-0.0001", oid::NUMERIC), [0, 1, 0xFF, 0xFF, 0x40, 0, 0, 4, 0, 1]);
    assert_eq!(round_trip("0", oid::NUMERIC), [0; 8]);
    assert_eq!(round_trip("10000", oid::NUMERIC), [0, 1, 0, 1, 0, 0, 0, 0, 0, 1]);
    round_trip("{{1,2},{NULL,4}}", oid::INT4_ARRAY);
    round_trip("{}", oid::TEXT_ARRAY);
    let vector = round_trip("1 2", oid::INT2VECTOR);
    // One dimension of two elements that begins at 0.
    assert_eq!(vector[..20], [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 21, 0, 0, 0, 2, 0, 0, 0, 0]);
}

#[test]
fn a_row_has_the_types_and_the_lengths_of_its_fields() {
    let relations = snapshot();
    let names = Names { relations: &relations, session: &User };
    let field = |ty: Oid| Field { name: "f".to_owned(), ty: ty.into() };
    let ty = Type::Row([field(oid::INT2), field(oid::TEXT)].into());
    let mut bytes = Vec::new();
    write(&Value::Array(vec![Value::int(7), Value::Null]), &ty, &names, &mut bytes).expect("a row");
    let expected = [0, 0, 0, 2, 0, 0, 0, 21, 0, 0, 0, 2, 0, 7, 0, 0, 0, 25, 255, 255, 255, 255];
    assert_eq!(bytes, expected);
}

#[test]
fn bytes_that_are_no_value_are_refused() {
    let relations = snapshot();
    let names = Names { relations: &relations, session: &User };
    let huge = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 23, 0x7F, 0xFF, 0xFF, 0xFF, 0, 0, 0, 1];
    for (bytes, ty) in [
        (&[][..], oid::INT4),
        (&[0; 5], oid::INT4),
        (&[0; 3], oid::NUMERIC),
        (&huge, oid::INT4_ARRAY),
        (&[0xFF], oid::TEXT),
        (b"x", oid::JSONB),
    ] {
        assert!(read(bytes, ty, &names).is_err(), "{bytes:?} of type {ty}");
    }
}
