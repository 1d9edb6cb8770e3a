//! Expressions and predicates as SQL text.

use super::expr::{Expr, Predicate, Step, Type};
use super::json::{Json, Num};

/// A writer of SQL, which names the columns of an entry and collects values that are sent as
/// parameters.
pub struct SqlWriter<'a> {
    /// The name of each column in the text.
    pub columns: &'a [String],
    /// The type of each column.
    pub kinds: &'a [Type],
    /// True while a quoted text would get the type of the other operand, or a number next to the id
    /// would mean its text: values are then written with their type.
    pub explicit: bool,
    /// The values that are sent separately; `None` if all values are in the text.
    pub parameters: Option<Vec<Json>>,
}

impl SqlWriter<'_> {
    /// Returns the SQL text of an expression.
    pub fn expr(&mut self, expr: &Expr) -> String {
        match expr {
            Expr::Path(steps) => path(steps),
            Expr::Column(n) => self.columns[*n].clone(),
            Expr::Id => "META().id".into(),
            Expr::Literal(value) => self.value(value),
            Expr::Call(function, argument) => format!("{function}({})", self.expr(argument)),
            Expr::Coalesce(list) => format!("coalesce({})", self.list(list)),
            Expr::Cast(inner, to) => match **inner {
                Expr::Path(_) | Expr::Call(..) => format!("{}::{}", self.expr(inner), to.name()),
                _ => format!("({})::{}", self.expr(inner), to.name()),
            },
            Expr::Arithmetic(op, l, r) => format!("({} {op} {})", self.expr(l), self.expr(r)),
        }
    }

    fn list(&mut self, list: &[Expr]) -> String {
        list.iter().map(|e| self.expr(e)).collect::<Vec<_>>().join(", ")
    }

    /// Returns the SQL text of a value: a typed parameter if parameters are collected and the value
    /// has a type, otherwise a literal.
    pub fn value(&mut self, value: &Json) -> String {
        let parameter = match (value, &mut self.parameters) {
            (Json::String(_), Some(list)) => Some((list, "text")),
            (Json::Bool(_), Some(list)) => Some((list, "bool")),
            (Json::Number(n), Some(list)) if n.is_i64() => Some((list, "int8")),
            (Json::Number(n), Some(list)) if n.is_f64() => Some((list, "float8")),
            _ => None,
        };
        match parameter {
            Some((list, name)) => {
                list.push(value.clone());
                format!("${}::{name}", list.len())
            }
            None if self.explicit && value.is_string() => format!("{}::text", literal(value)),
            None if self.explicit && value.is_number() => format!("({})::numeric", literal(value)),
            None => literal(value),
        }
    }

    /// The SQL text of a predicate.
    pub fn predicate(&mut self, predicate: &Predicate) -> String {
        self.explicit = match predicate {
            Predicate::Compare(_, l, r) => self.has_type([l, r]),
            Predicate::In(e, list, _) => self.has_type(std::iter::once(e).chain(list)),
            Predicate::Between(e, low, high, _) => self.has_type([e, low, high]),
            _ => false,
        };
        let word = |negated: &bool| if *negated { "NOT " } else { "" };
        match predicate {
            Predicate::Compare(op, l, r) => format!("{} {op} {}", self.expr(l), self.expr(r)),
            Predicate::In(e, list, negated) => {
                format!("{} {}IN ({})", self.expr(e), word(negated), self.list(list))
            }
            Predicate::Between(e, low, high, negated) => {
                let (e, low) = (self.expr(e), self.expr(low));
                format!("{e} {}BETWEEN {low} AND {}", word(negated), self.expr(high))
            }
            Predicate::Like(e, pattern, negated) => {
                let e = self.expr(e);
                format!("{e} {}LIKE {}", word(negated), self.value(&Json::from(&**pattern)))
            }
            Predicate::IsNull(e, negated) => format!("{} IS {}NULL", self.expr(e), word(negated)),
            Predicate::IsMissing(e, negated) => {
                format!("{} IS {}MISSING", self.expr(e), word(negated))
            }
            Predicate::And(terms) => self.terms(terms, " AND "),
            Predicate::Or(terms) => format!("({})", self.terms(terms, " OR ")),
            Predicate::Not(inner) => format!("NOT ({})", self.predicate(inner)),
        }
    }

    /// True if one of the operands has a type other than text, or is the id.
    fn has_type<'e>(&self, operands: impl IntoIterator<Item = &'e Expr>) -> bool {
        operands.into_iter().any(|e| e.kind(self.kinds) != Type::Text || *e == Expr::Id)
    }

    fn terms(&mut self, terms: &[Predicate], between: &str) -> String {
        terms.iter().map(|term| self.predicate(term)).collect::<Vec<_>>().join(between)
    }
}

/// The SQL literal of a value.
pub fn literal(value: &Json) -> String {
    match value {
        Json::Null => "NULL".into(),
        Json::Bool(truth) => truth.to_string().to_uppercase(),
        Json::Number(number) => Num::of(number).text(),
        Json::String(text) => quoted(text, '\''),
        other => panic!("SQL has no text for {other}"),
    }
}

/// Returns a text in quotes, with quotes in it doubled.
pub fn quoted(text: &str, quote: char) -> String {
    let doubled = text.replace(quote, &format!("{quote}{quote}"));
    format!("{quote}{doubled}{quote}")
}

fn path(steps: &[Step]) -> String {
    let plain = |name: &str| name.chars().all(|c| c.is_ascii_alphabetic());
    let mut out = String::new();
    for step in steps {
        match step {
            Step::Field(name) => {
                out.push_str(if out.is_empty() { "" } else { "." });
                out.push_str(&if plain(name) { name.clone() } else { quoted(name, '"') });
            }
            Step::Element(n) => out.push_str(&format!("[{n}]")),
        }
    }
    out
}
