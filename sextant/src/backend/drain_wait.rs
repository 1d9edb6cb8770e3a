//! Functions that wait during the drain of a node: until the moves of its slices are planned, and
//! until the node has no slices.

use std::sync::Arc;
use std::time::Duration;

use proto::model::catalog::Catalog;
use proto::model::ids::NodeId;
use proto::model::index::{IndexInfo, IndexState};
use proto::model::node::Role;
use proto::{Error, ErrorCode, Result};
use router::Router;
use tokio::time::timeout;

/// The time limit within which `DRAIN NODE` expects the leading coordinator to plan the moves.
/// Some slices may have no possible target.
const PLANNED_WITHIN: Duration = Duration::from_secs(2);

/// Waits until all slices of serving indexes on a draining node have planned moves, except slices
/// without a possible target. Waits for at most [`PLANNED_WITHIN`].
pub(super) async fn wait_planned(router: &Router, node: NodeId) {
    let serves = |index: &&Arc<IndexInfo>| index.state == IndexState::Maintenance;
    let is_planned = |catalog: &Catalog| {
        catalog.indexes.values().filter(serves).all(|index| index.moves_all_from(node))
    };
    // The statement reports to the user why slices stay.
    let _ = timeout(PLANNED_WITHIN, router.wait_catalog(is_planned)).await;
}

/// Waits until no slice is left on a draining node. Returns an error if the node is an indexer
/// that is not being drained, or whose drain is cancelled.
pub(super) async fn wait_drained(router: &Router, node: NodeId) -> Result<()> {
    let is_decided = |catalog: &Catalog| wait_result(catalog, node).is_some();
    let catalog = router.wait_catalog(is_decided).await;
    wait_result(&catalog, node).unwrap_or(Ok(()))
}

/// Returns the result of the wait according to a catalog; `None` while the node still has slices.
fn wait_result(catalog: &Catalog, node: NodeId) -> Option<Result<()>> {
    let is_indexer = catalog.nodes.get(&node).is_some_and(|info| info.role == Role::Indexer);
    if is_indexer && !catalog.draining.contains(&node) {
        let what = format!("node {node} is not being drained");
        let hint = format!("DRAIN NODE '{node}' moves its slices away");
        return Some(Err(Error::new(ErrorCode::WrongState, what).with_hint(hint)));
    }
    (catalog.slices_on(node) == 0).then_some(Ok(()))
}

#[cfg(test)]
mod tests {
    use proto::model::ids::{BucketId, IndexId};
    use proto::model::index::IndexSpec;
    use proto::model::node::NodeInfo;

    use super::*;

    #[test]
    fn a_drain_wait_ends_with_the_last_slice() {
        let (id, node, spec) = (IndexId(3), NodeId(9), IndexSpec::new("i", "b"));
        let mut catalog = Catalog::default();
        assert_eq!(wait_result(&catalog, node), Some(Ok(())), "no indexer");
        let (address, zone) = ("a:1".to_owned(), String::new());
        let info = NodeInfo { id: node, role: Role::Indexer, address, zone };
        catalog.nodes.insert(node, Arc::new(info));
        let info = IndexInfo::new(id, BucketId(1), spec, vec![vec![node], vec![NodeId(8)]]);
        catalog.indexes.insert(id, Arc::new(info));
        let refused = wait_result(&catalog, node).expect("decided").expect_err("refused");
        assert_eq!(refused.code.sqlstate(), "55000");
        catalog.draining.insert(node);
        assert_eq!((wait_result(&catalog, node), catalog.slices_on(node)), (None, 1));
        catalog.indexes.clear();
        assert_eq!(wait_result(&catalog, node), Some(Ok(())));
        catalog.draining.clear();
        assert!(
            wait_result(&catalog, node).is_some_and(|decided| decided.is_err()),
            "nor is an empty one"
        );
    }
}
