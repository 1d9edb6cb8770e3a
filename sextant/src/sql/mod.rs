//! SQL: from the text of a statement to what the cluster is asked for.
//!
//! ```text
//! text ── dialect ──▶ tokens ── limits, parse ──▶ ast::Statement ── plan ──▶ proto::rpc::scan::ScanRequest
//! ```
//!
//! `sqlparser` gives the tokens and the cursor over them; the grammar is our own, since most of our
//! statements are ours alone and paths into documents are not SQL's column names. Nothing here knows
//! the wire or the cluster: the session in [`crate::pg`] joins the three.

pub mod admin;
pub mod ast;
pub mod backend;
pub mod ddl;
pub mod define;
pub mod dialect;
pub mod error;
pub mod limits;
pub mod parse;
pub mod plan;
pub(crate) mod walk;

pub use error::{SqlError, SqlResult};
pub use parse::{Parsed, parse};
