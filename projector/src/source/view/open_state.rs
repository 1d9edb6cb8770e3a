//! The state of a bucket's prepared transactions and open commits that is not in its record
//! ([`crate::source::commits`]).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use proto::model::commits::TransactionEvent;
use proto::model::cut::Cut;
use proto::model::ids::{BucketId, TransactionId};
use proto::model::open_commit::{CommitId, OpenCommit, PartState, Participant};
use tokio::time::Instant;

use super::awaited_parts::AwaitedParts;
use super::prepared_bytes::PreparedBytes;

/// The limit of remembered closed cuts before open joint commits. More of them would make epochs
/// shorter, not more frequent.
const BEFORE_MAX: usize = 4;

/// The limit of halved commits that are remembered, for operators.
const HALVED_MAX: usize = 16;

/// The unrecorded state of a bucket's prepared transactions and open commits.
#[derive(Default)]
pub(in crate::source) struct OpenState {
    /// The time at which this process first had each transaction or commit.
    since: BTreeMap<CommitId, Instant>,
    /// The states of the parts of other participants, as these have reported them.
    reported: BTreeMap<CommitId, BTreeMap<Participant, PartState>>,
    /// The open commits of which all parts are durable.
    pub(in crate::source) complete: BTreeSet<CommitId>,
    /// The last commit whose other participants were queried; the next query continues after it.
    pub(in crate::source) queried: Option<CommitId>,
    /// The closed cuts before the last open joint commits, ascending.
    pub(in crate::source) before: VecDeque<(TransactionId, Cut)>,
    /// The last commits that were found to be halved, oldest first, with the bucket that has lost its part.
    pub(in crate::source) halved: VecDeque<(TransactionId, BucketId)>,
    /// The bytes of prepared transactions, counted against the limit of all open ones.
    pub(in crate::source) prepared: PreparedBytes,
    /// The parts that other owners wait for.
    pub(in crate::source) awaited: AwaitedParts,
}

impl OpenState {
    /// Records steps that are about to be published after a cut.
    pub fn note(&mut self, events: &[TransactionEvent], durable: &Cut) {
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

    fn add_cut_before(&mut self, transaction: TransactionId, cut: &Cut) {
        if self.before.back().is_none_or(|(_, last)| last != cut) {
            self.before.push_back((transaction, cut.clone()));
        }
        if self.before.len() > BEFORE_MAX {
            self.before.pop_front();
        }
    }

    fn forget(&mut self, id: CommitId) {
        self.since.remove(&id);
        self.complete.remove(&id);
        self.reported.remove(&id);
    }

    /// Starts the ages of the commits that have none yet: those that this process had when it
    /// started, or received as a copy.
    pub fn count_ages(&mut self, ids: impl Iterator<Item = CommitId>) {
        let now = Instant::now();
        self.since = ids.map(|id| (id, self.since.get(&id).copied().unwrap_or(now))).collect();
    }

    /// Returns the time for which this process has had a prepared transaction or an open commit.
    pub fn age(&self, id: CommitId, now: Instant) -> Duration {
        let since = self.since.get(&id);
        since.map_or(Duration::ZERO, |since| now.saturating_duration_since(*since))
    }

    /// Returns the state of another participant's part, if that participant has reported it.
    pub fn reported(&self, id: CommitId, participant: Participant) -> Option<PartState> {
        self.reported.get(&id)?.get(&participant).copied()
    }

    /// Forgets the states that other participants of a commit have reported.
    pub fn forget_reports(&mut self, id: CommitId) {
        self.reported.remove(&id);
    }

    /// Records the state of the part of another participant. Returns true if it has changed.
    pub fn report(&mut self, id: CommitId, participant: Participant, state: PartState) -> bool {
        self.reported.entry(id).or_default().insert(participant, state) != Some(state)
    }

    /// Records a commit of which another bucket has lost its part.
    pub fn add_halved(&mut self, transaction: TransactionId, lost_in: BucketId) {
        self.halved.push_back((transaction, lost_in));
        if self.halved.len() > HALVED_MAX {
            self.halved.pop_front();
        }
    }

    /// Drops the closed cuts, because their history is lost.
    pub fn forget_cuts(&mut self) {
        self.before.clear();
    }
}
