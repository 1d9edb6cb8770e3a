use proptest::prelude::*;
use proto::model::bucket::SourceKind;
use proto::model::copies::CopiesChange::{Grow, Join, Leave, Promote, Shrink};
use proto::model::identity::UniqueId;
use proto::model::ids::BucketId;
use proto::rpc::command::{
    CancelHandOver, ChangeCopies, Command, CreateBucket, DropBucket, MoveBucket, RegisterNode,
    RemoveNode, SetCopies, SkipEpochs,
};

use super::*;
use crate::state::Decisions;
use crate::state::tests::{apply, create_bucket_of, done, done_decided, node, refused};

const BUCKET: BucketId = BucketId(1);
const TEN: NodeId = NodeId(10);
const ELEVEN: NodeId = NodeId(11);
const TWELVE: NodeId = NodeId(12);

/// Returns a state with projectors 10 to 14, indexer 20, and bucket 1, called "b", on projector 10.
fn cluster(source: SourceKind) -> StateContext {
    let mut state = StateContext::default();
    for id in 10..15 {
        done(&mut state, RegisterNode { node: node(id, Role::Projector) });
    }
    done(&mut state, RegisterNode { node: node(20, Role::Indexer) });
    assert_eq!(done(&mut state, create_bucket_of("b", source)), Outcome::Bucket(BUCKET));
    state
}

fn embedded() -> StateContext {
    cluster(SourceKind::Embedded)
}

fn copies(state: &StateContext) -> Copies {
    state.copies(BUCKET).expect("an embedded bucket").clone()
}

fn set(copies: u8) -> Command {
    Command::SetCopies(SetCopies { bucket: BucketId(1), copies })
}

fn move_to(node: u64) -> Command {
    Command::MoveBucket(MoveBucket { bucket: BucketId(1), to: NodeId(node) })
}

fn with_copies(name: &str, source: SourceKind, copies: u8) -> Command {
    match create_bucket_of(name, source) {
        Command::CreateBucket(CreateBucket {
            name,
            vbuckets,
            source,
            projectors,
            if_not_exists,
            ..
        }) => {
            let copies = Some(copies);
            Command::CreateBucket(CreateBucket {
                name,
                vbuckets,
                source,
                projectors,
                copies,
                if_not_exists,
            })
        }
        other => other,
    }
}

fn change_at(state: &mut StateContext, revision: u64, change: CopiesChange) -> bool {
    let before = copies(state);
    let command = Command::ChangeCopies(ChangeCopies { bucket: BUCKET, revision, change });
    let (outcome, effects) = apply(state, command);
    let now = copies(state);
    assert_eq!(outcome, Outcome::Copies(now.clone()), "the answer has the present copies");
    assert_eq!(effects.is_empty(), now == before, "a change is an effect");
    now != before
}

/// Proposes a change at the present revision. Returns true if it was made.
fn change(state: &mut StateContext, change: CopiesChange) -> bool {
    let revision = copies(state).revision;
    change_at(state, revision, change)
}

fn all_made(state: &mut StateContext, changes: &[CopiesChange]) {
    for one in changes {
        assert!(change(state, *one), "{one:?} of {:?}", copies(state));
    }
}

/// Returns a state whose bucket has copies on projectors 10 and 11.
fn of_two() -> StateContext {
    let mut state = embedded();
    done(&mut state, set(2));
    all_made(&mut state, &[Join(ELEVEN), Grow(ELEVEN)]);
    state
}

fn refusal(state: &mut StateContext, command: Command) -> (String, String) {
    match apply(state, command) {
        (Outcome::Refused(error), _) => (error.message, error.hint.unwrap_or_default()),
        (outcome, _) => panic!("not refused: {outcome:?}"),
    }
}

#[test]
fn an_embedded_bucket_has_copies_from_its_creation_to_its_drop_and_a_pushed_one_has_none() {
    let mut state = embedded();
    assert_eq!(copies(&state), Copies::single(TEN));
    assert_eq!(state.catalog().copies[&BUCKET], copies(&state));
    done(&mut state, create_bucket_of("p", SourceKind::Push));
    assert_eq!(state.copies(BucketId(2)), None);
    done(&mut state, DropBucket { bucket: BucketId(1), restrict: false });
    assert!(state.catalog().copies.is_empty());
}

#[test]
fn a_bucket_is_created_with_more_copies_than_there_are_projectors_and_gets_them_later() {
    let mut state = StateContext::default();
    done(&mut state, RegisterNode { node: node(10, Role::Projector) });
    let decided = Decisions { unique: UniqueId(7), ..Decisions::default() };
    let made = done_decided(&mut state, decided, with_copies("b", SourceKind::Embedded, 3));
    assert_eq!(made, Outcome::Bucket(BUCKET));
    assert_eq!((copies(&state).wanted, copies(&state).in_sync), (3, vec![TEN]));
    assert_eq!(state.catalog().bucket_ids[&BUCKET], UniqueId(7));
}

