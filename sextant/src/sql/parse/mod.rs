//! The grammar of SQL. Statements are parsed by recursive descent, expressions by precedence
//! climbing.
//!
//! A query text is parsed completely before any of its statements runs. A syntax error in a later
//! statement therefore prevents all statements. Every statement must be followed by `;` or by the
//! end of the text.

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
