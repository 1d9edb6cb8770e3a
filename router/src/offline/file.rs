//! The file of the kept knowledge.
//!
//! ```text
//! CATALOG := [`Envelope`] body
//! ```
//!
//! `body` is [`StoredKnowledge`] in postcard. The version names the encoding, so it changes whenever a
//! part of the catalog does; a test holds the two together. The file is written whole under a temporary name, synced and renamed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proto::env::{FileSystem, OpenMode};
use proto::envelope::{Envelope, damaged};
use proto::model::catalog::Catalog;
use proto::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::epochs::applied_epochs::EpochFloors;

const NAME: &str = "CATALOG";
pub(crate) const ENVELOPE: Envelope =
    Envelope::new("sextant routing catalog 1\n", "sextant routing catalog ");
/// A longer file is not one of these: a catalog fits in a message of a few MiB.
const BYTES_MAX: u64 = 256 << 20;

/// The kept knowledge of a router.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredKnowledge {
    /// The wall-clock time of the coordinators' last answer.
    pub heard_unix_ms: u64,
    /// The moment of the coordinators' last answer to a heartbeat.
    pub moment: u64,
    /// For each index the newest epoch that scans could read.
    pub floors: EpochFloors,
    /// The catalog of a coordinator.
    pub catalog: Arc<Catalog>,
}

/// The path of the file in a directory.
pub(super) fn path(dir: &Path) -> PathBuf {
    dir.join(NAME)
}

/// Reads the file of a directory; `None` if there is none. An error names the file.
pub(super) fn read(fs: &dyn FileSystem, dir: &Path) -> Result<Option<StoredKnowledge>> {
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

/// Replaces the file durably.
pub(super) fn write(fs: &dyn FileSystem, dir: &Path, kept: &StoredKnowledge) -> Result<()> {
    let (path, bytes) = (path(dir), encode(kept)?);
    let tmp = path.with_extension("tmp");
    let publish = || {
        let file = fs.open(&tmp, OpenMode::Create)?;
        file.set_len(0)?;
        file.write_all_at(&bytes, 0)?;
        file.sync()?;
        fs.rename(&tmp, &path)?;
        fs.sync_dir(dir)
    };
    publish().map_err(|error: io::Error| {
        Error::from(error).context(format!("writing {}", path.display()))
    })
}

/// Removes the file durably, if there is one.
pub(super) fn remove(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    let path = path(dir);
    let removed = || {
        if fs.exists(&path) {
            fs.remove_file(&path)?;
        }
        fs.sync_dir(dir)
    };
    removed().map_err(|error: io::Error| {
        Error::from(error).context(format!("removing {}", path.display()))
    })
}

pub(crate) fn encode(kept: &StoredKnowledge) -> Result<Vec<u8>> {
    let body = postcard::to_stdvec(kept)
        .map_err(|error| Error::internal(format!("encoding a catalog: {error}")))?;
    Ok(ENVELOPE.seal(&body))
}

pub(crate) fn decode(bytes: &[u8]) -> Result<StoredKnowledge> {
    postcard::from_bytes(ENVELOPE.open(bytes)?).map_err(|_| damaged())
}

#[cfg(test)]
#[path = "file_tests.rs"]
pub(super) mod tests;
