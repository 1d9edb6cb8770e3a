//! A task that writes an audit line for each change of the nodes and of the places of data. An
//! operator, the leading coordinator or a node may have caused the change.
//!
//! A follower watches the catalog of its coordinator and compares the facts of each catalog with
//! the facts that were written last ([`super::facts`]). A restarted follower continues with the
//! last written facts, which are stored in a file ([`super::facts_file`]): a coordinator that
//! replays its log writes no line twice, and a coordinator that was down or starts from a
//! snapshot writes the changes when it receives them.
//!
//! - A watch may skip catalogs. The follower spends at most a tenth of its time on comparisons,
//!   and pauses for a second at most. Changes in quick succession are therefore written as one,
//!   and a change that is undone before the next comparison is not written.
//! - A catalog with a lower `cas` than the last written one is ignored, because the coordinator
//!   replays its log, or lags. A coordinator that continues from a restored older copy runs with
//!   `--skip-epochs`, which raises its `cas` above all known ones. Its facts are written from
//!   then on. - If the catalog belongs to another cluster than the stored facts, all of its facts
//!   are written. - Lines that could not be written are retried before the next comparison. After
//!   a crash between the lines and the file of facts, the lines are written once more. If the
//!   change was undone meanwhile, no line says so.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use proto::client::Retry;
use proto::model::catalog::Catalog;
use proto::rpc::api::{CoordinatorApi, WatchKind, WatchMessage};
use proto::{Error, Result};
use tokio::time::{Instant, sleep};

use super::facts::{FactChange, Facts, changes, ends};
use super::open_audit::AuditFiles;

/// The first pause after a failure, and the longest pause.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// The ratio of the pause after a comparison to the duration of the comparison.
const PAUSE_FOLD: u32 = 9;
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// A function that finds the coordinator whose catalogs are followed.
pub type FindCoordinator = Arc<dyn Fn() -> Arc<dyn CoordinatorApi> + Send + Sync>;

/// The task that follows the catalog and writes its changes into an audit.
pub(super) struct Follower {
    audit: Arc<AuditFiles>,
    coordinator: FindCoordinator,
    /// The facts that were written last, or that are being written at present.
    told: Facts,
    /// The changes that led to the facts in `told` and have no line yet.
    untold: Vec<FactChange>,
    /// False if the file of facts is older than the facts in `told`.
    is_kept: bool,
    /// The duration of the last comparison.
    compared: Duration,
}

impl Follower {
    /// Returns a follower that continues from the stored facts.
    pub(super) async fn new(audit: Arc<AuditFiles>, coordinator: FindCoordinator) -> Self {
        let told = audit.facts.read().await;
        let (untold, is_kept, compared) = (Vec::new(), true, Duration::ZERO);
        Self { audit, coordinator, told, untold, is_kept, compared }
    }

    /// Follows the catalog until the task is dropped. After each failure, the watch is started
    /// again.
    pub(super) async fn run(mut self) -> Infallible {
        let mut retry = Retry::doubling(PAUSES.0, PAUSES.1);
        loop {
            match self.watch(&mut retry).await {
                Ok(()) => {}
                Err(error) if error.is_retry() || !retry.is_first_failure() => {
                    tracing::debug!(%error, "the audit does not follow the catalog; trying again");
                }
                Err(error) => {
                    tracing::warn!(%error, "the audit does not follow the catalog; trying again");
                }
            }
            retry.pause().await;
        }
    }

    /// Watches the catalog until the watch ends, and writes the changes of each catalog.
    async fn watch(&mut self, retry: &mut Retry) -> Result<()> {
        let mut messages = (self.coordinator)().watch(WatchKind::Catalog).await?;
        while let Some(message) = messages.next().await {
            let WatchMessage::Catalog(catalog) = message? else {
                return Err(Error::internal("a watch of the catalog was sent something else"));
            };
            self.write_changes(catalog).await?;
            retry.reset();
            sleep((self.compared * PAUSE_FOLD).min(PAUSE_MAX)).await;
        }
        Ok(())
    }

    /// Writes the changes between the facts written last and the facts of a catalog.
    pub(super) async fn write_changes(&mut self, catalog: Arc<Catalog>) -> Result<()> {
        self.write_pending().await?;
        let is_another = self.told.cluster.is_some()
            && catalog.cluster.is_some()
            && self.told.cluster != catalog.cluster;
        if catalog.cas <= self.told.cas && !is_another {
            return Ok(());
        }
        let told = if is_another { Facts::default() } else { self.told.clone() };
        let compare = move || {
            let facts = Facts::of(&catalog);
            let found = changes(&told, &facts, &ends(&catalog));
            Ok::<_, Error>((facts, found))
        };
        let began = Instant::now();
        let (facts, found) = self.audit.env.blocking(compare).await?;
        self.compared = began.elapsed();
        self.is_kept &= found.is_empty();
        (self.told, self.untold) = (facts, found);
        self.write_pending().await
    }

    /// Writes the lines that are still missing about the facts in `told`, then stores these facts
    /// in the file. A later catalog therefore never cancels a missing line.
    async fn write_pending(&mut self) -> Result<()> {
        self.audit.write_facts(&mut self.untold, &self.told).await?;
        if !self.is_kept {
            self.audit.facts.write(self.told.clone()).await?;
            self.is_kept = true;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "follow_tests.rs"]
mod tests;
