//! The snapshots of a member: those that it takes to keep its log short, and those that the leader
//! sends.
//!
//! A snapshot contains the members: voters and learners in Raft's form; founders and removed node
//! ids at the beginning of the data. A member that starts without any members grants no vote until
//! it receives a snapshot that contains it.

use proto::Result;
use raft::eraftpb::HardState;

use super::core::RaftCore;
use super::log_write::LogOp;
use super::state_machine::StateMachine;
use super::wire::LogSnapshot;

impl<M: StateMachine> RaftCore<M> {
    /// Replaces the log and the state of this member with the leader's snapshot.
    pub(super) fn install(&mut self, snapshot: &LogSnapshot) -> Result<()> {
        self.machine.restore(snapshot.state()?).map_err(|error| {
            error.context(format!("restore the snapshot at {}", snapshot.index))
        })?;
        self.members = snapshot.members()?;
        self.snapshot_is_due = false;
        self.node.mut_store().reset_to(snapshot.clone());
        self.applied = snapshot.index;
        self.applied_bytes_since_snapshot = 0;
        Ok(())
    }

    /// Takes a snapshot of the state if the log has become long or the members have changed, and
    /// drops old entries. The snapshot is written with the next write that is synced.
    pub(super) fn take_snapshot_if_due(&mut self) -> Result<()> {
        let store = self.node.store();
        let entries = self.applied - store.snapshot_index();
        if !self.snapshot_is_due
            && entries < self.config.snapshot_entries
            && self.applied_bytes_since_snapshot < self.config.snapshot_bytes
        {
            return Ok(());
        }
        let Some(term) = store.term_of(self.applied) else { return Ok(()) };
        // A new member cannot begin with the first entry of the log, so a log in which the members have changed has none.
        let keep_from = store
            .droppable_until(self.applied, self.config.keep_entries, self.config.keep_bytes)
            .max(u64::from(self.snapshot_is_due).min(self.applied));
        let dropped = store.term_of(keep_from).filter(|_| keep_from > store.start.0);
        let state = self.machine.snapshot()?;
        let snapshot = LogSnapshot::new(self.applied, term, &self.members, &state)?;
        let hard_state: HardState = self.node.raft.hard_state();
        let store = self.node.mut_store();
        store.snapshot = Some(snapshot.clone());
        self.lazy_ops.push(LogOp::Snapshot(snapshot));
        self.lazy_ops.push(LogOp::HardState(hard_state));
        if let Some(term) = dropped {
            store.drop_through(keep_from);
            self.lazy_ops.push(LogOp::DropThrough { index: keep_from, term });
        }
        self.applied_bytes_since_snapshot = 0;
        self.snapshot_is_due = false;
        Ok(())
    }
}
