//! The open commits of a producer in a bucket ([`proto::model::pushed`]), as its readers and SYNC see them.
//!
//! A commit is open until the bucket has an epoch with all of it. Until then those who read its documents by their ids at present wait, unless
//! this projector knows that all parts are durable: it has them, or whoever has committed them tells.

use std::time::Duration;

use proto::model::commits::TransactionEvent;
use proto::model::cut::Cut;
use proto::model::ids::{ProducerTransactionId, Seqno, TransactionId, VbucketId};
use proto::model::pushed::{PushedCommit, PushedPart};
use proto::rpc::api::TransactionStatus;
use proto::{Error, ErrorCode};
use tokio::time::Instant;

use super::bucket::{Bucket, SourceState};

/// An open commit of this age is late: a caller that wants the ends of many buckets does not wait for it.
const LATE_AFTER: Duration = Duration::from_secs(1);

impl SourceState {
    fn is_open_pushed(&self, commit: &PushedCommit) -> bool {
        self.epochs.back().is_none_or(|newest| !commit.is_in(&newest.cut))
    }

    /// The commits of the producer that no epoch has.
    pub(super) fn open_pushed(&self) -> impl Iterator<Item = &PushedCommit> {
        self.commits.pushed().iter().filter(|commit| self.is_open_pushed(commit))
    }

    /// Those of them of which this projector does not know that all parts are durable.
    fn incomplete_pushed(&self) -> impl Iterator<Item = &PushedCommit> {
        let ends = (!self.commits.pushed().is_empty()).then(|| self.known_ends());
        self.open_pushed().filter(move |commit| {
            !self.pushed.complete.contains(&commit.transaction)
                && ends.as_ref().is_some_and(|ends| !commit.is_in(ends))
        })
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

    /// Notes the commits of a producer that a group has, before its documents are in the table.
    pub(super) fn announce_pushed(&self, events: &[TransactionEvent]) {
        let is_pushed = |event: &&TransactionEvent| matches!(event, TransactionEvent::Pushed(_));
        let begun: Vec<_> = events.iter().filter(is_pushed).cloned().collect();
        if begun.is_empty() {
            return;
        }
        let mut state = self.state();
        state.pushed.note(&begun);
        begun.iter().for_each(|event| state.commits.add(event));
    }

    /// The commits of the producer that are open no longer, and that the record still has.
    pub(super) fn settled_pushed(&self) -> Vec<PushedCommit> {
        let state = self.state();
        let all = state.commits.pushed().iter();
        all.filter(|commit| !state.is_open_pushed(commit)).cloned().collect()
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

    /// Notes that all parts of an open commit are durable.
    pub fn complete_pushed(&self, transaction: ProducerTransactionId) {
        let is_new = {
            let mut state = self.state();
            state.commits.pushed().find(transaction).is_some()
                && state.pushed.complete.insert(transaction)
        };
        if is_new {
            self.wake();
        }
    }

    /// True if some open commit may lack parts.
    pub fn has_incomplete_pushed(&self) -> bool {
        self.state().incomplete_pushed().next().is_some()
    }

    /// The open commit that has made the change of a vbucket with this seqno, if it may lack parts.
    pub fn incomplete_pushed_at(
        &self,
        vbucket: VbucketId,
        seqno: Seqno,
    ) -> Option<ProducerTransactionId> {
        let state = self.state();
        let has = |part: &PushedPart| part.after < seqno && seqno <= part.end.seqno;
        let mut open = state.incomplete_pushed();
        let found = open.find(|commit| commit.part_of(vbucket).is_some_and(has));
        found.map(|commit| commit.transaction)
    }

    /// The error for a reader of a document of a commit that lacks parts.
    pub fn incomplete(&self, transaction: ProducerTransactionId) -> Error {
        let name = &self.info.name;
        let what = format!(
            "transaction {transaction} of the producer of bucket {name} is committed in part, and has changed the document"
        );
        Error::new(ErrorCode::Held, what)
            .with_hint("try again; SHOW TRANSACTIONS names the vbucket that is waited for")
    }
}
