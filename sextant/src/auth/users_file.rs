//! The file in which a router keeps the users, so that they can log in after a restart while no coordinator answers.
//!
//! ```text
//! USERS := [`Envelope`] body
//! ```
//!
//! `body` is [`StoredUsers`] in postcard. The file is written whole under a temporary name, synced and renamed. It is a cache: a file that cannot
//! be used is logged, and the router then waits for a coordinator. It is separate from the stored catalog, since it has the hashes of
//! secrets: only the owner of the process may read it.
//!
//! A dropped user stays valid at a router that does not know of the drop, and so at a router that starts from this file.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proto::env::{Env, FileSystem, OpenMode};
use proto::envelope::{Envelope, damaged};
use proto::model::identity::ClusterId;
use proto::model::users::Users;
use proto::{Error, Result};
use serde::{Deserialize, Serialize};

const NAME: &str = "USERS";
pub(super) const ENVELOPE: Envelope = Envelope::new("sextant users 1\n", "sextant users ");
/// A longer file is not one of these: all users fit in half a MiB.
const BYTES_MAX: u64 = 4 << 20;

/// The kept users of a router.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredUsers {
    /// The cluster of the users.
    pub cluster: ClusterId,
    /// The users, with the hashes of their secrets.
    pub users: Arc<Users>,
}

/// The file of a data directory.
#[derive(Clone)]
pub struct UsersFile {
    env: Env,
    dir: PathBuf,
}

impl UsersFile {
    /// The file of a data directory that is there, and that this process has locked.
    pub fn new(env: &Env, dir: &Path) -> Self {
        Self { env: env.clone(), dir: dir.to_owned() }
    }

    /// Reads the users of a cluster, or `None`: the file is absent, is of another cluster, or cannot be used, which is logged.
    pub async fn read(&self, cluster: Option<ClusterId>) -> Option<Arc<Users>> {
        let own = self.clone();
        let read = self.env.blocking(move || read(&*own.env.fs, &own.dir)).await;
        let kept = match read {
            Ok(kept) => kept?,
            Err(error) => {
                tracing::warn!(%error, "ignoring the kept users; waiting for a coordinator");
                return None;
            }
        };
        // Without a kept catalog this process serves nothing before a coordinator answers.
        (Some(kept.cluster) == cluster).then_some(kept.users)
    }

    /// Replaces the file durably.
    pub async fn write(&self, kept: StoredUsers) -> Result<()> {
        let own = self.clone();
        self.env.blocking(move || write(&*own.env.fs, &own.dir, &kept)).await
    }

    /// Removes the file durably, because its cluster no longer exists.
    pub async fn remove(&self) {
        let own = self.clone();
        let removed = self.env.blocking(move || remove(&*own.env.fs, &own.dir)).await;
        if let Err(error) = removed {
            tracing::error!(%error, "the kept users are not removed; remove the file before the next start");
        }
    }
}

fn path(dir: &Path) -> PathBuf {
    dir.join(NAME)
}

fn read(fs: &dyn FileSystem, dir: &Path) -> Result<Option<StoredUsers>> {
    let path = path(dir);
    if !fs.exists(&path) {
        return Ok(None);
    }
    let bytes = || {
        let file = fs.open(&path, OpenMode::Read)?;
        let mut bytes = vec![0; file.len()?.min(BYTES_MAX) as usize];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    };
    let decoded = bytes().map_err(|error: io::Error| error.into()).and_then(|bytes| decode(&bytes));
    decoded.map(Some).map_err(|error| error.context(format!("reading {}", path.display())))
}

fn write(fs: &dyn FileSystem, dir: &Path, kept: &StoredUsers) -> Result<()> {
    let (path, bytes) = (path(dir), encode(kept)?);
    let tmp = path.with_extension("tmp");
    let publish = || {
        // A created file has the mode of this process's files; a leftover file may have another mode.
        if fs.exists(&tmp) {
            fs.remove_file(&tmp)?;
        }
        let file = fs.open(&tmp, OpenMode::CreateNew)?;
        file.write_all_at(&bytes, 0)?;
        file.sync()?;
        fs.rename(&tmp, &path)?;
        fs.sync_dir(dir)
    };
    publish().map_err(|error: io::Error| {
        Error::from(error).context(format!("writing {}", path.display()))
    })
}

fn remove(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    let path = path(dir);
    let removed = || {
        for file in [path.with_extension("tmp"), path.clone()] {
            if fs.exists(&file) {
                fs.remove_file(&file)?;
            }
        }
        fs.sync_dir(dir)
    };
    removed().map_err(|error: io::Error| {
        Error::from(error).context(format!("removing {}", path.display()))
    })
}

pub(super) fn encode(kept: &StoredUsers) -> Result<Vec<u8>> {
    let body = postcard::to_stdvec(kept)
        .map_err(|error| Error::internal(format!("encoding users: {error}")))?;
    Ok(ENVELOPE.seal(&body))
}

pub(super) fn decode(bytes: &[u8]) -> Result<StoredUsers> {
    postcard::from_bytes(ENVELOPE.open(bytes)?).map_err(|_| damaged())
}

#[cfg(test)]
#[path = "users_file_tests.rs"]
pub(super) mod tests;
