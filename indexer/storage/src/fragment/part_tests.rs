//! Tests of parts: a slice's rows become a separate fragment, and all damage is found.

use std::path::Path;

use proto::ErrorCode;
use proto::env::real::SeededRandom;
use proto::env::{FileSystem, OpenMode, Random, sim};

use super::*;
use crate::fragment::cache::BlockCache;
use crate::fragment::compression::Compression;
use crate::fragment::describe::describe_in;
use crate::fragment::filter::filter_hash;
use crate::fragment::tests::{
    Row, blobs, disk, read, rows, rows_of_one_epoch, write, write_stamped,
};
use crate::fragment::writer::{FragmentOptions, FragmentWriter};
use crate::layout;
use crate::rows::columns::Columns;
use crate::rows::sinks::BlockSink;
use crate::rows::table_builder::TableBuilder;
use crate::tables::table::Table;

fn up_to(random: &SeededRandom, max: u64) -> u64 {
    1 + random.next_u64() % max
}

fn options(compression: Compression, has_filter: bool) -> FragmentOptions {
    let columns = if has_filter { Columns::BACK } else { Columns::FORWARD };
    FragmentOptions {
        compression,
        filter_rows: has_filter.then_some(3000),
        columns: columns.0,
        ..FragmentOptions::default()
    }
}

/// All bytes of a slice's part, read in pieces of random lengths.
fn part_of(table: &Table, slice: u16, random: &SeededRandom) -> Result<Vec<u8>> {
    let fragment = table.fragment().expect("a file");
    let part = FragmentPart::new(fragment, &table.index, SliceNo(slice)).expect("rows");
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < part.byte_len() {
        let at = bytes.len() as u64;
        let len = up_to(random, 20_000).min(part.byte_len() - at);
        bytes.extend_from_slice(&part.read(&table.index, at, len as usize)?);
    }
    Ok(bytes)
}

/// The blocks of a part, as stored and parsed.
type Blocks = Vec<(Vec<u8>, Block)>;

fn read_part(part: &[u8], random: &SeededRandom) -> Result<Option<(PartHead, Blocks)>> {
    let mut reader = PartReader::new(part.len() as u64);
    let (mut head, mut blocks) = (None, Vec::new());
    let mut rest = part;
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at((up_to(random, 20_000) as usize).min(rest.len()));
        rest = behind;
        reader.add_bytes(piece);
        while let Some(item) = reader.next()? {
            match item {
                PartItem::Head(read) => head = Some(read),
                PartItem::Block(stored, block) => blocks.push((stored.to_vec(), block)),
            }
        }
    }
    Ok(head.filter(|_| reader.is_complete()).map(|head| (head, blocks)))
}

#[test]
fn each_slice_of_a_shared_fragment_becomes_a_fragment_of_its_own() {
    let random = &SeededRandom::new(5);
    let cache = Arc::new(BlockCache::new(0));
    let mut all = rows(3000);
    // The last entry has older versions, which fill more than a block.
    let (last, newest) = (all[2999].clone(), all[2999].4);
    all.extend(
        (1..40).map(|n| (2, last.1.clone(), last.2.clone(), vec![n as u8; 300], newest - n, false)),
    );
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        for has_filter in [false, true] {
            let fs = disk(1, Path::new("data"));
            let options = options(compression, has_filter);
            let table = write(&fs, 9, &cache, &options, &all).expect("rows");
            for slice in 0..3 {
                let bytes = part_of(&table, slice, random).unwrap();
                let (head, blocks) = read_part(&bytes, random).unwrap().expect("it is whole");
                let expected: Vec<Row> = all.iter().filter(|row| row.0 == slice).cloned().collect();
                assert_eq!((head.slice, head.rows), (SliceNo(slice), expected.len() as u64));
                assert_eq!(head.columns, options.columns);
                let id = 20 + u64::from(slice);
                let writer = FragmentWriter::create(&blobs(&fs), id, &cache, &options).unwrap();
                let mut out = TableBuilder::new(writer);
                for (stored, block) in &blocks {
                    out.push_stored(head.slice, block, |to| to.put_stored(stored)).unwrap();
                }
                expected.iter().for_each(|row| out.sink_mut().add_hash(filter_hash(&row.1)));
                let (writer, stats, index) = out.finish_parts().unwrap().expect("rows");
                let own = writer.finish_unsynced(stats, index).unwrap().sync().unwrap();
                assert_eq!(own.stats.versions, slice == 2);
                assert_eq!(read(&Table::from_fragment(own)), expected);
                let path = layout::fragment_path(Path::new("data"), id);
                let described = describe_in(&fs, &path, &mut |_| ()).unwrap();
                assert_eq!(described.findings, Vec::<String>::new(), "slice {slice}");
            }
        }
    }
}

