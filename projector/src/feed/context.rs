//! The context that all maintenance streams and backfills of a projector share, and the size
//! limits of their messages.

use std::sync::Arc;

use proto::env::Env;
use proto::rpc::routing::MutationRouter;

use crate::keys::LeftOutCounters;
use crate::source::DocumentStore;

/// The approximate size in bytes of a message of key-versions. The transport's limit is much
/// higher, because the last mutation of a message is never split.
pub const MESSAGE_BYTES: usize = 4 << 20;

/// The limit of the cost of the index expressions that one message evaluates: some ten
/// milliseconds of work, after which a stream checks for changes of the catalog. The last
/// document of a message may exceed the limit by the limit of one document.
pub const MESSAGE_COST: u64 = 16 << 20;

/// The size in memory, in bytes, up to which a stream packs mutations on its own thread: some
/// hundred small documents, which take well below a millisecond.
pub const INLINE_BYTES: usize = 256 << 10;

/// The clock, store, router and limits that all streams of a projector share.
pub struct StreamContext {
    /// The clock, tasks and random numbers of the process.
    pub env: Env,
    /// The store with the change logs.
    pub store: Arc<dyn DocumentStore>,
    /// The router that decides which mutation concerns which node.
    pub router: Arc<dyn MutationRouter>,
    /// The limit in bytes of the frames that a stream sends beyond its newest stability
    /// timestamp.
    pub frames_ahead_bytes_max: usize,
    /// Counts of the documents that indexes have left out because the documents exceed a limit.
    pub left_out: LeftOutCounters,
}
