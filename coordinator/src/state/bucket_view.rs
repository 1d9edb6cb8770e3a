//! A bucket in the form that queries read: its record, its epochs and its history.

use std::sync::Arc;

use proto::model::bucket::BucketInfo;
use proto::model::history::{FailoverLogs, SourceHistory};
use proto::model::rollback::RollbackStage;
use proto::{Error, ErrorCode, Result};

use crate::state::epochs::history::EpochHistory;

/// A bucket: its record, its retained epochs, and the history of its source.
#[derive(Clone, Copy, Debug)]
pub struct BucketView<'a> {
    /// The record of the bucket, as it is in the catalog.
    pub info: &'a Arc<BucketInfo>,
    /// The retained epochs of the bucket.
    pub epochs: &'a EpochHistory,
    /// The failover logs that the source reported last; empty before its first report.
    pub logs: &'a Arc<FailoverLogs>,
}

impl BucketView<'_> {
    /// Returns the stage of the bucket's rollback; `None` if it is not being rolled back.
    pub fn rollback_stage(&self) -> Option<RollbackStage> {
        self.info.rollback.as_ref().map(|rollback| rollback.stage)
    }

    /// Checks that the history of a source has as many vbuckets as the bucket.
    pub fn check(&self, history: &SourceHistory) -> Result<()> {
        let BucketInfo { vbuckets, name, .. } = &**self.info;
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
