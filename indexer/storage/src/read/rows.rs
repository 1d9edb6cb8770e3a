//! Walks over the entries that an epoch shows.

use proto::Result;
use proto::rpc::rows::RowBlockBuilder;

/// Walks the visible entries of a snapshot. It keeps alive what it reads from.
pub trait Rows: Send {
    /// Goes to the next entry; false behind the last.
    fn next(&mut self) -> Result<bool>;

    /// Encoded key parts of the entry that [`Self::next`] found, then its document id.
    fn entry(&self) -> &[u8];

    /// Its encoded included values; empty if they were not asked for.
    fn include(&self) -> &[u8];

    /// Packs entries until the block has `bytes_max` bytes or there are `rows_max` more of them; false
    /// when there are none left.
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
