//! The file with the facts that were written last, with which a start compares.
//!
//! It is written after the lines. So after a crash between the two, lines are written once more. A file that cannot be used
//! is logged, and all facts are written again.

use std::path::{Path, PathBuf};

use proto::Result;
use proto::env::Env;
use proto::envelope::Envelope;
use proto::side_file::SideFile;

use super::facts::Facts;

/// The file audit.facts. A longer one is not one of these.
pub(super) const FILE: SideFile<Facts> = SideFile::new("audit.facts", ENVELOPE, 256 << 20);
const ENVELOPE: Envelope = Envelope::new("sextant audit facts 1\n", "sextant audit facts ");

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
        match self.env.blocking(move || FILE.read(&*own.env.fs, &own.dir)).await {
            Ok(facts) => facts.unwrap_or_default(),
            Err(error) => {
                tracing::warn!(%error, "all nodes and places are written to the audit again");
                Facts::default()
            }
        }
    }

    /// Replaces the file durably.
    pub(super) async fn write(&self, facts: Facts) -> Result<()> {
        let own = self.clone();
        self.env.blocking(move || FILE.write(&*own.env.fs, &own.dir, &facts)).await
    }
}
