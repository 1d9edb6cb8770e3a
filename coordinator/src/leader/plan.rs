//! A plan of the leader: commands to propose and copies to compare.

use proto::rpc::command::Command;

use super::copies::check::CopyCheck;

/// The next actions of the leader: commands to propose, and copies to compare.
#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    /// Commands to propose now.
    pub commands: Vec<Command>,
    /// Copies to compare. [`Leader::finish_check`](super::Leader::finish_check) receives each result.
    pub checks: Vec<CopyCheck>,
    /// The time of the next plan, in ms, unless a report causes one before.
    pub next_ms: Option<u64>,
}

impl Plan {
    /// Makes the leader plan again at the time `at_ms`, or earlier.
    pub(super) fn plan_again_at(&mut self, at_ms: u64) {
        self.next_ms = Some(self.next_ms.map_or(at_ms, |next_ms| next_ms.min(at_ms)));
    }
}
