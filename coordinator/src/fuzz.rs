//! Entry points for fuzzers: messages of members, records of the log, and snapshots.

use crate::raft::StateMachine;
use crate::raft::wire::{ChangeContext, RaftMessage, sender_of_message};
use crate::replica::{Machine, Replica};
use crate::state::StateContext;

/// The index of the first record that is applied, above all positions in the initial state.
const FIRST_INDEX: u64 = 1_000;

/// Decodes a message between members, with its entries and its snapshot.
pub fn message(data: &[u8]) {
    let sender = sender_of_message(data);
    let Ok(message) = RaftMessage::decode(data) else { return };
    assert_eq!(sender.as_ref(), Ok(&message.from), "the short look has the same sender");
    for entry in &message.entries {
        let _ = ChangeContext::decode(&entry.context);
    }
    if let Some(snapshot) = &message.snapshot {
        let _ = (snapshot.members(), snapshot.state().map(StateContext::from_bytes));
    }
    let (group, entries) = (message.group, message.entries.clone());
    if let Ok(passed) = RaftMessage::from_raft(message.into_raft(), group) {
        assert_eq!(passed.entries, entries, "the crate keeps the entries");
    }
}

/// Decodes a snapshot of any version, and encodes it again.
pub fn snapshot(data: &[u8]) {
    let mut machine = Machine(Replica::new());
    if machine.restore(data).is_err() {
        return;
    }
    let bytes = machine.snapshot().expect("a state that was read can be encoded");
    let again = StateContext::from_bytes(&bytes);
    assert_eq!(again.as_ref(), Ok(&machine.0.view().state), "a state is read as it is written");
}

/// Applies records to a state. Each record is preceded by its length in two bytes. A refused record
/// leaves the state as it was.
pub fn records(base: &[u8], mut data: &[u8]) {
    let mut machine = Machine(Replica::new());
    if !base.is_empty() {
        machine.restore(base).expect("the state to begin with");
    }
    let mut index = FIRST_INDEX;
    while let Some((&[high, low], rest)) = data.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes([high, low])).min(rest.len());
        let (record, behind) = rest.split_at(length);
        let _ = machine.apply(index, record);
        (index, data) = (index + 1, behind);
    }
}
