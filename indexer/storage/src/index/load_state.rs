//! Load states of an index on a node: a state machine with the numbered states 0 to 7, and how each
//! state answers requests.
//!
//! ```text
//! Unknown ─Load─▶ ReadingManifest ─▶ ReplayingLog ─▶ SavingManifest ─▶ LoadingFragments ─▶ Active
//!    ▲                                                                                    │
//!    └───────────────────────────── SavingLast ◀─MemoryFlushed─ ReadOnly ◀─────Unload─────┘
//! ```
//!
//! Why this order is safe: no write is acknowledged before the manifest that names this node's log
//! is durable (3 → 4), so a crash at any time leaves a manifest that names all data. The manifest
//! without that log is written (7 → 0) only when the fragments contain all data. The durability of
//! an epoch is never a property of a single index: the node has one log, and durability is reported
//! for whole buckets.
//!
//! A load that fails stays in its state. This file only decides; `recover/load.rs` does the work.

use proto::{Error, Result};

use crate::read::slice_fragments::UnopenedPolicy;

/// The load state of an index on this node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoadState {
    /// 0: the index is not on this node.
    #[default]
    Unknown,
    /// 1: the manifest is being read.
    ReadingManifest,
    /// 2: the fragments are known; the log that the manifest names is being replayed.
    ReplayingLog,
    /// 3: the log is replayed; the manifest that names the index and this log is being saved.
    SavingManifest,
    /// 4: the manifest is synced; the fragments are being opened.
    LoadingFragments,
    /// 5: the index is served.
    Active,
    /// 6: the index is being unloaded; its memory is being flushed.
    ReadOnly,
    /// 7: all data is in fragments and readers are disconnected; the manifest without the log is
    /// being saved.
    SavingLast,
}

/// Event that moves an index to its next state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadEvent {
    /// The request to load the index.
    Load,
    /// The manifest was read.
    ManifestRead,
    /// The log was replayed.
    LogReplayed,
    /// The manifest was synced.
    ManifestSaved,
    /// The fragments were opened.
    FragmentsLoaded,
    /// The request to unload the index.
    Unload,
    /// Memory was written to synced fragments.
    MemoryFlushed,
}

/// The kinds of requests that a load state answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadRequest {
    /// Read rows.
    Read,
    /// Apply an epoch.
    Write,
}

/// The way in which a load state answers a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Serve the request now.
    Serve,
    /// Let the request wait for a later state.
    Defer,
    /// Refuse the request with an error.
    Refuse,
}

impl LoadState {
    /// Returns the state after an event; an error if the event is impossible in this state.
    pub fn state_after(self, event: LoadEvent) -> Result<Self> {
        use LoadEvent::*;
        match (self, event) {
            (Self::Unknown, Load) => Ok(Self::ReadingManifest),
            (Self::ReadingManifest, ManifestRead) => Ok(Self::ReplayingLog),
            (Self::ReplayingLog, LogReplayed) => Ok(Self::SavingManifest),
            (Self::SavingManifest, ManifestSaved) => Ok(Self::LoadingFragments),
            (Self::LoadingFragments, FragmentsLoaded) => Ok(Self::Active),
            (Self::Active, Unload) => Ok(Self::ReadOnly),
            (Self::ReadOnly, MemoryFlushed) => Ok(Self::SavingLast),
            (Self::SavingLast, ManifestSaved) => Ok(Self::Unknown),
            _ => Err(Error::internal(format!(
                "load event {event:?} is impossible in load state {self:?}"
            ))),
        }
    }

    /// Returns true in the states from the beginning of a load until the index is served.
    pub fn is_loading(self) -> bool {
        (Self::ReadingManifest..=Self::LoadingFragments).contains(&self)
    }

    /// Returns how a read view of the index treats fragments that are not open in this state.
    pub fn unopened_policy(self) -> UnopenedPolicy {
        if self.is_loading() { UnopenedPolicy::LeftOut } else { UnopenedPolicy::Missing }
    }

    /// Returns the answer to a request in this state.
    pub fn answer(self, request: LoadRequest) -> Answer {
        match (self, request) {
            (Self::Unknown, _) => Answer::Refuse,
            (Self::ReadingManifest | Self::ReplayingLog | Self::SavingManifest, _) => Answer::Defer,
            // Writes are safe here: the manifest names this log, so a replay finds them.
            (Self::LoadingFragments, LoadRequest::Read) => Answer::Defer,
            (Self::LoadingFragments, LoadRequest::Write) => Answer::Serve,
            (Self::Active, _) => Answer::Serve,
            (Self::ReadOnly, LoadRequest::Read) => Answer::Serve,
            (Self::ReadOnly, LoadRequest::Write) => Answer::Refuse,
            (Self::SavingLast, _) => Answer::Refuse,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use LoadState::*;

    const STATES: [LoadState; 8] = [
        Unknown,
        ReadingManifest,
        ReplayingLog,
        SavingManifest,
        LoadingFragments,
        Active,
        ReadOnly,
        SavingLast,
    ];

    #[test]
    fn each_state_answers_as_documented() {
        use Answer::{Defer, Refuse, Serve};
        //             read    write
        let table = [
            /* 0 */ [Refuse, Refuse],
            /* 1 */ [Defer, Defer],
            /* 2 */ [Defer, Defer],
            /* 3 */ [Defer, Defer],
            /* 4 */ [Defer, Serve],
            /* 5 */ [Serve, Serve],
            /* 6 */ [Serve, Refuse],
            /* 7 */ [Refuse, Refuse],
        ];
        for (number, (state, expected)) in STATES.iter().zip(table).enumerate() {
            let requests = [LoadRequest::Read, LoadRequest::Write];
            assert_eq!(requests.map(|request| state.answer(request)), expected, "state {number}");
        }
    }

    #[test]
    fn load_states_follow_one_order() {
        use LoadEvent::*;
        let life = [
            (Load, ReadingManifest),
            (ManifestRead, ReplayingLog),
            (LogReplayed, SavingManifest),
            (ManifestSaved, LoadingFragments),
            (FragmentsLoaded, Active),
            (Unload, ReadOnly),
            (MemoryFlushed, SavingLast),
            (ManifestSaved, Unknown),
        ];
        for (state, (event, next)) in STATES.into_iter().zip(life) {
            assert_eq!(state.state_after(event).unwrap(), next);
            for other in life.map(|(event, _)| event) {
                assert_eq!(
                    state.state_after(other).is_ok(),
                    other == event,
                    "{other:?} in {state:?}"
                );
            }
        }
    }

    #[test]
    fn nothing_is_acknowledged_before_the_manifest_names_the_log() {
        for state in STATES {
            let acknowledges = state.answer(LoadRequest::Write) == Answer::Serve;
            assert_eq!(acknowledges, [LoadingFragments, Active].contains(&state), "{state:?}");
        }
    }
}
