//! The open commits of a bucket. A commit with several parts (in several buckets, or in several
//! vbuckets of a producer) is open until an epoch has all its parts, as far as this projector
//! knows.
//!
//! SYNC reports the open commits, so that no epoch has some parts of a commit and lacks others.
//! An epoch may have to end before a joint commit, so the bucket also remembers the cuts directly
//! before its last joint commits.
//!
//! - A *joint commit* (of a transaction over several buckets) is open until an epoch of this
//!   bucket has it: the coordinators' leader publishes the epochs of all buckets of the commit
//!   together. A joint commit without changes in this bucket is open until the epochs of all its
//!   other buckets have it.
//! - A *producer's commit* is open until an epoch has all parts that are not lost
//!   ([`super::parts`]).
//!
//! A part that is [lost](PartState::Lost) would keep a commit open forever. The participant that
//! has lost it reports that ([`Bucket::record_parts`]), and SYNC then reports the commit without
//! the part. A joint commit of which another bucket has lost its part is *halved*: the process
//! logs it, SYNC reports the last halved commits, and `SHOW ROLLBACKS` lists them. A commit is
//! not open any more once an epoch has it. If a bucket loses its part after that, the commit is
//! not detected as halved.

use std::time::Duration;

use proto::model::assignment::VbucketSet;
use proto::model::commits::CommittedTransaction;
use proto::model::cut::Cut;
use proto::model::ids::{BucketId, ProducerTransactionId, TransactionId};
use proto::model::joint::{JointCommit, PartlyLostCommit};
use proto::model::open_commit::{CommitId, OpenCommit, PartState, Participant};
use proto::model::pushed_commit::PushedCommit;
use proto::rpc::api::{BucketReport, TransactionStatus};
use tokio::time::Instant;

use crate::source::view::bucket::{Bucket, SourceState};
use crate::transactions::counts::TransactionFigures;

/// The age from which a prepared transaction or a producer's commit is late. The other
/// participants of a late commit are queried, and a call that reads the ends of many buckets does
/// not wait for it.
pub const LATE_AFTER: Duration = Duration::from_secs(1);
/// The age from which a joint commit is late, so that its other buckets are queried. Usually an
/// epoch has the commit sooner.
const JOINT_LATE_AFTER: Duration = Duration::from_secs(2);

/// The age from which open joint commits delay new ones, for at most [`PAUSE_MAX`]: more than ten
/// ticks of the coordinators.
const CROWDED_AFTER: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(1);

impl SourceState {
    /// Returns the cut of the bucket's newest stability timestamp.
    fn newest_cut(&self) -> Option<&Cut> {
        self.epochs.back().map(|newest| &*newest.cut)
    }

    /// Returns true if a joint commit need not wait for a bucket: that bucket has reported that
    /// its part is lost, or is in one of its epochs.
    fn has_final_part(&self, joint: &JointCommit, bucket: BucketId) -> bool {
        let id = CommitId::Joint(joint.committed.transaction);
        self.open.reported(id, Participant::Bucket(bucket)).is_some()
    }

    fn is_open_joint(&self, joint: &JointCommit) -> bool {
        match joint.at() {
            Some(_) => !self.newest_cut().is_some_and(|cut| joint.is_in(cut)),
            None => joint.others(self.bucket).any(|other| !self.has_final_part(joint, other)),
        }
    }

    fn is_open(&self, commit: &OpenCommit) -> bool {
        match commit {
            OpenCommit::Joint(joint) => self.is_open_joint(joint),
            OpenCommit::Pushed(pushed) => self.is_open_pushed(pushed),
        }
    }

    fn open_commits(&self) -> impl Iterator<Item = &OpenCommit> {
        self.commits.open().filter(|commit| self.is_open(commit))
    }

    /// Iterates over the commits that are not open any more, but are still in the bucket's
    /// record.
    fn settled(&self) -> impl Iterator<Item = &OpenCommit> {
        let may_return = |commit: &OpenCommit| {
            commit.pushed().is_some_and(|pushed| self.may_be_arriving(pushed))
        };
        self.commits.open().filter(move |commit| !self.is_open(commit) && !may_return(commit))
    }

