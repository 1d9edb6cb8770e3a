//! The driver of a shard scan: it makes one attempt after another ([`super::attempt`]), until the
//! slices are read.
//!
//! The first attempt is a call for the first batch, in the reader's own task: most scans end there.
//! If the node is in this process and all blocks are in memory, including the kernel's page cache,
//! the call needs no task, no channel and no other thread. Otherwise it needs one hop to a blocking
//! thread. A node in another process is called on a stream that is already open.
//!
//! A task streams the rest through a bounded channel. It begins after the last row, or from the
//! beginning if the call has returned no row. When a node fails, the task continues with another
//! one after the last row. While a node is waited for, other copies may be queried in parallel, by
//! another such task. In both cases no row is lost or repeated, because the epoch is the same.

use std::pin::{Pin, pin};
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::future::Either;
use futures::stream::{StreamExt, TryStreamExt, once, unfold};
use proto::expr::aggregate::PartialAggregate;
use proto::flow::byte_channel;
use proto::model::ids::{NodeId, SliceNo};
use proto::plant::{self, Plant};
use proto::rpc::api::ResultStream;
use proto::rpc::scan::{FirstBatch, Output, ShardBatch};
use proto::{Error, Result};
use tokio::time::{Instant, timeout_at};

use super::attempt::{Attempts, BatchWait, Facts, NextStep, Outcome, Places, with_names};
use super::gather::ShardMerge;
use super::place::{ScanPosition, ShardPosition};
use super::plan::ScanPlan;
use super::shard_stream::{Sender, ShardStream, send};
use crate::epochs::reachable::check_reachable;
use crate::epochs::read_view::NodeSlices;
use crate::hedging::Batches;

/// The driver of a shard scan: reads some slices, from one node at a time.
struct ShardDriver {
    plan: ScanPlan,
    slices: Vec<SliceNo>,
    position: ShardPosition,
    attempts: Attempts,
    reports_moved: bool,
    /// True if this driver reads other copies in parallel with a node that another driver queries.
    /// Each copy is then tried only once.
    is_beside: bool,
}

/// The answer of the queried node, or a batch of another copy together with the stream of its
/// further batches.
type Answer<T> = Either<Result<T>, (ShardBatch, ShardStream)>;

impl ScanPlan {
    /// Returns a stream of a shard scan that begins when it is read. If `reports_moved` is true,
    /// the stream reports slices that have left the queried node, and reads only the others.
    /// Otherwise such slices are read from their new nodes, and all rows are in order.
    pub fn start(&self, mut placed: NodeSlices, reports_moved: bool) -> ShardStream {
        let (plan, slices) = (self.clone(), std::mem::take(&mut placed.slices));
        let reached = ScanPosition::Behind(self.resume_after.clone());
        let position = ShardPosition { reached, rows_left: self.rows_max, deadline: None };
        let attempts = Attempts::avoiding(Vec::new());
        let shard =
            ShardDriver { plan, slices, position, attempts, reports_moved, is_beside: false };
        ShardStream::with_first(None, shard.read_first(placed))
    }
}

impl ShardDriver {
    /// Reads the first batch. Returns a stream of this batch and the further ones.
    async fn read_first(mut self, placed: NodeSlices) -> ShardStream {
        let outcome = match self.call(&placed).await {
            Some(Either::Left(Ok(FirstBatch { batch, is_whole }))) => match batch {
                ShardBatch::Moved(places) => Some(Ok(places)),
                batch if is_whole => return ShardStream::of_one_batch(batch),
                batch => {
                    // The time-out limits the time without a node that serves, so it starts again after each batch.
                    self.position.deadline = None;
                    if let ShardBatch::Rows(block) = &batch
                        && block.rows > 0
                    {
                        self.position.advance(block);
                        self.position = self.position.for_other_task();
                        return ShardStream::with_first(Some(batch), async { self.stream(None) });
                    }
                    None
                }
            },
            Some(Either::Left(Err(error))) => Some(Err(error)),
            Some(Either::Right((batch, mut rest))) => {
                if plant::is(Plant::HedgeCountedTwice) {
                    rest = ShardStream::with_first(Some(batch.clone()), async { rest });
                }
                return ShardStream::with_first(Some(batch), async { rest });
            }
            None => None,
        };
        self.stream(outcome)
    }

