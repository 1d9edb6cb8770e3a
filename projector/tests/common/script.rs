//! A coordinator that sends what a test sets, and projectors that can reach each other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use projector::Projector;
use proto::model::bucket::*;
use proto::model::copies::Copies;
use proto::model::cut::{Cut, EpochMark};
use proto::model::history::{SourceHistory, SourcePlace};
use proto::model::ids::*;
use proto::model::joint::PartlyLostCommit;
use proto::model::left_out::LeftOut;
use proto::model::moment::Moment;
use proto::model::moves::{RebalancePlan, RebalanceRequest};
use proto::model::node::*;
use proto::model::open_commit::PartState;
use proto::model::topology::*;
use proto::rpc::api::*;
use proto::rpc::command::{AppliedCommand, ChangeCopies, Command, OpenSource, Outcome, Proposal};
use proto::rpc::mutation::*;
use proto::{Error, ErrorCode, Result};
use tokio::sync::watch;

use super::{BUCKET, VBUCKETS, catalog, projector_info};

/// A coordinator that sends what the test sets, and records what it receives.
#[derive(Clone)]
pub struct Script {
    pub(super) messages: watch::Sender<Vec<WatchMessage>>,
    pub synced: Arc<Mutex<BTreeMap<BucketId, BucketReport>>>,
    /// All proposals except registrations.
    pub proposed: Arc<Mutex<Vec<Command>>>,
    pub(super) projectors: Arc<Mutex<BTreeMap<NodeId, Arc<Projector>>>>,
    /// The last epoch of the embedded bucket, if a projector that opens the bucket shall lack a
    /// part of it.
    pub lacks: Arc<Mutex<Option<Epoch>>>,
    /// The error with which the coordinator answers a projector that opens its bucket, if any.
    pub fails: Arc<Mutex<Option<Error>>>,
    /// The error with which the coordinator refuses projectors' reports about versions, if any.
    pub refuses_versions: Arc<Mutex<Option<Error>>>,
    /// The timestamps that the coordinators retain.
    pub retained: Arc<Mutex<Vec<EpochMark>>>,
    /// The copies of the embedded bucket, if the test has more than one.
    pub copies: Arc<Mutex<Option<Copies>>>,
    /// Pairs of processes that cannot reach each other. Node 0 is the coordinator.
    pub cuts: Arc<Mutex<BTreeSet<(NodeId, NodeId)>>>,
    /// Projectors that never answer queries about the outcome of a transaction.
    pub hung: Arc<Mutex<BTreeSet<NodeId>>>,
    /// The halved commits of the last SYNC.
    pub halved: Arc<Mutex<Vec<PartlyLostCommit>>>,
    /// The documents that indexes have left out, from the newest report.
    pub left_out: Arc<Mutex<Vec<(LocalIndexId, LeftOut)>>>,
    /// The pieces of large groups that are sent to other copies, with the faults to inject.
    pub pieces: Arc<Pieces>,
    /// The projector that uses this clone.
    pub(super) me: NodeId,
}

/// The pieces of large groups that the leading copy has sent, with the faults to inject.
#[derive(Default)]
pub struct Pieces {
    /// The number of pieces that were sent.
    pub sent: AtomicU64,
    /// The number of answers that contain the transactions prepared at the beginning of a session.
    pub prepared: AtomicU64,
    /// The number of the piece to lose; zero for none.
    pub lost: AtomicU64,
    /// True if the two copies cannot reach each other after the lost piece.
    pub then_cut: AtomicBool,
}

/// The node id of the coordinator in [`Script::cuts`].
pub const COORDINATOR: NodeId = NodeId(0);

impl Script {
    /// Creates the coordinator of a projector. It has sent nothing yet.
    pub fn new(me: NodeId) -> Self {
        let (messages, _) = watch::channel(Vec::new());
        let (synced, proposed, projectors, lacks) = Default::default();
        let (retained, copies, cuts, hung) = Default::default();
        let (halved, left_out, pieces, refuses_versions, fails) = Default::default();
        Self {
            messages,
            synced,
            proposed,
            projectors,
            lacks,
            fails,
            refuses_versions,
            retained,
            copies,
            cuts,
            hung,
            halved,
            left_out,
            pieces,
            me,
        }
    }

