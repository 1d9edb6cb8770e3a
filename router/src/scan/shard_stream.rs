//! The reader's end of a shard scan.
//!
//! A shard scan begins with one call for its first batch, which is read in the reader's own task: most scans end there. Only after
//! the first batch a task ([`super::shard`]) streams the rest through a bounded channel. The task begins after the last row, or from
//! the beginning if the call brought nothing: it also deals with nodes that fail and slices that have moved.
//!
//! The first batch is cheap. If the node is in this process and all blocks are in memory, the page cache of the kernel
//! included, it needs no task, no channel and no other thread. If some are not, it needs one hop to a blocking thread.
//! Another process is asked on a stream that is open already.

use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::future::Either;
use proto::env::{BoxFuture, Task};
#[cfg(test)]
use proto::flow::byte_channel;
use proto::flow::{ByteReceiver, ByteSender, ReceiverGone};
use proto::model::ids::NodeId;
use proto::plant::{self, Plant};
use proto::rpc::rows::RowBlock;
use proto::rpc::scan::{FirstBatch, Output, ShardBatch};
use proto::{Error, Result};
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};

use super::plan::ScanPlan;
use super::retry_round::FIRST_BATCH_TIMEOUT;
use crate::epochs::reachable::check_reachable;
use crate::epochs::read_view::NodeSlices;
use crate::hedging::{self, STAGE_MIN};

/// The answer of a node in time, or late.
type Answer<T> = std::result::Result<Result<T>, Elapsed>;

/// The reader's end of a shard scan.
pub(crate) struct ShardStream {
    state: State,
}

enum State {
    /// Nothing was asked for.
    New(Box<Shard>),
    /// The call for the first batch. It goes on with the next poll if a reader stops waiting for it. The mutex is never locked: a call
    /// is not `Sync`, and a scan must be.
    Asking(Mutex<BoxFuture<(Box<Shard>, Result<First>)>>),
    /// The first batch, which was not read yet, and the shard scan that reads the rest.
    First(Result<ShardBatch>, Option<Box<Shard>>),
    /// The first batch was read.
    Rest(Box<Shard>),
    /// The first batch of a task, which was not read yet.
    Beside(ShardBatch, Box<State>),
    /// A task sends the batches.
    Task { batches: ByteReceiver<Result<ShardBatch>>, _task: Task },
    /// Everything was read.
    Ended,
}

/// A shard scan that is to begin.
pub(super) struct Shard {
    pub plan: ScanPlan,
    pub placed: NodeSlices,
}

impl ShardStream {
    /// A shard scan that begins when it is read.
    pub(super) fn new(plan: ScanPlan, placed: NodeSlices) -> Self {
        Self { state: State::New(Box::new(Shard { plan, placed })) }
    }

    /// Reads the batches that a task sends. Dropping the stream ends the task.
    pub fn from_task(batches: ByteReceiver<Result<ShardBatch>>, task: Task) -> Self {
        Self { state: State::Task { batches, _task: task } }
    }

    /// A stream of given batches.
    #[cfg(test)]
    pub fn from_batches(all: Vec<ShardBatch>) -> Self {
        let (sender, batches) = byte_channel(64 << 10);
        let send_all = async move {
            for batch in all {
                let _ = send(&sender, Ok(batch)).await;
            }
        };
        Self::from_task(batches, proto::env::Env::real().spawn_request("shard-scan", send_all))
    }

    /// Asks for the first batch unless that was done, so that the streams of several shards can wait for theirs side by side.
    pub async fn begin(&mut self) {
        if let State::New(_) = self.state
            && let State::New(mut shard) = std::mem::replace(&mut self.state, State::Ended)
        {
            self.state = State::Asking(Mutex::new(Box::pin(async move {
                let first = shard.first_batch().await;
                (shard, first)
            })));
        }
        let State::Asking(call) = &mut self.state else { return };
        let (mut shard, first) = call.get_mut().unwrap_or_else(PoisonError::into_inner).await;
        self.state = match first {
            Ok(First::Batch(FirstBatch { batch, is_whole: true })) => State::First(Ok(batch), None),
            Ok(First::Batch(FirstBatch { batch, .. })) => match shard.advance(&batch) {
                true => State::First(Ok(batch), Some(shard)),
                false => shard.into_task(Vec::new()),
            },
            Ok(First::Nothing { failed }) => shard.into_task(failed),
            Ok(First::Beside(batch, (batches, task))) => {
                let twice = plant::is(Plant::HedgeCountedTwice).then(|| batch.clone());
                let rest = State::Beside(batch, Box::new(State::Task { batches, _task: task }));
                match twice {
                    Some(batch) => State::Beside(batch, Box::new(rest)),
                    None => rest,
                }
            }
            Err(error) => State::First(Err(error), None),
        };
    }