#[test]
fn a_part_of_a_stamped_fragment_has_its_epoch() {
    let random = &SeededRandom::new(7);
    let cache = Arc::new(BlockCache::new(0));
    let fs = disk(1, Path::new("data"));
    let options = FragmentOptions { is_stamped: true, ..options(Compression::Lz4, false) };
    let all = rows_of_one_epoch(0, 3000);
    let table = write_stamped(&fs, 9, &cache, &options, &all, 77);
    let bytes = part_of(&table, 1, random).unwrap();
    let (head, blocks) = read_part(&bytes, random).unwrap().expect("it is whole");
    assert_eq!(head.stamp, Some(Epoch(77)));
    let writer = FragmentWriter::create(&blobs(&fs), 10, &cache, &options).unwrap();
    let mut out = TableBuilder::new(writer);
    for (stored, block) in &blocks {
        out.push_stored(head.slice, block, |to| to.put_stored(stored)).unwrap();
    }
    let (writer, stats, index) = out.finish_parts().unwrap().expect("rows");
    let own = Table::from_fragment(writer.finish(stats, index).unwrap());
    let expected = rows_of_one_epoch(77, 3000);
    let expected: Vec<Row> = expected.into_iter().filter(|row| row.0 == 1).collect();
    assert_eq!(read(&own), expected);
    for end in 0..bytes.len().min(200) {
        assert!(
            !matches!(read_part(&bytes[..end], random), Ok(Some(_))),
            "{end} bytes are no part"
        );
    }
}

#[test]
fn versions_of_one_entry_are_noticed_across_blocks() {
    let cache = Arc::new(BlockCache::new(0));
    let fs = disk(1, Path::new("data"));
    let row = |epoch: u64| -> Row { (0, vec![1], vec![2], vec![epoch as u8; 3000], epoch, false) };
    let all = [9, 8, 7, 6].map(row);
    let table = write(&fs, 9, &cache, &FragmentOptions::default(), &all).expect("rows");
    assert!(table.index.blocks() > 1, "the versions do not fit one block");
    let writer = FragmentWriter::create(&blobs(&fs), 10, &cache, &FragmentOptions::default());
    let mut out = TableBuilder::new(writer.unwrap());
    for block in 0..table.index.blocks() {
        let block = table.block(block).unwrap();
        out.push_stored(SliceNo(0), &block, |to| to.shared_block(&block)).unwrap();
    }
    let (_, stats, _) = out.finish_parts().unwrap().expect("rows");
    assert_eq!(stats, table.stats);
    assert!(stats.versions);
}

/// A part has no checksum over the columns, the slice and the row count: each piece has a checksum
/// in transit, and the writer counts the rows.
#[test]
fn every_changed_byte_of_a_part_is_found() {
    let random = &SeededRandom::new(6);
    let cache = Arc::new(BlockCache::new(0));
    let fs = disk(1, Path::new("data"));
    let options = options(Compression::Lz4, false);
    let table = write(&fs, 9, &cache, &options, &rows(300)).expect("rows");
    let good = part_of(&table, 1, random).unwrap();
    let (head, _) = read_part(&good, random).unwrap().expect("it is whole");
    let unchecked = HEADER_BYTES as usize..HEADER_BYTES as usize + 18;
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= up_to(random, 255) as u8;
        match read_part(&bad, random) {
            Ok(Some((read, _))) => {
                assert!(unchecked.contains(&at) && read != head, "byte {at}");
            }
            Ok(None) | Err(_) => assert!(!unchecked.contains(&at), "byte {at}"),
        }
    }
    for len in 0..good.len() {
        assert!(
            read_part(&good[..len], random).is_ok_and(|read| read.is_none()) || len >= PREFIX_BYTES
        );
        assert!(!read_part(&good[..len], random).is_ok_and(|read| read.is_some()), "{len} bytes");
    }
}

/// A part contains the checksums of the blocks in the source's file, so damage on the source's disk
/// is found too.
#[test]
fn damage_on_the_disk_of_the_source_is_found_in_its_part() {
    let random = &SeededRandom::new(7);
    let (env, _, fs) = sim::world(3);
    let dir = Path::new("data");
    fs.create_dir_all(&layout::fragment_dir(dir)).unwrap();
    let cache = Arc::new(BlockCache::new(0));
    let options = options(Compression::None, false);
    let table = write(&fs, 9, &cache, &options, &rows(300)).expect("rows");
    let first = table.index.sections()[1].first_block;
    let (offset, len) = table.index.place(first).expect("a block");
    let file = env.fs.open(&layout::fragment_path(dir, 9), OpenMode::ReadWrite).unwrap();
    let mut byte = [0];
    let at = offset + u64::from(len) / 2;
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
    let is_damage = |slice, random: &SeededRandom| {
        let part = part_of(&table, slice, random).unwrap();
        read_part(&part, random).is_err_and(|error| error.code == ErrorCode::Corrupt)
    };
    assert!(is_damage(1, random));
    assert!(!is_damage(0, random), "the part of another slice");
}
