//! The leader's state of another copy of a bucket, and the session in which that copy follows. [`super::links`] has the scheme.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use proto::model::commits::TransactionEvent;
use proto::plant::{self, Plant};
use proto::rpc::api::COPY_LEASE_MS;
use proto::{Error, ErrorCode};
use tokio::time::Instant;

use documents::document_store::Batch;

/// A joining copy that lacks at most this many bytes grows into the set: some milliseconds of work.
pub(super) const NEAR_BYTES: usize = 8 << 20;
/// The time after which a silent copy is given up. It is less than the time after which a follower asks to lead, so a leader that still
/// reaches the coordinators continues.
pub(super) const SILENCE: Duration = Duration::from_millis(COPY_LEASE_MS);
/// The minimum rate at which a follower must receive large data or make it durable, in bytes per second. A slower follower is given up.
const BUSY_BYTES_OF_SECOND: u64 = 16 << 20;
/// The number of answers whose times are remembered. A follower has one request in flight.
const ANSWERS_MAX: usize = 16;

/// The leader's state of another copy.
#[derive(Default)]
pub(super) struct Link {
    pub(super) session: Option<Session>,
    /// The time since which the leader awaits this copy; `None` if it does not.
    pub(super) awaited_since: Option<Instant>,
    /// The last group before the leader began to wait for this joining copy. It grows when it has that group.
    pub(super) grows_behind: Option<u64>,
    /// The time since which the copy lacks groups from before the beginning of its sessions; `None` if it lacks none.
    pub(super) unfilled_since: Option<Instant>,
    /// The last sign of life since then, of a copy that takes much.
    pub(super) filling_at: Option<Instant>,
}

pub(super) struct Session {
    pub(super) number: u64,
    /// The transactions that were prepared at its beginning and that the follower lacks, until it has them.
    pub(super) prepared: Option<Arc<Batch>>,
    /// The time that these may take.
    pub(super) fills_for: Duration,
    /// The groups that the follower may lack, in order.
    pub(super) groups: VecDeque<(u64, Arc<Batch>)>,
    pub(super) bytes: usize,
    /// The last group that the follower has made durable; before its first report, the group at which the session
    /// begins.
    pub(super) durable: u64,
    /// True once the follower has everything up to the beginning of the session.
    pub(super) is_filled: bool,
    pub(super) last_answer: u64,
    /// The newest answers and their moments.
    pub(super) answers: VecDeque<(u64, Instant)>,
    pub(super) heard_at: Option<Instant>,
    pub(super) lease_until: Option<Instant>,
}

/// Groups for a follower.
pub struct NextGroups {
    /// The number of the answer.
    pub answer: u64,
    /// The number of the first group.
    pub first: u64,
    /// The groups of the answer, in order.
    pub groups: Vec<Arc<Batch>>,
}

pub(super) fn bytes_of(batch: &Batch) -> usize {
    let prepared = batch.commits.iter().map(|event| match event {
        TransactionEvent::Prepared(prepared) => prepared.bytes(),
        _ => 0,
    });
    batch.mutations.iter().map(|mutation| mutation.bytes()).chain(prepared).sum()
}

/// The time for which a follower may be busy with this many bytes.
pub fn busy_for(bytes: usize) -> Duration {
    Duration::from_millis((bytes as u64).saturating_mul(1_000) / BUSY_BYTES_OF_SECOND)
}

pub(super) fn no_session() -> Error {
    Error::new(ErrorCode::OutOfOrder, "the session of this copy has ended")
}

impl Link {
    pub(super) fn no_longer_awaited(&mut self) {
        (self.awaited_since, self.grows_behind) = (None, None);
    }

    /// True if a joining copy has everything that was shown. One that lacks little is awaited from now on, until it falls silent or
    /// begins again. Then the writers are as fast as it is, so it arrives at that place.
    pub(super) fn may_grow(&mut self, last_group: u64, now: Instant) -> bool {
        let is_begun = self.grows_behind.is_some();
        let grows = |session: &&Session| session.is_alive(now) && (is_begun || session.is_near());
        let Some(session) = self.session.as_ref().filter(grows) else {
            self.no_longer_awaited();
            return false;
        };
        self.awaited_since.get_or_insert(now);
        let behind = *self.grows_behind.get_or_insert(last_group);
        session.durable >= behind || plant::is(Plant::CopyGrowsEarly)
    }

    /// The last sign of life since the leader waits for the copy.
    pub(super) fn last_sign(&self) -> Option<Instant> {
        let heard = self.session.as_ref().and_then(|session| session.heard_at);
        // A copy that begins again and again is not alive.
        heard.or(self.unfilled_since.max(self.filling_at)).max(self.awaited_since)
    }
}

impl Session {
    /// Numbers an answer that is sent at this moment.
    pub(super) fn answer(&mut self, now: Instant) -> u64 {
        self.last_answer += 1;
        self.answers.push_back((self.last_answer, now));
        if self.answers.len() > ANSWERS_MAX {
            self.answers.pop_front();
        }
        self.last_answer
    }

    /// True if the follower takes groups.
    pub(super) fn is_alive(&self, now: Instant) -> bool {
        self.is_filled && self.heard_at.is_some_and(|at| now.duration_since(at) <= SILENCE)
    }

    /// True if the follower lacks little.
    pub(super) fn is_near(&self) -> bool {
        self.bytes <= NEAR_BYTES
    }
}
