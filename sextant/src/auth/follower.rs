//! The task by which a process that serves clients receives the users.
//!
//! The follower watches any of the coordinators. Each watch begins with all users. Users from a
//! coordinator that lags are older than the known ones and are ignored ([`NewestUsers::learn`]).
//! Users of another cluster are refused, since the same name or number means a different user in
//! that cluster. A process with a data directory also writes each change to a file
//! ([`super::users_file`]).
//!
//! The users are not part of the catalog, because every process gets the catalog and routers
//! store it in a file. Only processes with ports for users watch the users.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use proto::client::Retry;
use proto::env::{Env, Task};
use proto::model::identity::ClusterId;
use proto::model::users::Users;
use proto::rpc::api::{Directory, WatchKind, WatchMessage};
use proto::{Error, ErrorCode, Result};

use super::newest_users::NewestUsers;
use super::users_file::{StoredUsers, UsersFile};

/// The first pause after a failure, and the longest pause.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// The task that watches the coordinators for changes of the users.
#[derive(Clone)]
pub struct UsersFollower {
    directory: Arc<dyn Directory>,
    known: Arc<NewestUsers>,
    /// Returns the cluster of this process; `None` if unknown.
    cluster: Arc<dyn Fn() -> Option<ClusterId> + Send + Sync>,
    /// The cluster that the coordinators have named in their answers.
    heard: Option<ClusterId>,
    file: Option<UsersFile>,
    /// The `cas` of the users that were last written to the file.
    written: Option<u64>,
}

impl UsersFollower {
    /// Returns a follower that stores the received users in `known`.
    pub fn new(
        directory: Arc<dyn Directory>,
        known: Arc<NewestUsers>,
        cluster: impl Fn() -> Option<ClusterId> + Send + Sync + 'static,
    ) -> Self {
        let (heard, file, written) = (None, None, None);
        Self { directory, known, cluster: Arc::new(cluster), heard, file, written }
    }

    /// Adds a file: the follower begins with the users in it and writes each change to it.
    pub async fn with_file(mut self, file: UsersFile) -> Self {
        if let Some(users) = file.read((self.cluster)()).await {
            self.written = Some(users.cas);
            self.known.learn(users);
        }
        self.file = Some(file);
        self
    }

    /// Starts a task that follows the users until it is dropped.
    pub fn start(self, env: &Env) -> Task {
        env.spawn_restarted("users", move || self.clone().run())
    }

    /// Watches the users until the task is dropped. After each failure, the watch is started
    /// again.
    async fn run(mut self) -> Infallible {
        let mut retry = Retry::doubling(PAUSES.0, PAUSES.1);
        loop {
            match self.watch(&mut retry).await {
                Ok(()) => tracing::debug!("the watch of the users ended; watching anew"),
                Err(error) if error.is_retry() || !retry.is_first_failure() => {
                    tracing::debug!(%error, "following the users failed; trying again");
                }
                Err(error) => tracing::warn!(%error, "following the users failed; trying again"),
            }
            retry.pause().await;
        }
    }

    /// Watches the users until the watch ends, and stores each change.
    async fn watch(&mut self, retry: &mut Retry) -> Result<()> {
        let mut messages = self.directory.coordinator().watch(WatchKind::Users).await?;
        while let Some(message) = messages.next().await {
            match message? {
                WatchMessage::Users { cluster, users } => self.store_users(cluster, users).await?,
                WatchMessage::Catalog(_) | WatchMessage::Epochs(_) => {
                    return Err(Error::internal("a watch of the users was sent something else"));
                }
            }
            retry.reset();
        }
        Ok(())
    }

    /// Stores received users in memory and in the file.
    async fn store_users(&mut self, cluster: Option<ClusterId>, users: Arc<Users>) -> Result<()> {
        self.check_cluster(cluster)?;
        self.known.learn(users);
        let (users, cluster) = (self.known.current(), self.own_cluster());
        if let (Some(file), Some(cluster)) = (&self.file, cluster)
            && self.written != Some(users.cas)
        {
            let cas = users.cas;
            file.write(StoredUsers { cluster, users }).await?;
            self.written = Some(cas);
        }
        Ok(())
    }

    /// Returns the cluster of this process: the configured one, or the one that the coordinators
    /// have named.
    fn own_cluster(&self) -> Option<ClusterId> {
        (self.cluster)().or(self.heard)
    }

    /// Returns an error if received users belong to another cluster than this process.
    fn check_cluster(&mut self, cluster: Option<ClusterId>) -> Result<()> {
        match (self.own_cluster(), cluster) {
            (Some(own), Some(theirs)) if own != theirs => {
                let what = format!(
                    "the coordinators belong to cluster {theirs}, this process to cluster {own}"
                );
                Err(Error::new(ErrorCode::OtherCluster, what)
                    .with_hint("check --coordinators; if they have begun a new cluster, start this process again"))
            }
            _ => {
                self.heard = self.heard.or(cluster);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
#[path = "follower_tests.rs"]
mod tests;
