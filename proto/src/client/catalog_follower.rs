//! Task that follows the catalog and the stability timestamps for a role.
//!
//! Each member of the coordinator sends the state that it has applied, so a member that lags may
//! send an older catalog than another one did. The follower drops a catalog that is older than the
//! last one.

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

/// The role's handlers of catalogs and stability timestamps.
pub trait CatalogSink: Send {
    /// Returns what the watch sends. By default, no stability timestamps are requested.
    fn wanted(&self) -> WatchKind {
        WatchKind::Catalog
    }

    /// Called when a new watch begins, which sends all retained epochs again.
    fn watch_begins(&mut self) {}

    /// Receives a catalog; an error ends the watch, and a new watch begins.
    fn take_catalog(&mut self, catalog: Arc<Catalog>) -> impl Future<Output = Result<()>> + Send;

    /// Receives stability timestamps, if [`Self::wanted`] requests them, in ascending order for
    /// each bucket; an error ends the watch, and a new watch begins.
    fn take_epochs(&mut self, _marks: Vec<EpochMark>) -> impl Future<Output = Result<()>> + Send {
        std::future::ready(Ok(()))
    }
}

/// The state of a task that watches the coordinator.
pub struct CatalogFollower {
    directory: Arc<dyn Directory>,
    retry: Retry,
    newest_cas: u64,
    /// The cluster of the catalogs received so far.
    cluster: Option<ClusterId>,
    identity: Option<Arc<NodeIdentity>>,
}

impl CatalogFollower {
    /// Creates a follower without a catalog.
    pub fn new(directory: Arc<dyn Directory>, retry: Retry) -> Self {
        Self { directory, retry, newest_cas: 0, cluster: None, identity: None }
    }

    /// Makes the follower accept only catalogs of the cluster that a data directory belongs to, and
    /// none before the process has joined: until then, the catalog may refer to another process
    /// with this node id.
    pub fn with_identity(mut self, identity: Option<Arc<NodeIdentity>>) -> Self {
        self.identity = identity;
        self
    }

    /// Passes each catalog and each stability timestamp to the sink. Runs until it is dropped.
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

    /// Returns an error for a catalog of another cluster than the earlier ones: numbers are valid
    /// only within one cluster.
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
