//! Moments: one place in time for all buckets.
//!
//! A promotion publishes epochs of several buckets in one entry of the coordinators' log. A *moment* is an index of that log: in each
//! bucket it names the *epoch in force* there, the newest one that was published at or before the index. So two buckets that are read at
//! one moment show the cluster at one point in time, and a repeated read has the same answer.
//!
//! A moment of buckets at several projectors is exact for what was acknowledged before it, and for commits over several
//! buckets. Other concurrent writes may be visible in one bucket and not in another.

use serde::{Deserialize, Serialize};

use crate::model::ids::{BucketId, Epoch};

/// A moment, as routers name it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Moment {
    /// An index of the coordinators' log.
    pub at: u64,
    /// An epoch that must be in force at the moment. The moment is then the nearest one to `at` at which the epoch is in force. A router
    /// that has chosen an epoch itself names its moment in this way, without a call to the coordinator.
    pub of: Option<(BucketId, Epoch)>,
}

impl Moment {
    /// The moment of an index of the log.
    pub fn at(at: u64) -> Self {
        Self { at, of: None }
    }
}
