//! Changes of the log, as the core hands them out and the stores take them.

use raft::eraftpb::{Entry, HardState};

use super::wire::LogSnapshot;

/// One change of the log.
#[derive(Clone, Debug)]
pub enum LogOp {
    /// Vote, term and commit index.
    HardState(HardState),
    /// Entries; they replace what is at and after the first one's index.
    Append(Vec<Entry>),
    /// This member's own snapshot; entries stay until they are dropped.
    Snapshot(LogSnapshot),
    /// A snapshot from the leader; the log begins anew behind it.
    Reset(LogSnapshot),
    /// Forget the entries up to and including the index, whose term is kept.
    DropThrough {
        /// The last entry to forget.
        index: u64,
        /// Its term.
        term: u64,
    },
}

/// Changes that become durable together.
#[derive(Clone, Debug, Default)]
pub struct LogWrite {
    /// To be reported back when it is durable.
    pub number: u64,
    /// In order.
    pub ops: Vec<LogOp>,
}
