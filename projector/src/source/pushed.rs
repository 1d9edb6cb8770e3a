//! The open commits of a producer in a bucket ([`proto::model::pushed`]), as its readers and SYNC see them.
//!
//! A commit is open until the bucket has an epoch with all of it. Until then its mutations are hidden from those who read documents by
//! their ids at present, if this projector does not know that all parts are durable.

use std::collections::BTreeMap;
use std::time::Duration;

use proto::model::commits::TransactionEvent;
use proto::model::cut::Cut;
use proto::model::ids::{ProducerTransactionId, Seqno, TransactionId, VbucketId};
use proto::model::pushed::{PushedCommit, keep_whole};
use proto::rpc::api::TransactionStatus;
use tokio::time::Instant;

use super::bucket::{Bucket, SourceState};

/// An open commit of this age is late: a caller that wants the ends of many buckets does not wait for it.
const LATE_AFTER: Duration = Duration::from_secs(1);

/// Since when this process knows of open commits.
#[derive(Default)]
pub(super) struct PushedState(BTreeMap<ProducerTransactionId, Instant>);

impl PushedState {
    /// Notes what is about to be published.
    pub fn note(&mut self, events: &[TransactionEvent]) {
        for event in events {
            match event {
                TransactionEvent::Pushed(commit) => {
                    self.0.entry(commit.transaction).or_insert_with(Instant::now);
                }
                TransactionEvent::PushedSettled(transaction) => {
                    self.0.remove(transaction);
                }
                _ => {}
            }
        }
    }

    fn age(&self, transaction: ProducerTransactionId, now: Instant) -> Duration {
        self.0.get(&transaction).map_or(Duration::ZERO, |since| now.duration_since(*since))
    }
}

impl SourceState {
    fn is_open_pushed(&self, commit: &PushedCommit) -> bool {
        self.epochs.back().is_none_or(|newest| !commit.is_in(&newest.cut))
    }

    /// The commits of the producer that no epoch has.
    pub(super) fn open_pushed(&self) -> impl Iterator<Item = &PushedCommit> {
        self.commits.pushed().iter().filter(|commit| self.is_open_pushed(commit))
    }

    /// The ends of all vbuckets as far as this projector knows: of those that it does not own, those of the newest epoch.
    fn known_ends(&self) -> Cut {
        let newest = self.epochs.back().map(|newest| &newest.cut);
        match newest {
            Some(newest) => newest.with_of(&self.ownership.owned, &self.durable),
            None => self.durable.of(&self.ownership.owned),
        }
    }
}

impl Bucket {
    /// The commits of the producer that no epoch has, with a part in a vbucket if one is named.
    pub fn open_pushed(&self, vbucket: Option<VbucketId>) -> Vec<PushedCommit> {
        let has = |commit: &&PushedCommit| {
            vbucket.is_none_or(|vbucket| commit.part_of(vbucket).is_some())
        };
        self.state().open_pushed().filter(has).cloned().collect()
    }

    /// The commits of the producer that are open no longer, and that the record still has.
    pub(super) fn settled_pushed(&self) -> Vec<ProducerTransactionId> {
        let state = self.state();
        let all = state.commits.pushed().iter();
        let settled = all.filter(|commit| !state.is_open_pushed(commit));
        settled.map(|commit| commit.transaction).collect()
    }

    /// True if a commit of the producer is open for longer than usual: some part of it is missing.
    pub fn has_late_pushed(&self) -> bool {
        let (state, now) = (self.state(), Instant::now());
        let is_late = |of: &PushedCommit| state.pushed.age(of.transaction, now) >= LATE_AFTER;
        state.open_pushed().any(is_late)
    }

    /// True if no epoch has some commit of the producer.
    pub fn has_open_pushed(&self) -> bool {
        self.state().open_pushed().next().is_some()
    }

    /// True if the commit of a producer's transaction is open.
    pub fn is_open_pushed(&self, transaction: ProducerTransactionId) -> bool {
        self.state().open_pushed().any(|commit| commit.transaction == transaction)
    }

    /// The open commits of the producer, for people. Their numbers are those of the producer.
    pub fn list_pushed(&self) -> Vec<TransactionStatus> {
        let (state, now) = (self.state(), Instant::now());
        let cut = state.known_ends();
        let status = |commit: &PushedCommit| {
            let missing = commit.parts.iter().find(|part| !part.is_in(&cut));
            let owner = match missing {
                Some(part) => format!(
                    "producer, committed in part: epochs wait for vbucket {} at seqno {}",
                    part.vbucket, part.end.seqno
                ),
                None => "producer, committed: waits for an epoch".to_owned(),
            };
            TransactionStatus {
                transaction: TransactionId(commit.transaction.0),
                bucket: self.info.id,
                owner,
                age_ms: state.pushed.age(commit.transaction, now).as_millis() as u64,
                changes: commit.parts.iter().map(|part| part.mutations()).sum(),
                bytes: 0,
                snapshot: None,
                is_committing: true,
            }
        };
        state.open_pushed().map(status).collect()
    }

    /// For each vbucket, the seqno up to which documents may be shown at present; `None` if all may be.
    pub fn shown_ends(&self) -> Option<Vec<Seqno>> {
        let state = self.state();
        state.open_pushed().next()?;
        let ends = state.known_ends();
        let mut shown = ends.clone();
        let published = state.epochs.back().map(|newest| Cut::clone(&newest.cut));
        let published = published.unwrap_or_else(|| Cut::zero(self.info.vbuckets));
        keep_whole(state.open_pushed(), (&published, &state.logs), &mut shown);
        let of_each = |shown: &Cut| shown.iter().map(|(_, position)| position.seqno).collect();
        (shown != ends).then(|| of_each(&shown))
    }
}