    fn open_joint(&self) -> impl Iterator<Item = &JointCommit> {
        self.commits.joint().filter(|joint| self.is_open_joint(joint))
    }

    /// Returns an open commit in the form in which SYNC reports it: without the parts that are
    /// lost.
    fn as_reported(&self, commit: &OpenCommit) -> OpenCommit {
        match commit {
            OpenCommit::Joint(joint) => {
                let CommittedTransaction { transaction, affected, ref positions } = joint.committed;
                let positions = positions.first().copied().into_iter().collect();
                let is_waited = |other: &&BucketId| !self.has_final_part(joint, **other);
                OpenCommit::Joint(JointCommit {
                    committed: CommittedTransaction { transaction, affected, positions },
                    participants: joint.participants.iter().filter(is_waited).copied().collect(),
                })
            }
            OpenCommit::Pushed(pushed) => OpenCommit::Pushed(PushedCommit {
                transaction: pushed.transaction,
                parts: self.parts_left(pushed).map(|(part, _)| *part).collect(),
            }),
        }
    }

    /// Returns the report of a bucket for SYNC: the durable ends of the vbuckets in `kept`, and
    /// all open commits.
    pub(in crate::source) fn report_of(&self, bucket: BucketId, kept: VbucketSet) -> BucketReport {
        let open: Vec<_> = self.open_commits().map(|commit| self.as_reported(commit)).collect();
        let is_open =
            |of: TransactionId| open.iter().any(|commit| commit.id() == CommitId::Joint(of));
        let before = self.open.before.iter().filter(|(of, _)| is_open(*of));
        let before = before.map(|(_, cut)| cut.only_vbuckets(&kept)).collect();
        let cut = self.durable.only_vbuckets(&kept);
        BucketReport { bucket, kept, cut, open, before }
    }

    /// Returns true if this process has known a commit for at least `age`.
    fn is_older(&self, id: CommitId, age: Duration, now: Instant) -> bool {
        self.open.age(id, now) >= age
    }

    /// Returns the participants of an open commit whose parts are not known to be in an epoch.
    /// Owners of lost parts are included: they must know that the transaction is waited for, so
    /// that they accept it when its producer commits it again.
    fn participants_to_query(&self, commit: &OpenCommit) -> Vec<Participant> {
        match commit {
            OpenCommit::Joint(joint) => {
                let is_asked = |other: &BucketId| {
                    is_without_changes(commit) || !self.has_final_part(joint, *other)
                };
                let others = joint.others(self.bucket).filter(is_asked);
                others.map(Participant::Bucket).collect()
            }
            OpenCommit::Pushed(pushed) => self.unsettled_parts(pushed),
        }
    }
}

impl Bucket {
    /// Returns the report of the bucket for SYNC; `None` if this projector owns no vbucket of the
    /// bucket.
    pub fn report(&self) -> Option<BucketReport> {
        let state = self.state();
        let kept = state.ownership.owned.clone();
        (!kept.is_empty()).then(|| state.report_of(self.info.id, kept))
    }

    /// Returns the commits that are in the bucket's record but not open any more.
    pub(in crate::source) fn settled(&self) -> Vec<OpenCommit> {
        self.state().settled().cloned().collect()
    }

    /// Returns the ids of the commits that are in the bucket's record but not open any more,
    /// ascending.
    pub(in crate::source) fn settled_ids(&self) -> Vec<CommitId> {
        self.state().settled().map(OpenCommit::id).collect()
    }

    /// Returns true if a joint commit has changed documents of this bucket and no epoch of the
    /// bucket has it yet.
    pub fn is_open_joint(&self, transaction: TransactionId) -> bool {
        let state = self.state();
        let found = state.commits.find_joint(transaction);
        found.is_some_and(|joint| joint.at().is_some() && state.is_open_joint(joint))
    }

    /// Returns true if the commit of a producer's transaction is open.
    pub fn is_open_pushed(&self, transaction: ProducerTransactionId) -> bool {
        let state = self.state();
        let found = state.commits.find_pushed(transaction);
        found.is_some_and(|commit| state.is_open_pushed(commit))
    }

