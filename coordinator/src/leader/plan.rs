//! What the leader wants done.

use proto::rpc::command::Command;

use super::check::Check;

/// What is to be done.
#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    /// To be proposed now.
    pub commands: Vec<Command>,
    /// Copies to be compared; what comes out is to be told to [`Leader::checked`](super::Leader::checked).
    pub checks: Vec<Check>,
    /// When to look again, if nothing happens before.
    pub next_ms: Option<u64>,
}

impl Plan {
    /// Looks again at this time at the latest.
    pub(super) fn look_at(&mut self, at_ms: u64) {
        self.next_ms = Some(self.next_ms.map_or(at_ms, |next_ms| next_ms.min(at_ms)));
    }
}
