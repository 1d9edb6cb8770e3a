//! Writes new fragments of a document table, and removes files that are not needed.

use std::sync::Arc;

use proto::{Error, Result};
use storage::fragment::{BlobStore, FragmentOptions, FragmentWriter};
use storage::layers::{Source, TableBuilder};

use crate::table::document_table::DocumentTable;
use crate::table::files::{delete, with_hint};
use crate::table::options::TableOptions;
use crate::table::rewrite::Rewrite;
use crate::table::tables::FragmentTable;

/// Returns true if at least half of the blocks of these fragments are in the block cache. Then
/// the new blocks replace them in the cache. Tables in memory are ignored, so that a flush does
/// not evict blocks that are being read.
fn is_in_cache(sources: &[Source]) -> bool {
    let (mut cached, mut blocks) = (0, 0);
    for table in sources.iter().map(|source| &source.table) {
        cached += table.fragment().map_or(0, |file| file.cached_blocks());
        blocks += table.index.blocks();
    }
    cached > 0 && 2 * cached >= blocks
}

impl DocumentTable {
    /// Removes files that no manifest names. If a removal fails, the next opening removes the
    /// file.
    pub fn discard(&self, files: impl IntoIterator<Item = u64>) {
        for file in files {
            if let Err(error) = delete(&self.blobs, file) {
                tracing::warn!(%error, "deleting a fragment of documents failed");
            }
        }
    }

    /// Returns the id for a new file.
    pub(super) fn next_file(&self) -> u64 {
        let mut state = self.state.write();
        state.next_file += 1;
        state.next_file - 1
    }

    /// Makes the names of all files in the directory durable.
    pub(super) fn sync_names(&self) -> Result<()> {
        self.blobs.sync_names().map_err(|error| {
            let what = format!("sync the directory {}", self.blobs.store_name());
            Error::from(error).context(what)
        })
    }

    /// Writes the rows of `sources` to a durable fragment; `None` if no rows are left. The
    /// sources are ordered from the newest to the oldest, and have at most `documents_max`
    /// documents.
    pub(super) fn write_fragment(
        &self,
        (sources, documents_max): (Vec<Source>, u64),
        rewrite: &Rewrite<'_>,
    ) -> Result<Option<Arc<FragmentTable>>> {
        let file = self.next_file();
        let written = self.write_file(file, (sources, documents_max), rewrite).map_err(with_hint);
        if !matches!(written, Ok(Some(_))) {
            self.discard([file]);
        }
        written
    }

    fn write_file(
        &self,
        file: u64,
        (sources, documents_max): (Vec<Source>, u64),
        rewrite: &Rewrite<'_>,
    ) -> Result<Option<Arc<FragmentTable>>> {
        let TableOptions { compression, cache, block_bytes, .. } = &self.options;
        let (compression, filter_rows) = (*compression, Some(documents_max));
        let options = FragmentOptions { compression, filter_rows, ..FragmentOptions::default() };
        let writer = FragmentWriter::create(&self.blobs, file, cache, &options)?;
        let is_warm = is_in_cache(&sources);
        let mut out = TableBuilder::new(writer).with_block_bytes(*block_bytes);
        if is_warm {
            out.sink_mut().cache_new_blocks();
        }
        let documents = rewrite.run(sources, &mut out)?;
        let Some((writer, stats, index)) = out.finish_parts()? else { return Ok(None) };
        let open = writer.finish(stats, index)?;
        self.sync_names()?;
        let cleaned = rewrite.dead.newest();
        Ok(Some(Arc::new(FragmentTable::new((file, documents, cleaned), open))))
    }
}
