//! Tests of the contract of a document store, for the store on disk and for the one in memory.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use proto::env::Env;
use proto::model::assignment::VbucketSet;
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::cut::Position;
use proto::model::ids::{BucketId, NodeId, Seqno, TransactionId, VbucketId, Vbuuid, vbucket_of};
use proto::rpc::mutation::MutationKind;
use proto::{ErrorCode, Result};

use super::small;
use crate::MemoryStore;
use crate::document_store::*;
use crate::mutation::Mutation;
use crate::ownership::Ownership;
use crate::record::{BucketRecord, StoredId};
use crate::store::DiskStore;
use proto::model::commits::{CommittedTransaction, TransactionEvent, TransactionOutcome};
use proto::model::identity::UniqueId;

const BUCKET: BucketId = BucketId(7);
const VBUCKETS: u16 = 4;

fn record() -> BucketRecord {
    let info = BucketInfo::new(BUCKET, "b", VBUCKETS, SourceKind::Embedded, NodeId(1));
    let branches = (1..=4).map(|n| vec![(Vbuuid(n), 0)]).collect();
    let ownership = Ownership { owned: VbucketSet::all(VBUCKETS), ..Default::default() };
    BucketRecord {
        info,
        branches,
        ownership,
        given_up: BTreeMap::new(),
        commits: Default::default(),
    }
}

/// A writer that assigns seqnos to changes and stores them.
#[derive(Default)]
struct Numbers([u64; VBUCKETS as usize]);

impl Numbers {
    fn batch(&mut self, changes: &[(&str, Option<&str>)]) -> Batch {
        let mut bucket = Batch::default();
        for (id, document) in changes {
            let vbucket = vbucket_of(id, VBUCKETS);
            let next = &mut self.0[usize::from(vbucket.0)];
            *next += 1;
            let kind = document.map_or(MutationKind::Deletion, |_| MutationKind::Upsert);
            let document = Bytes::from(document.unwrap_or_default().to_owned());
            let id: Arc<str> = Arc::from(*id);
            bucket.mutations.push(Arc::new(Mutation::new(
                (vbucket, Seqno(*next)),
                id,
                kind,
                document,
            )));
        }
        bucket
    }
}

fn get(store: &dyn DocumentStore, ids: &[&str], bytes_max: usize) -> Result<Vec<Option<Bytes>>> {
    let ids: Vec<_> = ids.iter().map(|id| String::from(*id)).collect();
    store.get(BUCKET, &ids, bytes_max)
}

fn all_documents(store: &dyn DocumentStore) -> Vec<(String, String)> {
    let mut snapshot = store.snapshot(BUCKET).expect("a snapshot");
    let mut found = Vec::new();
    loop {
        let chunk = snapshot.next_chunk(1).expect("a chunk");
        if chunk.is_empty() {
            return found;
        }
        found.extend(
            chunk.into_iter().map(|stored| {
                (stored.id, String::from_utf8(stored.document.to_vec()).expect("text"))
            }),
        );
    }
}

/// Returns the complete log, as (vbucket, seqno, id, document); each vbucket is read in small
/// pieces.
fn whole_log(store: &dyn DocumentStore) -> Vec<(u16, u64, String, Bytes)> {
    let mut found = Vec::new();
    for vbucket in (0..VBUCKETS).map(VbucketId) {
        let mut after = Seqno(0);
        loop {
            let range = LogRange { bucket: BUCKET, vbucket, after, to: Seqno(1000) };
            let piece = store.read_log(range, 1).expect("the log");
            let Some(last) = piece.last() else { break };
            after = last.seqno;
            found.extend(piece.iter().map(|mutation| {
                (vbucket.0, mutation.seqno.0, mutation.id.to_string(), mutation.document.clone())
            }));
        }
    }
    found
}

/// Checks the contract. `open` is called again only after the previous store was dropped: one process at a time.
fn keeps_its_promises(open: &dyn Fn() -> Arc<dyn DocumentStore>) {
    let mut numbers = Numbers::default();
    let store = open();
    assert_eq!((store.catalog_cas(), store.buckets().map(|found| found.len())), (Ok(0), Ok(0)));
    let unique_id =
        |unique, is_foreign| (BUCKET, StoredId { unique: UniqueId(unique), is_foreign });
    let ids = |store: &dyn DocumentStore| store.unique_ids().map(Vec::from_iter);
    assert_eq!(ids(&*store), Ok(vec![]), "none was stored");
    store.put_unique_ids(&[unique_id(7, false)]).expect("an id");
    store.put_unique_ids(&[unique_id(u128::MAX, true)]).expect("an id");
    store.apply_catalog(5, &[record()], &[]).expect("a new bucket");
    let first = [("a", Some("1")), ("b", Some("2")), ("a", Some("3"))];
    store.commit(BUCKET, numbers.batch(&first)).expect("a batch");
    let mut earlier = store.snapshot(BUCKET).expect("a snapshot");
    let second = [("b", None), ("c", Some("4")), ("c", None), ("d", Some("5"))];
    store.commit(BUCKET, numbers.batch(&second)).expect("a batch");
    let documents =
        |chunk: Vec<StoredDocument>| chunk.into_iter().map(|s| s.id).collect::<Vec<_>>();
    let seen = earlier.next_chunk(1 << 20).map(documents);
    assert_eq!(seen, Ok(vec!["a".into(), "b".into()]), "a snapshot stays what it was");
    drop(earlier);
    check_contents(&*store, &numbers);
    drop(store);

    let store = open();
    assert_eq!(ids(&*store), Ok(vec![unique_id(u128::MAX, true)]));
    check_contents(&*store, &numbers);
    store.apply_catalog(6, &[], &[BUCKET]).expect("a bucket goes");
    assert_eq!(get(&*store, &["a"], 10).map_err(|e| e.code), Err(ErrorCode::Unknown));
    drop(store);
    let store = open();
    assert_eq!(store.buckets(), Ok(Vec::new()), "removed documents stay removed");
    assert_eq!(store.catalog_cas(), Ok(6));
}

