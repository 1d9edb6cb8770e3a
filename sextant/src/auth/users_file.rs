//! The file in which a router stores the users, so that they can still log in if no coordinator
//! answers after a restart of the router.
//!
//! The file is a cache: if it cannot be used, the router logs this and waits for a coordinator.
//! The users are not in the file with the catalog, because they contain hashes of secrets: only
//! the owner of the process may read this file.
//!
//! A dropped user remains valid at a router that has not received the drop, for example at a
//! router that starts from this file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proto::Result;
use proto::env::Env;
use proto::envelope::Envelope;
use proto::model::identity::ClusterId;
use proto::model::users::Users;
use proto::side_file::SideFile;
use serde::{Deserialize, Serialize};

/// The file USERS. A file above this size is not used: all users fit in half a MiB.
pub(super) const FILE: SideFile<StoredUsers> = SideFile::new("USERS", ENVELOPE, 4 << 20);
const ENVELOPE: Envelope = Envelope::new("sextant users 1\n", "sextant users ");

/// The contents of the file of users.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredUsers {
    /// The cluster of the users.
    pub cluster: ClusterId,
    /// The users, with the hashes of their secrets.
    pub users: Arc<Users>,
}

/// The file of users in a data directory.
#[derive(Clone)]
pub struct UsersFile {
    env: Env,
    dir: PathBuf,
}

impl UsersFile {
    /// Returns the file of an existing data directory, which this process has locked.
    pub fn new(env: &Env, dir: &Path) -> Self {
        Self { env: env.clone(), dir: dir.to_owned() }
    }

    /// Reads the users of a cluster. Returns `None` if the file is absent, belongs to another
    /// cluster, or cannot be used, which is logged.
    pub async fn read(&self, cluster: Option<ClusterId>) -> Option<Arc<Users>> {
        let own = self.clone();
        let read = self.env.blocking(move || FILE.read(&*own.env.fs, &own.dir)).await;
        let kept = match read {
            Ok(kept) => kept?,
            Err(error) => {
                tracing::warn!(%error, "ignoring the kept users; waiting for a coordinator");
                return None;
            }
        };
        // Without a stored catalog, this process cannot serve before a coordinator answers.
        (Some(kept.cluster) == cluster).then_some(kept.users)
    }

    /// Replaces the file durably.
    pub async fn write(&self, kept: StoredUsers) -> Result<()> {
        let own = self.clone();
        self.env.blocking(move || FILE.write(&*own.env.fs, &own.dir, &kept)).await
    }

    /// Removes the file durably, because its cluster no longer exists.
    pub async fn remove(&self) {
        let own = self.clone();
        let removed = self.env.blocking(move || FILE.remove(&*own.env.fs, &own.dir)).await;
        if let Err(error) = removed {
            tracing::error!(%error, "the kept users are not removed; remove the file before the next start");
        }
    }
}

#[cfg(test)]
#[path = "users_file_tests.rs"]
pub(super) mod tests;
