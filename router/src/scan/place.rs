//! The position of an ordered scan, and the position of a shard scan.

use bytes::Bytes;
use proto::rpc::rows::RowBlock;
use tokio::time::Instant;

/// The position of an ordered scan: the entry after which it continues.
pub(super) enum ScanPosition {
    /// After this entry; `None` is the beginning of the scan.
    Behind(Option<Bytes>),
    /// After the last row of this block, which is not empty. The entry of the row is read from the
    /// block only when it is needed, which is rare.
    BehindBlock(RowBlock),
}

impl ScanPosition {
    /// Returns the entry after which the scan continues; `None` at the beginning.
    pub fn resume_after(&self) -> Option<Bytes> {
        match self {
            Self::Behind(entry) => entry.clone(),
            Self::BehindBlock(block) => {
                block.iter().last().map(|row| Bytes::copy_from_slice(row.entry))
            }
        }
    }
}

/// The position of a shard scan, with the rows and the time that it has left.
pub(super) struct ShardPosition {
    pub(super) reached: ScanPosition,
    pub(super) rows_left: Option<u64>,
    /// The time at which the scan gives up if no node serves it. `None` means that the time-out
    /// begins with the next attempt.
    pub(super) deadline: Option<Instant>,
}

impl ShardPosition {
    /// Moves the position after the rows of a block.
    pub(super) fn advance(&mut self, block: &RowBlock) {
        if block.rows > 0 {
            self.reached = ScanPosition::BehindBlock(block.clone());
        }
        if let Some(left) = &mut self.rows_left {
            *left = left.saturating_sub(u64::from(block.rows));
        }
    }

    /// Returns true if a row was received since the position was created or handed over.
    pub(super) fn has_rows(&self) -> bool {
        matches!(self.reached, ScanPosition::BehindBlock(_))
    }

    /// Returns a copy of the position for another task. The copy has the last entry instead of the
    /// block with it.
    pub(super) fn for_other_task(&self) -> Self {
        Self { reached: ScanPosition::Behind(self.reached.resume_after()), ..*self }
    }
}
