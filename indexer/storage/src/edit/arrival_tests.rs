//! Arrival of slices while the disk fails.

use proto::env::sim;
use proto::model::ids::{Seqno, SliceId};
use proto::rpc::mutation::{KeyVersionsWriter, MutationKind};

use super::*;
use crate::batch::{EpochBatch, VbucketMutations};
use crate::edit::install::tests::{info, round};
use crate::engine::storage_engine::StorageEngine;
use crate::maintain::release::release_log;
use crate::recover::load::tests::{INDEXES, NODE, apply, mark, node, open};
use crate::slice_store::SliceStore;

const HERE: SliceId = INDEXES[0].slice(SliceNo(0));
const ARRIVES: SliceId = SliceId { slice: SliceNo(1), ..HERE };

/// Applies an epoch with ten new documents in the arriving slice.
async fn epoch_of_arrived(store: &StorageEngine, epoch: u64) {
    let mut writer = KeyVersionsWriter::default();
    for n in 0..10u64 {
        writer.mutation(n + 1, MutationKind::Upsert, &format!("new{epoch}-{n}"), 1);
        writer.index(ARRIVES.local_index(), 1);
        writer.entry(ARRIVES.slice, &n.to_be_bytes(), b"");
    }
    let (base, after, to) = (Seqno(0), Seqno(0), Seqno(u64::MAX));
    let piece = VbucketMutations { body: writer.finish(), base, after, to };
    store
        .apply(EpochBatch { mark: mark(epoch), pieces: vec![piece], commits: Vec::new() })
        .await
        .unwrap();
}

/// Failing file operations.
#[derive(Clone, Copy, Debug)]
struct Faults {
    /// Number of the installation's first file operation that fails.
    at: u64,
    /// Number of further operations that fail.
    more: u64,
    /// True if the first release of the log fails too.
    later: bool,
}

/// Installs a slice on a node that has the index already (`beside`) or lacks it; returns false if
/// no fault occurred.
async fn arrives(source: &StorageEngine, beside: bool, faults: Faults) -> bool {
    let (env, _, fs) = sim::world(4);
    let target = open(&env);
    for epoch in 1..=3 {
        apply(&target, epoch, 0..0).await;
    }
    target.wait_durable(mark(3).bucket, Epoch(3)).await.unwrap();
    if beside {
        let mut received = target.begin_receiving(NODE);
        round(source, HERE, &mut received).await;
        assert!(target.install_slice(received, HERE, info(), &mark(3)).await.is_ok());
    }
    let mut received = target.begin_receiving(NODE);
    round(source, ARRIVES, &mut received).await;
    let first = fs.operations() + faults.at;
    (first..=first + faults.more).for_each(|operation| fs.fail_at(operation));
    let installed = target.install_slice(received, ARRIVES, info(), &mark(3)).await;
    let (installed, struck) = (installed.is_ok(), fs.operations() >= first);
    assert!(installed || struck, "without faults it is installed");
    fs.disarm_faults();
    epoch_of_arrived(&target, 4).await;
    target.wait_durable(mark(4).bucket, Epoch(4)).await.unwrap();
    if faults.later {
        fs.fail_at(fs.operations() + 1);
        let _may_fail_too = release_log(&target.context).await;
        fs.disarm_faults();
    } else {
        target.flush().await.unwrap();
        assert_eq!(target.context.files.uncertain_manifests(), []);
    }
    assert_eq!(entries(&target), installed.then_some(30), "{faults:?}");
    // The process is killed.
    drop(target);
    let target = open(&env);
    assert!(entries(&target).is_none_or(|entries| entries == 30), "{faults:?}, beside: {beside}");
    struck
}

/// Number of entries at the newest epoch; `None` if the slice is absent.
fn entries(store: &StorageEngine) -> Option<u64> {
    store.load_all();
    let shown = store.snapshot(ARRIVES.local_index(), Epoch(4)).ok()?;
    shown.has(ARRIVES.slice).then(|| shown.checksum(ARRIVES.slice).unwrap().1)
}

/// If an epoch is applied a second time, an index that has the epoch already must skip it.
#[tokio::test]
async fn no_slice_joins_an_index_ahead() {
    let (env, _fs) = node().await;
    let source = open(&env);
    source.load_all();
    source.clone_slice(HERE, ARRIVES.slice).await.unwrap();
    let (env, _, _fs) = sim::world(4);
    let target = open(&env);
    for epoch in 1..=3 {
        apply(&target, epoch, 0..0).await;
    }
    let mut received = target.begin_receiving(NODE);
    round(&source, HERE, &mut received).await;
    assert!(target.install_slice(received, HERE, info(), &mark(3)).await.is_ok());
    let index = target.context.state.get(HERE.local_index()).unwrap();
    index.writer().applied = Epoch(4);
    let mut received = target.begin_receiving(NODE);
    round(&source, ARRIVES, &mut received).await;
    let installed = target.install_slice(received, ARRIVES, info(), &mark(3)).await;
    assert!(installed.is_err_and(|refused| refused.error.is_retry()));
}

/// Each file operation of an installation fails, alone or together with some of the following ones.
/// Further epochs are applied, and then the process is killed.
#[tokio::test]
async fn a_slice_that_a_crash_brings_back_lacks_no_epoch() {
    let (env, _fs) = node().await;
    let source = open(&env);
    source.load_all();
    source.clone_slice(HERE, ARRIVES.slice).await.unwrap();
    for (beside, later) in [(false, false), (false, true), (true, false), (true, true)] {
        for more in 0..8 {
            let mut at = 1;
            while arrives(&source, beside, Faults { at, more, later }).await {
                at += 1;
            }
            assert!(at > 6, "an installation has file operations");
        }
    }
}