    /// Returns the next batch; `Done` is the last one.
    pub async fn next(&mut self) -> Result<ShardBatch> {
        self.begin().await;
        if let State::First(..) = self.state {
            let State::First(batch, rest) = std::mem::replace(&mut self.state, State::Ended) else {
                return Ok(ShardBatch::Done);
            };
            if let Some(shard) = rest {
                self.state = State::Rest(shard);
            }
            return batch;
        }
        if let State::Beside(..) = self.state
            && let State::Beside(batch, rest) = std::mem::replace(&mut self.state, State::Ended)
        {
            self.state = *rest;
            return Ok(batch);
        }
        if let State::Rest(_) = self.state
            && let State::Rest(shard) = std::mem::replace(&mut self.state, State::Ended)
        {
            self.state = shard.into_task(Vec::new());
        }
        let State::Task { batches, .. } = &mut self.state else { return Ok(ShardBatch::Done) };
        match batches.recv().await {
            Some(batch) => batch,
            None => Err(Error::unavailable("the task of a shard scan was cancelled")),
        }
    }

    /// Returns the next rows of a scan in order.
    pub async fn next_rows(&mut self) -> Result<NextRows> {
        match self.next().await? {
            ShardBatch::Rows(block) => Ok(NextRows::Block(block)),
            ShardBatch::Done => Ok(NextRows::End),
            ShardBatch::Failed(entry, error) => Ok(NextRows::Failed(entry, error)),
            ShardBatch::Partials(_) | ShardBatch::Moved(_) => {
                Err(Error::internal("a scan of ordered rows received another kind of batch"))
            }
        }
    }
}

/// The next rows of a shard.
pub(super) enum NextRows {
    Block(RowBlock),
    /// The scan fails at this entry, if it comes there.
    Failed(Bytes, Error),
    End,
}

/// The outcome of the call for a first batch.
enum First {
    Batch(FirstBatch),
    /// A task has to find a node, after these have failed.
    Nothing {
        failed: Vec<NodeId>,
    },
    /// A task that was begun beside the call, and its first batch.
    Beside(ShardBatch, Beside),
}

/// A task that reads the shard from other copies, while the first node is waited for.
type Beside = (ByteReceiver<Result<ShardBatch>>, Task);

impl Shard {
    /// Asks the first node for its first batch, and other copies beside it if it is slow. An error is final.
    async fn first_batch(&mut self) -> Result<First> {
        let ScanPlan { context, index, .. } = &self.plan;
        let NodeSlices { slices, node, has_others, is_probe } = &self.placed;
        let nothing = |failed: &[NodeId]| Ok(First::Nothing { failed: failed.to_vec() });
        let catalog = context.catalog.load();
        let info = node.and_then(|node| catalog.nodes.get(&node));
        let (Some(info), Ok(())) = (info, check_reachable(context, index, slices)) else {
            return nothing(&[]);
        };
        let began = Instant::now();
        let deadline = *self.plan.deadline.get_or_insert(began + self.plan.timeout());
        let left = deadline.saturating_duration_since(began);
        let timeout = if *has_others { left.min(FIRST_BATCH_TIMEOUT) } else { left };
        let from = (self.plan.resume_after.clone(), self.plan.rows_max);
        let scan = self.plan.shard_scan(slices, from, timeout.as_millis() as u64);
        let (indexer, id) = (self.plan.context.directory.indexer(info), info.id);
        drop(catalog);
        let hedges = *has_others && self.may_hedge(id);
        let hedging = &self.plan.context.hedging;
        let is_slow = hedges && hedging.avoids(id);
        let is_probe = is_slow && *is_probe && hedging.claim_probe(id, began);
        // Another scan probes it, or its slices have their other copies on several nodes.
        if is_slow && !is_probe && self.plan.has_ready_others(slices, id) {
            return nothing(&[]);
        }
        let _under_way = self.plan.context.busy.begin(id);
        let mut asked = std::pin::pin!(timeout_at(began + timeout, indexer.first_batch(scan)));
        let answer = match hedges {
            true => {
                let asked = self.hedged((id, began, timeout), is_probe, asked.as_mut());
                match asked.await {
                    Either::Left(answer) => answer,
                    Either::Right(first) => return Ok(first),
                }
            }
            false => self.unhedged((id, began), asked.await),
        };
        match answer {
            Ok(Ok(FirstBatch { batch: ShardBatch::Moved(_), .. })) => nothing(&[]),
            Ok(Ok(first)) => Ok(First::Batch(first)),
            Ok(Err(error)) if Instant::now() >= deadline => Err(error),
            // The task asks another node, or the same again, and knows what to do about the error.
            Ok(Err(error)) if *has_others && error.is_retry() => nothing(&[id]),
            Ok(Err(_)) => nothing(&[]),
            Err(_late) if Instant::now() < deadline => nothing(&[id]),
            Err(_late) => {
                let late = Error::unavailable(format!("node {id} did not answer in time"));
                Err(self.plan.naming(slices, late))
            }
        }
    }

