//! A client of the coordinators that calls any of them. It first calls the coordinator that has
//! answered last, and after a failure the next one. Commands contain request ids, so they can be
//! repeated. They are repeated for at most [`PROPOSE_FOR`], since a new leader is elected within
//! about a second.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use proto::{Error, ErrorCode, Result};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::methods::*;
use super::peers::Peers;

/// The time for which a command is repeated while no coordinator can execute it.
const PROPOSE_FOR: Duration = Duration::from_secs(10);
/// The time for which a change of the coordinators is repeated. A new coordinator may take so
/// long until it votes.
const CHANGE_MEMBERS_FOR: Duration = Duration::from_secs(20);
/// The divisor of the time limit of a call. The quotient is the time limit for one coordinator.
const MEMBERS_ASKED: u32 = 3;
/// The minimum time limit for one coordinator.
const MEMBER_WAIT_MIN: Duration = Duration::from_millis(50);
/// The pause between two rounds over all coordinators.
const ROUND_PAUSE: Duration = Duration::from_millis(50);

/// A client of the coordinators that calls any of them.
pub(super) struct AnyMember {
    peers: Arc<Peers>,
}

impl AnyMember {
    /// Creates a client of the coordinators that `peers` knows.
    pub fn new(peers: Arc<Peers>) -> Self {
        Self { peers }
    }

    /// Calls the coordinators in turn until one of them gives a final answer. The first is the
    /// one that has answered last.
    async fn any_member<T, F, Fut>(&self, ask: F) -> Result<T>
    where
        F: Fn(Arc<dyn CoordinatorApi>) -> Fut,
        Fut: Future<Output = Result<T>>,
    {
        let mut last = Error::unavailable("the list of coordinator members is empty");
        let members = self.peers.members();
        let preferred = NodeId(self.peers.preferred.load(Ordering::Relaxed));
        let first = members.iter().position(|id| *id == preferred).unwrap_or(0);
        for n in 0..members.len() {
            let at = (first + n) % members.len();
            let answer = match self.peers.coordinator_member(members[at]) {
                Ok(member) => ask(member).await,
                Err(error) => Err(error),
            };
            match answer {
                Err(error) if error.is_retry() => last = error,
                answer => {
                    self.peers.preferred.store(members[at].0, Ordering::Relaxed);
                    return answer;
                }
            }
        }
        Err(last)
    }

    /// Calls all coordinators repeatedly until one of them gives a final answer or the deadline
    /// passes.
    async fn any_member_until<T, F, Fut>(&self, deadline: Instant, ask: F) -> Result<T>
    where
        F: Fn(Arc<dyn CoordinatorApi>) -> Fut,
        Fut: Future<Output = Result<T>>,
    {
        loop {
            match self.any_member(&ask).await {
                Err(error) if error.is_retry() && Instant::now() < deadline => {
                    sleep(ROUND_PAUSE).await;
                }
                answer => return answer,
            }
        }
    }

    /// Sends a command, and repeats it after failures if it has a request id.
    async fn propose_for_a_while(&self, proposal: Proposal) -> Result<AppliedCommand> {
        let deadline = Instant::now() + PROPOSE_FOR;
        let ask = |member: Arc<dyn CoordinatorApi>| {
            let proposal = proposal.clone();
            async move { member.propose(proposal).await }
        };
        // A command without a request id must not run twice.
        match proposal.request {
            Some(_) => self.any_member_until(deadline, ask).await,
            None => self.any_member(ask).await,
        }
    }

    /// Sends a change of the coordinators and repeats it after failures. If the change was
    /// already made, a repetition has no further effect. A leader that is to be removed first
    /// hands its leadership over; the next leader is then called.
    async fn change_for_a_while(&self, change: CoordinatorChange) -> Result<CoordinatorChanged> {
        let deadline = Instant::now() + CHANGE_MEMBERS_FOR;
        let ask = |member: Arc<dyn CoordinatorApi>| {
            let change = change.clone();
            async move { member.change_members(change).await }
        };
        self.any_member_until(deadline, ask).await
    }

    /// Waits for an epoch at any of the coordinators.
    async fn wait_for_epoch(
        &self,
        bucket: BucketId,
        cut: Cut,
        history: Option<u64>,
        at_least: Epoch,
        timeout_ms: u64,
    ) -> Result<CoveringEpochs> {
        let deadline = Instant::now() + Duration::from_millis(timeout_ms);
        let (members, calls) = (self.peers.members().len(), AtomicUsize::new(1));
        let asked = self.any_member_until(deadline, |member| {
            let cut = cut.clone();
            let left = deadline.saturating_duration_since(Instant::now());
            let is_last = calls.fetch_add(1, Ordering::Relaxed).is_multiple_of(members.max(1));
            async move {
                // The time limit of one member leaves time for the others.
                let part = if is_last { left } else { left / MEMBERS_ASKED };
                let part_ms = part.max(MEMBER_WAIT_MIN).as_millis() as u64;
                let asked = member.epoch_covering(bucket, cut, history, at_least, part_ms);
                let silent = |_| Err(Error::unavailable("a coordinator does not answer"));
                let until = Duration::from_millis(part_ms) + MEMBER_WAIT_MIN;
                match timeout(until, asked).await.unwrap_or_else(silent) {
                    // The time limit of this member has passed.
                    Err(error) if error.code == ErrorCode::Cancelled => {
                        Err(Error { code: ErrorCode::Unavailable, ..error })
                    }
                    answer => answer,
                }
            }
        });
        timeout_at(deadline, asked).await.unwrap_or_else(|_| {
            let text =
                format!("bucket {bucket}: no coordinator published an epoch within the time-out");
            Err(Error::unavailable(text))
        })
    }

    /// Returns an error, because Raft messages must be sent to a certain coordinator.
    async fn refuse_raft(&self, _messages: Vec<Bytes>) -> Result<()> {
        Err(Error::internal("Raft messages must be sent to a certain member"))
    }
}

/// Expands to the body of a method, as the `via` clause in the table of methods says.
macro_rules! ask {
    ($this:ident, $name:ident($($argument:ident),*), any_member) => {
        $this
            .any_member(|member| {
                let arguments = ($($argument.clone(),)*);
                async move {
                    let ($($argument,)*) = arguments;
                    member.$name($($argument),*).await
                }
            })
            .await
    };
    ($this:ident, $name:ident($($argument:ident),*), own $own:ident) => {
        $this.$own($($argument),*).await
    };
}

macro_rules! ask_any_member {
    (
        $api:ident, $local:ident;
        calls { $(
            $number:literal $name:ident($($argument:ident: $type:ty),*) -> $answer:ty
            , for $($caller:ident)+ $(, claims $claims:ident)?, via $($via:ident)+;
        )* }
        streams { $(
            $stream_number:literal $stream:ident($($stream_argument:ident: $stream_type:ty),*)
            -> $item:ty, for $($stream_caller:ident)+ $(, claims $stream_claims:ident)?, via $($stream_via:ident)+;
        )* }
    ) => {
        #[async_trait]
        impl $api for AnyMember {
            $(async fn $name(&self, $($argument: $type),*) -> Result<$answer> {
                ask!(self, $name($($argument),*), $($via)+)
            })*
            $(async fn $stream(&self, $($stream_argument: $stream_type),*)
                -> Result<ResultStream<$item>>
            {
                ask!(self, $stream($($stream_argument),*), $($stream_via)+)
            })*
        }
    };
}

coordinator_methods!(ask_any_member);
