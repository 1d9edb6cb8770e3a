//! The bytes of a bucket's prepared changes, counted against the limit of all open transactions of the projector.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::model::commits::NewestCommits;
use proto::model::ids::TransactionId;
use proto::model::joint::Prepared;

use crate::transactions::room::{Room, TransactionReservation};

/// The bytes of a bucket's prepared changes, as a part of the limit of all open transactions.
#[derive(Default)]
pub(in crate::source) struct PreparedBytes {
    /// The reservation of these bytes; `None` before the bucket is served.
    held: Option<TransactionReservation>,
    of: BTreeMap<TransactionId, usize>,
}

impl PreparedBytes {
    /// Makes the bytes count against `room` from now on.
    pub fn count_in(&mut self, room: &Arc<Room>, commits: &NewestCommits) {
        self.held = Some(room.hold());
        self.count(commits);
    }

    /// Returns the bytes of all prepared changes.
    pub fn all(&self) -> usize {
        self.of.values().sum()
    }

    /// Updates the count to the transactions that are prepared now.
    pub fn count(&mut self, commits: &NewestCommits) {
        if self.of.is_empty() && !commits.has_prepared() {
            return;
        }
        let known = std::mem::take(&mut self.of);
        let bytes = |prepared: &Arc<Prepared>| {
            let known = known.get(&prepared.transaction).copied();
            (prepared.transaction, known.unwrap_or_else(|| prepared.bytes()))
        };
        self.of = commits.prepared().map(bytes).collect();
        if let Some(held) = &mut self.held {
            held.set(self.of.values().sum());
        }
    }
}

#[cfg(test)]
mod tests {
    use proto::model::commits::TransactionEvent;
    use proto::model::ids::BucketId;
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
