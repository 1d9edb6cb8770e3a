//! Tests of damaged buckets: the other buckets are served, the files of the damaged bucket are not
//! changed, and it is recreated in steps that a crash may interrupt.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use proto::env::OpenMode;
use proto::model::ids::{BucketId, Seqno, VbucketId};
use proto::rpc::mutation::MutationKind;
use proto::{ErrorCode, Result};

use super::crashes::{BUCKET, World, documents};
use super::small;
use crate::document_store::{Batch, DamagedFiles, DocumentStore, KnownLoss, LogRange};
use crate::mutation::Mutation;
use crate::record::BucketRecord;
use crate::store::source_manifest::directory_path;
use crate::store::{DiskStore, RecoveryOutcome, recover, verify};
use proto::model::ids::Epoch;

const DIR: &str = "/data";
const OTHER: BucketId = BucketId(8);

fn other(world: &World) -> BucketRecord {
    let mut record = world.model.record();
    (record.info.id, record.info.name) = (OTHER, "c".into());
    record
}

fn open(world: &World) -> Result<DiskStore> {
    DiskStore::open(&world.env, Path::new(DIR), small())
}

/// Returns a closed store of two buckets. Both copies of the first bucket's checkpoint are damaged.
fn damaged(seed: u64) -> World {
    let mut world = World::new(seed);
    world.store().apply_catalog(2, &[other(&world)], &[]).expect("another bucket");
    (0..30).for_each(|_| world.commit());
    world.maintain();
    world.commit();
    world.store = None;
    // A later crash loses everything that is not synced by now.
    world.fs.crash();
    world.fs.restart();
    for name in ["checkpoint.1", "checkpoint.2"] {
        let path = directory_path(Path::new(DIR), 0).join(name);
        world.fs.flip_bit(&path, 300).expect("flipped");
    }
    world
}

fn commit(store: &DiskStore, bucket: BucketId, n: u64) {
    let place = (VbucketId(1), Seqno(n));
    let document = Bytes::from_static(b"{}");
    let mutation = Mutation::new(place, "d".into(), MutationKind::Upsert, document);
    let changes = Batch { mutations: vec![mutation.into()], ..Batch::default() };
    store.commit(bucket, changes).expect("a batch");
}

fn directories(world: &World) -> Vec<PathBuf> {
    world.env.fs.list(&Path::new(DIR).join("buckets")).expect("directories")
}

/// Returns the files of the damaged directory with their contents.
fn contents(world: &World) -> Vec<(PathBuf, Vec<u8>)> {
    let mut dirs = vec![directory_path(Path::new(DIR), 0)];
    let mut found = Vec::new();
    while let Some(dir) = dirs.pop() {
        for path in world.env.fs.list(&dir).expect("a directory") {
            match world.env.fs.open(&path, OpenMode::Read) {
                Err(_) => dirs.push(path),
                Ok(file) => {
                    let mut bytes = vec![0; file.len().expect("its length") as usize];
                    file.read_exact_at(&mut bytes, 0).expect("its contents");
                    found.push((path, bytes));
                }
            }
        }
    }
    found.sort();
    found
}

fn ids(store: &DiskStore) -> Vec<u64> {
    let buckets = store.buckets().expect("buckets");
    buckets.iter().map(|(record, _)| record.info.id.0).collect()
}

#[test]
fn a_damaged_bucket_is_kept_aside_and_the_others_are_served() {
    let world = damaged(1);
    let before = contents(&world);
    for n in 1..=2 {
        let store = open(&world).expect("the other bucket is whole");
        assert_eq!(ids(&store), [OTHER.0]);
        let found = store.damaged().expect("damaged buckets").remove(&BUCKET).expect("it");
        assert_eq!(found.error.code, ErrorCode::Corrupt);
        assert!(found.error.message.contains("/data/buckets/00000000/checkpoint"), "{found:?}");
        let mutations: usize = world.model.logs.iter().map(Vec::len).sum();
        let positions = found.positions.iter().map(|(_, position)| position.seqno.0).sum::<u64>();
        assert_eq!(positions, mutations as u64);
        let range = LogRange {
            bucket: BUCKET,
            vbucket: VbucketId(0),
            after: Seqno(0),
            to: Seqno(u64::MAX),
        };
        let refused = [
            store.read_log(range, 100).map(drop),
            store.extents(BUCKET).map(drop),
            store.snapshot(BUCKET).map(drop),
            store.contains(BUCKET, "d").map(drop),
            store.commit(BUCKET, Batch::default()),
            store.purge(BUCKET, &[]),
        ];
        for outcome in refused {
            assert_eq!(outcome.expect_err("it is damaged").code, ErrorCode::Corrupt);
        }
        store.put_records(&[world.model.record()]).expect("nothing is done");
        store.apply_catalog(2 + n, &[world.model.record()], &[]).expect("it is stored");
        assert!(store.damaged().expect("damaged buckets").contains_key(&BUCKET));
        commit(&store, OTHER, n);
        while store.maintain().expect("maintained") {}
    }
    assert!(contents(&world) == before, "nothing of it was touched");
    let findings = verify(&world.env, Path::new(DIR)).findings;
    assert!(!findings.is_empty(), "the check names the damage");
}

