//! Applies the catalog to the node: to its followers, its slices, and the moves to it.

use std::convert::Infallible;
use std::sync::Arc;

use proto::client::{CatalogFollower, CatalogSink, Retry};
use proto::lock::lock;
use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, Epoch, SliceNo};
use proto::model::index::{IndexInfo, IndexState};
use proto::model::moves::{MoveStage, SliceMove};
use proto::plant::{self, Plant};
use proto::{ErrorCode, Result};
use storage::{SliceStore, StoredIndex};

use super::followers::{Followers, RunningFollower};
use crate::context::NodeContext;
use crate::follow::{grouping, policy, spawn_follower};
use crate::moves::IncomingMoves;

/// Watches the catalog and applies each new one to the node, in steps.
pub(super) async fn follow_catalog(
    context: NodeContext,
    incoming: IncomingMoves,
    followers: Followers,
) -> Infallible {
    let retry = Retry::constant(context.config.retry);
    let follower = CatalogFollower::new(Arc::clone(&context.directory), retry)
        .with_identity(Some(Arc::clone(&context.identity)));
    follower.run(NodeCatalog { context, incoming, followers }).await
}

/// The parts of a node that each new catalog changes.
struct NodeCatalog {
    context: NodeContext,
    incoming: IncomingMoves,
    followers: Followers,
}

impl CatalogSink for NodeCatalog {
    async fn take_catalog(&mut self, catalog: Arc<Catalog>) -> Result<()> {
        take_catalog(&self.context, &self.incoming, &self.followers, &catalog).await;
        Ok(())
    }
}

async fn take_catalog(
    context: &NodeContext,
    incoming: &IncomingMoves,
    followers: &Followers,
    catalog: &Arc<Catalog>,
) {
    context.catalog.store(Arc::clone(catalog));
    context.catalog_taken.send_modify(|count| *count += 1);
    for stored in context.store.indexes() {
        if let Err(error) = adapt_index(context, catalog, &stored).await {
            tracing::warn!(index = %stored.id(), %error, "bringing an index in step with the catalog");
        }
    }
    let node = context.config.node.id;
    for (id, _) in context.store.rebuilds() {
        if policy::is_placed_elsewhere_or_gone(catalog, id, node)
            && let Err(error) = context.store.drop_rebuild(id).await
        {
            tracing::warn!(index = %id, %error, "giving up a rebuild");
        }
    }
    let is_given = |index: &&Arc<IndexInfo>| {
        let is_copied = |m: &SliceMove| matches!(m.stage, MoveStage::Pending | MoveStage::Catchup);
        index.moves.iter().any(|m| is_copied(m) && index.topology.hosts(node, m.slice))
    };
    let given = catalog.local_indexes().filter(is_given).map(|index| index.local_id()).collect();
    context.store.protect_files_of(&given);
    incoming.take_catalog(context, catalog);
    let mut followers = lock(followers);
    let concerns = |bucket: &BucketId| {
        catalog.local_indexes().any(|index| {
            index.bucket == *bucket && index.state != IndexState::Pending && index.is_fed_any(node)
        })
    };
    followers.retain(|bucket, _| concerns(bucket) && catalog.buckets.contains_key(bucket));
    for bucket in catalog.buckets.values().filter(|bucket| concerns(&bucket.id)) {
        followers.entry(bucket.id).or_insert_with(|| {
            let (task, state) = spawn_follower(context.clone(), incoming.clone(), bucket.id);
            RunningFollower { state, _task: task }
        });
    }
}

/// Adapts an index to the catalog: drops the index, or those of its slices that the catalog no
/// longer places on this node, and regroups its columns as the definition requires.
async fn adapt_index(context: &NodeContext, catalog: &Catalog, stored: &StoredIndex) -> Result<()> {
    let (id, node) = (stored.id(), context.config.node.id);
    // This coordinator member may lag the one that reported the slices' arrival.
    if policy::is_older(catalog, id, stored.info.revision) {
        return Ok(());
    }
    let Some(index) = catalog.local_index(id) else {
        // The catalog's record of the index is at least as new and lacks this generation, so the generation was dropped or belongs to
        // another index with the same number.
        let is_other = catalog.indexes.contains_key(&id.index);
        if is_other || policy::is_placed_elsewhere_or_gone(catalog, id, node) {
            context.store.drop_index(id).await?;
            context.slices_changed();
        }
        return Ok(());
    };
    // This costs nothing if they are grouped so already.
    context.store.regroup(id, grouping(index)).await?;
    let stale = plant::is(Plant::StaleOwnerAnswers);
    let left = |(slice, _): &&(SliceNo, Epoch)| !index.may_keep(node, *slice) && !stale;
    let gone: Vec<SliceNo> = stored.slices.iter().filter(left).map(|(slice, _)| *slice).collect();
    if stored.slices.is_empty() && !index.is_fed_any(node) {
        context.store.drop_index(id).await?;
        return Ok(());
    }
    if gone.is_empty() {
        return Ok(());
    }
    if stored.floor.is_none() && gone.len() == stored.slices.len() {
        // The build has become pointless.
        context.store.drop_index(id).await?;
    } else {
        // One by one, since another slice may be arriving.
        for slice in gone {
            match context.store.drop_slice(id.slice(slice)).await {
                // The bucket's follower has dropped it already.
                Err(error) if error.code == ErrorCode::SliceMoved => {}
                dropped => dropped?,
            }
        }
    }
    context.slices_changed();
    Ok(())
}
