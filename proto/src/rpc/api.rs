//! How the services meet: one trait for each role. A service implements its own trait and is given
//! the others behind `Arc<dyn …>` by a [`Directory`]; behind it is a direct call where both ends share
//! a process, gRPC otherwise. Nobody can tell which, and the simulation uses gRPC.
//!
//! Every call may fail with a retryable error at any time; whoever calls says what it then does.
//! Streams are bounded: a sender waits for its reader.

use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::Stream;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::flow::AdmissionStatus;
use crate::model::catalog::Catalog;
use crate::model::cut::{Cut, EpochMark, Position, WritePosition};
use crate::model::history::{Branches, SourceHistory, SourcePlace};
use crate::model::homes::{HandOver, VbucketSet};
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

    /// SYNC: a projector says how far its buckets are. Moves the mutation timestamps in the leader's
    /// memory; a promotion follows within a tick.
    async fn sync(&self, report: SyncReport) -> Result<()>;

    /// A process is alive and says what it has; kept in the leader's memory. Also renews leases.
    async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<()>;

    /// The oldest published epoch that covers a cut, promoting one at once if there is none yet. All
    /// who wait for a bucket at the same time share one promotion. The positions may be ahead of what
    /// SYNC has told: then the answer waits for SYNC, `Cancelled` after `timeout_ms`. With `history`, the
    /// fingerprint of the source's failover logs, it waits until the coordinator knows that history: an epoch
    /// of before a loss is no answer to who asks after it. A position that is not in the source's history (any
    /// more), and a history that the source does not have (any more): `InvalidParameter`.
    async fn epoch_covering(
        &self,
        bucket: BucketId,
        cut: Cut,
        history: Option<u64>,
        timeout_ms: u64,
    ) -> Result<EpochMark>;

    /// The catalog now and after each change, and all epochs that are still kept and then each new
    /// one, in order; every message is of an applied state of this member.
    async fn watch(&self) -> Result<ResultStream<WatchMessage>>;

    /// What this member knows of itself and its leader.
    async fn status(&self) -> Result<CoordinatorStatus>;

    /// Plans a rebalance from what the nodes have said of their slices, and begins it unless it is a dry
    /// run. Asked again it plans what is then still to be done.
    async fn rebalance(&self, request: RebalanceRequest) -> Result<RebalancePlan>;

    /// A state of an index's topology; `SnapshotTooOld` if it is no longer remembered.
    async fn topology(&self, index: IndexId, number: TopologyNo) -> Result<Arc<IndexTopology>>;

    /// Raft's messages from another member, unreliable; packed by the coordinator crate.
    async fn raft(&self, messages: Vec<Bytes>) -> Result<()>;
}

/// SYNC for some buckets. A report of a bucket ends at a participant-closed cut: no statement and no
/// transaction has mutations on both sides of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncReport {
    /// Who reports.
    pub projector: NodeId,
    /// Durable positions of the vbuckets that changed since the last report to this leader, or of
    /// all vbuckets; whole, so that a lost report does no harm. Of a bucket on several projectors each
    /// reports the vbuckets that it keeps.
    pub buckets: Vec<(BucketId, VbucketSet, Cut)>,
}

/// No scan holds the horizon back for longer after its epoch was superseded, renewed or not.
pub const LEASE_AGE_MS_MAX: u64 = 10 * 60 * 1000;

/// What a process says of itself, about once a second and when something important changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Who it is; an unknown one is to be registered first (`ErrorCode::Unknown`).
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

/// How far an indexer is with a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BucketProgress {
    /// The bucket.
    pub bucket: BucketId,
    /// The end of what it has received without a gap.
    pub high_watermark: Cut,
    /// The newest epoch applied.
    pub applied: Epoch,
    /// The newest epoch that would survive a crash.
    pub durable: Epoch,
    /// Bytes waiting to be applied.
    pub queue_bytes: u64,
    /// Bytes that the queue may hold.
    pub queue_bytes_max: u64,
}