#[test]
fn an_impossible_number_of_copies_is_refused_before_anything_is_made() {
    let mut state = embedded();
    for number in [0, COPIES_MAX + 1] {
        let code = refused(&mut state, with_copies("c", SourceKind::Embedded, number));
        assert_eq!(code, ErrorCode::InvalidParameter);
        assert_eq!(refused(&mut state, set(number)), ErrorCode::InvalidParameter);
    }
    let of_pushed = with_copies("p", SourceKind::Push, 2);
    assert_eq!(refused(&mut state, of_pushed), ErrorCode::Unsupported);
    done(&mut state, with_copies("p", SourceKind::Push, 1));
    let unknown = Command::SetCopies(SetCopies { bucket: BucketId(9), copies: 2 });
    assert_eq!(refused(&mut state, unknown), ErrorCode::Changed);
    assert_eq!(refused(&mut cluster(SourceKind::Push), set(2)), ErrorCode::Unsupported);
}

#[test]
fn the_number_of_copies_changes_the_catalog_only_if_it_is_another_one() {
    let mut state = embedded();
    assert_eq!(apply(&mut state, set(2)), (Outcome::Done, vec![Effect::CatalogChanged]));
    assert_eq!(apply(&mut state, set(2)), (Outcome::Done, Vec::new()));
    assert_eq!(copies(&state).wanted, 2);
}

#[test]
fn a_bucket_moves_to_registered_projectors_and_no_pushed_bucket_moves_as_a_whole() {
    let mut state = embedded();
    done(&mut state, move_to(12));
    assert_eq!(copies(&state).move_to, Some(TWELVE));
    assert_eq!(apply(&mut state, move_to(12)).1, Vec::new());
    done(&mut state, move_to(10));
    assert_eq!(copies(&state).move_to, None, "it leads already");
    assert_eq!(refused(&mut state, move_to(99)), ErrorCode::Unknown);
    let (message, _) = refusal(&mut state, move_to(20));
    assert_eq!(message, "node 20 is not a projector, its role is indexer");
    let (_, hint) = refusal(&mut cluster(SourceKind::Push), move_to(12));
    assert!(hint.contains("ALTER BUCKET … MOVE VBUCKET"), "{hint}");
}

#[test]
fn a_cancelled_move_is_forgotten_and_the_leader_stays() {
    let mut state = embedded();
    let cancel = Command::CancelHandOver(CancelHandOver { bucket: BucketId(1) });
    assert_eq!(apply(&mut state, cancel.clone()).1, Vec::new(), "there is no move");
    done(&mut state, move_to(12));
    all_made(&mut state, &[Join(TWELVE)]);
    done(&mut state, cancel);
    assert_eq!((copies(&state).move_to, copies(&state).leader), (None, TEN));
    all_made(&mut state, &[Leave(TWELVE)]);
    assert_eq!(copies(&state).in_sync, [TEN]);
}

#[test]
fn projectors_join_as_long_as_copies_are_missing_or_the_bucket_moves_to_them() {
    let mut state = embedded();
    assert!(!change(&mut state, Join(ELEVEN)), "one copy is wanted");
    done(&mut state, set(3));
    assert!(!change(&mut state, Join(NodeId(20))), "an indexer");
    assert!(!change(&mut state, Join(NodeId(99))), "unknown");
    all_made(&mut state, &[Join(ELEVEN), Join(TWELVE)]);
    assert!(!change(&mut state, Join(NodeId(13))), "three are wanted");
    done(&mut state, move_to(13));
    all_made(&mut state, &[Join(NodeId(13))]);
    done(&mut state, move_to(14));
    assert!(!change(&mut state, Join(NodeId(14))), "one more is the most");
}

#[test]
fn a_change_that_comes_too_late_gets_the_present_copies_and_only_no_bucket_is_refused() {
    let mut state = of_two();
    let late = copies(&state).revision - 1;
    assert!(!change_at(&mut state, late, Promote(ELEVEN)));
    assert!(!change(&mut state, Grow(ELEVEN)), "it is in sync");
    assert!(!change(&mut state, Leave(TEN)), "it leads");
    assert!(!change(&mut state, Promote(TWELVE)), "it has nothing");
    let of_none = Command::ChangeCopies(ChangeCopies {
        bucket: BucketId(9),
        revision: 1,
        change: Promote(ELEVEN),
    });
    assert_eq!(refused(&mut state, of_none), ErrorCode::Unknown);
}

