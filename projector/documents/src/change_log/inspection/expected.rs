//! Checks that a change log has all data that its checkpoint needs.

use proto::model::ids::{Seqno, VbucketId};
use storage::log::Lsn;

use crate::change_log::items::state::{Change, LogState, VbucketState};
use crate::document_store::LogExtent;

/// The data that a checkpoint, and the log items after it, require the log to contain.
pub(super) struct LogRequirements {
    log_id: Option<u64>,
    from: Lsn,
    /// For each vbucket, its position, and the first of its seqnos that the log was found to
    /// have.
    vbuckets: Vec<(VbucketState, Option<Seqno>)>,
}

impl LogRequirements {
    pub(super) fn new(checkpoint: &LogState) -> Self {
        let LogState { log_id, from, ref vbuckets } = *checkpoint;
        Self { log_id, from, vbuckets: vbuckets.iter().map(|state| (*state, None)).collect() }
    }

    /// Updates the requirements with a change that the log contains.
    pub(super) fn change(&mut self, vbucket: VbucketId, change: &Change, lsn: Lsn) {
        let Some((state, first)) = self.vbuckets.get_mut(usize::from(vbucket.0)) else { return };
        match change {
            _ if change.clears_vbucket() => *first = None,
            Change::Run { first: new, .. } => {
                *first = Some(first.map_or(*new, |old| old.min(*new)))
            }
            Change::Rewind { to, .. } => *first = first.filter(|first| first <= to),
            _ => {}
        }
        if lsn >= self.from {
            // A change that does not follow is a gap, which is found elsewhere.
            let _does_not_follow = state.apply(change, lsn);
        }
    }

    /// Returns descriptions of the required data that the log lacks.
    pub(super) fn missing(&self, log_id: Option<u64>, first: Option<Lsn>, end: Lsn) -> Vec<String> {
        let mut missing = Vec::new();
        if self.log_id.is_some() && log_id != self.log_id {
            missing.push("the checkpoint belongs to another log, or the log is missing".into());
        }
        if first.is_none_or(|first| first > self.from) || end < self.from {
            missing.push(format!("the log lacks LSN {}, where the checkpoint ends", self.from));
        }
        for (at, (state, first)) in self.vbuckets.iter().enumerate() {
            let LogExtent { purged, end, .. } = state.extent;
            if end > purged && first.is_none_or(|first| first.0 > purged.0 + 1) {
                let first = first.unwrap_or(Seqno(end.0 + 1));
                missing.push(format!(
                    "vbucket {at} lacks what lies between seqnos {purged} and {first}"
                ));
            }
        }
        missing
    }
}
