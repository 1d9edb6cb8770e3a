//! The planner: turns a SELECT and the definition of an index or bucket into a plan.
//!
//! Planning has two steps, because a prepared statement is described to the client before its
//! parameters have values. First, [`resolve`] replaces names by columns and determines the types
//! of columns and parameters. Second, [`ResolvedSelect::plan`] inserts the values and chooses the
//! ranges to scan. Neither step does I/O.

mod coerce;
mod column_info;
mod columns;
mod condition;
mod constant;
mod divided_scan;
mod documents;
mod explain;
mod index;
mod kinds;
mod limit_offset;
#[cfg(test)]
mod meaning_tests;
mod names;
mod order;
mod parameters;
mod partitions;
mod ranges;
mod select;
#[cfg(test)]
mod tests;
mod text_comparison;
mod truth;
mod types;
mod value_set;

pub use crate::access::Relation;
pub use column_info::ColumnInfo;
pub use constant::{ConstantPlan, ConstantValue};
pub use divided_scan::Merge;
pub use documents::{DocumentColumn, DocumentPlan};
pub use index::{Cell, IndexPlan};
pub use kinds::Kinds;
pub use ranges::RANGES_MAX;
pub use select::{Plan, ResolvedSelect, resolve};
pub use text_comparison::TextComparison;

pub(crate) use coerce::{coerce, number_as_text};
pub(crate) use constant::refuse_names;
pub(crate) use parameters::{ParameterTypes, bind, constant, declare};
pub(crate) use truth::check_condition;
pub(crate) use types::{DocumentOperands, UnresolvedExpr, document_type};
