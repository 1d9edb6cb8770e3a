//! The prepared transactions of a bucket: transactions over several buckets that have locked
//! their documents, and whose outcome this process does not know yet ([`proto::model::joint`]).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use proto::model::commits::{NewestCommits, TransactionEvent};
use proto::model::ids::TransactionId;
use proto::model::joint::{PreparedTransaction, holder};
use proto::model::open_commit::CommitId;
use proto::rpc::api::TransactionStatus;
use proto::{Error, ErrorCode, Result};
use tokio::time::Instant;

use crate::source::view::bucket::{Bucket, SourceState};
use crate::transactions::room::TransactionBudget;

/// The time for which a write waits for the outcome of a prepared transaction that locks one of
/// its documents.
const HELD_WAIT: Duration = Duration::from_secs(5);

impl SourceState {
    /// Adds steps of transactions (a commit, a preparation, an end) to the bucket's commits.
    pub(in crate::source) fn add_steps(&mut self, steps: &[TransactionEvent]) {
        steps.iter().for_each(|step| self.commits.apply_event(step));
        if !steps.is_empty() {
            self.open.prepared.count(&self.commits);
        }
    }
}

impl Bucket {
    /// Replaces the bucket's commits with those of the leading copy.
    pub fn set_commits(&self, commits: NewestCommits) {
        let mut state = self.state();
        state.commits = commits;
        let SourceState { open, commits, .. } = &mut *state;
        open.prepared.count(commits);
    }

    /// Counts the changes of prepared transactions in `room`, the memory budget of all open
    /// transactions, from now on.
    pub fn count_in_budget(&self, room: &Arc<TransactionBudget>) {
        let mut state = self.state();
        let SourceState { open, commits, .. } = &mut *state;
        open.prepared.count_in_budget(room, commits);
    }

    /// Returns the size of the changes of all prepared transactions, in bytes.
    pub fn prepared_bytes(&self) -> usize {
        self.state().open.prepared.all()
    }

    fn has_prepared(&self) -> bool {
        self.state().commits.has_prepared()
    }

    /// Returns a prepared transaction by its id.
    pub fn find_prepared(&self, transaction: TransactionId) -> Option<Arc<PreparedTransaction>> {
        self.state().commits.find_prepared(transaction).cloned()
    }

    /// Returns the transactions that this process has known as prepared for longer than `age`.
    pub fn prepared_for(&self, age: Duration) -> Vec<Arc<PreparedTransaction>> {
        let (state, now) = (self.state(), Instant::now());
        let is_old = |one: &&Arc<PreparedTransaction>| {
            state.open.age(CommitId::Joint(one.transaction), now) >= age
        };
        state.commits.prepared().filter(is_old).cloned().collect()
    }

    /// Returns the status of the prepared transactions.
    pub fn list_prepared(&self) -> Vec<TransactionStatus> {
        let (state, now) = (self.state(), Instant::now());
        let status = |prepared: &Arc<PreparedTransaction>| TransactionStatus {
            transaction: prepared.transaction,
            bucket: self.info.id,
            owner: format!(
                "prepared, bucket {} decides",
                prepared.participants.first().map_or(0, |id| id.0)
            ),
            age_ms: state.open.age(CommitId::Joint(prepared.transaction), now).as_millis() as u64,
            changes: prepared.changes.len() as u64,
            bytes: prepared.bytes() as u64,
            snapshot: None,
            is_committing: true,
        };
        state.commits.prepared().map(status).collect()
    }

    /// Returns the ids of the prepared transactions.
    fn prepared(&self) -> BTreeSet<TransactionId> {
        self.state().commits.prepared().map(|prepared| prepared.transaction).collect()
    }

    /// Calls `look` now and after each change of the bucket, and returns the first value that it
    /// returns. `None` if the bucket was removed meanwhile, or another copy leads it.
    pub(in crate::source) async fn wait_until_some<T>(
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

    /// Waits for the outcome of all transactions that are prepared now. Such a transaction may be
    /// committed already in its deciding bucket, and its client informed.
    pub async fn wait_for_decisions(&self, wait: Duration) -> Result<()> {
        if !self.has_prepared() {
            return Ok(());
        }
        let mut waits = self.prepared();
        let decided = self.wait_until_some(|| {
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

    /// Waits until no prepared transaction locks a document with one of these ids. Returns the
    /// error `Held` after `HELD_WAIT`.
    pub async fn wait_until_unlocked<'i>(
        &self,
        ids: impl Iterator<Item = &'i str> + Clone,
    ) -> Result<()> {
        if !self.has_prepared() {
            return Ok(());
        }
        let held = || {
            // Both may be many, so they are compared without a lock.
            let prepared: Vec<_> = self.state().commits.prepared().cloned().collect();
            let mut ids = ids.clone();
            ids.find_map(|id| {
                holder(prepared.iter(), id).map(|by| locked_error(&self.info.name, id, by))
            })
        };
        let mut holder = None;
        let unheld = self.wait_until_some(|| {
            holder = held();
            holder.is_none().then_some(())
        });
        let is_late = tokio::time::timeout(HELD_WAIT, unheld).await.is_err();
        holder.filter(|_| is_late).map_or(Ok(()), Err)
    }
}

/// Returns the error for a document that a prepared transaction locks.
pub(in crate::source) fn locked_error(bucket: &str, id: &str, by: &PreparedTransaction) -> Error {
    let what = format!(
        "document {id:?} of bucket {bucket} is held by transaction {}, which is being committed",
        by.transaction
    );
    Error::new(ErrorCode::Held, what)
        .with_hint("try again; SHOW TRANSACTIONS tells how long it takes")
}
