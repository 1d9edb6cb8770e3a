//! The bounded channel between the task of a shard scan and its reader.

use proto::env::Task;
#[cfg(test)]
use proto::flow::byte_channel;
use proto::flow::{ByteReceiver, ByteSender, ReceiverGone};
use proto::rpc::rows::RowBlock;
use proto::rpc::scan::ShardBatch;
use proto::{Error, Result};

/// The reader's end of a shard scan.
pub(crate) struct ShardStream {
    batches: ByteReceiver<Result<ShardBatch>>,
    _task: Task,
}

impl ShardStream {
    /// Reads the batches that a task sends. Dropping the stream ends the task.
    pub fn new(batches: ByteReceiver<Result<ShardBatch>>, task: Task) -> Self {
        Self { batches, _task: task }
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
        Self { batches, _task: proto::env::Env::real().spawn_request("shard-scan", send_all) }
    }

    /// Returns the next batch; `Done` is the last one.
    pub async fn next(&mut self) -> Result<ShardBatch> {
        match self.batches.recv().await {
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
