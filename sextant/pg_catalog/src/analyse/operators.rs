//! Operators: their choice, comparisons of rows, LIKE, ANY and ALL.

use proto::value::Value;
use sqlparser::ast::{self, BinaryOperator};

use super::Analyser;
use super::polymorphic::polymorphic;
use super::resolve::{Candidate, NoChoice, choose};
use crate::data::data;
use crate::error::{Error, Result};
use crate::plan::{Call, Comparison, Expr, ExprKind};
use crate::types::Type;
use crate::types::name::type_name;
use crate::types::oid::{self, Oid};

/// Returns the name of an operator.
pub(super) fn operator_name(op: &BinaryOperator) -> Result<String> {
    Ok(match op {
        // With or without a schema: all operators are in pg_catalog.
        BinaryOperator::PGCustomBinaryOperator(parts) => parts.last().cloned().unwrap_or_default(),
        BinaryOperator::NotEq => "<>".to_owned(),
        other => {
            let name = other.to_string();
            match name.chars().all(|c| "+-*/<>=~!@#%^&|`?".contains(c)) {
                true => name,
                false => {
                    return Err(Error::unsupported(format!(
                        "the operator {name} is not supported"
                    )));
                }
            }
        }
    })
}

impl Analyser<'_> {
    /// Makes the call of an operator with two operands.
    pub(super) fn operator(&mut self, name: &str, left: Expr, right: Expr) -> Result<Expr> {
        let name = if name == "!=" { "<>" } else { name };
        if let (ExprKind::Row(l), ExprKind::Row(r)) = (&left.kind, &right.kind) {
            let (l, r) = (l.clone(), r.clone());
            return self.compare_rows(name, l, r);
        }
        let (index, parameters) = choose_operator(name, Some(left.ty.oid()), right.ty.oid())?;
        let operator = &data().operators[index];
        let types = [left.ty.clone(), right.ty.clone()];
        let resolved = polymorphic(&parameters, &types, operator.result)?;
        let arguments = vec![
            self.implicit(left, &resolved.parameters[0])?,
            self.implicit(right, &resolved.parameters[1])?,
        ];
        Ok(Expr::new(ExprKind::Call(Call::Operator(index), arguments), resolved.result))
    }

    /// Makes the call of an operator before its operand.
    pub(super) fn prefix_operator(&mut self, name: &str, operand: Expr) -> Result<Expr> {
        // A negative number is a literal.
        if let ("-", ExprKind::Constant(Value::Number(number))) = (name, &operand.kind)
            && let Some(negative) = number.as_i64().and_then(i64::checked_neg)
        {
            return Ok(Expr::constant(Value::int(negative), operand.ty));
        }
        let (index, parameters) = choose_operator(name, None, operand.ty.oid())?;
        let result = data().operators[index].result;
        let operand = self.implicit(operand, &Type::Plain(parameters[0]))?;
        Ok(Expr::new(ExprKind::Call(Call::Operator(index), vec![operand]), result))
    }

    /// Compares two rows field by field.
    fn compare_rows(&mut self, name: &str, left: Vec<Expr>, right: Vec<Expr>) -> Result<Expr> {
        if left.len() != right.len() {
            return Err(Error::new("42601", "unequal number of entries in row expressions"));
        }
        let pairs: Vec<(Expr, Expr)> = left.into_iter().zip(right).collect();
        let each = |analyser: &mut Self, name: &str| {
            let pairs = pairs.iter().cloned();
            pairs.map(|(l, r)| analyser.operator(name, l, r)).collect::<Result<Vec<_>>>()
        };
        let kind = match name {
            "=" => ExprKind::And(each(self, "=")?),
            "<>" => ExprKind::Or(each(self, "<>")?),
            "<" | "<=" | ">" | ">=" => {
                // The first fields that differ decide: a < b OR (a = b AND …).
                let strict = &name[..1];
                let (equal, strictly, last) =
                    (each(self, "=")?, each(self, strict)?, each(self, name)?);
                let mut terms = Vec::new();
                for at in 0..pairs.len() {
                    let decides = if at + 1 == pairs.len() { &last[at] } else { &strictly[at] };
                    let mut all = equal[..at].to_vec();
                    all.push(decides.clone());
                    terms.push(Expr::new(ExprKind::And(all), oid::BOOL));
                }
                ExprKind::Or(terms)
            }
            _ => return Err(Error::unsupported(format!("rows cannot be compared with {name}"))),
        };
        Ok(Expr::new(kind, oid::BOOL))
    }

    /// Analyses LIKE and its kin; `name` is the operator that it stands for.
    pub(super) fn like(
        &mut self,
        name: &str,
        left: &ast::Expr,
        pattern: &ast::Expr,
        escape: Option<&ast::Expr>,
    ) -> Result<Expr> {
        let (left, mut pattern) = (self.expr(left)?, self.expr(pattern)?);
        if let Some(escape) = escape {
            let escape = self.expr(escape)?;
            pattern = self.call("like_escape", vec![pattern, escape])?;
        }
        self.operator(name, left, pattern)
    }

    /// Analyses `left op ANY (right)` and ALL, over an array or a subquery.
    pub(super) fn any_of(
        &mut self,
        left: &ast::Expr,
        op: &BinaryOperator,
        right: &ast::Expr,
        all: bool,
    ) -> Result<Expr> {
        let name = operator_name(op)?;
        let mut right = right;
        while let ast::Expr::Nested(inner) = right {
            right = inner;
        }
        if let ast::Expr::Subquery(query) = right {
            return self.any_of_subquery(left, &name, query, all);
        }
        let (left, array) = (self.expr(left)?, self.expr(right)?);
        self.any_of_array(left, &name, array, all)
    }

    pub(super) fn any_of_array(
        &mut self,
        left: Expr,
        name: &str,
        array: Expr,
        all: bool,
    ) -> Result<Expr> {
        // A literal or parameter takes the array type of the left operand.
        let array = match (array.ty.oid(), data().array_of(left.ty.oid())) {
            (oid::UNKNOWN, Some(ty)) => self.implicit(array, &Type::Plain(ty))?,
            (oid::UNKNOWN, None) => self.implicit(array, &Type::Plain(oid::TEXT_ARRAY))?,
            _ => array,
        };
        let Some(element) = data().element(array.ty.oid()) else {
            return Err(Error::new("42809", "op ANY/ALL (array) requires array on right side"));
        };
        let (operator, parameters) = choose_operator(name, Some(left.ty.oid()), element)?;
        check_boolean(operator)?;
        let resolved =
            polymorphic(&parameters, &[left.ty.clone(), Type::Plain(element)], oid::BOOL)?;
        let left = Box::new(self.implicit(left, &resolved.parameters[0])?);
        let array = match data().array_of(resolved.parameters[1].oid()) {
            Some(ty) if ty != array.ty.oid() => self.implicit(array, &Type::Plain(ty))?,
            _ => array,
        };
        let comparison = Comparison { operator };
        Ok(Expr::new(ExprKind::AnyOf { left, comparison, array: Box::new(array), all }, oid::BOOL))
    }
}

