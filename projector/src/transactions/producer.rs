//! The part of an open transaction that is known of its producer, in a pushed bucket.

use std::collections::BTreeMap;
use std::time::Duration;

use proto::model::ids::{ProducerTransactionId, VbucketId};

/// A transaction of a producer.
pub struct Producer {
    /// The producer's number.
    pub transaction: ProducerTransactionId,
    /// The mutations of each vbucket that are kept.
    pub kept: BTreeMap<VbucketId, u64>,
    /// The time for which the transaction is kept without a further mutation.
    pub kept_for: Duration,
}
