//! The records of a log of format 1, whose members never change.

use bytes::Bytes;
use proto::Result;
use serde::{Deserialize, Serialize};

use super::members::Members;
use super::wire::{EntryKind, LogEntry, LogSnapshot};

#[derive(Serialize, Deserialize)]
pub(super) struct EntryBefore {
    pub index: u64,
    pub term: u64,
    pub data: Bytes,
    pub context: Bytes,
}

impl From<EntryBefore> for LogEntry {
    fn from(entry: EntryBefore) -> Self {
        let EntryBefore { index, term, data, context } = entry;
        Self { index, term, data, context, kind: EntryKind::Command }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct SnapshotBefore {
    pub index: u64,
    pub term: u64,
    pub voters: Vec<u64>,
    pub data: Bytes,
}

impl SnapshotBefore {
    /// The snapshot in the present form.
    pub fn upgraded(self, founders: &[u64]) -> Result<LogSnapshot> {
        let members = Members { voters: self.voters, ..Members::new(founders.to_vec()) };
        LogSnapshot::new(self.index, self.term, &members, &self.data)
    }
}
