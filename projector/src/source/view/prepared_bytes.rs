//! Counts the bytes of a bucket's prepared changes against the projector's memory limit of all
//! open transactions.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::model::commits::NewestCommits;
use proto::model::ids::TransactionId;
use proto::model::joint::PreparedTransaction;

use crate::transactions::room::{TransactionBudget, TransactionReservation};

/// The bytes of a bucket's prepared changes, and their reservation in the memory budget of all
/// open transactions.
#[derive(Default)]
pub(in crate::source) struct PreparedBytes {
    /// The reservation of these bytes in the budget; `None` before the bucket is served.
    held: Option<TransactionReservation>,
    of: BTreeMap<TransactionId, usize>,
}

impl PreparedBytes {
    /// Reserves the bytes in the memory budget `room` from now on.
    pub fn count_in_budget(&mut self, room: &Arc<TransactionBudget>, commits: &NewestCommits) {
        self.held = Some(room.empty_reservation());
        self.count(commits);
    }

    /// Returns the bytes of all prepared changes.
    pub fn all(&self) -> usize {
        self.of.values().sum()
    }

    /// Adjusts the reservation to the transactions that are prepared now.
    pub fn count(&mut self, commits: &NewestCommits) {
        if self.of.is_empty() && !commits.has_prepared() {
            return;
        }
        let known = std::mem::take(&mut self.of);
        let bytes = |prepared: &Arc<PreparedTransaction>| {
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
    fn prepared_changes_count_in_the_budget() {
        let prepared = |n: u64, changes: usize| {
            let change =
                |at: usize| PreparedChange { id: format!("{n}-{at}").into(), document: None };
            Arc::new(PreparedTransaction {
                transaction: TransactionId(n),
                participants: vec![BucketId(1), BucketId(2)],
                changes: (0..changes).map(change).collect(),
            })
        };
        let (one, other) = (prepared(1, 10), prepared(2, 5));
        let room = TransactionBudget::new(one.bytes());
        let mut commits = NewestCommits::default();
        commits.apply_event(&TransactionEvent::Prepared(Arc::clone(&one)));
        let mut counted = PreparedBytes::default();
        counted.count_in_budget(&room, &commits);
        assert_eq!(room.used(), one.bytes());
        // It was an open transaction until now, so it is accepted even beyond the limit.
        commits.apply_event(&TransactionEvent::Prepared(Arc::clone(&other)));
        counted.count(&commits);
        assert_eq!(room.used(), one.bytes() + other.bytes());
        assert!(room.empty_reservation().grow(1).is_err(), "nobody gets more");
        commits.apply_event(&TransactionEvent::RolledBack(TransactionId(1)));
        counted.count(&commits);
        assert_eq!(room.used(), other.bytes());
        drop(counted);
        assert_eq!(room.used(), 0, "the bucket is gone");
    }
}
