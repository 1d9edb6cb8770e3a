//! Tests of rollbacks for which one of two copies is too young: complete indexers run against a
//! simulated cluster.
//!
//! The source loses the mutations after seqno 10 of vbucket 0. One copy was built before the epoch
//! of that position, the other one after it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::Config;
use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use proto::Result;
use proto::env::{DirectoryIdentity, Env, TaskPolicy};
use proto::model::cut::{Cut, Position};
use proto::model::ids::{Epoch, NodeId, Seqno, SliceId, VbucketId};
use proto::model::index::IndexInfo;
use proto::model::node::Role;
use proto::model::rollback::DeadEpochs;
use proto::rpc::api::{IndexerApi, ResultStream, SliceProgress};
use proto::rpc::export::{ExportHead, ExportMessage, ExportRequest};
use proto::rpc::mutation::StreamMessage;
use proto::rpc::mutation::SubscribeRequest;
use proto::rpc::scan::{AppliedReport, ShardBatch, ShardScan};
use proto::{Error, ErrorCode};
use storage::{Grouping, PartRange, SliceStore, StorageEngine};

use super::cluster::{BUCKET, node};
use super::played::{
    self, BRANCH, INDEX, NEW_BRANCH, SLICES, Script, cut, documents, expected_checksums, frame,
    index, index_placed_on, mark, unbuilt_index, wait_index_checksum, wait_slice_checksum,
};
use crate::{Indexer, recorded_tasks};
use proto::model::assignment::VbucketSet;
use proto::rpc::mutation::BackfillRequest;
use storage::{EpochBatch, StoreOptions, VbucketMutations};

/// The node whose copy can be rolled back.
const OLD: NodeId = NodeId(7);
/// The node whose copy cannot be rolled back.
const YOUNG: NodeId = NodeId(8);
const COPIES: [NodeId; 2] = [OLD, YOUNG];
/// The first epoch after the rollback.
const RESUMED: Epoch = Epoch(4);

/// Returns a cut at this seqno of vbucket 0, after the loss.
fn end(seqno: u64) -> Cut {
    let position = Position { vbuuid: NEW_BRANCH, seqno: Seqno(seqno) };
    cut([0, 0]).with(&[(VbucketId(0), position)])
}

fn resumed() -> Cut {
    end(12)
}

fn history(lost: bool) -> StreamMessage {
    played::history(lost.then_some(10))
}

fn epoch(epoch: u64, parent: u64, cut: Cut) -> StreamMessage {
    StreamMessage::Epoch(mark(epoch, parent, cut))
}

fn third() -> [StreamMessage; 2] {
    [frame(BRANCH, 10, 20), epoch(3, 2, cut([20, 0]))]
}

/// Returns the first messages of a stream. `before` is the number of earlier streams of the node:
/// in the first one, the node `OLD` begins at seqno 0 and the other at 10; in later ones, which
/// follow the loss, epoch 4 ends at seqno 12.
fn streams(request: &SubscribeRequest, before: usize) -> Vec<StreamMessage> {
    let index = if before == 0 { unbuilt_index(&COPIES) } else { index(&COPIES) };
    let begin =
        |at| StreamMessage::Begin { at, indexes: vec![index], vbuckets: VbucketSet::all(2) };
    match (before, request.node) {
        (0, OLD) => vec![begin(cut([0, 0])), history(false), epoch(1, 0, cut([0, 0]))],
        (0, _) => {
            let mut all = vec![begin(cut([10, 0])), history(false)];
            all.extend(third());
            all
        }
        _ => {
            // A node without data begins at the present.
            let at = request.from.clone().unwrap_or_else(resumed);
            let lacks = at.get(VbucketId(0)).seqno == Seqno(10);
            let missing = lacks.then(|| frame(NEW_BRANCH, 10, 12));
            let last = epoch(RESUMED.0, 2, resumed());
            [begin(at), history(true)].into_iter().chain(missing).chain([last]).collect()
        }
    }
}

