//! The file with the facts that the audit has written last. After a start, the facts of the first
//! catalog are compared with it.
//!
//! The lines of the audit are written first and this file afterwards. After a crash between the
//! two, some lines are therefore written twice. If the file cannot be used, that is logged, and
//! all facts are written again.

use std::path::{Path, PathBuf};

use proto::Result;
use proto::env::Env;
use proto::envelope::Envelope;
use proto::side_file::SideFile;

use super::facts::Facts;

/// The file audit.facts. A file above this size is not used.
pub(super) const FILE: SideFile<Facts> = SideFile::new("audit.facts", ENVELOPE, 256 << 20);
const ENVELOPE: Envelope = Envelope::new("sextant audit facts 1\n", "sextant audit facts ");

/// The file of facts in the directory of an audit.
#[derive(Clone)]
pub(super) struct FactsFile {
    env: Env,
    dir: PathBuf,
}

impl FactsFile {
    pub(super) fn new(env: &Env, dir: &Path) -> Self {
        Self { env: env.clone(), dir: dir.to_owned() }
    }

    /// Reads the facts; an empty set if the file is absent or cannot be used.
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
