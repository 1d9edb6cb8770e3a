//! The task that owns a member's core, disk and clock, and the handle to it.
//!
//! The loop sleeps until something happens: a write was made durable, a tick, a message, a proposal. It
//! then takes all that is there, polls the core once, and starts one write, if none is on its way, with
//! everything that gathered meanwhile: many proposals share one sync, and none waits for a tick.
//!
//! When the task is cancelled, what was not acknowledged is lost, as in a crash. When it fails (a full
//! disk, a log that does not pass its checks) it ends with the error, and every call of the handle says
//! so: the other members go on without this one. While its disk hangs it says nothing, with the same effect.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_channel::{Receiver, Sender, TryRecvError};
use bytes::Bytes;
use proto::env::Env;
use proto::flow::{Budget, Reservation};
use proto::{Error, Result};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior};

use super::config::RaftConfig;
use super::core::{Applied, RaftCore};
use super::log_store::LogStore;
use super::log_write::LogWrite;
use super::role::Role;
use super::state_machine::StateMachine;
use super::transport::PeerTransport;
use super::wire::{QUEUE_BYTES_MAX, RaftMessage};

/// Messages that may wait for the loop, and no more than [`QUEUE_BYTES_MAX`] of them; more are dropped, and Raft
/// repeats them.
const MESSAGES_MAX: usize = 1024;
/// Proposals that may wait for the loop; the next proposer waits.
const PROPOSALS_MAX: usize = 1024;
/// And so many bytes of them: as many as Raft takes before they are committed.
const PROPOSALS_BYTES_MAX: usize = 64 << 20;
/// A member whose write takes longer is silent until it has ended.
const WRITE_PATIENCE: Duration = Duration::from_secs(2);
/// Inputs taken at once, so that the outputs of the first do not wait for ever.
const BATCH_MAX: usize = 256;

struct Proposal<O> {
    command: Bytes,
    /// Given back when the loop takes it.
    room: Reservation,
    reply: oneshot::Sender<Result<O>>,
}

struct Waiter<O> {
    term: u64,
    reply: oneshot::Sender<Result<O>>,
}

#[derive(Default)]
struct Progress {
    committed: AtomicU64,
    applied: AtomicU64,
}

/// A member, ready to run.
pub struct RaftService<M: StateMachine> {
    core: RaftCore<M>,
    store: Arc<LogStore>,
    env: Env,
    transport: Arc<dyn PeerTransport>,
    tick: Duration,
    messages: Receiver<(RaftMessage, Reservation)>,
    proposals: Receiver<Proposal<M::Outcome>>,
    role: watch::Sender<Role>,
    progress: Arc<Progress>,
    /// Tells the proposals of this run from those of an earlier one.
    session: u64,
    sequence: u64,
    waiters: BTreeMap<u64, Waiter<M::Outcome>>,
    writes: Vec<LogWrite>,
    writing: Option<Writing>,
}

/// A write that is under way.
struct Writing {
    since: Instant,
    /// The number of the last of what it writes; closed where it has panicked.
    done: oneshot::Receiver<Result<u64>>,
}

impl Writing {
    /// Does it take so long that the others had better go on without this member?
    fn hangs(&self) -> bool {
        self.since.elapsed() > WRITE_PATIENCE
    }

    /// Waits for its end; for ever where there is none.
    async fn end(writing: &mut Option<Self>) -> Result<u64> {
        match writing {
            Some(writing) => (&mut writing.done).await.map_err(|_| stopped())?,
            None => std::future::pending().await,
        }
    }
}

/// Access to a running member; cheap to clone.
pub struct RaftHandle<O> {
    messages: Sender<(RaftMessage, Reservation)>,
    message_bytes: Budget,
    proposals: Sender<Proposal<O>>,
    proposal_bytes: Budget,
    role: watch::Receiver<Role>,
    progress: Arc<Progress>,
}

impl<O> Clone for RaftHandle<O> {
    fn clone(&self) -> Self {
        Self {
            messages: self.messages.clone(),
            message_bytes: self.message_bytes.clone(),
            proposals: self.proposals.clone(),
            proposal_bytes: self.proposal_bytes.clone(),
            role: self.role.clone(),
            progress: self.progress.clone(),
        }
    }
}

impl<O: Send + 'static> RaftHandle<O> {
    /// Proposes a command and waits for its outcome. `NotLeader` means that nothing was done; after
    /// `Unavailable` the command may still come to be applied.
    pub async fn propose(&self, command: Bytes) -> Result<O> {
        let (reply, outcome) = oneshot::channel();
        let room = self.proposal_bytes.reserve(command.len()).await;
        self.proposals.send(Proposal { command, room, reply }).await.map_err(|_| stopped())?;
        outcome.await.map_err(|_| stopped())?
    }

    /// Hands over a message of another member; dropped if the member cannot keep up.
    pub fn deliver(&self, message: RaftMessage) {
        // Full or closed: to Raft both are a lost message.
        if let Some(room) = self.message_bytes.try_reserve(message.bytes()) {
            let _ = self.messages.try_send((message, room));
        }
    }

    /// Where the member stands, now and at each change; closed when the member has stopped.
    pub fn role(&self) -> watch::Receiver<Role> {
        self.role.clone()
    }

    /// The last log positions committed and applied.
    pub fn progress(&self) -> (u64, u64) {
        let load = |value: &AtomicU64| value.load(Ordering::Relaxed);
        (load(&self.progress.committed), load(&self.progress.applied))
    }
}

