//! The service interfaces: one trait for each role. A service implements its own trait and receives the others
//! as `Arc<dyn …>` from a [`Directory`]. A call is a direct call if both ends share a process, and gRPC otherwise; a
//! service cannot tell the difference. The simulation always uses gRPC.
//!
//! Every call may fail with a retryable error at any time, and the caller handles it. Streams are bounded: a sender waits
//! for its reader.

use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::Stream;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::flow::AdmissionStatus;
use crate::model::assignment::{HandOver, VbucketSet};
use crate::model::catalog::Catalog;
use crate::model::cut::{Cut, EpochMark, Position, WritePosition};
use crate::model::history::{Branches, SourceHistory, SourcePlace};
use crate::model::ids::{BucketId, Epoch, IndexId, NodeId, Seqno, SliceId, TopologyNo, VbucketId};
use crate::model::moves::{MoveProgress, RebalancePlan, RebalanceRequest};
use crate::model::node::NodeInfo;
use crate::model::topology::IndexTopology;
use crate::rpc::command::{CommandRequest, Outcome};
use crate::rpc::export::{ExportMessage, ExportRequest};
use crate::rpc::mutation::{
    BackfillMessage, BackfillRequest, MutationKind, StreamMessage, SubscribeRequest,
};
use crate::rpc::scan::{AppliedReport, ShardBatch, ShardScan};

/// The largest message between processes: a batch of frames, a piece of a backfill, a Raft snapshot.
pub const PEER_MESSAGE_BYTES_MAX: usize = 64 << 20;

/// A stream of results; after an error it ends.
pub type ResultStream<T> = Pin<Box<dyn Stream<Item = Result<T>> + Send + 'static>>;

// ---- coordinator -------------------------------------------------------------------------------

/// The replicated coordinator, through any of its members; a follower forwards to the leader what only
/// the leader can answer (`ErrorCode::NotLeader` while there is none).
#[async_trait]
pub trait CoordinatorApi: Send + Sync + 'static {
    /// Runs a command; answers after the outcome is committed by a majority and applied. The same
    /// request id again gives the first answer.
    async fn propose(&self, request: CommandRequest) -> Result<Outcome>;

    /// SYNC: a projector reports the durable positions of its buckets. The leader keeps them in memory and promotes them
    /// to a stability timestamp within a tick.
    async fn sync(&self, report: SyncReport) -> Result<()>;

    /// A process reports that it is alive and what it has; the leader keeps the report in memory. It also renews leases.
    async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<()>;

    /// Returns the oldest published epoch that covers a cut, and promotes one at once if there is none. All callers that
    /// wait for a bucket at the same time share one promotion. The positions may be ahead of the last SYNC: the call then waits
    /// for SYNC, and fails with `Cancelled` after `timeout_ms`. With `history`, the fingerprint of the source's failover
    /// logs, the call waits until the coordinator knows that history, because an epoch from before a loss does not answer a
    /// question asked after it. `InvalidParameter` if a position or the history no longer exists at the source.
    async fn epoch_covering(
        &self,
        bucket: BucketId,
        cut: Cut,
        history: Option<u64>,
        timeout_ms: u64,
    ) -> Result<EpochMark>;

    /// Streams the catalog (now and after each change) and the epochs (all retained ones, then each new one, in
    /// order). Every message describes an applied state of this member.
    async fn watch(&self) -> Result<ResultStream<WatchMessage>>;

    /// The status of this member and of its leader.
    async fn status(&self) -> Result<CoordinatorStatus>;

    /// Plans a rebalance from the nodes' heartbeats, and begins it unless it is a dry run. A repeated call plans the
    /// moves that are still missing.
    async fn rebalance(&self, request: RebalanceRequest) -> Result<RebalancePlan>;

    /// Returns a past or present state of an index's topology; `SnapshotTooOld` if it is no longer remembered.
    async fn topology(&self, index: IndexId, number: TopologyNo) -> Result<Arc<IndexTopology>>;

    /// Raft's messages from another member, unreliable; packed by the coordinator crate.
    async fn raft(&self, messages: Vec<Bytes>) -> Result<()>;
}

