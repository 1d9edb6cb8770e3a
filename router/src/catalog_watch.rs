//! Keeps the router's view of the cluster current: the catalog, and the applied epochs of each indexer.

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
use crate::offline::{RouterData, TakeOver};

/// The state that follows the catalog, with a task for each indexer in it.
pub(crate) struct CatalogWatch {
    context: RouterContext,
    indexers: BTreeMap<NodeId, (Arc<NodeInfo>, Task)>,
    take_over: TakeOver,
}

impl CatalogWatch {
    pub fn new(context: RouterContext) -> Self {
        Self { context, indexers: BTreeMap::new(), take_over: TakeOver::default() }
    }

    /// Installs the catalog that an earlier process has stored on disk, if there is one.
    pub fn begin_with(&mut self, data: &RouterData) {
        if let Some(catalog) = TakeOver::begin(&self.context, data) {
            self.install(catalog);
            self.tell();
        }
    }

    fn install(&mut self, catalog: Arc<Catalog>) {
        self.watch_indexers(&catalog);
        self.context.topologies.take_catalog(&catalog);
        self.context.views.take_catalog(&catalog);
        let is_known = |node| catalog.nodes.contains_key(&node);
        self.context.hedging.retain(is_known);
        self.context.busy.retain(is_known);
        self.context.catalog.store(catalog);
    }

    fn tell(&self) {
        self.context.catalog_changed.send_modify(|count| *count += 1);
    }

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
        self.install(catalog);
        self.take_over.end(&self.context);
        self.tell();
        Ok(())
    }
}

async fn follow_applied(context: RouterContext, node: Arc<NodeInfo>) -> Infallible {
    loop {
        // The handle is dropped at once: in one process it would keep a stopped indexer alive.
        let watch = context.directory.indexer(&node).watch_applied().await;
        if let Ok(mut reports) = watch {
            while let Some(Ok(report)) = reports.next().await {
                context.applied.report(report);
            }
        }
        context.applied.forget(node.id);
        tokio::time::sleep(context.config.retry).await;
    }
}
