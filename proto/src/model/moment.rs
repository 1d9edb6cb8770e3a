//! Moments: one point in time for all buckets.
//!
//! A promotion publishes epochs of several buckets in one entry of the coordinators' log. A
//! *moment* is an index of that log, and determines for each bucket the *epoch in force*: the
//! newest one that was published by an entry up to this index. So reads of two buckets at one
//! moment return the cluster's state at one point in time, and repeated reads return equal
//! results.
//!
//! For buckets at several projectors, a moment includes all writes that were acknowledged before
//! it, and splits no commit over several buckets. Other concurrent writes may be visible in one
//! bucket and not in another.

use serde::{Deserialize, Serialize};

use crate::model::ids::{BucketId, Epoch};

/// A moment, as routers specify it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Moment {
    /// The index of the coordinators' log.
    pub at: u64,
    /// An epoch of a bucket that must be in force. The moment is then the one nearest to `at` at
    /// which it is. A router that has chosen an epoch itself can so specify the moment without a
    /// call to the coordinator.
    pub of: Option<(BucketId, Epoch)>,
}

impl Moment {
    /// Creates the moment of an index of the coordinators' log.
    pub fn at(at: u64) -> Self {
        Self { at, of: None }
    }
}
