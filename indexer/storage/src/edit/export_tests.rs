//! Tests of the parts that a move sends: the target's slice equals the source's, and has the slice's rows alone.

use std::path::Path;

use bytes::Bytes;
use proto::env::{Env, sim};
use proto::model::ids::{LocalIndexId, Seqno, SliceId, SliceNo};
use proto::model::index::{IndexInfo, IndexSpec};
use proto::model::topology::{PartitionKey, TopologyProvider};
use proto::rpc::mutation::{KeyVersionsWriter, MutationKind};
use proto::rpc::scan::KeyRange;

use super::*;
use crate::batch::{EpochBatch, VbucketMutations};
use crate::edit::install::tests::round;
use crate::engine::storage_engine::StorageEngine;
use crate::recover::load::tests::{DIR, INDEXES, NODE, mark, open};
use crate::rows::columns::Grouping;
use crate::slice_store::SliceStore;
use crate::verify::check::verify;

const INDEX: LocalIndexId = INDEXES[0];
const SLICES: u16 = 3;
const EPOCHS: u64 = 6;
/// The number of the document at whose entry an index is split.
const MIDDLE: u64 = 100;

/// An index whose slices are all on one node.
fn index() -> IndexInfo {
    let placement = vec![vec![NODE]; usize::from(SLICES)];
    IndexInfo::new(INDEX.index, mark(1).bucket, IndexSpec::new("i", "b"), placement)
}

/// Returns packed documents whose entries depend on the version; every seventh document has no
/// entries.
fn body(ids: std::ops::Range<u64>, version: u64) -> Bytes {
    let mut writer = KeyVersionsWriter::default();
    for n in ids {
        let id = format!("d{n}");
        writer.mutation(n + 1, MutationKind::Upsert, &id, 1);
        let slice = index().topology.partition(PartitionKey::Id(&id));
        let is_gone = (n + version).is_multiple_of(7);
        writer.index(INDEX, usize::from(!is_gone));
        if !is_gone {
            let key = (n * 10 + version % 2) % (2 * MIDDLE);
            let value = format!("{n} in version {version}");
            writer.entry(slice, &key.to_be_bytes(), value.as_bytes());
        }
    }
    writer.finish()
}

async fn apply(store: &StorageEngine, epoch: u64, body: Bytes) {
    let after = Seqno(0);
    let to = Seqno(u64::MAX);
    let piece = VbucketMutations { body, base: after, after, to };
    store
        .apply(EpochBatch { mark: mark(epoch), pieces: vec![piece], commits: Vec::new() })
        .await
        .unwrap();
}

/// Creates a store whose slices share all fragments and have several versions of many entries.
async fn source(grouping: Grouping) -> (Env, sim::SimFs, StorageEngine) {
    let (env, _, fs) = sim::world(3);
    let store = open(&env);
    store.begin_build(Arc::new(index()), grouping).await.unwrap();
    store.begin_backfill(INDEX).await.unwrap();
    store.backfill(INDEX, body(0..300, 0)).await.unwrap();
    apply(&store, 1, Bytes::new()).await;
    store.finish_build(INDEX, &mark(1)).await.unwrap();
    for epoch in 2..=EPOCHS {
        apply(&store, epoch, body(epoch * 10..200 + epoch, epoch)).await;
        if epoch % 2 == 0 {
            store.flush().await.unwrap();
        }
    }
    (env, fs, store)
}

/// The entries of a slice with their included values, at an epoch.
fn shown(store: &StorageEngine, slice: SliceNo, epoch: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
    let snapshot = store.snapshot(INDEX, Epoch(epoch)).unwrap();
    let mut rows = snapshot.rows(&[slice], &KeyRange::all(), false, true).unwrap();
    let mut all = Vec::new();
    while rows.next().unwrap() {
        all.push((rows.entry().to_vec(), rows.include().to_vec()));
    }
    all
}

/// Moves a slice, in two rounds, to an empty node; returns the bytes of its parts.
async fn moves(source: &StorageEngine, slice: SliceNo) -> u64 {
    let (env, _, _fs) = sim::world(4);
    let target = open(&env);
    for epoch in 1..=EPOCHS {
        apply(&target, epoch, Bytes::new()).await;
    }
    let id: SliceId = INDEX.slice(slice);
    let mut received = target.begin_receiving(NODE);
    round(source, id, &mut received).await;
    let have = received.complete_files();
    round(source, id, &mut received).await;
    assert_eq!(received.complete_files(), have, "nothing new was written");
    let sent = received.head().map(|head| head.files.iter().map(|(_, bytes)| bytes).sum());
    assert!(target.install_slice(received, id, Arc::new(index()), &mark(EPOCHS)).await.is_ok());
    for epoch in 1..=EPOCHS {
        let expected = shown(source, slice, epoch);
        assert!(!expected.is_empty());
        assert_eq!(shown(&target, slice, epoch), expected, "slice {slice} at epoch {epoch}");
    }
    // The back index has the entries: a deletion of all documents leaves none.
    let mut writer = KeyVersionsWriter::default();
    for n in 0..300 {
        writer.mutation(n + 1, MutationKind::Deletion, &format!("d{n}"), 1);
        writer.index(INDEX, 0);
    }
    apply(&target, EPOCHS + 1, writer.finish()).await;
    assert_eq!(shown(&target, slice, EPOCHS + 1), []);
    target.flush().await.unwrap();
    drop(target);
    let findings = verify(&env, Path::new(DIR)).findings;
    assert!(findings.iter().all(|finding| finding.path.ends_with("VERSION")), "{findings:?}");
    sent.unwrap_or(0)
}

#[tokio::test]
async fn a_moved_slice_has_all_versions_of_its_own_rows_and_no_others() {
    for grouping in [Grouping::Together, Grouping::Apart] {
        let (_env, _fs, store) = source(grouping).await;
        let listed = store.context.files.list().unwrap();
        let tables = listed.iter().map(|file| store.context.files.open(*file).unwrap());
        let whole: u64 = tables.map(|table| table.bytes()).sum();
        let mut sent = 0;
        for slice in 0..SLICES {
            sent += moves(&store, SliceNo(slice)).await;
        }
        assert!(sent < whole * 3 / 2, "{sent} bytes sent, {whole} in all files");
    }
}

#[tokio::test]
async fn split_and_cloned_slices_move_with_their_restrictions() {
    for grouping in [Grouping::Together, Grouping::Apart] {
        let (_env, _fs, store) = source(grouping).await;
        let [low, high, copy] = [7, 8, 9].map(SliceNo);
        store.clone_slice(INDEX.slice(SliceNo(1)), copy).await.unwrap();
        store.split(INDEX.slice(SliceNo(1)), &MIDDLE.to_be_bytes(), low, high).await.unwrap();
        let both = shown(&store, low, EPOCHS).len() + shown(&store, high, EPOCHS).len();
        assert_eq!(both, shown(&store, copy, EPOCHS).len());
        for slice in [low, high, copy, SliceNo(0)] {
            moves(&store, slice).await;
        }
    }
}
