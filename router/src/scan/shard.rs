//! A shard scan: a task that reads slices from a replica. When that replica fails, the task continues with another one
//! after the last entry received.

use std::sync::atomic::Ordering;
use std::time::Duration;

use proto::env::Task;
use proto::expr::aggregate::PartialAggregate;
use proto::flow::{ByteReceiver, byte_channel};
use proto::model::ids::{NodeId, SliceNo};
use proto::rpc::api::ResultStream;
use proto::rpc::scan::{Output, ShardBatch};
use proto::{Error, ErrorCode, ErrorKind, Result};
use tokio::time::Instant;

use super::gather::Gather;
use super::place::{Place, ShardPosition};
use super::plan::ScanPlan;
use super::rest::Rest;
use super::retry_round::RetryRound;
use super::shard_stream::{Batches, ShardStream, send};
use crate::epochs::reachable::check_reachable;
use crate::epochs::read_view::NodeSlices;

impl ScanPlan {
    /// A shard scan that follows its slices to wherever they move. Its rows come in order.
    pub fn start(&self, placed: NodeSlices) -> ShardStream {
        ShardStream::new(Self { reports_moved: false, ..self.clone() }, placed)
    }

    /// The scan of a base shard. It reports slices that are no longer on the node of the base topology, and reads the others.
    pub fn start_base(&self, placed: NodeSlices) -> ShardStream {
        ShardStream::new(Self { reports_moved: true, ..self.clone() }, placed)
    }

    /// Begins a task that reads slices and streams their rows. It does not begin with nodes that have just failed.
    pub fn start_task(&self, slices: Vec<SliceNo>, failed: Vec<NodeId>) -> ShardStream {
        let (batches, task) = self.spawn(slices, failed);
        ShardStream::from_task(batches, task)
    }

    /// The same; returns the batches and the task, which ends when it is dropped.
    pub fn spawn(
        &self,
        slices: Vec<SliceNo>,
        failed: Vec<NodeId>,
    ) -> (ByteReceiver<Result<ShardBatch>>, Task) {
        let (sender, batches) = byte_channel(self.context.config.scan_ahead_bytes);
        let plan = self.clone();
        let task = self.context.env.spawn_request("shard-scan", async move {
            if let Err(error) = plan.drive(slices, RetryRound::first(failed), &sender).await {
                // The send fails only if the reader is gone.
                let _ = send(&sender, Err(error)).await;
            }
        });
        (batches, task)
    }

    /// Tries the replicas in turn until the scan is finished or the deadline has passed.
    async fn drive(
        &self,
        mut slices: Vec<SliceNo>,
        mut round: RetryRound,
        sender: &Batches,
    ) -> Result<()> {
        let mut place = self.begin();
        while !slices.is_empty() {
            let is_once = self.is_beside && !place.has_rows;
            let node = match self.candidate((&slices, is_once), &mut round, place.deadline).await? {
                Candidate::Node(node) => node,
                Candidate::Groups(groups) => {
                    return self.drive_groups(groups, place, round.failed(), sender).await;
                }
            };
            if place.has_rows {
                self.context.resumed.fetch_add(1, Ordering::Relaxed);
            }
            let others = self.can_split(&slices, &round.failed_and(node));
            // The others may have failed only for a moment, so a slow node is not waited for as if it were the only one.
            let is_slow = self.context.hedging.avoids(node);
            let has_limit = others || is_slow && self.can_split(&slices, &[node]);
            let first_batch_timeout = has_limit.then_some(round.first_batch_timeout());
            match self.attempt(node, &slices, &mut place, first_batch_timeout, sender).await {
                Ok(Attempt::Ended) => return Ok(()),
                Ok(Attempt::Moved(places)) => {
                    let (places, gone, stay) = divide_moved(node, &slices, places)?;
                    if self.reports_moved {
                        slices = stay;
                        if send(sender, Ok(ShardBatch::Moved(places))).await.is_err() {
                            return Ok(());
                        }
                        continue;
                    }
                    if !stay.is_empty() {
                        let mut groups = self.shards_without(&gone, &round.failed_and(node));
                        groups.push(stay);
                        return self.drive_groups(groups, place, round.failed(), sender).await;
                    }
                    let text = format!("node {node} no longer has slice {}", slices[0]);
                    round.fail(node, Error::new(ErrorCode::SliceMoved, text));
                }
                Err(error) if may_try_another(&error, others) => {
                    tracing::debug!(%node, %error, "a node failed a shard scan; trying another node");
                    round.fail(node, error);
                }
                Err(error) => return Err(error),
            }
        }
        // The send fails only if the reader is gone.
        let _ = send(sender, Ok(ShardBatch::Done)).await;
        Ok(())
    }

