//! Changes of the log: the core returns them, the log stores apply them.

use raft::eraftpb::{Entry, HardState};

use super::wire::LogSnapshot;

/// One change of the log.
#[derive(Clone, Debug)]
pub enum LogOp {
    /// Vote, term and commit index.
    HardState(HardState),
    /// Appends entries. They replace the log from the index of the first one.
    Append(Vec<Entry>),
    /// A snapshot that this member has taken itself. The entries in the log stay until they are
    /// dropped.
    Snapshot(LogSnapshot),
    /// A snapshot from the leader. It replaces the log, which continues after it.
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
    /// Returns true if the change removes entries, and so leaves free space in the file.
    pub(super) fn frees_space(&self) -> bool {
        matches!(self, Self::Snapshot(_) | Self::Reset(_) | Self::DropThrough { .. })
    }
}

/// Changes of the log that become durable together.
#[derive(Clone, Debug, Default)]
pub struct LogWrite {
    /// The number by which [`RaftCore::persisted`](super::core::RaftCore::persisted) confirms the
    /// write.
    pub number: u64,
    /// The changes, in order.
    pub ops: Vec<LogOp>,
}