fn snapshots(request: &BackfillRequest, before: usize) -> (Cut, Bytes) {
    match (before, request.node) {
        (0, OLD) => (cut([0, 0]), documents(0, 0)),
        (0, _) => (cut([10, 0]), documents(0, 10)),
        _ => (resumed(), documents(0, 12)),
    }
}

fn start(script: &Script, id: NodeId, dir: &tempfile::TempDir) -> Arc<Indexer> {
    start_in(Env::real(), script, id, dir)
}

fn start_in(env: Env, script: &Script, id: NodeId, dir: &tempfile::TempDir) -> Arc<Indexer> {
    let config = Config::new((*node(id, Role::Indexer)).clone(), dir.path());
    let indexer = Indexer::start(config, env, script.cluster()).expect("it starts");
    let indexer = Arc::new(indexer);
    script.0.state.indexers.lock().unwrap().insert(id, indexer.clone());
    indexer
}

fn roll_back(script: &Script) {
    script.0.state.change(|catalog| {
        let bucket = catalog.buckets.get_mut(&BUCKET).map(Arc::make_mut).expect("the bucket");
        let point = Some(mark(2, 1, cut([10, 0])));
        bucket.dead = Arc::new(vec![DeadEpochs { point, to: Epoch(3) }]);
    });
}

/// Returns the oldest epoch that can be read in each slice.
fn floors(indexer: &Indexer) -> Vec<Option<Epoch>> {
    indexer.status().slices.iter().map(|told| told.floor).collect()
}

#[tokio::test]
async fn a_slice_that_cannot_roll_back_is_fetched_with_its_rollback_points() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let script = Script::new(&COPIES, streams, snapshots);
    let old = start(&script, OLD, &dirs[0]);
    wait_index_checksum(&old, Epoch(1)).await;
    script.send(OLD, [frame(BRANCH, 0, 10), epoch(2, 1, cut([10, 0]))].into_iter().chain(third()));
    let young = start(&script, YOUNG, &dirs[1]);
    assert_eq!(
        wait_index_checksum(&old, Epoch(3)).await,
        wait_index_checksum(&young, Epoch(3)).await
    );
    assert_eq!(floors(&old), [Some(Epoch(1)); 2]);
    assert_eq!(floors(&young), [Some(Epoch(3)); 2]);
    roll_back(&script);
    let expected = wait_index_checksum(&old, RESUMED).await;
    assert_eq!(
        wait_index_checksum(&young, RESUMED).await,
        expected,
        "all that survived, and nothing else"
    );
    assert_eq!(expected.1, 12);
    assert_eq!(script.backfills_of(YOUNG), 1, "the source was not asked again");
    assert_eq!(floors(&young), [Some(Epoch(1)); 2], "it can go back as far as the copy");
    assert_eq!(
        wait_index_checksum(&young, Epoch(2)).await,
        wait_index_checksum(&old, Epoch(2)).await
    );
}

/// An indexer whose copy is lost (`None`), or whose files differ from its checksums.
struct Lost(Option<Arc<Indexer>>);

#[async_trait]
impl IndexerApi for Lost {
    async fn scan(&self, _: ShardScan) -> Result<ResultStream<ShardBatch>> {
        Err(Error::unavailable("not here"))
    }
    async fn watch_applied(&self) -> Result<ResultStream<AppliedReport>> {
        Err(Error::unavailable("not here"))
    }
    async fn checksum(&self, slice: SliceId, epoch: Epoch) -> Result<(u64, u64)> {
        let given = self.0.as_ref().ok_or_else(|| Error::unavailable("not here"))?;
        let (sum, entries) = given.checksum(slice, epoch).await?;
        Ok((sum + 1, entries))
    }
    async fn export(&self, request: ExportRequest) -> Result<ResultStream<ExportMessage>> {
        let given = self.0.as_ref();
        given.ok_or_else(|| Error::new(ErrorCode::SliceMoved, "not here"))?.export(request).await
    }
}

