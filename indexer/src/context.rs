//! The context of a node: the services and the state that its followers, moves and service share.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use proto::client::NodeIdentity;
use proto::client::source::source_of;
use proto::env::Env;
use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, LocalIndexId};
use proto::rpc::api::{Directory, ProjectorApi};
use proto::{Error, Result};
use storage::StorageEngine;
use tokio::sync::watch;

use crate::build_pace::BuildPace;
use crate::config::Config;

/// The services and the state that the tasks of a node share; cheap to clone.
#[derive(Clone)]
pub struct NodeContext {
    /// Settings.
    pub config: Config,
    /// The identity in the data directory: the node and its cluster.
    pub identity: Arc<NodeIdentity>,
    /// The clock, files, random numbers and tasks of the process.
    pub env: Env,
    /// The clients of the other services.
    pub directory: Arc<dyn Directory>,
    /// The storage engine.
    pub store: Arc<StorageEngine>,
    /// A counter of the catalogs that this node has received; watchers wake at each.
    pub catalog_taken: watch::Sender<u64>,
    /// The newest catalog.
    pub catalog: Arc<ArcSwap<Catalog>>,
    /// A counter of the applied epochs and of changes of the set of slices; watchers wake at
    /// each.
    pub applied: watch::Sender<u64>,
    /// A counter of changes of the set of slices, or of the readability of a slice; watchers wake
    /// at each.
    pub slices: watch::Sender<u64>,
    /// The number of generations whose slices this process has made in place from an earlier
    /// generation.
    pub slices_split: Arc<AtomicU64>,
    /// The number of snapshots of the source that builds of this process have begun to read.
    pub backfills: Arc<AtomicU64>,
    /// The progress of each build from the source.
    pub builds: Arc<Mutex<BTreeMap<LocalIndexId, BuildPace>>>,
}

impl NodeContext {
    /// Returns a client of the projector that owns a bucket, according to the present catalog.
    pub fn projector_of(&self, bucket: BucketId) -> Result<Arc<dyn ProjectorApi>> {
        let catalog = self.catalog.load();
        let unknown = || Error::unavailable(format!("bucket {bucket} is not known here"));
        let info = catalog.buckets.get(&bucket).ok_or_else(unknown)?;
        source_of(&*self.directory, info, |node| catalog.nodes.get(&node).cloned())
    }

    /// Signals to watchers that slices of an index were added, became readable or were dropped.
    pub fn slices_changed(&self) {
        self.slices.send_modify(|count| *count += 1);
        self.applied.send_modify(|count| *count += 1);
    }
}
