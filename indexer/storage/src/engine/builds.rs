//! The storage engine's functions for rebuilds of slices, and for comparisons of an index with its
//! source.

use std::sync::Arc;

use proto::Result;
use proto::model::cut::Cut;
use proto::model::ids::{BucketId, LocalIndexId, SliceNo};
use proto::model::index::IndexInfo;

use crate::build::compare::Comparison;
use crate::edit::edits::drop_index_with;
use crate::engine::storage_engine::StorageEngine;
use crate::index::local_index::LocalIndex;
use crate::maintain::flush::flush;
use crate::recover::load::wait_loaded;
use crate::rows::columns::Grouping;

impl StorageEngine {
    /// Begins, or restarts, a build of slices of an index that are absent on this node, while the
    /// index's other slices stay readable. From now on epochs are applied to the new slices, and
    /// [`crate::SliceStore::finish_build`] makes them readable.
    pub async fn begin_rebuild(
        &self,
        info: Arc<IndexInfo>,
        slices: &[SliceNo],
        grouping: Grouping,
    ) -> Result<()> {
        self.drop_rebuild(info.local_id()).await?;
        let index = Arc::new(LocalIndex::building(info, slices, grouping));
        self.context.state.insert_rebuild(index);
        Ok(())
    }

    /// Aborts the rebuild of an index, if there is one.
    pub async fn drop_rebuild(&self, index: LocalIndexId) -> Result<()> {
        let Some(index) = self.context.state.take_rebuild(index) else { return Ok(()) };
        self.run_on_index(index, |index, files| drop_index_with(index, files, || Ok(()))).await
    }

    /// Returns the indexes of which slices are being rebuilt, with their buckets.
    pub fn rebuilds(&self) -> Vec<(LocalIndexId, BucketId)> {
        let rebuilds = self.context.state.rebuilds();
        rebuilds.iter().map(|index| (index.info.local_id(), index.info.bucket)).collect()
    }

    /// Returns the slices of an index that are being rebuilt.
    pub fn rebuilt_slices(&self, index: LocalIndexId) -> Vec<SliceNo> {
        let rebuild = self.context.state.rebuild(index);
        rebuild.map(|index| index.slices()).unwrap_or_default()
    }

    /// Begins to compare a loaded index with a snapshot that ends at a cut.
    pub async fn compare(&self, index: LocalIndexId, cut: Cut) -> Result<Comparison> {
        let local = self.index(index)?;
        wait_loaded(&self.context, index).await?;
        local.check_readable()?;
        let context = Arc::clone(&self.context);
        let work = move || {
            flush(&local, &context.files)?;
            Comparison::begin(&local, cut)
        };
        self.context.env.blocking(work).await
    }
}
