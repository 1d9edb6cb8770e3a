//! The batches of a shard scan on their way from the task that drives it to its reader.

use proto::env::Task;
#[cfg(test)]
use proto::flow::byte_channel;
use proto::flow::{ByteReceiver, ByteSender, ReceiverGone};
use proto::rpc::rows::RowBlock;
use proto::rpc::scan::ShardBatch;
use proto::{Error, Result};

/// What a shard may be ahead of its reader: two batches of full length.
pub(crate) const AHEAD_BYTES: usize = 128 << 10;

/// The batches of a shard scan.
pub(crate) struct ShardStream {
    batches: ByteReceiver<Result<ShardBatch>>,
    _task: Task,
}

impl ShardStream {
    /// The batches that a task sends; the task ends with the stream.
    pub fn new(batches: ByteReceiver<Result<ShardBatch>>, task: Task) -> Self {
        Self { batches, _task: task }
    }

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

/// Where a shard scan's batches go.
pub(super) type Batches = ByteSender<Result<ShardBatch>>;

/// Waits for room and sends; an error where nobody reads any more.
pub(super) async fn send(
    batches: &Batches,
    batch: Result<ShardBatch>,
) -> std::result::Result<(), ReceiverGone> {
    let bytes = batch.as_ref().map_or(0, ShardBatch::bytes);
    batches.send(batch, bytes).await
}