    /// Calls the first node for its first batch. Returns `None` without a call if the node is
    /// unknown, or if it is slow and other copies are ready.
    async fn call(&mut self, placed: &NodeSlices) -> Option<Answer<FirstBatch>> {
        let (plan, slices, node) = (&self.plan, &self.slices, placed.node?);
        let context = &plan.context;
        let indexer = plan.indexer(node).ok()?;
        check_reachable(context, &plan.index, slices).ok()?;
        let began = Instant::now();
        let deadline = *self.position.deadline.get_or_insert(began + plan.timeout());
        let left = deadline.saturating_duration_since(began);
        let timeout = self.attempts.note_call(node, placed.has_others, left);
        let hedging = &context.hedging;
        let hedges = placed.has_others && plan.is_expected_soon(node, slices);
        let is_slow = hedges && hedging.is_avoided(node);
        let is_probe = is_slow && placed.is_probe && hedging.claim_probe(node, began);
        // Another scan probes it, or its slices have their other copies on several nodes.
        if is_slow && !is_probe && plan.has_ready_others(slices, node) {
            return None;
        }
        let _under_way = context.busy.count_request(node);
        let scan = plan.shard_scan(slices, &self.position, timeout);
        let asked = timeout_at(began + timeout, indexer.first_batch(scan));
        let late = || with_names(&plan.index.spec.name, slices, late_error(node));
        let asked = pin!(async { asked.await.unwrap_or_else(|_| Err(late())) });
        let of = match plan.request.output {
            Output::Aggregates(_) => Batches::Aggregates,
            Output::Rows { .. } => Batches::Rows,
        };
        if hedges {
            hedging.earn_budget();
            let stage = plan.hedge_stage(of).min(timeout / 2);
            let may_race = || {
                hedging.note_missed(node, began);
                is_probe || hedging.spend_budget()
            };
            return Some(self.wait(BatchWait { node, of, began, stage }, may_race, asked).await);
        }
        let answer = asked.await;
        if answer.is_ok() && hedging.is_avoided(node) {
            hedging.note_time(node, of, began.elapsed());
        }
        Some(Either::Left(answer))
    }

    /// Begins a task that sends the batches, and returns the stream of them. `outcome` is the
    /// outcome of the call for the first batch.
    fn stream(mut self, outcome: Option<Outcome>) -> ShardStream {
        let env = self.plan.context.env.clone();
        let (sender, batches) = byte_channel(self.plan.context.config.scan_ahead_bytes);
        let task = env.spawn_request("shard-scan", async move {
            if let Err(error) = self.make_attempts(outcome, &sender).await {
                // The send fails only if the reader is gone.
                let _ = send(&sender, Err(error)).await;
            }
        });
        ShardStream::from_task(batches, task)
    }

    /// Makes one attempt after another until the scan is finished or fails.
    async fn make_attempts(&mut self, mut outcome: Option<Outcome>, sender: &Sender) -> Result<()> {
        while !self.slices.is_empty() {
            match self.next(outcome.take()) {
                NextStep::Query(node, timeout) => {
                    self.note_resumed();
                    outcome = self.read(node, timeout, sender).await.transpose();
                    match &outcome {
                        Some(Err(error)) => {
                            tracing::debug!(%node, %error, "a node failed a shard scan")
                        }
                        Some(Ok(_)) => {}
                        None => return Ok(()),
                    }
                }
                NextStep::Report(places, stay) => {
                    self.slices = stay;
                    if send(sender, Ok(ShardBatch::Moved(places))).await.is_err() {
                        return Ok(());
                    }
                }
                NextStep::Split(stay, avoided) => {
                    self.slices.retain(|slice| !stay.contains(slice));
                    let mut groups = self.plan.shards_without(&self.slices, &avoided);
                    groups.extend((!stay.is_empty()).then_some(stay));
                    if groups.len() < 2 {
                        groups = self.slices.iter().map(|slice| vec![*slice]).collect();
                    }
                    return self.read_groups(groups, sender).await;
                }
                NextStep::Pause => tokio::time::sleep(self.plan.context.config.retry).await,
                NextStep::Fail(error) => return Err(error),
            }
        }
        // The send fails only if the reader is gone.
        let _ = send(sender, Ok(ShardBatch::Done)).await;
        Ok(())
    }

