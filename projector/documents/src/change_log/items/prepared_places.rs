//! The places in a log of the changes of prepared transactions.
//!
//! A transaction over several buckets that is *prepared* has changes without numbers ([`proto::model::joint`]). The log has them as one
//! item, and they may be as many as any transaction has. The record of the bucket is written often, so it names the place of that item
//! instead of repeating the changes: they are read again when the bucket is opened. The log keeps the segment as long as a checkpoint
//! names the place. An item far before the end of the log is written again at the end (`store/bucket_store.rs`), so that a transaction
//! which waits for its outcome does not keep a long log.
//!
//! A record from another copy may name prepared transactions that the log does not have yet. Then their items follow it in
//! the same group.
//!
//! Another copy takes the changes in pieces, and only those that it lacks, which digests show. `sextant verify` reads them
//! from their places.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::model::commits::NewestCommits;
use proto::model::ids::TransactionId;
use proto::{Error, ErrorCode, Result};
use serde::{Deserialize, Serialize};
use storage::log::Lsn;

/// The place of the changes of a prepared transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparedPlace {
    /// LSN of the item.
    pub item: Lsn,
    /// Bytes of the item.
    pub bytes: u32,
}

/// The places of a bucket's prepared transactions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparedPlaces(BTreeMap<TransactionId, PreparedPlace>);

/// A record's commits as they are stored.
#[derive(Deserialize)]
pub(crate) struct StoredCommits {
    /// The commits, without the changes that the log has.
    pub commits: NewestCommits,
    /// The places of these changes.
    pub places: PreparedPlaces,
}

impl PreparedPlaces {
    /// The place of a transaction.
    pub fn get(&self, transaction: TransactionId) -> Option<PreparedPlace> {
        self.0.get(&transaction).copied()
    }

    /// All places.
    pub fn iter(&self) -> impl Iterator<Item = (TransactionId, PreparedPlace)> {
        self.0.iter().map(|(transaction, place)| (*transaction, *place))
    }

    /// The beginning of the part of the log that they need; `None` if they need none.
    pub fn oldest(&self) -> Option<Lsn> {
        self.0.values().map(|place| place.item).min()
    }

    /// Records an item.
    pub fn put(&mut self, transaction: TransactionId, place: PreparedPlace) {
        self.0.insert(transaction, place);
    }

    /// Forgets the transactions that are not prepared any more.
    pub fn keep_prepared(&mut self, commits: &NewestCommits) {
        self.0.retain(|transaction, _| commits.joint().find_prepared(*transaction).is_some());
    }

    /// The places that hold for another record's commits: of transactions with the same changes.
    pub fn that_hold_for(&self, known: &NewestCommits, next: &NewestCommits) -> Self {
        let of = |commits: &NewestCommits, transaction| {
            commits.joint().find_prepared(transaction).cloned()
        };
        let is_same = |transaction| {
            let next = of(next, transaction);
            next.is_some() && next == of(known, transaction)
        };
        let same = self.iter().filter(|(transaction, _)| is_same(*transaction));
        Self(same.collect())
    }

    /// Commits as they are stored beside these places. The changes of a transaction without a place stay.
    pub(crate) fn stored(&self, commits: &NewestCommits) -> StoredCommits {
        let mut places = self.clone();
        places.keep_prepared(commits);
        let commits = commits.with_prepared(|prepared| match self.get(prepared.transaction) {
            Some(_) => Some(Arc::new(prepared.without_changes())),
            None => Some(Arc::clone(prepared)),
        });
        StoredCommits { commits, places }
    }
}

impl StoredCommits {
    /// Reads what is stored after a record.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let damaged = |what: String| {
            let what = format!("the newest commits cannot be decoded: {what}");
            Error::new(ErrorCode::Corrupt, what)
        };
        match postcard::take_from_bytes(bytes) {
            Ok((stored, [])) => Ok(stored),
            Ok((_, rest)) => Err(damaged(format!("{} bytes after them", rest.len()))),
            Err(error) => Err(damaged(error.to_string())),
        }
    }
}
