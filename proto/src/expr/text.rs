//! Writes expressions as SQL text, with parentheses only where the parser needs them.

use std::fmt::{self, Display, Formatter};

use crate::expr::ast::{ArithmeticOp, ColumnType, CompareOp, Expr, Function};
use crate::value::Step;
use crate::value::Value;
use crate::value::is_number;

/// An expression with the names of its columns, for display.
struct ExprText<'a> {
    expr: &'a Expr,
    columns: &'a [String],
}

impl Expr {
    /// Returns an object that displays the expression as SQL text, with these names for the columns
    /// of the entry.
    pub fn display<'a>(&'a self, columns: &'a [String]) -> impl fmt::Display + 'a {
        ExprText { expr: self, columns }
    }
}

impl fmt::Display for Expr {
    /// Writes the expression as SQL text; column n of the entry is written as `#n`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.display(&[]).fmt(f)
    }
}

/// The precedence of operators, in PostgreSQL's order.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Binding {
    Or,
    And,
    Not,
    Is,
    Compare,
    /// BETWEEN, IN and LIKE.
    Range,
    Add,
    Multiply,
    Negate,
    Cast,
    Leaf,
}

fn binding(expr: &Expr) -> Binding {
    match expr {
        Expr::Or(list) if list.len() > 1 => Binding::Or,
        Expr::And(list) if list.len() > 1 => Binding::And,
        Expr::Or(list) | Expr::And(list) => list.first().map_or(Binding::Leaf, binding),
        Expr::Not(_) => Binding::Not,
        Expr::IsNull { .. } | Expr::IsMissing { .. } => Binding::Is,
        Expr::Compare(..) => Binding::Compare,
        Expr::In { .. } | Expr::Between { .. } | Expr::Like { .. } => Binding::Range,
        Expr::Arithmetic(ArithmeticOp::Add | ArithmeticOp::Subtract, ..) => Binding::Add,
        Expr::Arithmetic(..) => Binding::Multiply,
        Expr::Negate(_) => Binding::Negate,
        // A negative literal reads back as a negation.
        Expr::Literal(Value::Number(n)) if n.as_f64() < 0.0 => Binding::Negate,
        Expr::Cast(..) if literal_number(expr).is_some_and(|text| text.starts_with('-')) => {
            Binding::Negate
        }
        Expr::Cast(..) if literal_number(expr).is_some() => Binding::Leaf,
        Expr::Cast(..) => Binding::Cast,
        Expr::Call(Function::RoundToEven, arguments) => {
            arguments.first().map_or(Binding::Leaf, binding)
        }
        _ => Binding::Leaf,
    }
}

impl Display for ExprText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut printer = Printer { columns: self.columns, out: String::new() };
        printer.expr(self.expr);
        f.write_str(&printer.out)
    }
}

/// A printer that appends to a string. A formatter instead would make the stack frames of a deep
/// expression large.
struct Printer<'a> {
    columns: &'a [String],
    out: String,
}

