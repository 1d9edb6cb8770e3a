//! A projector over a store in memory.

use std::sync::Arc;
use std::time::Duration;

use projector::testing::{DocumentStore, MemoryStore};
use projector::{Config, Projector, Service};
use proto::Result;
use proto::env::Env;
use proto::model::cut::Cut;
use proto::model::ids::*;
use proto::model::index::*;
use proto::model::topology::*;
use proto::rpc::api::CheckedWrites;
use proto::rpc::api::*;
use proto::rpc::mutation::*;
use proto::rpc::routing::*;
use proto::value::DOCUMENT_BYTES_MAX;
use tokio::time::{sleep, timeout};

use super::{BUCKET, Follower, PROJECTOR, Script, VBUCKETS, catalog, projector_info};

pub struct World {
    pub script: Script,
    pub store: MemoryStore,
    service: Option<Service>,
    pub config: Config,
}

/// Starts a projector with a catalog of some indexes.
pub async fn world_with(indexes: &[Arc<IndexInfo>]) -> World {
    let world = World::new(|_| {}).await;
    world.script.say(WatchMessage::Catalog(catalog(1, indexes).into()));
    world
}

impl World {
    pub async fn new(change: impl FnOnce(&mut Config)) -> Self {
        Self::of(Script::new(PROJECTOR), PROJECTOR, change).await
    }

    /// Starts another projector with the same coordinator.
    pub async fn beside(other: &Self, id: NodeId) -> Self {
        Self::beside_with(other, id, |_| ()).await
    }

    /// Starts another projector with the same coordinator and other settings.
    pub async fn beside_with(other: &Self, id: NodeId, change: impl FnOnce(&mut Config)) -> Self {
        Self::of(other.script.clone(), id, change).await
    }

    async fn of(mut script: Script, id: NodeId, change: impl FnOnce(&mut Config)) -> Self {
        script.me = id;
        let mut config = Config::new(projector_info(id));
        change(&mut config);
        let store = MemoryStore::default();
        let mut world = Self { script, store, service: None, config };
        world.start().await;
        world
    }

    /// Ends the projector as a crash does.
    pub fn stop(&mut self) {
        drop(self.service.take());
        self.script.projectors.lock().unwrap().remove(&self.config.node.id);
    }

    /// Starts the projector, over the same store if it ran before.
    pub async fn start(&mut self) {
        self.stop();
        self.store = self.store.reopened();
        let store: Arc<dyn DocumentStore> = Arc::new(self.store.clone());
        let (directory, router) = (Arc::new(self.script.clone()), Arc::new(Router));
        let service =
            Service::start(self.config.clone(), Env::real(), store, directory, router).await;
        let service = service.expect("the projector starts");
        self.script.projectors.lock().unwrap().insert(self.config.node.id, service.projector());
        self.service = Some(service);
    }

    pub fn projector(&self) -> Arc<Projector> {
        self.service.as_ref().expect("it runs").projector()
    }

    pub async fn write(&self, writes: Vec<Write>) -> Result<WriteReply> {
        let writes = CheckedWrites::new(writes, DOCUMENT_BYTES_MAX)?;
        self.projector().write(WriteRequest { bucket: BUCKET, writes }).await
    }

    pub async fn subscribe(&self, node: NodeId, from: Option<Cut>) -> Result<Follower> {
        self.subscribe_after(node, from, 0).await
    }

    /// Subscribes to a stream for a node that has the timestamps up to `last_epoch`.
    pub async fn subscribe_after(
        &self,
        node: NodeId,
        from: Option<Cut>,
        last_epoch: u64,
    ) -> Result<Follower> {
        let last_epoch = Epoch(last_epoch);
        let request = SubscribeRequest { node, bucket: BUCKET, from, last_epoch };
        let stream = self.projector().subscribe(request).await?;
        Ok(Follower { stream, at: Cut::zero(VBUCKETS), ..Follower::default() })
    }
}

/// The simplest router of mutations to slices, for tests.
pub struct Router;

impl MutationRouter for Router {
    fn route(&self, node: NodeId, index: &IndexInfo, key: Option<PartitionKey<'_>>) -> Route {
        let owned = key.map(|key| index.slice_of(key));
        match (owned, &index.spec.partition) {
            (Some(slice), _) if index.topology.hosts(node, slice) => Route::Owner(slice),
            (_, PartitionBy::DocumentId) => Route::Elsewhere,
            (_, PartitionBy::Exprs(_) | PartitionBy::Range(_)) if self.concerns(node, index) => {
                Route::EmptyState
            }
            _ => Route::Elsewhere,
        }
    }
    fn concerns(&self, node: NodeId, index: &IndexInfo) -> bool {
        !index.topology.slices_on(node).is_empty()
    }
}

/// Blocks the syncs of a store until it is dropped. It is dropped after a failed test too, since
/// the runtime waits for the blocked threads.
pub struct HeldSyncs(MemoryStore);

impl HeldSyncs {
    pub fn of(store: &MemoryStore) -> Self {
        store.hold_syncs(true);
        Self(store.clone())
    }
}

impl Drop for HeldSyncs {
    fn drop(&mut self) {
        self.0.hold_syncs(false);
    }
}

/// Polls for up to ten seconds until `look` returns a value.
pub async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let look = async {
        loop {
            match look().await {
                Some(found) => return found,
                None => sleep(Duration::from_millis(5)).await,
            }
        }
    };
    timeout(Duration::from_secs(10), look).await.unwrap_or_else(|_| panic!("not in time: {what}"))
}