#[tokio::test]
async fn a_slice_that_no_copy_has_is_built_from_the_source() {
    let dir = tempfile::tempdir().unwrap();
    let script = Script::new(&COPIES, streams, snapshots);
    script.0.state.indexers.lock().unwrap().insert(OLD, Arc::new(Lost(None)));
    let young = start(&script, YOUNG, &dir);
    assert_eq!(wait_index_checksum(&young, Epoch(3)).await.1, 20);
    roll_back(&script);
    assert_eq!(wait_index_checksum(&young, RESUMED).await.1, 12);
    assert_eq!(script.backfills_of(YOUNG), 2);
    assert_eq!(young.status().slices.len(), 2, "nothing is fetched any more");
}

/// Creates a store with the slices of an index on a node, readable at the epochs 1 to 3.
async fn stored(dir: &tempfile::TempDir, node: NodeId, info: &Arc<IndexInfo>) -> StorageEngine {
    let (env, who) = (Env::real(), (Role::Indexer, node));
    proto::env::check_version(&*env.fs, dir.path(), storage::layout::DATA_VERSION, false).unwrap();
    DirectoryIdentity::open(&*env.fs, dir.path(), who, &*env.random, false).unwrap();
    let store = StorageEngine::open(&Env::real(), node, dir.path(), StoreOptions::default());
    let store = store.expect("it opens");
    store.begin_build(Arc::clone(info), Grouping::Together).await.unwrap();
    store.begin_backfill(INDEX).await.unwrap();
    let ends = [0, 10, 20];
    for (n, to) in ends.into_iter().enumerate() {
        let epoch = n as u64 + 1;
        let from = ends[n.saturating_sub(1)];
        let (base, after, body) = (Seqno(from), Seqno(from), documents(from, to - from));
        let pieces = vec![VbucketMutations { body, base, after, to: Seqno(to) }];
        let mark = mark(epoch, epoch - 1, cut([to, 0]));
        store.apply(EpochBatch { mark: mark.clone(), pieces, commits: Vec::new() }).await.unwrap();
        if epoch == 1 {
            store.finish_build(INDEX, &mark).await.unwrap();
        }
    }
    store.wait_durable(BUCKET, Epoch(3)).await.unwrap();
    store
}

/// Copies a slice like a move, but with a later floor and without rollback points.
async fn copy_late(from: &StorageEngine, to: &StorageEngine, slice: SliceId, floor: Epoch) {
    let export = from.export_slice(slice).await.expect("the slice is present");
    let mut received = to.begin_receiving(OLD);
    let head = ExportHead { floor, points: Vec::new(), ..export.head.clone() };
    received.begin_round(head).await.unwrap();
    let whole =
        |(file, len): &(u64, u64)| PartRange { file: *file, offset: 0, bytes: *len as usize };
    let files = export.head.files.iter().map(whole).collect();
    received.store_pieces(export.read(files).await.unwrap()).await.unwrap();
    received.sync().await.unwrap();
    let mark = mark(3, 2, cut([20, 0]));
    let installed = to.install_slice(received, slice, index(&COPIES), &mark).await;
    assert!(installed.is_ok());
}

#[tokio::test]
async fn only_the_slices_that_cannot_go_back_are_fetched() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let old = stored(&dirs[0], OLD, &index(&COPIES)).await;
    let young = stored(&dirs[1], YOUNG, &index_placed_on(vec![COPIES.to_vec(), vec![OLD]])).await;
    copy_late(&old, &young, SLICES[1], Epoch(3)).await;
    for store in [&old, &young] {
        assert!(store.can_roll_back(SLICES[0], Epoch(2)));
    }
    assert!(!young.can_roll_back(SLICES[1], Epoch(2)));
    drop((old, young));
    let script = Script::new(&COPIES, |request, _| streams(request, 1), snapshots);
    roll_back(&script);
    let old = start(&script, OLD, &dirs[0]);
    let young = start(&script, YOUNG, &dirs[1]);
    let expected = wait_index_checksum(&old, RESUMED).await;
    assert_eq!(wait_index_checksum(&young, RESUMED).await, expected);
    assert_eq!(expected.1, 12);
    assert_eq!(floors(&young), [Some(Epoch(1)); 2]);
    assert!(script.0.backfills.lock().unwrap().is_empty(), "nothing was built from the source");
    let begins = script.0.subscriptions.lock().unwrap().clone();
    let begins: Vec<_> = begins.iter().filter(|asked| asked.node == YOUNG).collect();
    assert!(begins[0].from.is_some(), "the remaining slice continues from the point");
}

