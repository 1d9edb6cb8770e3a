//! Pseudo-types: the types that `anyelement` and its kin stand for in one call.

use super::coerce::{common_type, is_polymorphic};
use crate::data::data;
use crate::error::{Error, Result};
use crate::types::Type;
use crate::types::name::type_name;
use crate::types::oid::{self, Oid};

/// The types of a call whose pseudo-types are resolved.
pub(super) struct Polymorphic {
    pub(super) parameters: Vec<Type>,
    pub(super) result: Type,
}

/// Returns the type of arrays of this type.
pub(super) fn array_type(element: &Type) -> Result<Type> {
    let ty = match element {
        Type::Row(_) => Some(oid::RECORD_ARRAY),
        // An array of arrays is one array with more dimensions.
        Type::Plain(ty)
            if data().element(*ty).is_some()
                && !matches!(*ty, oid::INT2VECTOR | oid::OIDVECTOR) =>
        {
            Some(*ty)
        }
        Type::Plain(ty) => data().array_of(*ty),
    };
    let unknown = || {
        Error::new(
            "42704",
            format!("could not find array type for data type {}", type_name(element)),
        )
    };
    ty.map(Type::Plain).ok_or_else(unknown)
}

/// Returns the types of a call's parameters and result where they are pseudo-types: one type for all
/// `anyelement` and `anyarray`, and one common type for all `anycompatible`.
pub(super) fn polymorphic(
    parameters: &[Oid],
    arguments: &[Type],
    result: Oid,
) -> Result<Polymorphic> {
    let is_any = |ty: Oid| is_polymorphic(ty) && ty != oid::ANY;
    if !parameters.iter().any(|ty| is_any(*ty)) {
        let parameters = parameters.iter().map(|ty| Type::Plain(*ty)).collect();
        return Ok(Polymorphic { parameters, result: Type::Plain(result) });
    }
    let mut elements = Vec::new();
    for (parameter, argument) in
        parameters.iter().zip(arguments).filter(|(parameter, _)| is_any(**parameter))
    {
        let is_array = matches!(*parameter, oid::ANYARRAY | oid::ANYCOMPATIBLEARRAY);
        elements.push(match (is_array, data().element(argument.oid())) {
            (true, Some(element)) => Type::Plain(element),
            _ => argument.clone(),
        });
    }
    let is_strict = parameters
        .iter()
        .any(|ty| matches!(*ty, oid::ANYELEMENT | oid::ANYARRAY | oid::ANYNONARRAY));
    let known: Vec<&Type> = elements.iter().filter(|ty| !ty.is(oid::UNKNOWN)).collect();
    let element = match (is_strict, known.as_slice()) {
        (true, [first, rest @ ..]) => match rest.iter().find(|ty| **ty != *first) {
            Some(other) => {
                let what = format!(
                    "arguments declared \"anyelement\" are not all alike: {} versus {}",
                    type_name(first),
                    type_name(other)
                );
                return Err(Error::new("42804", what));
            }
            None => (*first).clone(),
        },
        _ => common_type(elements.iter(), "arguments")?,
    };
    let resolve = |ty: Oid| match ty {
        oid::ANYELEMENT | oid::ANYNONARRAY | oid::ANYCOMPATIBLE | oid::ANYCOMPATIBLENONARRAY => {
            Ok(element.clone())
        }
        oid::ANYARRAY | oid::ANYCOMPATIBLEARRAY => array_type(&element),
        other => Ok(Type::Plain(other)),
    };
    let parameters = parameters.iter().map(|ty| resolve(*ty)).collect::<Result<_>>()?;
    Ok(Polymorphic { parameters, result: resolve(result)? })
}
