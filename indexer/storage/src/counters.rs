//! Progress counters of a bucket.

use proto::model::ids::Epoch;

/// Progress of a bucket's epochs on this node. The counters are ordered: `staged` is the largest,
/// and each further field is at or below the field before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Newest epoch that was passed to [`crate::SliceStore::apply`].
    pub staged: Epoch,
    /// Newest epoch that scans see.
    pub committed: Epoch,
    /// Newest epoch that survives a crash: its log record or its fragments are synced.
    pub durable: Epoch,
    /// Newest epoch that no longer needs the log: its fragments are synced, and so are the
    /// manifests that name them.
    pub stable: Epoch,
}

impl Counters {
    /// Returns true if each counter is at or below the counter before it.
    pub(crate) fn are_in_order(&self) -> bool {
        self.stable <= self.durable
            && self.durable <= self.committed
            && self.committed <= self.staged
    }
}
