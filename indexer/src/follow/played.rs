//! A simulated projector for tests of complete indexers. A test defines its messages, and the
//! projector records the requests that it receives. The projector has one bucket, with an index
//! of two slices.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_channel::Sender;
use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, StreamExt};
use proto::env::Env;
use proto::expr::{ColumnType, Expr};
use proto::model::cut::{Cut, EpochMark, Position};
use proto::model::history::FailoverLogs;
use proto::model::ids::{
    Epoch, Generation, IndexId, LocalIndexId, NodeId, Seqno, SliceId, SliceNo, VbucketId, Vbuuid,
};
use proto::model::index::{IndexInfo, IndexSpec, IndexState, KeyPart};
use proto::model::topology::{PartitionKey, TopologyProvider};
use proto::rpc::api::{IndexerApi, ResultStream};
use proto::rpc::mutation::{
    BackfillMessage, BackfillRequest, Frame, KeyVersionsWriter, MutationKind, StreamMessage,
    SubscribeRequest,
};
use proto::value::path::Step;
use proto::{Error, Result};
use tokio::sync::watch;

use super::cluster::{BUCKET, Cluster, ClusterState, ProjectorCalls};
use crate::Indexer;
use storage::{EpochBatch, Grouping, SliceStore, StorageEngine, StoreOptions};

pub const INDEX: LocalIndexId = LocalIndexId { index: IndexId(1), generation: Generation(0) };
/// The slices of the index.
pub const SLICES: [SliceId; 2] = [slice(0), slice(1)];
pub const BRANCH: Vbuuid = Vbuuid(9);
/// The branch of vbucket 0 after the source has lost mutations.
pub const NEW_BRANCH: Vbuuid = Vbuuid(11);

const fn slice(slice: u16) -> SliceId {
    INDEX.slice(SliceNo(slice))
}

/// A function that returns the first messages of a subscription. Its second argument is the
/// number of earlier subscriptions of the same node.
type SubscriptionMessages = dyn Fn(&SubscribeRequest, usize) -> Vec<StreamMessage> + Send + Sync;
/// A function that returns the snapshot for a backfill: its cut and its documents. Its second
/// argument is the number of earlier backfills of the same node.
type BackfillSnapshot = dyn Fn(&BackfillRequest, usize) -> (Cut, Bytes) + Send + Sync;
/// A function that returns the error with which a subscription is refused; `None` accepts it.
type SubscriptionCheck = dyn Fn(&SubscribeRequest) -> Option<Error> + Send;

/// The messages of the simulated projector and the requests that it has recorded.
pub struct ScriptState {
    pub state: Arc<ClusterState>,
    pub subscriptions: Mutex<Vec<SubscribeRequest>>,
    pub backfills: Mutex<Vec<BackfillRequest>>,
    /// True if snapshots may send documents; otherwise they wait.
    pub open: watch::Sender<bool>,
    /// The number of snapshots whose stream ends too early. The first snapshots of each node do
    /// so.
    pub cut_short: AtomicUsize,
    /// The number of subscriptions that were refused.
    pub refused: AtomicUsize,
    refusals: Mutex<Box<SubscriptionCheck>>,
    /// For each node, the sender of further messages in its newest stream.
    more: Mutex<BTreeMap<NodeId, Sender<StreamMessage>>>,
    streams: Box<SubscriptionMessages>,
    snapshots: Box<BackfillSnapshot>,
}

/// A handle of the simulated projector, by which a test controls it.
#[derive(Clone)]
pub struct Script(pub Arc<ScriptState>);

