//! The size of a measured cluster.

use serde::{Deserialize, Serialize};

/// The size of a cluster, and the duration of its measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scale {
    /// The number of indexers.
    pub indexers: u64,
    /// The number of buckets; each has one index.
    pub buckets: u64,
    /// The number of vbuckets of each bucket.
    pub vbuckets: u16,
    /// The number of slices of each index.
    pub slices: u16,
    /// The number of mutations of each bucket per second.
    pub rate: u64,
    /// The simulated duration of each phase, in seconds.
    pub seconds: u64,
    /// The seed of the run.
    pub seed: u64,
}

/// The minimum number of slices of an index.
const SLICES_MIN: u64 = 8;

impl Scale {
    /// Returns the number of slices of an index that gives each indexer at least two slices.
    pub fn slices_for(indexers: u64, buckets: u64) -> u16 {
        let slices = (2 * indexers).div_ceil(buckets.max(1)).max(SLICES_MIN);
        slices.min(u64::from(proto::model::index::SLICES_MAX)) as u16
    }
}
