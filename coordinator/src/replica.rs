//! A member's copy of the StateContext: the Raft log changes it, and the services read it.
//!
//! The log's task applies commands. Readers hold the lock only while they copy what they need. A counter announces
//! each change, so that no reader polls. A log record holds a command and the time at which the leader proposed it,
//! because the state machine has no clock.

use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use proto::lock::lock;
use proto::model::catalog::Catalog;
use proto::rpc::command::{CommandRequest, Outcome};
use proto::{Error, ErrorCode, Result};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::raft::wire::MESSAGE_BYTES_MAX;
use crate::raft::{MemberChange, StateMachine};
use crate::state::limits::STATE_BYTES_MAX;
use crate::state::{Effect, StateContext};

/// The version of a record's encoding: its first byte.
const RECORD_VERSION: u8 = 10;
/// The version before: its build checks no buckets of commands.
#[cfg(test)]
const BEFORE_NAMED: u8 = 9;
/// The version before that: its build knows no users.
const BEFORE_USERS: u8 = 8;
/// The version before that: its build knows no moments.
const BEFORE_MOMENTS: u8 = 7;
/// The version before that: it lacks the commands about copies of buckets.
const BEFORE_COPIES: u8 = 6;
/// The version before that: it lacks further commands.
const BEFORE_SKIPS: u8 = 5;

/// A message of a snapshot has some numbers besides it.
const ENVELOPE_BYTES_MAX: usize = 64 << 10;

// A snapshot must fit in one message between members.
const _: () = assert!(STATE_BYTES_MAX + ENVELOPE_BYTES_MAX <= MESSAGE_BYTES_MAX);

#[derive(Serialize, Deserialize)]
struct Record {
    unix_ms: u64,
    request: CommandRequest,
}

/// Encodes a command as a log record.
pub fn encode_record(unix_ms: u64, request: CommandRequest) -> Result<Bytes> {
    postcard::to_extend(&Record { unix_ms, request }, vec![RECORD_VERSION])
        .map(Bytes::from)
        .map_err(|error| Error::internal(format!("encode a command: {error}")))
}

fn decode_record(bytes: &[u8]) -> Result<Record> {
    match bytes.split_first() {
        Some((&(BEFORE_SKIPS..=RECORD_VERSION), body)) => postcard::from_bytes(body)
            .map_err(|error| Error::new(ErrorCode::Corrupt, format!("decode a command: {error}"))),
        version => Err(Error::new(
            ErrorCode::Version,
            format!(
                "a command of version {:?}, this build reads {BEFORE_SKIPS} to {RECORD_VERSION}",
                version.map(|v| v.0)
            ),
        )
        .with_hint("run the same version on all coordinators")),
    }
}

/// A member's copy of the state.
pub struct Replica {
    view: Mutex<ReplicaView>,
    changes: watch::Sender<u64>,
    catalog_changes: watch::Sender<u64>,
    users_changes: watch::Sender<u64>,
}

/// The state, and the catalog that is built from it.
pub struct ReplicaView {
    /// The state.
    pub state: StateContext,
    /// The catalog of this state; the same `Arc` until the catalog changes.
    pub catalog: Arc<Catalog>,
}

impl Replica {
    /// An empty state.
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

    /// Locks the state for reading. Callers hold the lock only for a moment.
    pub fn view(&self) -> MutexGuard<'_, ReplicaView> {
        lock(&self.view)
    }

    /// A receiver that wakes at each change.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// A receiver that wakes at each change of the catalog.
    pub fn catalog_changes(&self) -> watch::Receiver<u64> {
        self.catalog_changes.subscribe()
    }

    /// A receiver that wakes at each change of the users.
    pub fn users_changes(&self) -> watch::Receiver<u64> {
        self.users_changes.subscribe()
    }

    fn changed(&self, of_catalog: bool, of_users: bool) {
        self.changes.send_modify(|count| *count += 1);
        if of_catalog {
            self.catalog_changes.send_modify(|count| *count += 1);
        }
        if of_users {
            self.users_changes.send_modify(|count| *count += 1);
        }
    }
}

/// The state machine that maintains a [`Replica`].
pub struct Machine(pub Arc<Replica>);

impl StateMachine for Machine {
    type Outcome = Outcome;

