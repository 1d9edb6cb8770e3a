//! Entry points for fuzzers. Each function decodes arbitrary bytes as one of the formats on disk or
//! on the wire. It must not panic, and must not allocate much more memory than the bytes take.
//! `tests/src/fuzz` runs the functions over mutated files, and `fuzz/` runs them under libFuzzer.

mod mend;

pub use mend::mend_log;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use proto::Result;
use proto::env::{Env, OpenMode, sim};
use proto::model::cut::EpochMark;
use proto::model::ids::{BucketId, Epoch, LocalIndexId, Seqno, SliceNo};
use proto::rpc::mutation::KeyVersionsReader;

use crate::batch::{EpochBatch, VbucketMutations};
use crate::fragment;
use crate::fragment::cache::BlockCache;
use crate::fragment::filter::filter_hash;
use crate::fragment::memory_blobs::MemoryBlobs;
use crate::fragment::reader::Fragment;
use crate::log;
use crate::log::commit_log::CommitLog;
use crate::log::options::LogOptions;
use crate::log_record::Record;
use crate::manifest;
use crate::manifest::describe::CheckedManifest;
use crate::rows::block::Block;
use crate::rows::block_builder::BlockBuilder;
use crate::rows::row::RowVersion;
use crate::tables::table::Table;

const DIR: &str = "fuzz";

/// Decodes a block without checksum and compression.
pub fn block(data: &[u8]) {
    if let Ok(block) = Block::parse(data.into()) {
        read_rows(&block, data);
    }
}

/// Reads a fragment file, first unchanged, then with corrected checksums.
pub fn fragment(data: &[u8]) {
    let _ = read_fragment(data);
    let mut mended = data.to_vec();
    if fragment::mend(&mut mended).is_some() {
        let _ = read_fragment(&mended);
    }
}

/// Reads the only segment of a commit log, first unchanged, then with corrected checksums.
pub fn log(data: &[u8]) {
    read_log(data);
    let mut mended = data.to_vec();
    mend::mend_log(&mut mended);
    read_log(&mended);
}

fn read_log(data: &[u8]) {
    // The file name must match the header, or reading would stop there.
    let base = data.get(8..16).and_then(|base| base.try_into().ok()).map_or(0, u64::from_le_bytes);
    let name = format!("{base:020}.log");
    let Ok(env) = with_file(&name, data) else { return };
    let _ = log::describe(&env, &Path::new(DIR).join(name), &mut |_| ());
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().build() else { return };
    let _ = runtime.block_on(async {
        CommitLog::open(&env, Path::new(DIR), LogOptions::default(), &mut |_, _| Ok(()))
    });
}

/// Reads a manifest of a node or an index, first unchanged, then with a corrected checksum.
pub fn manifest(data: &[u8]) {
    read_manifest(data);
    let mut mended = data.to_vec();
    mend::mend_manifest(&mut mended);
    read_manifest(&mended);
}

fn read_manifest(data: &[u8]) {
    let dir = Path::new(DIR);
    let Ok(env) = with_file("any.manifest", data) else { return };
    let name = match manifest::describe(&env, &dir.join("any.manifest")) {
        Ok(CheckedManifest::Index { index, generation, .. }) => {
            manifest::index_path(dir, LocalIndexId { index, generation })
        }
        _ => dir.join("node.manifest"),
    };
    if env.fs.rename(&dir.join("any.manifest"), &name).is_ok() {
        let _ = manifest::read_all(&*env.fs, dir);
    }
}

/// Decodes the payload of a record of the commit log, with its key-versions.
pub fn log_record(data: &[u8]) {
    let Ok(record) = Record::decode(data) else { return };
    let encoded = record.encode().map(|bytes| Record::decode(&bytes).is_ok());
    assert_eq!(encoded, Ok(true), "a record that was read can be written");
    if let Record::Epoch(batch) = record {
        batch.pieces.iter().for_each(|piece| key_versions(&piece.body));
    }
}

