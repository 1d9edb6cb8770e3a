//! The open transactions of one bucket, and the calls that change them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use proto::Result;
use proto::lock::lock;
use proto::model::bucket::BucketInfo;
use proto::model::ids::{BucketId, TransactionId, TransactionPlace};
use proto::rpc::api::{CheckedWrites, TransactionStatus, TransactionWritten, WriteKind};
use proto::rpc::mutation::MutationKind;
use proto::rpc::scan::OwnView;
use tokio::sync::watch;
use tokio::time::Instant;

use super::counts::TransactionFigures;
use super::limits::Limits;
use super::snapshot::Snapshot;
use super::state::{State, check_snapshot, is_committing, not_open};
use super::transaction::Transaction;
use crate::effects::effects;

/// A write in a transaction.
pub struct WriteIn<'w> {
    /// The transaction, and its place before the write; place zero begins the transaction.
    pub at: (TransactionId, TransactionPlace),
    /// The user of the transaction, for display.
    pub owner: &'w str,
    /// The snapshot that the transaction reads.
    pub snapshot: Option<Snapshot>,
    /// The writes of the request.
    pub writes: &'w CheckedWrites,
    /// For each document of [`Transactions::unknown`], whether it exists.
    pub known: &'w BTreeMap<String, bool>,
    /// The number of commits of the bucket, stored if the transaction begins.
    pub behind: u64,
}

/// For each requested id, the transaction's own change: `Some(None)` is a deletion; `None` means
/// that the document of the snapshot is valid.
pub type OwnDocuments = Vec<Option<Option<Bytes>>>;

/// The open transactions of a bucket.
pub struct Transactions {
    state: Mutex<State>,
    /// Notifies the streams of the bucket.
    turned: watch::Sender<u64>,
    /// True if streams must still be notified of the changes of a young transaction, and no
    /// notification is scheduled.
    wants_wake: AtomicBool,
    is_wake_due: AtomicBool,
}

