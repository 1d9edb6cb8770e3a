//! Tests of fragments: rows are read back from the file or the cache, and damage is reported.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use proto::ErrorCode;
use proto::env::FileSystem;
use proto::env::real::RealFs;
use proto::env::sim::SimFs;
use proto::model::ids::{Epoch, SliceNo};

use super::memory_blobs::MemoryBlobs;
use super::*;
use crate::layout;
use crate::rows::block::Block;
use crate::rows::columns::Columns;
use crate::rows::row::RowVersion;
use crate::rows::table_builder::TableBuilder;
use crate::tables::table::Table;

/// Slice, key, id, value, epoch, tombstone.
pub(super) type Row = (u16, Vec<u8>, Vec<u8>, Vec<u8>, u64, bool);

pub(super) fn rows(count: u64) -> Vec<Row> {
    let row = |n: u64| -> Row {
        let key = (n * 0x9e37).to_be_bytes().to_vec();
        let id = format!("user{n:012}").into_bytes();
        let value = format!("{}: a value that repeats, and it repeats", n % 7).into_bytes();
        ((n * 3 / count) as u16, key, id, value, 40 + n % 3, n % 11 == 5)
    };
    (0..count).map(row).collect()
}

pub(super) fn disk(seed: u64, dir: &Path) -> SimFs {
    let fs = SimFs::new(seed);
    fs.create_dir_all(&layout::fragment_dir(dir)).unwrap();
    fs
}

pub(super) fn write(
    fs: &(impl FileSystem + Clone),
    id: u64,
    cache: &Arc<BlockCache>,
    options: &FragmentOptions,
    rows: &[Row],
) -> Option<Table> {
    let writer = FragmentWriter::create(&blobs(fs), id, cache, options).unwrap();
    finish(fill(writer, rows)).unwrap()
}

fn fill(writer: FragmentWriter, rows: &[Row]) -> TableBuilder<FragmentWriter> {
    let mut builder = TableBuilder::new(writer);
    for (slice, key, id, value, epoch, tombstone) in rows {
        let (slice, epoch, tombstone) = (SliceNo(*slice), Epoch(*epoch), *tombstone);
        builder.push(&RowVersion { slice, key, id, value, epoch, tombstone }).unwrap();
    }
    builder
}

/// The blobs of a simulated disk.
pub(super) fn blobs(fs: &(impl FileSystem + Clone)) -> FileBlobs {
    let fs: Arc<dyn FileSystem> = Arc::new(fs.clone());
    FileBlobs::new(&fs, Path::new("data"), 8)
}

/// Ends a fragment; `None` if it has no rows.
pub(super) fn finish(builder: TableBuilder<FragmentWriter>) -> proto::Result<Option<Table>> {
    let Some((writer, stats, index)) = builder.finish_parts()? else { return Ok(None) };
    Ok(Some(Table::from_fragment(writer.finish(stats, index)?)))
}

/// Opens a fragment.
fn open(fs: &(impl FileSystem + Clone), id: u64, cache: &Arc<BlockCache>) -> proto::Result<Table> {
    Fragment::open(&blobs(fs), id, cache).map(Table::from_fragment)
}

/// Rows of a table, read block by block.
pub(super) fn read(table: &Table) -> Vec<Row> {
    let mut rows = Vec::new();
    for section in table.index.sections() {
        for block in section.first_block..section.end_block {
            let block = table.block(block).unwrap();
            for row in 0..block.rows() {
                let (mut key, mut entry, mut value) = (Vec::new(), Vec::new(), Vec::new());
                block.put_key(row, &mut key);
                block.put_entry(row, &mut entry);
                block.put_value(row, &mut value);
                let id = entry.split_off(key.len());
                let (epoch, tombstone) = (block.epoch(row).0, block.is_tombstone(row));
                rows.push((section.slice.0, key, id, value, epoch, tombstone));
            }
        }
    }
    rows
}

fn cache(bytes: u64) -> Arc<BlockCache> {
    Arc::new(BlockCache::new(bytes))
}

