//! The types that Sextant's services share: identifiers, values, keys, messages, errors, and the
//! seams (interfaces) to the operating system.
//!
//! This crate makes no decisions about a cluster: the services make them, and communicate through
//! these types. The services never import each other.
//!
//! | module | contents | imports |
//! |---|---|---|
//! | [`rpc`], [`client`] | interfaces and messages of services; clients of one service for the others | all below |
//! | [`model`] | the cluster's data: cuts, histories, buckets, indexes, topology, moves, rollbacks | `expr`, `value` |
//! | [`expr`] | expressions: tree, text, evaluation, aggregates | `value` |
//! | [`value`] | JSON values, numbers, the key encoding | |
//! | [`flow`], [`env`](mod@env), [`envelope`], [`error`], [`lock`], [`nesting`], [`plant`], [`side_file`] | budgets and admission; the seams; envelopes of files; errors; locks; decoding limits; known bugs for tests; files with one value | |

pub mod client;
pub mod env;
pub mod envelope;
pub mod error;
pub mod expr;
pub mod flow;
pub mod lock;
pub mod model;
pub mod nesting;
pub mod plant;
pub mod rpc;
pub mod side_file;
#[cfg(any(test, feature = "testing"))]
pub mod turn;
pub mod value;

pub use error::{Error, ErrorCode, ErrorKind, Result};

/// The gRPC services. Their code is generated from `sextant/v1/*.proto` into `generated/`, so
/// that a build needs no protobuf compiler. A test checks that both agree.
#[allow(missing_docs, clippy::all, clippy::disallowed_types)]
#[rustfmt::skip]
pub mod grpc {
    include!("../generated/sextant.v1.rs");

    /// The descriptors of the gRPC services for users, served by gRPC reflection.
    pub const DESCRIPTORS: &[u8] = include_bytes!("../generated/descriptors.bin");
    /// The descriptors of the gRPC service for other processes.
    pub const PEER_DESCRIPTORS: &[u8] = include_bytes!("../generated/peer_descriptors.bin");
}
