//! One shard scan: a task that reads some slices from a replica that has them, and goes on with another
//! replica after the last entry that came when the first one fails.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use proto::env::Task;
use proto::flow::{ByteReceiver, ByteSender, ReceiverGone, byte_channel};
use proto::model::ids::{Epoch, NodeId, SliceNo};
use proto::model::index::IndexInfo;
use proto::rpc::rows::RowBlock;
use proto::rpc::scan::{ScanRequest, ShardBatch, ShardScan};
use proto::{Error, ErrorCode, ErrorKind, Result};
use tokio::time::{Instant, timeout_at};

use super::round::{Round, STAGE};
use crate::service::Shared;

/// What a shard may be ahead of its reader: two batches of full length.
pub(crate) const AHEAD_BYTES: usize = 128 << 10;

/// What all shard scans of a scan have in common.
#[derive(Clone)]
pub(crate) struct Plan {
    pub shared: Shared,
    pub index: Arc<IndexInfo>,
    pub request: ScanRequest,
    pub epoch: Epoch,
    pub resume_after: Option<Bytes>,
    pub rows_max: Option<u64>,
    /// Are slices that have moved told, or followed?
    pub tell_moved: bool,
    /// When a shard gives up that no node has served yet; `None`: the scan's time-out after it has begun.
    pub deadline: Option<Instant>,
}

/// The batches of a shard scan.
pub(crate) struct ShardStream {
    batches: ByteReceiver<Result<ShardBatch>>,
    _task: Task,
}

impl ShardStream {
    /// A stream of these batches.
    #[cfg(test)]
    pub fn of(all: Vec<ShardBatch>) -> Self {
        let (sender, batches) = byte_channel(AHEAD_BYTES);
        let send_all = async move {
            for batch in all {
                let _ = send(&sender, Ok(batch)).await;
            }
        };
        Self { batches, _task: proto::env::Env::real().spawn("shard-scan", send_all) }
    }

    /// The next batch; after `Done` there is none.
    pub async fn next(&mut self) -> Result<ShardBatch> {
        match self.batches.recv().await {
            Some(batch) => batch,
            None => Err(Error::unavailable("a shard scan was cancelled")),
        }
    }

    /// The next rows, `None` at the end.
    pub async fn next_rows(&mut self) -> Result<Option<RowBlock>> {
        match self.next().await? {
            ShardBatch::Rows(block) => Ok(Some(block)),
            ShardBatch::Done => Ok(None),
            ShardBatch::Partials(_) | ShardBatch::Moved(_) => {
                Err(Error::internal("a scan of merged rows got something else"))
            }
        }
    }
}

impl Plan {
    /// Groups slices by the node that is asked for them first.
    pub fn shards(&self, slices: &[SliceNo]) -> Vec<Vec<SliceNo>> {
        self.shards_without(slices, &[])
    }

    /// The same without some nodes, unless a slice has no other.
    fn shards_without(&self, slices: &[SliceNo], failed: &[NodeId]) -> Vec<Vec<SliceNo>> {
        let mut shards: BTreeMap<Option<NodeId>, Vec<SliceNo>> = BTreeMap::new();
        for slice in slices {
            let nodes = self.shared.applied.candidates(&self.index, *slice, self.epoch);
            let best = nodes.iter().find(|node| !failed.contains(node)).or(nodes.first());
            shards.entry(best.copied()).or_default().push(*slice);
        }
        shards.into_values().collect()
    }

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
        let task = self.shared.env.spawn("shard-scan", async move {
            if let Err(error) = plan.drive(slices, Round::first(failed), &sender).await {
                // A reader that is gone needs no error.
                let _ = send(&sender, Err(error)).await;
            }
        });
        ShardStream { batches, _task: task }
    }

    /// Tries the replicas in turn until the scan is finished or time is up.
    async fn drive(
        &self,
        mut slices: Vec<SliceNo>,
        mut round: Round,
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
                round.again(place.deadline, self.shared.config.retry, nobody).await?;
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

    /// How long the shard may be without a node that serves it.
    fn timeout(&self) -> Duration {
        Duration::from_millis(self.request.timeout_ms).max(STAGE)
    }

    /// A node that has all the slices and has not failed.
    fn common_candidate(&self, slices: &[SliceNo], failed: &[NodeId]) -> Option<NodeId> {
        let first = self.shared.applied.candidates(&self.index, *slices.first()?, self.epoch);
        let has = |node: NodeId, slice: SliceNo| {
            self.index.topology.hosts(node, slice)
                || self.shared.applied.reads(node, &self.index, slice, self.epoch)
        };
        let has_all = |node: &NodeId| slices.iter().all(|slice| has(*node, *slice));
        first.into_iter().find(|node| !failed.contains(node) && has_all(node))
    }

    /// Has each slice by itself a node that has not failed? So it is where one node has all of them.
    fn splits(&self, slices: &[SliceNo], failed: &[NodeId]) -> bool {
        slices.iter().all(|slice| self.common_candidate(&[*slice], failed).is_some())
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
        let plan = Plan {
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
        let mut gather = super::gather::Gather::new(shards, self.request.reverse, distinct);
        if let proto::rpc::scan::Output::Aggregates(calls) = &self.request.output {
            let mut totals: Vec<_> = calls
                .iter()
                .map(|call| proto::expr::aggregate::Partial::new(call.function))
                .collect();
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
        let info = self.shared.catalog.load().nodes.get(&node).cloned();
        let info = info.ok_or_else(|| Error::unavailable(format!("node {node} is not known")))?;
        let left = place.deadline.saturating_duration_since(Instant::now());
        let stage = stage.map_or(left, |stage| stage.min(left));
        let scan = self.shard_scan(slices, place, stage.as_millis() as u64);
        let late = || Error::unavailable(format!("node {node} did not answer in time"));
        let stage = Instant::now() + stage;
        let indexer = self.shared.directory.indexer(&info);
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

    fn shard_scan(&self, slices: &[SliceNo], place: &Place, timeout_ms: u64) -> ShardScan {
        let request = &self.request;
        ShardScan {
            bucket: self.index.bucket,
            index: self.index.id,
            generation: self.index.generation,
            slices: slices.to_vec(),
            epoch: self.epoch,
            ranges: request.ranges.clone(),
            filter: request.filter.clone(),
            reverse: request.reverse,
            ordered: true,
            distinct_parts: request.distinct_parts,
            resume_after: place.resume_after.clone(),
            limit: place.rows_left,
            output: request.output.clone(),
            timeout_ms,
        }
    }
}

/// Where a shard scan's batches go.
type Batches = ByteSender<Result<ShardBatch>>;

/// Waits for room and sends; an error where nobody reads any more.
async fn send(
    batches: &Batches,
    batch: Result<ShardBatch>,
) -> std::result::Result<(), ReceiverGone> {
    let bytes = batch.as_ref().map_or(0, ShardBatch::bytes);
    batches.send(batch, bytes).await
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
