//! The open commits of a producer that move with a vbucket to its next owner. A commit has a part
//! in each vbucket that it changes.
//!
//! An owner that hands over a vbucket passes the commits with a part in the vbucket to the target
//! first (`hand_over/copying.rs`). While a vbucket is being handed over to this projector, the
//! bucket's record keeps the commits of the vbucket.

use proto::model::commits::TransactionEvent;
use proto::model::ids::{ProducerTransactionId, VbucketId};
use proto::model::open_commit::{CommitId, OpenCommit, PartState};
use proto::model::pushed_commit::{PushedCommit, PushedPart};
use proto::plant::{self, Plant};
use proto::{Error, Result};

use crate::source::view::bucket::{Bucket, SourceState};

impl SourceState {
    /// Returns true if a part of the commit is lost in a vbucket that this projector owns.
    fn has_lost_own_part(&self, commit: &PushedCommit) -> bool {
        let mut own =
            commit.parts.iter().filter(|part| self.ownership.owned.contains(part.vbucket));
        own.any(|part| self.own_part_state(part) == PartState::Lost)
    }

    /// Returns true if the commit has a part in a vbucket that this projector stores but does not
    /// own. That vbucket may be in a hand-over to this projector.
    pub(super) fn may_be_arriving(&self, commit: &PushedCommit) -> bool {
        commit
            .parts
            .iter()
            .any(|part| !self.ownership.owned.contains(part.vbucket) && self.has_data(part.vbucket))
    }
}

impl Bucket {
    /// Returns the producers' open commits that have a part in a vbucket.
    pub fn open_pushed_in(&self, vbucket: VbucketId) -> Vec<PushedCommit> {
        let is_told = !plant::is(Plant::PushedNotHandedOver);
        let has = |commit: &&PushedCommit| is_told && commit.part_of(vbucket).is_some();
        self.state().open_pushed().filter(has).cloned().collect()
    }

    /// Compares the open commits that are received with a vbucket with those in this bucket's
    /// record. Returns the steps that bring the record up to date:
    ///
    /// - A received commit is added.
    /// - A commit that only this vbucket has, and that is not received, has ended since an
    ///   earlier attempt of the hand-over. It is removed.
    /// - If other vbuckets of this projector have another version of a received commit, its
    ///   producer has committed again, and one of the two owners does not know that yet. The
    ///   received version is ignored if a part of it is lost in a vbucket of this projector,
    ///   because it can then never be complete. Otherwise the hand-over waits (`Unavailable`),
    ///   because ignoring either version could split the commit.
    pub fn steps_for_received(
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
        let ended = state.commits.pushed().filter(has_ended);
        let ended =
            ended.map(|known| TransactionEvent::Settled(CommitId::Pushed(known.transaction)));
        let mut events: Vec<_> = ended.collect();
        for commit in coming {
            match state.commits.find_pushed(commit.transaction) {
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
                _ => events.push(TransactionEvent::Opened(OpenCommit::Pushed(commit))),
            }
        }
        Ok(events)
    }

    /// Returns a vbucket in which an open commit has a part, and which is released to another
    /// owner; `None` if there is none.
    pub fn released_with_part_of(&self, transaction: ProducerTransactionId) -> Option<VbucketId> {
        let state = self.state();
        let commit = state.commits.find_pushed(transaction)?;
        let mut vbuckets = commit.parts.iter().map(|part| part.vbucket);
        vbuckets.find(|vbucket| state.ownership.released.contains(*vbucket))
    }
}