    pub fn say(&self, message: WatchMessage) {
        self.messages.send_modify(|messages| messages.push(message));
    }

    /// Removes the messages so far, so that later watches do not receive them.
    pub fn forget(&self) {
        self.messages.send_modify(Vec::clear);
    }

    fn check_reached(&self, to: NodeId) -> Result<()> {
        match self.cuts.lock().unwrap().contains(&(self.me, to)) {
            true => Err(Error::unavailable(format!("{to} is cut off"))),
            false => Ok(()),
        }
    }

    /// Counts a piece that a projector sends; returns an error if the piece is to be lost.
    fn note_piece(&self, from: NodeId) -> Result<()> {
        let sent = self.pieces.sent.fetch_add(1, Ordering::Relaxed) + 1;
        if sent != self.pieces.lost.load(Ordering::Relaxed) {
            return Ok(());
        }
        if self.pieces.then_cut.load(Ordering::Relaxed) {
            self.cuts.lock().unwrap().extend([(self.me, from), (from, self.me)]);
        }
        Err(Error::unavailable("a piece is lost"))
    }

    /// Sends the catalog with the present copies.
    pub fn say_copies(&self) {
        let copies = self.copies.lock().unwrap().clone().expect("copies");
        let mut next = catalog(copies.revision, &[]);
        let bucket = BucketInfo::new(BUCKET, "b", VBUCKETS, SourceKind::Embedded, copies.leader);
        next.buckets = [(BUCKET, Arc::new(bucket))].into();
        next.nodes = (1..=3).map(|n| (NodeId(n), Arc::new(projector_info(NodeId(n))))).collect();
        next.copies = [(BUCKET, copies)].into();
        self.say(WatchMessage::Catalog(next.into()));
    }

    /// Changes the copies, with a new revision, as the coordinators do.
    pub fn change_copies(&self, change: impl FnOnce(&mut Copies)) {
        change(self.copies.lock().unwrap().as_mut().expect("copies"));
        self.say_copies();
    }

    /// Answers a command about copies.
    fn of_copies(&self, command: &Command) -> Option<Outcome> {
        let mut copies = self.copies.lock().unwrap();
        let known = copies.as_mut()?;
        match command {
            Command::OpenSource(OpenSource { projector, .. }) if *projector == known.leader => {
                let error = || Error::new(ErrorCode::Corrupt, "bucket \"b\" lacks a part");
                let lacks = *self.lacks.lock().unwrap();
                Some(match lacks {
                    Some(epoch) => Outcome::Lacks { epoch, error: error() },
                    None => {
                        known.begin_to_serve();
                        Outcome::Opened(known.clone())
                    }
                })
            }
            Command::OpenSource(_) => {
                Some(Outcome::Refused(Error::new(ErrorCode::NotOwner, "it does not lead")))
            }
            Command::ChangeCopies(ChangeCopies { revision, change, .. }) => {
                let is_changed = known.change(*revision, *change).is_ok();
                let now = known.clone();
                drop(copies);
                if is_changed {
                    self.say_copies();
                }
                Some(Outcome::Copies(now))
            }
            _ => None,
        }
    }

    /// Publishes a stability timestamp at a cut.
    pub fn epoch(&self, epoch: u64, cut: &Cut) {
        self.say(WatchMessage::Epochs(vec![mark(epoch, epoch - 1, cut)]));
    }
}

/// Returns a stability timestamp of the bucket.
pub fn mark(epoch: u64, parent: u64, cut: &Cut) -> EpochMark {
    EpochMark {
        bucket: BUCKET,
        epoch: Epoch(epoch),
        parent: Epoch(parent),
        cut: Arc::new(cut.clone()),
        horizon: Epoch(0),
        points: Arc::default(),
    }
}