fn check_contents(store: &dyn DocumentStore, numbers: &Numbers) {
    let documents = [("a".to_owned(), "3".to_owned()), ("d".to_owned(), "5".to_owned())];
    assert_eq!(all_documents(store), documents);
    let found = |text: &'static str| Some(Bytes::from_static(text.as_bytes()));
    assert_eq!(get(store, &["a", "b", "d"], 2), Ok(vec![found("3"), None, found("5")]));
    assert_eq!(get(store, &["a", "d"], 1).map_err(|e| e.code), Err(ErrorCode::OverLimit));
    assert_eq!((store.contains(BUCKET, "c"), store.contains(BUCKET, "d")), (Ok(false), Ok(true)));
    let ends = numbers.0.map(Seqno).to_vec();
    assert_eq!(store.buckets(), Ok(vec![(record(), ends)]), "positions are where the logs end");
    assert_eq!(store.catalog_cas(), Ok(5));
    let log = whole_log(store);
    assert_eq!(log.len(), 7, "every change is in the log");
    let of = |id: &str| {
        let of_id = log.iter().filter(|entry| entry.2 == id);
        of_id.map(|entry| String::from_utf8_lossy(&entry.3).into_owned()).collect::<Vec<_>>()
    };
    assert_eq!((of("a"), of("b")), (vec!["1".into(), "3".into()], vec!["2".into(), String::new()]));
}

fn commit_of(numbers: &mut Numbers, transaction: u64, id: &str) -> Batch {
    let mut batch = numbers.batch(&[(id, Some("1"))]);
    let last = &batch.mutations[0];
    let position = Position { vbuuid: Vbuuid(u64::from(last.vbucket.0) + 1), seqno: last.seqno };
    let (transaction, positions) = (TransactionId(transaction), vec![(last.vbucket, position)]);
    let committed = CommittedTransaction { transaction, affected: 1, positions };
    batch.commits = vec![TransactionEvent::Committed(committed)];
    batch
}

fn fate(store: &dyn DocumentStore, transaction: u64) -> TransactionOutcome {
    let (record, _) = store.buckets().expect("buckets").remove(0);
    record.commits.fate(TransactionId(transaction), 0)
}

/// Checks that commits of transactions are remembered as long as their mutations are retained.
fn remembers_commits(open: &dyn Fn() -> Arc<dyn DocumentStore>) {
    let mut numbers = Numbers::default();
    let store = open();
    store.apply_catalog(1, &[record()], &[]).expect("a bucket");
    let batches = [(11, "a"), (12, "b"), (13, "a")].map(|(n, id)| commit_of(&mut numbers, n, id));
    for batch in batches.clone() {
        store.commit(BUCKET, batch).expect("a commit");
    }
    let check = |store: &dyn DocumentStore, known: [bool; 3]| {
        for (batch, is_known) in batches.iter().zip(known) {
            let TransactionEvent::Committed(committed) = &batch.commits[0] else { unreachable!() };
            let expected = if is_known {
                TransactionOutcome::Committed(committed.clone())
            } else {
                TransactionOutcome::RolledBack
            };
            assert_eq!(fate(store, committed.transaction.0), expected);
        }
    };
    check(&*store, [true; 3]);
    drop(store);
    let store = open();
    check(&*store, [true; 3]);
    let (mut record, _) = store.buckets().expect("buckets").remove(0);
    record.branches[0].insert(0, (Vbuuid(90), 0));
    store.put_records(&[record.clone()]).expect("a record");
    let last = &batches[2].mutations[0];
    store.rewind(&record, &[(last.vbucket, Seqno(last.seqno.0 - 1))]).expect("a rewind");
    check(&*store, [true, true, false]);
    drop(store);
    check(&*open(), [true, true, false]);
}

#[test]
fn the_store_in_memory_remembers_commits() {
    let store = MemoryStore::default();
    remembers_commits(&|| Arc::new(store.clone()));
}

