//! The task that follows the catalog: makes each new catalog the router's current one, and follows
//! the applied epochs of each indexer in it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use futures::StreamExt;
use proto::Result;
use proto::client::CatalogSink;
use proto::env::Task;
use proto::model::catalog::Catalog;
use proto::model::ids::NodeId;
use proto::model::node::{NodeInfo, Role};

use crate::context::RouterContext;
use crate::offline::{CatalogTakeOver, RouterData};

/// The state of following the catalog, with a task for each indexer.
pub(crate) struct CatalogWatch {
    context: RouterContext,
    indexers: BTreeMap<NodeId, (Arc<NodeInfo>, Task)>,
    take_over: CatalogTakeOver,
}

impl CatalogWatch {
    pub fn new(context: RouterContext) -> Self {
        Self { context, indexers: BTreeMap::new(), take_over: CatalogTakeOver::default() }
    }

    /// Uses the catalog that an earlier process has stored on disk, if there is one, until a
    /// coordinator sends one.
    pub fn use_stored_catalog(&mut self, data: &RouterData) {
        if let Some(catalog) = CatalogTakeOver::restore_stored(&self.context, data) {
            self.use_catalog(catalog);
            self.notify_changed();
        }
    }

    /// Makes a catalog the router's current one.
    fn use_catalog(&mut self, catalog: Arc<Catalog>) {
        self.watch_indexers(&catalog);
        self.context.topologies.take_catalog(&catalog);
        self.context.views.take_catalog(&catalog);
        let is_known = |node| catalog.nodes.contains_key(&node);
        self.context.hedging.retain(is_known);
        self.context.busy.retain(is_known);
        self.context.catalog.store(catalog);
    }

    /// Notifies the waiting tasks of a new catalog.
    fn notify_changed(&self) {
        self.context.catalog_changed.send_modify(|count| *count += 1);
    }

    /// Starts a task for each indexer of a catalog that follows its applied epochs, and ends the
    /// tasks of other indexers.
    fn watch_indexers(&mut self, catalog: &Catalog) {
        let (context, indexers) = (&self.context, &mut self.indexers);
        indexers.retain(|id, (node, _)| catalog.nodes.get(id) == Some(node));
        for node in catalog.nodes.values().filter(|node| node.role == Role::Indexer) {
            indexers.entry(node.id).or_insert_with(|| {
                let (own, indexer) = (context.clone(), Arc::clone(node));
                // Each watch begins with all that the indexer has applied.
                let follow = move || follow_applied(own.clone(), Arc::clone(&indexer));
                (Arc::clone(node), context.env.spawn_restarted("applied", follow))
            });
        }
    }
}

impl CatalogSink for CatalogWatch {
    async fn take_catalog(&mut self, catalog: Arc<Catalog>) -> Result<()> {
        self.take_over.check(&self.context, &catalog).await?;
        self.use_catalog(catalog);
        self.take_over.note_replaced(&self.context);
        self.notify_changed();
        Ok(())
    }
}

/// Receives the reports of an indexer about its applied epochs, and connects again after each
/// failure.
async fn follow_applied(context: RouterContext, node: Arc<NodeInfo>) -> Infallible {
    loop {
        // The handle is dropped at once: in one process it would keep a stopped indexer alive.
        let watch = context.directory.indexer(&node).watch_applied().await;
        if let Ok(mut reports) = watch {
            while let Some(Ok(report)) = reports.next().await {
                context.applied.report(report);
            }
        }
        context.applied.remove_report(node.id);
        tokio::time::sleep(context.config.retry).await;
    }
}
