//! One shard scan: a task that reads some slices from a replica that has them, and goes on with another
//! replica after the last entry that came when the first one fails.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use proto::expr::aggregate::Partial;
use proto::flow::byte_channel;
use proto::model::ids::{NodeId, SliceNo};
use proto::rpc::rows::RowBlock;
use proto::rpc::scan::{Output, ShardBatch};
use proto::{Error, ErrorCode, ErrorKind, Result};
use tokio::time::{Instant, timeout_at};

use super::gather::Gather;
use super::plan::ScanPlan;
use super::retry_round::RetryRound;
use super::shard_stream::{AHEAD_BYTES, Batches, ShardStream, send};

impl ScanPlan {
    /// Begins a shard scan whose rows come in order, wherever its slices are or go.
    pub fn start(&self, slices: Vec<SliceNo>) -> ShardStream {
        self.start_as(slices, false, Vec::new())
    }

    /// Begins the scan of a base shard: of slices that are not where the base topology has them it says so,
    /// and goes on with the others.
    pub fn start_base(&self, slices: Vec<SliceNo>) -> ShardStream {
        self.start_as(slices, true, Vec::new())
    }

    fn start_as(&self, slices: Vec<SliceNo>, tell_moved: bool, failed: Vec<NodeId>) -> ShardStream {
        let (sender, batches) = byte_channel(AHEAD_BYTES);
        let plan = Self { tell_moved, ..self.clone() };
        let task = self.context.env.spawn("shard-scan", async move {
            if let Err(error) = plan.drive(slices, RetryRound::first(failed), &sender).await {
                // A reader that is gone needs no error.
                let _ = send(&sender, Err(error)).await;
            }
        });
        ShardStream::new(batches, task)
    }

