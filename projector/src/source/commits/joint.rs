//! The joint commits of a bucket, as its readers and SYNC see them ([`proto::model::joint`]).
//!
//! SYNC names the joint commits that are *open*: no epoch has them. An epoch may have to end before one, so the bucket also remembers the
//! closed cuts before the last open ones.
//!
//! A joint commit of which another bucket has lost its part would be open forever. A task that detects such a loss calls
//! [`Bucket::leave_out`], and SYNC names that bucket no longer: the commit is *halved*, and the process logs it.
//!
//! SYNC has the last halved commits, and `SHOW ROLLBACKS` shows them. A recovery reports the commits in the lost end of a log
//! (`documents::store`). A commit that an epoch has is no longer open: if a bucket loses its part after that, the loss is not detected as a
//! halved commit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use proto::model::assignment::VbucketSet;
use proto::model::commits::{NewestCommits, TransactionEvent};
use proto::model::cut::Cut;
use proto::model::ids::{BucketId, TransactionId};
use proto::model::joint::{HalvedCommit, JointCommit, JointMark, Prepared};
use proto::rpc::api::{BucketReport, TransactionStatus};
use proto::{Error, ErrorCode, Result};
use tokio::time::Instant;

use crate::source::view::bucket::{Bucket, SourceState};
use crate::transactions::counts::TransactionFigures;
use crate::transactions::room::Room;

/// A prepared transaction of this age is late: a caller that reads the ends of many buckets does not wait for it.
const LATE_AFTER: Duration = Duration::from_secs(1);

/// Open joint commits of this age delay new ones, for at most [`PAUSE_MAX`]: more than ten ticks of the coordinators.
const CROWDED_AFTER: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The time limit of a write's wait for the outcome of a prepared transaction that locks one of its documents.
const HELD_WAIT: Duration = Duration::from_secs(5);

impl SourceState {
    /// Adds steps of transactions.
    pub(in crate::source) fn add_steps(&mut self, steps: &[TransactionEvent]) {
        steps.iter().for_each(|step| self.commits.add(step));
        if !steps.is_empty() {
            self.joint.prepared.count(&self.commits);
        }
    }

    fn newest_cut(&self) -> Option<&Cut> {
        self.epochs.back().map(|newest| &*newest.cut)
    }

    fn is_open(&self, joint: &JointCommit) -> bool {
        let is_covered = match joint.at() {
            Some(_) => self.newest_cut().is_some_and(|cut| joint.is_in(cut)),
            None => self.joint.done.contains(&joint.committed.transaction),
        };
        !is_covered
    }

    fn mark(&self, joint: &JointCommit) -> JointMark {
        let transaction = joint.committed.transaction;
        let lost = self.joint.left_out.get(&transaction);
        let is_other = |other: &&BucketId| {
            **other != self.bucket && lost.is_none_or(|lost| !lost.contains(other))
        };
        let others = joint.participants.iter().filter(is_other).copied().collect();
        JointMark { transaction, others, at: joint.at() }
    }
}

impl SourceState {
    /// The report for SYNC of some vbuckets, with all open commits.
    pub(in crate::source) fn report_of(&self, bucket: BucketId, kept: VbucketSet) -> BucketReport {
        let open = self.commits.joint().open().filter(|joint| self.is_open(joint));
        let joint: Vec<_> = open.map(|joint| self.mark(joint)).collect();
        let is_open = |of: &TransactionId| joint.iter().any(|mark| mark.transaction == *of);
        let before = self.joint.before.iter().filter(|(of, _)| is_open(of));
        let before = before.map(|(_, cut)| cut.of(&kept)).collect();
        let cut = self.durable.of(&kept);
        BucketReport { bucket, kept, cut, joint, before, pushed: self.named_pushed() }
    }
}

impl Bucket {
    /// Takes over the commits of the leading copy.
    pub fn set_commits(&self, commits: NewestCommits) {
        let mut state = self.state();
        state.commits = commits;
        let SourceState { joint, commits, .. } = &mut *state;
        joint.prepared.count(commits);
    }

    /// Counts the changes of prepared transactions against the limit of all open ones from now on.
    pub fn count_in(&self, room: &Arc<Room>) {
        let mut state = self.state();
        let SourceState { joint, commits, .. } = &mut *state;
        joint.prepared.count_in(room, commits);
    }

    /// The size of the changes of all prepared transactions.
    pub fn prepared_bytes(&self) -> usize {
        self.state().joint.prepared.all()
    }

    /// The report for SYNC; `None` if no vbucket is owned.
    pub fn report(&self) -> Option<BucketReport> {
        let state = self.state();
        let kept = state.ownership.owned.clone();
        (!kept.is_empty()).then(|| state.report_of(self.info.id, kept))
    }

