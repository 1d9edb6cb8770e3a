//! A plan of the leader.

use proto::rpc::command::Command;

use super::copies::check::CopyCheck;

/// The commands to propose and the checks to run.
#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    /// Commands to propose now.
    pub commands: Vec<Command>,
    /// Copies to compare. [`Leader::finish_check`](super::Leader::finish_check) receives each result.
    pub checks: Vec<CopyCheck>,
    /// The time of the next plan, if nothing happens before.
    pub next_ms: Option<u64>,
}

impl Plan {
    /// Requests the next plan at this time, in ms, at the latest.
    pub(super) fn look_at(&mut self, at_ms: u64) {
        self.next_ms = Some(self.next_ms.map_or(at_ms, |next_ms| next_ms.min(at_ms)));
    }
}
