//! What Sextant's services share: names, values, keys, messages, errors, and the seams to the world.
//!
//! Nothing here decides anything about a cluster; the services do, and meet through these types. The
//! services never import each other.

pub mod aggregate;
pub mod api;
pub mod client;
pub mod command;
pub mod cut;
pub mod env;
pub mod error;
pub mod eval;
pub mod expr;
mod expr_text;
pub mod history;
pub mod homes;
pub mod ids;
pub mod index;
mod json;
pub mod key;
pub mod moves;
pub mod mutation;
pub mod nesting;
mod number;
pub mod plant;
pub mod rollback;
pub mod scan;
pub mod source;
pub mod token;
pub mod topology;
pub mod value;

pub use error::{Error, ErrorCode, ErrorKind, Result};

/// The gRPC services, generated from `sextant/v1/*.proto`.
#[allow(missing_docs, clippy::all, clippy::disallowed_types)]
pub mod grpc {
    tonic::include_proto!("sextant.v1");

    /// The services' descriptors, for reflection.
    pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
}