impl Script {
    pub fn new(
        copies: &[NodeId],
        streams: impl Fn(&SubscribeRequest, usize) -> Vec<StreamMessage> + Send + Sync + 'static,
        snapshots: impl Fn(&BackfillRequest, usize) -> (Cut, Bytes) + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(ScriptState {
            state: ClusterState::new(copies, &[index(copies)]),
            subscriptions: Mutex::default(),
            backfills: Mutex::default(),
            open: watch::Sender::new(true),
            cut_short: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
            refusals: Mutex::new(Box::new(|_| None)),
            more: Mutex::default(),
            streams: Box::new(streams),
            snapshots: Box::new(snapshots),
        }))
    }

    /// Sends further messages to the newest stream of a node.
    pub fn send(&self, node: NodeId, messages: impl IntoIterator<Item = StreamMessage>) {
        let more = &self.0.more.lock().unwrap()[&node];
        messages.into_iter().for_each(|message| more.try_send(message).unwrap());
    }

    /// Ends the newest stream of a node.
    pub fn end_stream(&self, node: NodeId) {
        self.0.more.lock().unwrap().remove(&node);
    }

    /// Sets the function that decides which subscriptions are refused from now on.
    pub fn refuse(&self, refusal: impl Fn(&SubscribeRequest) -> Option<Error> + Send + 'static) {
        *self.0.refusals.lock().unwrap() = Box::new(refusal);
    }

    /// Returns the simulated services that an indexer calls.
    pub fn cluster(&self) -> Arc<Cluster<Self>> {
        Arc::new(Cluster { state: Arc::clone(&self.0.state), streams: self.clone() })
    }

    /// The number of backfills that a node has requested.
    pub fn backfills_of(&self, node: NodeId) -> usize {
        self.0.backfills.lock().unwrap().iter().filter(|asked| asked.node == node).count()
    }
}

/// Returns a cut at these seqnos of the two vbuckets.
pub fn cut(seqnos: [u64; 2]) -> Cut {
    let position = |seqno| match seqno {
        0 => Position { vbuuid: Vbuuid(0), seqno: Seqno(0) },
        _ => Position { vbuuid: BRANCH, seqno: Seqno(seqno) },
    };
    Cut::from_positions(seqnos.map(position).to_vec())
}

/// Returns the mark (stability timestamp) of an epoch.
pub fn mark(epoch: u64, parent: u64, cut: Cut) -> EpochMark {
    let (epoch, parent, horizon) = (Epoch(epoch), Epoch(parent), Epoch(0));
    EpochMark { bucket: BUCKET, epoch, parent, cut: cut.into(), horizon, points: Arc::default() }
}

/// Returns `count` documents of vbucket 0 after the seqno `from`, of a thousand bytes each.
pub fn documents(from: u64, count: u64) -> Bytes {
    let (mut writer, topology) = (KeyVersionsWriter::default(), Arc::clone(&index(&[]).topology));
    for n in 1..=count {
        let id = format!("d{:06}", from + n);
        writer.mutation(n, MutationKind::Upsert, &id, 1);
        writer.index(INDEX, 1);
        let mut key = Vec::new();
        proto::value::key::encode_part(
            &proto::value::Value::int((from + n) as i64),
            false,
            &mut key,
        );
        writer.entry(topology.partition(PartitionKey::Id(&id)), &key, &[0; 1000]);
    }
    writer.finish()
}

/// Returns the index, with copies of both slices on each of these nodes.
pub fn index(copies: &[NodeId]) -> Arc<IndexInfo> {
    index_placed_on(vec![copies.to_vec(), copies.to_vec()])
}

/// Returns the index as it is when it joins a stream for the first time: it is to be built.
pub fn unbuilt_index(copies: &[NodeId]) -> Arc<IndexInfo> {
    let info = IndexInfo::clone(&index(copies));
    Arc::new(IndexInfo { state: IndexState::Backfill, ..info })
}

/// Returns the index with this placement (the nodes of each slice).
pub fn index_placed_on(placement: Vec<Vec<NodeId>>) -> Arc<IndexInfo> {
    let part = KeyPart {
        expr: Expr::Path(vec![Step::Field("n".into())]),
        name: "n".into(),
        column_type: ColumnType::Text,
        descending: false,
        include_missing: false,
    };
    let spec = IndexSpec { primary: false, keys: vec![part], ..IndexSpec::new("i", "b") };
    let info = IndexInfo::new(INDEX.index, BUCKET, spec, placement);
    Arc::new(IndexInfo { state: IndexState::Maintenance, ..info })
}

/// Returns the message with the source's history. With `kept`, vbucket 0 has lost the mutations
/// after that seqno and continues on a new branch.
pub fn history(kept: Option<u64>) -> StreamMessage {
    let new = kept.map(|kept| (NEW_BRANCH, kept));
    let first = new.into_iter().chain([(BRANCH, 0)]).collect();
    StreamMessage::History(Arc::new(FailoverLogs::new(vec![first, vec![(BRANCH, 0)]])))
}

