//! Expressions with words of their own, which are calls of functions: SUBSTRING, TRIM, EXTRACT,
//! AT TIME ZONE, CURRENT_USER.

use proto::value::Value;
use sqlparser::ast::{self, CeilFloorKind, TrimWhereField};

use super::Analyser;
use super::coerce::{Context, coerce};
use crate::error::{Error, Result};
use crate::plan::Expr;
use crate::types::Type;
use crate::types::oid;

impl Analyser<'_> {
    pub(super) fn special(&mut self, expr: &ast::Expr) -> Result<Expr> {
        use ast::Expr as E;
        match expr {
            E::AtTimeZone { timestamp, time_zone } => {
                self.call_of("timezone", &[time_zone, timestamp])
            }
            E::Extract { field, expr, .. } => {
                let field = field.to_string().to_lowercase();
                let field =
                    Expr::constant(Value::String(field.trim_matches('\'').to_owned()), oid::TEXT);
                let expr = self.expr(expr)?;
                self.call("extract", vec![field, expr])
            }
            E::SimilarTo { negated, expr, pattern, escape_char } => {
                let arguments: Vec<&ast::Expr> =
                    std::iter::once(&**pattern).chain(escape_char.as_deref()).collect();
                let expression = self.call_of("similar_to_escape", &arguments)?;
                let expr = self.expr(expr)?;
                self.operator(if *negated { "!~" } else { "~" }, expr, expression)
            }
            E::Ceil { expr, field } => self.round_to("ceil", expr, field),
            E::Floor { expr, field } => self.round_to("floor", expr, field),
            E::Position { expr, r#in } => self.call_of("position", &[r#in, expr]),
            E::Substring { expr, substring_from, substring_for, .. } => {
                let one = ast::Expr::value(ast::Value::Number("1".to_owned(), false));
                let from = substring_from.as_deref().unwrap_or(&one);
                let arguments: Vec<&ast::Expr> =
                    [&**expr, from].into_iter().chain(substring_for.as_deref()).collect();
                self.call_of("substring", &arguments)
            }
            E::Trim { trim_where, trim_what, expr, trim_characters } => {
                let name = match trim_where {
                    Some(TrimWhereField::Leading) => "ltrim",
                    Some(TrimWhereField::Trailing) => "rtrim",
                    _ => "btrim",
                };
                let characters = trim_characters.iter().flatten();
                let arguments: Vec<&ast::Expr> = std::iter::once(&**expr)
                    .chain(trim_what.as_deref())
                    .chain(characters)
                    .collect();
                self.call_of(name, &arguments)
            }
            E::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                let arguments =
                    [&**expr, overlay_what, overlay_from].into_iter().chain(overlay_for.as_deref());
                self.call_of("overlay", &arguments.collect::<Vec<_>>())
            }
            E::Interval(interval) if interval.leading_field.is_none() => {
                let text = self.expr(&interval.value)?;
                coerce(
                    text,
                    &Type::Plain(oid::INTERVAL),
                    -1,
                    Context::Explicit,
                    &mut self.parameters,
                )
            }
            other => Err(Error::unsupported(format!("the expression {other} is not supported"))),
        }
    }

    fn call_of(&mut self, name: &str, arguments: &[&ast::Expr]) -> Result<Expr> {
        let arguments =
            arguments.iter().map(|argument| self.expr(argument)).collect::<Result<_>>()?;
        self.call(name, arguments)
    }

    fn round_to(&mut self, name: &str, expr: &ast::Expr, field: &CeilFloorKind) -> Result<Expr> {
        match field {
            CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime) => {
                self.call_of(name, &[expr])
            }
            _ => Err(Error::new("42883", format!("function {name} takes one argument"))),
        }
    }

    /// Analyses a word that is a call without parentheses.
    pub(super) fn word(&mut self, name: &str) -> Result<Expr> {
        let (function, cast) = match name {
            "current_user" | "user" | "current_role" => ("current_user", None),
            "session_user" => ("session_user", None),
            "current_catalog" => ("current_database", None),
            "current_schema" => ("current_schema", None),
            "current_timestamp" => ("now", None),
            "current_date" => ("now", Some(oid::DATE)),
            "localtimestamp" => ("now", Some(oid::TIMESTAMP)),
            "localtime" => ("now", Some(oid::TIME)),
            _ => return Err(Error::new("42703", format!("column \"{name}\" does not exist"))),
        };
        let call = self.call(function, Vec::new())?;
        match cast {
            Some(ty) => coerce(call, &Type::Plain(ty), -1, Context::Explicit, &mut self.parameters),
            None => Ok(call),
        }
    }
}
