//! Removals of members that are applied and not safe yet (`removal` explains when they are).

use bytes::Bytes;

/// A removal that the leader has applied, and that a majority of the remaining members does not
/// have on disk yet.
pub(super) struct UnsettledRemoval {
    /// The context of the proposal, by which the waiting proposer is answered.
    pub proposer: Bytes,
    /// The term in which the leader applied the removal.
    pub term: u64,
    /// The index of the empty entry after the removal, once it is proposed. Its commit settles
    /// the removal.
    pub behind: Option<u64>,
}
