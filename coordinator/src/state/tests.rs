//! The commands one by one, on the pure state.

use proto::expr::{ColumnType, Expr};
use proto::model::assignment::VbucketAssignment;
use proto::model::bucket::SourceKind;
use proto::model::cut::Position;
use proto::model::ids::{Epoch, Generation, MoveId, Seqno, SliceNo, VbucketId, Vbuuid};
use proto::model::index::{INCLUDED_KB_DEFAULT, IndexSpec, IndexState, KeyPart, PartitionBy};
use proto::model::moves::{MoveStage, PlannedMove};
use proto::model::node::Role;
use proto::model::rollback::DeadEpochs;
use proto::model::topology::TopologyProvider;
use proto::rpc::command::{
    AdvanceMove, BuildIndexes, CancelBuild, CreateBucket, CreateIndex, DropBucket, DropIndex,
    IndexReady, PromoteEpochs, Promotion, RegisterNode, RequestId, StartMoves,
};
use proto::value::path::Step;

use std::sync::Arc;

use proto::ErrorCode;
use proto::model::history::FailoverLogs;
use proto::model::ids::{BucketId, IndexId, NodeId};
use proto::model::node::NodeInfo;
use proto::rpc::command::{Command, Outcome, Proposal};

use super::consequence::Consequence;
use super::*;

/// Applies a command at the next position, always at one time.
pub(crate) fn apply(
    state: &mut StateContext,
    proposal: impl Into<Proposal>,
) -> (Outcome, Vec<Effect>) {
    apply_decided(state, Decisions::default(), proposal)
}

/// Applies a proposal with values that the leader has decided.
pub(crate) fn apply_decided(
    state: &mut StateContext,
    decided: Decisions,
    proposal: impl Into<Proposal>,
) -> (Outcome, Vec<Effect>) {
    let (position, unix_ms) = (state.position() + 1, state.unix_ms());
    state.apply(position, &Decisions { unix_ms, ..decided }, &proposal.into())
}

/// Returns the decisions of a leader for which these nodes are silent.
pub(crate) fn avoiding(silent: &[u64]) -> Decisions {
    Decisions { silent: silent.iter().copied().map(NodeId).collect(), ..Decisions::default() }
}

pub(crate) fn done(state: &mut StateContext, proposal: impl Into<Proposal>) -> Outcome {
    done_decided(state, Decisions::default(), proposal)
}

pub(crate) fn done_decided(
    state: &mut StateContext,
    decided: Decisions,
    proposal: impl Into<Proposal>,
) -> Outcome {
    match apply_decided(state, decided, proposal) {
        (Outcome::Refused(error), _) => panic!("refused: {error}"),
        (outcome, _) => outcome,
    }
}

/// Returns the code of the refusal, and checks that the state is unchanged.
pub(crate) fn refused(state: &mut StateContext, proposal: impl Into<Proposal>) -> ErrorCode {
    let before = (state.cas(), state.catalog());
    match apply(state, proposal) {
        (Outcome::Refused(error), effects) => {
            assert!(effects.is_empty());
            assert_eq!(before, (state.cas(), state.catalog()));
            error.code
        }
        (outcome, _) => panic!("not refused: {outcome:?}"),
    }
}

pub(crate) fn node(id: u64, role: Role) -> NodeInfo {
    NodeInfo { id: NodeId(id), role, address: format!("host:{id}"), zone: String::new() }
}

pub(crate) fn create_bucket(name: &str) -> Command {
    create_bucket_of(name, SourceKind::Embedded)
}

pub(crate) fn create_bucket_of(name: &str, source: SourceKind) -> Command {
    Command::CreateBucket(CreateBucket {
        name: name.into(),
        vbuckets: 2,
        source,
        projectors: 1,
        copies: None,
        if_not_exists: false,
    })
}

pub(crate) fn spec(name: &str) -> IndexSpec {
    IndexSpec {
        name: name.into(),
        bucket: "b".into(),
        primary: false,
        keys: vec![KeyPart {
            expr: Expr::Path(vec![Step::Field("city".into())]),
            name: "city".into(),
            column_type: ColumnType::Text,
            descending: false,
            include_missing: false,
        }],
        include: Vec::new(),
        predicate: None,
        partition: PartitionBy::DocumentId,
        slices: 4,
        replicas: 1,
        separate_included_columns: false,
        included_kb_max: INCLUDED_KB_DEFAULT,
        compression: Default::default(),
        sql: format!("CREATE INDEX {name} ON b (city)"),
    }
}