    fn apply(&mut self, index: u64, data: &[u8]) -> Result<Outcome> {
        let record = decode_record(data)?;
        let mut view = self.0.view();
        let (outcome, effects) = view.state.apply(index, record.unix_ms, &record.request);
        if data.first() == Some(&BEFORE_SKIPS) {
            // The build of the record remembers no drops. A member that continues from a snapshot of that build has none either.
            view.state.forget_drops();
        }
        if matches!(data.first(), Some(&(BEFORE_SKIPS | BEFORE_COPIES))) {
            // The build of the record knows no copies, and a snapshot of that build has none.
            view.state.reset_copies();
        }
        if data.first().is_some_and(|version| *version <= BEFORE_MOMENTS) {
            // The same: a member that continues from a snapshot of that build knows no moment before it.
            view.state.begin_moments();
        }
        if data.first().is_some_and(|version| *version <= BEFORE_USERS) {
            // The same: a snapshot of that build has no numbers of users.
            view.state.forget_numbers_of_users();
        }
        let of_catalog = effects.contains(&Effect::CatalogChanged);
        if of_catalog {
            view.catalog = Arc::new(view.state.catalog());
        }
        drop(view);
        if !effects.is_empty() {
            self.0.changed(of_catalog, effects.contains(&Effect::UsersChanged));
        }
        Ok(outcome)
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
        self.0.changed(true, false);
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
        self.0.changed(true, true);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proto::model::bucket::SourceKind;
    use proto::rpc::command::Command;

    use super::*;

    fn record() -> Bytes {
        let command = Command::DropBucket { name: "b".into(), if_exists: true, restrict: false };
        encode_record(5, CommandRequest { request: None, command }).unwrap()
    }

    #[test]
    fn a_record_that_this_build_cannot_read_stops_the_member() {
        let mut machine = Machine(Replica::new());
        assert_eq!(machine.apply(1, &record()).unwrap(), Outcome::Done);
        for version in [BEFORE_NAMED, BEFORE_USERS, BEFORE_MOMENTS, BEFORE_COPIES, BEFORE_SKIPS] {
            let mut older = record().to_vec();
            older[0] = version;
            assert_eq!(machine.apply(2, &older).unwrap(), Outcome::Done);
        }
        let mut newer = record().to_vec();
        newer[0] = RECORD_VERSION + 1;
        assert_eq!(machine.apply(2, &newer).unwrap_err().code, ErrorCode::Version);
        assert_eq!(machine.apply(2, &record()[..3]).unwrap_err().code, ErrorCode::Corrupt);
    }

    /// Members that restart with this build have their last snapshots at different positions.
    #[test]
    fn a_record_of_the_version_before_leaves_the_same_state_as_a_snapshot_behind_it() {
        let state = crate::state::unique_tests::of_an_earlier_build();
        let mut replays = Machine(Replica::new());
        replays.restore(&state.to_bytes_before_skips()).unwrap();
        let mut record = record().to_vec();
        record[0] = BEFORE_SKIPS;
        replays.apply(50, &record).unwrap();
        let replayed = replays.0.view();
        assert_eq!(replayed.state.buckets().count(), 0);
        let mut continues = Machine(Replica::new());
        continues.restore(&replayed.state.to_bytes_before_skips()).unwrap();
        let continued = continues.0.view();
        assert_eq!(continued.state, replayed.state);
        assert_eq!(continued.catalog, replayed.catalog);
    }

    /// The build of the record has no copies, so its snapshot has no terms that `--skip-epochs` could raise.
    #[test]
    fn a_record_before_copies_leaves_the_same_copies_as_a_snapshot_behind_it() {
        let state = crate::state::tests::with_bucket_of(SourceKind::Embedded);
        let mut replays = Machine(Replica::new());
        replays.restore(&state.to_bytes_before_copies()).unwrap();
        let command = Command::SkipEpochs(Default::default());
        let skip = encode_record(5, CommandRequest { request: None, command }).unwrap();
        replays.apply(50, &[&[BEFORE_COPIES], &skip[1..]].concat()).unwrap();
        let replayed = replays.0.view();
        let mut continues = Machine(Replica::new());
        continues.restore(&replayed.state.to_bytes_before_copies()).unwrap();
        assert_eq!(continues.0.view().state, replayed.state);
    }

    /// The same for the numbers of users, which `--skip-epochs` raises.
    #[test]
    fn a_record_before_users_leaves_the_same_users_as_a_snapshot_behind_it() {
        let state = crate::state::tests::with_bucket_of(SourceKind::Embedded);
        let mut replays = Machine(Replica::new());
        replays.restore(&state.to_bytes_before_users()).unwrap();
        let command = Command::SkipEpochs(Default::default());
        let skip = encode_record(5, CommandRequest { request: None, command }).unwrap();
        replays.apply(50, &[&[BEFORE_USERS], &skip[1..]].concat()).unwrap();
        let replayed = replays.0.view();
        let mut continues = Machine(Replica::new());
        continues.restore(&replayed.state.to_bytes_before_users()).unwrap();
        assert_eq!(continues.0.view().state, replayed.state);
    }

    #[test]
    fn a_restored_copy_equals_the_original() {
        let mut state = crate::state::tests::with_bucket();
        state.apply(50, 9, &decode_record(&record()).unwrap().request);
        let mut machine = Machine(Replica::new());
        let changes = machine.0.changes();
        machine.restore(&state.to_bytes().unwrap()).unwrap();
        assert_eq!(machine.0.view().state, state);
        assert_eq!(*machine.0.view().catalog, state.catalog());
        assert!(changes.has_changed().unwrap());
    }
}