impl Printer<'_> {
    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Appends an operand, in parentheses if it binds less tightly than `at_least`.
    fn operand(&mut self, expr: &Expr, at_least: Binding) {
        let parentheses = binding(expr) < at_least;
        self.push(if parentheses { "(" } else { "" });
        self.expr(expr);
        self.push(if parentheses { ")" } else { "" });
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Literal(value) => self.literal(value),
            Expr::Path(steps) => self.path(steps),
            Expr::DocumentId => self.push("META().id"),
            Expr::Column(n) => self.column(*n),
            Expr::Parameter(n) => self.push(&format!("${}", u32::from(*n) + 1)),
            Expr::Call(Function::RoundToEven, arguments) => {
                arguments.iter().for_each(|e| self.expr(e))
            }
            Expr::Call(function, arguments) => {
                self.push(function_name(*function));
                self.list("(", arguments);
            }
            Expr::Unnest(e) => {
                self.push("UNNEST");
                self.list("(", std::slice::from_ref(&**e));
            }
            Expr::And(list) => self.chain(list, " AND ", Binding::Not, "TRUE"),
            Expr::Or(list) => self.chain(list, " OR ", Binding::And, "FALSE"),
            Expr::Not(e) => self.prefixed("NOT ", e, Binding::Not),
            // A literal after the sign would be read as a negative one.
            Expr::Negate(e) if begins_with_number(e) => {
                self.push("-(");
                self.expr(e);
                self.push(")");
            }
            Expr::Negate(e) => self.prefixed("-", e, Binding::Cast),
            Expr::Cast(..) if let Some(text) = literal_number(expr) => self.push(text),
            Expr::Cast(e, to) => {
                self.operand(e, Binding::Cast);
                self.push("::");
                self.push(type_name(*to));
            }
            Expr::Arithmetic(op, left, right) => self.arithmetic(*op, left, right),
            Expr::Compare(op, l, r) => {
                self.binary(l, compare_sign(*op), r, Binding::Range, Binding::Range);
            }
            Expr::Like { expr, pattern, negated } => {
                let operator = if *negated { " NOT LIKE " } else { " LIKE " };
                self.binary(expr, operator, pattern, Binding::Add, Binding::Add);
            }
            Expr::In { expr, list, negated } => {
                self.operand(expr, Binding::Add);
                self.list(if *negated { " NOT IN (" } else { " IN (" }, list);
            }
            Expr::Between { expr, low, high, negated } => {
                let operator = if *negated { " NOT BETWEEN " } else { " BETWEEN " };
                self.binary(expr, operator, low, Binding::Add, Binding::Add);
                self.push(" AND ");
                self.operand(high, Binding::Add);
            }
            Expr::IsNull { expr, negated } => self.test(expr, *negated, "NULL"),
            Expr::IsMissing { expr, negated } => self.test(expr, *negated, "MISSING"),
        }
    }

    fn prefixed(&mut self, operator: &str, operand: &Expr, binding: Binding) {
        self.push(operator);
        self.operand(operand, binding);
    }

    /// Appends `operand IS [NOT] state`.
    fn test(&mut self, operand: &Expr, negated: bool, state: &str) {
        self.operand(operand, Binding::Compare);
        self.push(if negated { " IS NOT " } else { " IS " });
        self.push(state);
    }

    /// Appends an arithmetic operation. Operators group from left to right, so a right operand of
    /// equal precedence gets parentheses.
    fn arithmetic(&mut self, op: ArithmeticOp, left: &Expr, right: &Expr) {
        let (sign, binding, tighter) = match op {
            ArithmeticOp::Add => (" + ", Binding::Add, Binding::Multiply),
            ArithmeticOp::Subtract => (" - ", Binding::Add, Binding::Multiply),
            ArithmeticOp::Multiply => (" * ", Binding::Multiply, Binding::Negate),
            ArithmeticOp::Divide | ArithmeticOp::DivideIntegers => {
                (" / ", Binding::Multiply, Binding::Negate)
            }
            ArithmeticOp::Modulo => (" % ", Binding::Multiply, Binding::Negate),
        };
        self.binary(left, sign, right, binding, tighter);
    }

    fn binary(&mut self, l: &Expr, operator: &str, r: &Expr, left: Binding, right: Binding) {
        self.operand(l, left);
        self.push(operator);
        self.operand(r, right);
    }

    fn list(&mut self, open: &str, items: &[Expr]) {
        self.push(open);
        for (n, item) in items.iter().enumerate() {
            self.push(if n > 0 { ", " } else { "" });
            self.expr(item);
        }
        self.push(")");
    }

    fn chain(&mut self, list: &[Expr], separator: &str, at_least: Binding, empty: &str) {
        // A connective with one operand is printed as that operand.
        let at_least = if list.len() == 1 { Binding::Or } else { at_least };
        for (n, item) in list.iter().enumerate() {
            self.push(if n > 0 { separator } else { "" });
            self.operand(item, at_least);
        }
        self.push(if list.is_empty() { empty } else { "" });
    }

    fn column(&mut self, n: u16) {
        match self.columns.get(usize::from(n)) {
            Some(name) => self.out.push_str(name),
            None => self.out.push_str(&format!("#{n}")),
        }
    }

    fn literal(&mut self, value: &Value) {
        match value {
            Value::Missing => self.push("MISSING"),
            Value::Null => self.push("NULL"),
            Value::Bool(truth) => self.push(if *truth { "TRUE" } else { "FALSE" }),
            Value::String(text) => self.quoted(text, '\''),
            Value::Number(number) if number.as_f64().is_infinite() => {
                self.push(&format!("'{number}'::float8"));
            }
            other => self.push(&other.to_json()),
        }
    }

    fn path(&mut self, steps: &[Step]) {
        for (n, step) in steps.iter().enumerate() {
            match step {
                Step::Field(name) => {
                    self.push(if n > 0 { "." } else { "" });
                    if is_plain(name) { self.push(name) } else { self.quoted(name, '"') }
                }
                Step::Index(at) => self.push(&format!("[{at}]")),
            }
        }
    }

    fn quoted(&mut self, text: &str, quote: char) {
        self.out.push(quote);
        for c in text.chars() {
            self.out.extend(std::iter::repeat_n(c, if c == quote { 2 } else { 1 }));
        }
        self.out.push(quote);
    }
}

