use std::sync::Arc;

use proto::model::assignment::VbucketSet;
use proto::model::cut::{Cut, Position};
use proto::model::history::SourceHistory;
use proto::model::identity::UniqueId;
use proto::model::ids::{IndexId, Seqno, VbucketId, Vbuuid};
use proto::model::rollback::{RollbackStage, RollbackStep};
use proto::rpc::command::{Command, DropBucket, PromoteEpochs, Promotion, Rollback, SkipEpochs};

use super::*;
use crate::state::Decisions;
use crate::state::tests::{
    create_bucket, create_index, done, done_decided, planned, serving, spec, start,
};

const BUCKET: BucketId = BucketId(1);

/// Skips epochs after processes have reported these newest numbers.
fn skip(state: &mut StateContext, epoch: u64, catalog_cas: u64) {
    let newest = NewestNumbers { epoch: Epoch(epoch), catalog_cas };
    done_decided(state, Decisions { newest, ..Decisions::default() }, SkipEpochs);
}

/// Returns the history of a source that has lost nothing.
fn history(state: &StateContext) -> SourceHistory {
    let bucket = state.bucket(BUCKET).unwrap();
    let durable = Cut::clone(&bucket.epochs.last().cut);
    SourceHistory { durable, logs: Arc::clone(bucket.logs), kept: VbucketSet::all(2) }
}

fn promote(state: &mut StateContext, seqno: u64) {
    let at = Position { vbuuid: Vbuuid(7), seqno: Seqno(seqno) };
    let changes = vec![(VbucketId(0), at)];
    let promotion = Promotion { bucket: BUCKET, changes, horizon: Epoch(1) };
    done(state, PromoteEpochs { promotions: vec![promotion], joined: Vec::new() });
}

/// Advances the rollback of the bucket to its last stage; returns the epoch.
fn resume(state: &mut StateContext) -> Epoch {
    let history = history(state);
    for step in [RollbackStep::Prepare(history), RollbackStep::Restart, RollbackStep::Rollback] {
        done(state, Rollback { bucket: BUCKET, step });
    }
    state.bucket(BUCKET).unwrap().epochs.last().epoch
}

#[test]
fn everything_goes_on_above_all_known_numbers_and_no_older_epoch_is_alive() {
    let mut state = serving(1);
    (1..5).for_each(|seqno| promote(&mut state, seqno));
    let (before, ended) =
        (state.catalog(), state.bucket(BUCKET).unwrap().epochs.last().cut.clone());
    skip(&mut state, 150, 3_000);
    let to = 3_000 + SKIP;
    let info = || Arc::clone(state.bucket(BUCKET).unwrap().info);
    assert_eq!(info().rollback.as_ref().unwrap().stage, RollbackStage::Started);
    assert_eq!(info().readable_from(), None, "new scans wait");
    let catalog = state.catalog();
    assert!(catalog.cas > to && catalog.newest_index == IndexId(to));
    let (index, old) = (&catalog.indexes[&IndexId(1)], &before.indexes[&IndexId(1)]);
    assert!(index.revision > to && index.topology.number.0 == to);
    assert_eq!(index.topology.placement, old.topology.placement);
    assert!(catalog.dropped_buckets.is_empty(), "lost, not dropped");

    let resumed = resume(&mut state);
    assert_eq!(resumed, Epoch(to + 1));
    let bucket = state.bucket(BUCKET).unwrap();
    assert!((1..200).chain([to]).all(|epoch| bucket.info.is_dead(Epoch(epoch))));
    assert_eq!((bucket.epochs.last().parent, &bucket.epochs.last().cut), (Epoch(0), &ended));
    assert_eq!(bucket.info.readable_from(), Some(resumed));
    done(&mut state, Rollback { bucket: BUCKET, step: RollbackStep::End { resumed } });
    promote(&mut state, 9);
    assert_eq!(state.bucket(BUCKET).unwrap().epochs.last().epoch, Epoch(to + 2));

    let unique = UniqueId(3);
    let decided = Decisions { unique, ..Decisions::default() };
    let made = done_decided(&mut state, decided, create_bucket("later"));
    assert_eq!(made, proto::rpc::command::Outcome::Bucket(BucketId(to + 1)));
    done(&mut state, DropBucket { bucket: BucketId(to + 1), restrict: false });
    assert!(state.catalog().has_dropped(BucketId(to + 1), unique));
    assert_eq!(StateContext::from_bytes(&state.to_bytes().unwrap()).unwrap(), state);
}

/// The older copy is restored twice. The second time nodes have the numbers that the first restore
/// gave.
#[test]
fn the_same_copy_goes_on_above_what_it_gave_the_first_time() {
    let copy = serving(0);
    let mut first = copy.clone();
    skip(&mut first, 10, 10);
    let resumed = resume(&mut first);
    done(&mut first, create_index(spec("later")));
    let told = first.catalog();
    let mut second = copy;
    skip(&mut second, resumed.0, told.cas);
    assert!(resume(&mut second) > Epoch(resumed.0 + SKIP - 1));
    let catalog = second.catalog();
    assert!(catalog.cas > told.cas);
    for (id, index) in &catalog.indexes {
        assert!(index.revision > told.indexes[id].revision, "index {id}");
        assert!(index.topology.number > told.indexes[id].topology.number, "index {id}");
    }
    assert!(catalog.newest_index > told.newest_index);
}

/// A loss during the rollback changes the end of the next epoch, and not the dead epochs.
#[test]
fn a_loss_meanwhile_does_not_bring_an_epoch_back() {
    let mut state = serving(1);
    start(&mut state, &[planned(0, 20, 22)]);
    (1..5).for_each(|seqno| promote(&mut state, seqno));
    skip(&mut state, 0, 0);
    assert!(state.catalog().indexes[&IndexId(1)].moves.is_empty(), "moves are undone");
    let mut lost = history(&state);
    let logs = vec![vec![(Vbuuid(8), 2), (Vbuuid(7), 0)], vec![(Vbuuid(7), 0)]];
    lost.logs = Arc::new(proto::model::history::FailoverLogs::new(logs));
    lost.durable.set(VbucketId(0), Position { vbuuid: Vbuuid(7), seqno: Seqno(2) });
    let step = |step| Command::Rollback(Rollback { bucket: BUCKET, step });
    let whole = history(&state);
    done(&mut state, step(RollbackStep::Prepare(whole)));
    done(&mut state, step(RollbackStep::Compare(lost.clone())));
    done(&mut state, step(RollbackStep::Prepare(lost.clone())));
    done(&mut state, step(RollbackStep::Restart));
    done(&mut state, step(RollbackStep::Rollback));
    let bucket = state.bucket(BUCKET).unwrap();
    assert_eq!(*bucket.epochs.last().cut, lost.durable);
    assert!(
        (1..10).all(|epoch| bucket.info.is_dead(Epoch(epoch))),
        "also those that the source has"
    );
    assert!(state.epochs.all().values().all(|known| known.skips_to.is_none()));
}
