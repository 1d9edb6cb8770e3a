//! Paths into a value.

use serde::{Deserialize, Serialize};

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Step {
    /// `.name`: a field of an object; MISSING for any other value.
    Field(String),
    /// `[n]`: an element of an array, from 0, or from the end where negative; MISSING outside.
    Index(i64),
}
