//! The parts of a node that its followers, moves and service share.

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

/// The parts of a node that its tasks share; cheap to clone.
#[derive(Clone)]
pub struct NodeContext {
    /// Settings.
    pub config: Config,
    /// The owner of the data directory, and its cluster.
    pub identity: Arc<NodeIdentity>,
    /// The seams.
    pub env: Env,
    /// The other services.
    pub directory: Arc<dyn Directory>,
    /// The storage engine.
    pub store: Arc<StorageEngine>,
    /// Counts the catalogs received.
    pub catalog_taken: watch::Sender<u64>,
    /// The newest catalog.
    pub catalog: Arc<ArcSwap<Catalog>>,
    /// Counts applied epochs and changes of the set of slices.
    pub applied: watch::Sender<u64>,
    /// Counts changes of the set of slices and of their readability.
    pub slices: watch::Sender<u64>,
    /// The number of generations whose slices were made in place so far.
    pub slices_split: Arc<AtomicU64>,
    /// The number of backfill snapshots that builds have begun to read.
    pub backfills: Arc<AtomicU64>,
    /// The progress of each build from the source.
    pub builds: Arc<Mutex<BTreeMap<LocalIndexId, BuildPace>>>,
}

impl NodeContext {
    /// Returns the source of a bucket, by the present catalog.
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
