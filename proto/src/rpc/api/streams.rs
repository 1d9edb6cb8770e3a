//! Common types and limits of the streams between services.

use std::pin::Pin;

use futures::Stream;

use crate::error::Result;

/// The maximum size in bytes of a message between processes: a batch of frames, a piece of a
/// backfill, a Raft snapshot.
pub const PEER_MESSAGE_BYTES_MAX: usize = 64 << 20;

/// A stream of results; after an error it ends.
pub type ResultStream<T> = Pin<Box<dyn Stream<Item = Result<T>> + Send + 'static>>;
