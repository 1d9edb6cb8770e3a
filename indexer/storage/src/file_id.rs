//! The numbers of a node's files.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The number of a file of a node; it grows and is never used twice, whatever becomes of the file.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct FileId(pub u64);

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
