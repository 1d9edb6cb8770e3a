//! Expressions and predicates, and their meaning.
//!
//! Predicates have SQL's three-valued logic: `None` is unknown. A comparison is defined within one type only; with
//! NULL, MISSING or a value of another type it is unknown.

use std::cmp::Ordering;

use super::json::{Json, Num, Value, compare, rank, text};

/// A type to which a value is cast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Type {
    /// `text`
    Text,
    /// `bool`
    Bool,
    /// `int4`
    Int4,
    /// `int8`
    Int8,
    /// `float8`
    Float8,
    /// `numeric`
    Numeric,
}

impl Type {
    /// The name of the type in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Bool => "bool",
            Self::Int4 => "int4",
            Self::Int8 => "int8",
            Self::Float8 => "float8",
            Self::Numeric => "numeric",
        }
    }
}

/// A step of a path.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// `.name`
    Field(String),
    /// `[n]`; a negative n counts from the end.
    Element(i64),
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A path into the document.
    Path(Vec<Step>),
    /// A column of the entry, by its index.
    Column(usize),
    /// `META().id`
    Id,
    /// A value that SQL can spell.
    Literal(Json),
    /// `lower`, `upper`, `length`, `abs`
    Call(&'static str, Box<Expr>),
    /// `coalesce`
    Coalesce(Vec<Expr>),
    /// `e::type`
    Cast(Box<Expr>, Type),
    /// `+ - * / %`
    Arithmetic(char, Box<Expr>, Box<Expr>),
}

/// A predicate with SQL's three-valued logic.
#[derive(Clone, Debug)]
pub enum Predicate {
    /// `= <> < <= > >=`
    Compare(&'static str, Expr, Expr),
    /// `[NOT] IN`
    In(Expr, Vec<Expr>, bool),
    /// `[NOT] BETWEEN`
    Between(Expr, Expr, Expr, bool),
    /// `[NOT] LIKE`
    Like(Expr, String, bool),
    /// `IS [NOT] NULL`
    IsNull(Expr, bool),
    /// `IS [NOT] MISSING`
    IsMissing(Expr, bool),
    /// `AND`
    And(Vec<Predicate>),
    /// `OR`
    Or(Vec<Predicate>),
    /// `NOT`
    Not(Box<Predicate>),
}

/// The values that an expression may refer to.
pub struct Scope<'a> {
    /// The document's id.
    pub id: &'a str,
    /// The document, if paths can refer to it.
    pub document: Option<&'a Json>,
    /// The columns of the entry; empty without an entry.
    pub columns: &'a [Value],
}

impl Expr {
    /// A path of fields.
    pub fn path(fields: &[&str]) -> Self {
        Self::Path(fields.iter().map(|field| Step::Field((*field).to_owned())).collect())
    }

    /// Returns the type of a result column of this expression, over columns of these types.
    /// Operators and functions over untyped values compute with exact numbers.
    pub fn kind(&self, columns: &[Type]) -> Type {
        let number = |kind: Type| match kind {
            Type::Text | Type::Bool => Type::Numeric,
            kind => kind,
        };
        match self {
            Self::Column(n) => columns[*n],
            Self::Cast(_, kind) => *kind,
            Self::Path(_) | Self::Id => Type::Text,
            Self::Literal(Json::Bool(_)) => Type::Bool,
            Self::Literal(Json::Number(n)) => match n.as_i64() {
                Some(n) if i32::try_from(n).is_ok() => Type::Int4,
                Some(_) => Type::Int8,
                None => Type::Numeric,
            },
            Self::Literal(_) => Type::Text,
            Self::Call("abs", argument) => number(argument.kind(columns)),
            Self::Call("length", _) => Type::Int4,
            Self::Call(..) => Type::Text,
            Self::Coalesce(list) => {
                let typed = list.iter().filter(|e| **e != Self::Literal(Json::Null));
                typed.map(|e| e.kind(columns)).reduce(common_kind).unwrap_or(Type::Text)
            }
            Self::Arithmetic(_, left, right) => match (left.kind(columns), right.kind(columns)) {
                (Type::Float8, _) | (_, Type::Float8) => Type::Float8,
                (Type::Int4 | Type::Int8, Type::Int4 | Type::Int8) => Type::Int8,
                _ => Type::Numeric,
            },
        }
    }

