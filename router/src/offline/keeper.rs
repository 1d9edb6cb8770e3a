//! The data directory of a router, and the task that writes it.

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
/// Longest time between two writes of the file, which also stores the time of the last answer.
const REFRESH: Duration = Duration::from_secs(30);

/// The data directory of a router, locked for this process.
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
    /// Returns the proof of the directory. To the coordinators, a restarted router with the
    /// directory is the same process.
    pub fn proof(&self) -> NodeProof {
        self.identity.proof()
    }

    /// Opens a directory, and reads its file. A file that cannot be used is logged and ignored.
    /// Blocks the thread.
    pub fn open(env: &Env, dir: &Path, node: &NodeInfo) -> Result<Self> {
        // The file is a cache: without VERSION or IDENTITY it is worth nothing, and no loss.
        let opened = DataDir::open(env, dir, VERSION, node, || false)?;
        let DataDir { lock, identity, .. } = opened;
        let found = FILE
            .read(&*env.fs, dir)
            .and_then(|found| found.map(|kept| of_cluster(kept, identity.cluster())).transpose());
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

    /// Removes and returns the state of an earlier process; `None` at all later calls.
    pub(super) fn take_found(&self) -> Option<StoredKnowledge> {
        lock(&self.found).take()
    }

    /// Removes the file for good, because its cluster no longer exists. Blocks the thread.
    pub(crate) fn forget(&self) -> Result<()> {
        let mut is_forgotten = lock(&self.is_forgotten);
        *is_forgotten = true;
        FILE.remove(&*self.env.fs, &self.dir)
    }

    /// Records the epochs that scans can read, and returns the newest ones of the existing indexes.
    fn note_shown(&self, context: &RouterContext, catalog: &Catalog) -> EpochFloors {
        let mut shown = lock(&self.shown);
        shown.retain(|index, _| catalog.local_index(*index).is_some());
        let online = catalog.local_indexes().filter(|index| index.state.is_read());
        for index in online {
            let newest = context.view(index).epoch.unwrap_or_default();
            let known = shown.entry(index.local_id()).or_default();
            *known = newest.max(*known);
        }
        shown.clone()
    }

    /// Writes the file. Blocks the thread.
    pub(super) fn write(&self, kept: &StoredKnowledge) -> Result<()> {
        let is_forgotten = lock(&self.is_forgotten);
        if *is_forgotten {
            return Ok(());
        }
        if self.identity.cluster() != kept.catalog.cluster {
            // From here on a file of the cluster before is not served.
            self.identity.leave_cluster()?;
            self.identity.accept(kept.catalog.cluster)?;
        }
        FILE.write(&*self.env.fs, &self.dir, kept)
    }
}

/// Returns an error if the file belongs to another cluster than the directory.
fn of_cluster(kept: StoredKnowledge, own: Option<ClusterId>) -> Result<StoredKnowledge> {
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

/// Keeps the file up to date, in a separate task, so that no scan waits for a disk. The task may be
/// restarted at any time.
pub(crate) async fn keep(context: RouterContext, data: Arc<RouterData>) -> Infallible {
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
            && let Some(kept) = to_keep(&context, &data)
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

/// Returns the state to write, which was received from a coordinator. `None` if no coordinator has
/// answered this process, or the cluster has no id yet.
fn to_keep(context: &RouterContext, data: &RouterData) -> Option<StoredKnowledge> {
    if context.heard.is_from_disk() {
        return None;
    }
    let catalog = context.catalog.load_full();
    catalog.cluster?;
    Some(StoredKnowledge {
        heard_unix_ms: context.heard.heard_unix_ms(&*context.env.clock)?,
        moment: context.moment.load(Ordering::Relaxed),
        floors: data.note_shown(context, &catalog),
        catalog,
    })
}

#[cfg(test)]
#[path = "keeper_tests.rs"]
mod tests;
