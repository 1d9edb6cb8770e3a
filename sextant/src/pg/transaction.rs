//! The transaction of a session: its state, and what it has chosen so far. `transact` has the rules.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::model::ids::{BucketId, Epoch, TransactionPlace};
use proto::{Error, ErrorCode, Result};

use super::settings::SavedSettings;
use crate::sql::backend::{BucketTransaction, EpochPin};

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
    /// Its changes, after the first.
    pub(super) changes: Option<Arc<dyn BucketTransaction>>,
    pub(super) savepoints: Vec<Savepoint>,
}

/// A place to which a transaction can go back.
pub(super) struct Savepoint {
    pub(super) name: String,
    pub(super) place: TransactionPlace,
    pub(super) settings: SavedSettings,
}

/// The changes of a transaction, and the epoch that it reads.
pub(super) type Writing = (Arc<dyn BucketTransaction>, Option<Epoch>);

impl OpenTransaction {
    /// The epoch that its reads of a bucket see, if it has read any.
    pub(super) fn snapshot(&self, bucket: BucketId) -> Option<Epoch> {
        self.pins.get(&bucket).map(|pin| pin.epoch())
    }

    /// The place of its changes.
    pub(super) fn place(&self) -> TransactionPlace {
        let own = self.changes.as_ref().and_then(|changes| changes.own());
        own.map(|own| own.place).unwrap_or_default()
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
