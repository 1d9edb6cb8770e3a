//! The task that owns a member's core, disk and clock.
//!
//! The loop sleeps until a write is durable, a tick is due, or a message or a proposal arrives. It
//! then takes all waiting inputs, polls the core once, and starts one write if none is in flight.
//! The write contains everything that gathered meanwhile, so many proposals share one sync and no
//! proposal waits for a tick.
//!
//! Cancelling the task loses what was not acknowledged, as a crash does. When the task fails (a
//! full disk, a corrupt log) it ends with the error, and every call of the handle returns an error.
//! The other members continue without this one. While its disk hangs, the member sends nothing,
//! with the same effect.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_channel::{Receiver, TryRecvError};
use proto::env::{Env, TaskPolicy};
use proto::flow::{Budget, Reservation};
use proto::{Error, Result};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior};

use super::config::RaftConfig;
use super::core::{AppliedChange, AppliedEntry, RaftCore};
use super::handle::{LogProgress, QueuedRequest, RaftHandle, Reply, Request, stopped_error};
use super::log_store::LogStore;
use super::log_write::LogWrite;
use super::members::Members;
use super::role::RaftRole;
use super::state_machine::StateMachine;
use super::transport::PeerTransport;
use super::wire::{QUEUE_BYTES_MAX, RaftMessage};

/// The limit of messages that wait for the loop, in addition to [`QUEUE_BYTES_MAX`] bytes. Further
/// messages are dropped; Raft repeats them.
const MESSAGES_MAX: usize = 1024;
/// The limit of proposals that wait for the loop. Further proposers wait.
const PROPOSALS_MAX: usize = 1024;
/// The limit of the bytes of waiting proposals: as many as Raft accepts before they are committed.
const PROPOSALS_BYTES_MAX: usize = 64 << 20;
/// The duration of a write after which the member stops sending messages, as it does with a
/// failed disk.
const WRITE_PATIENCE: Duration = Duration::from_secs(2);
/// The number of waiting messages or proposals that are taken at once. More would delay the
/// outputs of the first one.
const BATCH_MAX: usize = 256;

/// A caller that waits for the outcome of a proposal, and the term of the proposal.
struct Waiter<O> {
    term: u64,
    reply: Reply<O>,
}

/// A member that is ready to run.
pub struct RaftService<M: StateMachine> {
    core: RaftCore<M>,
    store: Arc<LogStore>,
    env: Env,
    transport: Arc<dyn PeerTransport>,
    tick: Duration,
    messages: Receiver<(RaftMessage, Reservation)>,
    proposals: Receiver<QueuedRequest<M::Outcome>>,
    role: watch::Sender<RaftRole>,
    members: watch::Sender<Members>,
    progress: Arc<LogProgress>,
    /// A random number that distinguishes the proposals since this start from those before a
    /// restart.
    session: u64,
    sequence: u64,
    waiters: BTreeMap<u64, Waiter<M::Outcome>>,
    writes: Vec<LogWrite>,
    writing: Option<PendingWrite>,
}

/// A write of the log that is in progress.
struct PendingWrite {
    since: Instant,
    /// Receives the number of the last write in it; closed if the write panicked.
    done: oneshot::Receiver<Result<u64>>,
}

impl PendingWrite {
    /// Returns true if the write takes so long that the other members should continue without this
    /// one.
    fn hangs(&self) -> bool {
        self.since.elapsed() > WRITE_PATIENCE
    }

    /// Waits for the end of a write and returns its number. Never returns if there is no write.
    async fn end(writing: &mut Option<Self>) -> Result<u64> {
        match writing {
            Some(writing) => (&mut writing.done).await.map_err(|_| stopped_error())?,
            None => std::future::pending().await,
        }
    }
}

