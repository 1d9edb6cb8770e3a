//! Groups between their turns.

use bytes::Bytes;
use proto::ErrorCode;
use proto::model::assignment::VbucketSet;
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::ids::{NodeId, Seqno, VbucketId, Vbuuid};
use proto::rpc::api::{Write, WriteKind};

use super::*;
use crate::source::{BucketRecord, MemoryStore};
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
        let record = BucketRecord { info, branches, ownership, given_up: Default::default() };
        let store = Arc::new(MemoryStore::default());
        store.apply_catalog(1, std::slice::from_ref(&record), &[]).expect("a bucket");
        let bucket = Arc::new(Bucket::new(record, &[Seqno(0)], 1 << 20));
        bucket.open();
        let writer = Arc::new(Writer {
            store: Arc::clone(&store) as Arc<dyn DocumentStore>,
            failed: Arc::default(),
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
fn a_group_is_numbered_and_checked_behind_those_that_nobody_sees_yet() {
    let world = World::new();
    let (insert, mut inserted) = world.job("a", WriteKind::Insert(document()));
    assert_eq!(world.writer.log_group(&world.bucket, vec![insert]), 1);
    let (again, refused) = world.job("a", WriteKind::Insert(document()));
    let (upsert, upserted) = world.job("b", WriteKind::Upsert(document()));
    let (delete, deleted) = world.job("a", WriteKind::Delete);
    assert_eq!(world.writer.log_group(&world.bucket, vec![again, upsert, delete]), 2);
    let (anew, inserted_anew) = world.job("a", WriteKind::Insert(document()));
    assert_eq!(world.writer.log_group(&world.bucket, vec![anew]), 3);
    assert!(inserted.try_recv().is_err(), "no answer before a reader sees the write");
    assert_eq!((world.store.contains(BUCKET, "a"), world.end()), (Ok(false), 0));
    world.bucket.gate.show_waiting();
    assert_eq!(seqno(inserted), Ok(1));
    assert_eq!(seqno(refused).map_err(|error| error.code), Err(ErrorCode::DuplicateId));
    assert_eq!((seqno(upserted), seqno(deleted), seqno(inserted_anew)), (Ok(2), Ok(3), Ok(4)));
    assert_eq!((world.store.contains(BUCKET, "a"), world.end()), (Ok(true), 4));
}

#[test]
fn a_closed_gate_has_no_group_on_its_way() {
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
fn a_failed_sync_fails_its_group_and_those_behind_it_and_none_before_it() {
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
    let held = gate.shown();
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
