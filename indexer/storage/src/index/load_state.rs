//! The life of a slice on a node: states 0 to 7 of the tablet server's notes, and what each does with
//! the requests that come meanwhile.
//!
//! ```text
//! Unknown ─Load─▶ ReadingManifest ─▶ ReplayingLog ─▶ SavingManifest ─▶ LoadingFragments ─▶ Active
//!    ▲                                                                                    │
//!    └───────────────────────────── SavingLast ◀─MemoryFlushed─ ReadOnly ◀─────Unload─────┘
//! ```
//!
//! Why the order is safe: nothing is acknowledged before the manifest that names this node's log is
//! durable (3 → 4), so a crash at any time finds a manifest that says where everything is; and the
//! manifest without that log is written (7 → 0) only when the fragments have all of it. Whether what was
//! applied is durable is not a slice's to say: the log is the node's, and told for whole buckets.
//!
//! A load that cannot go on stays where it is. This file only decides; `loading` does the work.

use proto::{Error, Result};

use crate::read::slice_fragments::Unopened;

/// Where a slice is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoadState {
    /// 0: it is not here.
    #[default]
    Unknown,
    /// 1: a placeholder; the manifest is being read.
    ReadingManifest,
    /// 2: the fragments are known; the log that the manifest names is being replayed.
    ReplayingLog,
    /// 3: the log is replayed; the manifest that says that the slice is here, and in this log, is being
    /// saved.
    SavingManifest,
    /// 4: that manifest is synced; the fragments are being opened.
    LoadingFragments,
    /// 5: it is served.
    Active,
    /// 6: it is being unloaded; what is in memory is written to fragments.
    ReadOnly,
    /// 7: all is in fragments and readers are disconnected; the manifest that needs no log is being
    /// saved.
    SavingLast,
}

/// What moves a slice on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadEvent {
    /// The node is told to load it.
    Load,
    /// Its manifest is read.
    ManifestRead,
    /// The log is replayed.
    LogReplayed,
    /// The manifest is synced.
    ManifestSaved,
    /// The fragments are open.
    FragmentsLoaded,
    /// The node is told to unload it.
    Unload,
    /// What was in memory is in synced fragments.
    MemoryFlushed,
}

/// What somebody wants of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadRequest {
    /// Rows.
    Read,
    /// To apply an epoch.
    Write,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is served now.
    Serve,
    /// It waits, and is answered again in the next state.
    Defer,
    /// It is an error.
    Refuse,
}

impl LoadState {
    /// The state after an event; an error if the event cannot happen in this state, and nothing is
    /// changed.
    pub fn after(self, event: LoadEvent) -> Result<Self> {
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
            _ => Err(Error::internal(format!("{event:?} in the state {self:?} of a slice"))),
        }
    }

    /// Is it on its way to be served?
    pub fn is_loading(self) -> bool {
        (Self::ReadingManifest..=Self::LoadingFragments).contains(&self)
    }

    /// What becomes of fragments that are not open in this state.
    pub fn unopened(self) -> Unopened {
        if self.is_loading() { Unopened::LeftOut } else { Unopened::Missing }
    }

    /// What becomes of a request.
    pub fn answer(self, request: LoadRequest) -> Answer {
        match (self, request) {
            (Self::Unknown, _) => Answer::Refuse,
            (Self::ReadingManifest | Self::ReplayingLog | Self::SavingManifest, _) => Answer::Defer,
            // The manifest names this log: what goes into it is found again.
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
    fn each_state_answers_as_the_notes_say() {
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
    fn a_slice_goes_through_the_states_in_order_and_no_other_way() {
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
            assert_eq!(state.after(event).unwrap(), next);
            for other in life.map(|(event, _)| event) {
                assert_eq!(state.after(other).is_ok(), other == event, "{other:?} in {state:?}");
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
