//! The types of a statement's parameters, and the replacement of parameters by values.
//!
//! A parameter has the type that its client has declared, or else the type of a cast `$1::type`,
//! or else the type of the expression with which it is compared, or else the type that its clause
//! requires, or else text. If it occurs several times, the first occurrence that determines a
//! type decides.

use proto::expr::cast::cast;
use proto::expr::cost::CostMeter;
use proto::expr::eval::{DocumentScope, EvalError, Evaluation};
use proto::expr::{ColumnType, Expr, Function};
use proto::value::Value;
use proto::{Error, ErrorCode, Result};

use super::coerce::coerce;
use super::columns::Columns;
use super::types::{DocumentOperands, OperandRule, document_type};
use crate::sql::ast::{Select, SelectExpr, SelectItem};
use crate::sql::walk::{children_mut, rewrite};

/// The types of a statement's parameters. A type is `None` while it is unknown.
#[derive(Debug)]
pub(crate) struct ParameterTypes(Vec<Option<ColumnType>>);

impl ParameterTypes {
    pub(crate) fn new(parameters: u16) -> Self {
        Self(vec![None; usize::from(parameters)])
    }

    /// Returns the types. A parameter of unknown type is a text.
    pub(crate) fn finish(self) -> Vec<ColumnType> {
        self.0.into_iter().map(Option::unwrap_or_default).collect()
    }

    /// Records the type of a parameter, if `expr` is one, in a place that requires this type.
    pub(crate) fn expect(&mut self, expr: &Expr, column_type: ColumnType) {
        if let Expr::Parameter(n) = expr
            && let Some(slot) = self.0.get_mut(usize::from(*n))
        {
            slot.get_or_insert(column_type);
        }
    }

    /// Returns the known type of a parameter.
    fn known(&self, expr: &Expr) -> Option<ColumnType> {
        match expr {
            Expr::Parameter(n) => self.0.get(usize::from(*n)).copied().flatten(),
            _ => None,
        }
    }

    /// Records that expressions (ids, documents) are text.
    pub(crate) fn expect_text<'e>(&mut self, exprs: impl IntoIterator<Item = &'e Expr>) {
        for expr in exprs {
            self.infer_from(expr, None);
            self.expect(expr, ColumnType::Text);
        }
    }

    /// Infers the types of parameters from a resolved condition.
    pub(crate) fn infer_from_condition(&mut self, condition: &Expr, columns: Option<Columns<'_>>) {
        self.expect(condition, ColumnType::Bool);
        self.infer_from(condition, columns);
    }

    /// Infers the types of parameters from a resolved expression. Both sides of a comparison have
    /// one type, which is text if no operand has a type.
    pub(crate) fn infer_from(&mut self, expr: &Expr, columns: Option<Columns<'_>>) {
        let peers: Vec<&Expr> = match expr {
            Expr::Cast(inner, to) => {
                self.expect(inner, *to);
                Vec::new()
            }
            Expr::And(list) | Expr::Or(list) => {
                list.iter().for_each(|term| self.expect(term, ColumnType::Bool));
                Vec::new()
            }
            Expr::Not(inner) => {
                self.expect(inner, ColumnType::Bool);
                Vec::new()
            }
            Expr::Compare(_, l, r) | Expr::Arithmetic(_, l, r) => vec![l, r],
            Expr::Between { expr, low, high, .. } => vec![expr, low, high],
            Expr::In { expr, list, .. } => std::iter::once(&**expr).chain(&**list).collect(),
            Expr::Call(Function::Coalesce, list) => list.iter().collect(),
            _ => Vec::new(),
        };
        let is_untyped = |peer: &Expr| {
            matches!(peer, Expr::Parameter(_) | Expr::Literal(Value::String(_) | Value::Null))
        };
        let typed = peers.iter().filter(|peer| !is_untyped(peer)).map(|peer| match columns {
            Some(columns) => columns.type_of(peer),
            None => document_type(peer),
        });
        let typed = OperandRule::of(expr).type_from_others(typed);
        let typed = typed.or_else(|| peers.iter().find_map(|peer| self.known(peer)));
        let is_number = matches!(expr, Expr::Arithmetic(..));
        if let Some(column_type) = typed.or((!is_number).then_some(ColumnType::Text)) {
            peers.iter().for_each(|peer| self.expect(peer, column_type));
        }
        expr.children().into_iter().for_each(|child| self.infer_from(child, columns));
    }
}

/// Adds casts to parameters that the client has declared as numbers with fractions, where the
/// result of arithmetic or a cast depends on the type. Values have no static type, so without the
/// cast the value 7 of a `float8` would be divided as an integer.
pub(crate) fn declare(select: &mut Select, declared: &impl Fn(u16) -> Option<ColumnType>) {
    let items = select.items.iter_mut().filter_map(|item| match item {
        SelectItem::Expr { expr: SelectExpr::Scalar(expr), .. } => Some(expr),
        SelectItem::Expr { expr: SelectExpr::Aggregate { argument, .. }, .. } => argument.as_mut(),
        _ => None,
    });
    let orders = select.order_by.iter_mut().map(|item| &mut item.expr);
    let others = [&mut select.filter, &mut select.limit, &mut select.offset];
    let others = others.into_iter().flatten();
    items.chain(orders).chain(others).for_each(|expr| declare_in(expr, declared));
}