    /// The joint commits that are open no longer, and that the record still has.
    pub(in crate::source) fn settled(&self) -> Vec<TransactionId> {
        let state = self.state();
        let settled = state.commits.joint().open().filter(|joint| !state.is_open(joint));
        settled.map(|joint| joint.committed.transaction).collect()
    }

    /// True if a joint commit is open here and has changed something.
    pub fn is_open_joint(&self, transaction: TransactionId) -> bool {
        let state = self.state();
        let found = state.commits.joint().find_open(transaction);
        found.is_some_and(|joint| joint.at().is_some() && state.is_open(joint))
    }

    fn has_prepared(&self) -> bool {
        self.state().commits.joint().prepared().next().is_some()
    }

    /// True if anything is prepared or open.
    pub fn has_joint(&self) -> bool {
        !self.state().commits.joint().is_empty()
    }

    /// The transactions that have been prepared, and the joint commits that have been open, for longer than these times, as far as this
    /// process knows.
    pub fn old_joint(
        &self,
        prepared_for: Duration,
        open_for: Duration,
    ) -> (Vec<Arc<Prepared>>, Vec<JointCommit>) {
        let (mut state, now) = (self.state(), Instant::now());
        let prepared: Vec<_> = state.commits.joint().prepared().cloned().collect();
        let open = state.commits.joint().open().filter(|joint| state.is_open(joint));
        let open: Vec<_> = open.cloned().collect();
        let mut known = std::mem::take(&mut state.joint.known_since);
        let of_prepared = prepared.iter().map(|prepared| prepared.transaction);
        let of_open = open.iter().map(|joint| joint.committed.transaction);
        let since = of_prepared.chain(of_open).map(|id| (id, known.remove(&id).unwrap_or(now)));
        let since: BTreeMap<_, _> = since.collect();
        let is_old = |id: &TransactionId, age| now.duration_since(since[id]) >= age;
        let old_prepared = prepared.into_iter().filter(|p| is_old(&p.transaction, prepared_for));
        let old_open = open.into_iter().filter(|j| is_old(&j.committed.transaction, open_for));
        let old = (old_prepared.collect(), old_open.collect());
        state.joint.known_since = since;
        old
    }

    /// The prepared transactions, for people.
    pub fn list_prepared(&self) -> Vec<TransactionStatus> {
        let (state, now) = (self.state(), Instant::now());
        let age = |id: &TransactionId| {
            let since = state.joint.known_since.get(id);
            since.map_or(0, |since| now.duration_since(*since).as_millis() as u64)
        };
        let status = |prepared: &Arc<Prepared>| TransactionStatus {
            transaction: prepared.transaction,
            bucket: self.info.id,
            owner: format!(
                "prepared, bucket {} decides",
                prepared.participants.first().map_or(0, |id| id.0)
            ),
            age_ms: age(&prepared.transaction),
            changes: prepared.changes.len() as u64,
            bytes: prepared.bytes() as u64,
            snapshot: None,
            is_committing: true,
        };
        state.commits.joint().prepared().map(status).collect()
    }

    /// Adds what is prepared and open here to the figures of open transactions. Only the leading copy counts.
    pub fn joint_figures(&self, open: TransactionFigures, now: Instant) -> TransactionFigures {
        if !self.is_led() {
            return open;
        }
        let state = self.state();
        let joint = state.commits.joint();
        let prepared = joint.prepared().map(|prepared| prepared.transaction);
        let prepared: Vec<_> = prepared.collect();
        let joint_open = joint.open().filter(|joint| state.is_open(joint));
        let joint_open: Vec<_> = joint_open.map(|joint| joint.committed.transaction).collect();
        let known = prepared.iter().chain(&joint_open);
        let since = known.filter_map(|id| state.joint.known_since.get(id)).min();
        let age = since.map_or(0, |since| now.saturating_duration_since(*since).as_millis() as u64);
        TransactionFigures {
            prepared: prepared.len() as u64,
            joint_open: joint_open.len() as u64,
            joint_oldest_age_ms: age,
            ..open
        }
    }

    /// Stops waiting for an epoch of another bucket with a joint commit: that bucket has lost its part, or has an epoch with it already.
    pub fn leave_out(&self, transaction: TransactionId, other: BucketId, is_lost: bool) {
        let is_new = {
            let mut state = self.state();
            let is_new = state.commits.joint().find_open(transaction).is_some()
                && state.joint.left_out.entry(transaction).or_default().insert(other);
            if is_new && is_lost {
                state.joint.add_halved(transaction, other);
            }
            is_new
        };
        if is_new {
            self.wake();
        }
        if is_new && is_lost {
            let bucket = &self.info.name;
            tracing::error!(%transaction, %bucket, lost_in = %other, "a commit is halved: another bucket has lost its part");
        }
    }

