//! The stream of batches of a shard scan, for its reader: the first batch, and then the batches
//! that a task sends.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use proto::env::{BoxFuture, Task};
use proto::flow::{ByteReceiver, ByteSender, ReceiverGone};
use proto::rpc::rows::RowBlock;
use proto::rpc::scan::ShardBatch;
use proto::{Error, Result};

/// The stream of a shard scan's batches.
pub(crate) struct ShardStream {
    /// The next batch, if it was received already.
    ready: Option<ShardBatch>,
    rest: RemainingBatches,
}

/// The source of the batches after `ready`.
enum RemainingBatches {
    /// A stream that is made when it is first read. If a reader stops waiting, the future
    /// continues at the next poll. The mutex is never locked: it only makes the type `Sync`.
    Later(Mutex<BoxFuture<ShardStream>>),
    /// The batches that a task sends. The task ends when this value is dropped.
    Task {
        batches: ByteReceiver<Result<ShardBatch>>,
        _task: Task,
    },
    Ended,
}

/// The sending end of a shard scan's channel.
pub(super) type Sender = ByteSender<Result<ShardBatch>>;

impl ShardStream {
    /// Creates a stream that returns `ready`, and then continues with the stream that `rest`
    /// returns.
    pub fn with_first(
        ready: Option<ShardBatch>,
        rest: impl Future<Output = Self> + Send + 'static,
    ) -> Self {
        Self { ready, rest: RemainingBatches::Later(Mutex::new(Box::pin(rest))) }
    }

    /// Creates a stream of the batches that a task sends.
    pub fn from_task(batches: ByteReceiver<Result<ShardBatch>>, task: Task) -> Self {
        Self { ready: None, rest: RemainingBatches::Task { batches, _task: task } }
    }

    /// Creates a stream of one batch, the last one.
    pub fn of_one_batch(batch: ShardBatch) -> Self {
        Self { ready: Some(batch), rest: RemainingBatches::Ended }
    }

    /// Creates a stream of given batches.
    #[cfg(test)]
    pub fn from_batches(all: Vec<ShardBatch>) -> Self {
        let (sender, batches) = proto::flow::byte_channel(64 << 10);
        let send_all = async move {
            for batch in all {
                let _ = send(&sender, Ok(batch)).await;
            }
        };
        let task = proto::env::Env::real().spawn_request("shard-scan", send_all);
        Self::from_task(batches, task)
    }

    /// Requests the first batch if that was not done yet. So the streams of several shards can
    /// wait for their batches in parallel.
    pub async fn begin(&mut self) {
        while let (None, RemainingBatches::Later(rest)) = (&self.ready, &mut self.rest) {
            *self = rest.get_mut().unwrap_or_else(PoisonError::into_inner).await;
        }
    }

    /// Returns the next batch; `Done` is the last one.
    pub async fn next(&mut self) -> Result<ShardBatch> {
        self.begin().await;
        if let Some(batch) = self.ready.take() {
            return Ok(batch);
        }
        let RemainingBatches::Task { batches, .. } = &mut self.rest else {
            return Ok(ShardBatch::Done);
        };
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

/// The next rows of a shard, or their end.
pub(super) enum NextRows {
    Block(RowBlock),
    /// The scan fails with this error when it reaches this entry.
    Failed(Bytes, Error),
    End,
}

/// Waits until the channel can take a batch, and sends it. An error if the reader was dropped.
pub(super) async fn send(
    batches: &Sender,
    batch: Result<ShardBatch>,
) -> std::result::Result<(), ReceiverGone> {
    let bytes = batch.as_ref().map_or(0, ShardBatch::bytes);
    batches.send(batch, bytes).await
}
