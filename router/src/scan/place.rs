//! The position of an ordered scan, and the position of a shard scan.

use bytes::Bytes;
use proto::rpc::rows::RowBlock;
use tokio::time::Instant;

/// The position of an ordered scan.
pub(super) enum Place {
    /// After an entry; `None` is the beginning of the scan.
    Behind(Option<Bytes>),
    /// After the last row of a non-empty block. The entry of that row is read from the block only
    /// when it is needed, which is rare.
    BehindBlock(RowBlock),
}

impl Place {
    /// Returns the entry after which another scan continues; `None` at the beginning.
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
    /// The time at which the scan gives up if no node has served it. `None` means that the scan's
    /// time-out begins with the next attempt.
    pub(super) deadline: Option<Instant>,
}

impl ShardPosition {
    /// Moves the position after the rows of a block.
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

    /// Returns a copy of the position for another task, with the entry instead of the block.
    pub(super) fn handed_over(&self) -> Self {
        Self { reached: Place::Behind(self.reached.resume_after()), ..*self }
    }
}
