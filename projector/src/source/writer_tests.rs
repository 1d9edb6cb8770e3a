//! Tests of groups between their turns.

use bytes::Bytes;
use proto::ErrorCode;
use proto::model::assignment::VbucketSet;
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::ids::{Epoch, NodeId, Seqno, TransactionId, TransactionPlace, VbucketId, Vbuuid};
use proto::rpc::api::{Write, WriteKind};
use tokio::time::Instant;

use super::*;
use crate::source::{BucketRecord, MemoryStore};
use crate::transactions::limits::Limits;
use crate::transactions::open::WriteIn;
use crate::transactions::room::TransactionBudget;
use crate::transactions::snapshot::Snapshot;
use documents::ownership::Ownership;

const BUCKET: BucketId = BucketId(1);

struct World {
    store: Arc<MemoryStore>,
    bucket: Arc<Bucket>,
    writer: Arc<Writer>,
}

impl World {
    fn new() -> Self {
        let info = BucketInfo::new(BUCKET, "b", 1, SourceKind::Embedded, NodeId(1));
        let ownership = Ownership { owned: VbucketSet::all(1), ..Ownership::default() };
        let branches = vec![vec![(Vbuuid(5), 0)]];
        let record = BucketRecord {
            info,
            branches,
            ownership,
            given_up: Default::default(),
            commits: Default::default(),
        };
        let store = Arc::new(MemoryStore::default());
        store.apply_catalog(1, std::slice::from_ref(&record), &[]).expect("a bucket");
        let bucket = Arc::new(Bucket::new(record, &[Seqno(0)], 1 << 20));
        bucket.open();
        let writer = Arc::new(Writer {
            store: Arc::clone(&store) as Arc<dyn DocumentStore>,
            failed: Arc::default(),
            showing: Mutex::default(),
            large_commit_changes: u64::MAX,
            on_change: Box::new(|_| ()),
        });
        Self { store, bucket, writer }
    }

    fn job(&self, id: &str, kind: WriteKind) -> (Job, oneshot::Receiver<Result<WriteReply>>) {
        let (reply, answer) = oneshot::channel();
        let writes = CheckedWrites::new(vec![Write { id: id.into(), kind }], 100).expect("valid");
        (Job { bytes: 1, work: Work::Write(writes, reply), room: None }, answer)
    }

    fn end(&self) -> u64 {
        self.bucket.durable().get(VbucketId(0)).seqno.0
    }
}

fn document() -> Bytes {
    Bytes::from_static(b"1")
}

/// The seqno of an answered write.
fn seqno(mut answer: oneshot::Receiver<Result<WriteReply>>) -> Result<u64> {
    let reply = answer.try_recv().expect("an answer")?;
    Ok(reply.position.positions.first().map_or(0, |(_, position)| position.seqno.0))
}

#[test]
fn group_is_numbered_after_unpublished_groups() {
    let world = World::new();
    let (insert, mut inserted) = world.job("a", WriteKind::Insert(document()));
    assert_eq!(world.writer.log_group(&world.bucket, vec![insert]).0, 1);
    let (again, refused) = world.job("a", WriteKind::Insert(document()));
    let (upsert, upserted) = world.job("b", WriteKind::Upsert(document()));
    let (delete, deleted) = world.job("a", WriteKind::Delete);
    assert_eq!(world.writer.log_group(&world.bucket, vec![again, upsert, delete]).0, 2);
    let (anew, inserted_anew) = world.job("a", WriteKind::Insert(document()));
    assert_eq!(world.writer.log_group(&world.bucket, vec![anew]).0, 3);
    assert!(inserted.try_recv().is_err(), "no answer before a reader sees the write");
    assert_eq!((world.store.contains(BUCKET, "a"), world.end()), (Ok(false), 0));
    world.bucket.gate.show_waiting();
    assert_eq!(seqno(inserted), Ok(1));
    assert_eq!(seqno(refused).map_err(|error| error.code), Err(ErrorCode::DuplicateId));
    assert_eq!((seqno(upserted), seqno(deleted), seqno(inserted_anew)), (Ok(2), Ok(3), Ok(4)));
    assert_eq!((world.store.contains(BUCKET, "a"), world.end()), (Ok(true), 4));
}

