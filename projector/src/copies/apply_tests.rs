//! Tests of a copy that is rewound to the history of its leader.

use std::sync::Mutex;

use bytes::Bytes;
use proto::model::assignment::VbucketSet;
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::commits::{CommittedTransaction, TransactionEvent};
use proto::model::cut::{Cut, Position};
use proto::model::history::FailoverLogs;
use proto::model::ids::{BucketId, NodeId, TransactionId, Vbuuid};
use proto::model::joint::{JointCommit, PreparedChange, PreparedTransaction};
use proto::model::open_commit::OpenCommit;
use proto::rpc::mutation::MutationKind;

use super::*;
use crate::source::{DocumentStore, MemoryStore};
use documents::ownership::Ownership;

const BUCKET: BucketId = BucketId(2);
const V: VbucketId = VbucketId(0);
const TRANSACTION: TransactionId = TransactionId(7);

fn participants() -> Vec<BucketId> {
    vec![BucketId(1), BUCKET]
}

fn prepared() -> TransactionEvent {
    let changes = vec![PreparedChange { id: "a".into(), document: Some(Bytes::from_static(b"1")) }];
    let prepared =
        PreparedTransaction { transaction: TRANSACTION, participants: participants(), changes };
    TransactionEvent::Prepared(Arc::new(prepared))
}

fn finished(seqno: u64) -> TransactionEvent {
    let position = Position { vbuuid: Vbuuid(5), seqno: Seqno(seqno) };
    let committed = CommittedTransaction {
        transaction: TRANSACTION,
        affected: 1,
        positions: vec![(V, position)],
    };
    let joint = JointCommit { committed, participants: participants() };
    TransactionEvent::Opened(OpenCommit::Joint(joint))
}

fn commits(events: &[TransactionEvent]) -> NewestCommits {
    let mut commits = NewestCommits::default();
    events.iter().for_each(|event| commits.apply_event(event));
    commits
}

/// Returns a copy whose second mutation finishes a transaction; its leader lacks that mutation.
fn copy() -> (Writer, Arc<MemoryStore>, Bucket) {
    let record = BucketRecord {
        info: BucketInfo::new(BUCKET, "b", 1, SourceKind::Embedded, NodeId(1)),
        branches: vec![vec![(Vbuuid(5), 0)]],
        // This projector follows.
        ownership: Ownership::default(),
        given_up: Default::default(),
        commits: Default::default(),
    };
    let store = Arc::new(MemoryStore::default());
    store.apply_catalog(1, std::slice::from_ref(&record), &[]).expect("a bucket");
    let bucket = Bucket::new(record, &[Seqno(0)], 1 << 20);
    let writer = Writer {
        store: Arc::clone(&store) as Arc<dyn DocumentStore>,
        failed: Arc::default(),
        showing: Mutex::default(),
        large_commit_changes: u64::MAX,
        on_change: Box::new(|_| ()),
    };
    let mutation = |seqno, id: &str| {
        let document = Bytes::from_static(b"1");
        Arc::new(Mutation::new((V, Seqno(seqno)), Arc::from(id), MutationKind::Upsert, document))
    };
    let mutations = vec![mutation(1, "x"), mutation(2, "a")];
    let batch = Batch { mutations, commits: vec![prepared(), finished(2)], ..Batch::default() };
    store.commit(BUCKET, batch.clone()).expect("stored");
    bucket.add_copied_mutations(&batch.mutations, &batch.commits);
    (writer, store, bucket)
}

fn leader(end: u64) -> SourceHistory {
    SourceHistory {
        durable: Cut::from_positions(vec![Position { vbuuid: Vbuuid(5), seqno: Seqno(end) }]),
        logs: Arc::new(FailoverLogs::new(vec![vec![(Vbuuid(5), 0)]])),
        kept: VbucketSet::all(1),
    }
}

fn stored(store: &MemoryStore) -> NewestCommits {
    store.buckets().expect("buckets").remove(0).0.commits
}

#[test]
fn rewind_past_its_end_prepares_a_transaction_again() {
    let (writer, store, bucket) = copy();
    let of_leader = commits(&[prepared()]);
    writer.rewind_copy(&bucket, (&leader(1), &of_leader), false).expect("back");
    assert_eq!(bucket.durable().get(V).seqno, Seqno(1));
    // The copy may lead before its next step.
    for commits in [stored(&store), bucket.commits()] {
        assert!(commits.find_prepared(TRANSACTION).is_some(), "{commits:?}");
        assert!(commits.find_joint(TRANSACTION).is_none());
    }
}

#[test]
fn rewind_stores_no_commit_without_its_mutations() {
    let (writer, store, bucket) = copy();
    // The leader has finished the transaction again, after a mutation that the copy lacks.
    let of_leader = commits(&[prepared(), finished(3)]);
    writer.rewind_copy(&bucket, (&leader(1), &of_leader), false).expect("back");
    for commits in [stored(&store), bucket.commits()] {
        assert!(commits.find(TRANSACTION).is_none(), "{commits:?}");
    }
}