#[test]
fn a_damaged_bucket_is_made_anew_and_its_files_go_when_the_new_copy_is_complete() {
    let world = damaged(2);
    let store = open(&world).expect("opened");
    let loss = KnownLoss { epoch: Epoch(7), is_accepted: true };
    store.put_loss(BUCKET, Some(loss)).expect("noted");
    store.recreate_empty(&world.model.record(), DamagedFiles::UntilComplete).expect("made anew");
    assert_eq!(store.losses().expect("losses"), [].into(), "it was of the damaged files");
    assert_eq!(ids(&store), [BUCKET.0, OTHER.0]);
    assert!(documents(&store).is_empty());
    store
        .recreate_empty(&world.model.record(), DamagedFiles::UntilComplete)
        .expect_err("it is whole now");
    commit(&store, BUCKET, 1);
    drop(store);
    let report = verify(&world.env, Path::new(DIR));
    assert_eq!(report.findings, []);
    let old = directory_path(Path::new(DIR), 0);
    assert!(report.notes.iter().any(|note| note.path == old), "{:?}", report.notes);
    let store = open(&world).expect("opened again");
    assert!(store.damaged().expect("damaged buckets").is_empty());
    assert_eq!(store.recreated().expect("replaced"), [BUCKET].into());
    assert_eq!((documents(&store).len(), directories(&world).len()), (1, 3));
    store.remove_replaced(BUCKET).expect("removed");
    assert_eq!((store.recreated().expect("replaced"), directories(&world).len()), ([].into(), 2));
    drop(store);
    let store = open(&world).expect("opened once more");
    assert_eq!(documents(&store).len(), 1);
}

/// A crash interrupts each operation in turn: the bucket is damaged as before, or recreated while
/// its damaged files are kept.
#[test]
fn crash_during_recreation_leaves_damaged_or_empty() {
    let (mut still, mut anew, mut removed) = (0, 0, 0);
    for operation in (1..180).step_by(3) {
        let world = damaged(3);
        let before = contents(&world);
        let store = open(&world).expect("opened");
        world.fs.crash_at(world.fs.operations() + operation);
        let done = store.recreate_empty(&world.model.record(), DamagedFiles::UntilComplete);
        world.fs.crash();
        drop(store);
        world.fs.restart();
        let store = open(&world).expect("opened after the crash");
        assert!(contents(&world) == before, "the damaged files are there");
        match store.damaged().expect("damaged buckets").contains_key(&BUCKET) {
            true => {
                done.expect_err("it was cut short");
                assert_eq!(store.recreated().expect("replaced"), [].into());
                store
                    .recreate_empty(&world.model.record(), DamagedFiles::UntilComplete)
                    .expect("made anew");
                still += 1;
            }
            false => anew += 1,
        }
        assert_eq!(store.recreated().expect("replaced"), [BUCKET].into());
        assert!(documents(&store).is_empty());
        commit(&store, BUCKET, 1);
        world.fs.crash_at(world.fs.operations() + operation);
        removed += u32::from(store.remove_replaced(BUCKET).is_ok());
        world.fs.crash();
        drop(store);
        world.fs.restart();
        let store = open(&world).expect("opened after the crash");
        assert_eq!((ids(&store).len(), documents(&store).len()), (2, 1), "the new copy stays");
        let is_there = store.recreated().expect("replaced").contains(&BUCKET);
        assert_eq!(directories(&world).len(), if is_there { 3 } else { 2 });
    }
    assert!(still > 10 && anew > 10 && removed > 10, "{still}, {anew}, {removed}");
}

#[test]
fn a_bucket_that_is_dropped_leaves_none_of_its_damaged_files() {
    for is_made_anew in [false, true] {
        let world = damaged(4);
        let store = open(&world).expect("opened");
        if is_made_anew {
            store
                .recreate_empty(&world.model.record(), DamagedFiles::UntilComplete)
                .expect("made anew");
        }
        store.apply_catalog(9, &[], &[BUCKET]).expect("dropped");
        assert!(store.damaged().expect("damaged buckets").is_empty());
        assert_eq!(store.recreated().expect("replaced"), [].into());
        assert_eq!(directories(&world).len(), 1, "the other bucket's");
        drop(store);
        assert_eq!(ids(&open(&world).expect("opened again")), [OTHER.0]);
    }
}

/// The new copy is lost too before it was complete: the operator decides about all remaining
/// directories.
#[test]
fn an_operator_gives_up_a_bucket_that_was_made_anew_with_all_its_damaged_files() {
    let world = damaged(5);
    let store = open(&world).expect("opened");
    store.recreate_empty(&world.model.record(), DamagedFiles::UntilComplete).expect("made anew");
    drop(store);
    let given_up = ["b".to_owned()];
    let found = recover(&world.env, Path::new(DIR), &small(), &given_up).expect("given up");
    assert!(found.iter().any(|bucket| matches!(bucket.outcome, RecoveryOutcome::GivenUp(_))));
    let store = open(&world).expect("opened again");
    assert_eq!(ids(&store), [OTHER.0]);
    assert_eq!(store.recreated().expect("replaced"), [].into());
    assert_eq!(directories(&world).len(), 3, "they stay");
}

/// One file operation fails while a bucket is recreated, and the caller tries again.
#[test]
fn failed_recreation_is_repeated_without_leftovers() {
    let mut failed = 0;
    for operation in (1..150).step_by(4) {
        let world = damaged(6);
        let store = open(&world).expect("opened");
        world.fs.fail_at(world.fs.operations() + operation);
        while store.recreate_empty(&world.model.record(), DamagedFiles::UntilComplete).is_err() {
            failed += 1;
        }
        world.fs.disarm_faults();
        commit(&store, BUCKET, 1);
        drop(store);
        let store = open(&world).expect("opened again");
        assert_eq!((ids(&store).len(), documents(&store).len()), (2, 1));
        store.remove_replaced(BUCKET).expect("removed");
        assert_eq!(directories(&world).len(), 2);
    }
    assert!(failed > 10, "{failed}");
}
