//! Expressions: the tree, its SQL text, its evaluation, and aggregates.

pub mod aggregate;
mod ast;
pub mod eval;
mod like;
mod text;

pub use ast::{ArithmeticOp, ColumnType, CompareOp, Expr, Function};
