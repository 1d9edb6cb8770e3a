//! Functions of texts.

mod format;
mod pieces;
mod regexp;
mod strings;

use super::signature::{Scalar, SetOf};
use crate::data::FunctionRow;

/// Returns the implementation of a function.
pub(super) fn find(row: &FunctionRow) -> Option<Scalar> {
    strings::find(row)
        .or_else(|| pieces::find(row))
        .or_else(|| regexp::find(row))
        .or_else(|| format::find(row))
}

/// Returns the implementation of a function that returns a set.
pub(super) fn find_set(row: &FunctionRow) -> Option<SetOf> {
    regexp::find_set(row)
}
