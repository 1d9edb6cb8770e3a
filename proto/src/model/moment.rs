//! Moments: one place in time for all buckets.
//!
//! A promotion publishes epochs of several buckets in one entry of the coordinators' log. A *moment* is an index of that log: in each
//! bucket it names the *epoch in force* there, the newest one that was published at or before the index. So two buckets that are read at
//! one moment are read as the cluster was at one place in time, and whoever asks again has the same answer.

use serde::{Deserialize, Serialize};

use crate::model::ids::{BucketId, Epoch};

/// A moment, as routers name it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Moment {
    /// An index of the coordinators' log.
    pub at: u64,
    /// An epoch that must be in force at the moment. The moment is then the one next to `at` at which the epoch is in force. A router that
    /// has chosen an epoch by itself names its moment so, without a question to the coordinator.
    pub of: Option<(BucketId, Epoch)>,
}

impl Moment {
    /// The moment of an index of the log.
    pub fn at(at: u64) -> Self {
        Self { at, of: None }
    }
}