    /// Evaluates the expression.
    pub fn eval(&self, scope: &Scope<'_>) -> Value {
        match self {
            Self::Path(steps) => walk(scope.document?, steps).cloned(),
            Self::Column(n) => scope.columns[*n].clone(),
            Self::Id => Some(Json::from(scope.id)),
            Self::Literal(value) => Some(value.clone()),
            Self::Call(function, argument) => call(function, argument.eval(scope)),
            Self::Coalesce(list) => {
                let known = |value: &Value| !matches!(value, None | Some(Json::Null));
                list.iter().map(|e| e.eval(scope)).find(known).unwrap_or(Some(Json::Null))
            }
            Self::Cast(inner, to) => cast(inner.eval(scope), *to),
            Self::Arithmetic(op, left, right) => {
                arithmetic(*op, left.eval(scope), right.eval(scope))
            }
        }
    }
}

/// Returns the type of two alternatives: the wider type of two numeric types, otherwise text.
fn common_kind(one: Type, other: Type) -> Type {
    let width = |kind: Type| match kind {
        Type::Int4 => Some(0),
        Type::Int8 => Some(1),
        Type::Numeric => Some(2),
        Type::Float8 => Some(3),
        Type::Text | Type::Bool => None,
    };
    match (width(one), width(other)) {
        _ if one == other => one,
        (Some(left), Some(right)) => {
            if left > right {
                one
            } else {
                other
            }
        }
        _ => Type::Text,
    }
}

fn walk<'a>(document: &'a Json, steps: &[Step]) -> Option<&'a Json> {
    steps.iter().try_fold(document, |at, step| match (at, step) {
        (Json::Object(fields), Step::Field(name)) => fields.get(name),
        (Json::Array(items), Step::Element(n)) if *n >= 0 => items.get(*n as usize),
        (Json::Array(items), Step::Element(n)) => items.iter().nth_back((-1 - *n) as usize),
        _ => None,
    })
}

/// Returns MISSING for MISSING, and NULL for any other unsuitable value.
fn unfit(value: &Value) -> Value {
    value.as_ref().map(|_| Json::Null)
}

fn call(function: &str, argument: Value) -> Value {
    match (function, &argument) {
        ("lower", Some(Json::String(text))) => Some(Json::from(text.to_lowercase())),
        ("upper", Some(Json::String(text))) => Some(Json::from(text.to_uppercase())),
        ("length", Some(Json::String(text))) => Some(Json::from(text.chars().count())),
        ("abs", Some(Json::Number(number))) => Some(match Num::of(number) {
            Num::Int(n) => Num::int(n.abs()).json(),
            Num::Real(f) => Num::real(f.abs()).json(),
        }),
        _ => unfit(&argument),
    }
}

fn arithmetic(op: char, left: Value, right: Value) -> Value {
    let (Some(left), Some(right)) = (left, right) else { return None };
    let (Json::Number(left), Json::Number(right)) = (left, right) else { return Some(Json::Null) };
    let (left, right) = (Num::of(&left), Num::of(&right));
    if let (Num::Int(a), Num::Int(b)) = (left, right) {
        let exact = match op {
            '+' => a.checked_add(b),
            '-' => a.checked_sub(b),
            '*' => a.checked_mul(b),
            '/' if b != 0 && a % b == 0 => Some(a / b),
            '%' if b != 0 => Some(a % b),
            _ => None,
        };
        if let Some(exact) = exact {
            return Some(Num::int(exact).json());
        }
    }
    let (a, b) = (left.as_f64(), right.as_f64());
    let result = match op {
        '+' => a + b,
        '-' => a - b,
        '*' => a * b,
        '/' => a / b,
        _ => a % b,
    };
    Some(Num::real(result).json())
}

/// True if a value can be cast to another type. The query fails otherwise.
pub fn can_cast(value: &Value, to: Type) -> bool {
    matches!(value, None | Some(Json::Null)) || cast(value.clone(), to) != Some(Json::Null)
}

