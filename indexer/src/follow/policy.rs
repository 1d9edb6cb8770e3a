//! The decisions of a follower, as pure functions: which epochs are dead, which indexes can roll
//! back, which epochs may follow the applied one, and which snapshots are covered or lost. The
//! simulation of the cores calls the same functions.
//!
//! A follower does not wait for an epoch that is dead in its catalog, nor for an epoch from which
//! a newer epoch does not descend. An indexer also refuses epochs after a rollback that its
//! catalog does not list yet: an epoch cannot have a dead epoch as an ancestor. If an epoch
//! descends from the applied one with epochs in between, the index has skipped these and raises
//! its floor (the oldest epoch that it can serve) instead of refusing the epoch (`parent`).

use std::collections::BTreeMap;

use proto::model::bucket::BucketInfo;
use proto::model::catalog::Catalog;
use proto::model::cut::{Cut, EpochMark};
use proto::model::history::FailoverLogs;
use proto::model::ids::{Epoch, LocalIndexId, NodeId, SliceNo};
use proto::model::index::IndexInfo;
use proto::model::rollback::DeadEpochs;
use proto::plant::{self, Plant};
use proto::{Error, ErrorCode, Result};

/// Returns true if a catalog no longer places a generation of an index on a node, because it was
/// dropped or has moved away. A generation that the catalog does not contain yet is not such a
/// case.
pub fn is_placed_elsewhere_or_gone(catalog: &Catalog, id: LocalIndexId, node: NodeId) -> bool {
    match catalog.local_index(id) {
        Some(index) => !index.is_fed_any(node),
        None => catalog.is_generation_dropped(id),
    }
}

/// Returns true if the catalog is older than the revision `revision` of a generation. For a
/// generation that is not listed, the revision of the index's record decides: it changes when a
/// generation is dropped.
pub fn is_older(catalog: &Catalog, id: LocalIndexId, revision: u64) -> bool {
    let record = catalog.local_index(id).or_else(|| catalog.indexes.get(&id.index));
    record.is_some_and(|index| index.revision < revision)
}

/// Returns the first range of dead epochs of a bucket that contains any of `epochs`; `None` if
/// all of them are alive.
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

