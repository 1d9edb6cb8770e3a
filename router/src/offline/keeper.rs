//! The data directory of a router, and the task that keeps its file up to date.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::client::{DataDir, NodeIdentity};
use proto::env::Env;
use proto::lock::lock;
use proto::model::catalog::Catalog;
use proto::model::identity::{ClusterId, NodeProof};
use proto::model::node::NodeInfo;
use proto::{Error, ErrorCode, Result};
use tokio::time::{sleep, timeout};

use super::file::{FILE, StoredKnowledge};
use crate::context::RouterContext;
use crate::epochs::applied_epochs::EpochFloors;

const VERSION: &str = "sextant router, format 2\n";

/// Pause between two writes of the file.
const WRITE_EVERY: Duration = Duration::from_millis(500);
/// Longest time between two writes of the file if the catalog does not change. The file also has
/// the time of the last answer.
const REFRESH: Duration = Duration::from_secs(30);

/// The data directory of a router, locked by this process.
pub struct RouterData {
    env: Env,
    dir: PathBuf,
    _lock: Box<dyn Send + Sync>,
    identity: Arc<NodeIdentity>,
    found: Mutex<Option<StoredKnowledge>>,
    /// For each index, the newest epoch that scans could read.
    shown: Mutex<EpochFloors>,
    /// True once the file was removed for good. Locked by each write.
    is_forgotten: Mutex<bool>,
}

impl RouterData {
    /// Returns the proof with which the router identifies itself to the coordinators. A restarted
    /// router with the same directory has the same proof and counts as the same process.
    pub fn proof(&self) -> NodeProof {
        self.identity.proof()
    }

    /// Opens a directory, and reads its file. A file that cannot be used is logged and ignored.
    /// Blocks the thread.
    pub fn open(env: &Env, dir: &Path, node: &NodeInfo) -> Result<Self> {
        // The file is a cache: without VERSION or IDENTITY it is worth nothing, and no loss.
        let opened = DataDir::open(env, dir, VERSION, node, || false)?;
        let DataDir { lock, identity, .. } = opened;
        let found = FILE.read(&*env.fs, dir).and_then(|found| {
            found.map(|kept| check_cluster(kept, identity.cluster())).transpose()
        });
        let found = found.unwrap_or_else(|error| {
            let file = FILE.path(dir);
            tracing::warn!(%error, file = %file.display(), "ignoring the kept catalog; waiting for a coordinator");
            None
        });
        let shown = found.as_ref().map(|kept| kept.floors.clone()).unwrap_or_default();
        Ok(Self {
            env: env.clone(),
            dir: dir.to_owned(),
            _lock: lock,
            identity,
            found: Mutex::new(found),
            shown: Mutex::new(shown),
            is_forgotten: Mutex::new(false),
        })
    }

    /// Removes and returns the state that an earlier process has stored; later calls return
    /// `None`.
    pub(super) fn take_stored(&self) -> Option<StoredKnowledge> {
        lock(&self.found).take()
    }

    /// Removes the file, because its cluster no longer exists, and prevents later writes of it.
    /// Blocks the thread.
    pub(crate) fn remove_file(&self) -> Result<()> {
        let mut is_forgotten = lock(&self.is_forgotten);
        *is_forgotten = true;
        FILE.remove(&*self.env.fs, &self.dir)
    }

    /// Updates the newest epoch that scans could read, for each index, and returns these epochs.
    fn update_floors(&self, context: &RouterContext, catalog: &Catalog) -> EpochFloors {
        let mut shown = lock(&self.shown);
        shown.retain(|index, _| catalog.local_index(*index).is_some());
        let online = catalog.local_indexes().filter(|index| index.state.is_readable());
        for index in online {
            let newest = context.view(index).epoch.unwrap_or_default();
            let known = shown.entry(index.local_id()).or_default();
            *known = newest.max(*known);
        }
        shown.clone()
    }

    /// Writes the file, unless it was removed for good. Blocks the thread.
    pub(super) fn write(&self, kept: &StoredKnowledge) -> Result<()> {
        let is_forgotten = lock(&self.is_forgotten);
        if *is_forgotten {
            return Ok(());
        }
        if self.identity.cluster() != kept.catalog.cluster {
            // From here on a file of the cluster before is not served.
            self.identity.leave_cluster()?;
            self.identity.accept_cluster(kept.catalog.cluster)?;
        }
        FILE.write(&*self.env.fs, &self.dir, kept)
    }
}

/// Returns the stored state; an error if it belongs to another cluster than the directory.
fn check_cluster(kept: StoredKnowledge, own: Option<ClusterId>) -> Result<StoredKnowledge> {
    if own.is_some() && kept.catalog.cluster == own {
        return Ok(kept);
    }
    let named = |cluster: Option<ClusterId>| {
        cluster.map_or_else(|| "no cluster".to_owned(), |cluster| format!("cluster {cluster}"))
    };
    let (theirs, own) = (named(kept.catalog.cluster), named(own));
    let what = format!("the kept catalog belongs to {theirs}, the directory to {own}");
    Err(Error::new(ErrorCode::OtherCluster, what))
}

/// Keeps the file up to date, so that no scan waits for a disk. The task that runs this may be
/// restarted at any time.
pub(crate) async fn keep_file_current(context: RouterContext, data: Arc<RouterData>) -> Infallible {
    let mut changed = context.catalog_changed.subscribe();
    // The catalog may be there already.
    changed.mark_changed();
    let (mut written_of, mut is_failing) = (None, false);
    // A process with a mark may wait for its first answer while another process holds its id, and has no moment until
    // then.
    let mut lacks_moment = context.config.mark.is_some();
    loop {
        let wait = if lacks_moment { WRITE_EVERY } else { REFRESH };
        let _unchanged = timeout(wait, changed.changed()).await;
        let now = (context.catalog.load().cas, context.heard.last_answer());
        if written_of != Some(now)
            && let Some(kept) = state_to_store(&context, &data)
        {
            let (its_data, has_moment) = (Arc::clone(&data), kept.moment != 0);
            let written = context.env.blocking(move || its_data.write(&kept)).await;
            match written {
                Ok(()) => {
                    (written_of, is_failing) = (Some(now), false);
                    lacks_moment &= !has_moment;
                }
                Err(error) if !is_failing => {
                    tracing::warn!(%error, "the catalog is not kept; trying again");
                    is_failing = true;
                }
                Err(error) => tracing::debug!(%error, "the catalog is not kept; trying again"),
            }
        }
        sleep(WRITE_EVERY).await;
    }
}

/// Returns the state to be stored. Returns `None` if no coordinator has answered this process, so
/// that there is nothing new, or if the cluster has no id yet.
fn state_to_store(context: &RouterContext, data: &RouterData) -> Option<StoredKnowledge> {
    if context.heard.is_from_disk() {
        return None;
    }
    let catalog = context.catalog.load_full();
    catalog.cluster?;
    Some(StoredKnowledge {
        heard_unix_ms: context.heard.heard_unix_ms(&*context.env.clock)?,
        moment: context.moment.load(Ordering::Relaxed),
        floors: data.update_floors(context, &catalog),
        catalog,
    })
}

#[cfg(test)]
#[path = "keeper_tests.rs"]
mod tests;
