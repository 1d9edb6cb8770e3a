//! Commits of transactions that have changed documents of several buckets: *joint commits*.
//!
//! Each bucket has its own log, so such a commit takes two phases. The bucket with the lowest
//! number *decides*.
//!
//! 1. *Prepare.* Each other bucket checks the changes for conflicts, logs them without seqnos, and
//!    locks their documents: until the outcome is known no other transaction may change them. A
//!    bucket in which the changes have no effect prepares too, and locks no document.
//! 2. *Decide.* The deciding bucket checks and logs its own changes like any commit, with the list
//!    of the participants. From then on the transaction is committed.
//! 3. *Finish.* Each other bucket numbers and logs the changes that it has prepared.
//!
//! For a prepared transaction whose session has ended, the deciding bucket is queried. If the
//! deciding bucket has not committed the transaction and never will, the transaction is rolled back
//! (presumed abort).
//!
//! A joint commit is *open* in a bucket until an epoch of the bucket covers it. SYNC reports the
//! open commits, so that the coordinators promote epochs without splitting a joint commit. A bucket
//! stores its open commits in its record, like the prepared transactions.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::committed::Committed;
use super::cut::Cut;
use super::ids::{BucketId, Seqno, TransactionId, VbucketId};
use crate::plant::{self, Plant};

/// The limit of prepared transactions of a bucket. Each write searches its documents in all of
/// them.
pub const PREPARED_MAX: usize = 256;
/// The limit of open joint commits of a bucket: those of a few intervals between epochs.
pub const JOINT_MAX: usize = 1 << 10;
/// The bytes in memory of one change of a transaction, without its id and document, while the
/// transaction is open or prepared.
pub const CHANGE_OVERHEAD_BYTES: usize = 200;

/// A prepared change, which has no seqno yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparedChange {
    /// The id of the document.
    pub id: Arc<str>,
    /// The document; `None` for a deletion.
    pub document: Option<Bytes>,
}

impl PreparedChange {
    /// Returns the approximate size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        let document = self.document.as_ref().map_or(0, Bytes::len);
        CHANGE_OVERHEAD_BYTES + self.id.len() + document
    }
}

/// The prepared changes of a transaction in a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    /// The id of the transaction.
    pub transaction: TransactionId,
    /// All buckets whose documents the transaction has changed, ascending. The first one decides.
    pub participants: Vec<BucketId>,
    /// The changes, ordered by id, at most one of each document.
    pub changes: Vec<PreparedChange>,
}

impl Prepared {
    /// Returns the bucket that decides; `None` without participants.
    pub fn decider(&self) -> Option<BucketId> {
        self.participants.first().copied()
    }

    /// Returns the approximate size of the changes in memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.changes.iter().map(PreparedChange::bytes).sum()
    }

    /// Returns a digest of the transaction and all its changes, with which two copies compare their
    /// contents.
    pub fn digest(&self) -> u64 {
        let mut hash = Xxh3::new();
        let mut add = |part: &[u8]| {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part);
        };
        add(&self.transaction.0.to_le_bytes());
        let participants = self.participants.iter().flat_map(|bucket| bucket.0.to_le_bytes());
        add(&participants.collect::<Vec<u8>>());
        for PreparedChange { id, document } in &self.changes {
            add(&[u8::from(document.is_some())]);
            add(id.as_bytes());
            add(document.as_deref().unwrap_or_default());
        }
        hash.digest()
    }

    /// Returns a copy without the changed documents.
    pub fn without_changes(&self) -> Self {
        let (transaction, participants) = (self.transaction, self.participants.clone());
        Self { transaction, participants, changes: Vec::new() }
    }

    fn has(&self, id: &str) -> bool {
        self.changes.binary_search_by(|change| (*change.id).cmp(id)).is_ok()
    }
}

/// A joint commit as recorded in one of its buckets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JointCommit {
    /// The commit of the transaction in this bucket.
    pub committed: Committed,
    /// All buckets that the transaction has changed, ascending.
    pub participants: Vec<BucketId>,
}

impl JointCommit {
    /// Returns a position of the commit: a closed cut of the bucket includes the complete commit if
    /// it includes the position, and nothing of it otherwise. `None` if the commit has changed no
    /// document of this bucket.
    pub fn at(&self) -> Option<(VbucketId, Seqno)> {
        self.committed.positions.first().map(|(vbucket, position)| (*vbucket, position.seqno))
    }

    /// Returns true if a closed cut includes the commit, or the commit changed no document of this
    /// bucket.
    pub fn is_in(&self, cut: &Cut) -> bool {
        self.at().is_none_or(|(vbucket, seqno)| cut.get(vbucket).seqno >= seqno)
    }

    /// Iterates over the participants other than a bucket.
    pub fn others(&self, bucket: BucketId) -> impl Iterator<Item = BucketId> {
        self.participants.iter().copied().filter(move |other| *other != bucket)
    }
}

/// A joint commit that one bucket has, and another bucket has lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HalvedCommit {
    /// The id of the transaction.
    pub transaction: TransactionId,
    /// The bucket that has the commit.
    pub bucket: BucketId,
    /// The bucket that has lost the commit.
    pub lost_in: BucketId,
}

/// Returns the prepared transaction that locks a document.
pub fn holder<'p>(
    mut prepared: impl Iterator<Item = &'p Arc<Prepared>>,
    id: &str,
) -> Option<&'p Arc<Prepared>> {
    prepared.find(|prepared| prepared.has(id)).filter(|_| !plant::is(Plant::PreparedNotHeld))
}
