//! Conversions between types: which are possible, and the type that several expressions have in
//! common (PostgreSQL's manual, sections "Value Storage" and "UNION, CASE, and Related Constructs").

use proto::value::Value;

use crate::data::data;
use crate::error::{Error, Result};
use crate::plan::{Expr, ExprKind};
use crate::types::Type;
use crate::types::name::type_name;
use crate::types::oid::{self, Oid};

/// The context of a conversion: what may happen without being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Context {
    /// In any expression.
    Implicit,
    /// A written cast.
    Explicit,
}

/// Returns true for a pseudo-type that stands for any type.
pub(super) fn is_polymorphic(ty: Oid) -> bool {
    matches!(
        ty,
        oid::ANY
            | oid::ANYELEMENT
            | oid::ANYARRAY
            | oid::ANYNONARRAY
            | oid::ANYCOMPATIBLE
            | oid::ANYCOMPATIBLEARRAY
            | oid::ANYCOMPATIBLENONARRAY
    )
}

/// Returns true for the arrays of the catalogue that count from 0.
fn is_vector(ty: Oid) -> bool {
    matches!(ty, oid::INT2VECTOR | oid::OIDVECTOR)
}

/// Returns the category of a type, such as `N`; `P` for rows.
pub(super) fn category(ty: Oid) -> char {
    data().type_row(ty).map_or('P', |row| row.category)
}

/// Returns true if the type is the preferred one of its category.
pub(super) fn is_preferred(ty: Oid) -> bool {
    data().type_row(ty).is_some_and(|row| row.is_preferred)
}

/// Returns true if a value of one type can become one of another.
pub(super) fn can_coerce(from: Oid, to: Oid, context: Context) -> bool {
    let (from, to) = (data().base(from), data().base(to));
    if from == to || from == oid::UNKNOWN || to == oid::ANY {
        return true;
    }
    let is_array = data().element(from).is_some();
    match to {
        oid::ANYELEMENT | oid::ANYCOMPATIBLE => return true,
        oid::ANYARRAY | oid::ANYCOMPATIBLEARRAY => return is_array,
        oid::ANYNONARRAY | oid::ANYCOMPATIBLENONARRAY => return !is_array,
        _ => {}
    }
    if let Some(cast) = data().casts.get(&(from, to)) {
        return cast.context == 'i' || context == Context::Explicit;
    }
    // `int2vector` and `oidvector` become arrays of their elements, but no array becomes one.
    if let (Some(from), Some(to)) =
        (data().element(from), data().element(to).filter(|_| !is_vector(to)))
    {
        return can_coerce(from, to, context);
    }
    context == Context::Explicit && (category(to) == 'S' || category(from) == 'S')
}

/// Converts an expression to a type. A literal or parameter of unknown type takes the type.
pub(super) fn coerce(
    expr: Expr,
    to: &Type,
    modifier: i32,
    context: Context,
    parameters: &mut Parameters,
) -> Result<Expr> {
    if let (ExprKind::Parameter(number), oid::UNKNOWN) = (&expr.kind, expr.ty.oid()) {
        let (number, kind) = (*number, ExprKind::Parameter(*number));
        let own = parameters.infer(number, to.oid());
        let typed = Expr::new(kind, own);
        return match own == to.oid() && modifier < 0 {
            true => Ok(typed),
            false => coerce(typed, to, modifier, context, parameters),
        };
    }
    if expr.ty == *to && modifier < 0 {
        return Ok(expr);
    }
    let is_null = matches!(expr.kind, ExprKind::Constant(Value::Null));
    if is_null && expr.ty.is(oid::UNKNOWN) {
        return Ok(Expr::constant(Value::Null, to.clone()));
    }
    if let (Type::Row(_), oid::RECORD) = (&expr.ty, to.oid()) {
        return Ok(expr);
    }
    if !can_coerce(expr.ty.oid(), to.oid(), context) {
        let what = format!("cannot cast type {} to {}", type_name(&expr.ty), type_name(to));
        return Err(Error::new("42846", what));
    }
    Ok(Expr::new(ExprKind::Cast { expr: Box::new(expr), modifier }, to.clone()))
}

/// The types of a statement's parameters.
#[derive(Clone, Debug, Default)]
pub(super) struct Parameters(Vec<Option<Oid>>);

impl Parameters {
    /// Creates the types that the client has declared; 0 and `unknown` declare none.
    pub(super) fn declared(oids: &[Oid]) -> Self {
        Self(
            oids.iter().map(|ty| Some(*ty).filter(|ty| !matches!(*ty, 0 | oid::UNKNOWN))).collect(),
        )
    }

    /// Returns the type of a parameter: `unknown` as long as nothing implies it.
    pub(super) fn ty(&mut self, number: usize) -> Oid {
        if self.0.len() <= number {
            self.0.resize(number + 1, None);
        }
        self.0[number].unwrap_or(oid::UNKNOWN)
    }

    /// Sets the type of a parameter if it has none yet, and returns its type.
    fn infer(&mut self, number: usize, ty: Oid) -> Oid {
        match self.ty(number) {
            oid::UNKNOWN => {
                let ty = if is_polymorphic(ty) { oid::TEXT } else { ty };
                self.0[number] = Some(ty);
                ty
            }
            own => own,
        }
    }

    /// Returns the types; `text` where nothing implied one.
    pub(super) fn finish(self) -> Vec<Oid> {
        self.0.into_iter().map(|ty| ty.unwrap_or(oid::TEXT)).collect()
    }
}

/// Returns the common type of several expressions, by the rules for UNION and CASE; `text` if none has a type.
/// The name of the construct is for the error (42804).
pub(super) fn common_type<'t>(
    types: impl IntoIterator<Item = &'t Type>,
    construct: &str,
) -> Result<Type> {
    let mut common: Option<Type> = None;
    for ty in types.into_iter().filter(|ty| !ty.is(oid::UNKNOWN)) {
        let ty = match ty {
            Type::Plain(plain) => Type::Plain(data().base(*plain)),
            row => row.clone(),
        };
        let Some(so_far) = &common else {
            common = Some(ty);
            continue;
        };
        if *so_far == ty {
            continue;
        }
        let (a, b) = (so_far.oid(), ty.oid());
        if category(a) != category(b) {
            let (a, b) = (type_name(so_far), type_name(&ty));
            return Err(Error::new(
                "42804",
                format!("{construct} types {a} and {b} cannot be matched"),
            ));
        }
        let implicit = |from, to| can_coerce(from, to, Context::Implicit);
        if !is_preferred(a) && implicit(a, b) && !implicit(b, a) {
            common = Some(ty);
        }
    }
    Ok(common.unwrap_or(Type::Plain(oid::TEXT)))
}
