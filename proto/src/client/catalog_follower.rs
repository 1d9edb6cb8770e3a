//! The task with which a node follows the coordinators: it receives each new catalog, and on
//! request the stability timestamps.
//!
//! Each coordinator sends the catalog as far as it has applied the log, so a slow one may send an
//! older catalog than another one did. The follower drops a catalog that is older than the last
//! one.

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

/// The receiver of a follower's catalogs and stability timestamps, which each role implements.
pub trait CatalogSink: Send {
    /// Returns the kind of watch to open. The default is a watch of catalogs, without stability
    /// timestamps.
    fn watch_kind(&self) -> WatchKind {
        WatchKind::Catalog
    }

    /// Prepares for a new watch, whose beginning repeats all retained stability timestamps.
    fn begin_watch(&mut self) {}

    /// Receives a catalog; an error ends the watch, and a new watch begins.
    fn take_catalog(&mut self, catalog: Arc<Catalog>) -> impl Future<Output = Result<()>> + Send;

    /// Receives stability timestamps, if [`Self::watch_kind`] requests them, in ascending order for
    /// each bucket; an error ends the watch, and a new watch begins.
    fn take_epochs(&mut self, _marks: Vec<EpochMark>) -> impl Future<Output = Result<()>> + Send {
        std::future::ready(Ok(()))
    }
}

/// A task that watches the coordinators and passes their catalogs to a [`CatalogSink`].
pub struct CatalogFollower {
    directory: Arc<dyn Directory>,
    retry: Retry,
    newest_cas: u64,
    /// The cluster of the catalogs received so far.
    cluster: Option<ClusterId>,
    identity: Option<Arc<NodeIdentity>>,
}

impl CatalogFollower {
    /// Creates a follower that has not received a catalog.
    pub fn new(directory: Arc<dyn Directory>, retry: Retry) -> Self {
        Self { directory, retry, newest_cas: 0, cluster: None, identity: None }
    }

    /// Binds the follower to the identity of the process: it accepts only catalogs of the
    /// identity's cluster, and waits until the process has joined. Before that, the catalog may
    /// describe another process with the same node id.
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

    /// Opens a watch of a coordinator and processes its messages until the watch ends.
    async fn watch(&mut self, sink: &mut impl CatalogSink) -> Result<()> {
        if let Some(identity) = &self.identity {
            identity.wait_joined().await;
        }
        let mut messages = self.directory.coordinator().watch(sink.watch_kind()).await?;
        sink.begin_watch();
        while let Some(message) = messages.next().await {
            let message = message?;
            if self.identity.as_ref().is_some_and(|identity| !identity.is_joined()) {
                return Ok(());
            }
            match message {
                WatchMessage::Catalog(catalog) => {
                    if let Some(identity) = &self.identity {
                        identity.accept_cluster(catalog.cluster)?;
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

    /// Returns an error if a catalog is of another cluster than the earlier catalogs. The `cas`
    /// of catalogs can be compared only within one cluster.
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
