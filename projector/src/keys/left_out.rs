//! Counts the documents that indexes leave out.
//!
//! In a large commit each version of a document is counted, including versions that were rolled
//! back to a savepoint. After the slices of an index were split, its left-out documents are
//! counted from zero again.

use std::collections::BTreeMap;
use std::sync::Mutex;

use proto::lock::lock;
use proto::model::ids::LocalIndexId;
use proto::model::left_out::{LeftOut, LeftOutReason};

/// For each index, the number of documents that it has left out: since the projector's start, or
/// in one transaction.
#[derive(Debug, Default)]
pub struct LeftOutCounters(Mutex<BTreeMap<LocalIndexId, LeftOut>>);

impl LeftOutCounters {
    /// Counts a document that an index has left out. Returns the new total of the index.
    pub(super) fn count(&self, index: LocalIndexId, reason: LeftOutReason) -> u64 {
        let mut counts = lock(&self.0);
        let of_index = counts.entry(index).or_default();
        of_index.count(reason);
        of_index.total()
    }

    /// Adds the counts of other counters to these.
    pub fn add(&self, others: &Self) {
        let mut counts = lock(&self.0);
        for (index, more) in others.all() {
            counts.entry(index).or_default().add(&more);
        }
    }

    /// Returns the counts of all indexes that have left out a document.
    pub fn all(&self) -> Vec<(LocalIndexId, LeftOut)> {
        lock(&self.0).iter().map(|(index, counts)| (*index, *counts)).collect()
    }

    /// Removes the counts of the indexes for which `is_known` returns false.
    pub fn retain(&self, is_known: impl Fn(LocalIndexId) -> bool) {
        lock(&self.0).retain(|index, _| is_known(*index));
    }
}
