use super::*;

fn json(value: StoredValue<'_>, kind: Kind) -> Result<String> {
    let mut out = Vec::new();
    write_value(value, kind, &mut out)?;
    Ok(String::from_utf8(out).expect("text"))
}

#[test]
fn values_convert_to_exact_json() {
    use StoredValue::{Bool, Bytes, Double, Float, Int};
    let uuid: Vec<u8> = (0..16).collect();
    for (value, kind, expected) in [
        (Bool(true), Kind::Bool, "true"),
        (Int(-128), Kind::Signed(8), "-128"),
        (Int(i64::MIN), Kind::Signed(64), "-9223372036854775808"),
        (Int(65_535), Kind::Unsigned(16), "65535"),
        (Int(-1), Kind::Unsigned(32), "4294967295"),
        (Int(-1), Kind::Unsigned(64), "18446744073709551615"),
        (Double(f64::NAN), Kind::Float, "null"),
        (Double(1e300), Kind::Float, "1e300"),
        (Double(2.0), Kind::Float, "2.0"),
        (Float(0.1), Kind::Float, "0.1"),
        (Bytes(&[0x00, 0x3c]), Kind::Half, "1.0"),
        (Bytes(&[0x01, 0x80]), Kind::Half, "-5.960464477539063e-8"),
        (Bytes(&[0x00, 0xfc]), Kind::Half, "null"),
        (Bytes(b"a\"b"), Kind::Text, r#""a\"b""#),
        (Int(-5), Kind::Decimal(3), "-0.005"),
        (Int(1_234), Kind::Decimal(2), "12.34"),
        (Int(-7), Kind::Decimal(0), "-7"),
        (Bytes(&[0xff; 20]), Kind::Decimal(1), "-0.1"),
        (Int(0), Kind::Date, r#""1970-01-01""#),
        (Int(-1), Kind::Date, r#""1969-12-31""#),
        (Int(20_512), Kind::Date, r#""2026-02-28""#),
        (Int(11_016), Kind::Date, r#""2000-02-29""#),
        (Int(86_399_500), Kind::Time(Unit::Millis), r#""23:59:59.500""#),
        (Int(-1), Kind::Timestamp(Unit::Millis, true), r#""1969-12-31T23:59:59.999Z""#),
        (Int(1), Kind::Timestamp(Unit::Micros, false), r#""1970-01-01T00:00:00.000001""#),
        (Int(i64::MIN), Kind::Timestamp(Unit::Nanos, true), r#""1677-09-21T00:12:43.145224192Z""#),
        (Bytes(&uuid), Kind::Uuid, r#""00010203-0405-0607-0809-0a0b0c0d0e0f""#),
    ] {
        assert_eq!(json(value, kind).as_deref(), Ok(expected), "{value:?} {kind:?}");
    }
    let int96 = |nanos: u64, day| Int96::from(vec![nanos as u32, (nanos >> 32) as u32, day]);
    let value = int96(1, 2_440_587);
    let expected = r#""1969-12-31T00:00:00.000000001""#;
    assert_eq!(json(StoredValue::Int96(&value), Kind::Int96).as_deref(), Ok(expected));
    let mut large = vec![0; 20];
    large[3] = 1;
    let beyond = int96(86_400_000_000_000, 1);
    for (value, kind) in [
        (Bytes(&[0xff]), Kind::Text),
        (Bytes(&large), Kind::Decimal(0)),
        (Int(128), Kind::Signed(8)),
        (Int(-1), Kind::Unsigned(8)),
        (Int(86_400_000), Kind::Time(Unit::Millis)),
        (StoredValue::Int96(&beyond), Kind::Int96),
        (Bytes(&[0; 15]), Kind::Uuid),
        (Int(1), Kind::Nothing),
    ] {
        assert!(json(value, kind).is_err(), "{value:?} {kind:?}");
    }
}