/// Returns payloads of commit log records that contain the key-versions of `bodies`, as starting
/// points for a fuzzer.
pub fn samples_of_log_records(bodies: &[Bytes]) -> Vec<Vec<u8>> {
    let (epoch, parent, horizon) = (Epoch(8), Epoch(7), Epoch(3));
    let (cut, points) = (Arc::default(), Arc::default());
    let mark = EpochMark { bucket: BucketId(1), epoch, parent, cut, horizon, points };
    let piece = |body: &Bytes| VbucketMutations {
        body: body.clone(),
        base: Seqno(0),
        after: Seqno(1),
        to: Seqno(9),
    };
    let pieces = bodies.iter().map(piece).collect();
    let epoch = EpochBatch { mark: mark.clone(), pieces, commits: Vec::new() };
    let records = [Record::Epoch(epoch), Record::Truncate(mark, Epoch(7))];
    records.iter().filter_map(|record| record.encode().ok()).collect()
}

/// Returns blocks as starting points for a fuzzer: one row, rows of one length, and rows of many
/// lengths.
pub fn samples_of_blocks() -> Vec<Vec<u8>> {
    let block = |rows: u64, wide: bool| {
        let mut builder = BlockBuilder::default();
        for n in 0..rows {
            let (slice, epoch, tombstone) = (SliceNo(0), Epoch(n % 3 * 999), n % 9 == 4);
            let id = "x".repeat(if wide { n as usize } else { 4 }).into_bytes();
            let key = n.to_be_bytes();
            builder.push(&RowVersion { slice, key: &key, id: &id, value: b"v", epoch, tombstone });
        }
        builder.finish()
    };
    vec![block(1, false), block(40, false), block(40, true)]
}

/// Reads packed key-versions.
pub fn key_versions(data: &[u8]) {
    for key_versions in KeyVersionsReader::new(data).flatten() {
        for index in key_versions.indexes() {
            index.entries().for_each(drop);
        }
    }
}

/// Creates an environment whose simulated disk has one file.
fn with_file(name: &str, data: &[u8]) -> Result<Env> {
    let (env, _, _) = sim::world(0);
    env.fs.create_dir_all(Path::new(DIR))?;
    let file = env.fs.open(&Path::new(DIR).join(name), OpenMode::Create)?;
    file.write_all_at(data, 0)?;
    Ok(env)
}

/// Reads everything of a fragment file.
fn read_fragment(data: &[u8]) -> Result<()> {
    let env = with_file("fragment", data)?;
    let path = Path::new(DIR).join("fragment");
    let _ = fragment::describe(&env, &path, &mut |_| ());
    let (cache, blobs) = (Arc::new(BlockCache::new(1 << 16)), MemoryBlobs::default());
    blobs.insert(1, data.to_vec());
    let table = Table::from_fragment(Fragment::open(&blobs, 1, &cache)?);
    let bound = &data[..data.len().min(16)];
    let mut ahead = VecDeque::new();
    let _ = table.read_ahead(0..table.index.blocks(), &mut ahead);
    for section in 0..table.index.sections().len() {
        table.index.lower_bound(section, bound);
        table.index.lower_bound(section, &table.index.sections()[section].last);
    }
    for block in 0..table.index.blocks() {
        if let Ok(block) = table.block(block) {
            read_rows(&block, bound);
        }
    }
    if let Some(fragment) = table.fragment() {
        fragment.may_contain(filter_hash(bound));
    }
    Ok(())
}

/// Reads each row of a block with every accessor, and searches for `bound`.
fn read_rows(block: &Block, bound: &[u8]) {
    let bound = &bound[..bound.len().min(64)];
    block.lower_bound(bound);
    let mut out = Vec::new();
    for skip in [0, 3, 8, 100] {
        let heads = block.heads(skip);
        for row in 0..block.rows() {
            let _ = block.head(&heads, row);
        }
    }
    for row in 0..block.rows() {
        out.clear();
        block.put_entry(row, &mut out);
        block.put_key(row, &mut out);
        block.put_value(row, &mut out);
        let _ = (block.epoch(row), block.is_tombstone(row), block.compare(row, bound));
        let _ = (block.entry_len(row), block.key_len(row));
    }
}

#[cfg(test)]
mod tests;