pub(crate) fn create_index(spec: IndexSpec) -> Command {
    create_index_on(BucketId(1), spec)
}

pub(crate) fn create_index_on(bucket: BucketId, spec: IndexSpec) -> Command {
    Command::CreateIndex(CreateIndex { bucket, spec, defer_build: false, if_not_exists: false })
}

/// Returns a state with projector 10, indexers 20 and 21, and bucket 1, called "b", of two
/// vbuckets; all at time 0.
pub(crate) fn with_bucket() -> StateContext {
    with_bucket_of(SourceKind::Push)
}

/// Returns a state with nodes and a bucket of a given kind.
pub(crate) fn with_bucket_of(source: SourceKind) -> StateContext {
    let mut state = StateContext::default();
    for info in [node(10, Role::Projector), node(20, Role::Indexer), node(21, Role::Indexer)] {
        done(&mut state, RegisterNode { node: info });
    }
    assert_eq!(done(&mut state, create_bucket_of("b", source)), Outcome::Bucket(BucketId(1)));
    one_branch(&mut state, BucketId(1), 7);
    state
}

/// Puts all of a bucket's history on one branch.
pub(crate) fn one_branch(state: &mut StateContext, bucket: BucketId, vbuuid: u64) {
    let known = state.epochs.all_mut().get_mut(&bucket).unwrap();
    let vbuckets = usize::from(known.history.last().cut.vbuckets());
    let branches = vec![vec![(Vbuuid(vbuuid), 0)]; vbuckets];
    known.logs = Arc::new(FailoverLogs::new(branches));
}

/// Gives the vbuckets of a bucket to these owners in turn.
pub(crate) fn assign(state: &mut StateContext, bucket: BucketId, owners: &[NodeId]) {
    let info = state.buckets.get(bucket).unwrap();
    let assignment = VbucketAssignment::round_robin(info.vbuckets, owners);
    state.carry_out(&Consequence::Assigned { bucket, assignment });
}

/// Marks the epochs of bucket 1 above a point and up to `to` as dead.
pub(crate) fn mark_dead(state: &mut StateContext, point: u64, to: u64) {
    let bucket = BucketId(1);
    let point = state.bucket(bucket).unwrap().epochs.mark(Epoch(point)).cloned();
    let dead = Some(DeadEpochs { point, to: Epoch(to) });
    state.carry_out(&Consequence::RollbackChanged { bucket, rollback: None, dead });
}

/// Returns a state in which index 1, called "i", serves scans. The first copies of slices 0 to 3
/// are on nodes 20, 21, 20, 21; a replica is on the other node. Indexers 22 and 23 are empty.
pub(crate) fn serving(replicas: u8) -> StateContext {
    let mut state = with_bucket();
    done(&mut state, create_index(IndexSpec { replicas, ..spec("i") }));
    done(&mut state, IndexReady { index: IndexId(1), generation: Generation(1) });
    for id in [22, 23] {
        done(&mut state, RegisterNode { node: node(id, Role::Indexer) });
    }
    state
}

/// Returns a planned move of a slice of index 1; node 0 means `None`.
pub(crate) fn planned(slice: u16, from: u64, to: u64) -> PlannedMove {
    let node = |id| Some(NodeId(id)).filter(|node| node.0 > 0);
    PlannedMove {
        index: IndexId(1),
        generation: Generation(1),
        slice: SliceNo(slice),
        from: node(from),
        to: node(to),
        reason: "a test".into(),
    }
}

/// Starts moves, at least one.
pub(crate) fn start(state: &mut StateContext, moves: &[PlannedMove]) -> Vec<MoveId> {
    match done(state, StartMoves { moves: moves.to_vec() }) {
        Outcome::Moves(ids) => ids,
        other => panic!("{other:?}"),
    }
}

/// Advances a move to a stage.
pub(crate) fn advance(state: &mut StateContext, id: MoveId, to: MoveStage) {
    for stage in [MoveStage::Pending, MoveStage::Catchup, MoveStage::Done] {
        if stage <= to {
            done(state, AdvanceMove { index: IndexId(1), id, stage });
        }
    }
}

/// Returns the nodes that have a copy of a slice of index 1.
pub(crate) fn copies(state: &StateContext, slice: u16) -> Vec<u64> {
    let info = &state.indexes.named()[&IndexId(1)].info;
    info.topology.replicas(SliceNo(slice)).iter().map(|node| node.0).collect()
}