    /// Chooses the next attempt.
    fn next(&mut self, outcome: Option<Outcome>) -> NextStep {
        let Self { plan, slices, position, .. } = self;
        let now = Instant::now();
        let known = Facts {
            now,
            deadline: *position.deadline.get_or_insert(now + plan.timeout()),
            index: &plan.index.spec.name,
            slices,
            copies: plan.copies(slices),
            slow: &plan.context.hedging.avoided(),
            reachable: check_reachable(&plan.context, &plan.index, slices),
            reports_moved: self.reports_moved,
            is_once: self.is_beside && !position.has_rows(),
        };
        self.attempts.next(outcome, &known)
    }

    /// Reads from one node until its end or a failure, and sends the batches. Returns `None` if
    /// all rows were read or the reader is gone; otherwise the slices that have moved.
    async fn read(
        &mut self,
        node: NodeId,
        mut timeout: Duration,
        sender: &Sender,
    ) -> Result<Option<Places>> {
        let mut under_way = Some(self.plan.context.busy.count_request(node));
        let indexer = self.plan.indexer(node)?;
        let scan = self.plan.shard_scan(&self.slices, &self.position, timeout);
        let opened = async move { indexer.scan(scan).await };
        let mut batches: ResultStream<ShardBatch> = Box::pin(once(opened).try_flatten());
        let mut may_hedge = true;
        loop {
            let is_first = under_way.is_some();
            let next =
                self.next_batch(node, &mut batches, &mut may_hedge, (is_first, timeout)).await;
            if under_way.take().is_none() {
                self.position.deadline = None;
            }
            timeout = self.plan.timeout();
            let batch = next?;
            match batch {
                ShardBatch::Rows(ref block) => self.position.advance(block),
                ShardBatch::Moved(places) => return Ok(Some(places)),
                _ => {}
            }
            // Partial aggregates cannot be resumed: once they are sent, no other node may be queried.
            let last = !matches!(batch, ShardBatch::Rows(_));
            let partials = matches!(batch, ShardBatch::Partials(_));
            let mut sent = send(sender, Ok(batch)).await;
            if partials {
                sent = send(sender, Ok(ShardBatch::Done)).await;
            }
            if sent.is_err() || last {
                return Ok(None);
            }
        }
    }

    /// Returns the next batch of a node. If another copy answers first, returns its batch, and
    /// `batches` becomes its stream.
    async fn next_batch(
        &self,
        node: NodeId,
        batches: &mut ResultStream<ShardBatch>,
        may_hedge: &mut bool,
        (is_first, timeout): (bool, Duration),
    ) -> Result<ShardBatch> {
        let (plan, began) = (&self.plan, Instant::now());
        let closed = || Err(Error::unavailable(format!("node {node} closed the stream")));
        let asked = timeout_at(began + timeout, batches.next());
        let asked = async { asked.await.map_err(|_| late_error(node))?.unwrap_or_else(closed) };
        let mut stage = plan.hedge_stage(Batches::Rest);
        // The one batch of an aggregate takes as long as the whole shard.
        let mut hedges = *may_hedge && !self.is_beside;
        if is_first {
            // The node opens the scan first.
            stage = stage.max(plan.hedge_stage(Batches::Rows)).min(timeout / 2);
            hedges &= matches!(plan.request.output, Output::Rows { .. });
        }
        let slices = &self.slices;
        if !hedges || !plan.is_expected_soon(node, slices) || !plan.has_ready_others(slices, node) {
            return asked.await;
        }
        let may_race = || {
            *may_hedge = !plan.context.hedging.spend_budget_for_rest();
            !*may_hedge
        };
        let wait = BatchWait { node, of: Batches::Rest, began, stage };
        let answer = self.wait(wait, may_race, pin!(asked)).await;
        match answer {
            Either::Left(answer) => answer,
            Either::Right((batch, rest)) => {
                *batches = Box::pin(unfold(rest, async |mut rest| Some((rest.next().await, rest))));
                Ok(batch)
            }
        }
    }