    /// The kind of its first batch.
    fn first_kind(&self) -> hedging::Batches {
        match self.plan.request.output {
            Output::Aggregates(_) => hedging::Batches::Aggregates,
            Output::Rows { .. } => hedging::Batches::Rows,
        }
    }

    /// True if a node is to answer soon: it has applied the epoch, and waits for no transaction.
    fn may_hedge(&self, node: NodeId) -> bool {
        let is_ready = || self.plan.is_ready(node, &self.placed.slices);
        self.plan.hedges() && self.plan.request.own.is_none() && is_ready()
    }

    /// The answer of a node beside which no other one is asked. If it is soon, the node is slow no longer.
    fn unhedged<T>(&self, (node, began): (NodeId, Instant), answer: Answer<T>) -> Answer<T> {
        let hedging = &self.plan.context.hedging;
        if let Ok(Ok(_)) = answer
            && hedging.avoids(node)
        {
            hedging.note_time(node, self.first_kind(), began.elapsed());
        }
        answer
    }

    /// Waits for a node's answer. After a stage other copies are asked beside it.
    async fn hedged<T>(
        &self,
        (node, began, timeout): (NodeId, Instant, Duration),
        is_probe: bool,
        mut asked: Pin<&mut impl Future<Output = Answer<T>>>,
    ) -> Either<Answer<T>, First> {
        let (hedging, kind) = (&self.plan.context.hedging, self.first_kind());
        hedging.earn();
        let stage = self.plan.stage(kind).min(timeout / 2);
        let answer = timeout_at(began + stage, asked.as_mut()).await.ok();
        // A reader that waits is woken at the end of the stage: later, it has read another shard meanwhile, and knows nothing.
        let is_watching = |now: Instant| now <= began + stage + STAGE_MIN;
        if !is_watching(Instant::now()) {
            return Either::Left(match answer {
                Some(answer) => answer,
                None => asked.await,
            });
        }
        let outcome = match answer {
            Some(answer) => Either::Left(answer),
            None => {
                hedging.note_missed(node, began);
                self.beside(asked, (node, is_probe)).await
            }
        };
        match outcome {
            Either::Left(Ok(Ok(_))) => hedging.note_time(node, kind, began.elapsed()),
            Either::Right(_) => hedging.note_batch(kind, began.elapsed()),
            Either::Left(_) => {}
        }
        outcome
    }

    /// Waits for a node that has missed a stage. Other copies are asked beside it if there is budget, or if this is a probe; then the first
    /// good answer wins.
    async fn beside<T>(
        &self,
        mut asked: Pin<&mut impl Future<Output = Answer<T>>>,
        (node, is_probe): (NodeId, bool),
    ) -> Either<Answer<T>, First> {
        let hedging = &self.plan.context.hedging;
        if !is_probe && !hedging.spend() {
            return Either::Left(asked.await);
        }
        let plan = ScanPlan { is_beside: true, ..self.plan.clone() };
        let (mut batches, task) = plan.spawn(self.placed.slices.clone(), vec![node]);
        let ended = || Err(Error::unavailable("the task of a shard scan was cancelled"));
        tokio::select! {
            biased;
            answer = asked.as_mut() => {
                if let Ok(Ok(_)) = answer {
                    return Either::Left(answer);
                }
                // Only the others are left.
                match batches.recv().await.unwrap_or_else(ended) {
                    Ok(batch) => Either::Right(First::Beside(batch, (batches, task))),
                    Err(_) => Either::Left(answer),
                }
            }
            batch = batches.recv() => match batch.unwrap_or_else(ended) {
                Ok(batch) => {
                    hedging.note_won();
                    Either::Right(First::Beside(batch, (batches, task)))
                }
                Err(_) => Either::Left(asked.await),
            },
        }
    }

    /// Moves past the rows of a batch; false if it has none.
    fn advance(&mut self, batch: &ShardBatch) -> bool {
        // The time-out limits the time without a node that serves, so it starts again after each batch.
        self.plan.deadline = None;
        let ShardBatch::Rows(block) = batch else { return false };
        let Some(last) = block.iter().last() else { return false };
        self.plan.resume_after = Some(Bytes::copy_from_slice(last.entry));
        if let Some(left) = &mut self.plan.rows_max {
            *left = left.saturating_sub(u64::from(block.rows));
        }
        true
    }

    /// Begins a task that sends the batches.
    fn into_task(self, failed: Vec<NodeId>) -> State {
        self.plan.start_task(self.placed.slices, failed).state
    }
}

/// The sending end of a shard scan.
pub(super) type Batches = ByteSender<Result<ShardBatch>>;

/// Sends a batch once there is room; an error if the reader is gone.
pub(super) async fn send(
    batches: &Batches,
    batch: Result<ShardBatch>,
) -> std::result::Result<(), ReceiverGone> {
    let bytes = batch.as_ref().map_or(0, ShardBatch::bytes);
    batches.send(batch, bytes).await
}
