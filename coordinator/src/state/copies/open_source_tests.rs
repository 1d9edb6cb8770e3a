use proto::model::assignment::VbucketSet;
use proto::model::bucket::SourceKind;
use proto::model::copies::Copies;
use proto::model::cut::Position;
use proto::model::ids::{Epoch, Seqno, VbucketId, Vbuuid};
use proto::model::node::Role;
use proto::model::rollback::RollbackStep;
use proto::rpc::command::{
    ChangeCopies, Command, OpenSource, PromoteEpochs, Promotion, RegisterNode, Rollback, SetCopies,
    SkipEpochs,
};

use super::*;
use crate::state::Decisions;
use crate::state::tests::{apply, done, node, with_bucket_of};

const BUCKET: BucketId = BucketId(1);
const PROJECTOR: NodeId = NodeId(10);

/// The history of two vbuckets that end at these seqnos, with a new branch after each.
fn restarted(ends: [u64; 2]) -> SourceHistory {
    let branches = |end: u64| match end {
        0 => vec![(Vbuuid(8), 0)],
        _ => vec![(Vbuuid(8), end), (Vbuuid(7), 0)],
    };
    let positions = ends.map(|seqno| Position { vbuuid: Vbuuid(7), seqno: Seqno(seqno) });
    SourceHistory {
        durable: Cut::from_positions(positions.to_vec()),
        logs: Arc::new(FailoverLogs::new(ends.map(branches).to_vec())),
        kept: VbucketSet::all(2),
    }
}

fn open(history: &SourceHistory, accepted: Option<u64>) -> Command {
    let (history, accepted) = (Box::new(history.clone()), accepted.map(Epoch));
    Command::OpenSource(OpenSource { bucket: BUCKET, projector: PROJECTOR, history, accepted })
}

fn refused(state: &mut StateContext, command: Command) -> Error {
    match apply(state, command) {
        (Outcome::Refused(error) | Outcome::Lacks { error, .. }, effects) if effects.is_empty() => {
            error
        }
        other => panic!("not refused: {other:?}"),
    }
}

fn rollback(step: RollbackStep) -> Command {
    Command::Rollback(Rollback { bucket: BUCKET, step })
}

/// Returns a state whose bucket has ten epochs; epoch n + 1 ends at seqno n in both vbuckets.
fn ten_epochs() -> StateContext {
    let mut state = with_bucket_of(SourceKind::Embedded);
    for n in 1..10 {
        let at = Position { vbuuid: Vbuuid(7), seqno: Seqno(n) };
        let changes = vec![(VbucketId(0), at), (VbucketId(1), at)];
        let promotion = Promotion { bucket: BUCKET, changes, horizon: Epoch(1) };
        let command = Command::PromoteEpochs(PromoteEpochs {
            promotions: vec![promotion],
            joined: Vec::new(),
        });
        let position = state.position() + 1;
        state.apply(position, &Decisions::at(n), &command.into());
    }
    state
}

fn stage(state: &StateContext) -> Option<RollbackStage> {
    state.bucket(BUCKET).unwrap().info.rollback.as_ref().map(|rollback| rollback.stage)
}

fn opened(revision: u64) -> Outcome {
    Outcome::Opened(Copies { revision, ..Copies::single(PROJECTOR) })
}

#[test]
fn a_source_with_all_that_the_last_epoch_covers_is_served() {
    let mut state = ten_epochs();
    let history = restarted([9, 12]);
    assert_eq!(done(&mut state, open(&history, None)), opened(2));
    assert_eq!(*state.bucket(BUCKET).unwrap().logs, history.logs, "its branches are known");
    assert_eq!(stage(&state), None);
    // The new revision voids all proposals of the earlier process.
    assert_eq!(done(&mut state, open(&history, None)), opened(3));
}

#[test]
fn a_source_that_lacks_something_is_refused_by_count_and_vbucket_and_changes_nothing() {
    let mut state = ten_epochs();
    let before = state.clone();
    let error = refused(&mut state, open(&restarted([6, 9]), None));
    assert_eq!(error.code, ErrorCode::Corrupt);
    let what =
        "the projector lacks 3 mutations that epoch 10 covers: vbucket 0 ends at seqno 6, not 9";
    assert!(error.message.ends_with(what), "{}", error.message);
    assert!(error.hint.unwrap().contains("--accept-loss"));
    assert_eq!((&state.buckets, &state.epochs), (&before.buckets, &before.epochs));
    // A lost disk.
    let error = refused(&mut state, open(&restarted([0, 0]), None));
    assert!(error.message.contains("lacks 18 mutations"), "{}", error.message);
}