    /// The last commits of which another bucket has lost its part, as far as this process has detected it.
    pub fn halved(&self) -> Vec<HalvedCommit> {
        let (state, bucket) = (self.state(), self.info.id);
        let halved = state.joint.halved.iter();
        halved
            .map(|(transaction, lost_in)| HalvedCommit {
                transaction: *transaction,
                bucket,
                lost_in: *lost_in,
            })
            .collect()
    }

    /// Records that all other buckets have an epoch with a joint commit that has changed nothing here.
    pub fn settle(&self, transaction: TransactionId) {
        let mut state = self.state();
        if state.commits.joint().find_open(transaction).is_some() {
            state.joint.done.insert(transaction);
        }
    }

    /// True if a prepared transaction waits for its outcome for longer than usual.
    pub fn has_late_prepared(&self) -> bool {
        let (state, now) = (self.state(), Instant::now());
        let mut prepared = state.commits.joint().prepared();
        prepared.any(|prepared| state.joint.is_older(prepared.transaction, LATE_AFTER, now))
    }

    /// Waits a while if joint commits are open for longer than usual. Where many follow each other there may be no two cuts between them
    /// in all their buckets; a pause makes some.
    pub async fn joint_pause(&self) {
        let is_crowded = || {
            let (state, now) = (self.state(), Instant::now());
            let open = state.commits.joint().open();
            let mut open = open.filter(|joint| state.is_open(joint));
            open.any(|joint| state.joint.is_older(joint.committed.transaction, CROWDED_AFTER, now))
        };
        let pause = self.until(|| (!is_crowded()).then_some(()));
        let _late = tokio::time::timeout(PAUSE_MAX, pause).await;
    }

    /// Calls `look` after each change of the bucket until it returns a value. `None` if the bucket was removed, or another copy leads.
    pub(in crate::source) async fn until<T>(
        &self,
        mut look: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        // Order matters: a change after the check wakes the wait.
        let mut changed = self.watch();
        loop {
            if let Some(found) = look() {
                return Some(found);
            }
            if self.is_removed() || self.has_ended() || changed.changed().await.is_err() {
                return None;
            }
        }
    }

    /// A prepared transaction.
    pub fn find_prepared(&self, transaction: TransactionId) -> Option<Arc<Prepared>> {
        self.state().commits.joint().find_prepared(transaction).cloned()
    }

    /// All buckets of a joint commit, as long as the record has it; none of any other commit.
    pub fn participants(&self, transaction: TransactionId) -> Vec<BucketId> {
        let state = self.state();
        let found = state.commits.joint().find_open(transaction);
        found.map(|joint| joint.participants.clone()).unwrap_or_default()
    }

    fn prepared(&self) -> BTreeSet<TransactionId> {
        let state = self.state();
        state.commits.joint().prepared().map(|prepared| prepared.transaction).collect()
    }

    /// Waits for the outcome of all transactions that are prepared now: they may be committed already, and their writers know it.
    pub async fn decided(&self, wait: Duration) -> Result<()> {
        if !self.has_prepared() {
            return Ok(());
        }
        let mut waits = self.prepared();
        let decided = self.until(|| {
            let now = self.prepared();
            waits.retain(|transaction| now.contains(transaction));
            waits.is_empty().then_some(())
        });
        tokio::time::timeout(wait, decided).await.map(drop).map_err(|_| {
            let name = &self.info.name;
            Error::unavailable(format!(
                "bucket {name}: a prepared transaction waits for its outcome"
            ))
            .with_hint("SHOW TRANSACTIONS names it; the bucket that decides on it does not answer")
        })
    }

    /// Waits for the outcome of prepared transactions that hold documents. `Held` if that takes long.
    pub async fn unheld<'i>(&self, ids: impl Iterator<Item = &'i str> + Clone) -> Result<()> {
        if !self.has_prepared() {
            return Ok(());
        }
        let held = || {
            // Both may be many, so they are compared without a lock. The open commits hold no documents.
            let joint = self.state().commits.joint().prepared_only();
            let mut ids = ids.clone();
            ids.find_map(|id| joint.holder(id).map(|by| held(&self.info.name, id, by)))
        };
        let mut holder = None;
        let unheld = self.until(|| {
            holder = held();
            holder.is_none().then_some(())
        });
        let is_late = tokio::time::timeout(HELD_WAIT, unheld).await.is_err();
        holder.filter(|_| is_late).map_or(Ok(()), Err)
    }
}

/// The error for a document that a prepared transaction holds.
pub(in crate::source) fn held(bucket: &str, id: &str, by: &Prepared) -> Error {
    let what = format!(
        "document {id:?} of bucket {bucket} is held by transaction {}, which is being committed",
        by.transaction
    );
    Error::new(ErrorCode::Held, what)
        .with_hint("try again; SHOW TRANSACTIONS tells how long it takes")
}
