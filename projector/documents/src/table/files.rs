//! The files of a document table: opening them, writing a new one, removing those that nobody needs.

use std::path::Path;
use std::sync::Arc;

use proto::env::{FileSystem, create_dir_durably};
use proto::{Error, ErrorCode, Result};
use storage::fragment::{
    BlobStore, BlockCache, FileBlobs, Fragment, FragmentOptions, FragmentWriter,
};
use storage::layers::{Source, Table, TableBuilder};
use storage::layout;

use crate::table::document_table::DocumentTable;
use crate::table::manifest::{FragmentEntry, TableManifest};
use crate::table::options::TableOptions;
use crate::table::rewrite::Rewrite;
use crate::table::tables::FragmentTable;

const DAMAGE_HINT: &str =
    "`sextant verify` lists all damage; restore the directory of the projector from a backup";

/// Replaces the hint of an error about damage: that of a fragment is about indexes.
pub(super) fn with_hint(error: Error) -> Error {
    if error.code == ErrorCode::Corrupt { error.with_hint(DAMAGE_HINT) } else { error }
}

/// The opened files of a table: the store, the fragments of the manifest, and the id of the next file.
type Opened = (FileBlobs, Vec<Arc<FragmentTable>>, u64);

/// Opens the files that a manifest names, and removes all others.
pub(super) fn open(
    fs: &Arc<dyn FileSystem>,
    dir: &Path,
    options: &TableOptions,
    manifest: &TableManifest,
) -> Result<Opened> {
    manifest.check()?;
    let fragments = layout::fragment_dir(dir);
    let of_dir = |error: std::io::Error| {
        Error::from(error).context(format!("open the directory {}", fragments.display()))
    };
    create_dir_durably(&**fs, &fragments).map_err(of_dir)?;
    let blobs = FileBlobs::with_pool(fs, dir, &options.open_files);
    let listed = blobs.list().map_err(of_dir)?;
    let open = |entry: &FragmentEntry| {
        if !listed.contains(&entry.file) {
            let what = format!("fragment {} is missing", blobs.name(entry.file));
            return Err(with_hint(Error::new(ErrorCode::Corrupt, what)));
        }
        Ok(Arc::new(FragmentTable {
            table: Arc::new(open_fragment(&blobs, entry, &options.cache)?),
            entry: entry.clone(),
        }))
    };
    let fragments = manifest.fragments.iter().map(open).collect::<Result<Vec<_>>>()?;
    let is_named = |file: u64| manifest.fragments.iter().any(|entry| entry.file == file);
    for file in listed.iter().copied().filter(|file| !is_named(*file)) {
        delete(&blobs, file)?;
    }
    let behind = listed.last().map_or(0, |last| last.saturating_add(1));
    Ok((blobs, fragments, behind.max(manifest.next_file)))
}

/// Opens a fragment and checks that it is the one that the manifest means.
pub(super) fn open_fragment(
    blobs: &dyn BlobStore,
    entry: &FragmentEntry,
    cache: &Arc<BlockCache>,
) -> Result<Table> {
    let open = Fragment::open(blobs, entry.file, cache).map_err(with_hint)?;
    let (stats, fragment) = (&open.stats, &open.fragment);
    let found = (fragment.written_id(), stats.rows, stats.oldest.0, stats.newest.0);
    if found != (entry.file, entry.versions, entry.first, entry.last) {
        let what = format!(
            "open fragment {}: it is not the file that the manifest means: \
             it has id, versions, first and last place {found:?}, not {:?}",
            blobs.name(entry.file),
            (entry.file, entry.versions, entry.first, entry.last)
        );
        return Err(with_hint(Error::new(ErrorCode::Corrupt, what)));
    }
    Ok(Table::from_fragment(open))
}

/// Removes a file. Its readers can go on. A missing file is no error.
fn delete(blobs: &FileBlobs, file: u64) -> Result<()> {
    match blobs.delete(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        deleted => deleted
            .map_err(|error| Error::from(error).context(format!("delete {}", blobs.name(file)))),
    }
}

/// True if at least half of the blocks of some fragments are cached. The new blocks then replace them in the cache. Blocks in
/// memory do not count: a flush leaves the cache to the blocks that somebody reads.
fn is_in_cache(sources: &[Source]) -> bool {
    let (mut cached, mut blocks) = (0, 0);
    for table in sources.iter().map(|source| &source.table) {
        cached += table.fragment().map_or(0, |file| file.cached_blocks());
        blocks += table.index.blocks();
    }
    cached > 0 && 2 * cached >= blocks
}

impl DocumentTable {
    /// Removes files that no manifest names. If that fails, the next opening removes them.
    pub(super) fn discard(&self, files: impl IntoIterator<Item = u64>) {
        for file in files {
            if let Err(error) = delete(&self.blobs, file) {
                tracing::warn!(%error, "deleting a fragment of documents failed");
            }
        }
    }

    /// Writes a durable fragment with the rows of some sources, newest source first, of at most
    /// `documents_max` documents; `None` if no row is left.
    pub(super) fn write_fragment(
        &self,
        (sources, documents_max): (Vec<Source>, u64),
        rewrite: &Rewrite<'_>,
    ) -> Result<Option<Arc<FragmentTable>>> {
        let file = {
            let mut state = self.state.write();
            state.next_file += 1;
            state.next_file - 1
        };
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
        let options = FragmentOptions { compression, filter_rows, columns: 0 };
        let writer = FragmentWriter::create(&self.blobs, file, cache, &options)?;
        let is_warm = is_in_cache(&sources);
        let mut out = TableBuilder::new(writer).with_block_bytes(*block_bytes);
        if is_warm {
            out.sink_mut().set_warm();
        }
        let documents = rewrite.run(sources, &mut out)?;
        let Some((writer, stats, index)) = out.finish_parts()? else { return Ok(None) };
        let open = writer.finish(stats, index)?;
        self.blobs.sync_names().map_err(|error| {
            let what = format!("sync the directory {}", self.blobs.store_name());
            Error::from(error).context(what)
        })?;
        let entry = FragmentEntry {
            file,
            first: open.stats.oldest.0,
            last: open.stats.newest.0,
            versions: open.stats.rows,
            documents,
            bytes: open.fragment.file_bytes(),
            cleaned: rewrite.dead.newest(),
        };
        let table = Arc::new(Table::from_fragment(open));
        Ok(Some(Arc::new(FragmentTable { entry, table })))
    }
}