/// Starts a node whose slice 0 can be rolled back and whose slice 1 cannot. No other copy has slice
/// 1, and the snapshot is delayed.
async fn half_lost(dir: &tempfile::TempDir) -> (Script, Arc<Indexer>) {
    let other = tempfile::tempdir().unwrap();
    let old = stored(&other, OLD, &index(&COPIES)).await;
    let young = stored(dir, YOUNG, &index_placed_on(vec![COPIES.to_vec(), vec![OLD]])).await;
    copy_late(&old, &young, SLICES[1], Epoch(3)).await;
    drop(young);
    let snapshots = |_: &BackfillRequest, before| match before {
        0 => (resumed(), documents(0, 12)),
        _ => (end(15), documents(0, 15)),
    };
    let script = Script::new(&COPIES, |request, _| streams(request, 1), snapshots);
    script.0.state.indexers.lock().unwrap().insert(OLD, Arc::new(Lost(None)));
    script.0.open.send_replace(false);
    roll_back(&script);
    let young = start(&script, YOUNG, dir);
    (script, young)
}

/// Returns an epoch after the rollback, with three more documents.
fn fifth() -> [StreamMessage; 2] {
    [frame(NEW_BRANCH, 12, 15), epoch(5, RESUMED.0, end(15))]
}

async fn progress_of(young: &Indexer, slice: SliceId) -> SliceProgress {
    let find = || young.status().slices.into_iter().find(|told| told.slice == slice);
    loop {
        match find().filter(|told| told.floor.is_none()) {
            Some(told) => return told,
            None => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

#[tokio::test]
async fn a_slice_without_a_copy_is_built_while_the_others_answer() {
    let dir = tempfile::tempdir().unwrap();
    let (script, young) = half_lost(&dir).await;
    assert_eq!(
        wait_slice_checksum(&young, SLICES[0], RESUMED).await,
        expected_checksums(12).await[0]
    );
    progress_of(&young, SLICES[1]).await;
    assert_eq!(script.backfills_of(YOUNG), 1);
    script.send(YOUNG, fifth());
    assert_eq!(
        wait_slice_checksum(&young, SLICES[0], Epoch(5)).await,
        expected_checksums(15).await[0]
    );
    assert_eq!(floors(&young), [Some(Epoch(1)), None]);
    let refused = young.checksum(SLICES[1], Epoch(5)).await;
    assert!(refused.is_err(), "{refused:?}");
    script.0.open.send_replace(true);
    assert_eq!(
        wait_slice_checksum(&young, SLICES[1], Epoch(5)).await,
        expected_checksums(15).await[1]
    );
    assert_eq!(floors(&young), [Some(Epoch(1)), Some(Epoch(5))]);
    assert_eq!(
        wait_slice_checksum(&young, SLICES[0], Epoch(2)).await,
        expected_checksums(10).await[0],
        "its reach"
    );
    assert_eq!(script.backfills_of(YOUNG), 1);
}

#[tokio::test]
async fn a_crash_during_the_build_of_a_lost_slice_restarts_only_that_build() {
    let dir = tempfile::tempdir().unwrap();
    let (script, young) = half_lost(&dir).await;
    progress_of(&young, SLICES[1]).await;
    script.send(YOUNG, fifth());
    wait_slice_checksum(&young, SLICES[0], Epoch(5)).await;
    // Long enough for the log to be synced.
    tokio::time::sleep(Duration::from_millis(500)).await;
    script.0.state.indexers.lock().unwrap().remove(&YOUNG);
    drop(young);
    tokio::time::sleep(Duration::from_millis(300)).await;
    script.0.open.send_replace(true);
    let young = start(&script, YOUNG, &dir);
    assert_eq!(
        wait_slice_checksum(&young, SLICES[0], Epoch(5)).await,
        expected_checksums(15).await[0]
    );
    script.send(YOUNG, [frame(NEW_BRANCH, 15, 16), epoch(6, 5, end(16))]);
    assert_eq!(wait_index_checksum(&young, Epoch(6)).await.1, 16);
    assert_eq!(script.backfills_of(YOUNG), 2);
}

#[tokio::test]
async fn a_node_with_an_empty_disk_fetches_existing_copies_and_builds_the_rest() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let placement = || index_placed_on(vec![COPIES.to_vec(), vec![YOUNG]]);
    drop(stored(&dirs[0], OLD, &index_placed_on(vec![vec![OLD], vec![YOUNG]])).await);
    let script = Script::new(
        &COPIES,
        move |request, _| {
            let begin = StreamMessage::Begin {
                at: request.from.clone().unwrap_or_else(|| cut([20, 0])),
                indexes: vec![placement()],
                vbuckets: VbucketSet::all(2),
            };
            vec![begin, history(false), epoch(4, 3, cut([20, 0]))]
        },
        |_, _| (cut([20, 0]), documents(0, 20)),
    );
    script.0.state.change(|catalog| {
        catalog.indexes.insert(INDEX.index, index_placed_on(vec![COPIES.to_vec(), vec![YOUNG]]));
    });
    let old = start(&script, OLD, &dirs[0]);
    script.0.open.send_replace(false);
    let young = start(&script, YOUNG, &dirs[1]);
    let expected = expected_checksums(20).await;
    assert_eq!(wait_slice_checksum(&old, SLICES[0], Epoch(4)).await, expected[0]);
    assert_eq!(
        wait_slice_checksum(&young, SLICES[0], Epoch(4)).await,
        expected[0],
        "while the other is built"
    );
    script.0.open.send_replace(true);
    assert_eq!(wait_slice_checksum(&young, SLICES[1], Epoch(4)).await, expected[1]);
    assert_eq!(floors(&young), [Some(Epoch(1)), Some(Epoch(4))]);
    assert_eq!((script.backfills_of(OLD), script.backfills_of(YOUNG)), (0, 1));
}

#[tokio::test]
async fn a_fetched_slice_that_differs_from_its_copy_is_not_shown() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    drop(stored(&dirs[0], OLD, &index(&COPIES)).await);
    let streams = |request: &SubscribeRequest, _| {
        let at = request.from.clone().unwrap_or_else(|| cut([20, 0]));
        let (indexes, vbuckets) = (vec![index(&COPIES)], VbucketSet::all(2));
        let begin = StreamMessage::Begin { at, indexes, vbuckets };
        vec![begin, history(false), epoch(4, 3, cut([20, 0]))]
    };
    let script = Script::new(&COPIES, streams, |_, _| (cut([20, 0]), documents(0, 20)));
    let old = start(&script, OLD, &dirs[0]);
    script.0.state.indexers.lock().unwrap().insert(OLD, Arc::new(Lost(Some(old.clone()))));
    let young = start(&script, YOUNG, &dirs[1]);
    assert_eq!(
        wait_index_checksum(&young, Epoch(4)).await,
        wait_index_checksum(&old, Epoch(4)).await
    );
    assert_eq!(floors(&young), [Some(Epoch(4)); 2], "built from the source");
    assert!(script.backfills_of(YOUNG) > 0);
}

/// A crash between the loss of a slice and its arrival leaves a node without the slice, which is
/// then fetched.
#[tokio::test]
async fn slices_that_a_starting_node_lacks_are_fetched() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    drop(stored(&dirs[0], OLD, &index(&COPIES)).await);
    drop(stored(&dirs[1], YOUNG, &index_placed_on(vec![COPIES.to_vec(), vec![OLD]])).await);
    let script = Script::new(
        &COPIES,
        |request, _| {
            let at = request.from.clone().expect("both have slices");
            let begin = StreamMessage::Begin {
                at,
                indexes: vec![index(&COPIES)],
                vbuckets: VbucketSet::all(2),
            };
            vec![begin, history(false), epoch(4, 3, cut([20, 0]))]
        },
        snapshots,
    );
    let old = start(&script, OLD, &dirs[0]);
    let young = start(&script, YOUNG, &dirs[1]);
    let expected = wait_index_checksum(&old, Epoch(4)).await;
    assert_eq!(expected.1, 20);
    assert_eq!(wait_index_checksum(&young, Epoch(4)).await, expected);
    assert!(script.0.backfills.lock().unwrap().is_empty(), "nothing was built from the source");
}

