//! A snapshot of an index of the engine at one epoch.

use std::sync::Arc;

use proto::model::ids::{Epoch, SliceNo};
use proto::model::index::IndexInfo;
use proto::rpc::scan::KeyRange;
use proto::{Error, ErrorCode, Result};

use crate::read::cursor::AHEAD_BLOCKS_MAX;
use crate::read::index_version::IndexVersion;
use crate::read::rows::Rows;
use crate::read::snapshot::Snapshot;
use crate::read::source::Source;
use crate::read::visible_rows::VisibleRows;
use crate::tables::table::BlocksFrom;

/// Returns the error for an epoch below the oldest readable epoch of the requested slices.
pub fn too_old(epoch: Epoch, what: String, floor: Epoch) -> Error {
    let text =
        format!("epoch {epoch} is no longer readable: the oldest epoch of {what} is {floor}");
    Error::new(ErrorCode::SnapshotTooOld, text).with_hint("restart the scan or the transaction")
}

/// A snapshot of an index on this node at one epoch, for reads.
pub struct IndexSnapshot {
    info: Arc<IndexInfo>,
    epoch: Epoch,
    version: Arc<IndexVersion>,
    walk_bytes_max: usize,
    blocks: BlocksFrom,
}

impl IndexSnapshot {
    /// Creates a snapshot of `version`. The cursors of a walk use about `walk_bytes_max` bytes of
    /// blocks together, but each at least two blocks: the current one and one ahead.
    pub fn new(
        info: Arc<IndexInfo>,
        epoch: Epoch,
        version: Arc<IndexVersion>,
        walk_bytes_max: usize,
    ) -> Self {
        Self { info, epoch, version, walk_bytes_max, blocks: BlocksFrom::Anywhere }
    }

    /// Returns the number of blocks that each cursor may read ahead at once; `block_bytes` is the
    /// total size of one block of every cursor.
    fn ahead_max(&self, block_bytes: usize) -> u32 {
        ahead_max(self.walk_bytes_max, block_bytes)
    }
}

/// Returns the number of blocks that each cursor of a walk may read ahead at once, so that all
/// cursors together use about `walk_bytes_max` bytes. `block_bytes` is the total size of one block
/// of every cursor.
pub fn ahead_max(walk_bytes_max: usize, block_bytes: usize) -> u32 {
    let blocks = walk_bytes_max / block_bytes.max(1);
    u32::try_from(blocks).unwrap_or(u32::MAX).saturating_sub(1).clamp(1, AHEAD_BLOCKS_MAX)
}

impl Snapshot for IndexSnapshot {
    fn info(&self) -> &Arc<IndexInfo> {
        &self.info
    }

    fn has(&self, slice: SliceNo) -> bool {
        self.version.slices.contains_key(&slice)
    }

    fn without_waiting(&self) -> Arc<dyn Snapshot> {
        Arc::new(Self {
            info: Arc::clone(&self.info),
            version: Arc::clone(&self.version),
            blocks: BlocksFrom::Memory,
            ..*self
        })
    }

    fn walk_bytes(&self, slices: &[SliceNo], include: bool) -> usize {
        let fragments = slices.iter().filter_map(|slice| self.version.slices.get(slice));
        let blocks: usize =
            fragments.flat_map(|of| of.rows(include)).map(Source::block_bytes).sum();
        blocks * (1 + self.ahead_max(blocks) as usize)
    }

    fn cursors(&self, slices: &[SliceNo], include: bool) -> usize {
        let fragments = slices.iter().filter_map(|slice| self.version.slices.get(slice));
        let fragments: usize = fragments.map(|of| of.rows(include).len()).sum();
        fragments + slices.len() * self.version.runs.len()
    }

    fn rows(
        &self,
        slices: &[SliceNo],
        range: &KeyRange,
        reverse: bool,
        include: bool,
    ) -> Result<Box<dyn Rows>> {
        let mut sources = Vec::new();
        for slice in slices {
            let Some(fragments) = self.version.slices.get(slice) else {
                let message =
                    format!("slice {slice} of index {} is not on this node", self.info.local_id());
                return Err(Error::new(ErrorCode::SliceMoved, message));
            };
            if let Some(floor) = self.version.floor_of(*slice).filter(|floor| *floor > self.epoch) {
                let what = format!("slice {slice} of index {}", self.info.local_id());
                return Err(too_old(self.epoch, what, floor));
            }
            sources.extend(fragments.rows(include).iter().cloned());
            sources.extend(self.version.runs.iter().map(|run| Source::of_slice(run, *slice)));
        }
        sources.retain(|source| source.table.stats.oldest <= self.epoch);
        let ahead = self.ahead_max(sources.iter().map(Source::block_bytes).sum());
        let sources = sources
            .into_iter()
            .map(|source| source.restrict_to_range(range).with_blocks(self.blocks));
        let rows = VisibleRows::new(sources, self.epoch, reverse, include)?;
        Ok(Box::new(rows.with_ahead_max(ahead)))
    }
}
