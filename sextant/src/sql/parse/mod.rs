//! The grammar: statements by recursive descent, expressions by precedence climbing.
//!
//! A query text is parsed whole before any of its statements runs, so that a syntax error in the last
//! one leaves nothing half done. Every statement must be followed by `;` or the end of the text.

mod admin;
mod cursor;
mod ddl;
mod dml;
mod expr;
mod select;
mod session;
mod statement;
#[cfg(test)]
mod tests;

pub use statement::{Parsed, parse};
