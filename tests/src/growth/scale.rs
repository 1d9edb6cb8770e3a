//! The size of a measured cluster.

use serde::{Deserialize, Serialize};

/// The size of a cluster, and how long it is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scale {
    /// The number of indexers.
    pub indexers: u64,
    /// The number of buckets; each has one index.
    pub buckets: u64,
    /// The vbuckets of each bucket.
    pub vbuckets: u16,
    /// The slices of each index.
    pub slices: u16,
    /// Mutations of each bucket in a second.
    pub rate: u64,
    /// Simulated seconds of each phase.
    pub seconds: u64,
    /// The seed of the run.
    pub seed: u64,
}

/// Slices of an index in a cluster in which these are enough for all indexers.
const SLICES_MIN: u64 = 8;

impl Scale {
    /// The slices that give each indexer two of them or more.
    pub fn slices_for(indexers: u64, buckets: u64) -> u16 {
        let slices = (2 * indexers).div_ceil(buckets.max(1)).max(SLICES_MIN);
        slices.min(u64::from(proto::model::index::SLICES_MAX)) as u16
    }
}
