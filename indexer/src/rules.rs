//! What a follower decides about epochs, purely: which of what is here is dead, what can go back, and what may
//! come next. The follower and the simulation of the cores call the same functions.

use proto::cut::{Cut, EpochMark};
use proto::history::FailoverLogs;
use proto::ids::Epoch;
use proto::index::BucketInfo;
use proto::plant::{self, Plant};
use proto::rollback::DeadEpochs;
use proto::{Error, ErrorCode, Result};

/// The first range of dead epochs of a bucket that any of these epochs stands in.
pub fn dead_range<I: Iterator<Item = Epoch>>(
    bucket: &BucketInfo,
    epochs: impl Fn() -> I,
) -> Option<DeadEpochs> {
    if bucket.dead.is_empty() || plant::is(Plant::RollbackMissed) {
        return None;
    }
    let stands = |dead: &&DeadEpochs| epochs().any(|epoch| dead.contains(epoch));
    bucket.dead.iter().find(stands).cloned()
}

/// May an index, whose newest epoch is given, stay when its bucket goes back to a point? Where the bucket itself
/// need not go back (`point` is `None`), only an index that does not stand in the range.
pub fn stays(
    dead: &DeadEpochs,
    point: Option<&EpochMark>,
    newest: Epoch,
    can_go_back: impl FnOnce(Epoch) -> bool,
) -> bool {
    match point {
        Some(point) => can_go_back(point.epoch),
        None => !dead.contains(newest) && dead.point.is_some(),
    }
}

/// Is a stability timestamp of the stream's history, and does it follow on what is applied here? A rollback that
/// the catalog does not tell of yet is waited for.
pub fn check_follows(
    mark: &EpochMark,
    history: Option<&FailoverLogs>,
    applied: Epoch,
) -> Result<()> {
    let of_history = history.is_some_and(|logs| logs.includes_cut(&mark.cut));
    if !of_history && !plant::is(Plant::DeadEpochSent) {
        let what = format!("bucket {}: epoch {} is of another history", mark.bucket, mark.epoch);
        return Err(Error::new(ErrorCode::DropData, what));
    }
    let follows = mark.epoch <= applied || mark.parent >= applied;
    if !follows && !plant::is(Plant::RollbackMissed) {
        let (bucket, parent) = (mark.bucket, mark.parent);
        let what = format!("bucket {bucket}: a rollback to epoch {parent} is not known here yet");
        return Err(Error::unavailable(what));
    }
    Ok(())
}

/// Is a snapshot, which ends at this cut, worth nothing: is it of a history that is no more, or does it end before
/// `joined`, from where on the build is brought what is new? The latter where the source has lost a piece meanwhile.
pub fn is_lost(history: &FailoverLogs, snapshot: &Cut, joined: &Cut) -> bool {
    let fits = history.includes_cut(snapshot) && snapshot.reaches(joined);
    !fits && !plant::is(Plant::LostSnapshotKept)
}

/// A stream begins at a place: a build that is brought what is new from `joined` on, without a gap, is brought it from
/// there on where that is earlier.
pub fn rejoin(joined: &mut Cut, at: &Cut) {
    for (vbucket, position) in at.iter() {
        if position.seqno < joined.get(vbucket).seqno {
            joined.set(vbucket, position);
        }
    }
}