impl<M: StateMachine> RaftService<M> {
    /// Opens the log in `dir` and recovers the state. Blocks.
    pub fn open(
        config: RaftConfig,
        dir: &Path,
        machine: M,
        env: Env,
        transport: Arc<dyn PeerTransport>,
    ) -> Result<(Self, RaftHandle<M::Outcome>)> {
        let (store, log) = LogStore::open(&*env.fs, dir, config.member, &config.voters())?;
        let tick = Duration::from_millis(config.tick_ms.max(1));
        let core = RaftCore::new(config, log, machine, env.random.clone())?;
        let (messages_in, messages) = async_channel::bounded(MESSAGES_MAX);
        let (proposals_in, proposals) = async_channel::bounded(PROPOSALS_MAX);
        let (role, role_out) = watch::channel(core.role());
        let (members, members_out) = watch::channel(core.members().clone());
        let progress = Arc::new(LogProgress::default());
        let handle = RaftHandle {
            messages: messages_in,
            message_bytes: Budget::new(QUEUE_BYTES_MAX),
            proposals: proposals_in,
            proposal_bytes: Budget::new(PROPOSALS_BYTES_MAX),
            role: role_out,
            members: members_out,
            progress: progress.clone(),
        };
        let session = env.random.next_u64();
        let service = Self {
            core,
            store: Arc::new(store),
            env,
            transport,
            tick,
            messages,
            proposals,
            role,
            members,
            progress,
            session,
            sequence: 0,
            waiters: BTreeMap::new(),
            writes: Vec::new(),
            writing: None,
        };
        Ok((service, handle))
    }

    /// Runs until the task fails or is cancelled.
    pub async fn run(mut self) -> Result<()> {
        let result = self.serve().await;
        if let Err(error) = &result {
            for waiter in std::mem::take(&mut self.waiters).into_values() {
                waiter.reply.fail(error.clone());
            }
        }
        result
    }

    /// Runs the loop: waits for a tick, a finished write, a message or a proposal, and processes
    /// it.
    async fn serve(&mut self) -> Result<()> {
        let mut ticks = tokio::time::interval(self.tick);
        // A delayed loop must not count the lost time as silence of the leader.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.handle_outputs()?;
        loop {
            tokio::select! {
                biased;
                number = PendingWrite::end(&mut self.writing) => {
                    self.writing = None;
                    self.core.persisted(number?);
                }
                _ = ticks.tick() => self.core.tick(),
                message = self.messages.recv() => {
                    let Ok((message, _room)) = message else { return Ok(()) };
                    self.take_messages(message)?;
                }
                proposal = self.proposals.recv() => {
                    let Ok(proposal) = proposal else { return Ok(()) };
                    self.take_proposals(proposal);
                }
            }
            self.handle_outputs()?;
        }
    }