#[test]
fn closed_gate_has_no_unpublished_group() {
    let world = World::new();
    let (upsert, upserted) = world.job("a", WriteKind::Upsert(document()));
    world.writer.log_group(&world.bucket, vec![upsert]);
    let closed = world.bucket.gate.close();
    assert_eq!((world.store.contains(BUCKET, "a"), world.end()), (Ok(true), 1));
    assert_eq!(seqno(upserted), Ok(1));
    drop(closed);
    let (delete, deleted) = world.job("a", WriteKind::Delete);
    world.writer.log_group(&world.bucket, vec![delete]);
    world.bucket.gate.show_waiting();
    assert_eq!(seqno(deleted), Ok(2));
}

#[test]
fn failed_sync_fails_its_group_and_later_ones() {
    let world = World::new();
    let (first, written) = world.job("a", WriteKind::Upsert(document()));
    world.writer.log_group(&world.bucket, vec![first]);
    world.store.fail_next_sync();
    let (second, failed) = world.job("b", WriteKind::Upsert(document()));
    let (third, behind) = world.job("c", WriteKind::Upsert(document()));
    world.writer.log_group(&world.bucket, vec![second]);
    world.writer.log_group(&world.bucket, vec![third]);
    world.bucket.gate.show_waiting();
    assert_eq!(seqno(written), Ok(1));
    assert!(seqno(failed).is_err() && seqno(behind).is_err());
    assert_eq!(world.end(), 1, "nothing of them is published");
}

#[test]
fn a_thread_that_must_not_wait_shows_small_groups_in_their_order() {
    let world = World::new();
    let log = |id: &str, bytes: usize| {
        let (job, answer) = world.job(id, WriteKind::Upsert(document()));
        world.writer.log_group(&world.bucket, vec![Job { bytes, ..job }]);
        answer
    };
    let gate = &world.bucket.gate;
    assert!(gate.show_small(), "nothing waits");
    let (small, large, behind) = (log("a", 10), log("b", SMALL_BYTES_MAX + 1), log("c", 10));
    let held = gate.hold_publication();
    assert!(!gate.show_small(), "another thread shows");
    drop(held);
    assert!(!gate.show_small(), "a large group is left");
    assert_eq!((seqno(small), world.end()), (Ok(1), 1));
    gate.show_waiting();
    assert_eq!((seqno(large), seqno(behind)), (Ok(2), Ok(3)));
}

#[test]
fn a_thread_that_must_not_wait_shows_few_groups_at_once() {
    let world = World::new();
    let mut answers = Vec::new();
    for n in 0..6 {
        let (job, answer) = world.job(&format!("d{n}"), WriteKind::Upsert(document()));
        world.writer.log_group(&world.bucket, vec![job]);
        answers.push(answer);
    }
    assert!(!world.bucket.gate.show_small());
    assert_eq!(world.end(), 4);
    assert!(world.bucket.gate.show_small());
    assert_eq!(world.end(), 6);
}

/// A transaction that has written one document and is being committed.
fn committing(
    world: &World,
    id: u64,
    kind: WriteKind,
    snapshot: Option<Snapshot>,
) -> CommitInProgress {
    let (transactions, now) = (&world.bucket.transactions, Instant::now());
    let limits = Limits { bytes_max: 1000, open_max: 10, room: TransactionBudget::new(1000) };
    // Only a deletion of an existing document has an effect.
    let is_there = kind == WriteKind::Delete;
    let writes = CheckedWrites::new(vec![Write { id: "a".into(), kind }], 100).expect("valid");
    let request = WriteIn {
        at: (TransactionId(id), TransactionPlace(0)),
        owner: "somebody",
        snapshot: snapshot.clone(),
        writes: &writes,
        known: &[("a".to_owned(), is_there)].into(),
        behind: 0,
    };
    transactions.write(&world.bucket.info, request, &limits, now).expect("written");
    let at = (TransactionId(id), TransactionPlace(1));
    transactions.commit(at, snapshot, (now, u64::MAX)).expect("open").expect("changes")
}

