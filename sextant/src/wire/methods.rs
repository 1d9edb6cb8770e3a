//! The table of all methods between services. From this table, macros generate the caller
//! (`remote`), the server's dispatch (`server`), and the client of any coordinator
//! (`any_member`).
//!
//! A new method needs a method of its trait in [`proto::rpc::api`] and one line here. The line has:
//!
//! - The method's number on the wire. Calls, which have one reply, and streams are numbered
//!   separately. A number is never reused for another method.
//! - The signature from the trait. With `checked by f`, the answer or the stream passes through `f`
//!   before the caller gets it.
//! - `for …`: the holders of certificates that may call the method. With `claims f`, the arguments
//!   pass through `f` of `callers` on the server: `f` compares the node that the arguments name
//!   with the certificate.
//! - For the coordinator: how any of the coordinators is called. `via any_member` calls the
//!   coordinators in turn; `via own f` runs the method `f` of `AnyMember`.

pub(super) use std::sync::Arc;

pub(super) use bytes::Bytes;
pub(super) use proto::model::cut::{Cut, EpochMark};
pub(super) use proto::model::history::{SourceHistory, SourcePlace};
pub(super) use proto::model::ids::{
    BucketId, Epoch, LocalIndexId, NodeId, ProducerTransactionId, SliceId, TopologyNo,
    TransactionId, TransactionPlace, VbucketId,
};
pub(super) use proto::model::moment::Moment;
pub(super) use proto::model::moves::{RebalancePlan, RebalanceRequest};
pub(super) use proto::model::open_commit::PartState;
pub(super) use proto::model::topology::IndexTopology;
pub(super) use proto::rpc::api::{
    CoordinatorApi, CoordinatorChange, CoordinatorChanged, CoordinatorMembers, CoordinatorStatus,
    CopyAnswer, CopyRequest, CoveringEpochs, Decision, Documents, DocumentsRequest, FixedMoment,
    FoundCommits, HandOverPiece, HandOverRequest, Heartbeat, HeartbeatReply, IndexerApi,
    KnownPlace, Places, ProjectorApi, PushReply, PushRequest, PushedCommitRequest,
    PushedStateQuery, ResultStream, SyncReply, SyncReport, TransactionCommit, TransactionPush,
    TransactionPushed, TransactionState, TransactionStatus, TransactionWrite, TransactionWritten,
    WatchKind, WatchMessage, WriteReply, WriteRequest,
};
pub(super) use proto::rpc::command::{AppliedCommand, Proposal};
pub(super) use proto::rpc::export::{ExportMessage, ExportRequest};
pub(super) use proto::rpc::mutation::{
    BackfillMessage, BackfillRequest, StreamMessage, SubscribeRequest,
};
pub(super) use proto::rpc::scan::{AppliedReport, FirstBatch, ShardBatch, ShardScan};

/// The numbers of the calls that are sent as questions on shared streams ([`super::questions`]),
/// because they are short reads.
pub(super) const QUESTIONS: [u32; 1] = [17];
/// The maximum size of a request on a shared stream, in bytes. A longer request is sent as an
/// ordinary call.
pub(super) const QUESTION_BYTES_MAX: usize = 64 << 10;

/// Calls a macro with the table of the coordinator's methods.
macro_rules! coordinator_methods {
    ($with:ident) => {
        $with! { CoordinatorApi, local_coordinator;
            calls {
                0 propose(proposal: Proposal) -> AppliedCommand, for coordinator projector indexer router operator, claims check_proposal, via own propose_for_a_while;
                1 sync(report: SyncReport) -> SyncReply, for coordinator projector, claims check_sync, via any_member;
                2 heartbeat(heartbeat: Heartbeat) -> HeartbeatReply, for coordinator projector indexer router, claims check_heartbeat, via any_member;
                3 epoch_covering(
                    bucket: BucketId, cut: Cut, history: Option<u64>, at_least: Epoch, timeout_ms: u64
                ) -> CoveringEpochs, for coordinator router, via own wait_for_epoch;
                4 status() -> CoordinatorStatus, for coordinator projector indexer router operator, via any_member;
                5 raft(messages: Vec<Bytes>) -> (), for coordinator, claims check_raft, via own refuse_raft;
                13 rebalance(request: RebalanceRequest) -> RebalancePlan, for coordinator router, via any_member;
                14 topology(index: LocalIndexId, number: TopologyNo) -> Arc<IndexTopology>, for coordinator router, via any_member;
                25 epoch_mark(bucket: BucketId, epoch: Epoch) -> Option<EpochMark>, for coordinator projector, via any_member;
                30 moment(bucket: BucketId, at_least: Epoch, timeout_ms: u64) -> FixedMoment, for coordinator router, via any_member;
                31 epoch_at(bucket: BucketId, moment: Moment) -> Epoch, for coordinator router, via any_member;
                40 members() -> CoordinatorMembers, for coordinator projector indexer router operator, via any_member;
                41 change_members(change: CoordinatorChange) -> CoordinatorChanged, for coordinator router, via own change_for_a_while;
            }
            streams {
                0 watch(wanted: WatchKind) -> WatchMessage, for coordinator projector indexer router operator, claims check_watch, via any_member;
            }
        }
    };
}

