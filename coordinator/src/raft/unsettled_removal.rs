//! Removals of members that are not safe yet (`removal`).

use bytes::Bytes;

/// A removal that the leader has applied.
pub(super) struct UnsettledRemoval {
    /// The context of its proposer.
    pub proposer: Bytes,
    /// The term of the leader.
    pub term: u64,
    /// The index of the empty entry, once it is proposed.
    pub behind: Option<u64>,
}
