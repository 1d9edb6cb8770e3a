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
use proto::rpc::scan::UncommittedView;
use tokio::sync::watch;
use tokio::time::Instant;

use super::counts::TransactionFigures;
use super::limits::Limits;
use super::snapshot::Snapshot;
use super::state::{State, check_snapshot, committing_error, not_open_error};
use super::transaction::Transaction;
use crate::effects::writes_with_effect;

/// The writes of one request in a transaction.
pub struct WriteIn<'w> {
    /// The transaction, and the place that it must have before the write (the number of its
    /// changes and rollbacks). Place zero begins the transaction.
    pub at: (TransactionId, TransactionPlace),
    /// The name of the user that runs the transaction, for display.
    pub owner: &'w str,
    /// The snapshot that the transaction reads.
    pub snapshot: Option<Snapshot>,
    /// The writes of the request.
    pub writes: &'w CheckedWrites,
    /// For each document that [`Transactions::unknown`] has returned, whether it exists.
    pub known: &'w BTreeMap<String, bool>,
    /// The number of commits that the bucket has had so far. The transaction stores it when it
    /// begins.
    pub behind: u64,
}

/// For each requested id, the change that the transaction has made: `Some(None)` is a deletion,
/// and `None` means that the transaction has not changed the document.
pub type OwnDocuments = Vec<Option<Option<Bytes>>>;

/// The open transactions of a bucket.
pub struct Transactions {
    state: Mutex<State>,
    /// Notifies the streams of the bucket.
    turned: watch::Sender<u64>,
    /// True if the streams must still be notified of changes of young transactions, and no
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

    /// Notifies the streams of the bucket.
    pub(super) fn wake(&self) {
        self.turned.send_modify(|count| *count += 1);
    }

    /// Returns true if a young transaction has changed, so that the caller must call
    /// [`Self::wake_for_young`] after [`YOUNG`].
    pub fn must_schedule_wake(&self) -> bool {
        self.wants_wake.load(Ordering::Relaxed)
            && self.wants_wake.swap(false, Ordering::AcqRel)
            && !self.is_wake_due.swap(true, Ordering::AcqRel)
    }

    /// Notifies the streams of the transactions that are not young any more. Returns true if
    /// there are still young ones, so that the call must be repeated after [`YOUNG`].
    pub fn wake_for_young(&self, now: Instant) -> bool {
        self.is_wake_due.store(false, Ordering::Release);
        self.wake();
        let has_young = self.state().open.values().any(|open| open.is_young(now));
        has_young && !self.is_wake_due.swap(true, Ordering::AcqRel)
    }

    /// Returns the snapshot of a transaction, if it has read one. The call counts as activity of
    /// the transaction.
    pub fn snapshot_of(&self, transaction: TransactionId, now: Instant) -> Option<Snapshot> {
        let mut state = self.state();
        let open = state.open.get_mut(&transaction)?;
        open.asked_at = now;
        open.snapshot.clone()
    }

