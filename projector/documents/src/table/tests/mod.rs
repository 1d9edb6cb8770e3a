//! Tests of the document table. `histories` tests the main promise; the others test files, damage
//! and threads.

mod concurrency;
mod damage;
mod histories;
mod history;
mod model;
mod parts;
mod steps;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proto::Result;
use proto::env::FileSystem;
use proto::env::sim::SimFs;
use proto::model::ids::Seqno;
use proto::model::index::Compression;
use storage::fragment::{BlockCache, OpenFiles};

use super::*;

/// Number of vbuckets of the bucket.
const VBUCKETS: u16 = 4;

fn dir() -> PathBuf {
    PathBuf::from("/data/documents")
}

/// Returns options with small blocks, so that few documents fill many blocks.
fn small(fs: &Arc<dyn FileSystem>, block_bytes: usize) -> TableOptions {
    TableOptions {
        memtable_bytes: 16 << 10,
        cache: Arc::new(BlockCache::new(64 << 10)),
        open_files: OpenFiles::new(fs, 2),
        stop: Arc::default(),
        compression: Compression::Lz4,
        block_bytes,
    }
}

fn open(fs: &SimFs, manifest: &TableManifest) -> Result<DocumentTable> {
    let fs: Arc<dyn FileSystem> = Arc::new(fs.clone());
    DocumentTable::open(&fs, &dir(), VBUCKETS, small(&fs, 200), manifest.clone())
}

/// Flushes all versions; returns the new manifest.
fn flush(table: &DocumentTable, retention: &Retention) -> TableManifest {
    let change = table.prepare_flush(|| retention.clone()).unwrap().expect("something to flush");
    installed(change)
}

/// Merges all fragments; returns the new manifest.
fn merge(table: &DocumentTable, retention: &Retention) -> TableManifest {
    let change = table.prepare_full_merge(|| retention.clone()).unwrap().expect("a merge");
    installed(change)
}

fn installed(change: TableChange<'_>) -> TableManifest {
    let mut written = None;
    change
        .install(|manifest| {
            written = Some(manifest.clone());
            Ok(())
        })
        .unwrap();
    written.expect("the manifest was written")
}

/// Adds a document whose text contains its seqno.
fn put(table: &DocumentTable, place: u64, id: &str, seqno: u64, document: Option<&str>) {
    let document = document.map(str::as_bytes);
    table.apply(&[VersionRef { place, id, seqno: Seqno(seqno), document }]).unwrap();
}

/// The current document of an id, as text.
fn text(table: &DocumentTable, id: &str) -> Option<String> {
    let found = table.get(id).unwrap();
    found.map(|found| String::from_utf8(found.document.to_vec()).unwrap())
}

/// Returns the remaining documents of a walk.
fn rest_of(walk: &mut DocumentWalk) -> Vec<model::Row> {
    let mut all = Vec::new();
    loop {
        let chunk = walk.next_chunk(300).unwrap();
        if chunk.is_empty() {
            return all;
        }
        let rows = chunk.iter().map(|row| (row.id.to_owned(), row.seqno.0, row.document.to_vec()));
        all.extend(rows);
    }
}

/// The fragment files in a directory.
fn files(fs: &SimFs) -> Vec<PathBuf> {
    fs.list(Path::new("/data/documents/fragments")).unwrap()
}
