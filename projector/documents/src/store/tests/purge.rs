//! Purged logs in both stores, compared with a model that never purges.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use proto::ErrorCode;
use proto::model::assignment::VbucketSet;
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::ids::{BucketId, NodeId, Seqno, VbucketId, Vbuuid, vbucket_of};
use proto::rpc::mutation::MutationKind;

use super::small;
use crate::MemoryStore;
use crate::document_store::*;
use crate::mutation::Mutation;
use crate::ownership::Ownership;
use crate::record::BucketRecord;
use crate::store::DiskStore;

const BUCKET: BucketId = BucketId(7);
const VBUCKETS: u16 = 2;

#[derive(Clone, Debug)]
enum Step {
    /// Upserts documents by number and length; without a length, deletes them.
    Commit(Vec<(u8, Option<u8>)>),
    /// Purges a percentage of each vbucket's log.
    Purge([u8; VBUCKETS as usize]),
    /// Rewinds a vbucket to a percentage of its log.
    Rewind(u16, u8),
    /// Removes a vbucket and copies it back by its documents and its log, from its purge point.
    Copy(u16),
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let change = (0..12u8, proptest::option::weighted(0.8, 0..60u8));
    let step = prop_oneof![
        6 => proptest::collection::vec(change, 1..8).prop_map(Step::Commit),
        3 => [0..120u8, 0..120u8].prop_map(Step::Purge),
        2 => (0..VBUCKETS, prop_oneof![Just(0), 0..101u8]).prop_map(|(v, n)| Step::Rewind(v, n)),
        2 => (0..VBUCKETS).prop_map(Step::Copy),
        1 => Just(Step::Reopen),
    ];
    proptest::collection::vec(step, 1..30)
}

/// All entries that were ever logged, as (id, document).
#[derive(Default)]
struct Model {
    logs: [Vec<(String, Option<String>)>; VBUCKETS as usize],
    purged: [u64; VBUCKETS as usize],
    /// For each vbucket, the last seqno that was never in its log. Byte counts begin after it.
    absent: [u64; VBUCKETS as usize],
}

impl Model {
    /// The documents of a vbucket after a number of entries of its log.
    fn documents(&self, vbucket: u16, end: u64) -> Vec<StoredDocument> {
        let log = &self.logs[usize::from(vbucket)][..end as usize];
        let last: BTreeMap<_, _> = (1..).zip(log).map(|(s, (id, text))| (id, (s, text))).collect();
        let stored = |(id, (seqno, text)): (&String, (u64, &Option<String>))| {
            let document = Bytes::from(text.clone()?);
            Some(StoredDocument { id: id.clone(), seqno: Seqno(seqno), document })
        };
        last.into_iter().filter_map(stored).collect()
    }

    /// The entries of a vbucket's log after a position, as a batch.
    fn rest(&self, vbucket: u16, after: u64) -> Batch {
        let mut changes = Batch::default();
        let rest = (1..).zip(&self.logs[usize::from(vbucket)]).skip(after as usize);
        for (seqno, (id, text)) in rest {
            let kind = text.as_ref().map_or(MutationKind::Deletion, |_| MutationKind::Upsert);
            let (id, place) = (Arc::<str>::from(&**id), (VbucketId(vbucket), Seqno(seqno)));
            let document = Bytes::from(text.clone().unwrap_or_default());
            changes.mutations.push(Arc::new(Mutation::new(place, id, kind, document)));
        }
        changes
    }

    fn batch(&mut self, changes: &[(u8, Option<u8>)]) -> Batch {
        let mut bucket = Batch::default();
        for (n, length) in changes {
            let (id, text) = (format!("d{n}"), length.map(|length| "7".repeat(length.into())));
            let vbucket = vbucket_of(&id, VBUCKETS);
            let log = &mut self.logs[usize::from(vbucket.0)];
            log.push((id.clone(), text.clone()));
            let kind = text.as_ref().map_or(MutationKind::Deletion, |_| MutationKind::Upsert);
            let document = Bytes::from(text.unwrap_or_default());
            let (id, place) = (Arc::from(id), (vbucket, Seqno(log.len() as u64)));
            bucket.mutations.push(Arc::new(Mutation::new(place, id, kind, document)));
        }
        bucket
    }