/// Casts a value to another type; NULL if that is impossible.
pub fn cast(value: Value, to: Type) -> Value {
    let fit = match (to, &value) {
        (Type::Text, value) => text(value.as_ref()).map(Json::from),
        (Type::Bool, Some(Json::Bool(truth))) => Some(Json::from(*truth)),
        (Type::Bool, Some(Json::String(text))) => match &*text.trim().to_ascii_lowercase() {
            "t" | "tr" | "tru" | "true" | "y" | "ye" | "yes" | "on" | "1" => Some(Json::from(true)),
            "f" | "fa" | "fal" | "fals" | "false" | "n" | "no" | "of" | "off" | "0" => {
                Some(Json::from(false))
            }
            _ => None,
        },
        (Type::Bool, Some(Json::Number(number))) => match Num::of(number) {
            Num::Int(n) => Some(Json::from(n != 0)),
            Num::Real(_) => None,
        },
        (Type::Int4, Some(Json::Bool(truth))) => Some(Json::from(i32::from(*truth))),
        (Type::Int4, value) => integer(value.as_ref())
            .filter(|n| (i64::from(i32::MIN)..=i64::from(i32::MAX)).contains(n))
            .map(Json::from),
        (Type::Int8, value) => integer(value.as_ref()).map(Json::from),
        (Type::Float8, value) => number(value.as_ref()).map(|n| Num::real(n.as_f64()).json()),
        (Type::Numeric, value) => number(value.as_ref()).map(Num::json),
        _ => None,
    };
    fit.or_else(|| unfit(&value))
}

