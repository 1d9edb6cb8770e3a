//! SQL: from the text of a statement to requests to the cluster.
//!
//! ```text
//! text ── dialect ──▶ tokens ── limits, parse ──▶ ast::Statement ── plan ──▶ proto::rpc::scan::ScanRequest
//! ```
//!
//! `sqlparser` provides the tokens and a cursor over them. The grammar is not from the library,
//! because most statements exist only in Sextant, and paths into documents are not column names
//! of SQL. The parser and the planner depend neither on the client protocol nor on the cluster;
//! the session in [`crate::pg`] connects them.
//!
//! Statements that are no scans run here as well, over the [`Access`](crate::access::Access) of their session: [`definitions`], [`transactions`],
//! [`users`], and the placement of data ([`admin`]).

pub mod admin;
pub mod ast;
pub mod audited;
pub mod definitions;
pub mod dialect;
mod draining;
pub mod error;
pub mod limits;
pub mod named;
pub mod parse;
pub mod places;
pub mod plan;
pub(crate) mod qualifier;
pub mod remarks;
pub mod texts;
pub mod transactions;
pub mod units;
pub mod users;
pub(crate) mod walk;

pub use error::{SqlError, SqlResult};
pub use parse::{ParsedStatement, parse};
