//! Remarks about slices that remain on a node that is being drained. `DRAIN NODE` does not wait
//! for moves, so the remarks tell why there are none.

use std::collections::BTreeSet;

use proto::model::catalog::Catalog;
use proto::model::ids::NodeId;
use proto::model::index::{IndexInfo, IndexState};
use proto::model::node::Role;
use proto::rpc::api::{CoordinatorStatus, SILENT_MS_MAX};

use super::remarks::Remarks;
use crate::access::Access;

/// The maximum number of indexes that a remark names.
const NAMED_MAX: usize = 3;

/// Sends a remark about the slices of a draining node for which no move is planned, with the
/// reason.
pub(super) async fn send_staying_remark(access: &Access, node: NodeId, remarks: &Remarks) {
    if indexes_without_moves(&access.catalog(), node).next().is_none() {
        return;
    }
    let status = access.status().await.ok();
    // The moves may have been planned meanwhile.
    if let Some((what, hint)) = staying_remark(&access.catalog(), status.as_ref(), node) {
        remarks.send(what, Some(hint));
    }
}

/// Returns the indexes with slices on a node for which no move is planned. Serving generations
/// and first builds come before other generations.
fn indexes_without_moves(catalog: &Catalog, node: NodeId) -> impl Iterator<Item = &IndexInfo> {
    let stays = move |index: &&IndexInfo| !index.moves_all_from(node);
    catalog.local_indexes().map(|index| &**index).filter(stays)
}

/// Returns the message and the hint of the remark; `None` if moves are planned for all slices.
fn staying_remark(
    catalog: &Catalog,
    status: Option<&CoordinatorStatus>,
    node: NodeId,
) -> Option<(String, &'static str)> {
    let indexes: Vec<&IndexInfo> = indexes_without_moves(catalog, node).collect();
    let first = indexes.first()?;
    let all: BTreeSet<&str> = indexes.iter().map(|index| &*index.spec.name).collect();
    let mut names: Vec<String> =
        all.iter().take(NAMED_MAX).map(|name| format!("\"{name}\"")).collect();
    if all.len() > NAMED_MAX {
        names.push(format!("{} more", all.len() - NAMED_MAX));
    }
    let (why, hint) = reason(catalog, status, node, first, &indexes);
    let names = names.join(", ");
    Some((format!("slices of {names} stay on node {node} for now: {why}"), hint))
}

