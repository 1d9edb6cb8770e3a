//! Tests of the changes of prepared transactions: the log has them once, a checkpoint contains
//! their place, and every opening finds them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use proto::ErrorCode;
use proto::env::OpenMode;
use proto::model::commits::{CommittedTransaction, NewestCommits, TransactionEvent};
use proto::model::ids::{BucketId, Seqno, TransactionId, VbucketId};
use proto::model::joint::{JointCommit, PreparedChange, PreparedTransaction};
use proto::model::open_commit::OpenCommit;

use super::crashes::{BUCKET, World};
use super::{open_whole, small};
use crate::document_store::{Batch, DocumentStore};
use crate::store::bucket_store::BucketStore;
use crate::store::checkpoint::{CHECKPOINT_FILE, Checkpoint};
use crate::store::paired_file::{PairedFile, inspect};
use crate::store::{LostCommit, RecoveryOutcome, recover, verify};
use storage::log::{SEGMENT_OVERHEAD_BYTES, segment_path};

const DIR: &str = "/data";
const BUCKET_DIR: &str = "/data/buckets/00000000";
const CHANGES: usize = 200;

fn prepared(n: u64) -> Arc<PreparedTransaction> {
    let change = |at: usize| PreparedChange {
        id: format!("p{n}-{at:04}").into(),
        document: (!at.is_multiple_of(5)).then(|| Bytes::from(format!("{{\"n\":{n}}}"))),
    };
    Arc::new(PreparedTransaction {
        transaction: TransactionId(n),
        participants: vec![BucketId(0), BUCKET],
        changes: (0..CHANGES).map(change).collect(),
    })
}

fn joint(n: u64) -> TransactionEvent {
    let committed =
        CommittedTransaction { transaction: TransactionId(n), affected: 0, positions: Vec::new() };
    let joint = JointCommit { committed, participants: vec![BucketId(0), BUCKET] };
    TransactionEvent::Opened(OpenCommit::Joint(joint))
}

fn checkpoint(world: &World) -> Checkpoint {
    inspect(&*world.env.fs, Path::new(BUCKET_DIR), CHECKPOINT_FILE).0.expect("a checkpoint")
}

impl World {
    fn step(&self, event: TransactionEvent) {
        let batch = Batch { commits: vec![event], ..Batch::default() };
        self.store().commit(BUCKET, batch).expect("logged");
    }

    fn bucket(&self) -> Arc<BucketStore> {
        Arc::clone(&self.store().all()[0].1)
    }

    /// Commits so many changes that the log grows by many segments, purges all of it, and flushes.
    fn go_on(&mut self) {
        (0..60).for_each(|_| self.commit());
        let ends = self.bucket().ends();
        let all: Vec<(VbucketId, Seqno)> = (0..).map(VbucketId).zip(ends.iter().copied()).collect();
        self.store().purge(BUCKET, &all).expect("purged");
        self.model.purged = ends.iter().map(|end| end.0).collect::<Vec<_>>().try_into().unwrap();
        self.commit();
        while self.bucket().flush().expect("flushed") {}
        while self.store().maintain().expect("maintained") {}
    }

    fn commits(&self) -> NewestCommits {
        self.bucket().record().commits
    }

    fn is_prepared(&self, n: u64) -> bool {
        let commits = self.commits();
        let found = commits.find_prepared(TransactionId(n));
        assert!(found.is_none_or(|found| *found == prepared(n)), "all of it or nothing");
        found.is_some()
    }

    fn oldest_segment(&self) -> u64 {
        self.bucket().log.segments()[0]
    }
}

