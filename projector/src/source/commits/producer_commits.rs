//! The open commits of a producer in a bucket ([`proto::model::pushed_commit`]), as its readers and SYNC see them.
//!
//! Each part of a commit has a state ([`PartState`]). The owner of its vbucket knows it: it has the failover log, and the branches that
//! were given up. Of other vbuckets a projector has only the positions of epochs. A position on the branch of the part proves that an epoch
//! has the part; a position on another branch proves nothing, so the owner is queried (`pushed_parts.rs`). Until it answers the part counts
//! as missing. So no part is taken for shown or lost by mistake.
//!
//! - A commit is *open* until an epoch has all parts that are not lost. A commit with a single part left cannot be split, and is no longer
//!   open. Epochs of one history only grow, so parts that were found in different epochs are all in the later one.
//! - Only an owner of a part that is not lost has the commit open. An owner that hands its last such vbucket over has passed the commit on
//!   before (`hand_over/copying.rs`). While a vbucket is being handed over to this projector, the record keeps its commits.
//! - SYNC names an open commit without the parts that are lost. That is safe: a vbucket that has left a branch never begins it again, so no
//!   epoch will have such a part, whatever happens. A branch that an owner does not know may be about to begin, or the owner's disk has
//!   lost it: then all epochs wait, until the producer commits again or an operator gives up the rest. - Readers of present documents of an
//!   open commit by id wait, unless this projector knows that no part is missing, from the owners or the committing call. - What a hold
//!   waits for finds room beyond the bound on mutations that no epoch covers ([`super::pushed_awaited`]): otherwise the hold would never
//!   end.

use std::time::Duration;

use proto::model::assignment::VbucketSet;
use proto::model::commits::TransactionEvent;
use proto::model::history::Branches;
use proto::model::ids::{ProducerTransactionId, Seqno, TransactionId, VbucketId};
use proto::model::pushed_commit::{PushedCommit, PushedPart};
use proto::plant::{self, Plant};
use proto::rpc::api::{PartState, TransactionStatus};
use proto::{Error, ErrorCode, Result};
use tokio::time::Instant;

use crate::source::view::bucket::{Bucket, SourceState};

/// An open commit of this age is late: a caller that reads the ends of many buckets does not wait for it.
const LATE_AFTER: Duration = Duration::from_secs(1);

impl SourceState {
    /// The state of a part, as far as this projector knows.
    fn part_state(&self, transaction: ProducerTransactionId, part: &PushedPart) -> PartState {
        if self.ownership.owned.contains(part.vbucket) {
            return self.own_part_state(part);
        }
        if self.epochs.back().is_some_and(|newest| part.is_on_branch_of(&newest.cut)) {
            return PartState::Shown;
        }
        let told = self.pushed.told.get(&transaction).and_then(|told| told.get(&part.vbucket));
        told.copied().unwrap_or(PartState::Missing)
    }

    /// The state of a part in a vbucket that this projector owns.
    pub(super) fn own_part_state(&self, part: &PushedPart) -> PartState {
        let none = Branches::new();
        let branches = self.logs.get(part.vbucket).unwrap_or(&none);
        let given_up = self.given_up.get(&part.vbucket).unwrap_or(&none);
        if self.epochs.back().is_some_and(|newest| part.is_in(&newest.cut, &self.logs)) {
            PartState::Shown
        } else if part.is_in(&self.durable, &self.logs) {
            PartState::Durable
        } else if part.is_lost(branches, given_up) {
            PartState::Lost
        } else {
            PartState::Missing
        }
    }

