//! The moves of slices in the status: those in progress, and the last ended ones.

use proto::model::catalog::Catalog;
use proto::model::ids::{IndexId, LocalIndexId};
use proto::model::moves::{MovePhase, MoveProgress, MoveStage, SliceMove};
use proto::rpc::api::CoordinatorStatus;

use super::cluster_status::MoveStatus;

/// Returns the moves in progress by index, then the ended ones, oldest first. Without the
/// coordinator's status, the progress of the moves is unknown.
pub(super) fn moves(catalog: &Catalog, reports: Option<&CoordinatorStatus>) -> Vec<MoveStatus> {
    let mut moves = Vec::new();
    for index in catalog.local_indexes() {
        for mv in &index.moves {
            moves.push(status(catalog, index.id, mv, progress(reports, index.local_id(), mv)));
        }
    }
    for ended in &catalog.ended_moves {
        let status = status(catalog, ended.index, &ended.was, None);
        moves.push(match &ended.undone {
            None => MoveStatus { stage: "ended", ..status },
            Some(why) => {
                let note = format!("undone in stage {}: {why}", status.stage);
                MoveStatus { stage: "undone", note: Some(note), ..status }
            }
        });
    }
    moves
}

/// Returns the progress of a move, as its target has reported it.
fn progress<'a>(
    reports: Option<&'a CoordinatorStatus>,
    index: LocalIndexId,
    mv: &SliceMove,
) -> Option<&'a MoveProgress> {
    let target = reports?.nodes.iter().find(|node| Some(node.node) == mv.to)?;
    target.moves.iter().find(|progress| (progress.index, progress.id) == (index, mv.id))
}

/// Returns the status of a move in progress.
fn status(
    catalog: &Catalog,
    index: IndexId,
    mv: &SliceMove,
    progress: Option<&MoveProgress>,
) -> MoveStatus {
    let info = catalog.indexes.get(&index);
    MoveStatus {
        id: mv.id,
        index: info.map_or_else(|| format!("{index} (dropped)"), |info| info.spec.name.clone()),
        slice: mv.slice,
        from: mv.from,
        to: mv.to,
        stage: mv.stage.name(),
        bytes: progress.map(|progress| progress.bytes),
        percent: percent(mv, progress),
        seconds_left: progress.and_then(seconds_left),
        note: progress.and_then(|progress| progress.trouble.clone()),
    }
}

/// Returns the percentage of a move. While data is copied, it is the percentage of the copied
/// data. Returns `None` if it is unknown.
fn percent(mv: &SliceMove, progress: Option<&MoveProgress>) -> Option<u64> {
    match (mv.stage, progress) {
        (MoveStage::Done, _) => Some(100),
        (MoveStage::Start, _) => Some(0),
        (_, Some(progress)) if progress.phase > MovePhase::Copying => Some(99),
        (_, Some(progress)) => {
            Some((progress.bytes * 99).checked_div(progress.bytes_total).unwrap_or(0).min(99))
        }
        (_, None) => None,
    }
}

/// Returns the estimated seconds until all data is copied.
fn seconds_left(progress: &MoveProgress) -> Option<u64> {
    let left = progress.bytes_total.saturating_sub(progress.bytes);
    if progress.phase > MovePhase::Copying {
        Some(0)
    } else {
        left.checked_div(progress.bytes_per_s)
    }
}

#[cfg(test)]
mod tests {
    use proto::model::ids::{Epoch, MoveId, NodeId, SliceNo};

    use super::*;

    #[test]
    fn a_move_is_not_shown_as_finished_before_the_topology_has_changed() {
        let mv = |stage| SliceMove {
            id: MoveId(1),
            slice: SliceNo(0),
            from: Some(NodeId(1)),
            to: Some(NodeId(2)),
            stage,
            epoch: Epoch(1),
        };
        let at = |phase, bytes| MoveProgress {
            index: LocalIndexId::default(),
            id: MoveId(1),
            phase,
            bytes,
            bytes_total: 1_000,
            bytes_per_s: 100,
            trouble: None,
        };
        let half = at(MovePhase::Copying, 500);
        assert_eq!(percent(&mv(MoveStage::Pending), Some(&half)), Some(49));
        assert_eq!(seconds_left(&half), Some(5));
        let copied = at(MovePhase::Copied, 1_000);
        assert_eq!(percent(&mv(MoveStage::Catchup), Some(&copied)), Some(99));
        assert_eq!(percent(&mv(MoveStage::Done), None), Some(100));
        let nothing_known = MoveProgress { bytes: 0, bytes_total: 0, bytes_per_s: 0, ..half };
        assert_eq!(percent(&mv(MoveStage::Pending), Some(&nothing_known)), Some(0));
        assert_eq!(seconds_left(&nothing_known), None);
    }
}
