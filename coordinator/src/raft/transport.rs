//! The way to the other members.

use proto::model::ids::NodeId;

use super::wire::RaftMessage;

/// Takes messages to the other members. Unreliable: Raft repeats what matters. Never blocks.
pub trait PeerTransport: Send + Sync + 'static {
    /// Sends one message, or drops it.
    fn send(&self, to: NodeId, message: RaftMessage);
}
