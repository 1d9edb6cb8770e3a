//! The end of the sessions after the faults: no transaction remains prepared, both buckets are
//! served, and their contents are judged.

use std::time::Duration;

use proto::model::ids::BucketId;
use proto::rpc::api::TransactionStatus;
use tokio::time::{Instant, sleep, timeout};

use super::attempts::{Rows, add};
use super::lane::Lane;
use super::moments::look_at;
use super::run::Pair;
use crate::sim::checks::check_writes;
use crate::sim::client::workload::STATEMENT;
use crate::sim::violation;

/// The time limit after the faults until all prepared transactions must have ended and both buckets
/// can be read at one moment. A projector forgets a transaction half a minute after its session was
/// lost.
const SETTLE: Duration = Duration::from_secs(60);
/// The interval between two checks.
const LOOK_EVERY: Duration = Duration::from_millis(300);

impl Pair {
    /// Ends all sessions and judges the final state.
    pub async fn settle(mut self) {
        self.background.end().await;
        self.conclude();
        self.end_prepared().await;
        if !self.see_all().await {
            return;
        }
        self.judge_histories();
    }

    /// Waits until no transaction is prepared.
    async fn end_prepared(&self) {
        let deadline = Instant::now() + SETTLE;
        let buckets: Vec<BucketId> = self.lanes.iter().map(|lane| lane.session.bucket.id).collect();
        let Lane { session, .. } = &self.lanes[0];
        loop {
            let is_prepared = |status: &&TransactionStatus| {
                buckets.contains(&status.bucket) && status.owner.starts_with("prepared")
            };
            let listed = timeout(STATEMENT, session.backend.transactions()).await;
            let left = listed.map(|listed| listed.map(|all| all.iter().find(is_prepared).cloned()));
            if let Ok(Ok(None)) = left {
                return;
            }
            if Instant::now() > deadline {
                let text = format!("prepared {SETTLE:?} after the last fault: {left:?}");
                return violation(&self.summary, text);
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Waits until both buckets can be read at one moment, which must contain every acknowledged
    /// commit; false after the time limit.
    async fn see_all(&self) -> bool {
        let deadline = Instant::now() + SETTLE;
        let must = self.attempts.acknowledged_in(&[0, 1]);
        loop {
            let why = match timeout(STATEMENT, look_at(&self.lanes, 0, false)).await {
                Ok(Ok(Some(moment))) => {
                    self.judge_cuts([&moment[0].1, &moment[1].1], &must);
                    return true;
                }
                Ok(Err(error)) => error.to_string(),
                Ok(Ok(None)) | Err(_) => "no answer".to_owned(),
            };
            if Instant::now() > deadline {
                let text =
                    format!("two buckets have no moment {SETTLE:?} after the last fault: {why}");
                violation(&self.summary, text);
                return false;
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Judges the logs of both buckets.
    fn judge_histories(&self) {
        let is_lossy = self.is_lossy();
        let mut rows = [Rows::new(), Rows::new()];
        for (Lane { work, session }, rows) in self.lanes.iter().zip(&mut rows) {
            let name = &session.bucket.name;
            let marks = session.marks.lock().expect("not poisoned");
            check_writes(&work.acknowledged, &marks, &work.truth, is_lossy, &self.summary);
            let Some(histories) = work.truth.histories(session.bucket.id) else { continue };
            if let Some(what) = work.statements.judge(&histories, is_lossy) {
                violation(&self.summary, format!("{name}: {what}"));
            }
            let present = histories.first().into_iter().flat_map(|(_, log)| log);
            present.for_each(|log| add(rows, log));
        }
        let [left, right] = &rows;
        let wrong = self.attempts.judge([left, right], &self.attempts.acknowledged_in(&[0, 1]));
        if let Some(wrong) = wrong.filter(|_| !is_lossy) {
            violation(&self.summary, format!("the logs of two buckets: {wrong}"));
        }
    }
}
