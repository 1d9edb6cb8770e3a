//! The commit of a transaction in a bucket.

use serde::{Deserialize, Serialize};

use super::cut::Position;
use super::ids::{Seqno, TransactionId, VbucketId};

/// The commit of a transaction in a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Committed {
    /// The id of the committed transaction.
    pub transaction: TransactionId,
    /// The number of documents created, replaced or removed.
    pub affected: u64,
    /// The last position of each vbucket that the commit has changed.
    pub positions: Vec<(VbucketId, Position)>,
}

impl Committed {
    /// Returns true if the commit has changed a vbucket after a seqno.
    pub fn reaches_behind(&self, vbucket: VbucketId, seqno: Seqno) -> bool {
        self.positions.iter().any(|(of, end)| *of == vbucket && end.seqno > seqno)
    }
}
