//! Writes each change of the nodes and of the places of data, whoever wanted it: an operator, the leading coordinator, or a node.
//!
//! A follower watches the catalog of its coordinator and compares each one with the one before ([`super::facts`]). Each line has the
//! catalog's `cas`, so a coordinator that starts again, and applies its log again, continues behind the last line of its file:
//!
//! - Catalogs up to that `cas` are the beginning of the comparison, and are told already.
//! - If the first catalog is newer, its changes may have no lines: the coordinator did not run. A line says so (`not seen`), and other
//!   coordinators have the changes, if there were any.
//! - A file without such a line, or one of another cluster, gets all facts of the first catalog.
//!
//! An older copy of a coordinator counts on from an older `cas`: it has no lines until `--skip-epochs`, which is the way to go on from one,
//! has raised that above all known ones.
//!
//! A catalog whose lines could not be written is compared again until they are. Lines are there twice if a batch was written only in part,
//! or if a watch skips from a catalog before the last line to one behind it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use proto::client::Retry;
use proto::model::catalog::Catalog;
use proto::rpc::api::{CoordinatorApi, WatchMessage, Watched};
use proto::{Error, Result};

use super::event::What;
use super::facts::{FactChange, changes};
use super::line::Told;
use super::opened::Opened;

/// The pause after the first failure, and the longest one.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// The follower of an audit.
pub(super) struct Follower<F> {
    audit: Arc<Opened>,
    /// The coordinator whose catalogs are told.
    coordinator: F,
    told: Option<Told>,
    before: Option<Arc<Catalog>>,
}

impl<F: Fn() -> Arc<dyn CoordinatorApi> + Send> Follower<F> {
    pub(super) fn new(audit: Arc<Opened>, coordinator: F) -> Self {
        Self { audit, coordinator, told: None, before: None }
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
        if self.told.is_none() {
            self.told = Some(self.audit.told().await?);
        }
        let mut messages = (self.coordinator)().watch(Watched::Catalog).await?;
        while let Some(message) = messages.next().await {
            let WatchMessage::Catalog(catalog) = message? else {
                return Err(Error::internal("a watch of the catalog was sent something else"));
            };
            self.take(catalog).await?;
            retry.reset();
        }
        Ok(())
    }

    /// Tells what a catalog has changed.
    pub(super) async fn take(&mut self, catalog: Arc<Catalog>) -> Result<()> {
        let cluster = catalog.cluster.map(|cluster| cluster.to_string());
        let mut told = self.told.clone().unwrap_or_default();
        if matches!((&told.cluster, &cluster), (Some(theirs), Some(own)) if theirs != own) {
            (told, self.before) = (Told::default(), None);
        }
        let is_new = catalog.cas > told.cas;
        let found = match &self.before {
            // A member that is behind shows an older catalog than the one before.
            Some(before) if catalog.cas < before.cas => return Ok(()),
            Some(before) if is_new => changes(before, &catalog),
            None if told.cas == 0 => changes(&Catalog::default(), &catalog),
            None if is_new => vec![missed(told.cas, catalog.cas)],
            _ => Vec::new(),
        };
        if !found.is_empty() {
            self.audit.tell(found, Told { cas: catalog.cas, cluster: cluster.clone() }).await?;
        }
        if is_new {
            told = Told { cas: catalog.cas, cluster };
        }
        self.told = Some(told);
        self.before = Some(catalog);
        Ok(())
    }
}

/// The line instead of changes that this process has not seen, if there were any.
fn missed(told: u64, cas: u64) -> FactChange {
    let of = format!("catalogs {} to {cas}", told + 1);
    FactChange { what: What::Process, of, was: None, is: Some("not seen".to_owned()) }
}

#[cfg(test)]
#[path = "follow_tests.rs"]
mod tests;
