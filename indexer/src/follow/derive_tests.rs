//! Tests of a generation whose slices are split in place: complete indexers run against a simulated
//! projector.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proto::env::Env;
use proto::expr::Expr;
use proto::model::assignment::VbucketSet;
use proto::model::ids::{Epoch, Generation, LocalIndexId, NodeId, Seqno, SliceNo, VbucketId};
use proto::model::index::{IndexInfo, IndexState, PartitionBy, RangePartition};
use proto::model::node::Role;
use proto::rpc::api::IndexerApi;
use proto::rpc::mutation::{
    Frame, KeyVersionsWriter, MutationKind, StreamMessage, SubscribeRequest,
};
use proto::value::key::encode_part;
use proto::value::path::Step;
use proto::value::{Value, key};

use crate::follow::cluster::node;
use crate::follow::played::{
    BRANCH, INDEX, Script, cut, history, index_placed_on, mark, wait_slice_checksum,
};
use crate::{Config, Indexer};

const HERE: NodeId = NodeId(7);
const ELSEWHERE: NodeId = NodeId(8);
const NEXT: LocalIndexId = LocalIndexId { generation: Generation(1), ..INDEX };
/// The bound between the slices of the first generation. The next generation has a second bound:
/// the slice below 100 is split at 6.
const BEFORE: [i64; 1] = [100];
const AFTER: [i64; 2] = [6, 100];

fn bound(n: i64) -> Vec<u8> {
    let mut bound = Vec::new();
    encode_part(&Value::int(n), false, &mut bound);
    bound
}

fn ranges(bounds: &[i64]) -> RangePartition {
    let expr = Expr::Path(vec![Step::Field("n".into())]);
    RangePartition { expr, bounds: bounds.iter().map(|n| bound(*n)).collect() }
}

fn generation(id: LocalIndexId, bounds: &[i64], placement: Vec<Vec<NodeId>>) -> IndexInfo {
    let info = IndexInfo::clone(&index_placed_on(placement));
    let mut spec = (*info.spec).clone();
    spec.slices = bounds.len() as u16 + 1;
    spec.partition = PartitionBy::Range(ranges(bounds));
    IndexInfo { spec: Arc::new(spec), generation: id.generation, revision: 1, ..info }
}

/// Returns the first generation, with its second slice on the node `second`.
fn first(state: IndexState, second: NodeId) -> Arc<IndexInfo> {
    let info = generation(INDEX, &BEFORE, vec![vec![HERE], vec![second]]);
    Arc::new(IndexInfo { state, ..info })
}

fn next(generation_of: LocalIndexId) -> Arc<IndexInfo> {
    let info = generation(generation_of, &AFTER, vec![vec![HERE]; 3]);
    Arc::new(IndexInfo { state: IndexState::Backfill, ..info })
}

/// Returns the documents `from..to`, each with one entry in each of these generations. Every
/// twentieth entry is above 100.
fn documents(from: u64, to: u64, of: &[LocalIndexId]) -> Bytes {
    let mut writer = KeyVersionsWriter::default();
    for n in from + 1..=to {
        writer.mutation(n - from, MutationKind::Upsert, &format!("d{n:06}"), of.len());
        let value = if n % 20 == 0 { 100 + n } else { n } as i64;
        let mut entry = Vec::new();
        key::encode_part(&Value::int(value), false, &mut entry);
        for id in of {
            let bounds: &[i64] = if *id == INDEX { &BEFORE } else { &AFTER };
            writer.index(*id, 1);
            writer.entry(ranges(bounds).slice(&bound(value)), &entry, &[]);
        }
    }
    writer.finish()
}

fn frame(from: u64, to: u64, of: &[LocalIndexId]) -> StreamMessage {
    let (vbucket, vbuuid, body) = (VbucketId(0), BRANCH, documents(from, to, of));
    StreamMessage::Frames(vec![Frame { vbucket, vbuuid, from: Seqno(from), to: Seqno(to), body }])
}

