//! The ready loop, and why its order is safe.
//!
//! A caller steps [`RaftCore`]. The inputs are messages, ticks, proposals, and the report that a write is durable.
//! [`RaftCore::poll`] returns the messages to send, the changes to write, and the commands that were applied. The
//! core does no I/O and reads no clock, so that a test can run three of them from one seed, thousands of times faster
//! than real members.
//!
//! One round of the loop takes one `Ready` from the `raft` crate:
//!
//! 1. Messages of a *leader* leave at once, before the leader's own write. A follower's acknowledgement covers only
//!    what the follower has durable, and the leader counts itself only after its own write (Raft thesis 10.2.1). An
//!    idle proposal therefore costs one round of syncs: the leader and the followers sync side by side.
//! 2. Snapshot, entries and hard state go into the memory log and, in the same order, into the returned write. A
//!    crash may lose everything that [`RaftCore::persisted`] has not confirmed.
//! 3. Messages of a *follower or candidate* (votes, acknowledgements) promise that something is durable. The core
//!    holds them until the write of their round and all earlier writes are confirmed.
//! 4. The state machine applies committed entries. The crate offers an entry only when it is committed and durable
//!    here, so a snapshot never contains an entry that this member could lose.
//!
//! Several writes may be in flight while the core handles messages. Proposals that arrive during a sync go to the
//! followers at once and share the next sync.
//!
//! A change of the commit index alone needs no sync, because a restarted member learns it again. It is written with
//! the next write. Election timeouts are our own (`election_timeout`), so that everything follows from the seed.

use proto::Result;
use proto::plant::{self, Plant};
use raft::SnapshotStatus;
use raft::eraftpb::{Entry, EntryType, Message};

use super::core::{AppliedEntry, Output, RaftCore, Round};
use super::log_write::{LogOp, LogWrite};
use super::state_machine::StateMachine;
use super::wire::{LogSnapshot, MessageKind, RaftMessage};

impl<M: StateMachine> RaftCore<M> {
    /// Advances time by one tick.
    pub fn tick(&mut self) {
        // The crate counts a snapshot as applied only when it is durable. Until then an election would look for the
        // entries before the snapshot, which are gone. So time does not advance.
        if self.rounds.iter().any(|round| round.snapshot.is_some()) {
            return;
        }
        // The only member that votes elects itself at once, and the crate asserts that all its entries are durable then.
        let is_alone = self.members.voters == [self.config.member.0];
        if is_alone && !self.is_leader() && self.rounds.iter().any(|round| round.must_sync) {
            return;
        }
        self.node.tick();
        for to in self.snapshots_sent.tick() {
            self.node.report_snapshot(to, SnapshotStatus::Failure);
        }
        self.promote_learner();
        self.election_timeout.set(&mut self.node.raft);
    }

    /// Processes all inputs until Raft has nothing more to do, and returns the messages, writes
    /// and results.
    pub fn poll(&mut self) -> Result<Output<M::Outcome>> {
        let (messages, applied, changed) = Default::default();
        let mut output = Output { messages, write: None, applied, changed };
        loop {
            self.release(&mut output)?;
            self.settle(&mut output);
            if !self.node.has_ready() {
                break;
            }
            self.round(&mut output)?;
        }
        self.election_timeout.set(&mut self.node.raft);
        Ok(output)
    }

    /// Processes one `Ready` of the `raft` crate, in the order that the module's head explains.
    fn round(&mut self, output: &mut Output<M::Outcome>) -> Result<()> {
        let mut ready = self.node.ready();
        for message in ready.take_messages() {
            self.send(message, output)?;
        }

        let mut ops = Vec::new();
        let mut installed = None;
        if !ready.snapshot().is_empty() {
            let snapshot = LogSnapshot::from_raft(ready.snapshot().clone());
            self.install(&snapshot)?;
            installed = Some(snapshot.index);
            ops.push(LogOp::Reset(snapshot));
        }
        if !ready.entries().is_empty() {
            self.node.mut_store().append(ready.entries());
            ops.push(LogOp::Append(ready.take_entries()));
        }
        if let Some(hard_state) = ready.hs() {
            self.node.mut_store().hard_state = hard_state.clone();
            if !plant::is(Plant::VoteNotPersisted) {
                ops.push(LogOp::HardState(hard_state.clone()));
            }
        }

        let committed = ready.take_committed_entries();
        let round = Round {
            number: ready.number(),
            must_sync: ready.must_sync(),
            snapshot: installed,
            messages: ready.take_persisted_messages(),
        };
        self.lazy_ops.append(&mut ops);
        if round.must_sync {
            let write = output.write.get_or_insert_with(LogWrite::default);
            write.number = round.number;
            write.ops.append(&mut self.lazy_ops);
        }
        self.rounds.push_back(round);
        self.node.advance_append_async(ready);
        self.apply(committed, output)
    }

    /// Sends the messages of rounds whose writes are durable by now, and reports these writes to
    /// the crate.
    fn release(&mut self, output: &mut Output<M::Outcome>) -> Result<()> {
        while let Some(round) = self.rounds.front() {
            let unsynced = round.must_sync && round.number > self.persisted;
            if unsynced && !plant::is(Plant::AppliedEarly) {
                break;
            }
            let Some(round) = self.rounds.pop_front() else { break };
            self.node.on_persist_ready(round.number);
            if let Some(index) = round.snapshot {
                self.node.advance_apply_to(index);
            }
            for message in round.messages {
                self.send(message, output)?;
            }
        }
        Ok(())
    }

    fn send(&mut self, mut message: Message, output: &mut Output<M::Outcome>) -> Result<()> {
        message.commit = self.commit_for(message.to, message.commit);
        let message = RaftMessage::from_raft(message, self.members.group())?;
        if message.kind == MessageKind::Snapshot {
            self.snapshots_sent.add(message.to.0);
        }
        output.messages.push(message);
        Ok(())
    }

    fn apply(&mut self, entries: Vec<Entry>, output: &mut Output<M::Outcome>) -> Result<()> {
        let Some(last) = entries.last().map(|entry| entry.index) else { return Ok(()) };
        for entry in entries {
            self.applied = entry.index;
            self.applied_bytes_since_snapshot += (entry.data.len() + entry.context.len()) as u64;
            if entry.entry_type == EntryType::EntryConfChange {
                output.changed.extend(self.apply_change(&entry)?);
                continue;
            }
            // The entry with which a leader opens its term, or settles a removal, carries no command.
            if entry.data.is_empty() {
                continue;
            }
            let outcome = self
                .machine
                .apply(entry.index, &entry.data)
                .map_err(|error| error.context(format!("apply log entry {}", entry.index)))?;
            output.applied.push(AppliedEntry {
                #[cfg(feature = "testing")]
                index: entry.index,
                context: entry.context,
                outcome,
            });
        }
        self.node.advance_apply_to(last);
        self.take_snapshot_if_due()
    }
}
