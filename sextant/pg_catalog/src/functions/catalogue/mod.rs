//! Functions that read the catalogue: visibility, privileges, descriptions, definitions, sizes.

mod acl;
mod column_types;
mod definition;
mod describe;
mod object;
mod privilege;
mod size;
mod table;
mod visible;

use super::signature::{Scalar, SetOf};
use crate::data::FunctionRow;

/// Returns the implementation of a function.
pub(super) fn find(row: &FunctionRow) -> Option<Scalar> {
    visible::find(row)
        .or_else(|| describe::find(row))
        .or_else(|| definition::find(row))
        .or_else(|| privilege::find(row))
        .or_else(|| size::find(row))
        .or_else(|| object::find(row))
        .or_else(|| column_types::find(row))
}

/// Returns the implementation of a function that returns a set.
pub(super) fn find_set(row: &FunctionRow) -> Option<SetOf> {
    acl::find_set(row).or_else(|| object::find_set(row))
}