#[test]
fn the_store_on_disk_remembers_commits() {
    let directory = tempfile::tempdir().expect("a directory");
    remembers_commits(&|| Arc::new(open_on_disk(directory.path()).expect("opens")));
}

#[test]
fn the_store_in_memory_fulfils_the_contract() {
    let store = MemoryStore::default();
    keeps_its_promises(&|| Arc::new(store.clone()));
}

fn open_on_disk(directory: &Path) -> Result<DiskStore> {
    DiskStore::open(&Env::real(), directory, small())
}

#[test]
fn the_store_on_disk_fulfils_the_contract() {
    let directory = tempfile::tempdir().expect("a directory");
    keeps_its_promises(&|| Arc::new(open_on_disk(directory.path()).expect("the store opens")));
}

#[test]
fn bucket_created_after_a_drop_survives_restarts() {
    let directory = tempfile::tempdir().expect("a directory");
    let open = || open_on_disk(directory.path()).expect("the store opens");
    let mut numbers = Numbers::default();
    open().apply_catalog(1, &[record()], &[]).expect("a new bucket");
    let store = open();
    store.commit(BUCKET, numbers.batch(&[("a", Some("1"))])).expect("a batch");
    store.apply_catalog(2, &[], &[BUCKET]).expect("a bucket goes");
    // A task that does not know yet that its bucket was dropped.
    store.put_records(&[record()]).expect("ignored");
    drop(store);
    let mut other = record();
    other.info.id = BucketId(8);
    let store = open();
    assert_eq!(store.buckets(), Ok(Vec::new()), "a late record brings no bucket back");
    store.apply_catalog(3, &[other], &[]).expect("a new bucket");
    let batch = Numbers::default().batch(&[("b", Some("2"))]);
    store.commit(BucketId(8), batch).expect("a batch");
    drop(store);
    for _ in 0..2 {
        let found = open().get(BucketId(8), &["b".into()], 100);
        assert_eq!(found, Ok(vec![Some(Bytes::from_static(b"2"))]));
    }
}

/// A read of many documents must return one state of the store while another thread writes.
#[test]
fn the_store_on_disk_reads_many_documents_at_one_moment() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open_on_disk(directory.path()).expect("the store opens");
    store.apply_catalog(1, &[record()], &[]).expect("a new bucket");
    let ids: Vec<_> = (0..300).map(|n| format!("d{n}")).collect();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut numbers = Numbers::default();
            for round in 0..100 {
                let text = round.to_string();
                let changes: Vec<_> = ids.iter().map(|id| (&**id, Some(&*text))).collect();
                store.commit(BUCKET, numbers.batch(&changes)).expect("a batch");
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        while !done.load(std::sync::atomic::Ordering::Relaxed) {
            let found = store.get(BUCKET, &ids, 1 << 20).expect("documents");
            assert!(found.iter().all(|document| *document == found[0]), "{found:?}");
        }
    });
}

#[test]
fn a_directory_of_another_version_is_refused_and_unchanged() {
    let fs = Env::real().fs;
    let directory = tempfile::tempdir().expect("a directory");
    drop(open_on_disk(directory.path()).expect("a new store"));
    let version = fs.open(&directory.path().join("VERSION"), proto::env::OpenMode::ReadWrite);
    version.expect("the version file").write_all_at(b"sextant documents 8\n", 0).expect("written");
    let error = open_on_disk(directory.path()).map(|_| ()).expect_err("another version");
    assert_eq!(error.code, ErrorCode::Version);
    assert!(error.message.contains("sextant documents 8"), "{error}");
    assert!(error.message.contains(&*directory.path().to_string_lossy()), "{error}");
    fs.remove_file(&directory.path().join("VERSION")).expect("removed");
    let error = open_on_disk(directory.path()).map(|_| ()).expect_err("no version");
    assert_eq!(error.code, ErrorCode::Version);
}

#[test]
fn a_batch_whose_sync_failed_is_stored_completely_or_not_at_all() {
    for reached_disk in [false, true] {
        let store = MemoryStore::default();
        let mut numbers = Numbers::default();
        store.apply_catalog(1, &[record()], &[]).expect("a new bucket");
        store.commit(BUCKET, numbers.batch(&[("a", Some("1"))])).expect("a batch");
        store.fail_next_sync();
        let doubtful = numbers.batch(&[("a", None), ("b", Some("2"))]);
        assert_eq!(store.commit(BUCKET, doubtful).map_err(|e| e.code), Err(ErrorCode::Io));
        assert_eq!(all_documents(&store).len(), 1, "an unsynced write is invisible");
        assert!(
            store.commit(BUCKET, numbers.batch(&[("c", Some("3"))])).is_err(),
            "no write after it"
        );
        store.lose_unsynced(reached_disk);
        let expected = if reached_disk { ("b", "2") } else { ("a", "1") };
        assert_eq!(all_documents(&store), [(expected.0.to_owned(), expected.1.to_owned())]);
        assert_eq!(whole_log(&store).len(), if reached_disk { 3 } else { 1 });
    }
}