/// Words that do not name a field unless they are quoted.
pub const RESERVED: [&str; 44] = [
    "all",
    "and",
    "as",
    "asc",
    "between",
    "by",
    "case",
    "cast",
    "collate",
    "cross",
    "desc",
    "distinct",
    "else",
    "end",
    "except",
    "false",
    "fetch",
    "for",
    "from",
    "group",
    "having",
    "in",
    "include",
    "intersect",
    "is",
    "join",
    "like",
    "limit",
    "meta",
    "missing",
    "not",
    "null",
    "offset",
    "on",
    "or",
    "order",
    "partition",
    "select",
    "then",
    "true",
    "union",
    "unnest",
    "where",
    "with",
];

/// Returns the text of a literal number that was written differently from its value, such as
/// `1.50`. The parser keeps such a number as a text with a cast.
pub fn literal_number(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Cast(inner, ColumnType::Numeric) => match &**inner {
            Expr::Literal(Value::String(text)) if is_number(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// Returns true if the text of an expression begins with a literal number.
fn begins_with_number(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(Value::Number(_)) => true,
        Expr::Cast(inner, _) => literal_number(expr).is_some() || begins_with_number(inner),
        Expr::Call(Function::RoundToEven, arguments) => arguments.iter().any(begins_with_number),
        _ => false,
    }
}

/// Returns true if a name needs no quotes.
fn is_plain(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && RESERVED.binary_search(&name.to_ascii_lowercase().as_str()).is_err()
}

fn compare_sign(op: CompareOp) -> &'static str {
    match op {
        CompareOp::Eq => " = ",
        CompareOp::NotEq => " <> ",
        CompareOp::Less => " < ",
        CompareOp::LessEq => " <= ",
        CompareOp::Greater => " > ",
        CompareOp::GreaterEq => " >= ",
    }
}

fn function_name(function: Function) -> &'static str {
    match function {
        Function::Lower => "lower",
        Function::Upper => "upper",
        Function::Length => "length",
        Function::Coalesce => "coalesce",
        Function::Abs => "abs",
        // A cast shows it.
        Function::RoundToEven => "",
    }
}

fn type_name(column_type: ColumnType) -> &'static str {
    match column_type {
        ColumnType::Text => "text",
        ColumnType::Bool => "bool",
        ColumnType::Int4 => "int4",
        ColumnType::Int8 => "int8",
        ColumnType::Float8 => "float8",
        ColumnType::Numeric => "numeric",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str) -> Box<Expr> {
        Box::new(Expr::Path(vec![Step::Field(name.into())]))
    }

    #[test]
    fn the_last_parameter_has_a_number() {
        assert_eq!(Expr::Parameter(u16::MAX).to_string(), "$65536");
    }

    #[test]
    fn parentheses_stand_where_the_meaning_needs_them() {
        let sum = Expr::Arithmetic(ArithmeticOp::Add, field("a"), field("b"));
        let product = Expr::Arithmetic(ArithmeticOp::Multiply, Box::new(sum.clone()), field("c"));
        assert_eq!(product.to_string(), "(a + b) * c");
        let difference =
            Expr::Arithmetic(ArithmeticOp::Subtract, field("c"), Box::new(sum.clone()));
        assert_eq!(difference.to_string(), "c - (a + b)");
        let cast = Expr::Cast(Box::new(Expr::Literal(Value::int(-1))), ColumnType::Int8);
        assert_eq!(cast.to_string(), "(-1)::int8");
        let less = Expr::Compare(CompareOp::Less, Box::new(sum), field("c"));
        let either = Expr::Or(vec![less.clone(), Expr::Not(Box::new(less))]);
        let both = Expr::And(vec![either, Expr::IsNull { expr: field("d"), negated: true }]);
        assert_eq!(both.to_string(), "(a + b < c OR NOT a + b < c) AND d IS NOT NULL");
    }

    #[test]
    fn names_and_strings_are_quoted_where_needed() {
        let path = Expr::Path(vec![
            Step::Field("address".into()),
            Step::Field("select".into()),
            Step::Field("a \"b\"".into()),
            Step::Index(-1),
        ]);
        assert_eq!(path.to_string(), r#"address."select"."a ""b"""[-1]"#);
        assert_eq!(Expr::Literal(Value::from("it's")).to_string(), "'it''s'");
        assert_eq!(Expr::Column(1).display(&["a".into(), "b".into()]).to_string(), "b");
        assert_eq!(Expr::Column(2).to_string(), "#2");
        assert!(RESERVED.is_sorted());
    }
}
