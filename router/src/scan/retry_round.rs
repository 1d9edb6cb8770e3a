//! A round of a shard scan: each node that has its slices is asked in turn, until one serves. When all have failed, the
//! next round begins after a pause.
//!
//! While others are left, a node has a *stage* for its first batch. Which of them hangs and which is only slow is
//! not known, so each round in which one was waited for doubles the stage of the next: a node that is slow, as the
//! only one that still answers, is not asked in vain again and again until time is up.

use std::time::Duration;

use proto::model::ids::NodeId;
use proto::{Error, ErrorCode, Result};
use tokio::time::Instant;

/// The stage of the first round.
pub(super) const FIRST_BATCH_TIMEOUT: Duration = Duration::from_secs(1);

/// Who was asked in vain, and why.
pub(super) struct RetryRound {
    failed: Vec<NodeId>,
    last_error: Option<Error>,
    began: Instant,
    stage: Duration,
}

impl RetryRound {
    /// The first round; these have just failed a scan that this one is a part of.
    pub fn first(failed: Vec<NodeId>) -> Self {
        Self { failed, last_error: None, began: Instant::now(), stage: FIRST_BATCH_TIMEOUT }
    }

    /// Nodes that are not asked again in this round.
    pub fn failed(&self) -> &[NodeId] {
        &self.failed
    }

    /// The same, and this one that is asked now.
    pub fn failed_or(&self, node: NodeId) -> Vec<NodeId> {
        [&self.failed[..], &[node]].concat()
    }

    /// How long a node may take for its first batch while there are others.
    pub fn stage(&self) -> Duration {
        self.stage
    }

    /// A node does not serve the scan.
    pub fn fail(&mut self, node: NodeId, error: Error) {
        self.failed.push(node);
        // That an epoch is gone says more than that a node is busy, and both more than that one could not be asked.
        let says = |error: &Error| match error.code {
            ErrorCode::SnapshotTooOld => 2,
            ErrorCode::TooBusy => 1,
            _ => 0,
        };
        if self.last_error.as_ref().is_none_or(|last| says(last) <= says(&error)) {
            self.last_error = Some(error);
        }
    }

    /// All have failed: begins the next round after a pause, or gives up.
    pub async fn again(
        &mut self,
        deadline: Instant,
        pause: Duration,
        nobody: impl FnOnce() -> Error,
    ) -> Result<()> {
        let error = self.last_error.take().unwrap_or_else(nobody);
        let gone = error.code == ErrorCode::SnapshotTooOld;
        if gone || Instant::now() >= deadline || !error.is_retry() {
            return Err(error);
        }
        // A node that is busy says so somewhat before its stage is over.
        if self.began.elapsed() >= self.stage / 2 {
            self.stage = self.stage.saturating_mul(2);
        }
        tokio::time::sleep(pause).await;
        *self = Self {
            failed: Vec::new(),
            last_error: Some(error),
            began: Instant::now(),
            stage: self.stage,
        };
        Ok(())
    }
}
