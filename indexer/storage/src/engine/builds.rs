//! The engine's part in rebuilds and comparisons.

use std::sync::Arc;

use proto::Result;
use proto::model::cut::Cut;
use proto::model::ids::{BucketId, Generation, IndexId, SliceNo};
use proto::model::index::IndexInfo;

use crate::build::compare::Comparison;
use crate::edit::edits::drop_with;
use crate::engine::storage_engine::FragmentStore;
use crate::index::local_index::Slot;
use crate::maintain::flush::flush;
use crate::recover::load::wait_loaded;
use crate::rows::columns::Grouping;

impl FragmentStore {
    /// Begins (or begins anew) to build slices of an index that are not here, beside those that are: from now on the
    /// epochs are applied to them, and they are shown at the end of the build ([`crate::SliceStore::finish_build`]).
    pub async fn begin_rebuild(
        &self,
        info: Arc<IndexInfo>,
        slices: &[SliceNo],
        grouping: Grouping,
    ) -> Result<()> {
        self.drop_rebuild(info.id).await?;
        let slot = Arc::new(Slot::begin(info, slices, grouping));
        self.inner.state.insert_rebuild(slot);
        Ok(())
    }

    /// Gives up the rebuild of an index, if there is one.
    pub async fn drop_rebuild(&self, index: IndexId) -> Result<()> {
        let Some(slot) = self.inner.state.take_rebuild(index) else { return Ok(()) };
        self.on_slot(slot, |slot, files| drop_with(slot, files, || Ok(()))).await
    }

    /// The indexes of which slices are being built anew, with their buckets.
    pub fn rebuilds(&self) -> Vec<(IndexId, BucketId)> {
        let rebuilds = self.inner.state.rebuilds();
        rebuilds.iter().map(|slot| (slot.info.id, slot.info.bucket)).collect()
    }

    /// The slices of an index that are being built anew.
    pub fn rebuilt_slices(&self, index: IndexId, generation: Generation) -> Vec<SliceNo> {
        let rebuild = self.inner.state.rebuild(index, generation);
        rebuild.map(|slot| slot.slices()).unwrap_or_default()
    }

    /// Begins to compare an index that is whole with a snapshot that ends at a cut.
    pub async fn compare(
        &self,
        index: IndexId,
        generation: Generation,
        cut: Cut,
    ) -> Result<Comparison> {
        let slot = self.slot(index, generation)?;
        wait_loaded(&self.inner, index).await?;
        slot.check_readable()?;
        let inner = Arc::clone(&self.inner);
        let work = move || {
            flush(&slot, &inner.files)?;
            Comparison::begin(&slot, cut)
        };
        self.inner.env.blocking(work).await
    }
}
