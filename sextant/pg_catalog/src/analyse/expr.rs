//! Expressions.

use sqlparser::ast::{self, AccessExpr, BinaryOperator, Subscript, UnaryOperator};

use super::Analyser;
use super::coerce::{Context, coerce, common_type};
use super::operators::operator_name;
use super::polymorphic::array_type;
use super::type_names::resolve_type;
use crate::data::data;
use crate::error::{Error, Result};
use crate::plan::{Expr, ExprKind, SubqueryKind, Truth};
use crate::types::Type;
use crate::types::name::type_name;
use crate::types::oid;

impl Analyser<'_> {
    /// Analyses an expression.
    pub(super) fn expr(&mut self, expr: &ast::Expr) -> Result<Expr> {
        use ast::Expr as E;
        match expr {
            E::Identifier(ident) => self.column(ident),
            E::CompoundIdentifier(parts) => self.compound(parts),
            E::CompoundFieldAccess { root, access_chain } => self.access(root, access_chain),
            E::Value(value) => self.literal(&value.value),
            E::Nested(inner) => self.expr(inner),
            // The order of a collation matters only for text that is not ASCII, and ours is always that of bytes.
            E::Collate { expr, .. } => self.expr(expr),
            E::BinaryOp { left, op, right } => self.binary(left, op, right),
            E::UnaryOp { op, expr } => self.unary(*op, expr),
            E::Cast { expr, data_type, .. } => self.cast(expr, data_type),
            E::TypedString(typed) => {
                let text = self.literal(&typed.value.value)?;
                self.cast_to(text, &typed.data_type)
            }
            E::Function(function) => self.function(function),
            E::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref())
            }
            E::Subquery(query) => self.subquery(query, SubqueryKind::Scalar),
            E::Exists { subquery, negated } => {
                let exists = self.subquery(subquery, SubqueryKind::Exists)?;
                Ok(negate(exists, *negated))
            }
            E::Array(array) => self.array(&array.elem),
            E::Tuple(fields) => {
                let fields = fields.iter().map(|field| self.expr(field)).collect::<Result<_>>()?;
                Ok(row(fields))
            }
            _ => self.test(expr),
        }
    }

    /// Analyses a test: an expression with a boolean value that has words of its own.
    fn test(&mut self, expr: &ast::Expr) -> Result<Expr> {
        use ast::Expr as E;
        match expr {
            E::IsNull(inner) => self.is_null(inner, false),
            E::IsNotNull(inner) => self.is_null(inner, true),
            E::IsTrue(inner) => self.is_truth(inner, Truth::True, false),
            E::IsNotTrue(inner) => self.is_truth(inner, Truth::True, true),
            E::IsFalse(inner) => self.is_truth(inner, Truth::False, false),
            E::IsNotFalse(inner) => self.is_truth(inner, Truth::False, true),
            E::IsUnknown(inner) => self.is_truth(inner, Truth::Unknown, false),
            E::IsNotUnknown(inner) => self.is_truth(inner, Truth::Unknown, true),
            E::IsDistinctFrom(left, right) => self.is_distinct(left, right, false),
            E::IsNotDistinctFrom(left, right) => self.is_distinct(left, right, true),
            E::InList { expr, list, negated } => self.in_list(expr, list, *negated),
            E::InSubquery { expr, subquery, negated } => self.in_subquery(expr, subquery, *negated),
            E::Between { expr, negated, low, high } => self.between(expr, low, high, *negated),
            E::Like { negated, any: false, expr, pattern, escape_char } => self.like(
                if *negated { "!~~" } else { "~~" },
                expr,
                pattern,
                escape_char.as_deref(),
            ),
            E::ILike { negated, any: false, expr, pattern, escape_char } => self.like(
                if *negated { "!~~*" } else { "~~*" },
                expr,
                pattern,
                escape_char.as_deref(),
            ),
            E::AnyOp { left, compare_op, right, .. } => self.any_of(left, compare_op, right, false),
            E::AllOp { left, compare_op, right } => self.any_of(left, compare_op, right, true),
            _ => self.special(expr),
        }
    }

    /// Analyses an expression that must be a boolean; `place` names its clause for the error.
    pub(super) fn truth(&mut self, expr: &ast::Expr, place: &str) -> Result<Expr> {
        let expr = self.expr(expr)?;
        self.as_truth(expr, place)
    }

    pub(super) fn as_truth(&mut self, expr: Expr, place: &str) -> Result<Expr> {
        if !expr.ty.is(oid::BOOL) && !expr.ty.is(oid::UNKNOWN) {
            let what = format!(
                "argument of {place} must be type boolean, not type {}",
                type_name(&expr.ty)
            );
            return Err(Error::new("42804", what));
        }
        self.implicit(expr, &Type::Plain(oid::BOOL))
    }

    /// Converts an expression where PostgreSQL converts without a cast.
    pub(super) fn implicit(&mut self, expr: Expr, to: &Type) -> Result<Expr> {
        coerce(expr, to, -1, Context::Implicit, &mut self.parameters)
    }

    fn compound(&mut self, parts: &[ast::Ident]) -> Result<Expr> {
        match parts {
            [table, column] if self.is_item(table) => self.qualified_column(None, table, column),
            // A field of a row that a column has.
            [row, field] if self.has_column(row) => {
                let row = self.column(row)?;
                field_of(row, &super::idents::folded(field))
            }
            [table, column] => self.qualified_column(None, table, column),
            [schema, table, column] => self.qualified_column(Some(schema), table, column),
            [_, schema, table, column] => self.qualified_column(Some(schema), table, column),
            _ => Err(Error::new("42601", "improper qualified name (too many dotted names)")),
        }
    }

    fn has_column(&mut self, ident: &ast::Ident) -> bool {
        let lowest = self.lowest;
        let is_column = self.column(ident).is_ok();
        self.lowest = lowest;
        is_column
    }

    /// Analyses `a.b[1]`, `(r).f` and `a[1:2]`.
    fn access(&mut self, root: &ast::Expr, chain: &[AccessExpr]) -> Result<Expr> {
        let mut chain = chain;
        let mut names: Vec<ast::Ident> = match root {
            ast::Expr::Identifier(ident) => vec![ident.clone()],
            ast::Expr::CompoundIdentifier(parts) => parts.clone(),
            _ => Vec::new(),
        };
        while let ([_, ..], [AccessExpr::Dot(ast::Expr::Identifier(ident)), rest @ ..]) =
            (&names[..], chain)
        {
            names.push(ident.clone());
            chain = rest;
        }
        let mut at = match &names[..] {
            [] => self.expr(root)?,
            [only] => self.column(only)?,
            several => self.compound(several)?,
        };
        while let [first, rest @ ..] = chain {
            chain = rest;
            at = match first {
                AccessExpr::Dot(ast::Expr::Identifier(field)) => {
                    field_of(at, &super::idents::folded(field))?
                }
                AccessExpr::Dot(_) => return Err(Error::new("42601", "syntax error after a dot")),
                AccessExpr::Subscript(subscript) => self.subscript(at, subscript)?,
            };
        }
        Ok(at)
    }

    fn subscript(&mut self, array: Expr, subscript: &Subscript) -> Result<Expr> {
        let Some(element) = data().element(array.ty.oid()) else {
            let what = format!(
                "cannot subscript type {} because it does not support subscripting",
                type_name(&array.ty)
            );
            return Err(Error::new("42804", what));
        };
        match subscript {
            Subscript::Index { index } => {
                let index = self.integer(index)?;
                // `a[1][2]` is one access to an array of two dimensions.
                if let ExprKind::Element(inner, mut indexes) = array.kind {
                    indexes.push(index);
                    return Ok(Expr::new(ExprKind::Element(inner, indexes), element));
                }
                Ok(Expr::new(ExprKind::Element(Box::new(array), vec![index]), element))
            }
            Subscript::Slice { lower_bound, upper_bound, stride: None } => {
                let mut bound = |bound: &Option<ast::Expr>| match bound {
                    Some(bound) => self.integer(bound).map(|bound| Some(Box::new(bound))),
                    None => Ok(None),
                };
                let (lower, upper) = (bound(lower_bound)?, bound(upper_bound)?);
                let ty = array.ty.clone();
                Ok(Expr::new(ExprKind::Slice(Box::new(array), lower, upper), ty))
            }
            Subscript::Slice { .. } => Err(Error::unsupported("a slice has no stride")),
        }
    }

    fn integer(&mut self, expr: &ast::Expr) -> Result<Expr> {
        let expr = self.expr(expr)?;
        self.implicit(expr, &Type::Plain(oid::INT4))
    }

    fn binary(&mut self, left: &ast::Expr, op: &BinaryOperator, right: &ast::Expr) -> Result<Expr> {
        let is_and = matches!(op, BinaryOperator::And);
        if is_and || matches!(op, BinaryOperator::Or) {
            let place = if is_and { "AND" } else { "OR" };
            let mut terms = Vec::new();
            for side in [left, right] {
                match self.truth(side, place)? {
                    Expr { kind: ExprKind::And(inner), .. } if is_and => terms.extend(inner),
                    Expr { kind: ExprKind::Or(inner), .. } if !is_and => terms.extend(inner),
                    term => terms.push(term),
                }
            }
            let kind = if is_and { ExprKind::And(terms) } else { ExprKind::Or(terms) };
            return Ok(Expr::new(kind, oid::BOOL));
        }
        let (left, right) = (self.expr(left)?, self.expr(right)?);
        self.operator(&operator_name(op)?, left, right)
    }

    fn unary(&mut self, op: UnaryOperator, expr: &ast::Expr) -> Result<Expr> {
        let name = match op {
            UnaryOperator::Not => {
                let truth = self.truth(expr, "NOT")?;
                return Ok(negate(truth, true));
            }
            UnaryOperator::Minus => "-",
            UnaryOperator::Plus => "+",
            UnaryOperator::BitwiseNot => "~",
            UnaryOperator::PGAbs => "@",
            UnaryOperator::PGSquareRoot => "|/",
            UnaryOperator::PGCubeRoot => "||/",
            other => return Err(Error::new("42883", format!("operator {other} does not exist"))),
        };
        let operand = self.expr(expr)?;
        self.prefix_operator(name, operand)
    }

    fn cast(&mut self, expr: &ast::Expr, data_type: &ast::DataType) -> Result<Expr> {
        // The elements of `ARRAY[…]::int[]` take the type, also if there are none.
        if let ast::Expr::Array(array) = expr
            && let (ty, _) = resolve_type(data_type)?
            && let Some(element) = data().element(ty.oid())
        {
            let elements =
                array.elem.iter().map(|element| self.expr(element)).collect::<Result<Vec<_>>>()?;
            if elements.iter().all(|e| data().element(e.ty.oid()).is_none()) {
                let to = Type::Plain(element);
                let typed = elements
                    .into_iter()
                    .map(|e| coerce(e, &to, -1, Context::Explicit, &mut self.parameters));
                return Ok(Expr::new(ExprKind::Array(typed.collect::<Result<_>>()?), ty));
            }
        }
        let expr = self.expr(expr)?;
        self.cast_to(expr, data_type)
    }

    fn cast_to(&mut self, expr: Expr, data_type: &ast::DataType) -> Result<Expr> {
        let (ty, modifier) = resolve_type(data_type)?;
        coerce(expr, &ty, modifier, Context::Explicit, &mut self.parameters)
    }

    fn case(
        &mut self,
        operand: Option<&ast::Expr>,
        conditions: &[ast::CaseWhen],
        otherwise: Option<&ast::Expr>,
    ) -> Result<Expr> {
        let operand = operand.map(|operand| self.expr(operand)).transpose()?;
        let mut whens = Vec::new();
        for when in conditions {
            let condition = self.expr(&when.condition)?;
            let condition = match &operand {
                Some(operand) => self.operator("=", operand.clone(), condition)?,
                None => self.as_truth(condition, "CASE/WHEN")?,
            };
            whens.push((condition, self.expr(&when.result)?));
        }
        let otherwise = otherwise.map(|expr| self.expr(expr)).transpose()?;
        let values = otherwise.iter().chain(whens.iter().map(|(_, value)| value));
        let ty = common_type(values.map(|value| &value.ty), "CASE")?;
        let mut branches = Vec::new();
        for (condition, value) in whens {
            branches.push((condition, self.implicit(value, &ty)?));
        }
        let otherwise = otherwise.map(|value| self.implicit(value, &ty)).transpose()?.map(Box::new);
        Ok(Expr::new(ExprKind::Case { branches, otherwise }, ty))
    }

    /// Analyses `ARRAY[…]`.
    fn array(&mut self, elements: &[ast::Expr]) -> Result<Expr> {
        let elements =
            elements.iter().map(|element| self.expr(element)).collect::<Result<Vec<_>>>()?;
        if elements.is_empty() {
            let error = Error::new("42P18", "cannot determine type of empty array");
            return Err(error.with_hint("write its type, for example ARRAY[]::integer[]"));
        }
        self.array_of(elements)
    }

    /// Makes an array of elements, which take their common type.
    pub(super) fn array_of(&mut self, elements: Vec<Expr>) -> Result<Expr> {
        let ty = common_type(elements.iter().map(|element| &element.ty), "ARRAY")?;
        let elements = elements
            .into_iter()
            .map(|element| self.implicit(element, &ty))
            .collect::<Result<_>>()?;
        Ok(Expr::new(ExprKind::Array(elements), array_type(&ty)?))
    }

    fn is_null(&mut self, inner: &ast::Expr, negated: bool) -> Result<Expr> {
        let expr = Box::new(self.expr(inner)?);
        Ok(Expr::new(ExprKind::IsNull { expr, negated }, oid::BOOL))
    }

    fn is_truth(&mut self, inner: &ast::Expr, truth: Truth, negated: bool) -> Result<Expr> {
        let expr = Box::new(self.truth(inner, "IS TRUE")?);
        Ok(Expr::new(ExprKind::IsTruth { expr, truth, negated }, oid::BOOL))
    }

    fn is_distinct(&mut self, left: &ast::Expr, right: &ast::Expr, negated: bool) -> Result<Expr> {
        let (left, right) = (self.expr(left)?, self.expr(right)?);
        let ty = common_type([&left.ty, &right.ty], "IS DISTINCT FROM")?;
        let left = Box::new(self.implicit(left, &ty)?);
        let right = Box::new(self.implicit(right, &ty)?);
        Ok(Expr::new(ExprKind::IsDistinct { left, right, negated }, oid::BOOL))
    }

    fn between(
        &mut self,
        expr: &ast::Expr,
        low: &ast::Expr,
        high: &ast::Expr,
        negated: bool,
    ) -> Result<Expr> {
        let expr = self.expr(expr)?;
        let (low, high) = (self.expr(low)?, self.expr(high)?);
        let (low_name, high_name) = if negated { ("<", ">") } else { (">=", "<=") };
        let bounds = vec![
            self.operator(low_name, expr.clone(), low)?,
            self.operator(high_name, expr, high)?,
        ];
        let kind = if negated { ExprKind::Or(bounds) } else { ExprKind::And(bounds) };
        Ok(Expr::new(kind, oid::BOOL))
    }

    fn in_list(&mut self, left: &ast::Expr, list: &[ast::Expr], negated: bool) -> Result<Expr> {
        let left = self.expr(left)?;
        let list = list.iter().map(|item| self.expr(item)).collect::<Result<Vec<_>>>()?;
        let name = if negated { "<>" } else { "=" };
        let types = std::iter::once(&left.ty).chain(list.iter().map(|item| &item.ty));
        let common = common_type(types, "IN");
        let is_row = matches!(left.kind, ExprKind::Row(_));
        // One comparison with an array is shorter than one for each item, and may use an index.
        if let (false, true, Ok(common)) = (is_row, list.len() > 1, common) {
            let is_unknown = list.iter().all(|item| item.ty.is(oid::UNKNOWN));
            let list = match is_unknown {
                true => list
                    .into_iter()
                    .map(|item| self.implicit(item, &common))
                    .collect::<Result<_>>()?,
                false => list,
            };
            let array = self.array_of(list)?;
            return self.any_of_array(left, name, array, negated);
        }
        let terms = list.into_iter().map(|item| self.operator(name, left.clone(), item));
        let terms = terms.collect::<Result<Vec<_>>>()?;
        let kind = if negated { ExprKind::And(terms) } else { ExprKind::Or(terms) };
        Ok(Expr::new(kind, oid::BOOL))
    }
}