    /// The position before the first row.
    fn begin(&self) -> ShardPosition {
        ShardPosition {
            reached: Place::Behind(self.resume_after.clone()),
            rows_left: self.rows_max,
            has_rows: false,
            deadline: self.deadline.unwrap_or_else(|| Instant::now() + self.timeout()),
        }
    }

    /// Chooses the node to ask next. Waits for the next round if there is none, unless each is asked once.
    async fn candidate(
        &self,
        (slices, is_once): (&[SliceNo], bool),
        round: &mut RetryRound,
        deadline: Instant,
    ) -> Result<Candidate> {
        loop {
            check_reachable(&self.context, &self.index, slices)?;
            // Slow nodes are asked when all others have failed.
            let slow = self.context.hedging.avoided();
            let without_slow = [round.failed(), &slow].concat();
            let avoided = [&without_slow[..], round.failed()].into_iter();
            for avoided in avoided.skip(usize::from(slow.is_empty())) {
                if let Some(node) = self.common_candidate(slices, avoided) {
                    return Ok(Candidate::Node(node));
                }
                if let Some(groups) = self.groups_without(slices, avoided) {
                    return Ok(Candidate::Groups(groups));
                }
            }
            if is_once {
                return Err(Error::unavailable("no other copy has answered"));
            }
            let no_node = || Error::unavailable("no node has the slice");
            let next = round.next_round(deadline, self.context.config.retry, no_node).await;
            next.map_err(|error| self.naming(slices, error))?;
        }
    }

    /// An error after which no node is left to ask names the index and the slices.
    pub(super) fn naming(&self, slices: &[SliceNo], error: Error) -> Error {
        if !matches!(error.code, ErrorCode::Unavailable | ErrorCode::OtherCluster) {
            return error;
        }
        let more = match slices.len() {
            0 | 1 => String::new(),
            slices => format!(" and {} more", slices - 1),
        };
        let slice = slices.first().copied().unwrap_or_default();
        error.context(format_args!("index \"{}\": slice {slice}{more}", self.index.spec.name))
    }

    /// After a failure the slices of one shard may have to be read from different replicas. Then each group continues as
    /// a shard scan of its own, and their rows are merged. `None` if the slices cannot be divided further.
    fn groups_without(&self, slices: &[SliceNo], failed: &[NodeId]) -> Option<Vec<Vec<SliceNo>>> {
        if slices.len() < 2 || !self.can_split(slices, failed) {
            return None;
        }
        let groups = self.shards_without(slices, failed);
        let is_divided = groups.len() > 1;
        Some(if is_divided { groups } else { slices.iter().map(|slice| vec![*slice]).collect() })
    }

    /// Continues as several shard scans, one for each group of slices, and merges their rows. They do not begin with the
    /// nodes that have just failed.
    async fn drive_groups(
        &self,
        groups: Vec<Vec<SliceNo>>,
        place: ShardPosition,
        failed: &[NodeId],
        sender: &Batches,
    ) -> Result<()> {
        if place.has_rows {
            self.context.resumed.fetch_add(1, Ordering::Relaxed);
        }
        // The parts inherit the deadline. Otherwise a scan that is divided again and again would never give up.
        let ShardPosition { reached, rows_left, deadline, .. } = place;
        let resume_after = reached.resume_after();
        // The groups may run long, and the block of the place is not needed again.
        drop(reached);
        let plan = ScanPlan {
            resume_after,
            rows_max: rows_left,
            deadline: Some(deadline),
            reports_moved: false,
            ..self.clone()
        };
        let shards =
            groups.into_iter().map(|slices| plan.start_task(slices, failed.to_vec())).collect();
        let distinct =
            self.request.distinct_parts.map(|parts| (parts, self.index.spec.descending()));
        let mut gather = Gather::new(shards, self.request.reverse, distinct);
        if let Output::Aggregates(calls) = &self.request.output {
            let mut totals: Vec<_> =
                calls.iter().map(|call| PartialAggregate::new(call.function)).collect();
            gather.fold(&mut totals).await?;
            let _ = send(sender, Ok(ShardBatch::Partials(totals))).await;
        } else {
            loop {
                let batch = match gather.next().await {
                    Ok(Some(block)) => ShardBatch::Rows(block),
                    Ok(None) => break,
                    Err(error) => match gather.failed_at() {
                        Some(entry) => ShardBatch::Failed(entry, error),
                        None => return Err(error),
                    },
                };
                let is_last = matches!(batch, ShardBatch::Failed(..));
                if send(sender, Ok(batch)).await.is_err() || is_last {
                    return Ok(());
                }
            }
        }
        let _ = send(sender, Ok(ShardBatch::Done)).await;
        Ok(())
    }

