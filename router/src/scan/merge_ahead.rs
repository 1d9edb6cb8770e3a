//! The merge of a long scan in a separate task, ahead of its reader, so that rows are merged on
//! one core while earlier rows are printed on another. At most a few blocks wait for the reader.
//!
//! The task begins after the first blocks, so a short scan has no task.

use proto::env::{Env, Task};
use proto::flow::{ByteReceiver, byte_channel};
use proto::rpc::rows::RowBlock;
use proto::{Error, Result};

use super::gather::{BLOCK_BYTES, ShardMerge};

/// Maximum number of bytes of merged blocks that wait for the reader.
pub(super) const AHEAD_BYTES: usize = 2 * BLOCK_BYTES;

/// A merge that runs in a task. Dropping this value ends the task.
pub(super) struct MergeAhead {
    /// The merged blocks from the task; `None` after the last one.
    blocks: ByteReceiver<Result<Option<RowBlock>>>,
    _task: Task,
}

impl MergeAhead {
    /// Continues a merge in a task.
    pub fn begin(mut gather: ShardMerge, env: &Env) -> Self {
        let (sender, blocks) = byte_channel(AHEAD_BYTES);
        let task = env.spawn_request("merge-ahead", async move {
            loop {
                let next = gather.next().await;
                let is_last = !matches!(next, Ok(Some(_)));
                let bytes = next.iter().flatten().map(|block| block.data.len()).sum();
                if sender.send(next, bytes).await.is_err() || is_last {
                    return;
                }
            }
        });
        Self { blocks, _task: task }
    }

    /// Returns the next rows in order; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<RowBlock>> {
        match self.blocks.recv().await {
            Some(next) => next,
            None => Err(Error::unavailable("the task that merges a scan was cancelled")),
        }
    }
}