#[test]
fn a_checkpoint_has_no_prepared_changes_and_the_log_keeps_them_until_the_transaction_ends() {
    let mut world = World::new(1);
    world.go_on();
    world.step(TransactionEvent::Prepared(prepared(7)));
    let place = world.bucket().log.end();
    world.go_on();
    let found = checkpoint(&world);
    assert!(found.log.from > place + 8_192, "segments lie between");
    let hollow = found.record.commits.find_prepared(TransactionId(7)).cloned();
    assert_eq!(hollow.expect("it is named").changes, [], "its changes are in the log alone");
    assert!(world.oldest_segment() < place, "and the log keeps them");
    for _ in 0..2 {
        world.store = None;
        world.open();
        assert!(world.is_prepared(7));
        world.go_on();
    }
    world.step(joint(7));
    world.go_on();
    assert!(!world.is_prepared(7));
    assert!(world.oldest_segment() > place, "nobody needs them any more");
    world.store = None;
    assert_eq!(verify(&world.env, Path::new(DIR)).findings, []);
    world.open();
    assert!(!world.is_prepared(7) && world.commits().find(TransactionId(7)).is_some());
}

#[test]
fn replay_finds_all_prepared_transactions() {
    let mut world = World::new(2);
    world.step(TransactionEvent::Prepared(prepared(1)));
    world.go_on();
    world.step(TransactionEvent::Prepared(prepared(2)));
    // A record names the places of both.
    let record = world.bucket().record();
    world.store().put_records(&[record]).expect("stored");
    world.step(TransactionEvent::Prepared(prepared(3)));
    world.step(TransactionEvent::RolledBack(TransactionId(2)));
    world.store = None;
    world.open();
    assert_eq!([1, 2, 3].map(|n| world.is_prepared(n)), [true, false, true]);
}

#[test]
fn a_record_of_another_copy_brings_its_prepared_changes() {
    let mut world = World::new(3);
    world.step(TransactionEvent::Prepared(prepared(1)));
    let mut record = world.bucket().record();
    record.commits = NewestCommits::default();
    // The other copy has prepared other changes under the number.
    let mut other = (*prepared(1)).clone();
    other.changes.truncate(3);
    let other = Arc::new(other);
    record.commits.apply_event(&TransactionEvent::Prepared(Arc::clone(&other)));
    record.commits.apply_event(&TransactionEvent::Prepared(prepared(2)));
    world.store().put_records(&[record]).expect("stored");
    for _ in 0..2 {
        assert!(world.is_prepared(2));
        let commits = world.commits();
        assert_eq!(commits.find_prepared(TransactionId(1)), Some(&other));
        world.store = None;
        world.open();
    }
}

#[test]
fn prepared_changes_do_not_retain_a_long_log() {
    let mut world = World::new(4);
    world.step(TransactionEvent::Prepared(prepared(7)));
    let place = world.bucket().log.end();
    (0..6).for_each(|_| world.go_on());
    assert!(world.oldest_segment() > place, "its changes were written again");
    let held = world.bucket().log.retained_bytes();
    assert!(held < 150_000, "{held} bytes");
    world.store = None;
    world.open();
    assert!(world.is_prepared(7));
}

/// Prepared transactions may be larger together than the distance in the log after which each is
/// written again.
#[test]
fn many_transactions_that_wait_are_not_written_again_with_each_group() {
    let mut world = World::new(6);
    (1..=24).for_each(|n| world.step(TransactionEvent::Prepared(prepared(n))));
    let (begin, mut written) = (world.bucket().log.end(), 0);
    let one = (begin - world.bucket().log.segments()[0]) / 24;
    for _ in 0..600 {
        let before = world.bucket().log.end();
        world.commit();
        let of_group = world.bucket().log.end() - before;
        assert!(of_group < 2 * one, "{of_group} bytes of a group: more than one was written again");
        written += u64::from(of_group > one);
    }
    let end = world.bucket().log.end();
    let shares = (end - begin) / one;
    assert!(written * 2 < shares, "{written} were written again among {shares} times their size");
    assert!((1..=24).all(|n| world.is_prepared(n)));
}

#[test]
fn old_checkpoint_with_prepared_changes_is_read() {
    let mut world = World::new(5);
    world.go_on();
    world.store = None;
    let (mut file, found) =
        PairedFile::open::<Checkpoint>(&*world.env.fs, Path::new(BUCKET_DIR), CHECKPOINT_FILE)
            .expect("opened");
    let mut earlier = found.expect("a checkpoint");
    earlier.record.commits.apply_event(&TransactionEvent::Prepared(prepared(7)));
    file.write(&*world.env.fs, &earlier).expect("written");
    world.open();
    assert!(world.is_prepared(7));
    world.go_on();
    let hollow = checkpoint(&world).record.commits.find_prepared(TransactionId(7)).cloned();
    assert_eq!(hollow.expect("it is named").changes, []);
    world.store = None;
    world.open();
    assert!(world.is_prepared(7));
}

