//! The order of encoded keys against a plain comparator over `serde_json` values that shares no code
//! with the product: all JSON types, nested, in composite keys of either direction.

use std::cmp::Ordering;

use proptest::prelude::*;
use proto::value::key::{
    EncodedConstant, decode_part, encode_part, part_as_bool, part_type_rank, skip_part,
    write_part_text,
};
use proto::value::{Value, compare, text};
use serde_json::Value as Json;

/// A part of a key in the test's model; None is MISSING.
type Part = Option<Json>;

fn number() -> impl Strategy<Value = Json> {
    let near = |center: i128| {
        (-3i128..=3).prop_map(move |offset| {
            let n = center + offset;
            match (i64::try_from(n), u64::try_from(n)) {
                (Ok(n), _) => Json::from(n),
                (_, Ok(n)) => Json::from(n),
                _ => Json::from(n as f64),
            }
        })
    };
    let finite = any::<f64>().prop_filter("finite", |f| f.is_finite());
    prop_oneof![
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        (-300i64..300).prop_map(Json::from),
        (-2000i64..2000).prop_map(|n| Json::from(n as f64 / 8.0)),
        (any::<i64>(), any::<bool>()).prop_map(|(n, up)| {
            let f = n as f64;
            Json::from(if up { f.next_up() } else { f.next_down() })
        }),
        (0u32..66, any::<bool>()).prop_flat_map(move |(bits, negative)| {
            let center = 1i128 << bits;
            near(if negative { -center } else { center })
        }),
        (0i32..64, 0u32..4).prop_map(|(bits, steps)| {
            Json::from((0..steps).fold(2f64.powi(bits), |f, _| f.next_up()))
        }),
        finite.prop_map(Json::from),
        Just(Json::from(-0.0)),
        Just(Json::from(f64::MIN_POSITIVE / 4.0)),
    ]
}

fn string() -> impl Strategy<Value = String> {
    prop_oneof![
        "[\u{0}\u{1}\u{2}a\u{7f}é\u{ffff}\u{10ffff}]{0,4}",
        ".{0,12}",
        ("[\u{0}\u{1}a]{0,3}", 0usize..3000).prop_map(|(end, n)| "x\0".repeat(n) + &end),
    ]
}

fn json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        1 => Just(Json::Null),
        1 => any::<bool>().prop_map(Json::from),
        4 => number(),
        3 => string().prop_map(Json::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            prop::collection::btree_map("[\u{0}ab]{0,2}", inner, 0..4)
                .prop_map(|fields| Json::Object(fields.into_iter().collect())),
        ]
    })
}

/// Pairs that often share a beginning, so that the later parts decide.
fn keys() -> impl Strategy<Value = (Vec<Part>, Vec<Part>, Vec<bool>)> {
    let part = prop_oneof![9 => json().prop_map(Some), 1 => Just(None)];
    let parts = prop::collection::vec(part.clone(), 3);
    (parts.clone(), parts, prop::collection::vec(any::<bool>(), 3), 0usize..4).prop_map(
        |(a, mut b, descending, shared)| {
            b[..shared.min(3)].clone_from_slice(&a[..shared.min(3)]);
            (a, b, descending)
        },
    )
}

fn rank(part: &Part) -> u8 {
    match part {
        None => 0,
        Some(Json::Null) => 1,
        Some(Json::Bool(false)) => 2,
        Some(Json::Bool(true)) => 3,
        Some(Json::Number(_)) => 4,
        Some(Json::String(_)) => 5,
        Some(Json::Array(_)) => 6,
        Some(Json::Object(_)) => 7,
    }
}

/// A number as a sign, and its exact magnitude as binary digits before and after the point.
fn digits(number: &serde_json::Number) -> (bool, [Vec<u8>; 2]) {
    if let Some(n) = number.as_i64().map(i128::from).or(number.as_u64().map(i128::from)) {
        let whole = format!("{:0>1100b}", n.unsigned_abs());
        return (n < 0, [whole.into_bytes(), vec![b'0'; 1100]]);
    }
    let f = number.as_f64().expect("every JSON number is a double or an integer");
    let mut whole = Vec::new();
    let mut rest = f.abs().trunc();
    for _ in 0..1100 {
        whole.push(if rest % 2.0 == 1.0 { b'1' } else { b'0' });
        rest = (rest / 2.0).trunc();
    }
    whole.reverse();
    let mut fraction = Vec::new();
    let mut rest = f.abs().fract();
    for _ in 0..1100 {
        rest *= 2.0;
        fraction.push(if rest >= 1.0 { b'1' } else { b'0' });
        rest = rest.fract();
    }
    (f < 0.0, [whole, fraction])
}

fn plain_number_order(a: &serde_json::Number, b: &serde_json::Number) -> Ordering {
    let ((a_negative, a), (b_negative, b)) = (digits(a), digits(b));
    match (a_negative, b_negative) {
        (false, false) => a.cmp(&b),
        (true, true) => b.cmp(&a),
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
    }
}