/// Calls a macro with the table of a projector's methods.
macro_rules! projector_methods {
    ($with:ident) => {
        $with! { ProjectorApi, local_projector;
            calls {
                6 write(request: WriteRequest) -> WriteReply, for router;
                7 get(bucket: BucketId, ids: Vec<String>) -> Vec<Option<Bytes>>, for router;
                8 push(request: PushRequest) -> PushReply, for router;
                9 place(bucket: BucketId) -> SourcePlace, for coordinator router;
                10 history(bucket: BucketId) -> SourceHistory, for coordinator;
                11 hand_over(request: HandOverRequest) -> HandOverPiece, for projector;
                15 sample(bucket: BucketId) -> Vec<Bytes>, for router;
                16 copy(request: CopyRequest) -> CopyAnswer, for projector;
                18 write_for_transaction(request: TransactionWrite) -> TransactionWritten, for router;
                19 roll_back_to(
                    bucket: BucketId, transaction: TransactionId, to: TransactionPlace
                ) -> TransactionPlace, for router;
                20 commit(request: TransactionCommit) -> WriteReply, for router;
                21 abort(bucket: BucketId, transaction: TransactionId) -> (), for router;
                22 keep_open(
                    bucket: BucketId, transactions: Vec<TransactionId>
                ) -> Vec<TransactionId>, for router;
                23 get_for_transaction(request: DocumentsRequest) -> Documents, for router;
                24 transactions() -> Vec<TransactionStatus>, for router;
                33 prepare(joint: TransactionId, request: TransactionCommit) -> u64, for router;
                34 end_prepared_transaction(
                    bucket: BucketId, transaction: TransactionId, decision: Decision
                ) -> WriteReply, for projector router;
                35 transaction_state(bucket: BucketId, transaction: TransactionId) -> TransactionState, for projector;
                26 committed(transaction: TransactionId) -> FoundCommits, for projector router;
                36 push_for_transaction(request: TransactionPush) -> TransactionPushed, for router;
                37 commit_pushed(request: PushedCommitRequest) -> PushReply, for router;
                38 abort_pushed(bucket: BucketId, transaction: ProducerTransactionId) -> (), for router;
                39 pushed_part_states(request: PushedStateQuery) -> Vec<(VbucketId, PartState)>, for projector;
                32 places(known: Vec<KnownPlace>) -> Places, for coordinator router;
            }
            streams {
                1 subscribe(request: SubscribeRequest) -> StreamMessage, for indexer;
                2 backfill(request: BackfillRequest) -> BackfillMessage, for indexer;
            }
        }
    };
}

/// Calls a macro with the table of an indexer's methods.
macro_rules! indexer_methods {
    ($with:ident) => {
        $with! { IndexerApi, local_indexer;
            calls {
                12 checksum(slice: SliceId, epoch: Epoch) -> (u64, u64), for coordinator indexer;
                17 first_batch(scan: ShardScan) -> FirstBatch, for router, checked by check_first_batch;
            }
            streams {
                3 scan(scan: ShardScan) -> ShardBatch, for router, checked by check_rows;
                4 watch_applied() -> AppliedReport, for router;
                5 export(request: ExportRequest) -> ExportMessage, for indexer;
            }
        }
    };
}

pub(super) use {coordinator_methods, indexer_methods, projector_methods};