/// Chooses the operator that compares a value with a column of a subquery. Returns its index and the types of its operands.
pub(super) fn comparison_operator(
    name: &str,
    left: Oid,
    right: Oid,
) -> Result<(Comparison, Vec<Oid>)> {
    let (operator, parameters) = choose_operator(name, Some(left), right)?;
    check_boolean(operator)?;
    Ok((Comparison { operator }, parameters))
}

fn check_boolean(operator: usize) -> Result<()> {
    match data().operators[operator].result == oid::BOOL {
        true => Ok(()),
        false => Err(Error::new("42809", "op ANY/ALL (array) requires operator to yield boolean")),
    }
}

/// Chooses an operator; `left` is `None` before a single operand. Returns its index and the types of its operands.
fn choose_operator(name: &str, left: Option<Oid>, right: Oid) -> Result<(usize, Vec<Oid>)> {
    let arguments: Vec<Oid> = left.into_iter().chain([right]).collect();
    let candidates = data().operators_named(name).filter(|row| (row.left != 0) == left.is_some());
    let candidate = |row: &crate::data::OperatorRow| Candidate {
        parameters: if row.left == 0 { vec![row.right] } else { vec![row.left, row.right] },
        choice: row.index,
    };
    let chosen = choose(candidates.map(candidate).collect(), &arguments, left.is_some());
    let shown = |ty: Oid| type_name(&Type::Plain(ty));
    let call = match left {
        Some(left) => format!("{} {name} {}", shown(left), shown(right)),
        None => format!("{name} {}", shown(right)),
    };
    match chosen {
        Ok(candidate) => Ok((candidate.choice, candidate.parameters)),
        Err(NoChoice::None) => Err(Error::new("42883", format!("operator does not exist: {call}")).with_hint(
            "No operator matches the given name and argument types. You might need to add explicit type casts.",
        )),
        Err(NoChoice::Ambiguous) => Err(Error::new("42725", format!("operator is not unique: {call}")).with_hint(
            "Could not choose a best candidate operator. You might need to add explicit type casts.",
        )),
    }
}
