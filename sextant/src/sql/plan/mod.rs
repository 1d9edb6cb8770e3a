//! The planner: from a SELECT and the definition of what it reads to a scan.
//!
//! It works in two steps, because a prepared statement is described before its parameters have
//! values. [`resolve`] replaces names by columns and knows the types of columns and parameters;
//! [`Resolved::plan`] puts the values in and decides how to read. Neither does any I/O.

mod columns;
mod constant;
mod documents;
mod explain;
mod index;
mod names;
mod order;
mod parameters;
mod ranges;
mod relation;
mod select;
#[cfg(test)]
mod tests;
mod window;

pub use constant::{ConstantPlan, ConstantValue};
pub use documents::{DocumentColumn, DocumentPlan};
pub use index::{Cell, IndexPlan};
pub use ranges::RANGES_MAX;
pub use relation::{ColumnInfo, Relation};
pub use select::{Plan, Resolved, resolve};

pub(crate) use constant::refuse_names;
pub(crate) use parameters::{ParameterTypes, bind, constant};
