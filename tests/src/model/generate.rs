//! Documents, definitions and scans at random, from one seed. Values come from small pools, so that
//! documents share keys, scans find something, and every pool has its corner cases.

use fastrand::Rng;

use super::expr::{Expr, Predicate, Scope, Step, Type};
use super::index::{Entry, Index, Key};
use super::json::{self, Json, Num};
use super::scan::{Items, Order, Scan, summable};
use super::{Bucket, Document};

const STRINGS: &[&str] = &[
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

/// Beyond what the model adds up.
const EXTREME: &[f64] =
    &[1e300, -1e300, 5e-324, 18_446_744_073_709_551_616.0, 1.7976931348623157e308];

fn pick<T: Clone>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.usize(..from.len())].clone()
}

fn chance(rng: &mut Rng, percent: u8) -> bool {
    rng.u8(..100) < percent
}

/// A name of a document that may be there.
pub fn id(rng: &mut Rng, documents: usize) -> String {
    match rng.usize(..documents) {
        0 => "it's".to_owned(),
        1 => "é\"\\".to_owned(),
        2 => "a b".to_owned(),
        n => format!("d{n}"),
    }
}

fn string(rng: &mut Rng) -> Json {
    Json::from(match chance(rng, 90) {
        true => pick(rng, STRINGS).to_owned(),
        false => (0..rng.usize(..40)).map(|_| pick(rng, &['a', 'b', '\u{0}', 'é', '😀'])).collect(),
    })
}

fn number(rng: &mut Rng) -> Json {
    match rng.u8(..10) {
        0..6 => Json::from(rng.i64(-3..12)),
        6..8 => Num::int(pick(rng, INTEGERS)).json(),
        _ => Num::real(pick(rng, REALS)).json(),
    }
}