#[async_trait]
impl CoordinatorApi for Script {
    async fn propose(&self, request: Proposal) -> Result<AppliedCommand> {
        self.check_reached(COORDINATOR)?;
        let applied = |outcome| Ok(AppliedCommand { outcome, catalog_cas: 0 });
        if let Some(outcome) = self.of_copies(&request.command) {
            return applied(outcome);
        }
        if let Command::OpenSource(OpenSource { accepted, .. }) = request.command {
            if let Some(failed) = self.fails.lock().unwrap().clone() {
                return Err(failed);
            }
            let lacks = *self.lacks.lock().unwrap();
            let refused = lacks.filter(|epoch| accepted != Some(*epoch));
            let error = || Error::new(ErrorCode::Corrupt, "bucket \"b\" lacks a part");
            return applied(
                refused.map_or(Outcome::Done, |epoch| Outcome::Lacks { epoch, error: error() }),
            );
        }
        let is_of_version = matches!(request.command, Command::PartitionsLoaded(_));
        if !matches!(request.command, Command::RegisterNode(_)) {
            self.proposed.lock().unwrap().push(request.command);
        }
        let refused = self.refuses_versions.lock().unwrap().clone().filter(|_| is_of_version);
        applied(refused.map_or(Outcome::Done, Outcome::Refused))
    }
    async fn sync(&self, report: SyncReport) -> Result<SyncReply> {
        let told = report.buckets.into_iter().map(|report| (report.bucket, report));
        self.synced.lock().unwrap().extend(told);
        *self.halved.lock().unwrap() = report.halved;
        *self.left_out.lock().unwrap() = report.left_out;
        Ok(SyncReply::default())
    }
    async fn heartbeat(&self, _: Heartbeat) -> Result<HeartbeatReply> {
        Ok(HeartbeatReply::default())
    }
    async fn epoch_covering(
        &self,
        _: BucketId,
        _: Cut,
        _: Option<u64>,
        _: Epoch,
        _: u64,
    ) -> Result<CoveringEpochs> {
        Err(Error::unavailable("not here"))
    }
    async fn watch(&self, _: WatchKind) -> Result<ResultStream<WatchMessage>> {
        let state = (self.messages.subscribe(), 0);
        Ok(Box::pin(futures::stream::unfold(state, |(mut all, sent)| async move {
            all.wait_for(|messages| messages.len() > sent).await.ok()?;
            let next = all.borrow()[sent].clone();
            Some((Ok(next), (all, sent + 1)))
        })))
    }
    async fn status(&self) -> Result<CoordinatorStatus> {
        Err(Error::unavailable("not here"))
    }
    async fn raft(&self, _: Vec<Bytes>) -> Result<()> {
        Ok(())
    }
    async fn rebalance(&self, _: RebalanceRequest) -> Result<RebalancePlan> {
        Err(Error::unavailable("not here"))
    }
    async fn topology(&self, _: LocalIndexId, _: TopologyNo) -> Result<Arc<IndexTopology>> {
        Err(Error::unavailable("not here"))
    }
    async fn moment(&self, _: BucketId, _: Epoch, _: u64) -> Result<FixedMoment> {
        Err(Error::unavailable("not here"))
    }
    async fn epoch_at(&self, _: BucketId, _: Moment) -> Result<Epoch> {
        Err(Error::unavailable("not here"))
    }
    async fn epoch_mark(&self, _: BucketId, epoch: Epoch) -> Result<Option<EpochMark>> {
        let marks = self.retained.lock().unwrap();
        Ok(marks.iter().find(|mark| mark.epoch == epoch).cloned())
    }
}

impl Directory for Script {
    fn coordinator(&self) -> Arc<dyn CoordinatorApi> {
        Arc::new(self.clone())
    }
    fn coordinator_member(&self, _: NodeId) -> Result<Arc<dyn CoordinatorApi>> {
        Ok(Arc::new(self.clone()))
    }
    fn projector(&self, node: &NodeInfo) -> Arc<dyn ProjectorApi> {
        Arc::new(Reached { script: self.clone(), node: node.id })
    }
    fn indexer(&self, _: &NodeInfo) -> Arc<dyn IndexerApi> {
        unreachable!("a projector calls no indexer")
    }
}