pub(crate) fn promotion(vbucket: u16, vbuuid: u64, seqno: u64) -> Promotion {
    let position = Position { vbuuid: Vbuuid(vbuuid), seqno: Seqno(seqno) };
    Promotion {
        bucket: BucketId(1),
        changes: vec![(VbucketId(vbucket), position)],
        horizon: Epoch(1),
    }
}

#[test]
fn a_new_bucket_has_an_epoch_that_covers_nothing() {
    let mut state = with_bucket();
    let (outcome, effects) = apply(&mut state, create_bucket("c"));
    assert_eq!(outcome, Outcome::Bucket(BucketId(2)));
    let Some(Effect::EpochPublished(mark)) = effects.last() else { panic!("{effects:?}") };
    assert_eq!((mark.epoch, mark.parent, mark.horizon), (Epoch(1), Epoch(0), Epoch(1)));
    assert_eq!(*mark.cut, proto::model::cut::Cut::zero(2));
    assert_eq!(state.catalog().bucket("c").unwrap().assignment.projectors(), [NodeId(10)]);
}

#[test]
fn buckets_need_a_projector_and_choose_the_idlest() {
    let mut state = StateContext::default();
    assert_eq!(refused(&mut state, create_bucket("b")), ErrorCode::Unavailable);
    for id in [10, 11] {
        done(&mut state, RegisterNode { node: node(id, Role::Projector) });
    }
    for name in ["b", "c", "d"] {
        done(&mut state, create_bucket(name));
    }
    let catalog = state.catalog();
    let of = |name| catalog.bucket(name).unwrap().assignment.projectors()[0].0;
    assert_eq!((of("b"), of("c"), of("d")), (10, 11, 10));
}

#[test]
fn buckets_and_indexes_share_one_namespace() {
    let mut state = with_bucket();
    done(&mut state, create_index(spec("i")));
    assert_eq!(refused(&mut state, create_bucket("i")), ErrorCode::Exists);
    assert_eq!(refused(&mut state, create_bucket("b")), ErrorCode::Exists);
    assert_eq!(refused(&mut state, create_index(spec("b"))), ErrorCode::Exists);
    let mut again = spec("i");
    again.bucket = "b".into();
    let gently = Command::CreateIndex(CreateIndex {
        bucket: BucketId(1),
        spec: again,
        defer_build: false,
        if_not_exists: true,
    });
    assert_eq!(done(&mut state, gently), Outcome::Index(IndexId(1)));
}

#[test]
fn dropping_a_bucket_drops_its_indexes_and_numbers_are_never_used_again() {
    let mut state = with_bucket();
    done(&mut state, create_index(spec("i")));
    let drop = |restrict| Command::DropBucket(DropBucket { bucket: BucketId(1), restrict });
    assert_eq!(refused(&mut state, drop(true)), ErrorCode::HasDependents);
    let (_, effects) = apply(&mut state, drop(false));
    assert!(effects.contains(&Effect::BucketDropped(BucketId(1))));
    assert!(state.catalog().indexes.is_empty());
    assert_eq!(refused(&mut state, drop(false)), ErrorCode::Changed);
    assert_eq!(done(&mut state, create_bucket("b")), Outcome::Bucket(BucketId(2)));
    assert_eq!(refused(&mut state, create_index(spec("i"))), ErrorCode::Changed, "of the old one");
    let on_new = create_index_on(BucketId(2), spec("i"));
    assert_eq!(done(&mut state, on_new), Outcome::Index(IndexId(2)));
    assert_eq!(state.catalog().newest_index, IndexId(2));
    assert_eq!(refused(&mut state, DropIndex { index: IndexId(1) }), ErrorCode::Changed);
    done(&mut state, DropIndex { index: IndexId(2) });
    let restrict = DropBucket { bucket: BucketId(2), restrict: true };
    assert_eq!(done(&mut state, restrict), Outcome::Done, "it has no index");
}

