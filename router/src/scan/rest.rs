//! The batches of a shard scan behind its first one, from a node that may become slow in the midst of them.
//!
//! A batch that does not come within a stage is asked of another copy too, once for each node ([`crate::hedging`]): that one begins behind the
//! last row, and whichever batch comes first counts. If it is the other copy's, the scan goes on there. That is exact, because the epoch is
//! the same.

use std::sync::atomic::Ordering;

use futures::StreamExt;
use proto::flow::ByteReceiver;
use proto::model::ids::{NodeId, SliceNo};
use proto::rpc::api::ResultStream;
use proto::rpc::scan::ShardBatch;
use proto::{Error, Result};
use tokio::time::{Instant, timeout_at};

use super::place::ShardPosition;
use super::plan::ScanPlan;
use crate::hedging::Batches;

/// The rest of a shard scan.
pub(super) struct Rest {
    batches: ResultStream<ShardBatch>,
    /// True until another copy was asked beside the node.
    may_hedge: bool,
}

impl Rest {
    /// The batches of a node.
    pub fn new(batches: ResultStream<ShardBatch>) -> Self {
        Self { batches, may_hedge: true }
    }

    /// The first batch.
    pub async fn first(&mut self) -> Option<Result<ShardBatch>> {
        self.batches.next().await
    }

    /// The next batch, behind a place. The outer error is a time-out.
    pub async fn next(
        &mut self,
        plan: &ScanPlan,
        (node, slices): (NodeId, &[SliceNo]),
        place: &ShardPosition,
    ) -> Result<Option<Result<ShardBatch>>> {
        let began = Instant::now();
        let silent = began + plan.timeout();
        if !self.may_hedge || !plan.may_hedge_rest(node, slices) {
            return timeout_at(silent, self.batches.next()).await.map_err(|_| late(node));
        }
        let hedging = &plan.context.hedging;
        let stage = plan.stage(Batches::Rest);
        let next = match timeout_at(began + stage, self.batches.next()).await {
            Ok(next) => Ok(next),
            Err(_) if hedging.spend_for_rest() => {
                self.beside(plan, (node, slices), place, silent).await
            }
            Err(_) => timeout_at(silent, self.batches.next()).await.map_err(|_| late(node)),
        };
        if let Ok(Some(Ok(_))) = next {
            hedging.note_batch(Batches::Rest, began.elapsed());
        }
        next
    }

    /// Waits for the next batch of the node, or for one of another copy.
    async fn beside(
        &mut self,
        plan: &ScanPlan,
        (node, slices): (NodeId, &[SliceNo]),
        place: &ShardPosition,
        silent: Instant,
    ) -> Result<Option<Result<ShardBatch>>> {
        self.may_hedge = false;
        let (mut others, task) = plan.behind(place).spawn(slices.to_vec(), vec![node]);
        let other = tokio::select! {
            biased;
            next = timeout_at(silent, self.batches.next()) => return next.map_err(|_| late(node)),
            other = with_rows(&mut others) => other,
        };
        let Some(Ok(other)) = other else {
            // No other copy has answered.
            return timeout_at(silent, self.batches.next()).await.map_err(|_| late(node));
        };
        plan.context.hedging.note_won();
        plan.context.resumed.fetch_add(u64::from(place.has_rows), Ordering::Relaxed);
        let rest = futures::stream::unfold((others, task), |(mut others, task)| async move {
            let next = others.recv().await?;
            Some((next, (others, task)))
        });
        self.batches = Box::pin(rest);
        Ok(Some(Ok(other)))
    }
}

fn late(node: NodeId) -> Error {
    Error::unavailable(format!("node {node} did not answer in time"))
}

/// The next batch that is more than a sign of life.
async fn with_rows(batches: &mut ByteReceiver<Result<ShardBatch>>) -> Option<Result<ShardBatch>> {
    loop {
        match batches.recv().await? {
            Ok(ShardBatch::Rows(block)) if block.rows == 0 => {}
            batch => return Some(batch),
        }
    }
}

impl ScanPlan {
    /// True if another copy may be asked for the rest of a shard scan.
    fn may_hedge_rest(&self, node: NodeId, slices: &[SliceNo]) -> bool {
        self.hedges()
            && self.request.own.is_none()
            && !self.is_beside
            && self.is_ready(node, slices)
            && self.has_ready_others(slices, node)
    }

    /// The plan of the rest behind a place, for other copies.
    fn behind(&self, place: &ShardPosition) -> Self {
        Self {
            resume_after: place.reached.resume_after(),
            rows_max: place.rows_left,
            deadline: None,
            reports_moved: false,
            is_beside: true,
            ..self.clone()
        }
    }
}
