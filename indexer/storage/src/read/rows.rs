//! Walks over visible entries.

use proto::Result;
use proto::rpc::rows::RowBlockBuilder;

/// A walk over the visible entries of a snapshot. It keeps the tables that it reads alive.
pub trait Rows: Send {
    /// Moves to the next entry; false behind the last.
    fn next(&mut self) -> Result<bool>;

    /// Current entry: encoded key parts, then the document id.
    fn entry(&self) -> &[u8];

    /// Encoded included values of the current entry; empty if they were not asked for.
    fn include(&self) -> &[u8];

    /// Packs entries until the block has `bytes_max` bytes or `rows_max` entries were added.
    /// Returns false behind the last entry.
    fn pack(
        &mut self,
        block: &mut RowBlockBuilder,
        bytes_max: usize,
        rows_max: u64,
    ) -> Result<bool> {
        for _ in 0..rows_max {
            if block.len() >= bytes_max {
                break;
            }
            if !self.next()? {
                return Ok(false);
            }
            block.push(self.entry(), self.include());
        }
        Ok(true)
    }
}
