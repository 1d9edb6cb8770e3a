//! SQL: from the text of a statement to requests to the cluster.
//!
//! ```text
//! text ── dialect ──▶ tokens ── limits, parse ──▶ ast::Statement ── plan ──▶ proto::rpc::scan::ScanRequest
//! ```
//!
//! `sqlparser` provides the tokens and a cursor over them. The grammar is our own, because most statements exist only in
//! Sextant, and paths into documents are not SQL's column names. This module knows neither the protocol nor the cluster:
//! the session in [`crate::pg`] connects the three.

pub mod admin;
pub mod alter;
pub mod ast;
pub mod audited;
pub mod backend;
pub mod building;
pub mod commit;
pub mod ddl;
pub mod define;
pub mod dialect;
mod draining;
pub mod error;
pub mod limits;
pub mod parse;
pub mod places;
pub mod plan;
pub(crate) mod qualifier;
pub mod remarks;
pub mod split_points;
pub mod texts;
pub mod transaction_buckets;
pub mod units;
pub mod users;
pub(crate) mod walk;
pub mod written;

pub use error::{SqlError, SqlResult};
pub use parse::{Parsed, parse};
