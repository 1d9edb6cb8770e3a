//! Commits of several parts that no epoch may split: *open commits*.
//!
//! The parts of a commit are with its *participants*. For a transaction over several buckets
//! these are the buckets ([`super::joint`]), for a producer's transaction the vbuckets of its
//! bucket ([`super::pushed_commit`]). The protocol is the same for both:
//!
//! - *Prepare.* Each participant stores its changes without numbers.
//! - *Decide.* The decision is logged: by the deciding bucket, or by each owner of a vbucket that
//!   the producer calls.
//! - *Finish.* The other participants number their changes.
//! - *Settle.* The commit is *open* until an epoch has all of its parts. Participants store it in
//!   their records and name it in their reports (SYNC), so the leader publishes no epoch that has
//!   some parts and lacks others.
//! - *Resolve.* If a commit stays open for long, a participant queries the others for the [state
//!   of their parts](PartState). The epochs do not wait for a part that is lost.
//!
//! The two kinds of commits differ in what a missing decision means. A transaction whose deciding
//! bucket has not committed it is rolled back (presumed abort). A producer's commit is never
//! rolled back: until its missing parts are committed, epochs end before it, without a time
//! limit. The wait ends when the producer commits again, a new branch of history excludes the
//! parts, or CANCEL TRANSACTION gives them up.

use serde::{Deserialize, Serialize};

use super::ids::{BucketId, ProducerTransactionId, TransactionId, VbucketId};
use super::joint::JointCommit;
use super::pushed_commit::PushedCommit;

/// The identity of a commit of several parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommitId {
    /// The commit of a transaction over several buckets.
    Joint(TransactionId),
    /// The commit of a producer's transaction, with the number that the producer has given it.
    Pushed(ProducerTransactionId),
}

/// The bucket or vbucket that has a part of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Participant {
    /// A bucket of a joint commit.
    Bucket(BucketId),
    /// A vbucket of a producer's commit.
    Vbucket(VbucketId),
}

/// The state of one part of a commit, as its participant reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PartState {
    /// The part is not committed yet, but still may be.
    Missing,
    /// The part is durable.
    Durable,
    /// An epoch includes the part, so readers see it.
    Shown,
    /// The part can never be committed: its participant has lost it, or its vbucket has left the
    /// part's branch of history before the part's end.
    Lost,
}

/// A commit of several parts that no epoch includes yet. In a SYNC report, participants that no
/// epoch waits for are omitted, and a joint commit has at most one position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OpenCommit {
    /// The commit of a transaction over several buckets, as one bucket has it.
    Joint(JointCommit),
    /// A producer's commit, with its parts in all vbuckets.
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
