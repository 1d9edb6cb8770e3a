//! The open transactions of one bucket by their numbers, versions and producers.

use std::collections::{BTreeMap, VecDeque};

use proto::model::bucket::BucketInfo;
use proto::model::ids::{ProducerTransactionId, TransactionId, TransactionPlace};
use proto::{Error, ErrorCode, Result};
use tokio::time::Instant;

use super::limits::Limits;
use super::snapshot::Snapshot;
use super::transaction::Transaction;

/// The number of remembered refused transactions: a late call of one arrives within seconds.
const REFUSED_MAX: usize = 256;

/// The open transactions of a bucket, and the records of ended ones.
#[derive(Default)]
pub(super) struct State {
    pub(super) open: BTreeMap<TransactionId, Transaction>,
    /// The open transactions of producers, by the producers' numbers.
    pub(super) by_producer: BTreeMap<ProducerTransactionId, TransactionId>,
    /// For each open transaction, the version at which it last changed.
    pub(super) by_version: BTreeMap<u64, TransactionId>,
    /// Incremented at each change of any transaction.
    pub(super) version: u64,
    /// The number of transactions that have ended.
    pub(super) ended: u64,
    begun: u64,
    /// The last transactions for which a caller has received the answer that they will not be
    /// committed, oldest first. They must not begin again.
    pub(super) refused: VecDeque<TransactionId>,
    /// True once the bucket was removed: no transaction may begin.
    pub(super) is_closed: bool,
}

impl State {
    /// Records that a transaction will not be committed.
    pub(super) fn refuse(&mut self, id: TransactionId) {
        if self.refused.contains(&id) {
            return;
        }
        self.refused.push_back(id);
        if self.refused.len() > REFUSED_MAX {
            self.refused.pop_front();
        }
    }

    /// Returns an open transaction; an error if it is not open or the caller's place is not its
    /// place.
    pub(super) fn find(
        &mut self,
        id: TransactionId,
        place: TransactionPlace,
        now: Instant,
    ) -> Result<&mut Transaction> {
        let open = self.open.get_mut(&id).ok_or_else(|| not_open(id, place))?;
        if open.is_committing {
            return Err(is_committing(id));
        }
        open.asked_at = now;
        Ok(open)
    }

    /// Returns the open transaction, which must be exactly at the place; `None` for place zero if
    /// it has not begun.
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
            false => Err(not_open(id, place)),
        }
    }

    /// Returns the transaction, and begins it if it is not open.
    pub(super) fn begun(
        &mut self,
        bucket: &BucketInfo,
        (id, owner, behind): (TransactionId, &str, u64),
        limits: &Limits,
        now: Instant,
    ) -> Result<&mut Transaction> {
        if !self.open.contains_key(&id) {
            if self.is_closed || self.refused.contains(&id) {
                return Err(not_open(id, TransactionPlace(0)));
            }
            limits.check_open(bucket, self.open.len())?;
            self.begun += 1;
            let of = (self.begun, owner, behind);
            let open = Transaction::new(of, now, limits.room.hold());
            self.open.insert(id, open);
            self.changed(id);
        }
        self.open.get_mut(&id).ok_or_else(|| not_open(id, TransactionPlace(0)))
    }

    /// Records that a transaction has changed.
    pub(super) fn changed(&mut self, id: TransactionId) {
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

/// Returns the error for a transaction that is not open or at another place than its caller
/// expects.
pub fn not_open(id: TransactionId, place: TransactionPlace) -> Error {
    let what = format!(
        "transaction {id} is not open at place {place} here: its projector was restarted or gave it up"
    );
    Error::new(ErrorCode::Conflict, what).with_hint("begin the transaction again")
}

/// The error for a call of a transaction that is being committed.
pub(super) fn is_committing(id: TransactionId) -> Error {
    let what = format!("transaction {id} is being committed and takes no other call");
    Error::new(ErrorCode::Conflict, what).with_hint("begin another transaction")
}

/// Returns an error if a transaction would read a second snapshot.
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