fn stopped() -> Error {
    Error::unavailable("this coordinator member has stopped")
        .with_hint("its log says why; the other members go on")
}

impl<M: StateMachine> RaftService<M> {
    /// Opens a member's log in `dir` and recovers its state; blocks.
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
        let progress = Arc::new(Progress::default());
        let handle = RaftHandle {
            messages: messages_in,
            message_bytes: Budget::new(QUEUE_BYTES_MAX),
            proposals: proposals_in,
            proposal_bytes: Budget::new(PROPOSALS_BYTES_MAX),
            role: role_out,
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
            progress,
            session,
            sequence: 0,
            waiters: BTreeMap::new(),
            writes: Vec::new(),
            writing: None,
        };
        Ok((service, handle))
    }

    /// Runs until it fails or is cancelled.
    pub async fn run(mut self) -> Result<()> {
        let result = self.serve().await;
        if let Err(error) = &result {
            for waiter in std::mem::take(&mut self.waiters).into_values() {
                let _ = waiter.reply.send(Err(error.clone()));
            }
        }
        result
    }

    async fn serve(&mut self) -> Result<()> {
        let mut ticks = tokio::time::interval(self.tick);
        // A loop that was held up must not count the lost time as silence of the leader.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.pump()?;
        loop {
            tokio::select! {
                biased;
                number = Writing::end(&mut self.writing) => {
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
            self.pump()?;
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

    fn take_proposals(&mut self, first: Proposal<M::Outcome>) {
        self.propose(first);
        for _ in 1..BATCH_MAX {
            match self.proposals.try_recv() {
                Ok(proposal) => self.propose(proposal),
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
    }

    fn propose(&mut self, proposal: Proposal<M::Outcome>) {
        self.sequence += 1;
        let mut context = Vec::with_capacity(16);
        context.extend(self.session.to_le_bytes());
        context.extend(self.sequence.to_le_bytes());
        drop(proposal.room);
        match self.core.propose(context.into(), proposal.command) {
            Ok(()) => {
                let waiter = Waiter { term: self.core.role().term, reply: proposal.reply };
                self.waiters.insert(self.sequence, waiter);
            }
            Err(error) => {
                let _ = proposal.reply.send(Err(error));
            }
        }
    }

    /// Does what the core asks for.
    fn pump(&mut self) -> Result<()> {
        let output = self.core.poll()?;
        // Messages first: followers write while this member does. One whose disk hangs falls silent: what it leads would
        // be committed by the others, and it could apply nothing of it.
        if !self.writing.as_ref().is_some_and(Writing::hangs) {
            for message in output.messages {
                self.transport.send(message.to, message);
            }
        }
        self.writes.extend(output.write);
        if self.writing.is_none() && !self.writes.is_empty() {
            self.write();
        }
        for applied in output.applied {
            self.answer(applied);
        }
        self.progress.committed.store(self.core.committed_index(), Ordering::Relaxed);
        self.progress.applied.store(self.core.applied_index(), Ordering::Relaxed);
        self.publish_role();
        Ok(())
    }

    fn write(&mut self) {
        let (written, done) = oneshot::channel();
        self.writing = Some(Writing { since: Instant::now(), done });
        let writes = std::mem::take(&mut self.writes);
        let number = writes.iter().map(|write| write.number).max().unwrap_or(0);
        let store = self.store.clone();
        self.env.spawner.spawn_blocking(Box::new(move || {
            let result = store.commit(&writes).map(|()| number);
            // The loop is gone when the member was stopped: nobody wants to know.
            let _ = written.send(result);
        }));
    }

    fn answer(&mut self, applied: Applied<M::Outcome>) {
        let Some((session, sequence)) = applied.context.split_first_chunk::<8>() else { return };
        let Ok(sequence) = <[u8; 8]>::try_from(sequence) else { return };
        if u64::from_le_bytes(*session) != self.session {
            return;
        }
        if let Some(waiter) = self.waiters.remove(&u64::from_le_bytes(sequence)) {
            let _ = waiter.reply.send(Ok(applied.outcome));
        }
    }

    /// Tells of a change of leader, and those who wait that their proposals may be lost.
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
                let _ = waiter.reply.send(Err(Error::unavailable(
                    "the leading coordinator changed while the command was on its way",
                )
                .with_hint("send the same request again; it is not done twice")));
            }
        }
    }
}

impl<M: StateMachine> Drop for RaftService<M> {
    /// What waits in a channel is kept as long as there are senders: without this, whoever proposed at
    /// the last moment would wait for ever. And a member that has stopped leads no more.
    fn drop(&mut self) {
        self.role.send_modify(|role| (role.leader, role.leads) = (None, false));
        self.proposals.close();
        while self.proposals.try_recv().is_ok() {}
    }
}

#[cfg(test)]
#[path = "service_tests.rs"]
mod tests;
