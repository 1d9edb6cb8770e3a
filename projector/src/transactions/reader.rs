//! Reads the changes of a bucket's open transactions for a stream, which sends them to its
//! indexer before the transactions commit.
//!
//! For each transaction a reader has a place: the number of changes and rollbacks that it has
//! read. The reader reads the changes after its place, and advances the place. If changes before
//! the place were rolled back to a savepoint, that is reported first, and the reader's place
//! moves back. The reader checks only transactions that have changed since its last check.
//!
//! A transaction is *young* for a millisecond. Changes of a young transaction are not sent: most
//! transactions end in that time, and need not be sent to indexers at all. While a transaction is
//! being committed, no further changes of it are sent, unless the commit may be large.
//!
//! The reader keeps the changes of a large commit when the commit begins. So it can read them
//! after the transaction has ended, for as long as its stream needs them. Such a transaction is
//! *retained*.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proto::model::ids::{TransactionId, TransactionPlace};
use proto::plant::{self, Plant};
use tokio::time::Instant;

use super::open::Transactions;
use super::transaction::{History, Transaction};
use documents::mutation::Mutation;

/// The progress of a stream through the changes of a bucket's open transactions.
#[derive(Default)]
pub struct TransactionReader {
    known: BTreeMap<TransactionId, StreamPosition>,
    /// The change counter of the bucket's transactions at the last check.
    version: u64,
    /// The number of transactions that had ended at the last check.
    ended: u64,
    /// Transactions that have ended and whose changes the stream may still need.
    retained: BTreeSet<TransactionId>,
}

/// The progress of a stream through the changes of one transaction.
struct StreamPosition {
    number: u64,
    place: TransactionPlace,
    /// The number of the transaction's rollbacks to savepoints that the reader has seen.
    backs: u64,
    /// All changes of the transaction, once its large commit has begun.
    last: Option<Arc<History>>,
    /// True once all changes in `last` were passed to the stream.
    is_whole: bool,
}

/// New changes of one transaction, for a stream to send.
pub struct NewChanges {
    /// The id of the transaction.
    pub transaction: TransactionId,
    /// The place of the transaction before the changes.
    pub from: TransactionPlace,
    /// The place of the transaction after the changes.
    pub to: TransactionPlace,
    /// The changes between the two places, without those that were rolled back.
    pub changes: Vec<Arc<Mutation>>,
}

/// The news about a bucket's transactions, in the order in which a stream must send them.
#[derive(Default)]
pub struct TransactionNews {
    /// Transactions that have ended.
    pub ended: Vec<TransactionId>,
    /// Transactions that were rolled back to a savepoint, each with the place of the savepoint.
    pub backs: Vec<(TransactionId, TransactionPlace)>,
    /// New changes of transactions.
    pub changes: Vec<NewChanges>,
    /// Transactions whose large commit has begun, each with its last place. All their changes
    /// were returned.
    pub committing: Vec<(TransactionId, TransactionPlace)>,
}

impl TransactionReader {
    /// Makes the reader read each open transaction again, from its first change.
    pub fn restart_all(&mut self) {
        self.version = 0;
        let is_lost = plant::is(Plant::BodyLostAtJoin);
        for known in self.known.values_mut().filter(|_| !is_lost) {
            (known.place, known.is_whole) = (TransactionPlace(0), false);
        }
    }

    /// Returns what has happened since the last call, with about `bytes_max` bytes of changes,
    /// but at least one change if there is one.
    pub fn next(
        &mut self,
        transactions: &Transactions,
        bytes_max: usize,
        now: Instant,
    ) -> TransactionNews {
        let mut state = transactions.state();
        let state = &mut *state;
        let mut news = TransactionNews::default();
        if state.ended != self.ended {
            self.ended = state.ended;
            self.known.retain(|id, known| {
                let is_open = state.open.get(id).is_some_and(|open| open.number == known.number);
                let is_retained = !is_open && known.last.is_some();
                if is_retained {
                    self.retained.insert(*id);
                } else if !is_open {
                    news.ended.push(*id);
                }
                is_open || is_retained
            });
        }
        let (mut bytes_left, mut is_young) = (bytes_max, false);
        for (version, id) in state.by_version.range(self.version + 1..) {
            if bytes_left == 0 {
                return news;
            }
            let Some(open) = state.open.get_mut(id) else { continue };
            if open.is_young(now) {
                is_young = true;
                break;
            }
            if !self.read(*id, open, &mut bytes_left, &mut news) {
                return news;
            }
            self.version = *version;
        }
        if !is_young {
            self.version = state.version;
        }
        for id in &self.retained {
            if bytes_left == 0 {
                return news;
            }
            if let Some(known) = self.known.get_mut(id)
                && let Some(last) = known.last.clone()
                && !known.read(*id, &last, &mut bytes_left, &mut news)
            {
                return news;
            }
        }
        news
    }