    /// Reads from one node until its end or a failure. The node must send its first batch within `first_batch_timeout`,
    /// where there is one.
    async fn attempt(
        &self,
        node: NodeId,
        slices: &[SliceNo],
        place: &mut ShardPosition,
        first_batch_timeout: Option<Duration>,
        sender: &Batches,
    ) -> Result<Attempt> {
        let under_way = self.context.busy.begin(node);
        let left = place.deadline.saturating_duration_since(Instant::now());
        let timeout = first_batch_timeout.map_or(left, |timeout| timeout.min(left));
        let (mut rest, mut next) = Rest::open(self, (node, slices), place, timeout).await?;
        // How fast it is read is the reader's matter.
        drop(under_way);
        loop {
            let batch =
                next.ok_or_else(|| Error::unavailable(format!("node {node} closed the stream")))??;
            match batch {
                ShardBatch::Rows(ref block) => place.advance(block),
                // The node contradicts itself, so it is not asked again.
                ShardBatch::Moved(ref places) if places.is_empty() => {
                    return Err(Error::internal(format!("node {node} reports a move of no slice")));
                }
                ShardBatch::Moved(places) => return Ok(Attempt::Moved(places)),
                _ => {}
            }
            // Partial aggregates cannot be resumed: once they are sent, no other node may be asked.
            let last = !matches!(batch, ShardBatch::Rows(_));
            let partials = matches!(batch, ShardBatch::Partials(_));
            let mut sent = send(sender, Ok(batch)).await;
            if partials {
                sent = send(sender, Ok(ShardBatch::Done)).await;
            }
            if sent.is_err() || last {
                return Ok(Attempt::Ended);
            }
            let following = rest.next(self, (node, slices), place).await;
            // The time-out limits the time without a node that serves, so it starts again after each batch.
            place.deadline = Instant::now() + self.timeout();
            next = following?;
        }
    }

    /// Opens a shard scan on a node.
    pub(super) async fn open_shard(
        &self,
        node: NodeId,
        slices: &[SliceNo],
        place: &ShardPosition,
        timeout: Duration,
    ) -> Result<ResultStream<ShardBatch>> {
        let info = self.context.catalog.load().nodes.get(&node).cloned();
        let unknown = || Error::unavailable(format!("node {node} is not in the router's catalog"));
        let info = info.ok_or_else(unknown)?;
        let from = (place.reached.resume_after(), place.rows_left);
        let scan = self.shard_scan(slices, from, timeout.as_millis() as u64);
        self.context.directory.indexer(&info).scan(scan).await
    }
}

/// True if another node may answer after a node's error. A replica with an older floor may still have the epoch, and a
/// damaged replica is abandoned at once, if there are `others`.
fn may_try_another(error: &Error, others: bool) -> bool {
    let is_too_old = error.code == ErrorCode::SnapshotTooOld;
    let is_other_chance = is_too_old || error.code.kind() == ErrorKind::Operator;
    (error.is_retry() && !is_too_old) || (others && is_other_chance)
}

/// Divides the slices that a node was asked for into those that have moved, with their places, and those that stay. Other
/// slices in its answer are ignored.
fn divide_moved(
    node: NodeId,
    slices: &[SliceNo],
    mut places: Places,
) -> Result<(Places, Vec<SliceNo>, Vec<SliceNo>)> {
    places.retain(|(slice, _)| slices.contains(slice));
    if places.is_empty() {
        let text = format!("node {node} reports moved slices that were not asked for");
        return Err(Error::internal(text));
    }
    let has_moved = |slice: &SliceNo| places.iter().any(|(moved, _)| moved == slice);
    let (gone, stay) = slices.iter().copied().partition(has_moved);
    Ok((places, gone, stay))
}

/// Slices that have moved, each with its node.
type Places = Vec<(SliceNo, NodeId)>;

/// The next step of a shard scan.
enum Candidate {
    /// This node is asked for all slices.
    Node(NodeId),
    /// No node has all slices: each group is read on its own.
    Groups(Vec<Vec<SliceNo>>),
}

/// The outcome of asking one node.
enum Attempt {
    /// Everything was read, or the reader is gone.
    Ended,
    /// Nothing was read: these slices are on other nodes.
    Moved(Places),
}

#[cfg(test)]
#[path = "shard_tests.rs"]
pub(super) mod tests;