    /// Waits for a batch of a node. If none arrives within a stage, other copies may be queried in
    /// parallel.
    async fn wait<T>(
        &self,
        wait: BatchWait,
        may_race: impl FnOnce() -> bool,
        mut asked: Pin<&mut impl Future<Output = Result<T>>>,
    ) -> Answer<T> {
        let BatchWait { node, of, began, stage } = wait;
        let hedging = &self.plan.context.hedging;
        let in_stage = timeout_at(began + stage, asked.as_mut()).await.ok();
        let is_watched = wait.is_meaningful(Instant::now());
        let answer = match in_stage {
            Some(answer) => Either::Left(answer),
            None if is_watched && may_race() => self.race_copies(wait, asked).await,
            None => Either::Left(asked.await),
        };
        let took = began.elapsed();
        match &answer {
            Either::Left(Err(_)) => {}
            _ if !is_watched => {}
            Either::Left(Ok(_)) if wait.is_call() => hedging.note_time(node, of, took),
            _ => hedging.note_batch(of, took),
        }
        answer
    }

    /// Waits for a node and for other copies in parallel. The first good answer wins.
    async fn race_copies<T>(
        &self,
        wait: BatchWait,
        mut asked: Pin<&mut impl Future<Output = Result<T>>>,
    ) -> Answer<T> {
        let mut other = self.for_slices(self.slices.clone(), vec![wait.node]);
        other.is_beside = true;
        other.reports_moved = self.reports_moved && wait.is_call();
        other.position.deadline = self.position.deadline.filter(|_| wait.is_call());
        let mut others = other.stream(None);
        let answer = loop {
            tokio::select! {
                biased;
                answer = asked.as_mut() => break answer,
                Ok(batch) = others.next() => if wait.is_won_by(&batch) {
                    self.plan.context.hedging.note_won();
                    self.note_resumed();
                    return Either::Right((batch, others));
                }
            }
        };
        // Only the others are left. A stream that fails is retried at once.
        if answer.is_err()
            && wait.is_call()
            && let Ok(batch) = others.next().await
        {
            return Either::Right((batch, others));
        }
        Either::Left(answer)
    }

    /// Returns a driver for some of the slices that continues from the present position. In its
    /// first round it does not query the nodes in `failed`.
    fn for_slices(&self, slices: Vec<SliceNo>, failed: Vec<NodeId>) -> Self {
        let (plan, position) = (self.plan.clone(), self.position.for_other_task());
        let (attempts, is_beside) = (Attempts::avoiding(failed), self.is_beside);
        Self { plan, slices, position, attempts, reports_moved: false, is_beside }
    }

    /// Continues as several shard scans, one for each group of slices, and merges their rows. The
    /// new scans have the same deadline, so that a scan that is divided repeatedly still ends.
    async fn read_groups(&mut self, groups: Vec<Vec<SliceNo>>, sender: &Sender) -> Result<()> {
        self.note_resumed();
        // The groups may run long, and the block of the place is not needed again.
        self.position = self.position.for_other_task();
        let part = |slices| self.for_slices(slices, self.attempts.failed.clone()).stream(None);
        let shards = groups.into_iter().map(part).collect();
        let ScanPlan { index, request, .. } = &self.plan;
        let distinct = request.distinct_parts.map(|parts| (parts, index.spec.descending()));
        let mut gather = ShardMerge::new(shards, request.reverse, distinct);
        if let Output::Aggregates(calls) = &request.output {
            let mut totals: Vec<_> =
                calls.iter().map(|call| PartialAggregate::new(call.function)).collect();
            gather.fold_aggregates(&mut totals).await?;
            let _ = send(sender, Ok(ShardBatch::Partials(totals))).await;
            let _ = send(sender, Ok(ShardBatch::Done)).await;
            return Ok(());
        }
        loop {
            let batch = match gather.next().await {
                Ok(Some(block)) => ShardBatch::Rows(block),
                Ok(None) => ShardBatch::Done,
                Err(error) => match gather.failed_at() {
                    Some(entry) => ShardBatch::Failed(entry, error),
                    None => return Err(error),
                },
            };
            let is_last = !matches!(batch, ShardBatch::Rows(_));
            if send(sender, Ok(batch)).await.is_err() || is_last {
                return Ok(());
            }
        }
    }

    /// Counts the shard scan as resumed if a row was received before.
    fn note_resumed(&self) {
        let has_rows = u64::from(self.position.has_rows());
        self.plan.context.resumed.fetch_add(has_rows, Ordering::Relaxed);
    }
}

/// Returns the error that a node did not answer in time.
fn late_error(node: NodeId) -> Error {
    Error::unavailable(format!("node {node} did not answer in time"))
}

#[cfg(test)]
#[path = "shard_tests.rs"]
pub(super) mod tests;
