//! The memory of a bucket about the open commits of its producer, besides its record ([`crate::source::commits::producer_commits`]).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proto::model::commits::TransactionEvent;
use proto::model::ids::{ProducerTransactionId, Seqno, VbucketId};
use proto::model::pushed_commit::{OPEN_MAX, OpenCommits};
use proto::rpc::api::PartState;
use tokio::time::Instant;

/// The time for which a query counts as a wait. An owner that still waits repeats its query sooner.
const AWAITED_FOR: Duration = Duration::from_secs(5);
/// Transactions that other owners wait for: the open commits of a few of them.
const AWAITED_MAX: usize = 4 * OPEN_MAX;

/// The memory of a bucket about open commits, besides its record.
pub(in crate::source) struct PushedState {
    /// The times at which this process first knew of the open commits.
    known_since: BTreeMap<ProducerTransactionId, Instant>,
    /// The open commits of which all parts are durable.
    pub(in crate::source) complete: BTreeSet<ProducerTransactionId>,
    /// The states of the parts in other vbuckets, as reported by their owners.
    pub(in crate::source) told: BTreeMap<ProducerTransactionId, BTreeMap<VbucketId, PartState>>,
    /// The last commit whose other owners were queried; the next query continues after it.
    pub(in crate::source) asked: ProducerTransactionId,
    /// The ends of missing parts that other owners wait for, and the times of their queries.
    awaited: BTreeMap<VbucketId, (Seqno, Instant)>,
    /// The transactions that other owners have queried, and when.
    awaited_transactions: BTreeMap<ProducerTransactionId, Instant>,
}

impl PushedState {
    /// The state at the start of a process.
    pub fn of(open: &OpenCommits) -> Self {
        let since = open.iter().map(|commit| (commit.transaction, Instant::now()));
        Self {
            known_since: since.collect(),
            complete: BTreeSet::new(),
            told: BTreeMap::new(),
            asked: ProducerTransactionId(0),
            awaited: BTreeMap::new(),
            awaited_transactions: BTreeMap::new(),
        }
    }

    /// Records the commits that are about to be published.
    pub fn note(&mut self, events: &[TransactionEvent]) {
        for event in events {
            match event {
                TransactionEvent::Pushed(commit) => {
                    self.known_since.entry(commit.transaction).or_insert_with(Instant::now);
                    self.complete.remove(&commit.transaction);
                    self.told.remove(&commit.transaction);
                }
                TransactionEvent::PushedSettled(transaction) => {
                    self.known_since.remove(transaction);
                    self.complete.remove(transaction);
                    self.told.remove(transaction);
                }
                _ => {}
            }
        }
    }

    /// The time for which this process has known an open commit.
    pub fn age(&self, transaction: ProducerTransactionId, now: Instant) -> Duration {
        let since = self.known_since.get(&transaction);
        since.map_or(Duration::ZERO, |since| now.duration_since(*since))
    }

    /// Notes that another owner waits for a part. Returns true if no recent wait covers as much of the vbucket.
    pub fn wait_for(&mut self, vbucket: VbucketId, end: Seqno, now: Instant) -> bool {
        let before = self.awaited(vbucket, now).unwrap_or_default();
        self.awaited.insert(vbucket, (before.max(end), now));
        before < end
    }

    /// The end up to which another owner waits for mutations of a vbucket.
    fn awaited(&self, vbucket: VbucketId, now: Instant) -> Option<Seqno> {
        let (end, asked_at) = self.awaited.get(&vbucket)?;
        (now.duration_since(*asked_at) < AWAITED_FOR).then_some(*end)
    }

    /// The ends up to which other owners wait for mutations of vbuckets.
    pub fn awaited_ends(&self, now: Instant) -> impl Iterator<Item = (VbucketId, Seqno)> {
        self.awaited.keys().filter_map(move |of| Some((*of, self.awaited(*of, now)?)))
    }

    /// Notes that another owner waits for a transaction. Returns true if there was no recent wait for it. Beyond the bound it is not noted:
    /// the owner will repeat its query.
    pub fn wait_for_transaction(
        &mut self,
        transaction: ProducerTransactionId,
        now: Instant,
    ) -> bool {
        let is_known = self.awaits_transaction(transaction, now);
        let awaited = &mut self.awaited_transactions;
        if awaited.len() >= AWAITED_MAX {
            awaited.retain(|_, asked_at| now.duration_since(*asked_at) < AWAITED_FOR);
        }
        if is_known || awaited.len() < AWAITED_MAX {
            awaited.insert(transaction, now);
        }
        !is_known
    }

    /// True if another owner has queried a transaction lately.
    pub fn awaits_transaction(&self, transaction: ProducerTransactionId, now: Instant) -> bool {
        let asked_at = self.awaited_transactions.get(&transaction);
        asked_at.is_some_and(|asked_at| now.duration_since(*asked_at) < AWAITED_FOR)
    }
}