/// Damages a byte of a log at or after the LSN `at`. Returns the segment's path.
fn damage(world: &World, segments: &[u64], at: u64) -> PathBuf {
    let base = *segments.iter().rfind(|base| **base <= at).expect("a segment");
    let path = segment_path(&Path::new(BUCKET_DIR).join("log"), base);
    let file = world.env.fs.open(&path, OpenMode::ReadWrite).expect("a file");
    file.write_all_at(b"#", at - base + SEGMENT_OVERHEAD_BYTES).expect("damaged");
    path
}

fn lost(was_committed: bool) -> LostCommit {
    let (transaction, participants) = (TransactionId(7), vec![BucketId(0), BUCKET]);
    LostCommit { transaction, participants, was_committed }
}

#[test]
fn recovery_reports_commit_with_damaged_changes() {
    let mut world = World::new(6);
    world.step(TransactionEvent::Prepared(prepared(7)));
    world.step(TransactionEvent::Prepared(prepared(8)));
    world.go_on();
    let place = checkpoint(&world).places.get(TransactionId(7)).expect("a place");
    let segments = world.bucket().log.segments();
    world.store = None;
    let path = damage(&world, &segments, place.item + 100);
    let error = open_whole(&world.env, Path::new(DIR)).map(drop).expect_err("damaged");
    assert_eq!(error.code, ErrorCode::Corrupt);
    assert!(error.message.contains(&path.display().to_string()), "{error}");
    let found = recover(&world.env, Path::new(DIR), &small(), &[]).expect("recovered").remove(0);
    assert!(matches!(found.outcome, RecoveryOutcome::MadeAgain { .. }), "{:?}", found.outcome);
    assert_eq!(found.commits, [lost(false)]);
    world.open();
    assert_eq!([7, 8].map(|n| world.is_prepared(n)), [false, true]);
}

/// The check of a directory reports a missing segment that is retained only because of prepared
/// changes.
#[test]
fn the_check_of_a_directory_names_prepared_changes_whose_segment_is_gone() {
    let mut world = World::new(6);
    world.step(TransactionEvent::Prepared(prepared(7)));
    world.go_on();
    let place = checkpoint(&world).places.get(TransactionId(7)).expect("a place");
    let segments = world.bucket().log.segments();
    world.store = None;
    assert_eq!(verify(&world.env, Path::new(DIR)).findings, []);
    for base in segments.iter().filter(|base| **base <= place.item) {
        let path = segment_path(&Path::new(BUCKET_DIR).join("log"), *base);
        world.env.fs.remove_file(&path).expect("removed");
    }
    let findings = verify(&world.env, Path::new(DIR)).findings;
    let is_named = |text: &str| text.contains("prepared transaction 7");
    assert!(findings.iter().any(|found| is_named(&found.message)), "{findings:?}");
    open_whole(&world.env, Path::new(DIR)).map(drop).expect_err("damaged");
}

#[test]
fn lost_commit_is_reported_once() {
    let mut world = World::new(6);
    world.step(TransactionEvent::Prepared(prepared(7)));
    world.go_on();
    let found = checkpoint(&world);
    let place = found.places.get(TransactionId(7)).expect("a place");
    (0..30).for_each(|_| world.commit());
    world.step(joint(7));
    assert_eq!(checkpoint(&world).log.from, found.log.from, "the commit is in the log alone");
    let segments = world.bucket().log.segments();
    world.store = None;
    for at in [place.item + 100, found.log.from + 40] {
        damage(&world, &segments, at);
    }
    let found = recover(&world.env, Path::new(DIR), &small(), &[]).expect("recovered").remove(0);
    assert!(matches!(found.outcome, RecoveryOutcome::MadeAgain { .. }), "{:?}", found.outcome);
    assert_eq!(found.commits, [lost(true)]);
}
