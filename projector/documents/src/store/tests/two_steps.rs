//! Tests of batches that are logged and not yet in the table.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use proto::ErrorCode;
use proto::env::sim;
use proto::model::assignment::VbucketSet;
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::ids::{BucketId, NodeId, Seqno, VbucketId, Vbuuid};
use proto::rpc::mutation::MutationKind;

use super::small;
use crate::MemoryStore;
use crate::document_store::*;
use crate::mutation::Mutation;
use crate::ownership::Ownership;
use crate::record::BucketRecord;
use crate::store::DiskStore;

const BUCKET: BucketId = BucketId(7);

fn record() -> BucketRecord {
    let info = BucketInfo::new(BUCKET, "b", 1, SourceKind::Embedded, NodeId(1));
    let ownership = Ownership { owned: VbucketSet::all(1), ..Default::default() };
    let branches = vec![vec![(Vbuuid(1), 0)]];
    BucketRecord {
        info,
        branches,
        ownership,
        given_up: Default::default(),
        commits: Default::default(),
    }
}

/// A batch of one document, whose id is its seqno.
fn batch(seqno: u64) -> Arc<Batch> {
    let (place, id) = ((VbucketId(0), Seqno(seqno)), Arc::from(seqno.to_string()));
    let document = Bytes::from(vec![b'1'; 100]);
    let mutation = Mutation::new(place, id, MutationKind::Upsert, document);
    Arc::new(Batch { mutations: vec![Arc::new(mutation)], ..Batch::default() })
}

fn has(store: &dyn DocumentStore, seqno: u64) -> bool {
    store.contains(BUCKET, &seqno.to_string()).expect("an answer")
}

#[test]
fn a_logged_batch_is_invisible_until_it_is_shown() {
    let (env, _, _) = sim::world(1);
    let disk = DiskStore::open(&env, Path::new("/d"), small()).expect("a new store");
    let stores: [&dyn DocumentStore; 2] = [&disk, &MemoryStore::default()];
    for store in stores {
        store.apply_catalog(1, &[record()], &[]).expect("a bucket");
        let shows: Vec<ShowBatch> =
            (1..=3).map(|n| store.log(BUCKET, &batch(n)).expect("logged")).collect();
        assert!((1..=3).all(|n| !has(store, n)));
        for (n, show) in (1..).zip(shows) {
            show().expect("shown");
            assert!(has(store, n) && !has(store, n + 1));
        }
        store.purge(BUCKET, &[(VbucketId(0), Seqno(1))]).expect("no batch is on its way");
        store.commit(BUCKET, Batch::clone(&batch(4))).expect("a batch in one step");
        assert!(has(store, 4));
    }
}

#[test]
fn other_changes_and_a_wrong_order_are_refused() {
    let (env, _, _) = sim::world(1);
    let store = DiskStore::open(&env, Path::new("/d"), small()).expect("a new store");
    store.apply_catalog(1, &[record()], &[]).expect("a bucket");
    let first = store.log(BUCKET, &batch(1)).expect("logged");
    let second = store.log(BUCKET, &batch(2)).expect("logged");
    let refused = |done: proto::Result<()>| done.map_err(|error| error.code);
    let purge = || store.purge(BUCKET, &[(VbucketId(0), Seqno(1))]);
    assert_eq!(refused(purge()), Err(ErrorCode::Internal));
    assert_eq!(refused(store.put_records(&[record()])), Err(ErrorCode::Internal));
    assert!(!store.has_failed());
    assert_eq!(refused(second()), Err(ErrorCode::Internal));
    assert!(store.has_failed() && first().is_err() && store.log(BUCKET, &batch(3)).is_err());
}

/// A flush between the two steps covers the changes in the table, but not those that are only in
/// the log.
#[test]
fn a_flush_between_the_steps_loses_nothing_that_is_logged() {
    let (env, _, _) = sim::world(1);
    let open = || DiskStore::open(&env, Path::new("/d"), small()).expect("a store");
    let store = open();
    store.apply_catalog(1, &[record()], &[]).expect("a bucket");
    let mut waiting = None;
    for n in 1..=400 {
        let show = store.log(BUCKET, &batch(n)).expect("logged");
        if let Some(show) = waiting.replace(show) {
            show().expect("shown");
        }
        if n % 50 == 0 {
            while store.maintain().expect("maintained") {}
        }
    }
    drop(waiting);
    drop(store);
    let store = open();
    assert!((1..=400).all(|n| has(&store, n)), "the last one was logged and not shown");
    let (_, ends) = store.buckets().expect("the buckets").remove(0);
    assert_eq!(ends, [Seqno(400)]);
    store.commit(BUCKET, Batch::clone(&batch(401))).expect("the next batch");
}