    /// Returns true if the bucket has a prepared transaction, or a commit that may be open.
    pub fn has_unsettled(&self) -> bool {
        let state = self.state();
        state.commits.has_prepared() || state.commits.open().len() > 0
    }

    /// Starts to count the ages of the commits that have no age yet, because the process had them
    /// when it started, or received them as a copy.
    pub fn start_ages(&self) {
        let mut state = self.state();
        let prepared = state.commits.prepared().map(|one| CommitId::Joint(one.transaction));
        let joint = state.open_joint().map(|joint| CommitId::Joint(joint.committed.transaction));
        let pushed = state.commits.pushed().map(|commit| CommitId::Pushed(commit.transaction));
        let ids: Vec<CommitId> = prepared.chain(joint).chain(pushed).collect();
        state.open.count_ages(ids.into_iter());
    }

    /// Returns true if a prepared transaction or a producer's open commit is late
    /// ([`LATE_AFTER`]).
    pub fn has_late(&self) -> bool {
        !self.prepared_for(LATE_AFTER).is_empty() || self.has_late_pushed()
    }

    /// Returns true if a producer's open commit is late. Probably a part of it is missing.
    pub fn has_late_pushed(&self) -> bool {
        let (state, now) = (self.state(), Instant::now());
        let mut open = state.open_pushed();
        open.any(|commit| state.is_older(CommitId::Pushed(commit.transaction), LATE_AFTER, now))
    }

    /// Returns late open commits, each with the participants to query. Returns at most
    /// `count_max` commits, and the next ones at the next call.
    pub fn commits_to_query(&self, count_max: usize) -> Vec<(OpenCommit, Vec<Participant>)> {
        let (mut state, now) = (self.state(), Instant::now());
        let is_late = |commit: &&OpenCommit| {
            let late_after = match commit {
                OpenCommit::Joint(_) => JOINT_LATE_AFTER,
                OpenCommit::Pushed(_) => LATE_AFTER,
            };
            state.is_older(commit.id(), late_after, now)
        };
        let late = || state.open_commits().filter(is_late);
        let after = late().filter(|commit| Some(commit.id()) > state.open.queried);
        let before = late().filter(|commit| Some(commit.id()) <= state.open.queried);
        let all =
            after.chain(before).map(|commit| (commit.clone(), state.participants_to_query(commit)));
        let all = all.filter(|(_, participants)| !participants.is_empty());
        let queried: Vec<_> = all.take(count_max).collect();
        if let Some((last, _)) = queried.last() {
            state.open.queried = Some(last.id());
        }
        // Another bucket may be rolled back between two answers.
        let has_no_changes = |commit: &&OpenCommit| is_without_changes(commit);
        let without_changes = queried.iter().map(|(commit, _)| commit).filter(has_no_changes);
        without_changes.for_each(|commit| state.open.forget_reports(commit.id()));
        queried
    }

    /// Records the states that other participants of a commit have reported for their parts. The
    /// participants of a joint commit report only final states.
    pub fn record_parts(&self, commit: &OpenCommit, parts: &[(Participant, PartState)]) {
        let (mut state, id) = (self.state(), commit.id());
        // The transaction may have been committed again meanwhile, at other positions.
        if state.commits.find_open(id) != Some(commit) {
            return;
        }
        let (mut has_news, mut lost) = (false, Vec::new());
        for (participant, part) in parts {
            let before = state.open.reported(id, *participant);
            // A lost part stays lost, also if its owner has forgotten the branches that it has left.
            if before == Some(PartState::Lost) || before.is_some() && commit.joint().is_some() {
                continue;
            }
            has_news |= state.open.record_part_state(id, *participant, *part);
            if *part == PartState::Lost {
                lost.push(*participant);
            }
            if let (PartState::Lost, CommitId::Joint(transaction), Participant::Bucket(lost_in)) =
                (part, id, participant)
            {
                state.open.add_halved(transaction, *lost_in);
            }
        }
        drop(state);
        lost.into_iter().for_each(|participant| self.log_lost(id, participant));
        if has_news {
            self.wake();
        }
    }