    /// Tries the replicas in turn until the scan is finished or time is up.
    async fn drive(
        &self,
        mut slices: Vec<SliceNo>,
        mut round: RetryRound,
        sender: &Batches,
    ) -> Result<()> {
        if slices.is_empty() {
            let _ = send(sender, Ok(ShardBatch::Done)).await;
            return Ok(());
        }
        let mut place = Place {
            resume_after: self.resume_after.clone(),
            rows_left: self.rows_max,
            deadline: self.deadline.unwrap_or_else(|| Instant::now() + self.timeout()),
        };
        // Slices of one shard may have to be read from different replicas after a failure: then each
        // goes on by itself, and the pieces are merged like shards.
        loop {
            let Some(node) = self.common_candidate(&slices, round.failed()) else {
                if slices.len() > 1 && self.splits(&slices, round.failed()) {
                    let mut groups = self.shards_without(&slices, round.failed());
                    if groups.len() == 1 {
                        groups = slices.iter().map(|slice| vec![*slice]).collect();
                    }
                    return self.drive_apart(groups, place, round.failed(), sender).await;
                }
                let nobody = || Error::unavailable(format!("no node has slice {}", slices[0]));
                round.again(place.deadline, self.context.config.retry, nobody).await?;
                continue;
            };
            let others = self.splits(&slices, &round.failed_or(node));
            let stage = others.then_some(round.stage());
            match self.attempt(node, &slices, &mut place, stage, sender).await {
                Ok(Attempt::Ended) => return Ok(()),
                Ok(Attempt::Moved(mut places)) => {
                    // What was not asked for says nothing.
                    places.retain(|(slice, _)| slices.contains(slice));
                    if places.is_empty() {
                        let text = format!("node {node} says that other slices moved");
                        return Err(Error::internal(text));
                    }
                    if self.tell_moved {
                        slices.retain(|slice| places.iter().all(|(moved, _)| moved != slice));
                        let told = send(sender, Ok(ShardBatch::Moved(places))).await;
                        if told.is_err() || slices.is_empty() {
                            let _ = send(sender, Ok(ShardBatch::Done)).await;
                            return Ok(());
                        }
                        continue;
                    }
                    let moved: Vec<SliceNo> = places.iter().map(|(slice, _)| *slice).collect();
                    let (gone, stay): (Vec<_>, Vec<_>) =
                        slices.iter().copied().partition(|slice| moved.contains(slice));
                    if !stay.is_empty() {
                        let mut groups = self.shards_without(&gone, &round.failed_or(node));
                        groups.push(stay);
                        return self.drive_apart(groups, place, round.failed(), sender).await;
                    }
                    let text = format!("node {node} no longer has slice {}", slices[0]);
                    round.fail(node, Error::new(ErrorCode::SliceMoved, text));
                }
                Err(error) if error.is_retry() && error.code != ErrorCode::SnapshotTooOld => {
                    tracing::debug!(%node, %error, "a shard scan goes on elsewhere");
                    round.fail(node, error);
                }
                // A replica with an older floor may still answer.
                // A damaged one is left at once, like one that fails.
                Err(error)
                    if others
                        && (error.code == ErrorCode::SnapshotTooOld
                            || error.code.kind() == ErrorKind::Operator) =>
                {
                    round.fail(node, error);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Goes on with the slices where each is now, merged. The parts do not ask first who has failed the whole.
    async fn drive_apart(
        &self,
        groups: Vec<Vec<SliceNo>>,
        place: Place,
        failed: &[NodeId],
        sender: &Batches,
    ) -> Result<()> {
        // Time that has passed without a node that serves has passed for the parts too: else a scan that parts
        // again and again would never give up.
        let plan = ScanPlan {
            resume_after: place.resume_after,
            rows_max: place.rows_left,
            deadline: Some(place.deadline),
            ..self.clone()
        };
        let shards = groups
            .into_iter()
            .map(|slices| plan.start_as(slices, false, failed.to_vec()))
            .collect();
        let distinct =
            self.request.distinct_parts.map(|parts| (parts, self.index.spec.descending()));
        let mut gather = Gather::new(shards, self.request.reverse, distinct);
        if let Output::Aggregates(calls) = &self.request.output {
            let mut totals: Vec<_> = calls.iter().map(|call| Partial::new(call.function)).collect();
            gather.fold(&mut totals).await?;
            let _ = send(sender, Ok(ShardBatch::Partials(totals))).await;
        } else {
            while let Some(block) = gather.next().await? {
                if send(sender, Ok(ShardBatch::Rows(block))).await.is_err() {
                    return Ok(());
                }
            }
        }
        let _ = send(sender, Ok(ShardBatch::Done)).await;
        Ok(())
    }

    /// Reads from one node as far as it goes; with a stage it has no longer for its first batch.
    async fn attempt(
        &self,
        node: NodeId,
        slices: &[SliceNo],
        place: &mut Place,
        stage: Option<Duration>,
        sender: &Batches,
    ) -> Result<Attempt> {
        let info = self.context.catalog.load().nodes.get(&node).cloned();
        let info = info.ok_or_else(|| Error::unavailable(format!("node {node} is not known")))?;
        let left = place.deadline.saturating_duration_since(Instant::now());
        let stage = stage.map_or(left, |stage| stage.min(left));
        let scan = self.shard_scan(
            slices,
            (place.resume_after.clone(), place.rows_left),
            stage.as_millis() as u64,
        );
        let late = || Error::unavailable(format!("node {node} did not answer in time"));
        let stage = Instant::now() + stage;
        let indexer = self.context.directory.indexer(&info);
        let mut batches = timeout_at(stage, indexer.scan(scan)).await.map_err(|_| late())??;
        let mut next = timeout_at(stage, batches.next()).await.map_err(|_| late())?;
        loop {
            let batch =
                next.ok_or_else(|| Error::unavailable(format!("node {node} went away")))??;
            match batch {
                ShardBatch::Rows(ref block) => place.advance(block),
                // A node of another mind than its own answer is not asked again.
                ShardBatch::Moved(ref places) if places.is_empty() => {
                    return Err(Error::internal(format!("node {node} says that nothing moved")));
                }
                ShardBatch::Moved(places) => return Ok(Attempt::Moved(places)),
                _ => {}
            }
            // Aggregates are whole: from here on nothing may be asked a second time.
            let last = !matches!(batch, ShardBatch::Rows(_));
            let partials = matches!(batch, ShardBatch::Partials(_));
            let mut sent = send(sender, Ok(batch)).await;
            if partials {
                sent = send(sender, Ok(ShardBatch::Done)).await;
            }
            if sent.is_err() || last {
                return Ok(Attempt::Ended);
            }
            let silent = Instant::now() + self.timeout();
            let following = timeout_at(silent, batches.next()).await;
            // The time-out is for being without a node that serves: it begins anew after each batch.
            place.deadline = Instant::now() + self.timeout();
            next = following.map_err(|_| late())?;
        }
    }
}

/// What asking a node came to.
enum Attempt {
    /// All was read, or nobody reads it any more.
    Ended,
    /// Nothing was read: these slices are elsewhere.
    Moved(Vec<(SliceNo, NodeId)>),
}

/// How far a shard scan is.
struct Place {
    resume_after: Option<Bytes>,
    rows_left: Option<u64>,
    /// When to give up.
    deadline: Instant,
}

impl Place {
    fn advance(&mut self, block: &RowBlock) {
        if let Some(last) = block.iter().last() {
            self.resume_after = Some(Bytes::copy_from_slice(last.entry));
        }
        if let Some(left) = &mut self.rows_left {
            *left = left.saturating_sub(u64::from(block.rows));
        }
    }
}

#[cfg(test)]
#[path = "shard_tests.rs"]
pub(super) mod tests;