/// Returns the reason why slices stay on a node, and a hint.
fn reason(
    catalog: &Catalog,
    status: Option<&CoordinatorStatus>,
    node: NodeId,
    first: &IndexInfo,
    indexes: &[&IndexInfo],
) -> (String, &'static str) {
    const BY_ITSELF: &str =
        "they move or end by themselves then; SHOW NODES counts the slices that are left";
    const ADD: &str = "start another indexer, or CANCEL DRAIN NODE; the slices are moved by themselves once a node can take them";
    let is_built = |index: &&IndexInfo| index.state != IndexState::Maintenance;
    if indexes.iter().all(is_built) {
        let name = &first.spec.name;
        let what = match first.state {
            IndexState::Retired => {
                format!("an older generation of index \"{name}\" is kept for its readers")
            }
            state => {
                format!("index \"{name}\" is {}, and slices move while it is online", state.name())
            }
        };
        return (what, BY_ITSELF);
    }
    let nodes = catalog.nodes.values().filter(|info| info.role == Role::Indexer);
    let others: BTreeSet<NodeId> = nodes.map(|info| info.id).filter(|id| *id != node).collect();
    if others.is_empty() {
        return ("the cluster has no other indexer".to_owned(), ADD);
    }
    let is_silent = |id: &NodeId| {
        let report = status.and_then(|status| status.nodes.iter().find(|one| one.node == *id));
        report.is_some_and(|report| report.silent_ms >= SILENT_MS_MAX)
    };
    let taking: BTreeSet<NodeId> = others
        .iter()
        .copied()
        .filter(|id| !catalog.draining.contains(id) && !is_silent(id))
        .collect();
    if taking.is_empty() {
        return ("each other indexer is silent or is drained itself".to_owned(), ADD);
    }
    let has_copies = |index: &&IndexInfo| {
        let slices = index.topology.slices_on(node);
        slices.into_iter().any(|slice| taking.iter().all(|id| index.topology.hosts(*id, slice)))
    };
    if let Some(index) = indexes.iter().find(|index| has_copies(index)) {
        let what = format!(
            "each other indexer that can take slices has a copy of those of \"{}\" already",
            index.spec.name
        );
        return (
            what,
            "start another indexer, or ALTER INDEX … SET (replicas = n) to fewer copies",
        );
    }
    ("the leading coordinator has not heard of all indexers yet, or other moves of these slices go on".to_owned(), BY_ITSELF)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proto::model::ids::{BucketId, Epoch, IndexId, MoveId, SliceNo};
    use proto::model::index::IndexSpec;
    use proto::model::moves::{MoveStage, SliceMove};
    use proto::model::node::NodeInfo;

    use super::*;

    /// Returns a catalog with two indexers, and an index in this state whose two slices are on the
    /// first indexer.
    fn catalog(nodes: &[u64], state: IndexState) -> Catalog {
        let mut catalog = Catalog::default();
        for id in nodes {
            let (address, zone) = (format!("h:{id}"), String::new());
            let info = NodeInfo { id: NodeId(*id), role: Role::Indexer, address, zone };
            catalog.nodes.insert(NodeId(*id), Arc::new(info));
        }
        let placement = vec![vec![NodeId(1)], vec![NodeId(1)]];
        let mut info = IndexInfo::new(IndexId(3), BucketId(1), IndexSpec::new("i", "b"), placement);
        info.state = state;
        catalog.indexes.insert(IndexId(3), Arc::new(info));
        catalog.draining.insert(NodeId(1));
        catalog
    }

    #[test]
    fn the_reason_why_slices_stay_is_named() {
        let why =
            |catalog: &Catalog| staying_remark(catalog, None, NodeId(1)).map(|(what, _)| what);
        let online = IndexState::Maintenance;
        let says = |catalog: &Catalog, word: &str| {
            let what = why(catalog).expect("a remark");
            assert!(what.starts_with("slices of \"i\" stay on node 1 for now: "), "{what}");
            assert!(what.contains(word), "{what}");
        };
        says(&catalog(&[1], online), "no other indexer");
        says(&catalog(&[1, 2], IndexState::Backfill), "is backfill");
        let mut older = catalog(&[1, 2], IndexState::Retired);
        let retired = older.indexes.remove(&IndexId(3)).expect("the index");
        older.generations.insert(retired.local_id(), retired);
        says(&older, "an older generation of index \"i\"");
        let mut both = catalog(&[1, 2], online);
        says(&both, "has not heard of all indexers");
        both.draining.insert(NodeId(2));
        says(&both, "silent or is drained itself");
        let mut copied = catalog(&[1, 2], online);
        let index = Arc::make_mut(copied.indexes.get_mut(&IndexId(3)).expect("the index"));
        Arc::make_mut(&mut index.topology).placement[1].push(NodeId(2));
        says(&copied, "has a copy of those of \"i\" already");
        let mut moved = catalog(&[1, 2], online);
        let index = Arc::make_mut(moved.indexes.get_mut(&IndexId(3)).expect("the index"));
        index.moves = [0, 1].map(|slice| planned(SliceNo(slice))).into();
        assert_eq!(why(&moved), None, "all slices have moves");
    }

    fn planned(slice: SliceNo) -> SliceMove {
        let (from, to) = (Some(NodeId(1)), Some(NodeId(2)));
        let id = MoveId(u64::from(slice.0));
        SliceMove { id, slice, from, to, stage: MoveStage::Start, epoch: Epoch(1) }
    }
}
