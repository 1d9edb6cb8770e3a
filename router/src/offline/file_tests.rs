//! Tests of the file of the stored state: a written file is read, and any other content is refused.

use std::path::Path;

use proto::env::Env;
use proto::env::sim::{SimFs, world};
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::copies::Copies;
use proto::model::data_set::{DataSet, Files, Partition, PartitionContent, Version, VersionStage};
use proto::model::identity::{ClusterId, UniqueId};
use proto::model::ids::{BucketId, Epoch, IndexId, MoveId, NodeId, SliceNo};
use proto::model::index::{IndexInfo, IndexSpec, IndexState};
use proto::model::moves::{EndedMove, MoveStage, SliceMove};
use proto::model::node::{NodeInfo, Role};
use proto::model::rollback::DeadEpochs;
use proto::{ErrorCode, Result};

use super::*;

const DIR: &str = "/router";

/// Returns a catalog that has a value in each of its fields.
pub(in crate::offline) fn catalog(cas: u64) -> Catalog {
    let node = |id, role| {
        let address = format!("host-{id}:7500");
        (NodeId(id), Arc::new(NodeInfo { id: NodeId(id), role, address, zone: "z".to_owned() }))
    };
    let mut bucket = BucketInfo::new(BucketId(1), "b", 4, SourceKind::Embedded, NodeId(101));
    bucket.dead = Arc::new(vec![DeadEpochs { point: None, to: Epoch(9) }]);
    let spec = IndexSpec { slices: 2, ..IndexSpec::new("i", "b") };
    let placement = vec![vec![NodeId(201)], vec![NodeId(202), NodeId(201)]];
    let was = SliceMove {
        id: MoveId(8),
        slice: SliceNo(1),
        from: Some(NodeId(201)),
        to: Some(NodeId(202)),
        stage: MoveStage::Pending,
        epoch: Epoch(30),
    };
    let index = IndexInfo::new(IndexId(3), BucketId(1), spec, placement);
    let index = IndexInfo { state: IndexState::Maintenance, moves: vec![was.clone()], ..index };
    Catalog {
        cas,
        cluster: Some(ClusterId(5)),
        newest_index: IndexId(3),
        bucket_ids: [(BucketId(1), UniqueId(4))].into(),
        dropped_buckets: vec![(BucketId(2), UniqueId(6))],
        buckets: [(bucket.id, Arc::new(bucket))].into(),
        indexes: [(index.id, Arc::new(index))].into(),
        nodes: [node(201, Role::Indexer), node(202, Role::Indexer)].into(),
        draining: [NodeId(201)].into(),
        removed: vec![node(203, Role::Indexer).1],
        ended_moves: vec![EndedMove { index: IndexId(3), was, undone: Some("why".to_owned()) }],
        copies: [(BucketId(1), Copies::single(NodeId(101)))].into(),
        generations: Default::default(),
        newest_generations: Default::default(),
        data_sets: [(BucketId(1), data_set())].into(),
        slice_bytes_max: [(IndexId(1), 1 << 30)].into(),
    }
}

fn data_set() -> DataSet {
    let files = Files { pattern: "b/*.csv".to_owned(), id: "id".to_owned() };
    let content = PartitionContent { rows: 3, documents: 2, bytes: 40, digest: 5 };
    let partition = Partition { holders: vec![NodeId(101)], content: Some(content) };
    let version = Version {
        name: "v1".to_owned(),
        bucket: BucketId(7),
        files,
        nodes: vec![NodeId(101)],
        stage: VersionStage::Current,
        partitions: vec![partition],
    };
    DataSet { newest: 1, versions: [(1, version)].into(), ..DataSet::new(1, 2, 1_000) }
}

pub(in crate::offline) fn kept(cas: u64) -> StoredKnowledge {
    let catalog = Arc::new(catalog(cas));
    let index = catalog.indexes[&IndexId(3)].local_id();
    StoredKnowledge {
        heard_unix_ms: 1_000,
        moment: 17,
        floors: [(index, Epoch(12))].into(),
        catalog,
    }
}

fn disk() -> (Env, SimFs) {
    let (env, _, fs) = world(1);
    proto::env::create_dir_durably(&fs, Path::new(DIR)).expect("a directory");
    (env, fs)
}

fn read_back(fs: &SimFs) -> Result<Option<StoredKnowledge>> {
    FILE.read(fs, Path::new(DIR))
}

#[test]
fn what_was_written_is_read_and_a_later_write_replaces_it() {
    let (_, fs) = disk();
    assert_eq!(read_back(&fs).expect("no file"), None);
    for cas in [3, 900, 4] {
        FILE.write(&fs, Path::new(DIR), &kept(cas)).expect("written");
        assert_eq!(read_back(&fs).expect("a file"), Some(kept(cas)));
    }
    FILE.remove(&fs, Path::new(DIR)).expect("removed");
    FILE.remove(&fs, Path::new(DIR)).expect("removed before");
    assert_eq!(read_back(&fs).expect("no file"), None);
}

#[test]
fn each_damaged_bit_and_each_shorter_file_is_an_error_that_names_the_file() {
    let (_, fs) = disk();
    FILE.write(&fs, Path::new(DIR), &kept(3)).expect("written");
    let path = FILE.path(Path::new(DIR));
    let bytes = FILE.encode(&kept(3)).expect("encoded");
    for bit in 0..bytes.len() as u64 * 8 {
        fs.flip_bit(&path, bit).expect("flipped");
        let error = read_back(&fs).expect_err("a damaged file");
        assert!(matches!(error.code, ErrorCode::Corrupt | ErrorCode::Version), "{error}");
        assert!(error.message.contains("/router/CATALOG"), "{error}");
        fs.flip_bit(&path, bit).expect("flipped back");
    }
    assert_eq!(read_back(&fs).expect("whole again"), Some(kept(3)));
    for length in 0..bytes.len() {
        assert!(FILE.decode(&bytes[..length]).is_err(), "the first {length} bytes");
    }
    assert!(FILE.decode(&[&bytes[..], b"x"].concat()).is_err(), "a byte too many");
}

#[test]
fn a_file_of_another_version_is_named_as_that() {
    let mut bytes = FILE.encode(&kept(3)).expect("encoded");
    let end_of_head = bytes.iter().position(|byte| *byte == b'\n').expect("a first line");
    bytes[end_of_head - 1] += 1;
    assert_eq!(FILE.decode(&bytes).expect_err("another version").code, ErrorCode::Version);
}

/// Compares the encoding of version 2 with a stored one. If this fails, the encoding of the catalog
/// has changed: give [`ENVELOPE`] the next version.
#[test]
fn the_version_names_the_encoding() {
    let bytes = FILE.encode(&kept(3)).expect("encoded");
    assert_eq!(
        (bytes.len(), crc32c::crc32c(&bytes[ENVELOPE.bytes_before()..])),
        (256, 911_150_371)
    );
}

#[test]
fn a_crash_at_any_operation_leaves_the_last_or_the_next_knowledge() {
    for seed in 0..200 {
        let (env, _, fs) = world(seed);
        proto::env::create_dir_durably(&fs, Path::new(DIR)).expect("a directory");
        FILE.write(&fs, Path::new(DIR), &kept(3)).expect("written");
        fs.crash_at(fs.operations() + env.random.next_u64() % 8);
        let is_written = FILE.write(&fs, Path::new(DIR), &kept(4)).is_ok();
        fs.crash();
        fs.restart();
        let found = read_back(&fs).expect("readable after a crash").expect("a file");
        assert!(found == kept(4) || !is_written && found == kept(3), "seed {seed}");
    }
}
