//! Random documents, in all of JSON's types and spellings.

use fastrand::Rng;

use super::super::Document;
use super::super::json::{self, Json, Num};
use super::{chance, pick};

pub(super) const STRINGS: &[&str] = &[
    "",
    "a",
    "ann",
    "Ann",
    "anna",
    "an%a",
    "an_a",
    "b",
    "bob",
    "BOB",
    "bob's",
    "say \"x\"",
    "back\\slash",
    "two\nlines",
    "tab\there",
    "zero\u{0}inside",
    "\u{1}",
    "\u{7f}",
    "ä",
    "Éa",
    "😀",
    "ﬀ",
    "z",
    "10",
    "9",
    " 12 ",
    "3.5",
    "1e3",
    "true",
    "f",
    "null",
    "\\.",
    "\\N",
    "carriage\rreturn",
];

const INTEGERS: &[i128] = &[
    0,
    1,
    2,
    3,
    4,
    5,
    7,
    10,
    -1,
    -2,
    -10,
    100,
    255,
    256,
    65_536,
    9_007_199_254_740_992,
    9_007_199_254_740_993,
    i64::MAX as i128,
    i64::MIN as i128,
    u64::MAX as i128,
    2_147_483_648,
];

const REALS: &[f64] =
    &[0.5, -0.5, 1.5, 2.25, 3.75, -7.125, 0.1, 0.2, 0.3, 99.99, 1e-7, 4_503_599_627_370_495.5];

/// Numbers that are too large for the model's sums.
const EXTREME: &[f64] =
    &[1e300, -1e300, 5e-324, 18_446_744_073_709_551_616.0, 1.7976931348623157e308];

/// Returns an id that may or may not belong to a document.
pub fn id(rng: &mut Rng, documents: usize) -> String {
    match rng.usize(..documents) {
        0 => "it's".to_owned(),
        1 => "é\"\\".to_owned(),
        2 => "a b".to_owned(),
        n => format!("d{n}"),
    }
}

pub(super) fn string(rng: &mut Rng) -> Json {
    Json::from(match chance(rng, 90) {
        true => pick(rng, STRINGS).to_owned(),
        false => (0..rng.usize(..40)).map(|_| pick(rng, &['a', 'b', '\u{0}', 'é', '😀'])).collect(),
    })
}

pub(super) fn number(rng: &mut Rng) -> Json {
    match rng.u8(..10) {
        0..6 => Json::from(rng.i64(-3..12)),
        6..8 => Num::int(pick(rng, INTEGERS)).json(),
        _ => Num::real(pick(rng, REALS)).json(),
    }
}

pub(super) fn anything(rng: &mut Rng, depth: u8) -> Json {
    match rng.u8(..if depth == 0 { 6 } else { 8 }) {
        0 => Json::Null,
        1 => Json::from(rng.bool()),
        2 => number(rng),
        3 => Json::from(pick(rng, EXTREME)),
        4 | 5 => string(rng),
        6 => (0..rng.usize(..4)).map(|_| anything(rng, depth - 1)).collect(),
        _ => {
            let field = |rng: &mut Rng| {
                (pick(rng, &["a", "b", "city", "é"]).to_owned(), anything(rng, depth - 1))
            };
            Json::Object((0..rng.usize(..3)).map(|_| field(rng)).collect())
        }
    }
}

type MakeValue = fn(&mut Rng) -> Json;

/// Returns mostly a field's usual value, sometimes any other.
fn usually(rng: &mut Rng, usual: MakeValue) -> Json {
    match rng.u8(..100) {
        0..84 => usual(rng),
        84..92 => Json::Null,
        _ => anything(rng, 2),
    }
}

/// Returns a document in a random spelling.
pub fn document(rng: &mut Rng) -> Document {
    let fields: &[(&str, MakeValue)] = &[
        ("name", string),
        ("Name", string),
        ("n", number),
        ("m", number),
        ("score", |rng| Num::real(rng.i32(-40..40) as f64 / 8.0).json()),
        ("flag", |rng| Json::from(rng.bool())),
        ("address", |rng| {
            let city = usually(rng, string);
            serde_json::json!({ "city": city, "zip": usually(rng, number) })
        }),
        ("tags", |rng| (0..rng.usize(..5)).map(|_| usually(rng, string)).collect()),
        ("nums", |rng| (0..rng.usize(..4)).map(|_| number(rng)).collect()),
        ("misc", |rng| anything(rng, 3)),
        ("odd field", string),
    ];
    let mut object = serde_json::Map::new();
    for (name, usual) in fields {
        if chance(rng, 85) {
            object.insert((*name).to_owned(), usually(rng, *usual));
        }
    }
    spelled(rng, Json::Object(object))
}

/// Returns a document with a random spelling of a value.
pub fn spelled(rng: &mut Rng, value: Json) -> Document {
    let mut text = String::new();
    json::write(&value, &mut text, &mut AnySpelling(rng));
    Document { text, value }
}

/// A writer of random spellings: `1`, `1.0` and `1e0` are one number, `"a"` and `"\u0061"` one
/// string; of two fields with one name the last counts.
struct AnySpelling<'a>(&'a mut Rng);

impl json::Spelling for AnySpelling<'_> {
    fn number(&mut self, number: Num) -> String {
        match (number, self.0.u8(..8)) {
            (Num::Int(n), 0) => format!("{n}.0"),
            (Num::Int(n), 1) => format!("{n}e0"),
            (Num::Int(n), 2) if n % 10 == 0 && n != 0 => format!("{}E+1", n / 10),
            (Num::Real(f), 0) => format!("{f:e}"),
            (number, _) => number.text(),
        }
    }

    fn escape(&mut self, _: char) -> bool {
        chance(self.0, 3)
    }

    fn space(&mut self) -> &'static str {
        if chance(self.0, 10) { " " } else { "" }
    }

    fn doubled(&mut self) -> bool {
        chance(self.0, 2)
    }
}
