//! Follows the catalog and the stability timestamps on behalf of a role.
//!
//! Each member of the coordinator sends the state that it has applied, so a member that lags may send an older catalog
//! than a previous one. The follower never passes on a catalog that is older than the last one.

use std::convert::Infallible;
use std::sync::Arc;

use futures::StreamExt;

use super::identity::NodeIdentity;
use super::retry::Retry;
use crate::error::{Error, ErrorCode, Result};
use crate::model::catalog::Catalog;
use crate::model::cut::EpochMark;
use crate::model::identity::ClusterId;
use crate::rpc::api::{Directory, WatchKind, WatchMessage};

/// The work of a role on each catalog and each stability timestamp.
pub trait CatalogSink: Send {
    /// The contents of the watch. By default, no stability timestamps are requested.
    fn wanted(&self) -> WatchKind {
        WatchKind::Catalog
    }

    /// Called when a new watch begins: all retained epochs are sent again.
    fn watch_begins(&mut self) {}

    /// Receives a catalog; an error ends the watch, and a new watch begins.
    fn take_catalog(&mut self, catalog: Arc<Catalog>) -> impl Future<Output = Result<()>> + Send;

    /// Receives stability timestamps, if [`Self::wanted`] requests them, ascending for each bucket; an error ends the watch, and a new
    /// watch begins.
    fn take_epochs(&mut self, _marks: Vec<EpochMark>) -> impl Future<Output = Result<()>> + Send {
        std::future::ready(Ok(()))
    }
}

/// Watches the coordinator.
pub struct CatalogFollower {
    directory: Arc<dyn Directory>,
    retry: Retry,
    newest_cas: u64,
    /// The cluster of the catalogs so far.
    cluster: Option<ClusterId>,
    identity: Option<Arc<NodeIdentity>>,
}

impl CatalogFollower {
    /// A follower that has not received a catalog yet.
    pub fn new(directory: Arc<dyn Directory>, retry: Retry) -> Self {
        Self { directory, retry, newest_cas: 0, cluster: None, identity: None }
    }

    /// Believes only catalogs of the cluster that a data directory belongs to, and takes over none before its process has
    /// joined: the catalog means the process that holds the number.
    pub fn with_identity(mut self, identity: Option<Arc<NodeIdentity>>) -> Self {
        self.identity = identity;
        self
    }

    /// Gives the sink each catalog and each stability timestamp. Runs until it is dropped.
    pub async fn run(mut self, mut sink: impl CatalogSink) -> Infallible {
        loop {
            match self.watch(&mut sink).await {
                Ok(()) => tracing::debug!("the watch of the coordinator ended; watching anew"),
                Err(error) => self.report(&error),
            }
            self.retry.pause().await;
        }
    }

    /// Runs one watch, from its beginning to its end.
    async fn watch(&mut self, sink: &mut impl CatalogSink) -> Result<()> {
        if let Some(identity) = &self.identity {
            identity.wait_joined().await;
        }
        let mut messages = self.directory.coordinator().watch(sink.wanted()).await?;
        sink.watch_begins();
        while let Some(message) = messages.next().await {
            let message = message?;
            if self.identity.as_ref().is_some_and(|identity| !identity.is_joined()) {
                return Ok(());
            }
            match message {
                WatchMessage::Catalog(catalog) => {
                    if let Some(identity) = &self.identity {
                        identity.accept(catalog.cluster)?;
                    }
                    self.check_cluster(&catalog)?;
                    self.directory.learn_coordinators(catalog.coordinators());
                    if catalog.cas >= self.newest_cas {
                        self.newest_cas = catalog.cas;
                        sink.take_catalog(catalog).await?;
                    }
                }
                WatchMessage::Epochs(marks) => sink.take_epochs(marks).await?,
                WatchMessage::Users { .. } => {
                    return Err(Error::internal("a watch of the catalog was sent users"));
                }
            }
            self.retry.reset();
        }
        Ok(())
    }

    /// Refuses a catalog of another cluster than those before: numbers mean something only within one cluster.
    fn check_cluster(&mut self, catalog: &Catalog) -> Result<()> {
        match (self.cluster, catalog.cluster) {
            (Some(own), Some(theirs)) if own != theirs => {
                let what = format!(
                    "the coordinators belong to cluster {theirs}, this process to cluster {own}"
                );
                Err(Error::new(ErrorCode::OtherCluster, what)
                    .with_hint("check --coordinators; if they have begun a new cluster, start this process again"))
            }
            _ => {
                self.cluster = self.cluster.or(catalog.cluster);
                Ok(())
            }
        }
    }

    fn report(&self, error: &Error) {
        if error.is_retry() || !self.retry.is_first_failure() {
            tracing::debug!(%error, "following the coordinator failed; trying again");
        } else {
            tracing::warn!(%error, "following the coordinator failed; trying again");
        }
    }
}