/// The connection of one projector to another.
struct Reached {
    script: Script,
    node: NodeId,
}

impl Reached {
    /// Returns the projector; an error if it does not run.
    fn target(&self) -> Result<Arc<Projector>> {
        let running = self.script.projectors.lock().unwrap();
        running.get(&self.node).cloned().ok_or_else(|| Error::unavailable("it does not run"))
    }
}

#[async_trait]
impl ProjectorApi for Reached {
    async fn write(&self, request: WriteRequest) -> Result<WriteReply> {
        self.target()?.write(request).await
    }
    async fn get(&self, bucket: BucketId, ids: Vec<String>) -> Result<Vec<Option<Bytes>>> {
        self.target()?.get(bucket, ids).await
    }
    async fn get_for_transaction(&self, request: DocumentsRequest) -> Result<Documents> {
        self.target()?.get_for_transaction(request).await
    }
    async fn push(&self, request: PushRequest) -> Result<PushReply> {
        self.target()?.push(request).await
    }
    async fn push_for_transaction(&self, request: TransactionPush) -> Result<TransactionPushed> {
        self.script.check_reached(self.node)?;
        self.target()?.push_for_transaction(request).await
    }
    async fn commit_pushed(&self, request: PushedCommitRequest) -> Result<PushReply> {
        self.script.check_reached(self.node)?;
        self.target()?.commit_pushed(request).await
    }
    async fn pushed_part_states(
        &self,
        look: PushedStateQuery,
    ) -> Result<Vec<(VbucketId, PartState)>> {
        self.script.check_reached(self.node)?;
        self.target()?.pushed_part_states(look).await
    }
    async fn abort(&self, bucket: BucketId, transaction: TransactionId) -> Result<()> {
        self.target()?.abort(bucket, transaction).await
    }
    async fn abort_pushed(
        &self,
        bucket: BucketId,
        transaction: ProducerTransactionId,
    ) -> Result<()> {
        self.target()?.abort_pushed(bucket, transaction).await
    }
    async fn place(&self, bucket: BucketId) -> Result<SourcePlace> {
        self.target()?.place(bucket).await
    }
    async fn history(&self, bucket: BucketId) -> Result<SourceHistory> {
        self.target()?.history(bucket).await
    }
    async fn subscribe(&self, request: SubscribeRequest) -> Result<ResultStream<StreamMessage>> {
        self.target()?.subscribe(request).await
    }
    async fn backfill(&self, request: BackfillRequest) -> Result<ResultStream<BackfillMessage>> {
        self.target()?.backfill(request).await
    }
    async fn hand_over(&self, request: HandOverRequest) -> Result<HandOverPiece> {
        self.target()?.hand_over(request).await
    }
    async fn end_prepared_transaction(
        &self,
        bucket: BucketId,
        transaction: TransactionId,
        decision: Decision,
    ) -> Result<WriteReply> {
        self.script.check_reached(self.node)?;
        self.target()?.end_prepared_transaction(bucket, transaction, decision).await
    }
    async fn transaction_state(
        &self,
        bucket: BucketId,
        transaction: TransactionId,
    ) -> Result<TransactionState> {
        self.script.check_reached(self.node)?;
        if self.script.hung.lock().unwrap().contains(&self.node) {
            std::future::pending::<()>().await;
        }
        self.target()?.transaction_state(bucket, transaction).await
    }
    async fn copy(&self, request: CopyRequest) -> Result<CopyAnswer> {
        self.script.check_reached(self.node)?;
        let answer = self.target()?.copy(request).await;
        self.script.check_reached(self.node)?;
        if let Ok(CopyAnswer::Prepared(_)) = &answer {
            self.script.pieces.prepared.fetch_add(1, Ordering::Relaxed);
        }
        if let Ok(CopyAnswer::Piece { .. }) = &answer {
            self.script.note_piece(self.node)?;
        }
        answer
    }
}