/// Returns true if an index can be kept in a rollback. `newest` is the index's newest epoch, and
/// `point` the epoch to which its bucket is rolled back. Without `point` the bucket itself need
/// not be rolled back, and the index is kept only if its newest epoch is not dead.
pub fn can_keep_index(
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

/// Returns true if the readable indexes of a bucket are at an unknown epoch, because the node has
/// no record of the bucket's applied epoch.
pub fn has_unknown_epoch(knows_epoch: bool, readable: usize) -> bool {
    !knows_epoch && readable > 0
}

/// Checks that an epoch belongs to the stream's history and follows the applied epoch. If it does
/// not follow because of a rollback that the catalog does not list yet, the error is retryable.
/// Any parent at or above the applied epoch is accepted. Such a parent may descend from another
/// epoch, but then either the histories differ, which the first check finds, or the mutations in
/// between are identical.
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

/// Returns true if a build cannot use a snapshot at this cut. The snapshot belongs to a lost
/// history, or it ends before `joined`, the cut from which the stream carries the build's
/// mutations. It ends too early if the source has lost mutations meanwhile.
pub fn is_snapshot_unusable(history: &FailoverLogs, snapshot: &Cut, joined: &Cut) -> bool {
    let fits = history.includes_cut(snapshot) && snapshot.reaches(joined);
    !fits && !plant::is(Plant::LostSnapshotKept)
}

/// Returns true if the cut `applied` of an epoch covers a snapshot. Both are compared in the
/// stream's history, so an epoch that a rollback is about to remove covers nothing.
pub fn covers(history: Option<&FailoverLogs>, applied: &Cut, snapshot: &Cut) -> bool {
    history.is_some_and(|logs| logs.includes_cut(applied)) && applied.reaches(snapshot)
}

/// Returns the slices of an index whose mutations the stream carries for a node, each with the
/// cut from which it does: the known one in `before`, or else `at`.
pub fn streamed_since(
    index: &IndexInfo,
    node: NodeId,
    mut before: BTreeMap<SliceNo, Cut>,
    at: &Cut,
) -> BTreeMap<SliceNo, Cut> {
    let slices = (0..index.topology.placement.len() as u16).map(SliceNo);
    slices
        .filter(|slice| index.is_fed(node, *slice))
        .map(|slice| (slice, before.remove(&slice).unwrap_or_else(|| at.clone())))
        .collect()
}

/// Adapts a build to a new stream that begins at the cut `at`. The cut `joined` of the build
/// becomes, in each vbucket, the earlier of the two positions.
pub fn lower_join_cut(joined: &mut Cut, at: &Cut) {
    for (vbucket, position) in at.iter() {
        if position.seqno < joined.get(vbucket).seqno {
            joined.set(vbucket, position);
        }
    }
}

#[cfg(test)]
mod tests {
    use proto::model::cut::Position;
    use proto::model::ids::{BucketId, Generation, IndexId, Seqno, Vbuuid};
    use proto::model::index::IndexSpec;

    use super::*;

    fn cut(positions: [(u64, u64); 2]) -> Cut {
        let at = |(vbuuid, seqno)| Position { vbuuid: Vbuuid(vbuuid), seqno: Seqno(seqno) };
        Cut::from_positions(positions.map(at).to_vec())
    }

    /// Returns a history in which vbucket 0 continues on branch 8 after seqno 4, and has lost the
    /// later mutations of its first branch.
    fn history() -> FailoverLogs {
        FailoverLogs::new(vec![vec![(Vbuuid(8), 4), (Vbuuid(7), 0)], vec![(Vbuuid(7), 0)]])
    }

    fn mark(epoch: u64, parent: u64, cut: Cut) -> EpochMark {
        EpochMark {
            bucket: BucketId(1),
            epoch: Epoch(epoch),
            parent: Epoch(parent),
            cut: cut.into(),
            horizon: Epoch(1),
            points: std::sync::Arc::default(),
        }
    }

    #[test]
    fn a_generation_is_gone_when_replaced_or_moved() {
        let (here, elsewhere) = (NodeId(1), NodeId(2));
        let info = IndexInfo {
            generation: Generation(4),
            ..IndexInfo::new(IndexId(7), BucketId(1), IndexSpec::new("i", "b"), vec![vec![here]])
        };
        let mut catalog = Catalog { newest_index: IndexId(7), ..Catalog::default() };
        catalog.indexes.insert(info.id, info.into());
        let past = |index, generation, node| {
            let (index, generation) = (IndexId(index), Generation(generation));
            is_placed_elsewhere_or_gone(&catalog, LocalIndexId { index, generation }, node)
        };
        assert!(!past(7, 4, here) && past(7, 4, elsewhere));
        assert!(past(7, 3, here), "the catalog has a newer generation");
        assert!(!past(7, 5, here), "the catalog is older");
        assert!(past(6, 4, here) && !past(8, 4, here), "dropped, or not known yet");
        let dropped = Catalog { newest_index: IndexId(7), ..Catalog::default() };
        let (index, generation) = (IndexId(7), Generation(4));
        assert!(
            is_placed_elsewhere_or_gone(&dropped, LocalIndexId { index, generation }, here),
            "the newest was dropped"
        );
    }

    #[test]
    fn an_epoch_follows_if_it_is_in_the_history_and_its_parent_is_not_below_the_applied_one() {
        let follows = |mark: &EpochMark, applied| {
            check_follows(mark, Some(&history()), Epoch(applied)).map_err(|error| error.code)
        };
        let of_history = cut([(8, 6), (7, 9)]);
        assert_eq!(follows(&mark(9, 8, of_history.clone()), 8), Ok(()));
        assert_eq!(follows(&mark(9, 8, of_history.clone()), 5), Ok(()), "some were skipped");
        let back = mark(9, 4, of_history);
        assert_eq!(follows(&back, 8), Err(ErrorCode::Unavailable), "go back first");
        let lost = mark(9, 8, cut([(7, 6), (7, 9)]));
        assert_eq!(follows(&lost, 8), Err(ErrorCode::DropData));
    }

    #[test]
    fn an_epoch_of_a_lost_history_covers_no_snapshot() {
        let snapshot = cut([(7, 4), (7, 9)]);
        let covers = |applied| covers(Some(&history()), &cut(applied), &snapshot);
        assert!(covers([(8, 5), (7, 9)]));
        assert!(!covers([(7, 5), (7, 9)]), "it has what is lost");
        assert!(!covers([(8, 5), (7, 8)]));
    }

    #[test]
    fn a_snapshot_from_before_the_join_is_unusable() {
        let snapshot = cut([(7, 4), (7, 9)]);
        let mut joined = cut([(7, 6), (7, 9)]);
        assert!(is_snapshot_unusable(&history(), &snapshot, &joined), "5 and 6 were never brought");
        lower_join_cut(&mut joined, &cut([(7, 3), (7, 9)]));
        assert!(!is_snapshot_unusable(&history(), &snapshot, &joined), "now they would be");
        assert!(
            is_snapshot_unusable(&history(), &cut([(7, 6), (7, 9)]), &joined),
            "of a lost history"
        );
    }
}
