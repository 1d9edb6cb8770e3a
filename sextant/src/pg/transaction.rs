//! The transaction of a session: its state, and what it has chosen so far. `transact` has the rules.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::model::ids::{BucketId, Epoch, TransactionId, TransactionPlace};
use proto::{Error, ErrorCode, Result};

use super::settings::SavedSettings;
use crate::sql::backend::BucketTransaction;
use crate::sql::transaction_buckets::TransactionBuckets;

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
    /// The buckets that it reads and changes.
    pub(super) buckets: TransactionBuckets,
    /// Its number, after the first change.
    pub(super) id: Option<TransactionId>,
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
    /// The index of the newest savepoint with a name.
    pub(super) fn savepoint(&self, name: &str) -> Result<usize> {
        let at = self.savepoints.iter().rposition(|savepoint| savepoint.name == name);
        at.ok_or_else(|| {
            let what = format!("there is no savepoint {name:?} in this transaction");
            Error::new(ErrorCode::NoSavepoint, what)
        })
    }
}
