//! A member's copy of the StateContext: the Raft log changes it, and the services read it.
//!
//! The log's task applies commands. Readers hold the lock only while they copy what they need. A
//! counter announces each change, so that no reader polls. A log record contains a proposal and the
//! leader's decisions about it, because the state machine has no clock and no random numbers.

use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use proto::lock::lock;
use proto::model::catalog::Catalog;
use proto::rpc::command::{AppliedCommand, Proposal};
use proto::{Error, ErrorCode, Result};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::raft::wire::MESSAGE_BYTES_MAX;
use crate::raft::{MemberChange, StateMachine};
use crate::state::capacity::table::STATE_BYTES_MAX;
use crate::state::{Decisions, Effect, StateContext};

/// The version of a record's encoding: its first byte.
const RECORD_VERSION: u8 = 2;

/// The size limit of the bytes of a message in addition to its snapshot.
const ENVELOPE_BYTES_MAX: usize = 64 << 10;

// A snapshot must fit in one message between members.
const _: () = assert!(STATE_BYTES_MAX + ENVELOPE_BYTES_MAX <= MESSAGE_BYTES_MAX);

/// A command in the log, as it is encoded: the proposal and the leader's decisions about it.
#[derive(Serialize, Deserialize)]
struct Record {
    decided: Decisions,
    proposal: Proposal,
}

/// Encodes a proposal and the leader's decisions about it as a log record.
pub fn encode_record(decided: Decisions, proposal: Proposal) -> Result<Bytes> {
    postcard::to_extend(&Record { decided, proposal }, vec![RECORD_VERSION])
        .map(Bytes::from)
        .map_err(|error| Error::internal(format!("encode a command: {error}")))
}

fn decode_record(bytes: &[u8]) -> Result<Record> {
    match bytes.split_first() {
        Some((&RECORD_VERSION, body)) => postcard::from_bytes(body)
            .map_err(|error| Error::new(ErrorCode::Corrupt, format!("decode a command: {error}"))),
        version => Err(Error::new(
            ErrorCode::Version,
            format!(
                "a command of version {:?}, this build reads version {RECORD_VERSION}",
                version.map(|v| v.0)
            ),
        )
        .with_hint("run the same version on all coordinators")),
    }
}

/// A member's copy of the state, with counters by which readers notice changes.
pub struct Replica {
    view: Mutex<ReplicaView>,
    changes: watch::Sender<u64>,
    catalog_changes: watch::Sender<u64>,
    users_changes: watch::Sender<u64>,
}

/// The state, and the catalog that is derived from it.
pub struct ReplicaView {
    /// The replicated state that this member has applied.
    pub state: StateContext,
    /// The catalog of this state; one `Arc` until the catalog changes.
    pub catalog: Arc<Catalog>,
}

impl Replica {
    /// Creates a replica with an empty state.
    pub fn new() -> Arc<Self> {
        let state = StateContext::default();
        let catalog = Arc::new(state.catalog());
        Arc::new(Self {
            view: Mutex::new(ReplicaView { state, catalog }),
            changes: watch::channel(0).0,
            catalog_changes: watch::channel(0).0,
            users_changes: watch::channel(0).0,
        })
    }

    /// Locks the state for reading. Callers hold the lock only briefly.
    pub fn view(&self) -> MutexGuard<'_, ReplicaView> {
        lock(&self.view)
    }

    /// Returns a receiver that wakes at each change of the state.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Returns a receiver that wakes at each change of the catalog.
    pub fn catalog_changes(&self) -> watch::Receiver<u64> {
        self.catalog_changes.subscribe()
    }

    /// Returns a receiver that wakes at each change of the users.
    pub fn users_changes(&self) -> watch::Receiver<u64> {
        self.users_changes.subscribe()
    }

    /// Counts a change, so that waiting readers wake.
    fn wake_readers(&self, of_catalog: bool, of_users: bool) {
        self.changes.send_modify(|count| *count += 1);
        if of_catalog {
            self.catalog_changes.send_modify(|count| *count += 1);
        }
        if of_users {
            self.users_changes.send_modify(|count| *count += 1);
        }
    }
}

/// The state machine that applies the log's commands to a [`Replica`].
pub struct Machine(pub Arc<Replica>);

impl StateMachine for Machine {
    type Outcome = AppliedCommand;

    fn apply(&mut self, index: u64, data: &[u8]) -> Result<AppliedCommand> {
        let record = decode_record(data)?;
        let mut view = self.0.view();
        let (outcome, effects) = view.state.apply(index, &record.decided, &record.proposal);
        let of_catalog = effects.contains(&Effect::CatalogChanged);
        if of_catalog {
            view.catalog = Arc::new(view.state.catalog());
        }
        let catalog_cas = view.state.catalog_cas();
        drop(view);
        if !effects.is_empty() {
            self.0.wake_readers(of_catalog, effects.contains(&Effect::UsersChanged));
        }
        Ok(AppliedCommand { outcome, catalog_cas })
    }

    fn change_members(&mut self, index: u64, change: &MemberChange) -> Result<()> {
        let mut view = self.0.view();
        let effects = match change {
            MemberChange::Add { node, address } => {
                view.state.add_coordinator(index, *node, address)?
            }
            MemberChange::Promote { .. } => Vec::new(),
            MemberChange::Remove { node } => view.state.remove_coordinator(index, *node),
        };
        if effects.is_empty() {
            return Ok(());
        }
        view.catalog = Arc::new(view.state.catalog());
        drop(view);
        self.0.wake_readers(true, false);
        Ok(())
    }

    fn snapshot(&self) -> Result<Vec<u8>> {
        self.0.view().state.to_bytes()
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<()> {
        let state = StateContext::from_bytes(snapshot)?;
        let mut view = self.0.view();
        *view = ReplicaView { catalog: Arc::new(state.catalog()), state };
        drop(view);
        self.0.wake_readers(true, true);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proto::rpc::command::{CancelMoves, Outcome};

    use super::*;

    fn record() -> Bytes {
        let command = CancelMoves { index: None };
        encode_record(Decisions::at(5), command.into()).unwrap()
    }

    #[test]
    fn a_record_that_this_build_cannot_read_stops_the_member() {
        let mut machine = Machine(Replica::new());
        assert_eq!(machine.apply(1, &record()).unwrap().outcome, Outcome::Moves(Vec::new()));
        let mut newer = record().to_vec();
        newer[0] = RECORD_VERSION + 1;
        assert_eq!(machine.apply(2, &newer).unwrap_err().code, ErrorCode::Version);
        assert_eq!(machine.apply(2, &record()[..3]).unwrap_err().code, ErrorCode::Corrupt);
    }

    #[test]
    fn a_restored_copy_equals_the_original() {
        let mut state = crate::state::tests::with_bucket();
        state.apply(50, &Decisions::at(9), &decode_record(&record()).unwrap().proposal);
        let mut machine = Machine(Replica::new());
        let changes = machine.0.changes();
        machine.restore(&state.to_bytes().unwrap()).unwrap();
        assert_eq!(machine.0.view().state, state);
        assert_eq!(*machine.0.view().catalog, state.catalog());
        assert!(changes.has_changed().unwrap());
    }
}
