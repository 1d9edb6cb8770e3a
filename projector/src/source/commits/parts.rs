//! The parts of a producer's commits: a commit has a part in each vbucket that it changes
//! ([`proto::model::pushed_commit`]).
//!
//! Each part has a state ([`PartState`]). The owner of the vbucket can determine the state, from
//! the vbucket's branches and those that the producer has given up. Of other owners' vbuckets, a
//! projector knows only the positions in epochs. A position on the branch of the part proves that
//! an epoch has the part; a position on another branch proves nothing, so the owner is queried
//! (`resolve.rs`). Until it answers the part counts as missing. So no part counts as included in
//! an epoch, or as lost, by mistake.
//!
//! - A commit is *open* until an epoch has all parts that are not lost. A commit of which only
//!   one part is not lost cannot be split, and is not open. Epochs of one history only grow, so
//!   parts that were found in different epochs are all in the later one.
//! - Only at owners of parts that are not lost does a commit count as open.
//! - SYNC reports an open commit without the parts that are lost. That is safe: a vbucket that
//!   has left a branch never begins it again, so no epoch will have such a part, whatever
//!   happens. A branch that an owner does not know may be about to begin, or the owner's disk has
//!   lost it: then all epochs wait, until the producer commits again or an operator gives up the
//!   rest.
//! - A read by id of a document that an open commit has changed waits, unless the owners or the
//!   producer's call have informed this projector that no part is missing.
//! - Mutations that an open commit waits for are accepted even above the bound on mutations that
//!   no epoch covers ([`super::awaited`]): otherwise the commit would stay open forever.

use proto::model::commits::TransactionEvent;
use proto::model::history::Branches;
use proto::model::ids::{ProducerTransactionId, Seqno, VbucketId};
use proto::model::open_commit::{CommitId, OpenCommit, PartState, Participant};
use proto::model::pushed_commit::{PushedCommit, PushedPart};
use proto::plant::{self, Plant};
use proto::{Error, ErrorCode};

use crate::source::view::bucket::{Bucket, SourceState};

impl SourceState {
    /// Returns the state of a commit's part in one vbucket, as far as this projector knows it.
    fn part_state(&self, transaction: ProducerTransactionId, part: &PushedPart) -> PartState {
        if self.ownership.owned.contains(part.vbucket) {
            return self.own_part_state(part);
        }
        if self.epochs.back().is_some_and(|newest| part.is_in_cut_on_its_branch(&newest.cut)) {
            return PartState::Shown;
        }
        let participant = Participant::Vbucket(part.vbucket);
        let reported = self.open.reported(CommitId::Pushed(transaction), participant);
        reported.unwrap_or(PartState::Missing)
    }

    /// Returns the state of a commit's part in a vbucket that this projector owns.
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

    /// Iterates over the parts of a commit that are not lost, each with its state.
    pub(super) fn parts_left<'c>(
        &self,
        commit: &'c PushedCommit,
    ) -> impl Iterator<Item = (&'c PushedPart, PartState)> {
        let with_state = |part| (part, self.part_state(commit.transaction, part));
        commit.parts.iter().map(with_state).filter(|(_, state)| *state != PartState::Lost)
    }

    /// Returns true if the commit of a producer is open at this projector.
    pub(super) fn is_open_pushed(&self, commit: &PushedCommit) -> bool {
        let (mut left, mut is_kept, mut is_shown) = (0, false, true);
        for (part, state) in self.parts_left(commit) {
            left += 1;
            is_kept |= self.ownership.owned.contains(part.vbucket);
            is_shown &= state == PartState::Shown || plant::is(Plant::PushedSettledEarly);
        }
        is_kept && left > 1 && !is_shown
    }

    /// Iterates over the open commits of the producer.
    pub(super) fn open_pushed(&self) -> impl Iterator<Item = &PushedCommit> {
        self.commits.pushed().filter(|commit| self.is_open_pushed(commit))
    }

    /// Returns the other owners' vbuckets whose parts of a commit are in no epoch, as far as this
    /// projector knows.
    pub(super) fn unsettled_parts(&self, commit: &PushedCommit) -> Vec<Participant> {
        let is_unsettled = |part: &&PushedPart| {
            let is_owned = self.ownership.owned.contains(part.vbucket);
            !is_owned && self.part_state(commit.transaction, part) != PartState::Shown
        };
        let parts = commit.parts.iter().filter(is_unsettled);
        parts.map(|part| Participant::Vbucket(part.vbucket)).collect()
    }

    /// Returns the first missing part of an open commit. `None` if no part is missing, or if this
    /// projector was informed that all parts are durable.
    pub(super) fn missing_part<'c>(&self, commit: &'c PushedCommit) -> Option<&'c PushedPart> {
        if self.open.complete.contains(&CommitId::Pushed(commit.transaction)) {
            return None;
        }
        let mut left = self.parts_left(commit);
        left.find(|(_, state)| *state == PartState::Missing).map(|(part, _)| part)
    }

    /// Iterates over the producers' open commits of which parts are missing, as far as this
    /// projector knows.
    fn incomplete_pushed(&self) -> impl Iterator<Item = &PushedCommit> {
        self.open_pushed().filter(|commit| self.missing_part(commit).is_some())
    }
}

impl Bucket {
    /// Records the producers' commits of a group before the document table has the group's
    /// documents. So a reader of such a document finds the open commit.
    pub(in crate::source) fn record_pushed_commits(&self, events: &[TransactionEvent]) {
        let is_pushed = |event: &&TransactionEvent| {
            matches!(event, TransactionEvent::Opened(OpenCommit::Pushed(_)))
        };
        let begun: Vec<_> = events.iter().filter(is_pushed).cloned().collect();
        if !begun.is_empty() {
            self.add_events(&begun);
        }
    }

    /// Records that all parts of an open commit are durable. Has no effect if the producer has
    /// committed the transaction again at other positions.
    pub fn record_all_parts_durable(&self, commit: &PushedCommit) {
        let is_new = {
            let mut state = self.state();
            state.commits.find_pushed(commit.transaction) == Some(commit)
                && state.open.complete.insert(CommitId::Pushed(commit.transaction))
        };
        if is_new {
            self.wake();
        }
    }

    /// Returns true if parts of some open commit may be missing.
    pub fn has_incomplete_pushed(&self) -> bool {
        self.state().incomplete_pushed().next().is_some()
    }

    /// Returns the open commit that has this seqno of a vbucket, if parts of the commit may be
    /// missing.
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

    /// Returns the error for a reader of a document that was changed by a commit with missing
    /// parts.
    pub fn incomplete_error(&self, transaction: ProducerTransactionId) -> Error {
        let name = &self.info.name;
        let what = format!(
            "transaction {transaction} of the producer of bucket {name} is committed in part, and has changed the document"
        );
        Error::new(ErrorCode::Held, what)
            .with_hint("try again; SHOW TRANSACTIONS names the vbucket that is waited for")
    }
}

#[cfg(test)]
#[path = "parts_tests.rs"]
mod tests;