/// SYNC for some buckets. A report of a bucket ends at a participant-closed cut: no statement and no
/// transaction has mutations on both sides of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncReport {
    /// The projector that reports.
    pub projector: NodeId,
    /// Durable positions by bucket: absolute values, so that a lost report does no harm. A projector reports the vbuckets that
    /// it owns.
    pub buckets: Vec<(BucketId, VbucketSet, Cut)>,
}

/// A lease holds the horizon back for at most this time after its epoch was superseded, even if it is renewed.
pub const LEASE_AGE_MS_MAX: u64 = 10 * 60 * 1000;

/// The heartbeat of a process, sent about once a second and at important changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The node; an unknown node must register first (`ErrorCode::Unknown`).
    pub node: NodeId,
    /// An indexer's buckets.
    pub buckets: Vec<BucketProgress>,
    /// An indexer's slices.
    pub slices: Vec<SliceProgress>,
    /// The moves of which an indexer is the target.
    pub moves: Vec<MoveProgress>,
    /// A router's leases: the epochs that running scans and tokens read, by bucket, the oldest first; a
    /// bounded number of them, and none that has been superseded for [`LEASE_AGE_MS_MAX`] as far as it knows.
    pub leases: Vec<(BucketId, Epoch)>,
    /// Scans of a router, shard scans of an indexer.
    pub scans: Option<AdmissionStatus>,
}

/// The progress of an indexer in one bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BucketProgress {
    /// The bucket.
    pub bucket: BucketId,
    /// The end of the mutations received without a gap.
    pub high_watermark: Cut,
    /// The newest epoch applied.
    pub applied: Epoch,
    /// The newest epoch that would survive a crash.
    pub durable: Epoch,
    /// Bytes waiting to be applied.
    pub queue_bytes: u64,
    /// Maximum bytes that may wait.
    pub queue_bytes_max: u64,
}

/// The state of a slice on an indexer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceProgress {
    /// The slice.
    pub slice: SliceId,
    /// The oldest epoch that it answers; `None` while it is being built.
    pub floor: Option<Epoch>,
    /// Entries at the newest epoch.
    pub entries: u64,
    /// Bytes in memory and on disk.
    pub bytes: u64,
    /// During a build: the node whose copy the files come from; `None` if it is built from the source.
    pub copied_from: Option<NodeId>,
    /// The reason that blocks its build, if any.
    pub trouble: Option<String>,
}

/// A message of a watch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum WatchMessage {
    /// The catalog as it is now.
    Catalog(Arc<Catalog>),
    /// New stability timestamps, ascending for each bucket.
    Epochs(Vec<EpochMark>),
}

/// The status of a coordinator member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoordinatorStatus {
    /// Itself.
    pub node: NodeId,
    /// The leader it follows, if it knows one.
    pub leader: Option<NodeId>,
    /// Raft's term.
    pub term: u64,
    /// The last log position committed.
    pub committed: u64,
    /// The last log position applied.
    pub applied: u64,
    /// The `cas` of the catalog that it tells its watchers.
    pub catalog_cas: u64,
    /// On the leader: true once it has heard from every node since its term began. Until then it is in `bootstrap`, and
    /// nodes neither join nor leave.
    pub active: bool,
    /// On the leader: differences between the topology and the slices that indexers report, as text.
    pub differences: Vec<String>,
    /// On the leader: the last heartbeat of each node.
    pub nodes: Vec<NodeStatus>,
}

/// The leader's knowledge of one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// The node.
    pub node: NodeId,
    /// Milliseconds since its last heartbeat.
    pub silent_ms: u64,
    /// Its buckets, if it is an indexer.
    pub buckets: Vec<BucketProgress>,
    /// Its slices, if it is an indexer.
    pub slices: Vec<SliceProgress>,
    /// The moves of which it is the target, if it is an indexer.
    pub moves: Vec<MoveProgress>,
    /// Its scans, if it is a router or an indexer.
    pub scans: Option<AdmissionStatus>,
}

// ---- projector ---------------------------------------------------------------------------------

