//! Writes a line for each change of the nodes and of the places of data, whether an operator, the
//! leading coordinator or a node has caused it.
//!
//! A follower watches the catalog of its coordinator and compares the facts of each catalog with
//! the facts that it has written last ([`super::facts`]). The latter are stored in a file
//! ([`super::facts_file`]), with which a restarted follower continues: a coordinator that replays
//! its log writes no line twice, and a coordinator that was down or starts from a snapshot writes
//! the changes when it receives them.
//!
//! - A watch skips catalogs, and the follower compares at most a tenth of the time, with pauses of
//!   a second at most. So changes in quick succession are written as one, and a change that is
//!   undone before the next comparison is not written.
//! - A catalog with a lower `cas` than the last written one is left out: the member replays its
//!   log, or lags. The facts of a restored older copy are written once `--skip-epochs`, with which
//!   it continues, has raised its `cas` above all known ones. - The facts of another cluster are
//!   written completely. - Lines that could not be written are retried before the next comparison.
//!   After a crash between lines and the file of facts, lines are written once more, or not
//!   corrected if the change was undone meanwhile.

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
    /// The facts that were written last or are being written.
    told: Facts,
    /// The changes that led to these facts and have no line yet.
    untold: Vec<FactChange>,
    /// False if the file of facts is older than `told`.
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

    /// Runs one watch, from its beginning to its end.
    async fn watch(&mut self, retry: &mut Retry) -> Result<()> {
        let mut messages = (self.coordinator)().watch(WatchKind::Catalog).await?;
        while let Some(message) = messages.next().await {
            let WatchMessage::Catalog(catalog) = message? else {
                return Err(Error::internal("a watch of the catalog was sent something else"));
            };
            self.take(catalog).await?;
            retry.reset();
            sleep((self.compared * PAUSE_FOLD).min(PAUSE_MAX)).await;
        }
        Ok(())
    }

    /// Writes the changes between the last facts and those of a catalog.
    pub(super) async fn take(&mut self, catalog: Arc<Catalog>) -> Result<()> {
        self.finish().await?;
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
        self.finish().await
    }

    /// Writes the remaining lines about the present facts and then stores the facts. A later
    /// catalog therefore never cancels a pending line.
    async fn finish(&mut self) -> Result<()> {
        self.audit.tell(&mut self.untold, &self.told).await?;
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
