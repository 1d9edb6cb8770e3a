//! Tests of recoveries after damage: each vbucket returns to a consistent earlier position, and all
//! losses are reported.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use proto::ErrorCode;
use proto::env::OpenMode;
use proto::model::commits::{CommittedTransaction, TransactionEvent};
use proto::model::cut::Position;
use proto::model::ids::{BucketId, Epoch, Seqno, TransactionId, VbucketId, Vbuuid, vbucket_of};
use proto::model::joint::{JointCommit, PreparedChange, PreparedTransaction};
use proto::model::open_commit::{CommitId, OpenCommit};
use proto::rpc::mutation::MutationKind;

use super::crashes::VBUCKETS;
use super::crashes::{BUCKET, World, documents};
use super::small;
use crate::document_store::{Batch, DocumentStore, KnownLoss};
use crate::mutation::Mutation;
use crate::store::{LostCommit, RecoveryOutcome, recover, source_manifest, verify};
use storage::log::scan_segment;

const DIR: &str = "/data";
const FAULTS: u64 = 300;

/// Returns a closed store with fragments, segments, purge points, and changes that no fragment has.
fn closed(seed: u64) -> World {
    let mut world = World::new(seed);
    for _ in 0..60 {
        match world.below(12) {
            0 => world.purge(),
            1..=3 => world.maintain(),
            _ => world.commit(),
        }
    }
    world.store = None;
    world
}

fn files(world: &World, below: &str) -> Vec<PathBuf> {
    let dir = Path::new(DIR).join("buckets/00000000").join(below);
    let mut found = world.env.fs.list(&dir).expect("a directory");
    found.retain(|path| path.extension().is_none_or(|extension| extension != "index"));
    found
}

/// Flips a bit of a file, truncates it or removes it.
fn damage(world: &World, path: &Path) {
    let file = world.env.fs.open(path, OpenMode::ReadWrite).expect("a file");
    let used =
        scan_segment(&*world.env.fs, path, &mut |_, _| ()).map(|segment| segment.used_bytes());
    let len = used.unwrap_or_else(|_| file.len().expect("its length"));
    match world.below(6) {
        0 => world.env.fs.remove_file(path).expect("removed"),
        1 => file.set_len(world.below(len)).expect("cut"),
        _ => {
            let (at, mut byte) = (world.below(len), [0]);
            file.read_exact_at(&mut byte, at).expect("a byte");
            byte[0] ^= 1 << world.below(8);
            file.write_all_at(&byte, at).expect("flipped");
        }
    }
}

fn recovered(world: &World) -> RecoveryOutcome {
    let found = recover(&world.env, Path::new(DIR), &small(), &[]).expect("recovered").remove(0);
    assert_eq!((found.bucket, &*found.name), (BUCKET, "b"));
    found.outcome
}

/// Opens the store again, and checks that each vbucket has a prefix of its mutations. Returns the
/// number of lost mutations.
fn check(world: &mut World, found: &RecoveryOutcome) -> u64 {
    world.open();
    let ends = world.store().all()[0].1.ends();
    let (mut left, mut lost) = (world.model.clone(), 0);
    let told = match found {
        RecoveryOutcome::MadeAgain { lost, .. } => lost.clone(),
        _ => Vec::new(),
    };
    for (vbucket, (log, end)) in (0..).map(VbucketId).zip(left.logs.iter_mut().zip(&ends)) {
        assert!(end.0 <= log.len() as u64, "nothing is made up");
        let told = told.iter().find(|told| told.vbucket == vbucket);
        assert!(told.is_none_or(|told| told.has == *end && told.had.0 <= log.len() as u64));
        lost += log.len() as u64 - end.0;
        log.truncate(end.0 as usize);
    }
    assert_eq!(documents(world.store()), left.documents());
    let told: u64 = told.iter().map(|told| told.had.0 - told.has.0).sum();
    // The seqnos of a damaged last group are in no file.
    assert!(told <= lost, "{told} are told, {lost} are lost");
    world.model = left;
    lost
}

