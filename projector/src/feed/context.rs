//! The context that all streams of a projector share.

use std::sync::Arc;

use proto::env::Env;
use proto::rpc::routing::MutationRouter;

use crate::keys::LeftOutCounters;
use crate::source::DocumentStore;

/// The approximate size in bytes of a message of key-versions. It is well below the transport's
/// limit, because the last mutation of a message is never split.
pub const MESSAGE_BYTES: usize = 4 << 20;

/// The cost of the expressions of one message: some ten milliseconds, after which a stream checks
/// for changes of the catalog. The last document may exceed it by the cost limit of one document.
pub const MESSAGE_COST: u64 = 16 << 20;

/// The size in memory, in bytes, of the mutations that are packed on a stream's own thread: some
/// hundred small documents, well below a millisecond.
pub const INLINE_BYTES: usize = 256 << 10;

/// The context that all streams of a projector share.
pub struct StreamContext {
    /// The clock, tasks and random numbers of the process.
    pub env: Env,
    /// The store with the change logs.
    pub store: Arc<dyn DocumentStore>,
    /// The router that decides which mutation concerns which node.
    pub router: Arc<dyn MutationRouter>,
    /// The limit of the frames that a stream sends ahead of its newest stability timestamp, in
    /// bytes.
    pub frames_ahead_bytes_max: usize,
    /// Counters of documents that indexes have left out because they exceed a limit.
    pub left_out: LeftOutCounters,
}
