//! The transaction of a session: its state, and what it has chosen so far. `transact` has the rules.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::model::ids::{BucketId, Epoch, TransactionId, TransactionPlace};
use proto::{Error, ErrorCode, Result};

use super::settings::SavedSettings;
use crate::sql::backend::{BucketTransaction, EpochPin};
use crate::sql::commit::Part;

/// The transaction state of a session.
pub(super) enum Transaction {
    /// The session is in no transaction.
    None,
    /// The session is in a transaction.
    Open(OpenTransaction),
    /// A statement of the transaction has failed.
    Failed(OpenTransaction),
}

/// An open transaction.
#[derive(Default)]
pub(super) struct OpenTransaction {
    /// The epochs that its reads see.
    pub(super) pins: BTreeMap<BucketId, Box<dyn EpochPin>>,
    /// Its number, after the first change.
    pub(super) id: Option<TransactionId>,
    /// Its changes in each bucket, after the first one there.
    pub(super) changes: BTreeMap<BucketId, Arc<dyn BucketTransaction>>,
    pub(super) savepoints: Vec<Savepoint>,
}

/// A place in each bucket to which a transaction can go back.
pub(super) struct Savepoint {
    pub(super) name: String,
    pub(super) places: BTreeMap<BucketId, TransactionPlace>,
    pub(super) settings: SavedSettings,
}

/// The changes of a transaction, and the epoch that it reads.
pub(super) type Writing = (Arc<dyn BucketTransaction>, Option<Epoch>);

impl OpenTransaction {
    /// The epoch that its reads of a bucket see, if it has read any.
    pub(super) fn snapshot(&self, bucket: BucketId) -> Option<Epoch> {
        self.pins.get(&bucket).map(|pin| pin.epoch())
    }

    /// The place of its changes in each bucket.
    pub(super) fn places(&self) -> BTreeMap<BucketId, TransactionPlace> {
        let own = |changes: &Arc<dyn BucketTransaction>| changes.own().map(|own| own.place);
        let places = self.changes.iter();
        places.map(|(bucket, changes)| (*bucket, own(changes).unwrap_or_default())).collect()
    }

    /// The changes in each bucket, with the epochs that were read there.
    pub(super) fn parts(&self) -> Vec<Part> {
        let part = |(bucket, changes): (&BucketId, &Arc<dyn BucketTransaction>)| Part {
            changes: Arc::clone(changes),
            snapshot: self.snapshot(*bucket),
        };
        self.changes.iter().map(part).collect()
    }

    /// The index of the newest savepoint with a name.
    pub(super) fn savepoint(&self, name: &str) -> Result<usize> {
        let at = self.savepoints.iter().rposition(|savepoint| savepoint.name == name);
        at.ok_or_else(|| {
            let what = format!("there is no savepoint {name:?} in this transaction");
            Error::new(ErrorCode::NoSavepoint, what)
        })
    }
}