#[test]
fn damaged_log_keeps_a_prefix_of_each_vbucket() {
    let (mut made_again, mut lost_some, mut lost_none) = (0, 0, 0);
    for seed in 0..FAULTS {
        let mut world = closed(seed);
        let all = files(&world, "log");
        let path = &all[world.below(all.len() as u64) as usize];
        eprintln!("seed {seed} {path:?}");
        damage(&world, path);
        let found = recovered(&world);
        let is_damaged = matches!(found, RecoveryOutcome::MadeAgain { .. });
        made_again += u64::from(is_damaged);
        match check(&mut world, &found) {
            0 => lost_none += u64::from(is_damaged),
            lost => {
                assert!(is_damaged, "a whole bucket has lost {lost} mutations");
                lost_some += 1;
            }
        }
        // The bucket continues as any other bucket.
        world.model.purged = world
            .store()
            .extents(BUCKET)
            .unwrap()
            .iter()
            .map(|e| e.purged.0)
            .collect::<Vec<_>>()
            .try_into()
            .unwrap();
        (0..5).for_each(|_| world.commit());
        assert_eq!(documents(world.store()), world.model.documents(), "seed {seed}");
        world.store = None;
        assert_eq!(verify(&world.env, Path::new(DIR)).findings, [], "seed {seed}");
    }
    assert!(
        made_again > FAULTS / 2 && lost_some > FAULTS / 10 && lost_none > FAULTS / 10,
        "{made_again} made again, {lost_some} with a loss, {lost_none} without"
    );
}

#[test]
fn intact_directory_is_unchanged_and_only_reported_loss_accepted() {
    let mut world = closed(3);
    assert!(matches!(recovered(&world), RecoveryOutcome::Whole(None)));
    world.open();
    assert_eq!(world.store().losses().expect("a manifest"), [].into());
    let told = KnownLoss { epoch: Epoch(7), is_accepted: false };
    world.store().put_loss(BUCKET, Some(told)).expect("noted");
    world.store = None;
    let found = recovered(&world);
    assert!(matches!(found, RecoveryOutcome::Whole(Some(Epoch(7)))), "{found:?}");
    assert_eq!(check(&mut world, &found), 0);
    let accepted = KnownLoss { is_accepted: true, ..told };
    assert_eq!(world.store().losses().expect("a manifest"), [(BUCKET, accepted)].into());
    world.store().put_loss(BUCKET, None).expect("forgotten");
    world.open();
    assert_eq!(world.store().losses().expect("a manifest"), [].into());
}

/// A loss of a dropped bucket is forgotten. Otherwise no operator could accept the loss, and the
/// projector would query for it forever.
#[test]
fn loss_of_a_dropped_bucket_is_removed() {
    let mut world = closed(5);
    world.open();
    let loss = KnownLoss { epoch: Epoch(7), is_accepted: false };
    for bucket in [BUCKET, BucketId(99)] {
        world.store().put_loss(bucket, Some(loss)).expect("noted");
    }
    world.store = None;
    recovered(&world);
    world.open();
    let left: Vec<_> = world.store().losses().expect("losses").into_keys().collect();
    assert_eq!(left, [BUCKET]);
    world.store().apply_catalog(9, &[], &[BUCKET]).expect("dropped");
    assert_eq!(world.store().losses().expect("losses"), [].into());
}