#[test]
fn a_fragment_returns_its_rows_at_once_and_after_reopening() {
    let rows = rows(3000);
    let mut lengths = Vec::new();
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        let fs = disk(1, Path::new("data"));
        let options = FragmentOptions {
            compression,
            filter_rows: Some(3000),
            columns: Columns::ENTRY.0,
            ..FragmentOptions::default()
        };
        let written = write(&fs, 9, &cache(1 << 20), &options, &rows).expect("rows");
        let opened = open(&fs, 9, &cache(1 << 20)).unwrap();
        assert_eq!((&written.stats, &written.index), (&opened.stats, &opened.index));
        assert_eq!((written.bytes(), read(&written)), (opened.bytes(), rows.clone()));
        assert_eq!(read(&opened), rows);
        let fragment = opened.fragment().expect("a file");
        assert_eq!((fragment.id(), fragment.columns()), (9, Columns::ENTRY.0));
        assert!(rows.iter().all(|row| fragment.may_contain(filter_hash(&row.1))));
        assert!(!fragment.may_contain(filter_hash(b"nobody")));
        lengths.push(fragment.file_bytes());
    }
    let [plain, lz4, zstd] = lengths[..] else { panic!("three of them") };
    assert!(lz4 < plain * 2 / 3 && zstd < lz4, "{plain}, LZ4 {lz4}, zstd {zstd}");
}

/// Rows of one version each, all of an epoch.
pub(super) fn rows_of_one_epoch(epoch: u64, count: u64) -> Vec<Row> {
    let mut all: Vec<Row> =
        rows(count).into_iter().map(|row| (row.0, row.1, row.2, row.3, epoch, row.5)).collect();
    all.dedup_by(|next, row| (next.0, &next.1, &next.2) == (row.0, &row.1, &row.2));
    all
}

/// Writes rows of epoch zero, and stamps them.
pub(super) fn write_stamped(
    fs: &(impl FileSystem + Clone),
    id: u64,
    cache: &Arc<BlockCache>,
    options: &FragmentOptions,
    rows: &[Row],
    epoch: u64,
) -> Table {
    let writer = FragmentWriter::create(&blobs(fs), id, cache, options).unwrap();
    let (mut writer, stats, index) = fill(writer, rows).finish_parts().unwrap().expect("rows");
    writer.sync_blocks().unwrap();
    Table::from_fragment(writer.finish_stamped(Epoch(epoch), stats, index).unwrap())
}

#[test]
fn all_rows_of_a_stamped_fragment_have_the_epoch_with_which_it_was_finished() {
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        let fs = disk(1, Path::new("data"));
        let is_stamped = true;
        let options = FragmentOptions { compression, is_stamped, ..FragmentOptions::default() };
        let written =
            write_stamped(&fs, 9, &cache(1 << 20), &options, &rows_of_one_epoch(0, 3000), 77);
        let opened = open(&fs, 9, &cache(1 << 20)).unwrap();
        assert_eq!((written.stats.oldest, opened.stats.newest), (Epoch(77), Epoch(77)));
        let expected = rows_of_one_epoch(77, 3000);
        assert_eq!(read(&written), expected);
        assert_eq!(read(&opened), expected, "from the file");
        assert_eq!(read(&opened), expected, "from the cache");
        let mut ahead = VecDeque::new();
        opened.read_ahead(0..opened.index.blocks(), &mut ahead).unwrap();
        assert!(ahead.iter().all(|block| block.epoch(0) == Epoch(77)));
        // A compaction may take a whole block over.
        let again: Vec<_> =
            ahead.iter().map(|block| Block::parse(block.bytes().into()).unwrap()).collect();
        assert!(again.iter().all(|block| block.epoch(block.rows() - 1) == Epoch(77)));
        let path = layout::fragment_path(Path::new("data"), 9);
        let described = describe_in(&fs, &path, &mut |_| ()).unwrap();
        assert_eq!(described.findings, Vec::<String>::new());
    }
}

