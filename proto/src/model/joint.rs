//! Commits of transactions that have changed documents of several buckets: *joint commits*.
//!
//! Each bucket has its own log, so such a commit takes several steps. Of the buckets that take
//! part, the one with the lowest number *decides*.
//!
//! - *Prepare.* Each other bucket checks the changes for conflicts, logs them without seqnos, and
//!   locks their documents: until the outcome is known, no other transaction may change them. A
//!   bucket in which the changes have no effect prepares too, and locks no document.
//! - *Decide.* The deciding bucket checks and logs its own changes like any commit, with the list
//!   of the participants. From then on the transaction is committed.
//! - *Finish.* Each other bucket numbers and logs the changes that it has prepared.
//!
//! If the session of a prepared transaction has ended, the other buckets query the deciding
//! bucket. If that bucket has not committed the transaction and never will, the transaction is
//! rolled back (presumed abort).
//!
//! A joint commit is *open* in a bucket until an epoch of the bucket covers it. The projectors'
//! reports (SYNC) contain the open commits, so that the coordinators publish no epoch that splits
//! a joint commit. A bucket stores its open commits in its record, like the prepared
//! transactions.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::committed::CommittedTransaction;
use super::cut::Cut;
use super::ids::{BucketId, Seqno, TransactionId, VbucketId};
use crate::plant::{self, Plant};

/// The maximum number of prepared transactions of a bucket. The number is bounded because each
/// write looks for its documents in all of them.
pub const PREPARED_MAX: usize = 256;
/// The maximum number of open joint commits of a bucket: as many as are made during a few
/// intervals between epochs.
pub const JOINT_MAX: usize = 1 << 10;
/// The memory of one change of an open or prepared transaction in bytes, without the id and the
/// document.
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
    /// Returns the approximate size of the change in memory, in bytes.
    pub fn bytes(&self) -> usize {
        let document = self.document.as_ref().map_or(0, Bytes::len);
        CHANGE_OVERHEAD_BYTES + self.id.len() + document
    }
}

/// The prepared changes of a transaction in a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparedTransaction {
    /// The id of the transaction.
    pub transaction: TransactionId,
    /// All buckets whose documents the transaction has changed, ascending. The first one decides.
    pub participants: Vec<BucketId>,
    /// The changes, ordered by id, at most one of each document.
    pub changes: Vec<PreparedChange>,
}

impl PreparedTransaction {
    /// Returns the bucket that decides about the commit; `None` without participants.
    pub fn decider(&self) -> Option<BucketId> {
        self.participants.first().copied()
    }

    /// Returns the approximate size of the changes in memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.changes.iter().map(PreparedChange::bytes).sum()
    }

    /// Returns a digest of the transaction and all its changes, with which two copies of a bucket
    /// compare them.
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

    /// Returns the transaction without its list of changes.
    pub fn without_changes(&self) -> Self {
        let (transaction, participants) = (self.transaction, self.participants.clone());
        Self { transaction, participants, changes: Vec::new() }
    }

    /// Returns true if the transaction changes the document.
    fn changes_document(&self, id: &str) -> bool {
        self.changes.binary_search_by(|change| (*change.id).cmp(id)).is_ok()
    }
}

/// A joint commit as recorded in one of its buckets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JointCommit {
    /// The commit of the transaction in this bucket.
    pub committed: CommittedTransaction,
    /// All buckets that the transaction has changed, ascending.
    pub participants: Vec<BucketId>,
}

impl JointCommit {
    /// Returns a position by which to test whether a closed cut (one that splits no commit of the
    /// bucket) includes the commit: it does if it includes the position. `None` if the commit has
    /// changed no document of this bucket.
    pub fn at(&self) -> Option<(VbucketId, Seqno)> {
        self.committed.positions.first().map(|(vbucket, position)| (*vbucket, position.seqno))
    }

    /// Returns true if a closed cut includes the commit, or if the commit changed no document of
    /// this bucket.
    pub fn is_in(&self, cut: &Cut) -> bool {
        self.at().is_none_or(|(vbucket, seqno)| cut.get(vbucket).seqno >= seqno)
    }

    /// Returns the participants other than `bucket`.
    pub fn others(&self, bucket: BucketId) -> impl Iterator<Item = BucketId> {
        self.participants.iter().copied().filter(move |other| *other != bucket)
    }
}

/// A joint commit of which a part was lost: one bucket has it, and another one has it no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PartlyLostCommit {
    /// The id of the transaction.
    pub transaction: TransactionId,
    /// The bucket that has the commit.
    pub bucket: BucketId,
    /// The bucket that has lost the commit.
    pub lost_in: BucketId,
}

/// Returns the prepared transaction that locks a document.
pub fn holder<'p>(
    mut prepared: impl Iterator<Item = &'p Arc<PreparedTransaction>>,
    id: &str,
) -> Option<&'p Arc<PreparedTransaction>> {
    prepared
        .find(|prepared| prepared.changes_document(id))
        .filter(|_| !plant::is(Plant::PreparedNotHeld))
}