/// The documents in fragments are in no log, so they cannot be replaced. The operator can give the
/// bucket up completely.
#[test]
fn a_bucket_with_a_damaged_fragment_is_named_and_stays_until_it_is_given_up() {
    for is_cut in [true, false] {
        let mut world = closed(4);
        let fragment = files(&world, "fragments").remove(0);
        let file = world.env.fs.open(&fragment, OpenMode::ReadWrite).expect("a fragment");
        match is_cut {
            true => file.set_len(file.len().expect("its length") / 2).expect("cut"),
            // In a block, which no opening reads.
            false => file.write_all_at(&[0xff; 4], 30).expect("overwritten"),
        }
        let RecoveryOutcome::Unsaved(error) = recovered(&world) else {
            panic!("no other copy has it")
        };
        assert_eq!(error.code, ErrorCode::Corrupt);
        assert!(error.message.contains(&*fragment.to_string_lossy()), "{error}");
        let given_up = ["b".to_owned()];
        let found = recover(&world.env, Path::new(DIR), &small(), &given_up).expect("given up");
        assert!(matches!(found[0].outcome, RecoveryOutcome::GivenUp(_)), "{found:?}");
        assert!(world.env.fs.exists(&fragment), "the files stay");
        world.open();
        assert_eq!(world.store().buckets().expect("buckets"), []);
        let record = world.model.record();
        world.store().apply_catalog(1, &[record], &[]).expect("made anew");
        assert!(documents(world.store()).is_empty());
    }
}

/// Files of another bucket, from a directory that was restored to the wrong place, are reported and
/// not repaired.
#[test]
fn the_files_of_another_bucket_are_named_and_stay() {
    let mut world = World::new(6);
    let mut other = world.model.record();
    (other.info.id, other.info.name) = (BucketId(8), "c".into());
    world.store().apply_catalog(2, &[other], &[]).expect("another bucket");
    (0..5).for_each(|_| world.commit());
    world.store = None;
    let fs = &*world.env.fs;
    let (mut file, mut contents) = source_manifest::open(fs, Path::new(DIR)).expect("a manifest");
    for entry in contents.buckets.values_mut() {
        entry.directory = 1 - entry.directory;
    }
    file.write(fs, &contents).expect("exchanged");
    let found = recover(&world.env, Path::new(DIR), &small(), &[]).expect("it ends");
    for bucket in found {
        let RecoveryOutcome::Unsaved(error) = bucket.outcome else { panic!("{bucket:?}") };
        assert!(error.hint.is_some_and(|hint| hint.contains("back as they were")));
    }
}

/// A crash interrupts each operation of the recovery in turn: the next attempt finds the old bucket
/// or the new one.
#[test]
fn a_recovery_that_a_crash_cuts_short_begins_again() {
    let mut cut_short = 0;
    for crash_at in 0..80 {
        let mut world = closed(11);
        let last = files(&world, "log")
            .into_iter()
            .filter(|p| p.extension().is_some_and(|e| e == "log"))
            .max()
            .expect("a segment");
        let used =
            scan_segment(&*world.env.fs, &last, &mut |_, _| ()).expect("its records").used_bytes();
        let file = world.env.fs.open(&last, OpenMode::ReadWrite).expect("it");
        file.set_len(used - 30).expect("cut");
        file.sync().expect("durable");
        world.fs.crash_at(world.fs.operations() + crash_at * 3);
        cut_short += u64::from(recover(&world.env, Path::new(DIR), &small(), &[]).is_err());
        world.fs.crash();
        world.fs.restart();
        let found = recovered(&world);
        check(&mut world, &found);
        while world.store().maintain().expect("maintained") {}
        let left = world.env.fs.list(&Path::new(DIR).join("buckets")).expect("directories");
        assert_eq!(left.len(), 2, "the old one and the new one: {left:?}");
    }
    assert!(cut_short > 30, "{cut_short}");
}

/// The buckets of each commit of these tests.
const OVER: [BucketId; 2] = [BUCKET, BucketId(9)];

/// A bucket whose log contains commits over two buckets.
struct JointLog {
    world: World,
    ends: [u64; VBUCKETS as usize],
}

impl JointLog {
    fn new() -> Self {
        Self { world: World::new(1), ends: Default::default() }
    }

    fn log(&self, batch: Batch) {
        self.world.store().commit(BUCKET, batch).expect("logged");
    }