/// A projector: keeps the documents of the buckets that the catalog assigns to it, and streams their key-versions. Only
/// durable mutations are streamed.
#[async_trait]
pub trait ProjectorApi: Send + Sync + 'static {
    /// Writes documents atomically: the whole request or nothing. The writes are durable when the call returns.
    async fn write(&self, request: WriteRequest) -> Result<WriteReply>;

    /// Returns documents by id, `None` for a missing one. All are read at one moment, so a request of [`Self::write`] is seen
    /// whole or not at all. `OverLimit` if they are too long together for one answer; one document never is.
    async fn get(&self, bucket: BucketId, ids: Vec<String>) -> Result<Vec<Option<Bytes>>>;

    /// Takes mutations that the producer numbered, for a bucket made FROM PUSH; durable when it
    /// answers. `NotOwner` where another projector keeps one of the vbuckets: then nothing is taken. A gap, an older seqno or an unknown branch: `OutOfOrder`, and all before it is kept. A
    /// producer that has lost a piece of its history says where its new branch begins.
    async fn push(&self, request: PushRequest) -> Result<PushReply>;

    /// Returns the end of a bucket's durable history, and the fingerprint of that history.
    async fn place(&self, bucket: BucketId) -> Result<SourcePlace>;

    /// Returns the end of a bucket's durable history: a participant-closed cut.
    async fn positions(&self, bucket: BucketId) -> Result<Cut> {
        Ok(self.place(bucket).await?.durable)
    }

    /// Returns the failover logs of a bucket and the end of its durable history, at one moment.
    async fn history(&self, bucket: BucketId) -> Result<SourceHistory>;

    /// Streams a bucket from the node's watermarks: first from the change log (catch-up), then from the shared head of
    /// the stream. A slow consumer slows no other consumer: it falls back to the change log. The stream begins with
    /// `Begin`. It ends with `HistoryPurged` if the next mutations were purged.
    async fn subscribe(&self, request: SubscribeRequest) -> Result<ResultStream<StreamMessage>>;

    /// Streams a consistent snapshot of a bucket as key-versions of one index, for one node.
    async fn backfill(&self, request: BackfillRequest) -> Result<ResultStream<BackfillMessage>>;

    /// Returns the next piece of a vbucket to the target of its hand-over, or the last piece if asked for it. `HistoryPurged`
    /// if the requested mutations were purged.
    async fn hand_over(&self, request: HandOverRequest) -> Result<HandOverPiece>;
}

/// A request of a hand-over's target to the owner of the vbucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandOverRequest {
    /// The bucket.
    pub bucket: BucketId,
    /// The hand-over.
    pub transfer: HandOver,
    /// The end of the log that the target has. If this is not a place in the vbucket's history, the call fails with
    /// `OutOfOrder` and the target begins again.
    pub after: Position,
    /// The vbucket's end when its documents were last read; its beginning if none were. `OutOfOrder` as above.
    pub seen: Position,
    /// The kind of piece that the target needs.
    pub wanted: HandOverWanted,
    /// True to release the vbucket: the owner accepts no more mutations of it unless the hand-over is cancelled. A repeated
    /// request changes nothing.
    pub release: bool,
}

/// The next piece that the target of a hand-over needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HandOverWanted {
    /// The mutations behind `after`. `HistoryPurged` if the log begins later; the target then asks for documents first.
    Mutations,
    /// Documents behind an id, or the first documents.
    Documents(Option<String>),
}

/// A piece of a vbucket: of its log, or of its documents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandOverPiece {
    /// The vbucket's branches.
    pub branches: Branches,
    /// Branches that were begun and are empty by now: a late duplicate of their beginning has no effect.
    pub given_up: Branches,
    /// The mutations behind `after`, at most a few megabytes.
    pub mutations: Vec<PushMutation>,
    /// The documents, if the target asked for them.
    pub documents: Option<HandOverDocuments>,
    /// The vbucket's end, or its end when the documents were read.
    pub end: Position,
    /// True if the vbucket is released, so that this end is final.
    pub released: bool,
}

