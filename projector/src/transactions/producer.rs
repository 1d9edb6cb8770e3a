//! The data of an open transaction that concern its producer, in a pushed bucket.

use std::collections::BTreeMap;
use std::time::Duration;

use proto::model::ids::{ProducerTransactionId, VbucketId};

/// The producer's data of an open transaction.
pub struct Producer {
    /// The producer's number of the transaction.
    pub transaction: ProducerTransactionId,
    /// The number of stored mutations of each vbucket.
    pub kept: BTreeMap<VbucketId, u64>,
    /// The time for which the transaction is kept after its last mutation.
    pub kept_for: Duration,
}
