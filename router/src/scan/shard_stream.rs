//! The reader's end of a shard scan: the first batch, and then the batches that a task sends.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use proto::env::{BoxFuture, Task};
use proto::flow::{ByteReceiver, ByteSender, ReceiverGone};
use proto::rpc::rows::RowBlock;
use proto::rpc::scan::ShardBatch;
use proto::{Error, Result};

/// The reader's end of a shard scan.
pub(crate) struct ShardStream {
    /// The next batch, if it was received already.
    ready: Option<ShardBatch>,
    rest: Rest,
}

/// The batches after the one that is ready.
enum Rest {
    /// A stream that begins when it is read. If a reader stops waiting, the future continues at the
    /// next poll. The mutex is never locked: it only makes the type `Sync`.
    Later(Mutex<BoxFuture<ShardStream>>),
    /// The batches of a task, which ends when this value is dropped.
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
    pub fn later(
        ready: Option<ShardBatch>,
        rest: impl Future<Output = Self> + Send + 'static,
    ) -> Self {
        Self { ready, rest: Rest::Later(Mutex::new(Box::pin(rest))) }
    }

    /// A stream of the batches that a task sends.
    pub fn from_task(batches: ByteReceiver<Result<ShardBatch>>, task: Task) -> Self {
        Self { ready: None, rest: Rest::Task { batches, _task: task } }
    }

    /// Creates a stream of one batch, the last one.
    pub fn whole(batch: ShardBatch) -> Self {
        Self { ready: Some(batch), rest: Rest::Ended }
    }

    /// A stream of given batches.
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

    /// Requests the first batch if that was not done yet, so that the streams of several shards can
    /// wait for their batches in parallel.
    pub async fn begin(&mut self) {
        while let (None, Rest::Later(rest)) = (&self.ready, &mut self.rest) {
            *self = rest.get_mut().unwrap_or_else(PoisonError::into_inner).await;
        }
    }

    /// Returns the next batch; `Done` is the last one.
    pub async fn next(&mut self) -> Result<ShardBatch> {
        self.begin().await;
        if let Some(batch) = self.ready.take() {
            return Ok(batch);
        }
        let Rest::Task { batches, .. } = &mut self.rest else { return Ok(ShardBatch::Done) };
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
    /// The scan fails with this error if it reaches this entry.
    Failed(Bytes, Error),
    End,
}

/// Waits until the channel has room and sends a batch; an error if the reader was dropped.
pub(super) async fn send(
    batches: &Sender,
    batch: Result<ShardBatch>,
) -> std::result::Result<(), ReceiverGone> {
    let bytes = batch.as_ref().map_or(0, ShardBatch::bytes);
    batches.send(batch, bytes).await
}
