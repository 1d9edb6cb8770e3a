//! The place of an ordered scan, and the position of a shard scan.

use bytes::Bytes;
use proto::rpc::rows::RowBlock;
use tokio::time::Instant;

/// The place of an ordered scan.
pub(super) enum Place {
    /// Behind an entry, or at the beginning.
    Behind(Option<Bytes>),
    /// Behind the last row of a block, which has rows. To find that row costs a pass over the block, and is needed seldom.
    BehindBlock(RowBlock),
}

impl Place {
    /// The entry after which another scan goes on; `None` at the beginning.
    pub fn resume_after(&self) -> Option<Bytes> {
        match self {
            Self::Behind(entry) => entry.clone(),
            Self::BehindBlock(block) => {
                block.iter().last().map(|row| Bytes::copy_from_slice(row.entry))
            }
        }
    }
}

/// The position of a shard scan.
pub(super) struct ShardPosition {
    pub(super) reached: Place,
    pub(super) rows_left: Option<u64>,
    /// When the scan gives up if no node has served it; `None`: its time-out after the next attempt begins.
    pub(super) deadline: Option<Instant>,
}

impl ShardPosition {
    /// Moves past the rows of a block.
    pub(super) fn advance(&mut self, block: &RowBlock) {
        if block.rows > 0 {
            self.reached = Place::BehindBlock(block.clone());
        }
        if let Some(left) = &mut self.rows_left {
            *left = left.saturating_sub(u64::from(block.rows));
        }
    }

    /// True if this task has received a row.
    pub(super) fn has_rows(&self) -> bool {
        matches!(self.reached, Place::BehindBlock(_))
    }

    /// A copy of the position for another task, without the block.
    pub(super) fn handed_over(&self) -> Self {
        Self { reached: Place::Behind(self.reached.resume_after()), ..*self }
    }
}
