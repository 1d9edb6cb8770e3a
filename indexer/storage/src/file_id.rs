//! Numbers of a node's files.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Number of a file of a node. Numbers only grow, and no number is used twice, even if no manifest
/// ever named its file.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct FileId(pub u64);

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
