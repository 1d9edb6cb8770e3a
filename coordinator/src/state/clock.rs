//! The counters of changes, and the log position and the time of the last command.

use serde::{Deserialize, Serialize};

/// The longest time by which one command moves the steady clock, in ms.
const STEP_MS_MAX: u64 = 10_000;

/// The counters of changes, and the log position and the time of the last command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Clock {
    /// The number of changes so far.
    cas: u64,
    /// The value of `cas` after the last change of the catalog. Most changes are promotions, which leave the catalog
    /// alone.
    catalog_cas: u64,
    /// The log position of the last command.
    position: u64,
    unix_ms: u64,
    /// The time of day at which the last command was proposed, in Unix milliseconds.
    told_ms: u64,
    /// A steady clock, in ms: a jump of the time of day moves it by [`STEP_MS_MAX`] at most. It
    /// measures the age of rollback points.
    steady_ms: u64,
    /// The offset that turns log positions into revisions. `--skip-epochs` raises it, so that new
    /// revisions are larger than all that nodes have received.
    revisions_above: u64,
}

/// The numbers that belong to the command that is being applied.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommandNumbers {
    /// The value of `cas` after the command, if the command changes the state.
    pub(super) cas: u64,
    pub(super) position: u64,
    /// The new revision of an index that the command changes.
    pub(super) revision: u64,
    pub(super) unix_ms: u64,
    pub(super) steady_ms: u64,
}

impl Clock {
    pub(super) fn cas(&self) -> u64 {
        self.cas
    }

    pub(super) fn catalog_cas(&self) -> u64 {
        self.catalog_cas
    }

    pub(super) fn now(&self) -> CommandNumbers {
        let Self { position, unix_ms, steady_ms, .. } = *self;
        let revision = position + self.revisions_above;
        CommandNumbers { cas: self.cas + 1, position, revision, unix_ms, steady_ms }
    }

    /// Sets the log position to that of the next entry.
    pub(super) fn set_position(&mut self, position: u64) {
        self.position = position;
    }

    /// Sets the times by the time of day at which the next command was proposed.
    pub(super) fn set_time(&mut self, unix_ms: u64) {
        let passed_ms = unix_ms.saturating_sub(std::mem::replace(&mut self.told_ms, unix_ms));
        self.steady_ms += passed_ms.min(STEP_MS_MAX);
        // The clock of a new leader may be slower than that of the old one.
        self.unix_ms = self.unix_ms.max(unix_ms);
    }

    /// Counts a change of the state, and of the catalog with `of_catalog`. Returns the number of
    /// the change.
    pub(super) fn count_change(&mut self, of_catalog: bool) -> u64 {
        self.cas += 1;
        if of_catalog {
            self.catalog_cas = self.cas;
        }
        self.cas
    }

    /// Lets all further numbers of changes and revisions begin above `above`.
    pub(super) fn continue_above(&mut self, above: u64) {
        (self.cas, self.revisions_above) = (above, above);
    }
}