/// A copy that panics for the first reader of its files, after their first piece.
struct Panicking(Arc<Indexer>, AtomicBool);

#[async_trait]
impl IndexerApi for Panicking {
    async fn scan(&self, _: ShardScan) -> Result<ResultStream<ShardBatch>> {
        Err(Error::unavailable("not here"))
    }
    async fn watch_applied(&self) -> Result<ResultStream<AppliedReport>> {
        Err(Error::unavailable("not here"))
    }
    async fn checksum(&self, slice: SliceId, epoch: Epoch) -> Result<(u64, u64)> {
        self.0.checksum(slice, epoch).await
    }
    async fn export(&self, request: ExportRequest) -> Result<ResultStream<ExportMessage>> {
        let messages = self.0.export(request).await?;
        if !self.1.swap(false, Ordering::Relaxed) {
            return Ok(messages);
        }
        let mut pieces = 0;
        Ok(Box::pin(messages.inspect(move |message| {
            pieces += u32::from(matches!(message, Ok(ExportMessage::Piece(_))));
            assert!(pieces < 2, "a panic, as told");
        })))
    }
}

#[tokio::test]
async fn a_panic_while_a_slice_is_copied_is_a_failed_attempt() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    drop(stored(&dirs[0], OLD, &index(&COPIES)).await);
    drop(stored(&dirs[1], YOUNG, &index_placed_on(vec![COPIES.to_vec(), vec![OLD]])).await);
    let streams = |request: &SubscribeRequest, _| {
        let at = request.from.clone().expect("both have slices");
        let (indexes, vbuckets) = (vec![index(&COPIES)], VbucketSet::all(2));
        let begin = StreamMessage::Begin { at, indexes, vbuckets };
        vec![begin, history(false), epoch(4, 3, cut([20, 0]))]
    };
    let script = Script::new(&COPIES, streams, snapshots);
    let old = start(&script, OLD, &dirs[0]);
    let panicking = Panicking(old.clone(), AtomicBool::new(true));
    script.0.state.indexers.lock().unwrap().insert(OLD, Arc::new(panicking));
    let (env, failures) = recorded_tasks::env();
    let young = start_in(env, &script, YOUNG, &dirs[1]);
    let expected = wait_index_checksum(&old, Epoch(4)).await;
    assert_eq!(expected.1, 20);
    assert_eq!(
        wait_index_checksum(&young, Epoch(4)).await,
        expected,
        "nothing twice, and nothing lost"
    );
    assert!(script.0.backfills.lock().unwrap().is_empty(), "nothing was built from the source");
    let lines = failures.lines();
    assert!(lines.len() == 1 && lines[0].contains("\"copy-slice\""), "once: {lines:?}");
    assert!(lines[0].contains("a panic, as told"), "{lines:?}");
    let restarted = |policy: &TaskPolicy| matches!(policy, TaskPolicy::Restart(_));
    assert!(failures.policies().iter().all(restarted), "the task begins anew");
    // The next epochs are fed by the stream.
    let more = [frame(BRANCH, 20, 25), epoch(5, 4, cut([25, 0]))];
    script.send(OLD, more.clone());
    script.send(YOUNG, more);
    assert_eq!(
        wait_index_checksum(&young, Epoch(5)).await,
        wait_index_checksum(&old, Epoch(5)).await
    );
    assert_eq!(wait_index_checksum(&young, Epoch(5)).await.1, 25);
}