    /// The parts that are not lost, with their states.
    fn parts_left<'c>(
        &self,
        commit: &'c PushedCommit,
    ) -> impl Iterator<Item = (&'c PushedPart, PartState)> {
        let with_state = |part| (part, self.part_state(commit.transaction, part));
        commit.parts.iter().map(with_state).filter(|(_, state)| *state != PartState::Lost)
    }

    fn is_open_pushed(&self, commit: &PushedCommit) -> bool {
        let (mut left, mut is_kept, mut is_shown) = (0, false, true);
        for (part, state) in self.parts_left(commit) {
            left += 1;
            is_kept |= self.ownership.owned.contains(part.vbucket);
            is_shown &= state == PartState::Shown || plant::is(Plant::PushedSettledEarly);
        }
        is_kept && left > 1 && !is_shown
    }

    /// True if a part in a vbucket that this projector owns is lost.
    fn has_lost_own_part(&self, commit: &PushedCommit) -> bool {
        let mut own =
            commit.parts.iter().filter(|part| self.ownership.owned.contains(part.vbucket));
        own.any(|part| self.own_part_state(part) == PartState::Lost)
    }

    /// True if a vbucket with a part is stored here, and owned by another projector: it may be in a hand-over to this
    /// projector.
    fn may_be_coming(&self, commit: &PushedCommit) -> bool {
        commit
            .parts
            .iter()
            .any(|part| !self.ownership.owned.contains(part.vbucket) && self.has_data(part.vbucket))
    }

    /// The commits of the producer that no epoch has.
    pub(super) fn open_pushed(&self) -> impl Iterator<Item = &PushedCommit> {
        self.commits.pushed().iter().filter(|commit| self.is_open_pushed(commit))
    }

    /// The open commits as SYNC names them: without the lost parts.
    pub(super) fn named_pushed(&self) -> Vec<PushedCommit> {
        let named = |commit: &PushedCommit| PushedCommit {
            transaction: commit.transaction,
            parts: self.parts_left(commit).map(|(part, _)| *part).collect(),
        };
        self.open_pushed().map(named).collect()
    }

    /// The missing part of an open commit, unless this projector was informed that all parts are durable.
    fn missing_part<'c>(&self, commit: &'c PushedCommit) -> Option<&'c PushedPart> {
        if self.pushed.complete.contains(&commit.transaction) {
            return None;
        }
        let mut left = self.parts_left(commit);
        left.find(|(_, state)| *state == PartState::Missing).map(|(part, _)| part)
    }

    /// The open commits that lack parts, as far as this projector knows.
    fn incomplete_pushed(&self) -> impl Iterator<Item = &PushedCommit> {
        self.open_pushed().filter(|commit| self.missing_part(commit).is_some())
    }
}

impl Bucket {
    /// The commits of the producer that no epoch has, with a part in a vbucket.
    pub fn open_pushed(&self, vbucket: VbucketId) -> Vec<PushedCommit> {
        let is_told = !plant::is(Plant::PushedNotHandedOver);
        let has = |commit: &&PushedCommit| is_told && commit.part_of(vbucket).is_some();
        self.state().open_pushed().filter(has).cloned().collect()
    }

    /// Adds the open commits that are received with a vbucket to the record. Returns the steps that the record lacks. A commit that was
    /// received only with this vbucket, and is not any more, has ended meanwhile. If other vbuckets here have another version of a commit,
    /// its producer has committed again, and one of the two owners does not know it yet. A version of which a part here is lost is the
    /// former one, and can never be complete: it is not added. Otherwise to drop either version could split the commit, so the vbucket
    /// waits (`Unavailable`).
    pub fn coming_pushed(
        &self,
        vbucket: VbucketId,
        coming: Vec<PushedCommit>,
    ) -> Result<Vec<TransactionEvent>> {
        let state = self.state();
        let is_elsewhere = |part: &PushedPart| {
            let is_owned = state.ownership.owned.contains(part.vbucket);
            part.vbucket != vbucket && (is_owned || state.has_data(part.vbucket))
        };
        let is_of_others = |commit: &PushedCommit| commit.parts.iter().any(is_elsewhere);
        let has_ended = |known: &&PushedCommit| {
            let comes = coming.iter().any(|commit| commit.transaction == known.transaction);
            !comes && known.part_of(vbucket).is_some() && !is_of_others(known)
        };
        let ended = state.commits.pushed().iter().filter(has_ended);
        let ended = ended.map(|known| TransactionEvent::PushedSettled(known.transaction));
        let mut events: Vec<_> = ended.collect();
        for commit in coming {
            match state.commits.pushed().find(commit.transaction) {
                Some(known) if *known == commit => {}
                // The producer has committed again, after the owner of this vbucket had released it.
                Some(known)
                    if state.has_lost_own_part(&commit)
                        && !state.has_lost_own_part(known)
                        && known.part_of(vbucket) == commit.part_of(vbucket) => {}
                Some(known) if is_of_others(known) => {
                    let (name, transaction) = (&self.info.name, commit.transaction);
                    let what = format!(
                        "vbucket {vbucket} of bucket {name}: its owner knows another version of the commit of transaction {transaction} of the producer"
                    );
                    return Err(Error::unavailable(what).with_hint(
                        "the hand-over goes on when the producer has committed the transaction again, or after CANCEL TRANSACTION",
                    ));
                }
                _ => events.push(TransactionEvent::Pushed(commit)),
            }
        }
        Ok(events)
    }