/// Returns `NOT expr` if `negated`.
pub(super) fn negate(expr: Expr, negated: bool) -> Expr {
    if negated { Expr::new(ExprKind::Not(Box::new(expr)), oid::BOOL) } else { expr }
}

/// Makes a row with the fields `f1`, `f2` ….
pub(super) fn row(fields: Vec<Expr>) -> Expr {
    let field = |(at, expr): (usize, &Expr)| crate::types::Field {
        name: format!("f{}", at + 1),
        ty: expr.ty.clone(),
    };
    let ty = Type::Row(fields.iter().enumerate().map(field).collect());
    Expr::new(ExprKind::Row(fields), ty)
}

/// Returns a field of a row.
pub(super) fn field_of(row: Expr, name: &str) -> Result<Expr> {
    let Type::Row(fields) = &row.ty else {
        let what = format!(
            "column notation .{name} applied to type {}, which is not a composite type",
            type_name(&row.ty)
        );
        return Err(Error::new("42809", what));
    };
    let Some(at) = fields.iter().position(|field| field.name == name) else {
        return Err(Error::new(
            "42703",
            format!("could not identify column \"{name}\" in record data type"),
        ));
    };
    let ty = fields[at].ty.clone();
    if let ExprKind::Row(mut values) = row.kind {
        return Ok(values.swap_remove(at));
    }
    Ok(Expr::new(ExprKind::Field(Box::new(row), at), ty))
}