/// What an indexer has of a slice.
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
    /// While it is being built: the node whose copy its files come from; `None` where it is built from the source.
    pub copied_from: Option<NodeId>,
    /// Why its build cannot go on, if it cannot.
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

/// What a coordinator member knows of itself.
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
    /// On the leader: has it heard of everybody since its term began? Until then it is in `bootstrap`, and the
    /// membership does not change.
    pub active: bool,
    /// On the leader: where what indexers have and what the topology says is not the same, in words.
    pub differences: Vec<String>,
    /// On the leader: last heartbeat of each node, milliseconds ago, and what it said of its slices.
    pub nodes: Vec<NodeStatus>,
}

/// What the leader knows of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// The node.
    pub node: NodeId,
    /// Milliseconds since it was heard of.
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

/// A projector: keeps the documents of the embedded and pushed buckets that the catalog gives it, and
/// streams key-versions of them. Only durable mutations are streamed.
#[async_trait]
pub trait ProjectorApi: Send + Sync + 'static {
    /// Writes documents; all of a request or nothing of it, durable when it answers.
    async fn write(&self, request: WriteRequest) -> Result<WriteReply>;

    /// The documents of some ids, `None` for those that are not there: all as they are at one moment,
    /// so that a request of [`Self::write`] is seen as a whole or not at all. `OverLimit` where they
    /// are too long for one answer together; one document never is.
    async fn get(&self, bucket: BucketId, ids: Vec<String>) -> Result<Vec<Option<Bytes>>>;

    /// Takes mutations that the producer numbered, for a bucket made FROM PUSH; durable when it
    /// answers. `NotHome` where another projector keeps one of the vbuckets: then nothing is taken. A gap, an older seqno or an unknown branch: `OutOfOrder`, and all before it is kept. A
    /// producer that has lost a piece of its history says where its new branch begins.
    async fn push(&self, request: PushRequest) -> Result<PushReply>;

    /// Where the durable history of a bucket ends, and which history that is.
    async fn place(&self, bucket: BucketId) -> Result<SourcePlace>;

    /// Where the durable history of a bucket ends: a participant-closed cut.
    async fn positions(&self, bucket: BucketId) -> Result<Cut> {
        Ok(self.place(bucket).await?.durable)
    }

    /// The failover logs of a bucket and where its durable history ends, at one moment.
    async fn history(&self, bucket: BucketId) -> Result<SourceHistory>;

    /// Follows a bucket from the node's watermarks: first from the store (catch-up), then from the
    /// shared head of the stream. A slow reader never holds up others: it falls back to the store, or
    /// gets `DropData`. Begins with `Begin`. Ends with `HistoryPurged` where the store has no more what would
    /// come next.
    async fn subscribe(&self, request: SubscribeRequest) -> Result<ResultStream<StreamMessage>>;

    /// A consistent snapshot of a bucket as key-versions of one index, for one node.
    async fn backfill(&self, request: BackfillRequest) -> Result<ResultStream<BackfillMessage>>;

    /// The next piece of a vbucket for the target of its hand-over; and, if asked, the last piece. `HistoryPurged`
    /// where the mutations that are wanted were purged.
    async fn hand_over(&self, request: HandOverRequest) -> Result<HandOverPiece>;
}

/// The target of a hand-over asks a vbucket's home for more of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandOverRequest {
    /// The bucket.
    pub bucket: BucketId,
    /// The hand-over.
    pub handing: HandOver,
    /// What the target has of the log. Not a place in the vbucket's history (any more): `OutOfOrder`, and it begins
    /// anew.
    pub after: Position,
    /// Where the vbucket ended when documents of it were read last; the beginning where none were. The same holds of
    /// it.
    pub seen: Position,
    /// What is wanted.
    pub wanted: HandOverWanted,
    /// From now on the home takes no mutations of the vbucket, unless the hand-over is cancelled. Asked again
    /// it changes nothing.
    pub release: bool,
}

/// What the target of a hand-over wants next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HandOverWanted {
    /// The mutations behind `after`. `HistoryPurged` where the log begins later: then documents are wanted first.
    Mutations,
    /// Documents behind an id, or the first ones.
    Documents(Option<String>),
}

