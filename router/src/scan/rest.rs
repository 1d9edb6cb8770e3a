//! The batches of a task that reads a shard scan, from a node that may become slow in the midst of them.
//!
//! A batch that does not come within a stage is asked of another copy too, once for each node ([`crate::hedging`]): that one begins after the
//! last row, and whichever batch comes first counts. If it is the other copy's, the scan goes on there. That is exact, because the epoch is
//! the same. The first batch of the task has a longer stage, since the node opens the scan for it.

use std::pin::{Pin, pin};
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt;
use futures::future::Either;
use proto::flow::ByteReceiver;
use proto::model::ids::{NodeId, SliceNo};
use proto::rpc::api::ResultStream;
use proto::rpc::scan::{Output, ShardBatch};
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

/// The next batch; `None` at the end of the stream.
type Next = Option<Result<ShardBatch>>;

/// The batches of another copy, and the first of them.
type Other = (ShardBatch, ResultStream<ShardBatch>);

impl Rest {
    /// Opens a shard scan after a place, and waits for its first batch.
    pub async fn open(
        plan: &ScanPlan,
        (node, slices): (NodeId, &[SliceNo]),
        place: &ShardPosition,
        timeout: Duration,
    ) -> Result<(Self, Next)> {
        let began = Instant::now();
        let opened = async {
            let mut batches = plan.open_shard(node, slices, place, timeout).await?;
            let first = batches.next().await;
            Ok((batches, first))
        };
        let opened = async move {
            timeout_at(began + timeout, opened).await.unwrap_or_else(|_| Err(late(node)))
        };
        let mut opened = pin!(opened);
        let alone = |(batches, first)| (Self { batches, may_hedge: true }, first);
        // The one batch of an aggregate takes as long as the whole shard.
        let has_rows = matches!(plan.request.output, Output::Rows { .. });
        if !has_rows || !plan.may_hedge_rest(node, slices) {
            return opened.await.map(alone);
        }
        let hedging = &plan.context.hedging;
        let stage = plan.stage(Batches::Rows).max(plan.stage(Batches::Rest)).min(timeout / 2);
        let begun = match timeout_at(began + stage, opened.as_mut()).await {
            Ok(opened) => opened.map(alone),
            Err(_) if hedging.spend_for_rest() => {
                let first = first_of(plan, (node, slices), place, opened).await?;
                let (batches, first) = match first {
                    Either::Left(opened) => opened,
                    Either::Right((other, batches)) => (batches, Some(Ok(other))),
                };
                Ok((Self { batches, may_hedge: false }, first))
            }
            Err(_) => opened.await.map(alone),
        };
        if let Ok((_, Some(Ok(_)))) = begun {
            hedging.note_batch(Batches::Rest, began.elapsed());
        }
        begun
    }

    /// The next batch, after a place. The outer error is a time-out.
    pub async fn next(
        &mut self,
        plan: &ScanPlan,
        (node, slices): (NodeId, &[SliceNo]),
        place: &ShardPosition,
    ) -> Result<Next> {
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
    ) -> Result<Next> {
        self.may_hedge = false;
        let first = {
            let batches = &mut self.batches;
            let next =
                async move { timeout_at(silent, batches.next()).await.map_err(|_| late(node)) };
            first_of(plan, (node, slices), place, pin!(next)).await?
        };
        match first {
            Either::Left(next) => Ok(next),
            Either::Right((other, batches)) => {
                self.batches = batches;
                Ok(Some(Ok(other)))
            }
        }
    }
}

/// Waits for the answer of a node, or for the first batch that another copy sends from after a place.
async fn first_of<T>(
    plan: &ScanPlan,
    (node, slices): (NodeId, &[SliceNo]),
    place: &ShardPosition,
    mut asked: Pin<&mut impl Future<Output = Result<T>>>,
) -> Result<Either<T, Other>> {
    let (mut others, task) = plan.behind(place).spawn(slices.to_vec(), vec![node]);
    let other = tokio::select! {
        biased;
        answer = asked.as_mut() => return answer.map(Either::Left),
        other = with_rows(&mut others) => other,
    };
    let Some(Ok(other)) = other else {
        // No other copy has answered.
        return asked.await.map(Either::Left);
    };
    plan.context.hedging.note_won();
    plan.context.resumed.fetch_add(u64::from(place.has_rows), Ordering::Relaxed);
    let rest = futures::stream::unfold((others, task), |(mut others, task)| async move {
        let next = others.recv().await?;
        Some((next, (others, task)))
    });
    Ok(Either::Right((other, Box::pin(rest))))
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

    /// The plan of the rest after a place, for other copies.
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
