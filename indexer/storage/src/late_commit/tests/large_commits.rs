//! Tests of a commit that is larger than the memory of its node.
#![allow(
    clippy::disallowed_methods,
    reason = "a thread of the test looks at the memory all the time"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use proto::env::{Env, sim};
use proto::model::ids::{Epoch, Seqno, SliceNo, TransactionId, TransactionPlace, VbucketId};
use proto::rpc::mutation::{ChangesDigest, CommitMarker, CommitRange};
use proto::rpc::scan::KeyRange;

use super::testing::*;
use crate::batch::{EpochBatch, VbucketMutations};
use crate::engine::storage_engine::StorageEngine;
use crate::options::StoreOptions;
use crate::rows::columns::Grouping;
use crate::slice_store::SliceStore;

const DOCUMENTS: u64 = 120_000;
const MEMORY_BYTES: u64 = 24 << 20;
/// Number of documents of one message, or of one epoch.
const SOME: u64 = 4_000;

/// Returns the state of a document after a round: every third document is changed, every seventh
/// deleted, and every second is new.
fn state(document: u64, round: u64) -> State {
    match (round, document % 2, document % 7) {
        (1, 1, _) | (2, _, 0) => State::new(),
        (1, ..) => State::from([((document as u8, 1), 1)]),
        _ => State::from([((document as u8, (document % 3) as u8), 1), ((7, 7), 2)]),
    }
}

fn id(document: u64) -> String {
    format!("document {document:08} of a large transaction")
}

fn body_of(documents: std::ops::Range<u64>, round: u64) -> bytes::Bytes {
    let states: Vec<_> = documents.clone().map(|n| (id(n), state(n, round))).collect();
    body((1..).zip(&states).map(|(at, (id, state))| (at, id.as_str(), state)))
}

/// An epoch whose seqnos are used by no other epoch.
fn large_epoch(n: u64, body: bytes::Bytes) -> EpochBatch {
    let base = n << 32;
    let piece =
        VbucketMutations { body, base: Seqno(base), after: Seqno(base), to: Seqno(u64::MAX) };
    EpochBatch { mark: mark(n), pieces: vec![piece], commits: Vec::new() }
}

/// Returns the number of entries of each index at an epoch.
fn counted(store: &StorageEngine, epoch: u64) -> [u64; 2] {
    let slices: Vec<_> = (0..SLICES).map(SliceNo).collect();
    [BY_ID, BY_EXPR].map(|index| {
        let snapshot = store.snapshot(index, Epoch(epoch)).unwrap();
        let mut rows = snapshot.rows(&slices, &KeyRange::all(), false, false).unwrap();
        rows.count(u64::MAX).unwrap().rows
    })
}

fn entries(round: u64) -> u64 {
    (0..DOCUMENTS).map(|n| state(n, round).len() as u64).sum()
}

/// The largest memory use of a store, measured continuously.
struct Watched {
    most: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Watched {
    fn new(store: &Arc<StorageEngine>) -> Self {
        let (most, is_over) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (store, max, ends) = (Arc::clone(store), Arc::clone(&most), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                max.fetch_max(store.memory_bytes(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        Self { most, is_over, thread: Some(thread) }
    }

    fn finish(mut self) -> u64 {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
        self.most.load(Ordering::Relaxed)
    }
}

async fn send(store: &StorageEngine) -> ChangesDigest {
    let mut digest = ChangesDigest::default();
    for from in (0..DOCUMENTS).step_by(SOME as usize) {
        let message = bodies(1, from, from + SOME, body_of(from..from + SOME, 2));
        digest = digest.with_changes(&message);
        store.late_commit().wait_for_memory(message.body.len() as u64).await;
        store.late_commit().add_changes(BUCKET, &message).unwrap();
    }
    digest
}

/// Merges must shorten the lists even if other writes are few.
#[tokio::test]
async fn lists_stay_short_however_many_commits_come() {
    let (env, _, _) = sim::world(1);
    let store = built(&env, StoreOptions::default(), Grouping::Together).await;
    for n in 2..60 {
        let message = bodies(n, 0, 50, body_of(0..50, n % 3));
        let digest = ChangesDigest::default().with_changes(&message);
        store.late_commit().add_changes(BUCKET, &message).unwrap();
        let (transaction, place) = (TransactionId(n), TransactionPlace(50));
        let marker = CommitMarker { transaction, place, digest, ranges: Vec::new() };
        store.late_commit().keep_committed(BUCKET, &marker).unwrap();
        let batch = EpochBatch { commits: vec![marker], ..large_epoch(n, Default::default()) };
        store.apply(batch).await.unwrap();
    }
    for index in store.context.state.indexes() {
        let longest = index.longest_list.load(Ordering::Relaxed);
        assert!(longest < 16, "{longest} fragments");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_larger_than_the_memory_stays_within_its_limit() {
    let dir = tempfile::tempdir().unwrap();
    let options = StoreOptions { memory_bytes: MEMORY_BYTES, ..StoreOptions::default() };
    let store = Arc::new(built_in(&Env::real(), dir.path(), options, Grouping::Together).await);
    let mut n = 1;
    for from in (0..DOCUMENTS).step_by(SOME as usize) {
        n += 1;
        store.apply(large_epoch(n, body_of(from..from + SOME, 1))).await.unwrap();
    }
    assert_eq!(counted(&store, n), [entries(1); 2]);
    let watched = Watched::new(&store);
    let digest = send(&store).await;
    let late = store.late_commit();
    assert!(late.disk_bytes() > MEMORY_BYTES, "{} bytes on disk", late.disk_bytes());
    let range = CommitRange { vbucket: VbucketId(0), after: Seqno(0), to: Seqno(u64::MAX >> 1) };
    let (transaction, place) = (TransactionId(1), TransactionPlace(DOCUMENTS));
    let marker = CommitMarker { transaction, place, digest, ranges: vec![range] };
    late.keep_committed(BUCKET, &marker).unwrap();
    let batch = EpochBatch { commits: vec![marker], ..large_epoch(n + 1, Default::default()) };
    let began = Instant::now();
    store.apply(batch).await.unwrap();
    println!("a commit of {DOCUMENTS} documents in two indexes took {:?}", began.elapsed());
    late.end_transactions(BUCKET, &[transaction]);
    let most = watched.finish();
    println!("memory: {} KiB of {} KiB", most >> 10, MEMORY_BYTES >> 10);
    assert!(most <= MEMORY_BYTES, "{most} bytes of {MEMORY_BYTES}");
    assert_eq!((counted(&store, n), counted(&store, n + 1)), ([entries(1); 2], [entries(2); 2]));
    let progress = store.progress();
    let of = |index| progress.iter().filter(move |of| of.slice.local_index() == index);
    assert_eq!(
        [BY_ID, BY_EXPR].map(|id| of(id).map(|of| of.entries).sum::<u64>()),
        [entries(2); 2]
    );
    store.compact().await.unwrap();
    assert_eq!(counted(&store, n + 1), [entries(2); 2]);
}