/// Returns a frame with the documents of vbucket 0 after the seqno `from`, up to `to`.
pub fn frame(vbuuid: Vbuuid, from: u64, to: u64) -> StreamMessage {
    let (vbucket, body) = (VbucketId(0), documents(from, to - from));
    let (from, to) = (Seqno(from), Seqno(to));
    StreamMessage::Frames(vec![Frame { vbucket, vbuuid, from, to, body }])
}

#[async_trait]
impl ProjectorCalls for Script {
    async fn subscribe(&self, request: SubscribeRequest) -> Result<ResultStream<StreamMessage>> {
        if let Some(error) = (self.0.refusals.lock().unwrap())(&request) {
            self.0.refused.fetch_add(1, Ordering::SeqCst);
            return Err(error);
        }
        let mut all = self.0.subscriptions.lock().unwrap();
        let before = all.iter().filter(|other| other.node == request.node).count();
        let messages = (self.0.streams)(&request, before);
        let (sender, more) = async_channel::bounded(64);
        self.0.more.lock().unwrap().insert(request.node, sender);
        all.push(request);
        Ok(Box::pin(stream::iter(messages).chain(more).map(Ok)))
    }
    async fn backfill(&self, request: BackfillRequest) -> Result<ResultStream<BackfillMessage>> {
        let before = self.backfills_of(request.node);
        let (cut, documents) = (self.0.snapshots)(&request, before);
        self.0.backfills.lock().unwrap().push(request);
        let is_cut_short = before < self.0.cut_short.load(Ordering::SeqCst);
        let begin = stream::iter([Ok(BackfillMessage::Begin { cut })]);
        let mut open = self.0.open.subscribe();
        let documents = async move {
            let _ = open.wait_for(|open| *open).await;
            stream::iter([Ok(BackfillMessage::Documents(documents)), Ok(BackfillMessage::End)])
        };
        let rest = stream::once(documents).flatten();
        Ok(match is_cut_short {
            true => Box::pin(begin.chain(rest).take(2)),
            false => Box::pin(begin.chain(rest).chain(stream::pending())),
        })
    }
}

/// Waits until both slices of the index can be read at an epoch. Returns the index's checksum and
/// its number of entries.
pub async fn wait_index_checksum(indexer: &Indexer, epoch: Epoch) -> (u64, u64) {
    let (mut sum, mut entries) = (0u64, 0);
    for slice in SLICES {
        let (of_slice, count) = wait_slice_checksum(indexer, slice, epoch).await;
        (sum, entries) = (sum.wrapping_add(of_slice), entries + count);
    }
    (sum, entries)
}

/// Returns the checksum and the number of entries that each slice must have after the documents
/// up to a seqno.
pub async fn expected_checksums(to: u64) -> Vec<(u64, u64)> {
    let dir = tempfile::tempdir().unwrap();
    let node = NodeId(99);
    let store = StorageEngine::open(&Env::real(), node, dir.path(), StoreOptions::default());
    let store = store.expect("it opens");
    store.begin_build(index(&[node]), Grouping::Together).await.unwrap();
    store.begin_backfill(INDEX).await.unwrap();
    store.backfill(INDEX, documents(0, to)).await.unwrap();
    let mark = mark(1, 0, cut([to, 0]));
    store
        .apply(EpochBatch { mark: mark.clone(), pieces: Vec::new(), commits: Vec::new() })
        .await
        .unwrap();
    store.finish_build(INDEX, &mark).await.unwrap();
    let shown = store.snapshot(INDEX, Epoch(1)).unwrap();
    SLICES.map(|slice| shown.checksum(slice.slice).unwrap()).to_vec()
}

/// Waits until a slice can be read at an epoch. Returns its checksum and its number of entries.
pub async fn wait_slice_checksum(indexer: &Indexer, slice: SliceId, epoch: Epoch) -> (u64, u64) {
    let shown = async {
        loop {
            match indexer.checksum(slice, epoch).await {
                Ok(shown) => return shown,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), shown).await.expect("in time")
}
