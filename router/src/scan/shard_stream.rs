//! The reader's end of a shard scan.
//!
//! A shard scan begins with one call for its first batch, which is read in the reader's own task: most scans end there. Only behind
//! the first batch a task ([`super::shard`]) streams the rest through a bounded channel. The task begins after the last row, or from
//! the beginning if the call brought nothing: it also deals with nodes that fail and slices that have moved.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use proto::env::{BoxFuture, Task};
#[cfg(test)]
use proto::flow::byte_channel;
use proto::flow::{ByteReceiver, ByteSender, ReceiverGone};
use proto::model::ids::NodeId;
use proto::rpc::rows::RowBlock;
use proto::rpc::scan::{FirstBatch, ShardBatch};
use proto::{Error, Result};
use tokio::time::{Instant, timeout_at};

use super::plan::ScanPlan;
use super::retry_round::FIRST_BATCH_TIMEOUT;
use crate::epochs::reachable::check_reachable;
use crate::epochs::read_view::Placed;

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
    /// A task sends the batches.
    Task { batches: ByteReceiver<Result<ShardBatch>>, _task: Task },
    /// Everything was read.
    Ended,
}

/// A shard scan that is to begin.
pub(super) struct Shard {
    pub plan: ScanPlan,
    pub placed: Placed,
}

impl ShardStream {
    /// A shard scan that begins when it is read.
    pub(super) fn new(plan: ScanPlan, placed: Placed) -> Self {
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

    /// Returns the next rows, `None` at the end.
    pub async fn next_rows(&mut self) -> Result<Option<RowBlock>> {
        match self.next().await? {
            ShardBatch::Rows(block) => Ok(Some(block)),
            ShardBatch::Done => Ok(None),
            ShardBatch::Partials(_) | ShardBatch::Moved(_) => {
                Err(Error::internal("a scan of ordered rows received another kind of batch"))
            }
        }
    }
}

/// The outcome of the call for a first batch.
enum First {
    Batch(FirstBatch),
    /// A task has to find a node, after these have failed.
    Nothing {
        failed: Vec<NodeId>,
    },
}

impl Shard {
    /// Asks the first node for its first batch. An error is final.
    async fn first_batch(&mut self) -> Result<First> {
        let ScanPlan { context, index, .. } = &self.plan;
        let Placed { slices, node, has_others } = &self.placed;
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
        match timeout_at(began + timeout, indexer.first_batch(scan)).await {
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

    /// Goes behind the rows of a batch; false if it has none.
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
