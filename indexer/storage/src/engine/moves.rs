//! The storage engine's functions for moves of slices between nodes, and for slices of a new
//! generation.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use proto::Result;
use proto::model::cut::EpochMark;
use proto::model::ids::{Epoch, LocalIndexId, NodeId, SliceId};
use proto::model::index::IndexInfo;

use crate::edit::derive::{EstimatedSlice, SliceCut, derive_slices};
use crate::edit::export::{Export, export_slice};
use crate::edit::install::{InstallRefusal, install_slice};
use crate::edit::receive::ReceivedFiles;
use crate::engine::storage_engine::StorageEngine;
use crate::read::count::count_at;
use crate::read::slice_size::slice_split_point;
use crate::recover::load::wait_loaded;

impl StorageEngine {
    /// Sets the indexes from which slices are being moved away; compactions leave the files of
    /// these indexes alone.
    pub fn protect_files_of(&self, leaving: &BTreeSet<LocalIndexId>) {
        for index in self.context.state.indexes_and_rebuilds() {
            index.keeps_files.store(leaving.contains(&index.info.local_id()), Ordering::Relaxed);
        }
    }

    /// Prepares a slice to be sent to another node, with all epochs up to the newest applied one.
    pub async fn export_slice(&self, slice: SliceId) -> Result<Export> {
        let index = self.index(slice.local_index())?;
        wait_loaded(&self.context, slice.local_index()).await?;
        index.check_readable()?;
        let context = Arc::clone(&self.context);
        self.context.env.blocking(move || export_slice(&context, &index, slice.slice)).await
    }

    /// Creates an empty set of files to be received from one source node.
    pub fn begin_receiving(&self, source: NodeId) -> ReceivedFiles {
        ReceivedFiles::new(Arc::clone(&self.context), source)
    }

    /// Adds a received slice to its index at the epoch of `mark`. The epoch must be the newest one
    /// applied to the bucket, and no epoch may be applied during the call. `Unavailable` if the
    /// received files lack the epoch and more must be requested from the source.
    pub async fn install_slice(
        &self,
        received: ReceivedFiles,
        slice: SliceId,
        info: Arc<IndexInfo>,
        mark: &EpochMark,
    ) -> std::result::Result<(), Box<InstallRefusal>> {
        install_slice(&self.context, received, slice, info, mark).await
    }

    /// Makes all of this node's slices of a generation from the slices of another generation, at
    /// the epoch of `mark`, which must meet the conditions of [`Self::install_slice`]. No row is read or
    /// written. After an error the generation is absent. Returns the slices that
    /// [`Self::count_installed`] should count.
    pub async fn derive_slices(
        &self,
        from: LocalIndexId,
        info: Arc<IndexInfo>,
        cuts: Vec<SliceCut>,
        mark: &EpochMark,
    ) -> Result<Vec<EstimatedSlice>> {
        let from = self.index(from)?;
        wait_loaded(&self.context, from.info.local_id()).await?;
        from.check_readable()?;
        derive_slices(&self.context, from, info, cuts, mark).await
    }

    /// Returns the leading key part that divides a slice's entries into two halves of about equal
    /// size; `None` if no value divides the slice well.
    pub fn split_point(&self, slice: SliceId) -> Option<Vec<u8>> {
        let index = self.context.state.get(slice.local_index())?;
        slice_split_point(&index.version.load(), slice.slice)
    }

    /// Counts the entries of an added slice at an epoch. Until the count ends, the slice reports
    /// `reported` entries, the number that its source has reported.
    pub async fn count_installed(&self, slice: SliceId, epoch: Epoch, reported: u64) -> Result<()> {
        let index = self.index(slice.local_index())?;
        let work = move || -> Result<()> {
            let counted = count_at(index.version.load().entries(slice.slice), epoch)?;
            let mut writer = index.writer();
            if writer.uncounted.remove(&slice.slice) {
                *writer.entries.entry(slice.slice).or_default() += counted as i64 - reported as i64;
            }
            Ok(())
        };
        self.context.env.blocking(work).await
    }
}
