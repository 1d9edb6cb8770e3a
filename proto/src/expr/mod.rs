//! Expressions over documents and index entries: the tree, its SQL text, its evaluation and its
//! cost; and aggregates.

pub mod aggregate;
mod arithmetic;
mod ast;
pub mod cast;
pub mod cost;
pub mod eval;
mod fields;
mod in_list;
mod like;
mod text;

pub use ast::{ArithmeticOp, ColumnType, CompareOp, Expr, Function, InList};
pub use fields::Fields;
pub use in_list::LookUpList;
pub use text::{RESERVED, literal_number};
