//! Writes each change of the nodes and of the places of data, whoever wanted it: an operator, the leading coordinator, or a node.
//!
//! A follower watches the catalog of its coordinator and compares the facts of each one with those that it has told last ([`super::facts`]).
//! These are kept in a file ([`super::facts_file`]), so a start goes on from there: a coordinator that applies its log again tells nothing
//! twice, and one that did not run, or comes from a snapshot, tells what has changed meanwhile when it learns of it.
//!
//! - A watch skips catalogs, and the follower compares at most a tenth of the time, with pauses of a second at most. So changes in quick
//!   succession are told as one, and a change that is undone before the next look is not told.
//! - A catalog with a lower `cas` than the one that was told last is left out: the member applies its log, or is behind. An older copy of a
//!   coordinator is told when `--skip-epochs`, which is the way to go on from one, has raised its `cas` above all known ones.
//! - The facts of another cluster are told whole.
//! - Lines that could not be written are tried again before the next look. After a crash between lines and the file of facts, lines are
//!   told once more, or not taken back if the change was undone meanwhile.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use proto::client::Retry;
use proto::model::catalog::Catalog;
use proto::rpc::api::{CoordinatorApi, WatchMessage, Watched};
use proto::{Error, Result};
use tokio::time::{Instant, sleep};

use super::facts::{FactChange, Facts, changes, ends};
use super::opened::Opened;

/// The pause after the first failure, and the longest one.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// The pause behind a look is as many times as long as the comparison was, and this long at most.
const PAUSE_FOLD: u32 = 9;
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Finds the coordinator whose catalogs are told.
pub type FindCoordinator = Arc<dyn Fn() -> Arc<dyn CoordinatorApi> + Send + Sync>;

/// The follower of an audit.
pub(super) struct Follower {
    audit: Arc<Opened>,
    coordinator: FindCoordinator,
    /// The facts that were told last, or are being told.
    told: Facts,
    /// Their changes that have no line yet.
    untold: Vec<FactChange>,
    /// False if the file has older facts.
    is_kept: bool,
    /// The duration of the last comparison.
    compared: Duration,
}

impl Follower {
    /// A follower that goes on from the kept facts.
    pub(super) async fn new(audit: Arc<Opened>, coordinator: FindCoordinator) -> Self {
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

    /// One watch, from its beginning to its end.
    async fn watch(&mut self, retry: &mut Retry) -> Result<()> {
        let mut messages = (self.coordinator)().watch(Watched::Catalog).await?;
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

    /// Tells what a catalog has changed.
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

    /// Writes the lines that are left of the facts that are being told, and then keeps the facts. So a line is never taken back by a
    /// catalog that came behind it.
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
