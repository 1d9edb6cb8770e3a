//! Removals of members that are not settled yet (`removal`).

use bytes::Bytes;

/// A removal that the leader has applied.
pub(super) struct UnsettledRemoval {
    /// The context of the proposer.
    pub proposer: Bytes,
    /// The term in which the leader applied the removal.
    pub term: u64,
    /// The index of the empty entry after the removal, once it is proposed.
    pub behind: Option<u64>,
}