fn integer(value: Option<&Json>) -> Option<i64> {
    match value? {
        Json::Number(number) => match Num::of(number) {
            Num::Int(n) => i64::try_from(n).ok(),
            // Half away from zero.
            Num::Real(f) if f.abs() < 9e18 => Some((f.abs() + 0.5).floor().copysign(f) as i64),
            Num::Real(_) => None,
        },
        Json::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

fn number(value: Option<&Json>) -> Option<Num> {
    match value? {
        Json::Number(number) => Some(Num::of(number)),
        Json::String(text) => {
            let text = text.trim();
            let digits = text.chars().all(|c| c.is_ascii_digit() || "+-.eE".contains(c));
            match text.parse::<i128>() {
                Ok(n) => Some(Num::int(n)),
                Err(_) if digits => {
                    text.parse().ok().filter(|f: &f64| f.is_finite()).map(Num::real)
                }
                Err(_) => None,
            }
        }
        _ => None,
    }
}

/// Compares two values of one type; `None` for different types.
fn within_type(a: &Value, b: &Value) -> Option<Ordering> {
    let (a, b) = (a.as_ref()?, b.as_ref()?);
    let comparable = !a.is_null() && rank(Some(a)) == rank(Some(b));
    comparable.then(|| compare(Some(a), Some(b)))
}

fn and(terms: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let terms: Vec<Option<bool>> = terms.collect();
    match () {
        () if terms.contains(&Some(false)) => Some(false),
        () if terms.contains(&None) => None,
        () => Some(true),
    }
}

fn not(truth: Option<bool>) -> Option<bool> {
    truth.map(|truth| !truth)
}

fn negate_if(negated: bool, truth: Option<bool>) -> Option<bool> {
    if negated { not(truth) } else { truth }
}

impl Predicate {
    /// Returns the truth value of the predicate; `None` if it is unknown.
    pub fn truth(&self, scope: &Scope<'_>) -> Option<bool> {
        match self {
            Self::Compare(op, left, right) => holds(op, &left.eval(scope), &right.eval(scope)),
            Self::In(expr, list, negated) => {
                let value = expr.eval(scope);
                let equal = list.iter().map(|item| not(holds("=", &value, &item.eval(scope))));
                // IN is an OR of equalities, hence NOT (all of them fail).
                negate_if(*negated, not(and(equal)))
            }
            Self::Between(expr, low, high, negated) => {
                let value = expr.eval(scope);
                let bounds =
                    [holds(">=", &value, &low.eval(scope)), holds("<=", &value, &high.eval(scope))];
                negate_if(*negated, and(bounds.into_iter()))
            }
            Self::Like(expr, pattern, negated) => match expr.eval(scope) {
                Some(Json::String(text)) => {
                    let pattern: Vec<char> = pattern.chars().collect();
                    let text: Vec<char> = text.chars().collect();
                    negate_if(*negated, Some(like(&text, &pattern)))
                }
                _ => None,
            },
            Self::IsNull(expr, negated) => {
                Some(matches!(expr.eval(scope), None | Some(Json::Null)) != *negated)
            }
            Self::IsMissing(expr, negated) => Some(expr.eval(scope).is_none() != *negated),
            Self::And(terms) => and(terms.iter().map(|term| term.truth(scope))),
            Self::Or(terms) => not(and(terms.iter().map(|term| not(term.truth(scope))))),
            Self::Not(inner) => not(inner.truth(scope)),
        }
    }
}

fn holds(op: &str, left: &Value, right: &Value) -> Option<bool> {
    let order = within_type(left, right)?;
    Some(match op {
        "=" => order.is_eq(),
        "<>" => order.is_ne(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        _ => order.is_ge(),
    })
}

/// True if a text matches a LIKE pattern: `%` matches any text, `_` any character, and `\` quotes
/// the next one.
fn like(text: &[char], pattern: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['%', rest @ ..] => (0..=text.len()).any(|n| like(&text[n..], rest)),
        ['_', rest @ ..] => !text.is_empty() && like(&text[1..], rest),
        ['\\', ch, rest @ ..] | [ch, rest @ ..] => {
            text.first() == Some(ch) && like(&text[1..], rest)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn logic_is_three_valued() {
        let scope = Scope { id: "x", document: Some(&json!({"a": 1, "n": null})), columns: &[] };
        let (a, missing) = (Expr::path(&["a"]), Expr::path(&["b"]));
        let number = |n: i64| Expr::Literal(json!(n));
        let truth = |p: Predicate| p.truth(&scope);
        let unknown = || Predicate::Compare("=", missing.clone(), number(1));
        let yes = || Predicate::Compare("=", a.clone(), number(1));
        assert_eq!(truth(unknown()), None);
        assert_eq!(truth(Predicate::Not(Box::new(unknown()))), None);
        assert_eq!(truth(Predicate::Or(vec![unknown(), yes()])), Some(true));
        assert_eq!(truth(Predicate::And(vec![unknown(), yes()])), None);
        let null = Expr::Literal(Json::Null);
        assert_eq!(truth(Predicate::In(a.clone(), vec![number(2), null], true)), None);
        let text = Expr::Literal(json!("1"));
        assert_eq!(truth(Predicate::Compare("<", a.clone(), text)), None);
        assert_eq!(truth(Predicate::IsNull(missing.clone(), false)), Some(true));
        assert_eq!(truth(Predicate::IsNull(missing.clone(), true)), Some(false));
        assert_eq!(truth(Predicate::IsMissing(missing, false)), Some(true));
    }

    #[test]
    fn patterns_and_casts() {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        for (text, pattern, matches) in
            [("abc", "a%", true), ("a%", "a\\%", true), ("ab", "a\\%", false), ("é", "_", true)]
        {
            assert_eq!(like(&chars(text), &chars(pattern)), matches, "{text} LIKE {pattern}");
        }
        for (value, to, result) in [
            (json!(3.0), Type::Int8, json!(3)),
            (json!(3.7), Type::Int8, json!(4)),
            (json!(-2.5), Type::Int8, json!(-3)),
            (json!(1e300), Type::Int8, json!(null)),
            (json!(" Yes"), Type::Bool, json!(true)),
            (json!(2), Type::Bool, json!(true)),
            (json!("x"), Type::Int8, json!(null)),
            (json!(" 12 "), Type::Int8, json!(12)),
            (json!([1]), Type::Text, json!("[1]")),
            (json!("T"), Type::Bool, json!(true)),
            (json!(5_000_000_000i64), Type::Int4, json!(null)),
        ] {
            assert_eq!(cast(Some(value.clone()), to), Some(result), "{value}::{to:?}");
        }
        assert_eq!(cast(None, Type::Int8), None);
    }
}
