//! The memory of a bucket about joint commits, besides its record ([`crate::source::commits::joint`]).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use proto::model::commits::{NewestCommits, TransactionEvent};
use proto::model::cut::Cut;
use proto::model::ids::{BucketId, TransactionId};
use proto::model::joint::Prepared;
use tokio::time::Instant;

use crate::transactions::room::{Room, TransactionReservation};

/// Closed cuts before open joint commits that are remembered. More of them would make shorter epochs, not more.
const BEFORE_MAX: usize = 4;

/// Halved commits that are remembered, for people.
const HALVED_MAX: usize = 16;

/// The memory of a bucket about joint commits.
#[derive(Default)]
pub(in crate::source) struct JointState {
    /// The closed cuts before the last open joint commits, ascending.
    pub(in crate::source) before: VecDeque<(TransactionId, Cut)>,
    /// For each open joint commit, the buckets that are not waited for: they have lost their part, or one of their epochs has it already.
    pub(in crate::source) left_out: BTreeMap<TransactionId, BTreeSet<BucketId>>,
    /// Commits that have changed nothing here, and that epochs of all other buckets have.
    pub(in crate::source) done: BTreeSet<TransactionId>,
    /// The last commits that were found to be halved, oldest first, with the bucket that has lost its part.
    pub(in crate::source) halved: VecDeque<(TransactionId, BucketId)>,
    /// The bytes of prepared transactions, counted against the limit of all open ones.
    pub(in crate::source) prepared: PreparedBytes,
    /// The times at which this process first knew of prepared transactions and open joint commits.
    pub(in crate::source) known_since: BTreeMap<TransactionId, Instant>,
}

/// The bytes of a bucket's prepared changes, among those of all open transactions of the projector.
#[derive(Default)]
pub(in crate::source) struct PreparedBytes {
    /// `None` before the bucket is served.
    held: Option<TransactionReservation>,
    of: BTreeMap<TransactionId, usize>,
}

impl PreparedBytes {
    /// Counts against a memory limit from now on.
    pub fn count_in(&mut self, room: &Arc<Room>, commits: &NewestCommits) {
        self.held = Some(room.hold());
        self.count(commits);
    }

    /// The bytes of all that is prepared.
    pub fn all(&self) -> usize {
        self.of.values().sum()
    }

    /// Counts what is prepared now.
    pub fn count(&mut self, commits: &NewestCommits) {
        if self.of.is_empty() && !commits.has_prepared() {
            return;
        }
        let known = std::mem::take(&mut self.of);
        let bytes = |prepared: &Arc<Prepared>| {
            let known = known.get(&prepared.transaction).copied();
            (prepared.transaction, known.unwrap_or_else(|| prepared.bytes()))
        };
        self.of = commits.joint().prepared().map(bytes).collect();
        if let Some(held) = &mut self.held {
            held.set(self.of.values().sum());
        }
    }
}

impl JointState {
    /// Records the commits that are about to be published after a cut.
    pub fn note(&mut self, events: &[TransactionEvent], durable: &Cut) {
        if events.is_empty() {
            return;
        }
        let now = Instant::now();
        for event in events {
            match event {
                TransactionEvent::Prepared(prepared) => {
                    self.known_since.insert(prepared.transaction, now);
                }
                TransactionEvent::RolledBack(transaction) => {
                    self.known_since.remove(transaction);
                }
                TransactionEvent::Joint(joint) => {
                    let transaction = joint.committed.transaction;
                    self.known_since.insert(transaction, now);
                    if self.before.back().is_none_or(|(_, cut)| cut != durable) {
                        self.before.push_back((transaction, durable.clone()));
                    }
                    if self.before.len() > BEFORE_MAX {
                        self.before.pop_front();
                    }
                }
                TransactionEvent::Settled(transaction) => {
                    self.left_out.remove(transaction);
                    self.done.remove(transaction);
                    self.known_since.remove(transaction);
                }
                _ => {}
            }
        }
    }

    /// Remembers a commit that another bucket has lost.
    pub fn add_halved(&mut self, transaction: TransactionId, lost_in: BucketId) {
        self.halved.push_back((transaction, lost_in));
        if self.halved.len() > HALVED_MAX {
            self.halved.pop_front();
        }
    }

    /// True if a prepared transaction or an open joint commit is known for longer than this.
    pub fn is_older(&self, transaction: TransactionId, age: Duration, now: Instant) -> bool {
        let since = self.known_since.get(&transaction);
        since.is_some_and(|since| now.duration_since(*since) >= age)
    }

    /// Forgets cuts of a history that is lost.
    pub fn forget_cuts(&mut self) {
        self.before.clear();
    }
}

#[cfg(test)]
mod tests {
    use proto::model::joint::PreparedChange;

    use super::*;

    #[test]
    fn prepared_changes_take_the_room_of_open_transactions_until_they_end() {
        let prepared = |n: u64, changes: usize| {
            let change =
                |at: usize| PreparedChange { id: format!("{n}-{at}").into(), document: None };
            Arc::new(Prepared {
                transaction: TransactionId(n),
                participants: vec![BucketId(1), BucketId(2)],
                changes: (0..changes).map(change).collect(),
            })
        };
        let (one, other) = (prepared(1, 10), prepared(2, 5));
        let room = Room::new(one.bytes());
        let mut commits = NewestCommits::default();
        commits.add(&TransactionEvent::Prepared(Arc::clone(&one)));
        let mut counted = PreparedBytes::default();
        counted.count_in(&room, &commits);
        assert_eq!(room.used(), one.bytes());
        // It was an open transaction until now, so it is accepted even beyond the limit.
        commits.add(&TransactionEvent::Prepared(Arc::clone(&other)));
        counted.count(&commits);
        assert_eq!(room.used(), one.bytes() + other.bytes());
        assert!(room.hold().grow(1).is_err(), "nobody gets more");
        commits.add(&TransactionEvent::RolledBack(TransactionId(1)));
        counted.count(&commits);
        assert_eq!(room.used(), other.bytes());
        drop(counted);
        assert_eq!(room.used(), 0, "the bucket is gone");
    }
}