    /// Forgets the retained transactions for which `is_wanted` returns false, and returns their
    /// ids.
    pub fn forget_ended(
        &mut self,
        is_wanted: impl Fn(TransactionId, u64) -> bool,
    ) -> Vec<TransactionId> {
        let known = &mut self.known;
        let is_gone =
            |id: &TransactionId| !known.get(id).is_some_and(|known| is_wanted(*id, known.number));
        let gone: Vec<_> = self.retained.iter().copied().filter(is_gone).collect();
        for id in &gone {
            self.retained.remove(id);
            known.remove(id);
        }
        gone
    }

    /// Returns the place up to which the stream has read the changes of a transaction that was
    /// committed at the place `end`. `None` if the stream has not read the transaction, or can no
    /// longer read it up to that place.
    pub fn place_of(
        &self,
        (id, number): (TransactionId, u64),
        end: TransactionPlace,
    ) -> Option<TransactionPlace> {
        let known = self.known.get(&id).filter(|known| known.number == number)?;
        let retains_less = self.retained.contains(&id)
            && known.last.as_ref().is_some_and(|last| last.place() < end);
        (!retains_less).then_some(known.place)
    }

    /// Reads the new changes of one transaction into `news`. Returns false if changes are left,
    /// because `bytes_left` is used up.
    fn read(
        &mut self,
        id: TransactionId,
        open: &mut Transaction,
        bytes_left: &mut usize,
        news: &mut TransactionNews,
    ) -> bool {
        // A node that has nothing of a transaction lacks nothing before its first change.
        if open.place().0 == 0 || open.is_committing && !open.is_large {
            return true;
        }
        open.is_told = true;
        let history = open.history();
        let begun = || {
            let (place, backs) = (TransactionPlace(0), history.rollback_count());
            StreamPosition { number: open.number, place, backs, last: None, is_whole: false }
        };
        if self.retained.remove(&id) {
            // A session has reused the id. The stream's state of the earlier transaction ends with this beginning.
            self.known.remove(&id);
        }
        let known = self.known.entry(id).or_insert_with(begun);
        // A commit that was refused may have been tried before, with fewer changes.
        let is_last = |last: &Arc<History>| last.place() == history.place();
        if open.is_large && !known.last.as_ref().is_some_and(is_last) {
            known.last = Some(Arc::new(history.clone()));
        }
        known.read(id, history, bytes_left, news)
    }
}

impl StreamPosition {
    /// Reads the changes after the stream's place into `news`. Returns false if changes are left,
    /// because `bytes_left` is used up.
    fn read(
        &mut self,
        id: TransactionId,
        open: &History,
        bytes_left: &mut usize,
        news: &mut TransactionNews,
    ) -> bool {
        let known = self;
        let back = open.earliest_rollback_since(known.backs).filter(|to| *to < known.place);
        if let Some(to) = back {
            news.backs.push((id, to));
            known.place = to;
        }
        known.backs = open.rollback_count();
        if known.place == open.place() {
            known.report_all_read(id, news);
            return true;
        }
        let (from, mut changes, mut rest) = (known.place, Vec::new(), open.after(known.place));
        while *bytes_left > 0
            && let Some(change) = rest.next()
        {
            *bytes_left = bytes_left.saturating_sub(change.bytes());
            changes.push(Arc::clone(change));
        }
        let is_whole = rest.next().is_none();
        let last = changes.last().map(|last: &Arc<Mutation>| TransactionPlace(last.seqno.0));
        let to = if is_whole { open.place() } else { last.unwrap_or(from) };
        known.place = to;
        news.changes.push(NewChanges { transaction: id, from, to, changes });
        if is_whole {
            known.report_all_read(id, news);
        }
        is_whole
    }

    /// Reports, once, that a large commit has begun and all changes of the transaction were read.
    fn report_all_read(&mut self, id: TransactionId, news: &mut TransactionNews) {
        if self.last.is_some() && !self.is_whole {
            self.is_whole = true;
            news.committing.push((id, self.place));
        }
    }
}