fn commit_of(committing: CommitInProgress) -> (Job, oneshot::Receiver<Result<WriteReply>>) {
    let (reply, answer) = oneshot::channel();
    (Job { bytes: 1, work: Work::Commit(Box::new(committing), reply), room: None }, answer)
}

/// The commit of a transaction that has written one document.
fn commit_job(
    world: &World,
    id: u64,
    kind: WriteKind,
    snapshot: Option<Snapshot>,
) -> (Job, oneshot::Receiver<Result<WriteReply>>) {
    commit_of(committing(world, id, kind, snapshot))
}

#[test]
fn commit_is_checked_against_unpublished_groups() {
    let upsert = || WriteKind::Upsert(document());
    let at_begin = || Some(Snapshot { epoch: Epoch(1), seqnos: Arc::new([Seqno(0)]) });
    let behind_it = || Some(Snapshot { epoch: Epoch(2), seqnos: Arc::new([Seqno(1)]) });
    for (kind, snapshot, expected) in [
        (upsert(), at_begin(), Err(ErrorCode::Conflict)),
        (upsert(), behind_it(), Ok(2)),
        (upsert(), None, Ok(2)),
        (WriteKind::Insert(document()), None, Err(ErrorCode::DuplicateId)),
    ] {
        let world = World::new();
        let (first, won) = commit_job(&world, 1, upsert(), at_begin());
        let (second, answer) = commit_job(&world, 2, kind, snapshot);
        world.writer.log_group(&world.bucket, vec![first]);
        world.writer.log_group(&world.bucket, vec![second]);
        assert_eq!((world.store.contains(BUCKET, "a"), world.end()), (Ok(false), 0));
        world.bucket.gate.show_waiting();
        assert_eq!(seqno(won), Ok(1));
        assert_eq!(seqno(answer).map_err(|error| error.code), expected);
    }
}

/// A large commit looks its documents up before it is numbered. A group that is in the log, and not
/// yet in the document table, then changes one of them.
#[test]
fn look_up_is_stale_after_unpublished_groups() {
    let upsert = || WriteKind::Upsert(document());
    let at_begin = || Some(Snapshot { epoch: Epoch(1), seqnos: Arc::new([Seqno(0)]) });
    let insert = || WriteKind::Insert(document());
    let deletes = WriteKind::Delete;
    // Each case has the documents before, the commit and its snapshot, the write of another session meanwhile, and the end of the bucket.
    for (before, kind, snapshot, other, expected) in [
        (None, upsert(), at_begin(), upsert(), Err(ErrorCode::Conflict)),
        (None, insert(), None, upsert(), Err(ErrorCode::DuplicateId)),
        (None, insert(), at_begin(), upsert(), Err(ErrorCode::Conflict)),
        (Some(upsert()), deletes, None, WriteKind::Delete, Ok(2)),
    ] {
        let world = World::new();
        if let Some(kind) = before {
            world.writer.log_group(&world.bucket, vec![world.job("a", kind).0]);
            world.bucket.gate.show_waiting();
        }
        let mut committing = committing(&world, 1, kind, snapshot);
        let looked_up = commit::look_up(&*world.store, &world.bucket, &committing);
        committing.looked_up = Some(looked_up.expect("nobody has changed it yet"));
        world.writer.log_group(&world.bucket, vec![world.job("a", other).0]);
        let (job, answer) = commit_of(committing);
        world.writer.log_group(&world.bucket, vec![job]);
        world.bucket.gate.show_waiting();
        let ended = seqno(answer).map(|_| world.end()).map_err(|error| error.code);
        assert_eq!(ended, expected);
    }
}