/// A piece of a vbucket: of its log, or of its documents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandOverPiece {
    /// The vbucket's branches.
    pub branches: Branches,
    /// Branches that were begun and of which nothing is left: a late duplicate of them begins nothing.
    pub given_up: Branches,
    /// The mutations behind `after`, all or some megabytes of them.
    pub mutations: Vec<PushMutation>,
    /// The documents, where they were wanted.
    pub documents: Option<HandOverDocuments>,
    /// Where the vbucket ends, or ended when the documents were read.
    pub end: Position,
    /// Is that its end for as long as the hand-over lasts?
    pub released: bool,
}

/// Documents of a vbucket as they were at one place, all or some megabytes of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandOverDocuments {
    /// In the order of their ids.
    pub documents: Vec<HandedDocument>,
    /// The id behind which there may be more; none where these were the last.
    pub next: Option<String>,
    /// Up to where the log was purged shortly before they were read: what they lack is in the log behind it.
    pub purged: Seqno,
}

/// A document that is handed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedDocument {
    /// Its id.
    pub id: String,
    /// The seqno of its last change.
    pub seqno: Seqno,
    /// The document as it was given.
    pub document: Bytes,
}

/// Documents to write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteRequest {
    /// The bucket; an embedded one.
    pub bucket: BucketId,
    /// What is written, in order; a later write of the same id wins.
    pub writes: Vec<Write>,
}

/// One write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    /// The document's id.
    pub id: String,
    /// What is done.
    pub kind: WriteKind,
}

/// What a write does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WriteKind {
    /// Makes a document; `DuplicateId` if there is one.
    Insert(Bytes),
    /// Makes or replaces a document.
    Upsert(Bytes),
    /// Removes a document; nothing if there is none.
    Delete,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteReply {
    /// How many documents were made, replaced or removed.
    pub affected: u64,
    /// Where the writes are in the bucket's history.
    pub position: WritePosition,
}

/// Mutations that a producer numbered, of one bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushRequest {
    /// The bucket; one made FROM PUSH.
    pub bucket: BucketId,
    /// Branches that begin, before the mutations: the vbucket goes on with this branch after this seqno, and
    /// what it had beyond is lost.
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

/// What of a bucket is durable after a push.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushReply {
    /// Durable positions of the vbuckets that the request named. Where several projectors were asked, one that is
    /// missing was not taken: its home was not where the caller's catalog says (`NotHome`).
    pub durable: Vec<(VbucketId, Position)>,
}

// ---- indexer -----------------------------------------------------------------------------------

/// An indexer: keeps slices and reads them.
#[async_trait]
pub trait IndexerApi: Send + Sync + 'static {
    /// Scans a shard at one epoch. An epoch that is not applied yet is waited for; one below a
    /// slice's floor is `SnapshotTooOld`.
    async fn scan(&self, scan: ShardScan) -> Result<ResultStream<ShardBatch>>;

    /// What the node has applied, now and at each change (changes may be folded together).
    async fn watch_applied(&self) -> Result<ResultStream<AppliedReport>>;

    /// The additive checksum of what a slice shows at an epoch, and how many entries that is.
    async fn checksum(&self, slice: SliceId, epoch: Epoch) -> Result<(u64, u64)>;

    /// Sends a slice's files to the target of a move.
    async fn export(&self, request: ExportRequest) -> Result<ResultStream<ExportMessage>>;
}

// ---- who is where ------------------------------------------------------------------------------

/// Gives access to the other processes. Handles are cheap and reconnect by themselves.
pub trait Directory: Send + Sync + 'static {
    /// The coordinator, through whichever member answers.
    fn coordinator(&self) -> Arc<dyn CoordinatorApi>;
    /// One member of the coordinator.
    fn coordinator_member(&self, node: NodeId) -> Result<Arc<dyn CoordinatorApi>>;
    /// A projector.
    fn projector(&self, node: &NodeInfo) -> Arc<dyn ProjectorApi>;
    /// An indexer.
    fn indexer(&self, node: &NodeInfo) -> Arc<dyn IndexerApi>;
}
