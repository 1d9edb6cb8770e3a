//! SHOW MOVES: the slice moves under way, and the last ones that have ended.

use proto::expr::ColumnType;
use proto::model::catalog::Catalog;
use proto::model::ids::{IndexId, LocalIndexId, NodeId};
use proto::model::moves::{MovePhase, MoveProgress, MoveStage, SliceMove};
use proto::rpc::api::CoordinatorStatus;

use super::columns::named;
use crate::rows::value::Datum;
use crate::sql::plan::ColumnInfo;

use ColumnType::{Int4, Int8, Text};

/// The columns.
pub(super) fn columns() -> Vec<ColumnInfo> {
    named(&[
        ("move", Int8),
        ("index", Text),
        ("slice", Int4),
        ("from", Int8),
        ("to", Int8),
        ("stage", Text),
        ("bytes", Int8),
        ("percent", Int4),
        ("seconds_left", Int8),
        ("note", Text),
    ])
}

/// The moves under way by index, then the ended ones, oldest first. Without the coordinator's status the progress of a
/// copy is unknown.
pub(in crate::pg) fn moves(
    catalog: &Catalog,
    status: Option<&CoordinatorStatus>,
) -> Vec<Vec<Datum>> {
    let mut rows = Vec::new();
    for index in catalog.indexes.values() {
        for mv in &index.moves {
            let progress = progress(status, index.local_id(), mv);
            rows.push(row(catalog, index.id, mv, mv.stage.name(), progress));
        }
    }
    for ended in &catalog.ended_moves {
        let stage = if ended.undone.is_some() { "undone" } else { "ended" };
        let mut row = row(catalog, ended.index, &ended.was, stage, None);
        if let (Some(why), Some(note)) = (&ended.undone, row.last_mut()) {
            *note = Datum::text(format!("undone in stage {}: {why}", ended.was.stage.name()));
        }
        rows.push(row);
    }
    rows
}

fn progress<'a>(
    status: Option<&'a CoordinatorStatus>,
    index: LocalIndexId,
    mv: &SliceMove,
) -> Option<&'a MoveProgress> {
    let target = status?.nodes.iter().find(|node| Some(node.node) == mv.to)?;
    target.moves.iter().find(|progress| (progress.index, progress.id) == (index, mv.id))
}

fn row(
    catalog: &Catalog,
    index: IndexId,
    mv: &SliceMove,
    stage: &str,
    progress: Option<&MoveProgress>,
) -> Vec<Datum> {
    let info = catalog.indexes.get(&index);
    let name = info.map_or_else(|| format!("{index} (dropped)"), |info| info.spec.name.clone());
    let node = |node: Option<NodeId>| node.map_or(Datum::NULL, |node| Datum::int(node.0 as i64));
    let int = |value: Option<u64>| value.map_or(Datum::NULL, |value| Datum::int(value as i64));
    let note = progress.and_then(|progress| progress.trouble.clone());
    vec![
        Datum::int(mv.id.0 as i64),
        Datum::text(name),
        Datum::int(mv.slice.0.into()),
        node(mv.from),
        node(mv.to),
        Datum::text(stage),
        int(progress.map(|progress| progress.bytes)),
        int(percent(mv, progress)),
        int(progress.and_then(seconds_left)),
        note.map_or(Datum::NULL, Datum::text),
    ]
}

/// The percentage of a move: of its copy, while the copy is under way.
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
    use proto::model::ids::{Epoch, MoveId, SliceNo};

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
