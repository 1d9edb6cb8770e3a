//! A naive model of a change log, which shares no code with the log.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::cut::Position;
use proto::model::ids::{
    BucketId, NodeId, ProducerTransactionId, Seqno, TransactionId, VbucketId, Vbuuid,
};
use proto::rpc::mutation::MutationKind;

use crate::change_log::*;
use crate::document_store::StoredDocument;
use crate::mutation::Mutation;
use crate::ownership::Ownership;
use crate::record::BucketRecord;
use proto::model::commits::{CommittedTransaction, NewestCommits, TransactionEvent};
use proto::model::joint::{JointCommit, PreparedChange, PreparedTransaction};
use proto::model::open_commit::{CommitId, OpenCommit};
use proto::model::pushed_commit::{PushedCommit, PushedPart};

pub(super) const VBUCKETS: u16 = 4;

/// An event that is applied to the log and to the model.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Op {
    Mutation { vbucket: u16, vbuuid: u64, seqno: u64, id: String, document: Option<Vec<u8>> },
    Record(u64),
    Rewind(u16, u64),
    Remove(u16),
    Begin(u16, u64),
    Documents(u16, Vec<(String, u64, Vec<u8>)>),
    Purge(Vec<(u16, u64)>),
    Transaction(u64),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ModelVbucket {
    /// The seqno up to which entries are unknown.
    pub(super) absent: u64,
    pub(super) purged: u64,
    pub(super) end: u64,
    /// All entries after `absent`, including purged ones.
    pub(super) entries: BTreeMap<u64, (String, Option<Vec<u8>>)>,
}

impl ModelVbucket {
    pub(super) fn bytes_to(&self, to: u64) -> u64 {
        let to = to.min(self.end).max(self.purged);
        let sizes = self.entries.range(..=to).map(|(_, (id, document))| {
            24 + id.len() as u64 + document.as_ref().map_or(0, |document| document.len() as u64)
        });
        sizes.sum()
    }
}

/// The state of all vbuckets at one moment.
pub(super) type Model = Vec<ModelVbucket>;

pub(super) fn apply(model: &mut Model, op: &Op) {
    match op {
        Op::Mutation { vbucket, seqno, id, document, .. } => {
            let of = &mut model[usize::from(*vbucket)];
            assert_eq!(of.end + 1, *seqno);
            of.entries.insert(*seqno, (id.clone(), document.clone()));
            of.end = *seqno;
        }
        Op::Rewind(vbucket, 0) | Op::Remove(vbucket) => {
            model[usize::from(*vbucket)] = ModelVbucket::default();
        }
        Op::Rewind(vbucket, to) => {
            let of = &mut model[usize::from(*vbucket)];
            of.entries.split_off(&(to + 1));
            of.end = *to;
        }
        Op::Begin(vbucket, purged) => {
            let (absent, purged, end) = (*purged, *purged, *purged);
            let entries = BTreeMap::new();
            model[usize::from(*vbucket)] = ModelVbucket { absent, purged, end, entries };
        }
        Op::Purge(points) => {
            for (vbucket, to) in points {
                let of = &mut model[usize::from(*vbucket)];
                of.purged = (*to).min(of.end).max(of.purged);
            }
        }
        Op::Record(_) | Op::Documents(..) | Op::Transaction(_) => {}
    }
}

pub(super) fn record(n: u64) -> BucketRecord {
    let (id, name, projector) = (BucketId(n), format!("bucket {n}"), NodeId(1));
    BucketRecord {
        info: BucketInfo::new(id, name, VBUCKETS, SourceKind::Push, projector),
        branches: Vec::new(),
        ownership: Ownership::default(),
        given_up: BTreeMap::new(),
        commits: NewestCommits::default(),
    }
}

fn transaction(n: u64) -> TransactionEvent {
    let position = Position { vbuuid: Vbuuid(n), seqno: Seqno(n) };
    let (transaction, positions) = (TransactionId(n), vec![(VbucketId(1), position)]);
    let committed = CommittedTransaction { transaction, affected: n, positions };
    let participants = vec![BucketId(n), BucketId(n + 1)];
    let producers = ProducerTransactionId(n);
    match n % 7 {
        0 => TransactionEvent::Committed(committed),
        1 => {
            let joint = JointCommit { committed, participants };
            TransactionEvent::Opened(OpenCommit::Joint(joint))
        }
        2 => {
            let document = n.is_multiple_of(2).then(|| Bytes::from(vec![7; n as usize]));
            let changes = vec![PreparedChange { id: format!("id-{n}").into(), document }];
            TransactionEvent::Prepared(Arc::new(PreparedTransaction {
                transaction,
                participants,
                changes,
            }))
        }
        3 => TransactionEvent::RolledBack(transaction),
        4 => TransactionEvent::Settled(CommitId::Pushed(producers)),
        5 => {
            let part =
                |n| PushedPart { vbucket: VbucketId(n), after: Seqno(u64::from(n)), end: position };
            let parts = (0..n as u16 % 9).map(part).collect();
            let commit = PushedCommit { transaction: producers, parts };
            TransactionEvent::Opened(OpenCommit::Pushed(commit))
        }
        _ => TransactionEvent::Settled(CommitId::Joint(transaction)),
    }
}

fn number(id: CommitId) -> u64 {
    match id {
        CommitId::Joint(transaction) => transaction.0,
        CommitId::Pushed(transaction) => transaction.0,
    }
}

