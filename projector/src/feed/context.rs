//! The context that all streams of a projector share.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use proto::env::Env;
use proto::rpc::routing::MutationRouter;

use crate::source::DocumentStore;

/// The approximate size of a message of key-versions. It is well below the transport's limit, because the last
/// mutation is never split.
pub const MESSAGE_BYTES: usize = 4 << 20;

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
    /// Counts documents that were skipped because they exceed a limit.
    pub skipped_documents: AtomicU64,
}
