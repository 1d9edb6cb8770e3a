//! Changes of the log, which the core emits and the stores apply.

use raft::eraftpb::{Entry, HardState};

use super::wire::LogSnapshot;

/// One change of the log.
#[derive(Clone, Debug)]
pub enum LogOp {
    /// Vote, term and commit index.
    HardState(HardState),
    /// Appends entries. They replace the log from the index of the first one.
    Append(Vec<Entry>),
    /// This member's own snapshot. Entries stay until they are dropped.
    Snapshot(LogSnapshot),
    /// A snapshot from the leader. The log restarts after it.
    Reset(LogSnapshot),
    /// Drops the entries up to this index and keeps the term of the last one.
    DropThrough {
        /// The last entry to drop.
        index: u64,
        /// The term of the last dropped entry.
        term: u64,
    },
}

impl LogOp {
    /// Returns true if the change leaves free space in the file.
    pub(super) fn frees(&self) -> bool {
        matches!(self, Self::Snapshot(_) | Self::Reset(_) | Self::DropThrough { .. })
    }
}

/// Changes that become durable together.
#[derive(Clone, Debug, Default)]
pub struct LogWrite {
    /// The number with which the write is confirmed.
    pub number: u64,
    /// The changes, in order.
    pub ops: Vec<LogOp>,
}
