//! The record of a bucket.

use std::sync::Arc;

use proto::model::bucket::BucketInfo;
use proto::model::history::{FailoverLogs, SourceHistory};
use proto::{Error, ErrorCode, Result};
use serde::{Deserialize, Serialize};

use crate::state::epochs::history::EpochHistory;

/// A bucket and its stability timestamps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BucketState {
    /// The bucket as the catalog shows it.
    pub info: Arc<BucketInfo>,
    /// The retained epochs of the bucket.
    pub epochs: EpochHistory,
    /// The failover logs that the source reported last; empty before its first report.
    pub logs: Arc<FailoverLogs>,
}

impl BucketState {
    /// Checks that a history has as many vbuckets as the bucket.
    pub fn check(&self, history: &SourceHistory) -> Result<()> {
        let BucketInfo { vbuckets, name, .. } = &*self.info;
        let (of_cut, of_logs) = (history.durable.vbuckets(), history.logs.iter().count());
        if of_cut == *vbuckets && of_logs == usize::from(*vbuckets) {
            return Ok(());
        }
        let what = format!(
            "bucket \"{name}\" has {vbuckets} vbuckets, its source's history {of_cut} and {of_logs}"
        );
        Err(Error::new(ErrorCode::InvalidParameter, what))
    }
}
