//! The commit of a transaction in a bucket.

use serde::{Deserialize, Serialize};

use super::cut::Position;
use super::ids::{Seqno, TransactionId, VbucketId};

/// A committed transaction, as recorded in one bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommittedTransaction {
    /// The id of the committed transaction.
    pub transaction: TransactionId,
    /// The number of documents created, replaced or removed.
    pub affected: u64,
    /// The last position of each vbucket that the commit has changed.
    pub positions: Vec<(VbucketId, Position)>,
}

impl CommittedTransaction {
    /// Returns true if the commit has changed a vbucket after this seqno.
    pub fn changed_after(&self, vbucket: VbucketId, seqno: Seqno) -> bool {
        self.positions.iter().any(|(of, end)| *of == vbucket && end.seqno > seqno)
    }
}
