//! Functions and operators of JSON.

mod build;
mod read;

pub(super) use self::build::{to_json, write_value};
pub(super) use self::read::{comparison, operator};

use super::signature::{Scalar, SetOf};
use crate::data::FunctionRow;

/// Returns the implementation of a function.
pub(super) fn find(row: &FunctionRow) -> Option<Scalar> {
    read::find(row).or_else(|| build::find(row))
}

/// Returns the implementation of a function that returns a set.
pub(super) fn find_set(row: &FunctionRow) -> Option<SetOf> {
    read::find_set(row)
}
