//! The commit of a transaction in a bucket.

use serde::{Deserialize, Serialize};

use super::cut::Position;
use super::ids::{Seqno, TransactionId, VbucketId};

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Committed {
    /// The id of the committed transaction.
    pub transaction: TransactionId,
    /// The number of documents created, replaced or removed.
    pub affected: u64,
    /// The end of the vbuckets that it has changed.
    pub positions: Vec<(VbucketId, Position)>,
}

impl Committed {
    /// True if it has changed a vbucket after a seqno.
    pub fn reaches_behind(&self, vbucket: VbucketId, seqno: Seqno) -> bool {
        self.positions.iter().any(|(of, end)| *of == vbucket && end.seqno > seqno)
    }
}