pub(super) fn add(group: &mut GroupBuilder, op: &Op) {
    match op {
        Op::Mutation { vbucket, vbuuid, seqno, id, document } => {
            let kind = match document {
                Some(_) => MutationKind::Upsert,
                None => MutationKind::Deletion,
            };
            let document = Bytes::from(document.clone().unwrap_or_default());
            let place = (VbucketId(*vbucket), Seqno(*seqno));
            let mutation = Mutation::new(place, id.as_str().into(), kind, document);
            group.mutation(Vbuuid(*vbuuid), &mutation);
        }
        Op::Record(n) => group.record(&record(*n), &PreparedPlaces::default()).unwrap(),
        Op::Rewind(vbucket, to) => group.rewind(VbucketId(*vbucket), Seqno(*to)),
        Op::Remove(vbucket) => group.remove(VbucketId(*vbucket)),
        Op::Begin(vbucket, purged) => group.begin(VbucketId(*vbucket), Seqno(*purged)),
        Op::Documents(vbucket, documents) => {
            let stored = documents.iter().map(|(id, seqno, document)| StoredDocument {
                id: id.clone(),
                seqno: Seqno(*seqno),
                document: document.clone().into(),
            });
            group.documents(VbucketId(*vbucket), &stored.collect::<Vec<_>>());
        }
        Op::Purge(points) => {
            let points = points.iter().map(|(vbucket, to)| (VbucketId(*vbucket), Seqno(*to)));
            group.purge(&points.collect::<Vec<_>>());
        }
        Op::Transaction(n) => group.transaction(&transaction(*n)).unwrap(),
    }
}

/// The operations of an event.
pub(super) fn ops_of(event: &LogEvent<'_>) -> Vec<Op> {
    match event {
        LogEvent::Run(run) => {
            let (vbucket, vbuuid) = (run.vbucket.0, run.vbuuid.0);
            let op = |mutation: RunMutation<'_>| Op::Mutation {
                vbucket,
                vbuuid,
                seqno: mutation.seqno.0,
                id: mutation.id.into(),
                document: (mutation.kind == MutationKind::Upsert)
                    .then(|| mutation.document.to_vec()),
            };
            run.mutations().map(|mutation| op(mutation.unwrap())).collect()
        }
        LogEvent::Record(found, _) => {
            let n = found.info.id.0;
            assert_eq!(**found, record(n));
            vec![Op::Record(n)]
        }
        LogEvent::Rewind { vbucket, to } => vec![Op::Rewind(vbucket.0, to.0)],
        LogEvent::Remove { vbucket } => vec![Op::Remove(vbucket.0)],
        LogEvent::Begin { vbucket, purged } => vec![Op::Begin(vbucket.0, purged.0)],
        LogEvent::Documents { vbucket, documents } => {
            let document = |document: &StoredDocument| {
                (document.id.clone(), document.seqno.0, document.document.to_vec())
            };
            vec![Op::Documents(vbucket.0, documents.iter().map(document).collect())]
        }
        LogEvent::Transaction(found) => {
            let n = match found {
                TransactionEvent::Committed(committed) => committed.transaction.0,
                TransactionEvent::Prepared(prepared) => prepared.transaction.0,
                TransactionEvent::RolledBack(id) => id.0,
                TransactionEvent::Opened(commit) => number(commit.id()),
                TransactionEvent::Settled(id) => number(*id),
            };
            assert_eq!(*found, transaction(n));
            vec![Op::Transaction(n)]
        }
        LogEvent::Purge { points } => {
            vec![Op::Purge(points.iter().map(|(vbucket, to)| (vbucket.0, to.0)).collect())]
        }
    }
}

/// Returns a group in the order of its items: mutations between two other items are ordered by
/// vbucket.
pub(super) fn ordered(ops: &[Op]) -> Vec<Op> {
    let mut ordered = Vec::new();
    for part in ops
        .chunk_by(|left, right| matches!((left, right), (Op::Mutation { .. }, Op::Mutation { .. })))
    {
        let mut part = part.to_vec();
        let firsts: Vec<u16> = part.iter().map(vbucket_of).collect();
        part.sort_by_key(|op| firsts.iter().position(|first| *first == vbucket_of(op)));
        ordered.extend(part);
    }
    ordered
}

fn vbucket_of(op: &Op) -> u16 {
    match op {
        Op::Mutation { vbucket, .. } => *vbucket,
        _ => u16::MAX,
    }
}

/// Compares a read with the model.
pub(super) fn check_range(
    of: &ModelVbucket,
    found: Vec<Arc<Mutation>>,
    after: u64,
    to: u64,
    bytes: usize,
) {
    let (after, to) = (after.max(of.purged), to.min(of.end));
    let expected = of.entries.iter().filter(|(seqno, _)| **seqno > after && **seqno <= to);
    let mut left = bytes.max(1);
    let expected = expected.take_while(|(_, (id, document))| {
        let more = left > 0;
        left = left.saturating_sub(id.len() + document.as_ref().map_or(0, Vec::len) + 1);
        more
    });
    let found = found.iter().map(|mutation| {
        let document = (mutation.kind == MutationKind::Upsert).then(|| mutation.document.to_vec());
        (mutation.seqno.0, (mutation.id.to_string(), document))
    });
    let expected: Vec<_> = expected.map(|(seqno, entry)| (*seqno, entry.clone())).collect();
    assert_eq!(found.collect::<Vec<_>>(), expected, "after {after} to {to}, {bytes} bytes");
}
