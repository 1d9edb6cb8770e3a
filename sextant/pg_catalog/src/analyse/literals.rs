//! Literals and parameters.

use proto::value::{Number, Value};
use sqlparser::ast;

use super::Analyser;
use crate::error::{Error, Result};
use crate::plan::{Expr, ExprKind};
use crate::types::oid;

/// The highest parameter number of PostgreSQL's protocol.
const PARAMETERS_MAX: usize = u16::MAX as usize;

impl Analyser<'_> {
    pub(super) fn literal(&mut self, literal: &ast::Value) -> Result<Expr> {
        let text = |text: &str| Ok(Expr::constant(Value::from(text), oid::UNKNOWN));
        match literal {
            ast::Value::Null => Ok(Expr::constant(Value::Null, oid::UNKNOWN)),
            ast::Value::Boolean(truth) => Ok(Expr::constant(Value::Bool(*truth), oid::BOOL)),
            ast::Value::Number(digits, _) => number(digits),
            ast::Value::SingleQuotedString(s)
            | ast::Value::EscapedStringLiteral(s)
            | ast::Value::UnicodeStringLiteral(s)
            | ast::Value::NationalStringLiteral(s) => text(s),
            // B'0101', a bit string.
            ast::Value::SingleQuotedByteStringLiteral(bits)
                if bits.chars().all(|bit| matches!(bit, '0' | '1')) =>
            {
                Ok(Expr::constant(Value::from(bits.as_str()), oid::BIT))
            }
            ast::Value::DollarQuotedString(quoted) => text(&quoted.value),
            ast::Value::Placeholder(name) => self.parameter(name),
            other => Err(Error::unsupported(format!("the literal {other} is not supported"))),
        }
    }

    fn parameter(&mut self, name: &str) -> Result<Expr> {
        let number = name.strip_prefix('$').and_then(|number| number.parse::<usize>().ok());
        let Some(number) = number.filter(|number| (1..=PARAMETERS_MAX).contains(number)) else {
            return Err(Error::new("42P02", format!("there is no parameter {name}")));
        };
        let ty = self.parameters.ty(number - 1);
        Ok(Expr::new(ExprKind::Parameter(number - 1), ty))
    }
}

/// Returns a number: the smallest integer type that has it, or `numeric`.
fn number(digits: &str) -> Result<Expr> {
    let digits = digits.replace('_', "");
    if let Ok(integer) = digits.parse::<i64>() {
        let ty = if i32::try_from(integer).is_ok() { oid::INT4 } else { oid::INT8 };
        return Ok(Expr::constant(Value::int(integer), ty));
    }
    match Number::parse_sql(&digits) {
        Some(number) => Ok(Expr::constant(Value::Number(number), oid::NUMERIC)),
        None => Err(Error::new("42601", format!("syntax error at the number {digits}"))),
    }
}