    /// The late open commits whose other owners are to be queried, each with the vbuckets in question; at most `most` at a time.
    pub fn ask_for_pushed(&self, most: usize) -> Vec<(PushedCommit, VbucketSet)> {
        let (mut state, now) = (self.state(), Instant::now());
        let question = |commit: &PushedCommit| {
            // The owner of a lost part must know as well that the transaction is waited for, so that a repeated commit finds room.
            let is_asked = |part: &&PushedPart| {
                let is_owned = state.ownership.owned.contains(part.vbucket);
                !is_owned && state.part_state(commit.transaction, part) != PartState::Shown
            };
            let wanted = commit.parts.iter().filter(is_asked).map(|part| part.vbucket);
            (commit.clone(), wanted.collect::<VbucketSet>())
        };
        let is_late = |of: &&PushedCommit| state.pushed.age(of.transaction, now) >= LATE_AFTER;
        let late = || state.open_pushed().filter(is_late);
        let behind = late().filter(|commit| commit.transaction > state.pushed.asked);
        let before = late().filter(|commit| commit.transaction <= state.pushed.asked);
        let all = behind.chain(before).map(question).filter(|(_, wanted)| !wanted.is_empty());
        let asked: Vec<_> = all.take(most).collect();
        if let Some((last, _)) = asked.last() {
            state.pushed.asked = last.transaction;
        }
        asked
    }

    /// Stores another owner's answer about the parts of a commit.
    pub fn note_told(&self, commit: &PushedCommit, told: &[(VbucketId, PartState)]) {
        let mut state = self.state();
        // The transaction may have been committed again meanwhile, at other positions.
        if state.commits.pushed().find(commit.transaction) != Some(commit) {
            return;
        }
        let of_commit = state.pushed.told.entry(commit.transaction).or_default();
        let mut has_news = false;
        for (vbucket, part_state) in told {
            let before = of_commit.get(vbucket).copied();
            // A lost part stays lost, also if its owner has forgotten the branches that it has left.
            if before == Some(PartState::Lost) {
                continue;
            }
            of_commit.insert(*vbucket, *part_state);
            has_news |= before != Some(*part_state);
            if *part_state == PartState::Lost {
                let (name, transaction) = (&self.info.name, commit.transaction);
                tracing::warn!(%transaction, bucket = %name, %vbucket, "a part of a producer's commit is lost, and waited for no longer");
            }
        }
        drop(state);
        if has_news {
            self.wake();
        }
    }

    /// Records the commits of a producer that a group has, before its documents are in the table.
    pub(in crate::source) fn announce_pushed(&self, events: &[TransactionEvent]) {
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
    pub(in crate::source) fn settled_pushed(&self) -> Vec<PushedCommit> {
        let state = self.state();
        let all = state.commits.pushed().iter();
        let is_settled =
            |commit: &&PushedCommit| !state.is_open_pushed(commit) && !state.may_be_coming(commit);
        all.filter(is_settled).cloned().collect()
    }

    /// True if a commit of the producer is open for longer than usual: some part of it is missing.
    pub fn has_late_pushed(&self) -> bool {
        let (state, now) = (self.state(), Instant::now());
        let is_late = |of: &PushedCommit| state.pushed.age(of.transaction, now) >= LATE_AFTER;
        state.open_pushed().any(is_late)
    }

    /// True if the commit of a producer's transaction is open.
    pub fn is_open_pushed(&self, transaction: ProducerTransactionId) -> bool {
        self.state().open_pushed().any(|commit| commit.transaction == transaction)
    }

    /// A vbucket with a part of an open commit that was released for another owner.
    pub fn released_with_part_of(&self, transaction: ProducerTransactionId) -> Option<VbucketId> {
        let state = self.state();
        let commit = state.commits.pushed().find(transaction)?;
        let mut vbuckets = commit.parts.iter().map(|part| part.vbucket);
        vbuckets.find(|vbucket| state.ownership.released.contains(*vbucket))
    }

    /// The open commits of the producer, for people. Their numbers are those of the producer.
    pub fn list_pushed(&self) -> Vec<TransactionStatus> {
        let (state, now) = (self.state(), Instant::now());
        let status = |commit: &PushedCommit| {
            let owner = match state.missing_part(commit) {
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

    /// Records that all parts of an open commit are durable. Another version of it may lack some.
    pub fn complete_pushed(&self, commit: &PushedCommit) {
        let is_new = {
            let mut state = self.state();
            state.commits.pushed().find(commit.transaction) == Some(commit)
                && state.pushed.complete.insert(commit.transaction)
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
        let vbuuid = state.logs.branch_of(vbucket, seqno);
        let has = |part: &PushedPart| {
            part.after < seqno && seqno <= part.end.seqno && part.end.vbuuid == vbuuid
        };
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

#[cfg(test)]
#[path = "producer_commits_tests.rs"]
mod tests;