fn anything(rng: &mut Rng, depth: u8) -> Json {
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

/// The value that a field usually has, and sometimes any other.
fn usually(rng: &mut Rng, usual: fn(&mut Rng) -> Json) -> Json {
    match rng.u8(..100) {
        0..84 => usual(rng),
        84..92 => Json::Null,
        _ => anything(rng, 2),
    }
}

/// A document, in any of its spellings.
pub fn document(rng: &mut Rng) -> Document {
    let fields: &[(&str, fn(&mut Rng) -> Json)] = &[
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

/// A document with one of its spellings.
pub fn spelled(rng: &mut Rng, value: Json) -> Document {
    let mut text = String::new();
    json::write(&value, &mut text, &mut AnySpelling(rng));
    Document { text, value }
}

/// `1`, `1.0` and `1e0` are one number, `"a"` and `"\u0061"` one string; of two fields of one name the
/// last one counts.
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

fn path(rng: &mut Rng) -> Expr {
    let element = |name: &str, n| Expr::Path(vec![Step::Field(name.into()), Step::Element(n)]);
    match rng.u8(..13) {
        0 | 1 => Expr::path(&["name"]),
        2 => Expr::path(&["Name"]),
        3 | 4 => Expr::path(&["n"]),
        5 => Expr::path(&["score"]),
        6 => Expr::path(&["flag"]),
        7 | 8 => Expr::path(&["address", "city"]),
        9 => element("tags", 0),
        10 => element("tags", -1),
        11 => Expr::path(&["odd field"]),
        _ => Expr::path(&[pick(rng, &["misc", "m", "address", "tags", "absent"])]),
    }
}

/// An expression over a document, as it may be indexed.
fn expr(rng: &mut Rng) -> Expr {
    let cast = |e: Expr, to| Expr::Cast(Box::new(e), to);
    let over = |function, e: Expr| Expr::Call(function, Box::new(e));
    let small = |rng: &mut Rng| Box::new(Expr::Literal(Json::from(rng.i64(1..8))));
    match rng.u8(..22) {
        0..12 => path(rng),
        12 => cast(Expr::path(&["n"]), Type::Int8),
        13 => cast(Expr::path(&["score"]), pick(rng, &[Type::Float8, Type::Numeric])),
        14 => cast(Expr::path(&["flag"]), Type::Bool),
        15 => cast(path(rng), pick(rng, &[Type::Int8, Type::Int4, Type::Numeric, Type::Text])),
        16 => over("lower", Expr::path(&["name"])),
        17 => over("upper", Expr::path(&["address", "city"])),
        18 => over("length", Expr::path(&["name"])),
        19 => over("abs", Expr::path(&["n"])),
        20 => Expr::Coalesce(vec![Expr::path(&["absent"]), path(rng), path(rng)]),
        _ => Expr::Arithmetic(
            pick(rng, &['+', '-', '*', '/', '%']),
            Box::new(Expr::path(&["n"])),
            small(rng),
        ),
    }
}

/// An index with distinct columns.
pub fn index(rng: &mut Rng, name: String, bucket: &str) -> Index {
    let mut seen: Vec<Expr> = Vec::new();
    let mut fresh = |rng: &mut Rng, count: usize| {
        let mut exprs = Vec::new();
        while exprs.len() < count {
            let expr = expr(rng);
            if !seen.contains(&expr) {
                seen.push(expr.clone());
                exprs.push(expr);
            }
        }
        exprs
    };
    let primary = chance(rng, 8);
    let key_count = if primary { 0 } else { rng.usize(1..4) };
    let plain_key = |rng: &mut Rng, expr| Key {
        expr,
        unnest: false,
        descending: chance(rng, 35),
        include_missing: false,
    };
    let exprs = fresh(rng, key_count);
    let mut keys: Vec<Key> = exprs.into_iter().map(|expr| plain_key(rng, expr)).collect();
    if let Some(first) = keys.first_mut() {
        first.include_missing = chance(rng, 30);
    }
    if !primary && chance(rng, 25) {
        let at = rng.usize(..keys.len());
        keys[at].expr = Expr::path(&[pick(rng, &["tags", "tags", "nums", "misc"])]);
        keys[at].unnest = true;
    }
    let include_count = pick(rng, &[0, 0, 1, 2]);
    let include = fresh(rng, include_count);
    let partition = match rng.u8(..10) {
        0 | 1 => vec![expr(rng)],
        2 => vec![path(rng), Expr::Id],
        3 => vec![Expr::Id],
        _ => Vec::new(),
    };
    Index {
        name,
        bucket: bucket.to_owned(),
        keys,
        include,
        predicate: chance(rng, 30)
            .then(|| predicate(rng, 2, &mut |rng| (expr(rng), anything(rng, 0)))),
        partition,
        slices: rng.u32(1..9),
        replicas: u32::from(chance(rng, 25)),
    }
}

/// Makes an expression, and a value that it may have.
type MakeExpr<'a> = dyn FnMut(&mut Rng) -> (Expr, Json) + 'a;

fn predicate(rng: &mut Rng, depth: u8, make: &mut MakeExpr<'_>) -> Predicate {
    let terms = |rng: &mut Rng, make: &mut MakeExpr<'_>| {
        (0..rng.usize(2..4)).map(|_| predicate(rng, depth - 1, make)).collect()
    };
    match rng.u8(..if depth == 0 { 6 } else { 10 }) {
        0..6 => condition(rng, make),
        6 | 7 => Predicate::And(terms(rng, make)),
        8 => Predicate::Or(terms(rng, make)),
        _ => Predicate::Not(Box::new(predicate(rng, depth - 1, make))),
    }
}

fn condition(rng: &mut Rng, make: &mut MakeExpr<'_>) -> Predicate {
    let (expr, known) = make(rng);
    let value = |rng: &mut Rng| {
        let value = match rng.u8(..12) {
            0..8 => near(rng, &known),
            8 => {
                let any = string(rng);
                near(rng, &any)
            }
            9 => Json::Null,
            10 => Json::from(rng.bool()),
            _ => number(rng),
        };
        Expr::Literal(value)
    };
    match rng.u8(..20) {
        0..5 => Predicate::Compare("=", expr, value(rng)),
        5..10 => {
            let op = pick(rng, &["<", "<=", ">", ">=", "<>"]);
            let literal = value(rng);
            match chance(rng, 80) {
                true => Predicate::Compare(op, expr, literal),
                false => Predicate::Compare(op, literal, expr),
            }
        }
        10..13 => {
            let list = (0..rng.usize(1..5)).map(|_| value(rng)).collect();
            Predicate::In(expr, list, chance(rng, 15))
        }
        13..16 => {
            let (low, high) = (value(rng), value(rng));
            Predicate::Between(expr, low, high, chance(rng, 15))
        }
        16 | 17 => Predicate::Like(expr, pattern(rng, &known), chance(rng, 15)),
        18 => Predicate::IsNull(expr, chance(rng, 40)),
        _ => Predicate::IsMissing(expr, chance(rng, 40)),
    }
}

/// A value that SQL can write, at or near a known one. SQL's text ends at a NUL, so none has one.
fn near(rng: &mut Rng, known: &Json) -> Json {
    match known {
        Json::Number(number) => match (Num::of(number), rng.u8(..6)) {
            (Num::Int(n), 0) => Num::int(n + 1).json(),
            (Num::Int(n), 1) => Num::int(n - 1).json(),
            (Num::Int(n), 2) => Num::real(n as f64 + 0.5).json(),
            _ => known.clone(),
        },
        Json::String(text) if text.contains('\0') => Json::from(text.replace('\0', "")),
        Json::String(_) | Json::Bool(_) => known.clone(),
        _ => Json::from(pick(rng, STRINGS).replace('\0', "")),
    }
}

fn pattern(rng: &mut Rng, known: &Json) -> String {
    let text = match known {
        Json::String(text) => text.replace('\0', "_"),
        _ => pick(rng, STRINGS).replace('\0', "_"),
    };
    let cut: String = text.chars().take(rng.usize(..4)).collect();
    let escaped = cut.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    match rng.u8(..8) {
        0..4 => format!("{escaped}%"),
        4 => format!("%{escaped}"),
        5 => format!("{escaped}_%"),
        6 => escaped,
        _ => cut,
    }
}

/// A scan of an index. Its predicate speaks of values that are there.
pub fn scan(rng: &mut Rng, index: &Index, bucket: &Bucket) -> Scan {
    let entries = index.entries(bucket);
    let mut conjuncts = Vec::new();
    let fixed = fixed_prefix(rng, index, &entries, &mut conjuncts);
    if chance(rng, 55) {
        let depth = rng.u8(..3);
        conjuncts.push(predicate(rng, depth, &mut |rng| column(rng, index, &entries)));
    }
    let keys = index.keys.len();
    let distinct = keys > 0 && chance(rng, 12);
    let aggregates = !distinct && chance(rng, 20);
    let items = match () {
        () if distinct => Items::Exprs((0..rng.usize(1..=keys)).map(Expr::Column).collect()),
        () if aggregates => self::aggregates(rng, index, bucket),
        () if chance(rng, 50) => Items::Star,
        () => Items::Exprs((0..rng.usize(1..4)).map(|_| item(rng, index)).collect()),
    };
    let order = (!aggregates && chance(rng, 60)).then(|| {
        let from = if chance(rng, 50) { 0 } else { fixed };
        let to = rng.usize(from..=keys);
        // DISTINCT leaves no id to order by; its order ends with its columns.
        let to = if let (true, Items::Exprs(columns)) = (distinct, &items) {
            to.min(columns.len())
        } else {
            to
        };
        let id = !distinct && (to == from || (to == keys && rng.bool()));
        Order { from, to: if id { keys } else { to }, id, reverse: rng.bool() }
    });
    let order = order.filter(|order| order.id || order.from < order.to);
    let rows = entries.len() as u64;
    Scan {
        items,
        distinct,
        predicate: match conjuncts.len() {
            0 | 1 => conjuncts.pop(),
            _ => Some(Predicate::And(conjuncts)),
        },
        order,
        limit: (!aggregates && chance(rng, 30)).then(|| rng.u64(..rows + 5)),
        offset: (!aggregates && chance(rng, 20)).then(|| rng.u64(..rows / 2 + 3)),
    }
}

/// Sometimes equalities on the leading parts; says on how many.
fn fixed_prefix(
    rng: &mut Rng,
    index: &Index,
    entries: &[Entry],
    conjuncts: &mut Vec<Predicate>,
) -> usize {
    if entries.is_empty() || !chance(rng, 45) {
        return 0;
    }
    let entry = pick(rng, entries);
    for n in 0..rng.usize(..=index.keys.len()) {
        let value = match &entry.columns[n] {
            Some(Json::String(text)) if !text.contains('\0') => Json::from(&**text),
            Some(value @ (Json::Bool(_) | Json::Number(_))) => value.clone(),
            _ => return n,
        };
        conjuncts.push(Predicate::Compare("=", Expr::Column(n), Expr::Literal(value)));
    }
    conjuncts.len()
}

/// A column or something over it, and a value that it has.
fn column(rng: &mut Rng, index: &Index, entries: &[Entry]) -> (Expr, Json) {
    let columns = index.columns();
    let expr = match chance(rng, 8) || columns.is_empty() {
        true => Expr::Id,
        false => {
            let n = rng.usize(..columns.len());
            let over = |function| Expr::Call(function, Box::new(Expr::Column(n)));
            match (columns[n].plain, rng.u8(..10)) {
                (true, 0) => over(pick(rng, &["lower", "length", "abs"])),
                (true, 1) => Expr::Cast(
                    Box::new(Expr::Column(n)),
                    pick(rng, &[Type::Int8, Type::Text, Type::Numeric]),
                ),
                _ => Expr::Column(n),
            }
        }
    };
    let known = (!entries.is_empty()).then(|| {
        let entry = pick(rng, entries);
        expr.eval(&Scope { id: &entry.id, document: None, columns: &entry.columns })
    });
    (expr, known.flatten().unwrap_or(Json::Null))
}

fn item(rng: &mut Rng, index: &Index) -> Expr {
    let columns = index.columns();
    if columns.is_empty() || chance(rng, 30) {
        return Expr::Id;
    }
    let n = rng.usize(..columns.len());
    let kinds = [Type::Text, Type::Bool, Type::Int4, Type::Int8, Type::Float8, Type::Numeric];
    match columns[n].plain && chance(rng, 30) {
        true => Expr::Cast(Box::new(Expr::Column(n)), pick(rng, &kinds)),
        false => Expr::Column(n),
    }
}

fn aggregates(rng: &mut Rng, index: &Index, bucket: &Bucket) -> Items {
    let columns = index.columns().len();
    let mut list = vec![("count", None)];
    if columns > 0 {
        for _ in 0..rng.usize(..4) {
            let column = rng.usize(..columns);
            let function = pick(rng, &["count", "min", "max", "sum"]);
            if function != "sum" || summable(index, bucket, column) {
                list.push((function, Some(column)));
            }
        }
    }
    Items::Aggregates(list)
}