#[test]
fn an_index_goes_from_pending_to_backfill_to_maintenance() {
    let mut state = with_bucket();
    let deferred = |name| {
        Command::CreateIndex(CreateIndex {
            bucket: BucketId(1),
            spec: spec(name),
            defer_build: true,
            if_not_exists: false,
        })
    };
    done(&mut state, deferred("i"));
    done(&mut state, deferred("j"));
    let is = |state: &StateContext, name| state.catalog().index(name).unwrap().state;
    assert_eq!(is(&state, "i"), IndexState::Pending);
    let build = |ids: &[u64]| {
        let indexes = ids.iter().copied().map(IndexId).collect();
        Command::BuildIndexes(BuildIndexes { indexes })
    };
    assert_eq!(refused(&mut state, build(&[1, 9])), ErrorCode::Changed, "all or none");
    let building = done(&mut state, build(&[1, 2, 1]));
    assert_eq!(building, Outcome::Building(vec![IndexId(1), IndexId(2)]));
    assert_eq!(is(&state, "i"), IndexState::Backfill);
    assert_eq!(done(&mut state, build(&[1])), Outcome::Building(vec![]), "nothing to do");

    let ready = |generation| Command::IndexReady(IndexReady { index: IndexId(1), generation });
    done(&mut state, ready(Generation(9)));
    assert_eq!(is(&state, "i"), IndexState::Backfill, "another generation was ready");
    done(&mut state, ready(Generation(1)));
    assert_eq!((is(&state, "i"), is(&state, "j")), (IndexState::Maintenance, IndexState::Backfill));
    let cas = state.cas();
    done(&mut state, ready(Generation(1)));
    assert_eq!(state.cas(), cas, "twice is once");
}

#[test]
fn a_build_is_cancelled_only_as_long_as_it_runs() {
    let mut state = with_bucket();
    let cancel = |index| Command::CancelBuild(CancelBuild { index: IndexId(index) });
    assert_eq!(refused(&mut state, cancel(1)), ErrorCode::Changed);
    done(&mut state, create_index(spec("i")));
    done(&mut state, create_index(spec("j")));
    done(&mut state, IndexReady { index: IndexId(2), generation: Generation(1) });
    let defer = Command::CreateIndex(CreateIndex {
        bucket: BucketId(1),
        spec: spec("k"),
        defer_build: true,
        if_not_exists: false,
    });
    done(&mut state, defer);
    let cas = state.cas();
    assert_eq!(refused(&mut state, cancel(2)), ErrorCode::WrongState, "it serves");
    assert_eq!(refused(&mut state, cancel(3)), ErrorCode::WrongState, "nobody builds it");
    assert_eq!(state.cas(), cas, "refusals change nothing");
    let (_, effects) = apply(&mut state, cancel(1));
    assert_eq!(effects, [Effect::CatalogChanged]);
    assert!(state.catalog().index("i").is_none() && state.catalog().index("j").is_some());
    // The leader may have found it to be ready.
    done(&mut state, IndexReady { index: IndexId(1), generation: Generation(1) });
    assert_eq!(done(&mut state, create_index(spec("i"))), Outcome::Index(IndexId(4)));
}

#[test]
fn slices_are_placed_and_the_topology_is_remembered() {
    let mut state = with_bucket();
    done(&mut state, create_index(spec("i")));
    let record = state.indexes().next().unwrap();
    assert_eq!(record.info.topology.slices(), 4);
    assert_eq!(record.info.topology.nodes(), [NodeId(20), NodeId(21)]);
    assert_eq!(record.topologies.len(), 1);
    assert_eq!(record.topologies[0].topology, record.info.topology);
    let mut greedy = spec("j");
    greedy.replicas = 2;
    assert_eq!(refused(&mut state, create_index(greedy)), ErrorCode::Unavailable);
}