/// Starts a node at epoch 1 with ten documents and those slices of the first generation that are
/// placed on it.
async fn served(dir: &tempfile::TempDir, second: NodeId) -> (Script, Indexer) {
    let streams = move |request: &SubscribeRequest, before: usize| {
        let state = if before == 0 { IndexState::Backfill } else { IndexState::Maintenance };
        let first = first(state, second);
        let begin = StreamMessage::Begin {
            at: request.from.clone().unwrap_or_else(|| cut([10, 0])),
            indexes: if before == 0 { vec![first] } else { vec![first, next(NEXT)] },
            vbuckets: VbucketSet::all(2),
        };
        vec![begin, history(None), StreamMessage::Epoch(mark(1, 0, cut([10, 0])))]
    };
    let script = Script::new(&[HERE, ELSEWHERE], streams, |request, _| {
        let to = if request.index == INDEX { 10 } else { 15 };
        (cut([to, 0]), documents(0, to, &[request.index]))
    });
    script.0.state.change(|catalog| {
        catalog.indexes.insert(INDEX.index, first(IndexState::Backfill, second));
        catalog.slice_bytes_max.insert(INDEX.index, 1);
    });
    let config = Config::new((*node(HERE, Role::Indexer)).clone(), dir.path());
    let indexer = Indexer::start(config, Env::real(), script.cluster()).expect("it starts");
    wait_slice_checksum(&indexer, INDEX.slice(SliceNo(0)), Epoch(1)).await;
    script.0.state.change(|catalog| {
        catalog.indexes.insert(INDEX.index, first(IndexState::Maintenance, second));
        catalog.generations.insert(NEXT, next(NEXT));
    });
    (script, indexer)
}

/// Returns the sum of the checksums and of the counts of all slices of a generation.
async fn all(indexer: &Indexer, id: LocalIndexId, slices: u16, epoch: u64) -> (u64, u64) {
    let (mut sum, mut entries) = (0u64, 0);
    for slice in 0..slices {
        let (of_slice, count) =
            wait_slice_checksum(indexer, id.slice(SliceNo(slice)), Epoch(epoch)).await;
        (sum, entries) = (sum.wrapping_add(of_slice), entries + count);
    }
    (sum, entries)
}

const BOTH: [LocalIndexId; 2] = [INDEX, NEXT];

#[tokio::test]
async fn a_slice_is_split_in_place_when_an_epoch_covers_its_place_in_the_stream() {
    let dir = tempfile::tempdir().unwrap();
    let (script, indexer) = served(&dir, HERE).await;
    // Documents 11 and 12 come for the first generation only.
    let join = StreamMessage::IndexJoin { index: next(NEXT), at: cut([12, 0]) };
    script.send(HERE, [frame(10, 12, &[INDEX]), join, frame(12, 15, &BOTH)]);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(indexer.checksum(NEXT.slice(SliceNo(0)), Epoch(1)).await.is_err(), "not covered yet");
    let epoch = StreamMessage::Epoch(mark(2, 1, cut([15, 0])));
    script.send(HERE, [epoch]);
    assert_eq!(all(&indexer, NEXT, 3, 2).await, all(&indexer, INDEX, 2, 2).await);
    assert_eq!(
        wait_slice_checksum(&indexer, NEXT.slice(SliceNo(0)), Epoch(2)).await.1,
        5,
        "1 to 5"
    );
    assert_eq!(
        wait_slice_checksum(&indexer, NEXT.slice(SliceNo(1)), Epoch(2)).await.1,
        10,
        "6 to 15"
    );
    assert!(indexer.checksum(NEXT.slice(SliceNo(0)), Epoch(1)).await.is_err(), "below its floor");
    script.send(HERE, [frame(15, 20, &BOTH), StreamMessage::Epoch(mark(3, 2, cut([20, 0])))]);
    let shown = all(&indexer, NEXT, 3, 3).await;
    assert_eq!((shown, shown.1), (all(&indexer, INDEX, 2, 3).await, 20));
    assert_eq!(script.backfills_of(HERE), 1, "that of the first generation");
    let status = indexer.status();
    assert_eq!((status.slices_split, status.backfills), (1, 1));
}

