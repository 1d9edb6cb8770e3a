//! The place of an ordered scan.

use bytes::Bytes;
use proto::rpc::rows::RowBlock;

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