impl Transactions {
    /// Creates an empty set. Each change notifies the watchers of `turned`.
    pub fn new(turned: watch::Sender<u64>) -> Self {
        let (wants_wake, is_wake_due) = Default::default();
        Self { state: Mutex::default(), turned, wants_wake, is_wake_due }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(super) fn wake(&self) {
        self.turned.send_modify(|count| *count += 1);
    }

    /// Returns true if the caller must call [`Self::wake_for_young`] after [`YOUNG`], because a
    /// young transaction has changed.
    pub fn takes_wake(&self) -> bool {
        self.wants_wake.load(Ordering::Relaxed)
            && self.wants_wake.swap(false, Ordering::AcqRel)
            && !self.is_wake_due.swap(true, Ordering::AcqRel)
    }

    /// Notifies the streams of transactions that are no longer young. Returns true if others are,
    /// so that the call must be repeated after [`YOUNG`].
    pub fn wake_for_young(&self, now: Instant) -> bool {
        self.is_wake_due.store(false, Ordering::Release);
        self.wake();
        let has_young = self.state().open.values().any(|open| open.is_young(now));
        has_young && !self.is_wake_due.swap(true, Ordering::AcqRel)
    }

    /// The snapshot of a transaction, if it has one. The call counts as activity of the transaction.
    pub fn snapshot_of(&self, transaction: TransactionId, now: Instant) -> Option<Snapshot> {
        let mut state = self.state();
        let open = state.open.get_mut(&transaction)?;
        open.asked_at = now;
        open.snapshot.clone()
    }

    /// Returns the documents whose existence some writes depend on, and that the transaction has
    /// not changed itself.
    pub fn unknown(
        &self,
        (id, after): (TransactionId, TransactionPlace),
        writes: &CheckedWrites,
        now: Instant,
    ) -> Result<BTreeSet<String>> {
        let mut state = self.state();
        let open = state.at_place((id, after), now)?;
        let depends = |kind: &WriteKind| !matches!(kind, WriteKind::Upsert(_));
        let asked = writes.writes().iter().filter(|write| depends(write.kind()));
        let is_own = |id: &str| open.as_ref().is_some_and(|open| open.newest(id).is_some());
        Ok(asked.filter(|write| !is_own(write.id())).map(|write| write.id().to_string()).collect())
    }

    /// Makes the changes of some writes, all or none.
    pub fn write(
        &self,
        bucket: &BucketInfo,
        request: WriteIn<'_>,
        limits: &Limits,
        now: Instant,
    ) -> Result<TransactionWritten> {
        let WriteIn { at: (id, after), owner, snapshot, writes, known, behind } = request;
        let mut state = self.state();
        let open = state.at_place((id, after), now)?;
        check_snapshot(id, open.as_deref(), snapshot.as_ref())?;
        let mut exists = |document: &str| {
            let own = open.as_ref().and_then(|open| open.newest(document));
            let own = own.map(|own| own.kind == MutationKind::Upsert);
            // The transaction was rolled back since the caller looked up the unknown documents.
            own.or_else(|| known.get(document).copied()).ok_or_else(|| not_open(id, after))
        };
        let effective = effects(&bucket.name, writes.writes(), &mut exists)?;
        let is_effective = |n: usize| effective.as_ref().is_none_or(|effective| effective[n]);
        let writes = writes.writes().iter().enumerate().filter(|(n, _)| is_effective(*n));
        let writes: Vec<_> = writes.map(|(_, write)| write).collect();
        let bytes = writes.iter().map(|write| Transaction::bytes_of(write)).sum();
        let before = open.map_or(0, |open| open.held.bytes());
        limits.check_bytes(id, before + bytes)?;
        let mut held = limits.room.hold();
        held.grow(bytes)?;
        let open = state.begun(bucket, (id, owner, behind), limits, now)?;
        open.held.add(held);
        if open.snapshot.is_none() {
            open.snapshot = snapshot;
        }
        writes.iter().for_each(|write| open.add(write, bucket.vbuckets));
        let (affected, place) = (writes.len() as u64, open.place());
        let written = TransactionWritten { affected, place, behind: open.behind };
        if written.affected > 0 {
            let is_young = open.is_young(now);
            state.changed(id);
            drop(state);
            self.wake_for_change(is_young);
        }
        Ok(written)
    }

    /// Notifies the streams of a change, or schedules that for the time when the transaction is not
    /// young any more.
    pub(super) fn wake_for_change(&self, is_young: bool) {
        match is_young {
            true => self.wants_wake.store(true, Ordering::Relaxed),
            false => self.wake(),
        }
    }

    /// Rolls a transaction back to an earlier place, and returns its new place.
    pub fn back_to(
        &self,
        (id, to): (TransactionId, TransactionPlace),
        now: Instant,
    ) -> Result<TransactionPlace> {
        let mut state = self.state();
        let open = state.find(id, to, now)?;
        if to > open.place() {
            return Err(not_open(id, to));
        }
        open.back_to(to);
        let place = open.place();
        state.changed(id);
        drop(state);
        self.wake();
        Ok(place)
    }

    /// The open transactions of the bucket, by number.
    pub fn list(&self, bucket: BucketId, now: Instant) -> Vec<TransactionStatus> {
        let state = self.state();
        let status = |(id, open): (&TransactionId, &Transaction)| TransactionStatus {
            transaction: *id,
            bucket,
            owner: open.owner.clone(),
            age_ms: now.saturating_duration_since(open.since).as_millis() as u64,
            changes: open.changes(),
            bytes: open.held.bytes() as u64,
            snapshot: open.snapshot.as_ref().map(|snapshot| snapshot.epoch),
            is_committing: open.is_committing,
        };
        state.open.iter().map(status).collect()
    }

    /// The figures of the open transactions.
    pub fn figures(&self, now: Instant) -> TransactionFigures {
        let state = self.state();
        let age = |open: &Transaction| now.saturating_duration_since(open.since).as_millis() as u64;
        TransactionFigures {
            open: state.open.len() as u64,
            oldest_age_ms: state.open.values().map(age).max().unwrap_or_default(),
            bytes: state.open.values().map(|open| open.held.bytes() as u64).sum(),
            ..TransactionFigures::default()
        }
    }

    /// Rolls a transaction back. Returns false if it is not open, which is no error.
    pub fn abort(&self, id: TransactionId) -> Result<bool> {
        let of = match self.state().open.get(&id) {
            None => return Ok(false),
            Some(open) if open.is_committing => return Err(is_committing(id)),
            Some(open) => (id, open.number),
        };
        self.end(of);
        Ok(true)
    }

    /// Rolls back a transaction that was to be prepared; returns false if it is not open. A prepare
    /// in progress is refused when it is numbered, unless it is numbered before this call.
    pub fn give_up(&self, id: TransactionId) -> bool {
        let mut state = self.state();
        let of = match state.open.get(&id) {
            None => return false,
            Some(open) if open.is_committing => {
                state.refuse(id);
                return false;
            }
            Some(open) => (id, open.number),
        };
        drop(state);
        self.end(of);
        true
    }

    /// Records activity of transactions, so that they are kept open. Returns the ids that are not
    /// open.
    pub fn keep_open(&self, ids: Vec<TransactionId>, now: Instant) -> Vec<TransactionId> {
        let mut state = self.state();
        let is_gone = |id: &TransactionId| match state.open.get_mut(id) {
            Some(open) => {
                open.asked_at = now;
                false
            }
            None => true,
        };
        ids.into_iter().filter(is_gone).collect()
    }

    /// Returns the documents of some ids in the state to which a transaction has changed them, up
    /// to a place.
    pub fn own_documents(
        &self,
        own: OwnView,
        ids: &[String],
        now: Instant,
    ) -> Result<OwnDocuments> {
        let OwnView { transaction, place } = own;
        let mut state = self.state();
        // A transaction without changes need not be known here.
        if place.0 == 0 && !state.open.contains_key(&transaction) {
            return Ok(vec![None; ids.len()]);
        }
        let open = state.find(transaction, place, now)?;
        if place > open.place() {
            return Err(not_open(transaction, place));
        }
        let own = |id: &String| {
            let own = open.change_at(id, place)?;
            Some((own.kind == MutationKind::Upsert).then(|| own.document.clone()))
        };
        Ok(ids.iter().map(own).collect())
    }

    /// Returns true if a transaction is open. If it is not, records that it must not begin any
    /// more.
    pub fn is_open_or_refused(&self, id: TransactionId) -> bool {
        let mut state = self.state();
        if state.open.contains_key(&id) {
            return true;
        }
        state.refuse(id);
        false
    }

    /// Returns true if a caller has received the answer that the transaction will not be committed.
    pub fn is_refused(&self, id: TransactionId) -> bool {
        self.state().refused.contains(&id)
    }

    /// True if a transaction is open.
    pub fn is_open(&self, id: TransactionId) -> bool {
        self.state().open.contains_key(&id)
    }

    /// Ends a transaction, unless another transaction has its id.
    pub(super) fn end(&self, of: (TransactionId, u64)) {
        // Its changes may be many, so they are dropped without the lock.
        let gone = self.state().remove(of);
        if gone.as_ref().is_some_and(|gone| gone.is_told) {
            self.wake();
        }
    }

    /// Rolls back the transactions without a call for longer than `kept`, or than the time that
    /// their producers have set; returns their number.
    pub fn roll_back_forgotten(&self, now: Instant, kept: Duration) -> u64 {
        let mut state = self.state();
        let is_forgotten = |open: &Transaction| {
            let kept = open.producer.as_ref().map_or(kept, |producer| producer.kept_for);
            !open.is_committing && now.duration_since(open.asked_at) > kept
        };
        let forgotten = state.open.iter().filter(|(_, open)| is_forgotten(open));
        let forgotten: Vec<_> =
            forgotten.map(|(id, open)| (*id, open.number, open.since)).collect();
        for (id, number, since) in &forgotten {
            let open_for = now.duration_since(*since);
            tracing::info!(transaction = %id, ?open_for, "nobody asks for a transaction; it is rolled back");
            state.remove((*id, *number));
        }
        drop(state);
        if !forgotten.is_empty() {
            self.wake();
        }
        forgotten.len() as u64
    }

    /// The number of rollbacks that a transaction remembers.
    #[cfg(test)]
    pub fn goals(&self, id: TransactionId) -> usize {
        self.state().open.get(&id).map_or(0, |open| open.goals())
    }

    /// Rolls back all transactions and refuses new ones, because the bucket was removed.
    pub fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.ended += state.open.len() as u64;
        state.by_version.clear();
        state.by_producer.clear();
        let gone = std::mem::take(&mut state.open);
        drop(state);
        drop(gone);
    }
}