fn plain_order(a: &Part, b: &Part) -> Ordering {
    match (a, b) {
        (Some(Json::Number(a)), Some(Json::Number(b))) => plain_number_order(a, b),
        (Some(Json::String(a)), Some(Json::String(b))) => a.as_bytes().cmp(b.as_bytes()),
        (Some(Json::Array(a)), Some(Json::Array(b))) => {
            for (a, b) in a.iter().zip(b) {
                let order = plain_order(&Some(a.clone()), &Some(b.clone()));
                if order.is_ne() {
                    return order;
                }
            }
            a.len().cmp(&b.len())
        }
        (Some(Json::Object(a)), Some(Json::Object(b))) => {
            let sorted = |object: &serde_json::Map<String, Json>| {
                let mut fields: Vec<_> = object.clone().into_iter().collect();
                fields.sort_by(|a, b| a.0.cmp(&b.0));
                fields
            };
            if a.len() != b.len() {
                return a.len().cmp(&b.len());
            }
            for ((a_name, a), (b_name, b)) in sorted(a).into_iter().zip(sorted(b)) {
                let order = a_name.cmp(&b_name).then_with(|| plain_order(&Some(a), &Some(b)));
                if order.is_ne() {
                    return order;
                }
            }
            Ordering::Equal
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

fn value(part: &Part) -> Value {
    match part {
        None => Value::Missing,
        Some(json) => {
            Value::parse_json(json.to_string().as_bytes()).expect("serde_json writes JSON")
        }
    }
}

fn encode(parts: &[Part], descending: &[bool]) -> Vec<u8> {
    let mut out = Vec::new();
    for (part, &descending) in parts.iter().zip(descending) {
        encode_part(&value(part), descending, &mut out);
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn bytes_order_as_the_values_do((a, b, descending) in keys()) {
        let mut expected = Ordering::Equal;
        for ((a, b), &descending) in a.iter().zip(&b).zip(&descending) {
            let order = plain_order(a, b);
            prop_assert_eq!(compare(&value(a), &value(b)), order, "{:?} {:?}", a, b);
            expected = expected.then(if descending { order.reverse() } else { order });
        }
        prop_assert_eq!(encode(&a, &descending).cmp(&encode(&b, &descending)), expected);
    }

    /// A part can be anywhere in an entry, before any bytes.
    #[test]
    fn a_part_compares_with_a_constant_as_the_values_do((a, b, descending) in keys()) {
        let bytes = encode(&a, &descending);
        let mut rest = &bytes[..];
        for ((a, b), &descending) in a.iter().zip(&b).zip(&descending) {
            let (part, other) = (value(a), value(b));
            let constant = EncodedConstant::new(&other, descending);
            prop_assert_eq!(constant.order_of(rest), plain_order(a, b), "{:?} {:?}", a, b);
            prop_assert_eq!(constant.type_rank(), other.type_rank());
            prop_assert_eq!(part_type_rank(rest, descending), part.type_rank());
            prop_assert_eq!(part_as_bool(rest, descending), part.as_bool());
            rest = &rest[skip_part(rest, descending).expect("well formed")..];
        }
    }

    #[test]
    fn bytes_decode_to_the_value((parts, _, descending) in keys()) {
        let bytes = encode(&parts, &descending);
        let (mut rest, mut skipped, mut text_rest) = (&bytes[..], 0, &bytes[..]);
        for (part, &descending) in parts.iter().zip(&descending) {
            let expected = value(part);
            skipped += skip_part(&bytes[skipped..], descending).expect("well formed");
            prop_assert_eq!(decode_part(&mut rest, descending).expect("well formed"), expected.clone());
            prop_assert_eq!(rest.len(), bytes.len() - skipped);
            let mut out = b"before".to_vec();
            let present = write_part_text(&mut text_rest, descending, &mut out).expect("well formed");
            prop_assert_eq!(text_rest.len(), rest.len());
            let written = present.then(|| String::from_utf8(out[6..].to_vec()).expect("text"));
            prop_assert_eq!(written, text(&expected).map(String::from));
        }
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn json_written_reads_back_the_same(json in json()) {
        let first = value(&Some(json));
        prop_assert_eq!(Value::parse_json(first.to_json().as_bytes()).expect("own output"), first);
    }

    /// Corrupt keys are errors: no panic, and all decoders agree on the end of a key.
    #[test]
    fn any_bytes_decode_or_are_refused(
        (parts, _, directions) in keys(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        noise in prop::collection::vec(any::<u8>(), 0..40),
        descending in any::<bool>(),
    ) {
        let mut damaged = encode(&parts, &directions);
        for (at, byte) in flips {
            let at = at.index(damaged.len());
            damaged[at] = byte;
        }
        for bytes in [damaged, noise] {
            let mut rest = &bytes[..];
            let _ = write_part_text(&mut &bytes[..], descending, &mut Vec::new());
            if let Ok(value) = decode_part(&mut rest, descending) {
                prop_assert_eq!(skip_part(&bytes, descending), Ok(bytes.len() - rest.len()));
                let mut again = Vec::new();
                encode_part(&value, descending, &mut again);
                // Fields out of order are the one freedom that the decoder leaves.
                if !matches!(value, Value::Object(_) | Value::Array(_)) {
                    prop_assert!(bytes.starts_with(&again), "{:?} has two encodings", value);
                }
            }
        }
    }
}
