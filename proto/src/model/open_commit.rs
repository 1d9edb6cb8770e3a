//! Commits of several parts that no epoch may split: *open commits*.
//!
//! The parts of a commit are with its *participants*: of a transaction over several buckets these
//! are the buckets ([`super::joint`]), of a producer's transaction the vbuckets of its bucket
//! ([`super::pushed_commit`]). The protocol is the same for both:
//!
//! 1. *Prepare.* Each participant stores its changes without numbers.
//! 2. *Decide.* The decision is logged: by the deciding bucket, or by each owner that the producer
//!    calls.
//! 3. *Finish.* The other participants number their changes.
//! 4. *Settle.* The commit is *open* until an epoch has all of its parts. Participants remember it
//!    in their records and name it in SYNC, so the leader promotes no epoch that has some parts and
//!    lacks others.
//! 5. *Resolve.* A participant whose commit is late queries the others for the [state of their
//!    parts](PartState). A part that is lost is not waited for.
//!
//! The two kinds differ in what they presume. A transaction whose deciding bucket has not committed
//! it is rolled back (presumed abort). A producer's commit is never rolled back: the parts that it
//! lacks hold the epochs without a time limit, until the producer commits again, a new branch of
//! history excludes them, or CANCEL TRANSACTION gives them up.

use serde::{Deserialize, Serialize};

use super::ids::{BucketId, ProducerTransactionId, TransactionId, VbucketId};
use super::joint::JointCommit;
use super::pushed_commit::PushedCommit;

/// The identity of a commit of several parts in a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommitId {
    /// The commit of a transaction over several buckets.
    Joint(TransactionId),
    /// The commit of a producer's transaction, with the number that the producer has given it.
    Pushed(ProducerTransactionId),
}

/// The holder of a part of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Participant {
    /// A bucket of a joint commit.
    Bucket(BucketId),
    /// A vbucket of a producer's commit.
    Vbucket(VbucketId),
}

/// The state of a part of a commit, reported by its participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PartState {
    /// The part is not stored, and may still be committed.
    Missing,
    /// The part is durable.
    Durable,
    /// An epoch has the part.
    Shown,
    /// The part can never be committed: its participant has lost it, or its vbucket has left the
    /// part's branch before the part's end.
    Lost,
}

/// An open commit, in no epoch yet. In SYNC it lacks the participants that are not waited for, and
/// a joint commit has at most one position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OpenCommit {
    /// The part of a bucket in the commit of a transaction over several buckets.
    Joint(JointCommit),
    /// A producer's commit, with all of its parts.
    Pushed(PushedCommit),
}

impl OpenCommit {
    /// Returns the identity of the commit.
    pub fn id(&self) -> CommitId {
        match self {
            Self::Joint(joint) => CommitId::Joint(joint.committed.transaction),
            Self::Pushed(pushed) => CommitId::Pushed(pushed.transaction),
        }
    }

    /// Returns the joint commit; `None` for a producer's commit.
    pub fn joint(&self) -> Option<&JointCommit> {
        match self {
            Self::Joint(joint) => Some(joint),
            Self::Pushed(_) => None,
        }
    }

    /// Returns the producer's commit; `None` for a joint commit.
    pub fn pushed(&self) -> Option<&PushedCommit> {
        match self {
            Self::Joint(_) => None,
            Self::Pushed(pushed) => Some(pushed),
        }
    }
}
