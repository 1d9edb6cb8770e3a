//! The context that all streams of a projector share.

use std::sync::Arc;

use proto::env::Env;
use proto::rpc::routing::MutationRouter;

use crate::keys::LeftOutCounters;
use crate::source::DocumentStore;

/// The approximate size of a message of key-versions. It is well below the transport's limit, because the last
/// mutation is never split.
pub const MESSAGE_BYTES: usize = 4 << 20;

/// The cost of the expressions of one message: some ten milliseconds, after which a stream checks for changes of the
/// catalog. The last document may exceed it by the limit of a document.
pub const MESSAGE_COST: u64 = 16 << 20;

/// The size in memory of the mutations that are packed on a stream's own thread: some hundred small documents, well below a millisecond.
pub const INLINE_BYTES: usize = 256 << 10;

/// The context that all streams of a projector share.
pub struct StreamContext {
    /// The seams to the environment.
    pub env: Env,
    /// The store with the change logs.
    pub store: Arc<dyn DocumentStore>,
    /// Decides which mutation concerns which node.
    pub router: Arc<dyn MutationRouter>,
    /// Maximum bytes of frames that a stream sends beyond its newest stability timestamp.
    pub frames_ahead_bytes_max: usize,
    /// Counts documents that were left out of an index because they exceed a limit.
    pub left_out: LeftOutCounters,
}