#[test]
fn neighbouring_blocks_come_with_one_read_and_cached_blocks_with_none() {
    let fs = disk(2, Path::new("data"));
    let table = write(&fs, 1, &cache(8 << 20), &FragmentOptions::default(), &rows(3000)).unwrap();
    let blocks = table.index.blocks();
    assert!(blocks > 10);
    let before = fs.operations();
    let mut ahead = VecDeque::new();
    table.read_ahead(3..blocks, &mut ahead).unwrap();
    assert_eq!((fs.operations() - before, ahead.len() as u32), (1, blocks - 3));
    for (block, ahead) in (3..blocks).zip(&ahead) {
        assert_eq!(table.block(block).unwrap().bytes(), ahead.bytes());
    }
    let before = fs.operations();
    for block in 3..blocks {
        table.block(block).unwrap();
    }
    assert_eq!(fs.operations(), before);
    table.read_ahead(5..5, &mut ahead).unwrap();
    assert_eq!(fs.operations(), before);
}

#[test]
fn the_cache_keeps_within_its_bound_and_all_is_read_without_one() {
    for capacity in [0, 10_000, 100_000] {
        let (fs, cache) = (disk(3, Path::new("data")), cache(capacity));
        let table = write(&fs, 1, &cache, &FragmentOptions::default(), &rows(5000)).unwrap();
        assert_eq!(read(&table), rows(5000));
        assert_eq!(read(&table), rows(5000));
        let used = cache.memory_bytes();
        assert!(used <= capacity && used >= capacity / 2, "{used} of {capacity}");
    }
}

#[test]
fn blocks_of_two_fragments_are_distinguished() {
    let (fs, cache) = (disk(3, Path::new("data")), cache(1 << 20));
    let (one, two) = (rows(500), rows(700));
    let options = FragmentOptions::default();
    let first = write(&fs, 1, &cache, &options, &one).unwrap();
    let second = write(&fs, 2, &cache, &options, &two).unwrap();
    assert_eq!((read(&first), read(&second)), (one, two));
}

#[test]
fn a_table_without_rows_makes_no_fragment() {
    let fs = disk(4, Path::new("data"));
    assert!(write(&fs, 1, &cache(0), &FragmentOptions::default(), &[]).is_none());
}

#[test]
fn readers_go_on_when_the_file_is_removed() {
    let data = Path::new("data");
    let path = layout::fragment_path(data, 1);
    let sim = disk(5, data);
    let table = write(&sim, 1, &cache(0), &FragmentOptions::default(), &rows(500)).unwrap();
    sim.remove_file(&path).unwrap();
    assert_eq!(read(&table), rows(500));

    let dir = tempfile::tempdir().unwrap();
    RealFs.create_dir_all(&layout::fragment_dir(dir.path())).unwrap();
    let options = FragmentOptions::default();
    let real: Arc<dyn FileSystem> = Arc::new(RealFs);
    let file_blobs = FileBlobs::new(&real, dir.path(), 8);
    let writer = FragmentWriter::create(&file_blobs, 1, &cache(0), &options).unwrap();
    let mut builder = TableBuilder::new(writer);
    let (slice, key, epoch) = (SliceNo(0), b"key", Epoch(1));
    let row = RowVersion { slice, key, id: b"id", value: b"", epoch, tombstone: false };
    builder.push(&row).unwrap();
    let table = finish(builder).unwrap().unwrap();
    RealFs.remove_file(&layout::fragment_path(dir.path(), 1)).unwrap();
    assert_eq!(read(&table).len(), 1);
}

