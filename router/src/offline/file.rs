//! The file in which a router stores its state for the next start. A test checks that the file's
//! version changes with the encoding of the catalog.

use std::sync::Arc;

use proto::envelope::Envelope;
use proto::model::catalog::Catalog;
use proto::side_file::SideFile;
use serde::{Deserialize, Serialize};

use crate::epochs::applied_epochs::EpochFloors;

/// The file CATALOG, with its maximum size. A catalog fits in a message of a few MiB.
pub(crate) const FILE: SideFile<StoredKnowledge> = SideFile::new("CATALOG", ENVELOPE, 256 << 20);
const ENVELOPE: Envelope = Envelope::new("sextant routing catalog 2\n", "sextant routing catalog ");

/// The state of a router that is stored for the next start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredKnowledge {
    /// The wall-clock time of the coordinators' last answer.
    pub heard_unix_ms: u64,
    /// The moment (one point in time for all buckets) of the coordinators' last answer to a
    /// heartbeat.
    pub moment: u64,
    /// For each index, the newest epoch that scans could read.
    pub floors: EpochFloors,
    /// The last catalog that a coordinator has sent.
    pub catalog: Arc<Catalog>,
}

#[cfg(test)]
#[path = "file_tests.rs"]
pub(super) mod tests;