    fn percent(&self, vbucket: u16, percent: u8) -> u64 {
        self.logs[usize::from(vbucket)].len() as u64 * u64::from(percent) / 100
    }

    /// Returns true if the retained log has the earlier versions of all documents that changed
    /// after a position.
    fn can_rewind(&self, vbucket: u16, to: u64) -> bool {
        let (log, purged) = (&self.logs[usize::from(vbucket)], self.purged[usize::from(vbucket)]);
        let (before, beyond) = log.split_at(to as usize);
        let kept = before.get(purged as usize..).unwrap_or_default();
        to == 0
            || purged == 0
            || to > purged && beyond.iter().all(|(id, _)| kept.iter().any(|(other, _)| other == id))
    }

    fn check(&self, store: &dyn DocumentStore) {
        let extents = store.extents(BUCKET).expect("extents");
        let mut documents = BTreeMap::new();
        for (n, (log, purged)) in self.logs.iter().zip(self.purged).enumerate() {
            let bytes = |to: u64| {
                let entries = log[..to as usize].iter().skip(self.absent[n] as usize);
                let each = |(id, text): &(String, Option<String>)| {
                    24 + id.len() as u64 + text.as_ref().map_or(0, |text| text.len() as u64)
                };
                entries.map(each).sum::<u64>()
            };
            let end = log.len() as u64;
            let expected = LogExtent {
                purged: Seqno(purged),
                end: Seqno(end),
                bytes_purged: bytes(purged),
                bytes_end: bytes(end),
            };
            assert_eq!(extents[n], expected);
            let vbucket = VbucketId(n as u16);
            for to in 0..=end + 1 {
                let found = store.log_bytes_to(BUCKET, vbucket, Seqno(to)).expect("bytes");
                assert_eq!(found, bytes(to.clamp(purged, end)), "up to {to}");
            }
            let range = LogRange { bucket: BUCKET, vbucket, after: Seqno(0), to: Seqno(end) };
            let read = store.read_log(range, usize::MAX).expect("the log");
            let read: Vec<_> = read.iter().map(|m| (m.seqno.0, m.id.to_string())).collect();
            let kept = (1..).zip(log).skip(purged as usize).map(|(s, (id, _))| (s, id.clone()));
            assert_eq!(read, kept.collect::<Vec<_>>());
            documents.extend(log.iter().cloned());
        }
        documents.retain(|_, text| text.is_some());
        let mut snapshot = store.snapshot(BUCKET).expect("a snapshot");
        let found = snapshot.next_chunk(usize::MAX).expect("documents").into_iter();
        let found: Vec<_> = found.map(|stored| (stored.id, stored.document)).collect();
        let expected =
            documents.into_iter().map(|(id, text)| (id, text.unwrap_or_default().into()));
        assert_eq!(found, expected.collect::<Vec<(String, Bytes)>>());
        let ends = self.logs.iter().map(|log| Seqno(log.len() as u64)).collect::<Vec<_>>();
        assert_eq!(store.buckets().expect("buckets")[0].1, ends, "positions stay");
    }
}

fn record() -> BucketRecord {
    let info = BucketInfo::new(BUCKET, "b", VBUCKETS, SourceKind::Push, NodeId(1));
    let ownership = Ownership { owned: VbucketSet::all(VBUCKETS), ..Ownership::default() };
    let branches = vec![vec![(Vbuuid(1), 0)]; usize::from(VBUCKETS)];
    BucketRecord {
        info,
        branches,
        ownership,
        given_up: Default::default(),
        commits: Default::default(),
    }
}