/// A report that the leader lacks mutations can only be an error: the indexes have these mutations.
#[test]
fn no_report_of_the_leader_takes_an_embedded_bucket_back() {
    let mut state = ten_epochs();
    done(&mut state, rollback(RollbackStep::Compare(restarted([6, 9]))));
    assert_eq!(stage(&state), None);
    assert_eq!(state.bucket(BUCKET).unwrap().epochs.last().epoch, Epoch(10));
}

#[test]
fn an_accepted_loss_rolls_the_bucket_back_to_what_is_left() {
    let mut state = ten_epochs();
    let left = restarted([6, 9]);
    assert_eq!(done(&mut state, open(&left, Some(10))), opened(2));
    assert_eq!(stage(&state), Some(RollbackStage::Started));
    done(&mut state, rollback(RollbackStep::Prepare(left.clone())));
    done(&mut state, rollback(RollbackStep::Restart));
    done(&mut state, rollback(RollbackStep::Rollback));
    let bucket = state.bucket(BUCKET).unwrap();
    assert_eq!(bucket.epochs.last().epoch, Epoch(11));
    assert_eq!(*bucket.epochs.last().cut, left.durable);
    // From now on a shorter history is a new loss, which no operator has accepted.
    refused(&mut state, open(&restarted([5, 9]), Some(10)));
    refused(&mut state, open(&restarted([5, 9]), None));
    done(&mut state, open(&restarted([6, 9]), None));
}

#[test]
fn an_acceptance_of_another_loss_counts_for_nothing() {
    let mut state = ten_epochs();
    for accepted in [1, 9, 11] {
        refused(&mut state, open(&restarted([6, 9]), Some(accepted)));
    }
    assert_eq!(stage(&state), None);
}

/// All indexes are rebuilt from what the source has.
#[test]
fn a_source_needs_nothing_while_epochs_are_skipped() {
    let mut state = ten_epochs();
    done(&mut state, Command::SkipEpochs(SkipEpochs));
    done(&mut state, open(&restarted([2, 3]), None));
    assert_eq!(stage(&state), Some(RollbackStage::Started));
}

/// The acceptance covered only the loss of the first process.
#[test]
fn a_restart_in_the_midst_needs_what_was_left_when_the_loss_was_accepted() {
    for steps in [0, 1, 2] {
        let mut state = ten_epochs();
        let left = restarted([6, 9]);
        done(&mut state, open(&left, Some(10)));
        let all = [RollbackStep::Prepare(left.clone()), RollbackStep::Restart];
        all.into_iter().take(steps).for_each(|step| drop(done(&mut state, rollback(step))));
        let mut again = restarted([6, 9]);
        again.logs = Arc::new(FailoverLogs::new(vec![
            vec![(Vbuuid(9), 6), (Vbuuid(7), 0)],
            vec![(Vbuuid(9), 9), (Vbuuid(7), 0)],
        ]));
        done(&mut state, open(&again, None));
        assert_eq!(stage(&state), Some(RollbackStage::Started), "after {steps} steps");
        refused(&mut state, open(&restarted([5, 9]), None));
        done(&mut state, rollback(RollbackStep::Prepare(again)));
    }
}

#[test]
fn only_the_owner_speaks_of_a_vbucket() {
    let mut state = ten_epochs();
    let history = Box::new(restarted([9, 9]));
    let other = Command::OpenSource(OpenSource {
        bucket: BUCKET,
        projector: NodeId(20),
        history,
        accepted: Some(Epoch(10)),
    });
    assert_eq!(refused(&mut state, other).code, ErrorCode::NotOwner);
}

/// The refusal informs the old leader of the promotion if no other message does.
#[test]
fn a_promoted_copy_opens_the_bucket_and_the_old_leader_is_refused() {
    use proto::model::copies::CopiesChange::{Grow, Join, Promote};
    let (mut state, second) = (ten_epochs(), NodeId(11));
    done(&mut state, Command::RegisterNode(RegisterNode { node: node(11, Role::Projector) }));
    done(&mut state, Command::SetCopies(SetCopies { bucket: BucketId(1), copies: 2 }));
    for change in [Join(second), Grow(second), Promote(second)] {
        let revision = state.copies(BUCKET).unwrap().revision;
        done(&mut state, Command::ChangeCopies(ChangeCopies { bucket: BUCKET, revision, change }));
    }
    let history = Box::new(restarted([9, 9]));
    let of_second = Command::OpenSource(OpenSource {
        bucket: BUCKET,
        projector: second,
        history,
        accepted: None,
    });
    let opened = done(&mut state, of_second);
    assert!(matches!(opened, Outcome::Opened(copies) if copies.leader == second));
    let error = refused(&mut state, open(&restarted([9, 9]), None));
    assert_eq!(error.code, ErrorCode::NotOwner);
}
