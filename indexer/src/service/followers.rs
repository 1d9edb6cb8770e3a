//! The followers of a node, by bucket.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use proto::env::Task;
use proto::model::ids::BucketId;
use tokio::sync::watch;

use crate::follow::FollowerStatus;

/// The follower of a bucket that is running; dropping it cancels its task.
pub(super) struct RunningFollower {
    pub(super) state: watch::Receiver<FollowerStatus>,
    pub(super) _task: Task,
}

/// The followers by bucket.
pub(super) type Followers = Arc<Mutex<BTreeMap<BucketId, RunningFollower>>>;