    fn take_messages(&mut self, first: RaftMessage) -> Result<()> {
        self.core.step(first)?;
        for _ in 1..BATCH_MAX {
            match self.messages.try_recv() {
                Ok((message, _room)) => self.core.step(message)?,
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        Ok(())
    }

    fn take_proposals(&mut self, first: QueuedRequest<M::Outcome>) {
        self.propose(first);
        for _ in 1..BATCH_MAX {
            match self.proposals.try_recv() {
                Ok(proposal) => self.propose(proposal),
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
    }

    fn propose(&mut self, proposal: QueuedRequest<M::Outcome>) {
        self.sequence += 1;
        let mut context = Vec::with_capacity(16);
        context.extend(self.session.to_le_bytes());
        context.extend(self.sequence.to_le_bytes());
        let QueuedRequest { work, room } = proposal;
        drop(room);
        let (proposed, reply) = match work {
            Request::Command(command, reply) => {
                (self.core.propose(context.into(), command), Reply::Outcome(reply))
            }
            Request::Change(change, reply) => {
                (self.core.propose_change(context.into(), change), Reply::Changed(reply))
            }
            Request::HandOver(reply) => {
                // The caller may have stopped waiting.
                let _ = reply.send(self.core.hand_over());
                return;
            }
        };
        match proposed {
            Ok(()) => {
                let waiter = Waiter { term: self.core.role().term, reply };
                self.waiters.insert(self.sequence, waiter);
            }
            Err(error) => reply.fail(error),
        }
    }

    /// Carries out the outputs of the core.
    fn handle_outputs(&mut self) -> Result<()> {
        let output = self.core.poll()?;
        // Messages go first, so that followers write while this member does. A member whose disk hangs falls silent.
        // Otherwise the others would commit entries of a leader that can apply none of them.
        if !self.writing.as_ref().is_some_and(PendingWrite::hangs) {
            for message in output.messages {
                self.transport.send(message.to, message);
            }
        }
        self.writes.extend(output.write);
        if self.writing.is_none() && !self.writes.is_empty() {
            self.write();
        }
        // This is published before the answers, since a caller with an answer reads the members next. A caller that sees a removal must not
        // take it for settled.
        let has_settled = self.core.has_settled();
        if !has_settled {
            self.progress.has_settled.store(false, Ordering::Release);
        }
        self.publish_members();
        if has_settled {
            self.progress.has_settled.store(true, Ordering::Release);
        }
        for AppliedEntry { context, outcome, .. } in output.applied {
            if let Some(Reply::Outcome(reply)) = self.waiter_of(&context) {
                // The caller may have stopped waiting.
                let _ = reply.send(Ok(outcome));
            }
        }
        for AppliedChange { context, result } in output.changed {
            if let Some(Reply::Changed(reply)) = self.waiter_of(&context) {
                let _ = reply.send(result);
            }
        }
        self.progress.committed.store(self.core.committed_index(), Ordering::Relaxed);
        self.progress.applied.store(self.core.applied_index(), Ordering::Relaxed);
        self.publish_role();
        Ok(())
    }

    fn publish_members(&mut self) {
        let members = self.core.members();
        if *self.members.borrow() != *members {
            self.members.send_replace(members.clone());
        }
    }

    fn write(&mut self) {
        let (written, done) = oneshot::channel();
        self.writing = Some(PendingWrite { since: Instant::now(), done });
        let writes = std::mem::take(&mut self.writes);
        let number = writes.iter().map(|write| write.number).max().unwrap_or(0);
        let store = self.store.clone();
        // A log that was half written must not be written on.
        self.env.spawn_blocking("coordinator-log-write", TaskPolicy::EndProcess, move || {
            let result = store.commit(&writes).map(|()| number);
            // The receiver no longer exists when the member was stopped.
            let _ = written.send(result);
        });
    }

    /// Removes and returns the waiter of a proposal of this run; `None` for a proposal of an
    /// earlier run.
    fn waiter_of(&mut self, context: &[u8]) -> Option<Reply<M::Outcome>> {
        let (session, sequence) = context.split_first_chunk::<8>()?;
        let sequence = <[u8; 8]>::try_from(sequence).ok()?;
        if u64::from_le_bytes(*session) != self.session {
            return None;
        }
        self.waiters.remove(&u64::from_le_bytes(sequence)).map(|waiter| waiter.reply)
    }

    /// Publishes a change of leader, and answers waiting proposers that their proposals may be
    /// lost.
    fn publish_role(&mut self) {
        let role = self.core.role();
        let changed = self.role.send_if_modified(|known| {
            let changed = *known != role;
            *known = role;
            changed
        });
        if !changed {
            return;
        }
        let leads = self.core.is_leader();
        let lost: Vec<u64> = self
            .waiters
            .iter()
            .filter(|(_, waiter)| !leads || waiter.term != role.term)
            .map(|(sequence, _)| *sequence)
            .collect();
        for sequence in lost {
            if let Some(waiter) = self.waiters.remove(&sequence) {
                waiter.reply.fail(
                    Error::unavailable(
                        "the leading coordinator changed while the command was in flight",
                    )
                    .with_hint("send the same request again; it is never executed twice"),
                );
            }
        }
    }
}

impl<M: StateMachine> Drop for RaftService<M> {
    /// Empties the channels. A channel keeps its items as long as it has senders, so a proposer
    /// that sent last would wait for ever. A stopped member no longer leads.
    fn drop(&mut self) {
        self.role.send_modify(|role| (role.leader, role.leads) = (None, false));
        self.proposals.close();
        while self.proposals.try_recv().is_ok() {}
    }
}

#[cfg(test)]
#[path = "service_tests.rs"]
mod tests;
