//! Opens the files of a document table, and removes files that are not needed.

use std::path::Path;
use std::sync::Arc;

use proto::env::{FileSystem, create_dir_durably};
use proto::{Error, ErrorCode, Result};
use storage::fragment::{BlobStore, BlockCache, FileBlobs, Fragment};
use storage::layers::Table;
use storage::layout;

use crate::table::manifest::{FragmentEntry, TableManifest};
use crate::table::options::TableOptions;
use crate::table::tables::FragmentTable;

const DAMAGE_HINT: &str =
    "`sextant verify` lists all damage; restore the directory of the projector from a backup";

/// Replaces the hint in an error about damage: the storage engine's hint is about indexes, and
/// not about documents.
pub(super) fn with_hint(error: Error) -> Error {
    if error.code == ErrorCode::Corrupt { error.with_hint(DAMAGE_HINT) } else { error }
}

/// The opened files of a table: the file store, the fragments of the manifest, and the id of the
/// next file.
type OpenedFiles = (FileBlobs, Vec<Arc<FragmentTable>>, u64);

/// Opens the files that a manifest names, and removes all others.
pub(super) fn open(
    fs: &Arc<dyn FileSystem>,
    dir: &Path,
    options: &TableOptions,
    manifest: &TableManifest,
) -> Result<OpenedFiles> {
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

/// Opens a fragment. An error if the file is not the fragment that the manifest names.
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

/// Removes a file. Readers that still use it can continue. A missing file is not an error.
pub(super) fn delete(blobs: &FileBlobs, file: u64) -> Result<()> {
    match blobs.delete(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        deleted => deleted
            .map_err(|error| Error::from(error).context(format!("delete {}", blobs.name(file)))),
    }
}
