//! What Sextant's services share: names, values, keys, messages, errors, and the seams to the world.
//!
//! Nothing here decides anything about a cluster; the services do, and meet through these types. The
//! services never import each other.

pub mod env;
pub mod error;
pub mod eval;
pub mod expr;
mod expr_text;
pub mod ids;
mod json;
pub mod key;
pub mod value;

pub use error::{Error, ErrorCode, ErrorKind, Result};
