//! Manifests on disk: crashes, damage, and the format.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use proto::env::{FileSystem, OpenMode, sim};
use proto::model::cut::{Cut, EpochMark, Position};
use proto::model::ids::{
    BucketId, Epoch, Generation, IndexId, LocalIndexId, Seqno, SliceNo, Vbuuid,
};
use proto::{ErrorCode, Result};

use super::file::{ManifestKind, decode, encode, index_name};
use super::testing::manifest;
use super::*;
use crate::file_id::FileId;
use crate::retention::RetainedEpochs;
use crate::rows::columns::Columns;

const GOLDEN_INDEX: &[u8] = include_bytes!("../../testdata/index-7.3.manifest");
const GOLDEN_NODE: &[u8] = include_bytes!("../../testdata/node.manifest");

const INDEX: LocalIndexId = LocalIndexId { index: IndexId(7), generation: Generation(3) };

fn dir() -> &'static Path {
    Path::new("/data")
}

/// Returns a machine with an empty directory.
fn world(seed: u64) -> (proto::env::Env, sim::SimFs) {
    let (env, _, fs) = sim::world(seed);
    proto::env::create_dir_durably(&fs, dir()).unwrap();
    (env, fs)
}

fn put(fs: &dyn FileSystem, name: &str, bytes: &[u8]) {
    let file = fs.open(&dir().join(name), OpenMode::Create).unwrap();
    file.set_len(0).unwrap();
    file.write_all_at(bytes, 0).unwrap();
}

/// An index manifest with every kind of restriction.
fn index_manifest() -> IndexManifest {
    let mut manifest = manifest();
    let entries = Columns::ENTRY.union(Columns::INCLUDE);
    manifest.slices.insert(SliceNo(0), SliceLists::new(&[entries, Columns::BACK]));
    let range = EpochRange { from: Epoch(1), to: Epoch(55) };
    manifest.add(FileId(11), &[SliceNo(0)], Columns::ALL, range, ListPosition::Newest).unwrap();
    manifest
        .add(FileId(12), &[SliceNo(0)], entries, EpochRange::ALL, ListPosition::Newest)
        .unwrap();
    manifest.split(SliceNo(0), b"m", SliceNo(1), SliceNo(2)).unwrap();
    manifest.roll_back_to(Epoch(50)).unwrap();
    manifest.entries = BTreeMap::from([(SliceNo(1), 400), (SliceNo(2), 3)]);
    let reach = RetainedEpochs { horizon: Epoch(45), points: vec![Epoch(20), Epoch(30)] };
    manifest.arrived = BTreeMap::from([(SliceNo(2), reach)]);
    manifest
}

fn node_manifest() -> NodeManifest {
    let position = Position { vbuuid: Vbuuid(9), seqno: Seqno(1234) };
    let mark = EpochMark {
        bucket: BucketId(2),
        epoch: Epoch(50),
        parent: Epoch(49),
        cut: Arc::new(Cut::from_positions(vec![position; 3])),
        horizon: Epoch(40),
        points: Arc::default(),
    };
    let dead = DeadEpochs { bucket: BucketId(2), above: Epoch(50), to: Epoch(55) };
    let index_numbers = BTreeMap::from([(INDEX, 8)]);
    NodeManifest {
        next_file: FileId(13),
        marks: vec![mark],
        dead: vec![dead],
        log_from: 4321,
        index_numbers,
    }
}

#[test]
fn a_written_manifest_is_read_back() {
    let (_, fs) = world(1);
    let (index, node) = (index_manifest(), node_manifest());
    assert_eq!(read_all(&fs, dir()).unwrap(), Manifests::default());
    write_index(&fs, dir(), &index, 8).unwrap();
    write_node(&fs, dir(), &node).unwrap();
    let of_index = |fs| read_index(fs, dir(), INDEX).unwrap().map(|(manifest, _)| manifest);
    assert_eq!(of_index(&fs), Some(index.clone()));
    let numbers = BTreeMap::from([(INDEX, 8)]);
    let all = Manifests { node: Some(node), indexes: vec![index], numbers };
    assert_eq!(read_all(&fs, dir()).unwrap(), all);
    remove_index(&fs, dir(), INDEX).unwrap();
    remove_index(&fs, dir(), INDEX).unwrap();
    fs.crash();
    fs.restart();
    assert_eq!(of_index(&fs), None);
}

#[test]
fn a_crash_in_any_operation_leaves_the_old_manifest_or_the_new() {
    let old = index_manifest();
    let mut new = old.clone();
    new.drop_slice(SliceNo(1)).unwrap();
    let (mut olds, mut news) = (0, 0);
    for seed in 0..40 {
        for at in 1..=6 {
            let (_, fs) = world(seed);
            write_index(&fs, dir(), &old, 1).unwrap();
            fs.crash_at(fs.operations() + at);
            let written = write_index(&fs, dir(), &new, 2);
            assert_eq!(written.is_ok(), !fs.is_crashed());
            fs.crash();
            fs.restart();
            let read = read_all(&fs, dir()).unwrap().indexes;
            assert!(read == [old.clone()] || read == [new.clone()], "seed {seed}, crash at {at}");
            olds += usize::from(read == [old.clone()]);
            news += usize::from(read == [new.clone()]);
            assert!(written.is_err() || read == [new.clone()], "the written manifest is durable");
            assert_eq!(fs.list(dir()).unwrap().len(), 1, "left-overs are removed");
        }
    }
    assert!(olds > 0 && news > 0, "{olds} {news}");
}