    /// Logs a commit that changes one document of the bucket.
    fn committed(&mut self, n: u64) {
        let id = format!("d{n}");
        let vbucket = vbucket_of(&id, VBUCKETS);
        let end = &mut self.ends[usize::from(vbucket.0)];
        *end += 1;
        let position = Position { vbuuid: Vbuuid(7), seqno: Seqno(*end) };
        let document = Bytes::from_static(b"{}");
        let changed = (vbucket, position.seqno);
        let mutation = Mutation::new(changed, Arc::from(id), MutationKind::Upsert, document);
        let committed = CommittedTransaction {
            transaction: TransactionId(n),
            affected: 1,
            positions: vec![(vbucket, position)],
        };
        let joint = JointCommit { committed, participants: OVER.to_vec() };
        let commits = vec![TransactionEvent::Opened(OpenCommit::Joint(joint))];
        let mutations = vec![Arc::new(mutation)];
        self.log(Batch { mutations, commits, ..Batch::default() });
    }

    fn prepared(&self, n: u64) {
        let changes = vec![PreparedChange { id: format!("d{n}").into(), document: None }];
        let (transaction, participants) = (TransactionId(n), OVER.to_vec());
        let prepared = Arc::new(PreparedTransaction { transaction, participants, changes });
        let commits = vec![TransactionEvent::Prepared(prepared)];
        self.log(Batch { commits, ..Batch::default() });
    }

    fn end(&self, event: TransactionEvent) {
        self.log(Batch { commits: vec![event], ..Batch::default() });
    }

    /// Returns the path of the only segment of the log, and its used bytes.
    fn segment(&self) -> (PathBuf, u64) {
        let all = files(&self.world, "log");
        let of_log = all
            .into_iter()
            .find(|path| scan_segment(&*self.world.env.fs, path, &mut |_, _| ()).is_ok());
        let path = of_log.expect("a segment");
        let used = scan_segment(&*self.world.env.fs, &path, &mut |_, _| ()).expect("a segment");
        (path, used.used_bytes())
    }
}

fn lost(n: u64, was_committed: bool) -> LostCommit {
    LostCommit { transaction: TransactionId(n), participants: OVER.to_vec(), was_committed }
}

/// Returns a log whose third group is damaged: earlier groups are kept, and later groups are lost.
fn damaged_after_two() -> World {
    let mut log = JointLog::new();
    log.committed(1);
    log.prepared(2);
    let (path, damaged_at) = log.segment();
    log.committed(3);
    // This transaction was prepared before the damage, so it is still prepared, and ends again.
    log.committed(2);
    log.committed(4);
    log.end(TransactionEvent::Settled(CommitId::Joint(TransactionId(4))));
    log.prepared(5);
    log.prepared(6);
    log.end(TransactionEvent::RolledBack(TransactionId(6)));
    let JointLog { mut world, .. } = log;
    world.store = None;
    let file = world.env.fs.open(&path, OpenMode::ReadWrite).expect("a file");
    let mut byte = [0];
    file.read_exact_at(&mut byte, damaged_at + 40).expect("a byte");
    byte[0] ^= 1;
    file.write_all_at(&byte, damaged_at + 40).expect("flipped");
    world
}

#[test]
fn recovery_reports_lost_joint_commits() {
    let world = damaged_after_two();
    let found = recover(&world.env, Path::new(DIR), &small(), &[]).expect("recovered").remove(0);
    assert!(matches!(found.outcome, RecoveryOutcome::MadeAgain { .. }), "{found:?}");
    assert_eq!(found.commits, [lost(4, true), lost(5, false)]);
    let mut world = world;
    world.open();
    let record = world.store().all().remove(0).1.record();
    let commits = record.commits;
    assert!(commits.find_joint(TransactionId(1)).is_some(), "what is left is known as before");
    assert!(commits.find_prepared(TransactionId(2)).is_some() && commits.prepared().len() == 1);
}

#[test]
fn giving_up_a_bucket_reports_its_joint_commits() {
    let world = damaged_after_two();
    let give_up = ["b".to_owned()];
    let found = recover(&world.env, Path::new(DIR), &small(), &give_up).expect("recovered");
    assert!(matches!(found[0].outcome, RecoveryOutcome::GivenUp(_)));
    let all = [lost(1, true), lost(2, true), lost(4, true), lost(5, false)];
    assert_eq!(found[0].commits, all);
}