#[test]
fn definitions_outside_the_limits_are_refused() {
    let mut state = with_bucket();
    let mut refuse = |change: &dyn Fn(&mut IndexSpec)| {
        let mut spec = spec("i");
        change(&mut spec);
        refused(&mut state, create_index(spec))
    };
    let array = || Expr::Unnest(Box::new(Expr::DocumentId));
    assert_eq!(refuse(&|spec| spec.bucket = "none".into()), ErrorCode::Internal);
    assert_eq!(refuse(&|spec| spec.name = String::new()), ErrorCode::InvalidParameter);
    assert_eq!(refuse(&|spec| spec.slices = 0), ErrorCode::InvalidParameter);
    assert_eq!(refuse(&|spec| spec.slices = 5000), ErrorCode::InvalidParameter);
    assert_eq!(refuse(&|spec| spec.replicas = 8), ErrorCode::InvalidParameter);
    assert_eq!(refuse(&|spec| spec.keys = Vec::new()), ErrorCode::InvalidParameter);
    assert_eq!(refuse(&|spec| spec.primary = true), ErrorCode::InvalidParameter);
    assert_eq!(refuse(&|spec| spec.keys = vec![spec.keys[0].clone(); 33]), ErrorCode::OverLimit);
    let two_arrays = |spec: &mut IndexSpec| {
        spec.keys = vec![KeyPart { expr: array(), ..spec.keys[0].clone() }; 2];
    };
    assert_eq!(refuse(&two_arrays), ErrorCode::Unsupported);
    let empty = |spec: &mut IndexSpec| spec.partition = PartitionBy::Exprs(Vec::new());
    assert_eq!(refuse(&empty), ErrorCode::InvalidParameter);
    let mut wide = create_bucket("w");
    if let Command::CreateBucket(CreateBucket { vbuckets, .. }) = &mut wide {
        *vbuckets = 5000;
    }
    assert_eq!(refused(&mut state, wide), ErrorCode::InvalidParameter);
}

#[test]
fn include_missing_may_stand_at_any_key() {
    let mut state = with_bucket();
    done(&mut state, RegisterNode { node: node(20, Role::Indexer) });
    let mut spec = spec("i");
    spec.keys.push(KeyPart { include_missing: true, ..spec.keys[0].clone() });
    done(&mut state, create_index(spec));
}

#[test]
fn nodes_keep_their_role_and_may_change_their_address() {
    let mut state = with_bucket();
    let cas = state.cas();
    done(&mut state, RegisterNode { node: node(20, Role::Indexer) });
    assert_eq!(state.cas(), cas, "nothing new");
    let moved = NodeInfo { address: "other:1".into(), ..node(20, Role::Indexer) };
    done(&mut state, RegisterNode { node: moved });
    assert_eq!(state.node(NodeId(20)).unwrap().address, "other:1");
    let other_role = Command::RegisterNode(RegisterNode { node: node(20, Role::Router) });
    assert_eq!(refused(&mut state, other_role), ErrorCode::InvalidParameter);
    assert_eq!(
        refused(&mut state, RegisterNode { node: node(0, Role::Router) }),
        ErrorCode::InvalidParameter
    );
}