#[test]
fn every_flipped_bit_is_found_and_the_file_named() {
    let (_, fs) = world(1);
    write_index(&fs, dir(), &index_manifest(), 8).unwrap();
    write_node(&fs, dir(), &node_manifest()).unwrap();
    let path = dir().join(index_name(INDEX));
    let bits = fs.open(&path, OpenMode::Read).unwrap().len().unwrap() * 8;
    for bit in 0..bits {
        fs.flip_bit(&path, bit).unwrap();
        let error = read_all(&fs, dir()).expect_err("damage must not pass");
        assert!(matches!(error.code, ErrorCode::Corrupt | ErrorCode::Version), "{error}");
        assert!(error.message.contains("index-7.3.manifest"), "{error}");
        fs.flip_bit(&path, bit).unwrap();
    }
    read_all(&fs, dir()).unwrap();
}

#[test]
fn a_manifest_in_the_place_of_another_is_refused() {
    let (_, fs) = world(1);
    put(&fs, "index-8.3.manifest", GOLDEN_INDEX);
    let error = read_all(&fs, dir()).unwrap_err();
    assert!(error.message.contains("another index"), "{error}");
    fs.remove_file(&dir().join("index-8.3.manifest")).unwrap();
    put(&fs, "node.manifest", GOLDEN_INDEX);
    assert_eq!(read_node(&fs, dir()).unwrap_err().code, ErrorCode::Corrupt);
}

#[test]
fn lists_that_break_the_rules_are_neither_written_nor_read() {
    let (_, fs) = world(1);
    let mut broken = index_manifest();
    broken.slices.get_mut(&SliceNo(1)).unwrap().groups[0].items[0].range.high = Some(Bytes::new());
    assert!(write_index(&fs, dir(), &broken, 8).is_err());
    put(&fs, "index-7.3.manifest", &encode(ManifestKind::Index, 8, &broken).unwrap());
    assert_eq!(read_all(&fs, dir()).unwrap_err().code, ErrorCode::Corrupt);
}

#[test]
fn describe_prints_both_kinds() {
    let (env, fs) = world(1);
    write_index(&fs, dir(), &index_manifest(), 8).unwrap();
    write_node(&fs, dir(), &node_manifest()).unwrap();
    let CheckedManifest::Index { items, name, .. } =
        describe(&env, &dir().join("index-7.3.manifest")).unwrap()
    else {
        panic!("the file is of an index")
    };
    assert_eq!((items.len(), &name[..]), (6, "by_city"));
    let low = &items[0];
    assert_eq!((&low.low[..], low.high.as_deref(), low.epoch_to), ("", Some("6d"), Epoch(50)));
    assert_eq!(items[2].columns, "back");
    let node = describe(&env, &dir().join("node.manifest")).unwrap();
    assert!(matches!(node, CheckedManifest::Node { next_file: FileId(13), .. }));
}

#[test]
fn the_format_is_that_of_the_golden_files() {
    if std::env::var_os("UPDATE").is_some() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
        let real = proto::env::Env::real();
        write_index(&*real.fs, &dir, &index_manifest(), 8).unwrap();
        write_node(&*real.fs, &dir, &node_manifest()).unwrap();
        return;
    }
    assert_eq!(
        decode::<IndexManifest>(ManifestKind::Index, GOLDEN_INDEX).unwrap(),
        index_manifest()
    );
    assert_eq!(decode::<NodeManifest>(ManifestKind::Node, GOLDEN_NODE).unwrap(), node_manifest());
    assert_eq!(encode(ManifestKind::Index, 8, &index_manifest()).unwrap(), GOLDEN_INDEX);
    assert_eq!(encode(ManifestKind::Node, 0, &node_manifest()).unwrap(), GOLDEN_NODE);
}

/// A file with a changed body and a corrected checksum.
fn with_body(body: &[u8]) -> Vec<u8> {
    let mut bytes = GOLDEN_INDEX[..28].to_vec();
    bytes[12..20].copy_from_slice(&(body.len() as u64).to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[8..28]), body);
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes.extend_from_slice(body);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_bytes_make_it_panic(
        at in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 0..12),
        is_honest in any::<bool>(),
    ) {
        let mut body = GOLDEN_INDEX[32..].to_vec();
        let at = at.index(body.len());
        let end = body.len().min(at + cut.index(12));
        body.splice(at..end, bytes);
        let file = if is_honest { with_body(&body) } else { [&GOLDEN_INDEX[..32], &body].concat() };
        let read: Result<IndexManifest> = decode(ManifestKind::Index, &file);
        if let Ok(manifest) = read {
            let _ = manifest.check();
            let mut other = manifest.clone();
            let _ = other.regroup(&[Columns::ALL]);
            let _ = other.roll_back_to(Epoch(7));
            prop_assert!(is_honest || manifest == index_manifest());
        }
    }

    #[test]
    fn no_header_makes_it_panic(file in prop::collection::vec(any::<u8>(), 0..64)) {
        let mut headed = b"sxmf\x02\0\0\0\x02\0\0\0".to_vec();
        headed.extend_from_slice(&file);
        for bytes in [&file, &headed] {
            prop_assert!(decode::<IndexManifest>(ManifestKind::Index, bytes).is_err());
            prop_assert!(decode::<NodeManifest>(ManifestKind::Node, bytes).is_err());
        }
    }
}
