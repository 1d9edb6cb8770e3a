//! Facts about a bucket's prepared transactions and open commits that are only in memory, and not
//! in the bucket's record ([`crate::source::commits`]).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use proto::model::commits::TransactionEvent;
use proto::model::cut::Cut;
use proto::model::ids::{BucketId, TransactionId};
use proto::model::open_commit::{CommitId, OpenCommit, PartState, Participant};
use tokio::time::Instant;

use super::awaited_parts::AwaitedParts;
use super::prepared_bytes::PreparedBytes;

/// The limit of remembered cuts that directly precede open joint commits. More of them would make
/// epochs shorter, not more frequent.
const BEFORE_MAX: usize = 4;

/// The limit of remembered halved commits: commits over several buckets of which one bucket has
/// lost its part.
const HALVED_MAX: usize = 16;

/// Facts about a bucket's prepared transactions and open commits that are only in memory.
#[derive(Default)]
pub(in crate::source) struct OpenState {
    /// The time at which this process first had each transaction or commit.
    since: BTreeMap<CommitId, Instant>,
    /// The states of parts of a commit in other buckets or vbuckets, as their owners have
    /// reported them.
    reported: BTreeMap<CommitId, BTreeMap<Participant, PartState>>,
    /// The open commits of which all parts are durable.
    pub(in crate::source) complete: BTreeSet<CommitId>,
    /// The last commit whose other participants were queried; the next query continues after it.
    pub(in crate::source) queried: Option<CommitId>,
    /// The cuts directly before the last open joint commits, ascending.
    pub(in crate::source) before: VecDeque<(TransactionId, Cut)>,
    /// The last commits that were found to be halved, oldest first, each with the bucket that has
    /// lost its part.
    pub(in crate::source) halved: VecDeque<(TransactionId, BucketId)>,
    /// The bytes of prepared transactions, which count against the limit of all open
    /// transactions.
    pub(in crate::source) prepared: PreparedBytes,
    /// The parts of commits that other owners of vbuckets wait for.
    pub(in crate::source) awaited: AwaitedParts,
}

impl OpenState {
    /// Records steps of transactions that are about to be published. `durable` is the cut before
    /// them.
    pub fn record_steps(&mut self, events: &[TransactionEvent], durable: &Cut) {
        if events.is_empty() {
            return;
        }
        let now = Instant::now();
        for event in events {
            match event {
                TransactionEvent::Committed(_) => {}
                TransactionEvent::Prepared(prepared) => {
                    self.since.insert(CommitId::Joint(prepared.transaction), now);
                }
                TransactionEvent::RolledBack(transaction) => {
                    self.forget(CommitId::Joint(*transaction));
                }
                TransactionEvent::Opened(OpenCommit::Joint(joint)) => {
                    let transaction = joint.committed.transaction;
                    self.since.insert(CommitId::Joint(transaction), now);
                    self.add_cut_before(transaction, durable);
                }
                TransactionEvent::Opened(OpenCommit::Pushed(commit)) => {
                    let id = CommitId::Pushed(commit.transaction);
                    self.since.entry(id).or_insert(now);
                    self.complete.remove(&id);
                    self.reported.remove(&id);
                }
                TransactionEvent::Settled(id) => self.forget(*id),
            }
        }
    }

    /// Remembers the cut before a joint commit.
    fn add_cut_before(&mut self, transaction: TransactionId, cut: &Cut) {
        if self.before.back().is_none_or(|(_, last)| last != cut) {
            self.before.push_back((transaction, cut.clone()));
        }
        if self.before.len() > BEFORE_MAX {
            self.before.pop_front();
        }
    }

    /// Forgets everything about a commit that has ended.
    fn forget(&mut self, id: CommitId) {
        self.since.remove(&id);
        self.complete.remove(&id);
        self.reported.remove(&id);
    }

    /// Starts to count the ages of the commits that have no age yet, because the process had them
    /// when it started, or received them as a copy. Forgets commits that are not in `ids`.
    pub fn count_ages(&mut self, ids: impl Iterator<Item = CommitId>) {
        let now = Instant::now();
        self.since = ids.map(|id| (id, self.since.get(&id).copied().unwrap_or(now))).collect();
    }

    /// Returns for how long this process has had a prepared transaction or an open commit.
    pub fn age(&self, id: CommitId, now: Instant) -> Duration {
        let since = self.since.get(&id);
        since.map_or(Duration::ZERO, |since| now.saturating_duration_since(*since))
    }

    /// Returns the state of another participant's part, if that participant has reported it.
    pub fn reported(&self, id: CommitId, participant: Participant) -> Option<PartState> {
        self.reported.get(&id)?.get(&participant).copied()
    }

    /// Forgets what other participants of a commit have reported about their parts.
    pub fn forget_reports(&mut self, id: CommitId) {
        self.reported.remove(&id);
    }

    /// Records the state of another participant's part of a commit. Returns true if the state has
    /// changed.
    pub fn record_part_state(
        &mut self,
        id: CommitId,
        participant: Participant,
        state: PartState,
    ) -> bool {
        self.reported.entry(id).or_default().insert(participant, state) != Some(state)
    }

    /// Records a commit of which the bucket `lost_in` has lost its part.
    pub fn add_halved(&mut self, transaction: TransactionId, lost_in: BucketId) {
        self.halved.push_back((transaction, lost_in));
        if self.halved.len() > HALVED_MAX {
            self.halved.pop_front();
        }
    }

    /// Forgets the cuts before joint commits, because a part of the history was lost.
    pub fn forget_cuts(&mut self) {
        self.before.clear();
    }
}
