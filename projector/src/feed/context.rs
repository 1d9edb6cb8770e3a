//! What all streams of a projector share.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use proto::env::Env;
use proto::rpc::routing::MutationRouter;

use crate::source::DocumentStore;

/// Bytes of key-versions in a message, about: a small part of what the transport takes, since the last
/// mutation goes in as a whole.
pub const MESSAGE_BYTES: usize = 4 << 20;

/// What all streams of a projector share.
pub struct StreamContext {
    /// The seams.
    pub env: Env,
    /// Where the past is read.
    pub store: Arc<dyn DocumentStore>,
    /// Says what concerns which node.
    pub router: Arc<dyn MutationRouter>,
    /// How far a stream runs ahead of the newest stability timestamp that it has sent.
    pub frames_ahead_bytes_max: usize,
    /// Counts documents that were left out because they are over a limit.
    pub left_out: AtomicU64,
}
