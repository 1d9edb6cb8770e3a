//! Documents that an index leaves out because they exceed a limit, counted by reason.

use serde::{Deserialize, Serialize};

/// The reason why an index leaves out a document: the limit that the document exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOutReason {
    /// A key is too long.
    KeyTooLong,
    /// The included values are too long.
    IncludeTooLong,
    /// An array key has too many elements.
    TooManyEntries,
    /// The entries of the document are too long together.
    EntriesTooLong,
    /// The expressions of the index cost too much.
    TooCostly,
}

/// The number of documents that an index has left out, by reason. A document counts again each
/// time that it is changed and left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// A key was too long.
    pub key_too_long: u64,
    /// The included values were too long.
    pub include_too_long: u64,
    /// An array key had too many elements.
    pub too_many_entries: u64,
    /// The entries were too long together.
    pub entries_too_long: u64,
    /// The expressions of the index cost too much.
    pub too_costly: u64,
}

impl LeftOut {
    /// Counts a document.
    pub fn count(&mut self, reason: LeftOutReason) {
        *match reason {
            LeftOutReason::KeyTooLong => &mut self.key_too_long,
            LeftOutReason::IncludeTooLong => &mut self.include_too_long,
            LeftOutReason::TooManyEntries => &mut self.too_many_entries,
            LeftOutReason::EntriesTooLong => &mut self.entries_too_long,
            LeftOutReason::TooCostly => &mut self.too_costly,
        } += 1;
    }

    /// Adds the documents that another projector has counted.
    pub fn add(&mut self, other: &Self) {
        self.key_too_long += other.key_too_long;
        self.include_too_long += other.include_too_long;
        self.too_many_entries += other.too_many_entries;
        self.entries_too_long += other.entries_too_long;
        self.too_costly += other.too_costly;
    }

    /// Returns each count with a text that states its reason.
    pub fn by_reason(&self) -> [(&'static str, u64); 5] {
        [
            ("key_too_long", self.key_too_long),
            ("include_too_long", self.include_too_long),
            ("too_many_entries", self.too_many_entries),
            ("entries_too_long", self.entries_too_long),
            ("too_costly", self.too_costly),
        ]
    }

    /// Returns the sum of the counts of all reasons.
    pub fn total(&self) -> u64 {
        self.by_reason().iter().map(|(_, count)| count).sum()
    }
}