/// Documents of a vbucket at one moment, at most a few megabytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandOverDocuments {
    /// The documents, ordered by id.
    pub documents: Vec<HandedDocument>,
    /// The id behind which more documents may follow; `None` after the last ones.
    pub next: Option<String>,
    /// The purge point shortly before the documents were read: later changes are in the log behind it.
    pub purged: Seqno,
}

/// A document that is handed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedDocument {
    /// Its id.
    pub id: String,
    /// The seqno of its last change.
    pub seqno: Seqno,
    /// The document, as it was written.
    pub document: Bytes,
}

/// Documents to write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteRequest {
    /// The bucket; an embedded one.
    pub bucket: BucketId,
    /// The writes, in order; a later write of the same id wins.
    pub writes: Vec<Write>,
}

/// One write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    /// The document's id.
    pub id: String,
    /// The kind of write.
    pub kind: WriteKind,
}

/// The kinds of writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WriteKind {
    /// Creates a document; `DuplicateId` if the id exists.
    Insert(Bytes),
    /// Creates or replaces a document.
    Upsert(Bytes),
    /// Removes a document; no effect if the id does not exist.
    Delete,
}

/// The result of a write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteReply {
    /// The number of documents created, replaced or removed.
    pub affected: u64,
    /// The positions of the writes in the bucket's history.
    pub position: WritePosition,
}

/// Mutations of one bucket, numbered by their producer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushRequest {
    /// The bucket; one made FROM PUSH.
    pub bucket: BucketId,
    /// Branches to begin before the mutations are taken: the vbucket continues on the branch after the seqno, and its older
    /// mutations beyond that seqno are lost.
    pub branches: Vec<(VbucketId, Position)>,
    /// The mutations, in the order of their seqnos within each vbucket.
    pub mutations: Vec<PushMutation>,
}

/// One pushed mutation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushMutation {
    /// The vbucket: the published hash of the id, verified.
    pub vbucket: VbucketId,
    /// Its place.
    pub position: Position,
    /// The document's id.
    pub id: String,
    /// What happened to it.
    pub kind: MutationKind,
    /// The document as JSON; empty for a deletion.
    pub document: Bytes,
}

/// The result of a push.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushReply {
    /// Durable positions of the vbuckets in the request. If several projectors were asked, a missing vbucket was not taken,
    /// because its owner is not the one in the caller's catalog (`NotOwner`).
    pub durable: Vec<(VbucketId, Position)>,
}

// ---- indexer -----------------------------------------------------------------------------------

/// An indexer: keeps slices and reads them.
#[async_trait]
pub trait IndexerApi: Send + Sync + 'static {
    /// Scans a shard at one epoch. The call waits for an epoch that is not applied yet; `SnapshotTooOld` if the epoch is below
    /// the floor of a slice.
    async fn scan(&self, scan: ShardScan) -> Result<ResultStream<ShardBatch>>;

    /// Streams the epochs that the node has applied: now, and at each change (several changes may be combined).
    async fn watch_applied(&self) -> Result<ResultStream<AppliedReport>>;

    /// Returns the additive checksum of a slice's entries at an epoch, and their number.
    async fn checksum(&self, slice: SliceId, epoch: Epoch) -> Result<(u64, u64)>;

    /// Sends a slice's files to the target of a move.
    async fn export(&self, request: ExportRequest) -> Result<ResultStream<ExportMessage>>;
}

// ---- who is where ------------------------------------------------------------------------------

/// Access to the other processes of the cluster. Handles are cheap and reconnect by themselves.
pub trait Directory: Send + Sync + 'static {
    /// The coordinator, through any member that answers.
    fn coordinator(&self) -> Arc<dyn CoordinatorApi>;
    /// One member of the coordinator.
    fn coordinator_member(&self, node: NodeId) -> Result<Arc<dyn CoordinatorApi>>;
    /// A projector.
    fn projector(&self, node: &NodeInfo) -> Arc<dyn ProjectorApi>;
    /// An indexer.
    fn indexer(&self, node: &NodeInfo) -> Arc<dyn IndexerApi>;
}