#[test]
fn epochs_follow_each_other_and_never_go_back() {
    let mut state = with_bucket();
    let mut promote = |promotion| {
        apply(&mut state, PromoteEpochs { promotions: vec![promotion], joined: Vec::new() }).1
    };
    let effects = promote(promotion(1, 7, 5));
    let [Effect::EpochPublished(mark)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((mark.epoch, mark.parent), (Epoch(2), Epoch(1)));
    assert_eq!(mark.cut.get(VbucketId(1)).seqno, Seqno(5));
    assert!(promote(promotion(1, 7, 4)).is_empty(), "behind");
    assert!(promote(promotion(1, 7, 5)).is_empty(), "nothing new");
    assert!(promote(promotion(0, 7, 0)).is_empty(), "nothing at all");
    assert!(promote(promotion(9, 7, 5)).is_empty(), "no such vbucket");
    assert!(promote(Promotion { bucket: BucketId(9), ..promotion(1, 7, 9) }).is_empty());
    assert!(promote(promotion(1, 8, 6)).is_empty(), "another branch");
    let beyond = Promotion { horizon: Epoch(99), ..promotion(0, 7, 1) };
    let effects = promote(beyond);
    let [Effect::EpochPublished(mark)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(mark.horizon, mark.epoch, "the newest epoch can always be read");
}

#[test]
fn the_oldest_covering_epoch_is_found() {
    let mut state = with_bucket();
    for seqno in [3, 6, 9] {
        apply(
            &mut state,
            PromoteEpochs { promotions: vec![promotion(0, 7, seqno)], joined: Vec::new() },
        );
    }
    let epochs = &state.bucket(BucketId(1)).unwrap().epochs;
    let covering_from = |vbuuid, seqno, from| {
        let position = Position { vbuuid: Vbuuid(vbuuid), seqno: Seqno(seqno) };
        let cut = proto::model::cut::Cut::from_positions(vec![position, Position::default()]);
        epochs.covering(&cut, Epoch(from)).map(|mark| mark.epoch.0)
    };
    let covering = |vbuuid, seqno| covering_from(vbuuid, seqno, 0);
    assert_eq!(covering(7, 0), Some(1));
    assert_eq!(covering(7, 4), Some(3));
    assert_eq!(covering(7, 6), Some(3));
    assert_eq!(covering(7, 10), None);
    assert_eq!(covering_from(7, 4, 4), Some(4), "after a rollback, older epochs are not read");
    assert_eq!(epochs.after(Epoch(2)).map(|mark| mark.epoch.0).collect::<Vec<_>>(), [3, 4]);
}

#[test]
fn epochs_that_a_lease_holds_back_are_bounded() {
    let mut state = with_bucket();
    for seqno in 1..=5000 {
        apply(
            &mut state,
            PromoteEpochs { promotions: vec![promotion(0, 7, seqno)], joined: Vec::new() },
        );
    }
    let epochs = &state.bucket(BucketId(1)).unwrap().epochs;
    assert_eq!(epochs.after(Epoch(0)).count(), 4096);
    assert_eq!(epochs.last().epoch, Epoch(5001));
    let oldest: Vec<u64> = epochs.after(Epoch(0)).take(3).map(|mark| mark.epoch.0).collect();
    assert_eq!(oldest, [1, 2, 908], "the one that is held, what followed it, and the newest");
}

#[test]
fn a_repeated_request_is_executed_once() {
    let mut state = with_bucket();
    let id = RequestId { client: 5, sequence: 1 };
    let request = Proposal::from(create_bucket("c")).with_request(id);
    let (first, _) = state.apply(100, &Decisions::at(0), &request);
    done(&mut state, DropBucket { bucket: BucketId(2), restrict: false });
    let (again, effects) = state.apply(102, &Decisions::at(0), &request);
    assert_eq!((again, effects), (first, Vec::new()));
    assert!(state.catalog().bucket("c").is_none(), "a late retry does not bring it back");
    let refused = RequestId { client: 5, sequence: 2 };
    let request = Proposal::from(create_bucket("b")).with_request(refused);
    let (first, _) = state.apply(103, &Decisions::at(0), &request);
    assert!(matches!(&first, Outcome::Refused(error) if error.code == ErrorCode::Exists));
    assert_eq!(state.apply(104, &Decisions::at(0), &request).0, first);
}

#[test]
fn every_change_adds_one_to_cas_and_only_changes_do() {
    let mut state = with_bucket();
    let cas = state.cas();
    apply(&mut state, create_bucket("c"));
    assert_eq!(state.cas(), cas + 1);
    apply(&mut state, create_bucket("c"));
    assert_eq!(state.cas(), cas + 1);
    apply(
        &mut state,
        PromoteEpochs {
            promotions: vec![promotion(0, 7, 1), promotion(1, 7, 1)],
            joined: Vec::new(),
        },
    );
    assert_eq!(state.cas(), cas + 2);
}

#[test]
fn the_catalog_has_the_cas_of_its_last_change_on_every_member() {
    let mut state = with_bucket();
    let catalog = state.catalog();
    assert_eq!(catalog.cas, state.cas());
    apply(&mut state, PromoteEpochs { promotions: vec![promotion(0, 7, 1)], joined: Vec::new() });
    assert_eq!(state.catalog(), catalog, "an epoch does not change it");
    let copy = StateContext::from_bytes(&state.to_bytes().unwrap()).unwrap();
    assert_eq!(copy.catalog(), catalog);
    apply(&mut state, create_bucket("c"));
    assert_eq!(state.catalog().cas, state.cas());
}

#[test]
fn the_state_survives_its_bytes_and_time_never_goes_back() {
    let mut state = with_bucket();
    done(&mut state, create_index(spec("i")));
    let promotions = vec![promotion(0, 7, 1)];
    let request =
        Proposal::from(Command::PromoteEpochs(PromoteEpochs { promotions, joined: Vec::new() }))
            .with_request(RequestId { client: 1, sequence: 1 });
    state.apply(200, &Decisions::at(5_000), &request);
    state.apply(201, &Decisions::at(4_000), &Proposal { request: None, ..request });
    assert_eq!(state.unix_ms(), 5_000);
    let bytes = state.to_bytes().unwrap();
    assert_eq!(StateContext::from_bytes(&bytes).unwrap(), state);
    assert!(StateContext::from_bytes(&bytes[..bytes.len() - 1]).is_err());
    let other = [&[u8::MAX], &bytes[1..]].concat();
    assert_eq!(StateContext::from_bytes(&other).unwrap_err().code, ErrorCode::Version);
}
