//! The data that an open transaction stores about its producer, in a pushed bucket.

use std::collections::BTreeMap;
use std::time::Duration;

use proto::model::ids::{ProducerTransactionId, VbucketId};

/// The data that an open transaction stores about its producer.
pub struct Producer {
    /// The number that the producer has given to the transaction.
    pub transaction: ProducerTransactionId,
    /// The number of stored mutations of the transaction in each vbucket.
    pub kept: BTreeMap<VbucketId, u64>,
    /// The time for which the transaction is kept after its last mutation.
    pub kept_for: Duration,
}
