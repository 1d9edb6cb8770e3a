//! The file with the facts that were written last, with which a start compares.
//!
//! ```text
//! audit.facts := [`Envelope`] body
//! ```
//!
//! `body` is [`Facts`] in postcard. The file is written whole under a temporary name, synced and renamed, after the lines. So after a crash
//! between the two, lines are written once more. A file that cannot be used is logged, and all facts are written again.

use std::io;
use std::path::{Path, PathBuf};

use proto::env::{Env, OpenMode};
use proto::envelope::{Envelope, damaged};
use proto::{Error, Result};

use super::facts::Facts;

pub(super) const ENVELOPE: Envelope =
    Envelope::new("sextant audit facts 1\n", "sextant audit facts ");
/// A longer file is not one of these.
const BYTES_MAX: u64 = 256 << 20;

/// The file of an audit's directory.
#[derive(Clone)]
pub(super) struct FactsFile {
    env: Env,
    dir: PathBuf,
}

impl FactsFile {
    pub(super) fn new(env: &Env, dir: &Path) -> Self {
        Self { env: env.clone(), dir: dir.to_owned() }
    }

    /// Reads the facts; none if there is no file, or none that can be used.
    pub(super) async fn read(&self) -> Facts {
        let own = self.clone();
        match self.env.blocking(move || own.read_file()).await {
            Ok(facts) => facts.unwrap_or_default(),
            Err(error) => {
                tracing::warn!(%error, "all nodes and places are told anew in the audit");
                Facts::default()
            }
        }
    }

    /// Replaces the file durably.
    pub(super) async fn write(&self, facts: Facts) -> Result<()> {
        let own = self.clone();
        self.env.blocking(move || own.write_file(&facts)).await
    }

    fn path(&self) -> PathBuf {
        self.dir.join("audit.facts")
    }

    fn read_file(&self) -> Result<Option<Facts>> {
        let (fs, path) = (&*self.env.fs, self.path());
        if !fs.exists(&path) {
            return Ok(None);
        }
        let bytes = || {
            let file = fs.open(&path, OpenMode::Read)?;
            let mut bytes = vec![0; file.len()?.min(BYTES_MAX) as usize];
            file.read_exact_at(&mut bytes, 0)?;
            Ok(bytes)
        };
        let decoded = bytes().map_err(|error: io::Error| error.into());
        let decoded = decoded.and_then(|bytes: Vec<u8>| decode(&bytes));
        decoded.map(Some).map_err(|error| error.context(format!("reading {}", path.display())))
    }

    fn write_file(&self, facts: &Facts) -> Result<()> {
        let (fs, path) = (&*self.env.fs, self.path());
        let (bytes, tmp) = (encode(facts)?, path.with_extension("tmp"));
        let publish = || {
            // A created file has the mode of this process's files; a leftover file may have another mode.
            if fs.exists(&tmp) {
                fs.remove_file(&tmp)?;
            }
            let file = fs.open(&tmp, OpenMode::CreateNew)?;
            file.write_all_at(&bytes, 0)?;
            file.sync()?;
            fs.rename(&tmp, &path)?;
            fs.sync_dir(&self.dir)
        };
        publish().map_err(|error: io::Error| {
            Error::from(error).context(format!("writing {}", path.display()))
        })
    }
}

pub(super) fn encode(facts: &Facts) -> Result<Vec<u8>> {
    let body = postcard::to_stdvec(facts)
        .map_err(|error| Error::internal(format!("encoding facts: {error}")))?;
    Ok(ENVELOPE.seal(&body))
}

pub(super) fn decode(bytes: &[u8]) -> Result<Facts> {
    postcard::from_bytes(ENVELOPE.open(bytes)?).map_err(|_| damaged())
}
