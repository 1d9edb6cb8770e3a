//! The handle to a running member.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_channel::Sender;
use bytes::Bytes;
use proto::flow::{Budget, Reservation};
use proto::model::ids::NodeId;
use proto::{Error, Result};
use tokio::sync::{oneshot, watch};

use super::members::{MemberChange, Members};
use super::role::RaftRole;
use super::wire::RaftMessage;

/// A request to the task that runs the member, with the channel for the answer.
pub(super) enum Request<O> {
    Command(Bytes, oneshot::Sender<Result<O>>),
    Change(MemberChange, oneshot::Sender<Result<()>>),
    HandOver(oneshot::Sender<Option<NodeId>>),
}

/// A request that waits in the queue of the task that runs the member.
pub(super) struct QueuedRequest<O> {
    pub work: Request<O>,
    /// The reserved bytes of the queue, released when the task takes the proposal.
    pub room: Reservation,
}

/// The channel to the caller that waits for the outcome of a command or of a change. The caller
/// may have stopped waiting.
pub(super) enum Reply<O> {
    Outcome(oneshot::Sender<Result<O>>),
    Changed(oneshot::Sender<Result<()>>),
}

impl<O> Reply<O> {
    pub fn fail(self, error: Error) {
        match self {
            Self::Outcome(reply) => drop(reply.send(Err(error))),
            Self::Changed(reply) => drop(reply.send(Err(error))),
        }
    }
}

/// The progress of the log, which the task publishes for the handles.
#[derive(Default)]
pub(super) struct LogProgress {
    pub committed: AtomicU64,
    pub applied: AtomicU64,
    pub has_settled: AtomicBool,
}

/// A handle to a running member; cheap to clone.
pub struct RaftHandle<O> {
    pub(super) messages: Sender<(RaftMessage, Reservation)>,
    pub(super) message_bytes: Budget,
    pub(super) proposals: Sender<QueuedRequest<O>>,
    pub(super) proposal_bytes: Budget,
    pub(super) role: watch::Receiver<RaftRole>,
    pub(super) members: watch::Receiver<Members>,
    pub(super) progress: Arc<LogProgress>,
}

impl<O> Clone for RaftHandle<O> {
    fn clone(&self) -> Self {
        Self {
            messages: self.messages.clone(),
            message_bytes: self.message_bytes.clone(),
            proposals: self.proposals.clone(),
            proposal_bytes: self.proposal_bytes.clone(),
            role: self.role.clone(),
            members: self.members.clone(),
            progress: self.progress.clone(),
        }
    }
}

impl<O: Send + 'static> RaftHandle<O> {
    /// Proposes a command and waits for its outcome. The error `NotLeader` means that the command
    /// was not proposed. After the error `Unavailable` the command may still be applied later.
    pub async fn propose(&self, command: Bytes) -> Result<O> {
        let len = command.len();
        self.request(len, |reply| Request::Command(command, reply)).await?
    }

    /// Proposes a change of the members and waits until it is applied, or refused. For a removal,
    /// also waits until the removal is settled. The error `NotLeader` means that the change was
    /// not proposed. After the error `Unavailable` the change may still be applied later.
    pub async fn change(&self, change: MemberChange) -> Result<()> {
        self.request(0, |reply| Request::Change(change, reply)).await?
    }

    /// Begins to hand leadership over, and returns the next leader; `None` if this member does not lead or is the only
    /// voter.
    pub async fn hand_over(&self) -> Result<Option<NodeId>> {
        self.request(0, Request::HandOver).await
    }

    /// Queues a request for the task that runs the member, and waits for the answer.
    async fn request<T>(
        &self,
        bytes: usize,
        work: impl FnOnce(oneshot::Sender<T>) -> Request<O>,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let room = self.proposal_bytes.reserve(bytes).await;
        let proposal = QueuedRequest { work: work(reply), room };
        self.proposals.send(proposal).await.map_err(|_| stopped_error())?;
        answer.await.map_err(|_| stopped_error())
    }

    /// Delivers a message from another member. The message is dropped if this member cannot keep up.
    pub fn deliver(&self, message: RaftMessage) {
        // A full or closed queue is a lost message to Raft.
        if let Some(room) = self.message_bytes.try_reserve(message.bytes()) {
            let _ = self.messages.try_send((message, room));
        }
    }

    /// Returns a receiver of the member's role, now and at each change; closed when the member has
    /// stopped.
    pub fn role(&self) -> watch::Receiver<RaftRole> {
        self.role.clone()
    }

    /// Returns a receiver of the members, as of the last applied entry and at each change.
    pub fn members(&self) -> watch::Receiver<Members> {
        self.members.clone()
    }

    /// Returns true if this member leads and all removals that it has applied are settled: a
    /// majority of the remaining members has them on disk.
    pub fn has_settled(&self) -> bool {
        self.progress.has_settled.load(Ordering::Acquire)
    }

    /// The indexes of the last committed and the last applied entry.
    pub fn progress(&self) -> (u64, u64) {
        let load = |value: &AtomicU64| value.load(Ordering::Relaxed);
        (load(&self.progress.committed), load(&self.progress.applied))
    }
}

/// Returns the error for a call of a member whose task has ended.
pub(super) fn stopped_error() -> Error {
    Error::unavailable("this coordinator member has stopped")
        .with_hint("see its log for the cause; the other members continue")
}
