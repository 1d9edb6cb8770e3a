//! The positions of a bucket's vbuckets in its change log, and how items of the log change them.

use proto::model::ids::Seqno;
use serde::{Deserialize, Serialize};
use storage::log::Lsn;

use crate::document_store::LogExtent;

/// The position of one vbucket in a change log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VbucketState {
    /// The retained range of the vbucket's log.
    pub extent: LogExtent,
    /// The LSN at which the vbucket's log began, or its data was removed. Earlier mutations of
    /// the vbucket are invalid.
    pub begun: Lsn,
}

/// The state of a change log that a checkpoint must store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogState {
    /// The random id of the log; `None` if the log was never opened.
    pub log_id: Option<u64>,
    /// The LSN up to which the checkpoint covers the log.
    pub from: Lsn,
    /// The position of each vbucket at `from`.
    pub vbuckets: Vec<VbucketState>,
}

impl LogState {
    /// Returns the state for a log that does not exist yet.
    pub fn new(vbuckets: u16) -> Self {
        let vbuckets = vec![VbucketState::default(); usize::from(vbuckets)];
        Self { log_id: None, from: 0, vbuckets }
    }
}

/// A change of the position of one vbucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::change_log) enum Change {
    Run { first: Seqno, last: Seqno, bytes_before: u64, bytes: u64, item_bytes: u32 },
    Rewind { to: Seqno, bytes: u64 },
    Remove,
    Begin { purged: Seqno },
    Purge { to: Seqno, bytes: u64 },
}

impl Change {
    /// Returns true if the change makes all earlier data of the vbucket invalid.
    pub(in crate::change_log) fn clears_vbucket(&self) -> bool {
        match self {
            Self::Remove | Self::Begin { .. } => true,
            Self::Rewind { to, .. } => to.0 == 0,
            Self::Run { .. } | Self::Purge { .. } => false,
        }
    }
}

impl VbucketState {
    /// Applies a change whose item is at an LSN. The error is the reason why the change cannot
    /// follow the present position.
    pub(in crate::change_log) fn apply(&mut self, change: &Change, lsn: Lsn) -> Result<(), String> {
        let LogExtent { purged, end, bytes_end, .. } = self.extent;
        match *change {
            Change::Run { first, last, bytes_before, bytes, .. } => {
                if first.0 != end.0 + 1 || bytes_before != bytes_end {
                    return Err(format!(
                        "seqno {first} behind {bytes_before} bytes does not follow seqno {end} and {bytes_end} bytes"
                    ));
                }
                self.extent.end = last;
                self.extent.bytes_end = bytes_before + bytes;
            }
            Change::Begin { purged } => {
                if end.0 > 0 {
                    return Err(format!("the vbucket begins again, and has seqno {end}"));
                }
                self.extent = LogExtent { purged, end: purged, ..LogExtent::default() };
                self.begun = lsn;
            }
            _ if change.clears_vbucket() => {
                *self = Self { extent: LogExtent::default(), begun: lsn }
            }
            Change::Rewind { to, bytes } => {
                if to < purged || to > end {
                    return Err(format!("the vbucket goes back from seqno {end} to {to}"));
                }
                (self.extent.end, self.extent.bytes_end) = (to, bytes);
            }
            Change::Purge { to, bytes } => {
                if to < purged || to > end {
                    return Err(format!("the log from {purged} to {end} is purged up to {to}"));
                }
                (self.extent.purged, self.extent.bytes_purged) = (to, bytes);
            }
            Change::Remove => {}
        }
        Ok(())
    }
}
