//! The context of a node that its followers, moves and service share.

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
    /// Incremented at each received catalog.
    pub catalog_taken: watch::Sender<u64>,
    /// The newest catalog.
    pub catalog: Arc<ArcSwap<Catalog>>,
    /// Incremented at each applied epoch and each change of the set of slices.
    pub applied: watch::Sender<u64>,
    /// Incremented when the set of slices, or the readability of a slice, changes.
    pub slices: watch::Sender<u64>,
    /// The number of generations whose slices this process has made in place.
    pub slices_split: Arc<AtomicU64>,
    /// The number of backfill snapshots that builds of this process have begun to read.
    pub backfills: Arc<AtomicU64>,
    /// The progress of each build from the source.
    pub builds: Arc<Mutex<BTreeMap<LocalIndexId, BuildPace>>>,
}

impl NodeContext {
    /// Returns a client of the projector that owns a bucket, according to the present catalog.
    pub fn source(&self, bucket: BucketId) -> Result<Arc<dyn ProjectorApi>> {
        let catalog = self.catalog.load();
        let unknown = || Error::unavailable(format!("bucket {bucket} is not known here"));
        let info = catalog.buckets.get(&bucket).ok_or_else(unknown)?;
        source_of(&*self.directory, info, |node| catalog.nodes.get(&node).cloned())
    }

    /// Signals that an index was begun, built or dropped.
    pub fn slices_changed(&self) {
        self.slices.send_modify(|count| *count += 1);
        self.applied.send_modify(|count| *count += 1);
    }
}
