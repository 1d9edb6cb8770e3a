//! The steps of a path from a value to a value inside it, such as `address.city` or `tags[0]`.

use serde::{Deserialize, Serialize};

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Step {
    /// `.name`: a field of an object; MISSING for any other value.
    Field(String),
    /// `[n]`: an element of an array, counted from 0, or from the end if `n` is negative; MISSING
    /// outside the array.
    Index(i64),
}