#[tokio::test]
async fn a_slice_is_split_at_the_beginning_of_a_stream_of_a_quiet_bucket() {
    let dir = tempfile::tempdir().unwrap();
    let (script, indexer) = served(&dir, HERE).await;
    script.end_stream(HERE);
    assert_eq!(all(&indexer, NEXT, 3, 1).await, all(&indexer, INDEX, 2, 1).await);
    assert_eq!(script.backfills_of(HERE), 1);
}

#[tokio::test]
async fn a_generation_is_built_from_the_source_if_a_slice_is_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let (script, indexer) = served(&dir, ELSEWHERE).await;
    let join = StreamMessage::IndexJoin { index: next(NEXT), at: cut([10, 0]) };
    let epoch = StreamMessage::Epoch(mark(2, 1, cut([15, 0])));
    script.send(HERE, [join, frame(10, 15, &BOTH), epoch]);
    assert_eq!(all(&indexer, NEXT, 3, 2).await.1, 15);
    assert_eq!(script.backfills_of(HERE), 2);
    assert_eq!(indexer.status().slices_split, 0);
}

#[tokio::test]
async fn a_generation_is_built_from_the_source_if_a_slice_leaves_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let (script, indexer) = served(&dir, HERE).await;
    let join = StreamMessage::IndexJoin { index: next(NEXT), at: cut([12, 0]) };
    let moved = IndexInfo { revision: 2, ..(*first(IndexState::Maintenance, ELSEWHERE)).clone() };
    let leaves = StreamMessage::IndexJoin { index: Arc::new(moved), at: cut([12, 0]) };
    let epoch = StreamMessage::Epoch(mark(2, 1, cut([15, 0])));
    script.send(HERE, [frame(10, 12, &[INDEX]), join, leaves, frame(12, 15, &BOTH), epoch]);
    let epoch = StreamMessage::Epoch(mark(3, 2, cut([16, 0])));
    script.send(HERE, [frame(15, 16, &BOTH), epoch]);
    assert_eq!(all(&indexer, NEXT, 3, 3).await.1, 16);
    assert_eq!(script.backfills_of(HERE), 2);
    assert_eq!(indexer.status().slices_split, 0);
}

#[tokio::test]
async fn a_generation_that_serves_by_now_is_fetched_and_not_made_in_place() {
    let dir = tempfile::tempdir().unwrap();
    let (script, indexer) = served(&dir, HERE).await;
    let join = StreamMessage::IndexJoin { index: next(NEXT), at: cut([12, 0]) };
    let serving =
        IndexInfo { revision: 2, state: IndexState::Maintenance, ..(*next(NEXT)).clone() };
    let again = StreamMessage::IndexJoin { index: Arc::new(serving), at: cut([12, 0]) };
    let epoch = StreamMessage::Epoch(mark(2, 1, cut([15, 0])));
    script.send(HERE, [frame(10, 12, &[INDEX]), join, again, frame(12, 15, &BOTH), epoch]);
    assert_eq!(all(&indexer, INDEX, 2, 2).await.1, 15);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(indexer.status().slices_split, 0);
}

#[tokio::test]
async fn a_cancelled_split_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (script, indexer) = served(&dir, HERE).await;
    let join = StreamMessage::IndexJoin { index: next(NEXT), at: cut([12, 0]) };
    script.send(HERE, [frame(10, 12, &[INDEX]), join]);
    tokio::time::sleep(Duration::from_millis(100)).await;
    script.0.state.change(|catalog| {
        catalog.generations.clear();
        let info = IndexInfo { revision: 2, ..(*first(IndexState::Maintenance, HERE)).clone() };
        catalog.indexes.insert(INDEX.index, Arc::new(info));
    });
    let leave = StreamMessage::IndexLeave { index: NEXT };
    let epoch = StreamMessage::Epoch(mark(2, 1, cut([15, 0])));
    script.send(HERE, [leave, frame(12, 15, &[INDEX]), epoch]);
    assert_eq!(all(&indexer, INDEX, 2, 2).await.1, 15);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(indexer.status().slices.iter().all(|told| told.slice.local_index() == INDEX));
}
