//! Checks the files of a document table, for `sextant verify`. The check changes no file.
//!
//! Every block of every fragment is read, with its checksum. The rows must be sorted, and agree
//! with the statistics, the sparse index and the filter of the fragment
//! (`storage::fragment::describe`). Their places must match the manifest, their ids must be text,
//! and their values must begin with a seqno.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proto::Result;
use proto::env::FileSystem;
use storage::fragment::{BlobStore, BlockCache, FileBlobs, OpenFiles, describe_in};
use storage::layers::{Cursor, Source};
use storage::layout;
use storage::verify::Remark;

use crate::table::files::open_fragment;
use crate::table::manifest::{FragmentEntry, TableManifest};
use crate::table::version::{RowView, SLICE, id_text};

/// Checks the files of a table. Returns a remark for each damaged or missing file.
pub fn verify(fs: &Arc<dyn FileSystem>, dir: &Path, manifest: &TableManifest) -> Vec<Remark> {
    let mut findings = Vec::new();
    if let Err(error) = manifest.check() {
        findings.push(Remark { path: dir.to_path_buf(), message: error.message });
    }
    let blobs = FileBlobs::with_pool(fs, dir, &OpenFiles::new(fs, 1));
    for entry in &manifest.fragments {
        let path = layout::fragment_path(dir, entry.file);
        let finding = |message| Remark { path: path.clone(), message };
        match describe_in(&**fs, &path, &mut |_| ()) {
            Err(error) => findings.push(finding(error.message)),
            Ok(info) if !info.findings.is_empty() => {
                findings.extend(info.findings.into_iter().map(finding));
            }
            Ok(_) => {
                let checked = check_rows(&blobs, entry);
                findings.extend(checked.err().map(|error| finding(error.message)));
            }
        }
    }
    findings
}

/// Returns the fragments in a directory that a manifest does not name; the next opening removes
/// them.
pub fn unnamed_fragments(
    fs: &dyn FileSystem,
    dir: &Path,
    manifest: &TableManifest,
) -> Vec<PathBuf> {
    // Without the directory, each fragment of the manifest is a finding.
    let mut found = fs.list(&layout::fragment_dir(dir)).unwrap_or_default();
    let is_named = |path: &Path| {
        let file = layout::fragment_id(path);
        manifest.fragments.iter().any(|entry| Some(entry.file) == file)
    };
    found.retain(|path| !is_named(path));
    found
}

/// Reads all versions of a fragment; an error if one is invalid.
fn check_rows(blobs: &dyn BlobStore, entry: &FragmentEntry) -> Result<()> {
    let table = Arc::new(open_fragment(blobs, entry, &Arc::new(BlockCache::new(0)))?);
    let Some(mut cursor) = Cursor::open(Source::of_slice(&table, SLICE), false)? else {
        return Ok(());
    };
    let mut id = Vec::new();
    loop {
        let (block, row) = cursor.block_and_row();
        id.clear();
        block.put_entry(row, &mut id);
        id_text(&id)?;
        RowView::of(block, row)?;
        if !cursor.advance()? {
            return Ok(());
        }
    }
}
