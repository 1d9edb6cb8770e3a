use proto::model::ids::{BucketId, VbucketId};
use proto::rpc::command::{
    CancelHandOver, Command, CreateBucket, DropBucket, FinishHandOver, HandOver, Outcome,
    RegisterNode, RemoveNode,
};

use super::*;
use crate::state::tests::{apply, done, node, refused};

fn create(state: &mut StateContext, source: SourceKind, projectors: u16) -> Outcome {
    apply(
        state,
        CreateBucket {
            name: "p".into(),
            vbuckets: 4,
            source,
            projectors,
            copies: None,
            if_not_exists: false,
        },
    )
    .0
}

/// Returns a state with a pushed bucket of four vbuckets on projectors 10 and 11; projector 12 has
/// none.
fn spread() -> StateContext {
    let mut state = StateContext::default();
    for id in 10..=12 {
        done(&mut state, RegisterNode { node: node(id, Role::Projector) });
    }
    assert!(matches!(create(&mut state, SourceKind::Push, 2), Outcome::Bucket(_)));
    state
}

fn assignment(state: &StateContext) -> VbucketAssignment {
    VbucketAssignment::clone(&state.bucket(BucketId(1)).expect("the bucket exists").info.assignment)
}

fn hand_over(vbuckets: &[u16], to: u64) -> Command {
    let vbuckets = vbuckets.iter().copied().map(VbucketId).collect();
    Command::HandOver(HandOver { bucket: BucketId(1), vbuckets, to: NodeId(to) })
}

#[test]
fn a_pushed_bucket_is_spread_over_idle_projectors_and_an_embedded_one_is_not() {
    let mut state = spread();
    let of = |v| assignment(&state).owner(VbucketId(v)).expect("a owner").0;
    assert_eq!([of(0), of(1), of(2), of(3)], [10, 11, 10, 11]);
    done(&mut state, DropBucket { bucket: BucketId(1), restrict: false });
    for (source, projectors) in [
        (SourceKind::Embedded, 2),
        (SourceKind::Push, 4),
        (SourceKind::Push, 5),
        (SourceKind::Push, 0),
    ] {
        let outcome = create(&mut state, source, projectors);
        assert!(matches!(outcome, Outcome::Refused(_)), "{source:?} on {projectors}");
    }
}

#[test]
fn a_hand_over_ends_when_its_target_reports_and_only_once() {
    let mut state = spread();
    done(&mut state, hand_over(&[1, 2], 12));
    done(&mut state, hand_over(&[1, 2], 12));
    let transfer = assignment(&state).transfers().to_vec();
    assert_eq!(transfer.len(), 2, "said again it is the same");
    assert_eq!(assignment(&state).owner(VbucketId(1)), Some(NodeId(11)));
    refused(&mut state, hand_over(&[1], 10));
    refused(&mut state, RemoveNode { node: NodeId(12), force: false });
    let finish = |number| Command::FinishHandOver(FinishHandOver { bucket: BucketId(1), number });
    done(&mut state, finish(transfer[0].number));
    assert_eq!(assignment(&state).owner(VbucketId(1)), Some(NodeId(12)));
    refused(&mut state, finish(transfer[0].number));
    done(&mut state, CancelHandOver { bucket: BucketId(1) });
    refused(&mut state, finish(transfer[1].number));
    assert_eq!(assignment(&state).owner(VbucketId(2)), Some(NodeId(10)), "it stays");
}

#[test]
fn impossible_hand_overs_are_refused() {
    let mut state = spread();
    refused(&mut state, hand_over(&[4], 12));
    refused(&mut state, hand_over(&[1], 99));
    done(&mut state, hand_over(&[0], 10));
    assert!(assignment(&state).transfers().is_empty(), "the bucket exists");
}
