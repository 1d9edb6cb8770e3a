//! The places in the log of the changes of prepared transactions.
//!
//! The changes of a *prepared* transaction over several buckets have no seqnos yet
//! ([`proto::model::joint`]). The log contains them as one item, which may be as large as any
//! transaction. The record of the bucket is written often, so it contains the place of that item
//! instead of the changes, which are read again when the bucket is opened. The log retains the
//! item's segment as long as a checkpoint contains the place. An item far before the end of the
//! log is written again at the end (`store/bucket_store.rs`), so that a transaction which waits
//! for its outcome does not keep a long log.
//!
//! A record from another copy of the bucket may name prepared transactions that this log does not
//! have yet. Then their items follow the record in the same group.
//!
//! Another copy receives the changes in pieces, and only those that it lacks according to
//! digests. `sextant verify` reads the changes from their places.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::model::commits::NewestCommits;
use proto::model::ids::TransactionId;
use proto::{Error, ErrorCode, Result};
use serde::{Deserialize, Serialize};
use storage::log::Lsn;

/// The place of the item that contains the changes of a prepared transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparedPlace {
    /// LSN of the item.
    pub item: Lsn,
    /// The size in bytes of the item.
    pub bytes: u32,
}

/// The places in the log of the changes of a bucket's prepared transactions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparedPlaces(BTreeMap<TransactionId, PreparedPlace>);

/// The commits of a bucket's record, in the form in which they are stored.
#[derive(Deserialize)]
pub(crate) struct StoredCommits {
    /// The commits, without those changes of prepared transactions that the log contains.
    pub commits: NewestCommits,
    /// The places of these changes in the log.
    pub places: PreparedPlaces,
}

impl PreparedPlaces {
    /// Returns the place of a transaction's changes; `None` if there is none.
    pub fn get(&self, transaction: TransactionId) -> Option<PreparedPlace> {
        self.0.get(&transaction).copied()
    }

    /// Returns all transactions with places, and the places.
    pub fn iter(&self) -> impl Iterator<Item = (TransactionId, PreparedPlace)> {
        self.0.iter().map(|(transaction, place)| (*transaction, *place))
    }

    /// Returns the smallest LSN of the places; `None` if there are none. The log must be retained
    /// from this LSN on.
    pub fn oldest(&self) -> Option<Lsn> {
        self.0.values().map(|place| place.item).min()
    }

    /// Records the place of a transaction's changes.
    pub fn put(&mut self, transaction: TransactionId, place: PreparedPlace) {
        self.0.insert(transaction, place);
    }

    /// Removes the places of transactions that are not prepared any more.
    pub fn keep_prepared(&mut self, commits: &NewestCommits) {
        self.0.retain(|transaction, _| commits.find_prepared(*transaction).is_some());
    }

    /// Returns the places that are still valid if the commits `next` replace the commits `known`:
    /// the places of transactions whose changes are equal in both.
    pub fn still_valid_for(&self, known: &NewestCommits, next: &NewestCommits) -> Self {
        let of = |commits: &NewestCommits, transaction| commits.find_prepared(transaction).cloned();
        let is_same = |transaction| {
            let next = of(next, transaction);
            next.is_some() && next == of(known, transaction)
        };
        let same = self.iter().filter(|(transaction, _)| is_same(*transaction));
        Self(same.collect())
    }

    /// Returns commits in the form in which they are stored: without the changes whose places are
    /// known. The changes of other prepared transactions are included.
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
    /// Decodes the places that follow a record in its item.
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
