//! The engine's part in moves of slices.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use proto::Result;
use proto::model::cut::EpochMark;
use proto::model::ids::{Epoch, IndexId, NodeId, SliceId};
use proto::model::index::IndexInfo;

use crate::edit::export::{Export, export};
use crate::edit::install::{Refused, install};
use crate::edit::receive::Received;
use crate::engine::storage_engine::FragmentStore;
use crate::read::count::count_at;
use crate::recover::load::wait_loaded;

impl FragmentStore {
    /// The indexes of which slices are being given away: they are not compacted meanwhile.
    pub fn keep_files_of(&self, leaving: &BTreeSet<IndexId>) {
        for slot in self.inner.state.slots() {
            slot.keeps_files.store(leaving.contains(&slot.info.id), Ordering::Relaxed);
        }
    }

    /// A slice's fragments, with all epochs up to the newest one applied.
    pub async fn export(&self, slice: SliceId) -> Result<Export> {
        let slot = self.slot(slice.index, slice.generation)?;
        wait_loaded(&self.inner, slice.index).await?;
        slot.check_readable()?;
        let inner = Arc::clone(&self.inner);
        self.inner.env.blocking(move || export(&inner, &slot, slice.slice)).await
    }

    /// Room for the files of one source.
    pub fn receive(&self, source: NodeId) -> Received {
        Received::new(Arc::clone(&self.inner), source)
    }

    /// Shows a received slice from an epoch on, which must be the newest one applied to its bucket, and no
    /// epoch may be applied meanwhile. `Unavailable` where another round of the source is needed first.
    pub async fn install(
        &self,
        received: Received,
        slice: SliceId,
        info: Arc<IndexInfo>,
        mark: &EpochMark,
    ) -> std::result::Result<(), Box<Refused>> {
        install(&self.inner, received, slice, info, mark).await
    }

    /// Counts what an installed slice shows: until then the source's count is told.
    pub async fn count_installed(&self, slice: SliceId, epoch: Epoch, told: u64) -> Result<()> {
        let slot = self.slot(slice.index, slice.generation)?;
        let work = move || -> Result<()> {
            let counted = count_at(slot.visible.load().entries(slice.slice), epoch)?;
            let mut writer = slot.writer();
            if writer.uncounted.remove(&slice.slice) {
                *writer.entries.entry(slice.slice).or_default() += counted as i64 - told as i64;
            }
            Ok(())
        };
        self.inner.env.blocking(work).await
    }
}
