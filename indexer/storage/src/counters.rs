//! How far a bucket's epochs have come.

use proto::model::ids::Epoch;

/// How far a bucket's epochs have come on this node; each number is at or below the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The newest epoch that was handed to [`crate::SliceStore::apply`].
    pub staged: Epoch,
    /// The newest epoch that scans see.
    pub committed: Epoch,
    /// The newest epoch that would survive a crash: the log is synced behind it, or its fragments are.
    pub durable: Epoch,
    /// The newest epoch that no longer needs the log: its fragments are synced and their manifests
    /// written.
    pub stable: Epoch,
}