/// Runs the steps on a store and the model. `open` is called again only after the previous store
/// was dropped.
fn follows_the_model(open: &dyn Fn() -> Arc<dyn DocumentStore>, steps: Vec<Step>) {
    let (mut model, mut store) = (Model::default(), open());
    store.apply_catalog(1, &[record()], &[]).expect("a new bucket");
    for step in steps {
        match step {
            Step::Commit(changes) => store.commit(BUCKET, model.batch(&changes)).expect("a batch"),
            Step::Purge(percents) => {
                let to = |n: u16| (VbucketId(n), Seqno(model.percent(n, percents[usize::from(n)])));
                let to: Vec<_> = (0..VBUCKETS).map(to).collect();
                store.purge(BUCKET, &to).expect("purged");
                for ((log, purged), (_, to)) in model.logs.iter().zip(&mut model.purged).zip(to) {
                    *purged = to.0.min(log.len() as u64).max(*purged);
                }
            }
            Step::Rewind(vbucket, percent) => {
                let (to, n) = (model.percent(vbucket, percent), usize::from(vbucket));
                let outcome = store.rewind(&record(), &[(VbucketId(vbucket), Seqno(to))]);
                if model.can_rewind(vbucket, to) {
                    outcome.expect("all that it needs is kept");
                    model.logs[n].truncate(to as usize);
                    if to == 0 {
                        (model.purged[n], model.absent[n]) = (0, 0);
                    }
                } else {
                    let error = outcome.expect_err("earlier versions of documents are gone");
                    assert_eq!(error.code, ErrorCode::OutOfOrder);
                    assert!(error.hint.is_some_and(|hint| hint.contains("seqno 0")));
                }
            }
            Step::Copy(vbucket) => {
                let (v, n) = (VbucketId(vbucket), usize::from(vbucket));
                remove(&*store, v);
                let purged = model.purged[n];
                if purged > 0 {
                    store.begin_purged(&record(), v, Seqno(purged)).expect("it begins");
                    drop(store);
                    store = open();
                    let extent = store.extents(BUCKET).expect("extents")[n];
                    assert_eq!((extent.purged, extent.end), (Seqno(purged), Seqno(purged)));
                    assert_eq!(store.buckets().expect("buckets")[0].1[n], Seqno(purged));
                    // The documents are read before the end of the log.
                    let documents = model.documents(vbucket, model.logs[n].len() as u64);
                    store.put_documents(BUCKET, &documents).expect("documents");
                }
                model.absent[n] = purged;
                store.commit(BUCKET, model.rest(vbucket, purged)).expect("the log");
            }
            Step::Reopen => {
                drop(store);
                store = open();
            }
        }
        model.check(&*store);
    }
}

fn remove(store: &dyn DocumentStore, vbucket: VbucketId) {
    store.remove_vbucket(&record(), vbucket).expect("it goes");
    let of_vbucket = |extents: Vec<LogExtent>| extents[usize::from(vbucket.0)];
    assert_eq!(store.extents(BUCKET).map(of_vbucket), Ok(LogExtent::default()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn a_purged_log_in_memory_has_what_the_model_keeps(steps in steps()) {
        let store = MemoryStore::default();
        follows_the_model(&|| Arc::new(store.clone()), steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn a_purged_log_on_disk_has_what_the_model_keeps(steps in steps()) {
        let directory = tempfile::tempdir().expect("a directory");
        let env = proto::env::Env::real();
        let open = || DiskStore::open(&env, directory.path(), small()).expect("the store opens");
        follows_the_model(&|| Arc::new(open()), steps);
    }
}

#[test]
fn dropping_a_bucket_removes_its_purge_points() {
    let directory = tempfile::tempdir().expect("a directory");
    let env = proto::env::Env::real();
    let store = DiskStore::open(&env, directory.path(), small()).expect("the store opens");
    for cas in [1, 3] {
        store.apply_catalog(cas, &[record()], &[]).expect("a new bucket");
        let mut model = Model::default();
        let changes: Vec<_> = (0..12).map(|n| (n, Some(1))).collect();
        store.commit(BUCKET, model.batch(&changes)).expect("a batch");
        model.check(&store);
        store.purge(BUCKET, &[(VbucketId(0), Seqno(2))]).expect("purged");
        store.apply_catalog(cas + 1, &[], &[BUCKET]).expect("it goes");
    }
}