/// Adds these casts in one expression.
fn declare_in(expr: &mut Expr, declared: &impl Fn(u16) -> Option<ColumnType>) {
    let depends =
        matches!(expr, Expr::Arithmetic(..) | Expr::Cast(..) | Expr::Negate(_) | Expr::Call(..));
    for child in children_mut(expr) {
        match &*child {
            Expr::Parameter(n) if depends => {
                if let Some(column_type) = declared(*n) {
                    *child = Expr::Cast(Box::new(Expr::Parameter(*n)), column_type);
                }
            }
            _ => declare_in(child, declared),
        }
    }
}

/// Replaces parameters by their values, converts untyped literals to the types of the other
/// operands, and computes constant subexpressions. Adds the cost of all constants to `cost`.
pub(crate) fn bind(
    expr: &mut Expr,
    values: &[Value],
    columns: Option<Columns<'_>>,
    cost: &CostMeter,
) -> Result<()> {
    rewrite(expr, &mut |expr| match expr {
        Expr::Cast(inner, to) => check_typed(inner, *to).map(|()| false),
        Expr::Parameter(n) => match values.get(usize::from(*n)) {
            Some(value) => {
                *expr = Expr::Literal(value.clone());
                Ok(true)
            }
            None => Err(Error::new(
                ErrorCode::InvalidParameter,
                format!("parameter ${} has no value", *n + 1),
            )),
        },
        _ => Ok(false),
    })?;
    match columns {
        Some(columns) => coerce(expr, &columns)?,
        None => coerce(expr, &DocumentOperands)?,
    }
    compute_constants(expr, false, cost)?;
    Ok(())
}

/// Returns an error if a text that is written with a type (`'yes'::numeric`) has no value of this
/// type. This is an error even where the text would not be evaluated, since it is a part of the
/// statement. Values of parameters are not checked.
fn check_typed(written: &Expr, to: ColumnType) -> Result<()> {
    match written {
        Expr::Literal(value @ Value::String(_)) => {
            cast(value, to).map_err(|unfit| unfit.error(value, to))?;
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Replaces constant subexpressions by their values, from the inside out. Returns true if the
/// complete expression then is a value. The stack frame of this recursion is small, because an
/// expression may have 500 levels.
fn compute_constants(
    expr: &mut Expr,
    is_guarded: bool,
    cost: &CostMeter,
) -> std::result::Result<bool, EvalError> {
    if matches!(expr, Expr::Literal(_)) {
        return Ok(true);
    }
    let mut is_constant =
        !matches!(expr, Expr::Column(_) | Expr::DocumentId | Expr::Path(_) | Expr::Unnest(_));
    let guards = matches!(expr, Expr::And(_) | Expr::Or(_) | Expr::Call(Function::Coalesce, _));
    for child in children_mut(expr) {
        is_constant &= compute_constants(child, is_guarded || guards, cost)?;
    }
    if let Some(decided) = determined_value(expr) {
        *expr = Expr::Literal(Value::Bool(decided));
        return Ok(true);
    }
    Ok(is_constant && compute(expr, is_guarded, cost)?)
}

/// Returns the value of an AND or OR if one of its constant terms determines it. The other terms
/// are then not evaluated, so they cannot fail.
fn determined_value(expr: &Expr) -> Option<bool> {
    let (conditions, deciding) = match expr {
        Expr::And(conditions) => (conditions, false),
        Expr::Or(conditions) => (conditions, true),
        _ => return None,
    };
    let decides = |condition: &Expr| matches!(condition, Expr::Literal(Value::Bool(value)) if *value == deciding);
    conditions.iter().any(decides).then_some(deciding)
}

/// Replaces a constant expression by its value. Returns false if the computation fails and the
/// expression is guarded, which means that another condition may prevent its evaluation (`$1 = ''
/// OR n = $1::int8`). The error then occurs only when the expression is evaluated.
fn compute(
    expr: &mut Expr,
    is_guarded: bool,
    cost: &CostMeter,
) -> std::result::Result<bool, EvalError> {
    match evaluate(expr, cost) {
        Ok(value) => *expr = Expr::Literal(value),
        Err(EvalError::Failed(_)) if is_guarded => return Ok(false),
        Err(error) => return Err(error),
    }
    Ok(true)
}

fn evaluate(expr: &Expr, cost: &CostMeter) -> std::result::Result<Value, EvalError> {
    let nothing = DocumentScope { id: "", doc: &Value::Missing };
    Ok(Evaluation::of_query(&nothing, cost).eval(expr)?.into_owned())
}

/// Returns the value of a constant expression.
pub(crate) fn constant(expr: &Expr, cost: &CostMeter) -> Result<Value> {
    if let Expr::Literal(value) = expr {
        return Ok(value.clone());
    }
    Ok(evaluate(expr, cost)?)
}

/// Returns the number of rows in LIMIT or OFFSET; `None` for NULL. A text or a fraction is
/// converted to a whole number, as in PostgreSQL.
pub(crate) fn row_count(expr: &Expr, clause: &str, cost: &CostMeter) -> Result<Option<u64>> {
    let value = constant(expr, cost)?;
    let number = cast(&value, ColumnType::Int8)
        .map_err(|unfit| unfit.error(&value, ColumnType::Int8).context(clause))?;
    let Some(number) = number.as_number() else { return Ok(None) };
    let rows = number.as_i64().and_then(|n| u64::try_from(n).ok());
    let negative =
        || Error::new(ErrorCode::InvalidParameter, format!("{clause} must not be negative"));
    rows.map(Some).ok_or_else(negative)
}