#[test]
fn a_fragment_works_in_memory() {
    let (blobs, cache, rows) = (MemoryBlobs::default(), cache(1 << 20), rows(2000));
    let options = FragmentOptions { filter_rows: Some(2000), ..FragmentOptions::default() };
    let writer = FragmentWriter::create(&blobs, 4, &cache, &options).unwrap();
    assert!(FragmentWriter::create(&blobs, 4, &cache, &options).is_err(), "the id is taken");
    let written = finish(fill(writer, &rows)).unwrap().expect("rows");
    blobs.sync_names().unwrap();
    assert_eq!(blobs.list().unwrap(), [4]);
    let opened = Table::from_fragment(Fragment::open(&blobs, 4, &cache).unwrap());
    assert_eq!((read(&written), read(&opened)), (rows.clone(), rows.clone()));
    let mut damaged = blobs.bytes(4).unwrap().to_vec();
    damaged.truncate(1000);
    blobs.insert(5, damaged);
    let error = Fragment::open(&blobs, 5, &cache).map(drop).unwrap_err();
    assert_eq!(error.code, ErrorCode::Corrupt);
    blobs.delete(4).unwrap();
    assert!(Fragment::open(&blobs, 4, &cache).is_err());
    assert_eq!(read(&opened), rows, "an open blob stays readable");
}

#[test]
fn a_finished_fragment_survives_a_crash_once_its_directory_is_synced() {
    for seed in 0..20 {
        let data = Path::new("data");
        let fs = disk(seed, data);
        fs.sync_dir(Path::new("")).unwrap();
        fs.sync_dir(data).unwrap();
        write(&fs, 1, &cache(0), &FragmentOptions::default(), &rows(2000)).unwrap();
        fs.sync_dir(&layout::fragment_dir(data)).unwrap();
        fs.crash();
        fs.restart();
        assert_eq!(read(&open(&fs, 1, &cache(0)).unwrap()), rows(2000));
    }
}

#[test]
fn an_id_is_never_written_twice() {
    let fs = disk(6, Path::new("data"));
    let options = FragmentOptions::default();
    write(&fs, 1, &cache(0), &options, &rows(10)).unwrap();
    let again = FragmentWriter::create(&blobs(&fs), 1, &cache(0), &options);
    assert_eq!(again.err().map(|error| error.code), Some(ErrorCode::Io));
}

#[test]
fn a_failed_write_or_sync_is_an_error_and_never_a_table() {
    let options = FragmentOptions { filter_rows: Some(9), ..FragmentOptions::default() };
    let run = |fail: Option<u64>| {
        let fs = disk(7, Path::new("data"));
        if let Some(after) = fail {
            fs.fail_at(fs.operations() + after);
        }
        let before = fs.operations();
        let write = || {
            let cache = cache(0);
            let writer = FragmentWriter::create(&blobs(&fs), 1, &cache, &options)?;
            let mut builder = TableBuilder::new(writer);
            let value = vec![7; 300 << 10];
            for n in 0..3u8 {
                let (slice, epoch) = (SliceNo(0), Epoch(1));
                let row = RowVersion {
                    slice,
                    key: &[n],
                    id: b"",
                    value: &value,
                    epoch,
                    tombstone: false,
                };
                builder.push(&row)?;
            }
            finish(builder)
        };
        (write(), fs.operations() - before)
    };
    let (whole, operations) = run(None);
    assert!(whole.unwrap().is_some() && operations > 4);
    for fail in 1..=operations {
        let error = run(Some(fail)).0.expect_err("an operation failed");
        assert!(error.message.contains("00000000000000000001.frag"), "{error}");
    }
}

#[test]
fn a_block_from_another_place_or_file_does_not_pass() {
    let data = Path::new("data");
    let (fs, cache) = (disk(8, data), cache(0));
    let options = FragmentOptions::default();
    let one = write(&fs, 1, &cache, &options, &rows(2000)).unwrap();
    write(&fs, 2, &cache, &options, &rows(2000)).unwrap();
    let file =
        |id| fs.open(&layout::fragment_path(data, id), proto::env::OpenMode::ReadWrite).unwrap();
    let (offset, len) = one.index.place(3).unwrap();
    let mut block = vec![0; len as usize];
    file(2).read_exact_at(&mut block, offset).unwrap();
    file(1).write_all_at(&block, offset).unwrap();
    let error = one.block(3).expect_err("the block belongs to another file");
    assert_eq!(error.code, ErrorCode::Corrupt);
    let place = format!("00000000000000000001.frag: block 3, at offset {offset}:");
    assert!(error.message.contains(&place), "{error}");
    assert!(one.block(2).is_ok());
}