    /// Returns the ids of the documents that must be looked up for some writes: the effect of a
    /// write depends on whether the document exists, and the transaction has not changed the
    /// document itself.
    pub fn documents_to_look_up(
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

    /// Adds the changes of a request's writes to a transaction: all of them, or none after an
    /// error.
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
            own.or_else(|| known.get(document).copied()).ok_or_else(|| not_open_error(id, after))
        };
        let effective = writes_with_effect(&bucket.name, writes.writes(), &mut exists)?;
        let is_effective = |n: usize| effective.as_ref().is_none_or(|effective| effective[n]);
        let writes = writes.writes().iter().enumerate().filter(|(n, _)| is_effective(*n));
        let writes: Vec<_> = writes.map(|(_, write)| write).collect();
        let bytes = writes.iter().map(|write| Transaction::bytes_of(write)).sum();
        let before = open.map_or(0, |open| open.held.bytes());
        limits.check_bytes(id, before + bytes)?;
        let mut held = limits.room.empty_reservation();
        held.grow(bytes)?;
        let open = state.find_or_begin(bucket, (id, owner, behind), limits, now)?;
        open.held.add(held);
        if open.snapshot.is_none() {
            open.snapshot = snapshot;
        }
        writes.iter().for_each(|write| open.add(write, bucket.vbuckets));
        let (affected, place) = (writes.len() as u64, open.place());
        let written = TransactionWritten { affected, place, behind: open.behind };
        if written.affected > 0 {
            let is_young = open.is_young(now);
            state.record_change(id);
            drop(state);
            self.wake_for_change(is_young);
        }
        Ok(written)
    }

    /// Notifies the streams of a change. If the transaction is young, records that a notification
    /// must be scheduled for later instead.
    pub(super) fn wake_for_change(&self, is_young: bool) {
        match is_young {
            true => self.wants_wake.store(true, Ordering::Relaxed),
            false => self.wake(),
        }
    }

    /// Rolls a transaction back to an earlier place (a savepoint), and returns its new place.
    pub fn roll_back_to(
        &self,
        (id, to): (TransactionId, TransactionPlace),
        now: Instant,
    ) -> Result<TransactionPlace> {
        let mut state = self.state();
        let open = state.find(id, to, now)?;
        if to > open.place() {
            return Err(not_open_error(id, to));
        }
        open.roll_back_to(to);
        let place = open.place();
        state.record_change(id);
        drop(state);
        self.wake();
        Ok(place)
    }

    /// Returns the status of each open transaction of the bucket, in the order of their ids.
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

    /// Returns the figures of the open transactions of the bucket.
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

    /// Rolls a transaction back. Returns false if it is not open, which is not an error.
    pub fn abort(&self, id: TransactionId) -> Result<bool> {
        let of = match self.state().open.get(&id) {
            None => return Ok(false),
            Some(open) if open.is_committing => return Err(committing_error(id)),
            Some(open) => (id, open.number),
        };
        self.end(of);
        Ok(true)
    }

    /// Rolls back a transaction that its session wanted to prepare. Returns false if it is not
    /// open. If its preparation is in progress, the preparation will be refused, unless it is
    /// already numbered.
    pub fn abort_unprepared(&self, id: TransactionId) -> bool {
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

    /// Returns what a transaction has changed in the documents with some ids, up to one of its
    /// places.
    pub fn own_documents(
        &self,
        own: UncommittedView,
        ids: &[String],
        now: Instant,
    ) -> Result<OwnDocuments> {
        let UncommittedView { transaction, place } = own;
        let mut state = self.state();
        // A transaction without changes need not be known here.
        if place.0 == 0 && !state.open.contains_key(&transaction) {
            return Ok(vec![None; ids.len()]);
        }
        let open = state.find(transaction, place, now)?;
        if place > open.place() {
            return Err(not_open_error(transaction, place));
        }
        let own = |id: &String| {
            let own = open.change_at(id, place)?;
            Some((own.kind == MutationKind::Upsert).then(|| own.document.clone()))
        };
        Ok(ids.iter().map(own).collect())
    }

    /// Returns true if a transaction is open. Otherwise records that it must never begin, because
    /// the caller is told that it does not exist.
    pub fn is_open_or_refuse(&self, id: TransactionId) -> bool {
        let mut state = self.state();
        if state.open.contains_key(&id) {
            return true;
        }
        state.refuse(id);
        false
    }

    /// Returns true if a caller was informed that the transaction will never be committed, so
    /// that it must not begin.
    pub fn is_refused(&self, id: TransactionId) -> bool {
        self.state().refused.contains(&id)
    }

    /// True if a transaction is open.
    pub fn is_open(&self, id: TransactionId) -> bool {
        self.state().open.contains_key(&id)
    }

    /// Ends a transaction, given by its id and number. Does nothing if another transaction has
    /// the id.
    pub(super) fn end(&self, of: (TransactionId, u64)) {
        // Its changes may be many, so they are dropped without the lock.
        let gone = self.state().remove(of);
        if gone.as_ref().is_some_and(|gone| gone.is_told) {
            self.wake();
        }
    }

    /// Rolls back the transactions without a call for longer than `kept`; for a producer's
    /// transaction, longer than the time that its producer has set. Returns their number.
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

    /// Returns the number of rollbacks to savepoints that a transaction remembers.
    #[cfg(test)]
    pub fn remembered_rollbacks(&self, id: TransactionId) -> usize {
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