#[test]
fn a_promoted_copy_owns_all_vbuckets_and_the_silent_leader_joins_again() {
    let mut state = of_two();
    all_made(&mut state, &[Promote(ELEVEN)]);
    let assignment = &state.bucket(BUCKET).expect("it is there").info.assignment;
    assert_eq!(**assignment, VbucketAssignment::single(2, ELEVEN));
    assert_eq!((copies(&state).leader, copies(&state).term), (ELEVEN, 2));
    assert_eq!((copies(&state).in_sync, copies(&state).former), (vec![ELEVEN], vec![TEN]));
    all_made(&mut state, &[Join(TEN), Grow(TEN)]);
}

#[test]
fn a_projector_stays_while_a_bucket_needs_it_and_leaves_all_copies_with_its_removal() {
    let remove = |node| Command::RemoveNode(RemoveNode { node: NodeId(node), force: false });
    let mut state = of_two();
    for (node, way_out) in [(10, "MOVE TO"), (11, "copies = 1")] {
        let (message, hint) = refusal(&mut state, remove(node));
        assert!(message.contains("bucket \"b\""), "{message}");
        assert!(hint.contains(way_out), "{hint}");
    }
    done(&mut state, move_to(12));
    done(&mut state, remove(12));
    assert_eq!(copies(&state).move_to, None);
    done(&mut state, set(3));
    all_made(&mut state, &[Join(NodeId(13))]);
    done(&mut state, remove(13));
    assert!(copies(&state).joining.is_empty());
    all_made(&mut state, &[Join(NodeId(14)), Grow(NodeId(14))]);
    done(&mut state, remove(11));
    assert_eq!(copies(&state).in_sync, [TEN, NodeId(14)]);
    done(&mut state, set(1));
    done(&mut state, remove(14));
}

/// A copy that the older state lists may have left since, and then lacks later acknowledged
/// mutations.
#[test]
fn skipped_epochs_leave_each_leader_alone_under_a_term_that_was_never_given() {
    let mut state = of_two();
    done(&mut state, move_to(12));
    done(&mut state, SkipEpochs);
    let now = copies(&state);
    assert_eq!((now.wanted, now.leader, now.move_to), (2, TEN, None));
    assert_eq!(now.members().collect::<Vec<_>>(), [TEN]);
    assert!(now.term > 1_000 && now.revision > 1_000);
}

#[derive(Clone, Debug)]
enum Step {
    Set(u8),
    MoveTo(u64),
    Cancel,
    /// A change that was made from a revision older than the present one by this number.
    Change(u64, CopiesChange),
    Remove(u64),
    Register(u64),
    Skip,
}

fn steps() -> impl Strategy<Value = Step> {
    let node = || 10..15_u64;
    let kinds = [Join, Grow, Shrink, Promote, Leave];
    let change =
        (prop::sample::select(kinds.to_vec()), node()).prop_map(|(kind, node)| kind(NodeId(node)));
    let behind = prop_oneof![9 => Just(0_u64), 1 => Just(1_u64)];
    prop_oneof![
        2 => (1..=COPIES_MAX).prop_map(Step::Set),
        2 => node().prop_map(Step::MoveTo),
        1 => Just(Step::Cancel),
        16 => (behind, change).prop_map(|(behind, change)| Step::Change(behind, change)),
        1 => node().prop_map(Step::Remove),
        1 => node().prop_map(Step::Register),
        1 => Just(Step::Skip),
    ]
}

fn command(state: &StateContext, step: Step) -> Command {
    match step {
        Step::Set(number) => set(number),
        Step::MoveTo(node) => move_to(node),
        Step::Cancel => Command::CancelHandOver(CancelHandOver { bucket: BucketId(1) }),
        Step::Change(behind, change) => {
            let revision = copies(state).revision - behind;
            Command::ChangeCopies(ChangeCopies { bucket: BUCKET, revision, change })
        }
        Step::Remove(node) => Command::RemoveNode(RemoveNode { node: NodeId(node), force: false }),
        Step::Register(id) => {
            Command::RegisterNode(RegisterNode { node: node(id, Role::Projector) })
        }
        Step::Skip => Command::SkipEpochs(SkipEpochs),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_commands_break_the_invariants_or_promote_a_copy_that_may_lack_something(
        steps in prop::collection::vec(steps(), 1..60),
    ) {
        let mut state = embedded();
        for step in steps {
            let before = copies(&state);
            let command = command(&state, step);
            apply(&mut state, command.clone());
            prop_assert_eq!(state.check(), Ok(()), "after {:?}", &command);
            let now = copies(&state);
            prop_assert!(now == before || now.revision > before.revision, "{:?}", &command);
            prop_assert!(before.in_sync.contains(&now.leader), "{:?}", &command);
            prop_assert!(now.leader == before.leader || now.term > before.term, "{:?}", &command);
        }
        let read = StateContext::from_bytes(&state.to_bytes().expect("encoded"));
        prop_assert_eq!(read.expect("decoded"), state);
    }
}
