//! The leader's record of another copy of a bucket, and of the session in which that copy
//! follows. [`super::links`] explains both.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use proto::model::commits::TransactionEvent;
use proto::plant::{self, Plant};
use proto::rpc::api::COPY_LEASE_MS;
use proto::{Error, ErrorCode};
use tokio::time::Instant;

use documents::document_store::Batch;

/// The size in bytes of missing groups up to which the leader begins to wait for a joining copy:
/// some milliseconds of work.
pub(super) const NEAR_BYTES: usize = 8 << 20;
/// The time without a request after which the leader gives a copy up. It is shorter than the time
/// after which a follower requests leadership, so a leader that can reach the coordinators
/// continues to lead.
pub(super) const SILENCE: Duration = Duration::from_millis(COPY_LEASE_MS);
/// The minimum rate, in bytes per second, at which a follower must receive large data or make it
/// durable. A slower follower is given up.
const BUSY_BYTES_OF_SECOND: u64 = 16 << 20;
/// The number of answers whose times the leader remembers. A follower has one request in progress
/// at a time.
const ANSWERS_MAX: usize = 16;

/// The leader's record of another copy of the bucket.
#[derive(Default)]
pub(super) struct Link {
    pub(super) session: Option<Session>,
    /// The time since which the leader waits for this copy; `None` if it does not.
    pub(super) awaited_since: Option<Instant>,
    /// The number of the last group before the leader began to wait for this joining copy. The
    /// copy becomes one in sync when it has that group.
    pub(super) grows_behind: Option<u64>,
    /// The time since which the copy lacks groups from before its session; `None` if it lacks
    /// none. A restart of the session does not change this time.
    pub(super) unfilled_since: Option<Instant>,
    /// The last sign of life of the copy while it receives large data, after `unfilled_since`.
    pub(super) filling_at: Option<Instant>,
}

/// A session in which a copy follows the leader.
pub(super) struct Session {
    pub(super) number: u64,
    /// The transactions that were prepared at the beginning of the session and that the follower
    /// lacks; `None` once it has them.
    pub(super) prepared: Option<Arc<Batch>>,
    /// The time that the transfer of `prepared` may take.
    pub(super) fills_for: Duration,
    /// The groups that the follower may lack, in order, with their numbers.
    pub(super) groups: VecDeque<(u64, Arc<Batch>)>,
    pub(super) bytes: usize,
    /// The number of the last group that the follower has made durable. Before the follower's
    /// first report, the number of the last group before the session.
    pub(super) durable: u64,
    /// True once the follower has all groups from before the session.
    pub(super) is_filled: bool,
    pub(super) last_answer: u64,
    /// The newest answers to the follower: their numbers, and the times at which they were sent.
    pub(super) answers: VecDeque<(u64, Instant)>,
    pub(super) heard_at: Option<Instant>,
    pub(super) lease_until: Option<Instant>,
}

/// The answer to a follower that requests the next groups of the log.
pub struct NextGroups {
    /// The number of the answer.
    pub answer: u64,
    /// The number of the first group.
    pub first: u64,
    /// The groups of the answer, in order.
    pub groups: Vec<Arc<Batch>>,
}

/// Returns the approximate size of a group in memory, in bytes.
pub(super) fn bytes_of(batch: &Batch) -> usize {
    let prepared = batch.commits.iter().map(|event| match event {
        TransactionEvent::Prepared(prepared) => prepared.bytes(),
        _ => 0,
    });
    batch.mutations.iter().map(|mutation| mutation.bytes()).chain(prepared).sum()
}

/// Returns the time for which a follower may be busy with receiving or writing `bytes` bytes.
pub fn busy_for(bytes: usize) -> Duration {
    Duration::from_millis((bytes as u64).saturating_mul(1_000) / BUSY_BYTES_OF_SECOND)
}

pub(super) fn no_session_error() -> Error {
    Error::new(ErrorCode::OutOfOrder, "the session of this copy has ended")
}

impl Link {
    /// Records that the leader does not wait for the copy any more.
    pub(super) fn stop_awaiting(&mut self) {
        (self.awaited_since, self.grows_behind) = (None, None);
    }

    /// Returns true if a joining copy can become one in sync, because it has all published
    /// groups. Once the copy lacks few groups, the leader waits for it, until it is silent or
    /// restarts. The writers are then not faster than the copy, so it catches up.
    pub(super) fn can_become_in_sync(&mut self, last_group: u64, now: Instant) -> bool {
        let is_begun = self.grows_behind.is_some();
        let grows =
            |session: &&Session| session.is_alive(now) && (is_begun || session.lacks_few_bytes());
        let Some(session) = self.session.as_ref().filter(grows) else {
            self.stop_awaiting();
            return false;
        };
        self.awaited_since.get_or_insert(now);
        let behind = *self.grows_behind.get_or_insert(last_group);
        session.durable >= behind || plant::is(Plant::CopyGrowsEarly)
    }

    /// Returns the time of the copy's last sign of life, or the time since which the leader waits
    /// for it if that is later.
    pub(super) fn last_sign(&self) -> Option<Instant> {
        let heard = self.session.as_ref().and_then(|session| session.heard_at);
        // A copy that begins again and again is not alive.
        heard.or(self.unfilled_since.max(self.filling_at)).max(self.awaited_since)
    }
}

impl Session {
    /// Assigns a number to an answer that is sent now.
    pub(super) fn answer(&mut self, now: Instant) -> u64 {
        self.last_answer += 1;
        self.answers.push_back((self.last_answer, now));
        if self.answers.len() > ANSWERS_MAX {
            self.answers.pop_front();
        }
        self.last_answer
    }

    /// Returns true if the follower receives groups, and has sent a request recently.
    pub(super) fn is_alive(&self, now: Instant) -> bool {
        self.is_filled && self.heard_at.is_some_and(|at| now.duration_since(at) <= SILENCE)
    }

    /// Returns true if the follower lacks few bytes of groups.
    pub(super) fn lacks_few_bytes(&self) -> bool {
        self.bytes <= NEAR_BYTES
    }
}
