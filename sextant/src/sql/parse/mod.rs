//! The grammar: statements by recursive descent, expressions by precedence climbing.
//!
//! A query text is parsed completely before any of its statements runs, so that no statement runs if a later one has a
//! syntax error. Every statement must be followed by `;` or the end of the text.

mod admin;
mod alter;
mod catalogue;
mod cursor;
mod ddl;
mod dml;
mod expr;
mod options;
mod parts;
#[cfg(test)]
mod placement_tests;
mod select;
mod session;
mod statement;
#[cfg(test)]
mod tests;
mod users;
mod versions;

pub use parts::SelectParts;
pub use statement::{ParsedStatement, parse};
