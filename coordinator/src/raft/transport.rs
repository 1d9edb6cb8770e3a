//! The transport to the other members.

use proto::model::ids::NodeId;

use super::wire::RaftMessage;

/// The transport of messages to the other members. It is unreliable, because Raft repeats what
/// matters, and never blocks.
pub trait PeerTransport: Send + Sync + 'static {
    /// Sends a message, or drops it.
    fn send(&self, to: NodeId, message: RaftMessage);
}