    /// Logs that a participant of a commit has lost its part.
    fn log_lost(&self, commit: CommitId, participant: Participant) {
        let bucket = &self.info.name;
        match (commit, participant) {
            (CommitId::Joint(transaction), Participant::Bucket(lost_in)) => {
                tracing::error!(%transaction, %bucket, %lost_in, "a commit is halved: another bucket has lost its part");
            }
            (CommitId::Pushed(transaction), Participant::Vbucket(vbucket)) => {
                tracing::warn!(%transaction, %bucket, %vbucket, "a part of a producer's commit is lost, and waited for no longer");
            }
            _ => {}
        }
    }

    /// Returns the last halved commits: joint commits of which another bucket has lost its part,
    /// as far as this process has detected that.
    pub fn halved_commits(&self) -> Vec<PartlyLostCommit> {
        let (state, bucket) = (self.state(), self.info.id);
        let halved = state.open.halved.iter();
        halved
            .map(|(transaction, lost_in)| PartlyLostCommit {
                transaction: *transaction,
                bucket,
                lost_in: *lost_in,
            })
            .collect()
    }

    /// Returns all buckets of a joint commit, as long as the bucket's record has the commit; an
    /// empty list afterwards.
    pub fn participants(&self, transaction: TransactionId) -> Vec<BucketId> {
        let state = self.state();
        let found = state.commits.find_joint(transaction);
        found.map(|joint| joint.participants.clone()).unwrap_or_default()
    }

    /// Waits, at most `PAUSE_MAX`, while joint commits stay open for longer than usual. If joint
    /// commits follow each other closely, there may be no cut between two of them in all their
    /// buckets; a pause creates such a cut.
    pub async fn wait_for_joint_pause(&self) {
        let is_crowded = || {
            let (state, now) = (self.state(), Instant::now());
            let mut open = state.open_joint();
            open.any(|joint| {
                let id = CommitId::Joint(joint.committed.transaction);
                state.is_older(id, CROWDED_AFTER, now)
            })
        };
        let pause = self.wait_until_some(|| (!is_crowded()).then_some(()));
        let _late = tokio::time::timeout(PAUSE_MAX, pause).await;
    }

    /// Adds the prepared transactions and the open commits of this bucket to the figures of its
    /// open transactions. Adds nothing unless this copy leads the bucket.
    pub fn with_joint_figures(&self, open: TransactionFigures, now: Instant) -> TransactionFigures {
        if !self.is_led() {
            return open;
        }
        let state = self.state();
        let prepared = state.commits.prepared().map(|prepared| prepared.transaction);
        let joint: Vec<_> = state.open_joint().map(|joint| joint.committed.transaction).collect();
        let ages = prepared.chain(joint.iter().copied());
        let oldest = ages.map(|of| state.open.age(CommitId::Joint(of), now)).max();
        TransactionFigures {
            prepared: state.commits.prepared().len() as u64,
            joint_open: joint.len() as u64,
            joint_oldest_age_ms: oldest.unwrap_or_default().as_millis() as u64,
            ..open
        }
    }

    /// Returns the status of each open commit of a producer, under the producer's number of the
    /// transaction.
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
            let id = CommitId::Pushed(commit.transaction);
            TransactionStatus {
                transaction: TransactionId(commit.transaction.0),
                bucket: self.info.id,
                owner,
                age_ms: state.open.age(id, now).as_millis() as u64,
                changes: commit.parts.iter().map(|part| part.mutations()).sum(),
                bytes: 0,
                snapshot: None,
                is_committing: true,
            }
        };
        state.open_pushed().map(status).collect()
    }
}

/// Returns true if a commit is a joint commit without changes in this bucket. Such a commit ends
/// when the answers of one round of queries say that the epochs of all its other buckets have it.
fn is_without_changes(commit: &OpenCommit) -> bool {
    commit.joint().is_some_and(|joint| joint.at().is_none())
}

#[cfg(test)]
#[path = "open_tests.rs"]
mod tests;
