//! The table of a bucket's open transactions, which finds them by id, by producer, and by the
//! order of their last changes.

use std::collections::{BTreeMap, VecDeque};

use proto::model::bucket::BucketInfo;
use proto::model::ids::{ProducerTransactionId, TransactionId, TransactionPlace};
use proto::{Error, ErrorCode, Result};
use tokio::time::Instant;

use super::limits::Limits;
use super::snapshot::Snapshot;
use super::transaction::Transaction;

/// The number of remembered transactions that must not begin. A late call of such a transaction
/// arrives within seconds.
const REFUSED_MAX: usize = 256;

/// The open transactions of a bucket, and what is remembered of ended ones.
#[derive(Default)]
pub(super) struct State {
    pub(super) open: BTreeMap<TransactionId, Transaction>,
    /// The open transactions of producers, by the producers' numbers.
    pub(super) by_producer: BTreeMap<ProducerTransactionId, TransactionId>,
    /// The open transactions, by the value that `version` had at their last change.
    pub(super) by_version: BTreeMap<u64, TransactionId>,
    /// Incremented at each change of any transaction.
    pub(super) version: u64,
    /// The number of transactions that have ended so far.
    pub(super) ended: u64,
    begun: u64,
    /// The last transactions about which a caller was informed that they will never be committed,
    /// oldest first. They must not begin.
    pub(super) refused: VecDeque<TransactionId>,
    /// True once the bucket was removed: no transaction may begin.
    pub(super) is_closed: bool,
}

impl State {
    /// Records that a transaction must not begin, because a caller was informed that it will
    /// never be committed.
    pub(super) fn refuse(&mut self, id: TransactionId) {
        if self.refused.contains(&id) {
            return;
        }
        self.refused.push_back(id);
        if self.refused.len() > REFUSED_MAX {
            self.refused.pop_front();
        }
    }

    /// Returns an open transaction, and records its activity. An error if it is not open, or is
    /// being committed.
    pub(super) fn find(
        &mut self,
        id: TransactionId,
        place: TransactionPlace,
        now: Instant,
    ) -> Result<&mut Transaction> {
        let open = self.open.get_mut(&id).ok_or_else(|| not_open_error(id, place))?;
        if open.is_committing {
            return Err(committing_error(id));
        }
        open.asked_at = now;
        Ok(open)
    }

    /// Returns an open transaction that must be exactly at the place that the caller has named;
    /// `None` for place zero if it has not begun.
    pub(super) fn at_place(
        &mut self,
        (id, place): (TransactionId, TransactionPlace),
        now: Instant,
    ) -> Result<Option<&mut Transaction>> {
        if place.0 == 0 && !self.open.contains_key(&id) {
            return Ok(None);
        }
        let open = self.find(id, place, now)?;
        match open.place() == place {
            true => Ok(Some(open)),
            false => Err(not_open_error(id, place)),
        }
    }

    /// Returns a transaction, after beginning it if it is not open.
    pub(super) fn find_or_begin(
        &mut self,
        bucket: &BucketInfo,
        (id, owner, behind): (TransactionId, &str, u64),
        limits: &Limits,
        now: Instant,
    ) -> Result<&mut Transaction> {
        if !self.open.contains_key(&id) {
            if self.is_closed || self.refused.contains(&id) {
                return Err(not_open_error(id, TransactionPlace(0)));
            }
            limits.check_open(bucket, self.open.len())?;
            self.begun += 1;
            let of = (self.begun, owner, behind);
            let open = Transaction::new(of, now, limits.room.empty_reservation());
            self.open.insert(id, open);
            self.record_change(id);
        }
        self.open.get_mut(&id).ok_or_else(|| not_open_error(id, TransactionPlace(0)))
    }

    /// Records that a transaction has changed, so that streams look at it.
    pub(super) fn record_change(&mut self, id: TransactionId) {
        self.version += 1;
        if let Some(open) = self.open.get_mut(&id) {
            self.by_version.remove(&open.version);
            open.version = self.version;
            self.by_version.insert(self.version, id);
        }
    }

    pub(super) fn remove(&mut self, (id, number): (TransactionId, u64)) -> Option<Transaction> {
        if self.open.get(&id)?.number != number {
            return None;
        }
        let gone = self.open.remove(&id)?;
        self.by_version.remove(&gone.version);
        if let Some(producer) = &gone.producer {
            self.by_producer.remove(&producer.transaction);
        }
        self.ended += 1;
        Some(gone)
    }
}

/// Returns the error for a transaction that is not open, or not at the place that its caller has
/// named.
pub fn not_open_error(id: TransactionId, place: TransactionPlace) -> Error {
    let what = format!(
        "transaction {id} is not open at place {place} here: its projector was restarted or gave it up"
    );
    Error::new(ErrorCode::Conflict, what).with_hint("begin the transaction again")
}

/// Returns the error for a call of a transaction that is being committed.
pub(super) fn committing_error(id: TransactionId) -> Error {
    let what = format!("transaction {id} is being committed and takes no other call");
    Error::new(ErrorCode::Conflict, what).with_hint("begin another transaction")
}

/// Returns an error if a transaction that has read one snapshot would now read another.
pub(super) fn check_snapshot(
    id: TransactionId,
    open: Option<&Transaction>,
    wanted: Option<&Snapshot>,
) -> Result<()> {
    let known = open.and_then(|open| open.snapshot.as_ref());
    match (known, wanted) {
        (Some(known), Some(wanted)) if known.epoch != wanted.epoch => {
            let what = format!(
                "transaction {id} reads epoch {}, and cannot read epoch {}",
                known.epoch, wanted.epoch
            );
            Err(Error::new(ErrorCode::InvalidParameter, what))
        }
        _ => Ok(()),
    }
}
