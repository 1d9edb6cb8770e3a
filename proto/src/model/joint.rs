//! Commits of transactions that have changed documents of several buckets: *joint commits*.
//!
//! Each bucket has its own log, so such a commit takes two phases. The bucket with the lowest number *decides*.
//!
//! 1. *Prepare.* Each other bucket checks the changes for conflicts, logs them without numbers, and holds their documents: until the
//!    outcome is known no other transaction may change them. A bucket in which the changes have no effect prepares too, and holds nothing.
//! 2. *Decide.* The deciding bucket checks and logs its own changes as any commit, with the list of the participants. From then on the
//!    transaction is committed.
//! 3. *Finish.* Each other bucket numbers and logs the changes that it has prepared.
//!
//! For a prepared transaction whose session has ended, the deciding bucket is queried. If that one has not committed it and never will, the
//! transaction is rolled back (presumed abort).
//!
//! A joint commit is *open* in a bucket until the bucket has an epoch with it. Epochs are promoted so that no reader sees a part of a joint
//! commit, so SYNC names those that are open. A bucket remembers them in its record, like the prepared ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::committed::Committed;
use super::cut::Cut;
use super::ids::{BucketId, Seqno, TransactionId, VbucketId};
use crate::plant::{self, Plant};

/// Prepared transactions of a bucket. Each write looks for its documents in all of them.
pub const PREPARED_MAX: usize = 256;
/// Open joint commits of a bucket: those of a few ticks of the coordinator.
pub const JOINT_MAX: usize = 1 << 10;
/// Bytes in memory of a change of a transaction besides its id and document, whether the transaction is open or prepared.
pub const CHANGE_OVERHEAD_BYTES: usize = 200;

/// A change that was prepared: it has no number yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparedChange {
    /// The document's id.
    pub id: Arc<str>,
    /// The document; `None` for a deletion.
    pub document: Option<Bytes>,
}

impl PreparedChange {
    /// The approximate size in memory, in bytes.
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
    /// The bucket that decides.
    pub fn decider(&self) -> Option<BucketId> {
        self.participants.first().copied()
    }

    /// The size of the changes in memory, about.
    pub fn bytes(&self) -> usize {
        self.changes.iter().map(PreparedChange::bytes).sum()
    }

    /// A digest of all of it, by which two copies compare what they have.
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

    /// A copy without the changes of documents.
    pub fn without_changes(&self) -> Self {
        let (transaction, participants) = (self.transaction, self.participants.clone());
        Self { transaction, participants, changes: Vec::new() }
    }

    fn has(&self, id: &str) -> bool {
        self.changes.binary_search_by(|change| (*change.id).cmp(id)).is_ok()
    }
}

/// A joint commit in one of its buckets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JointCommit {
    /// The commit of the transaction in this bucket.
    pub committed: Committed,
    /// All buckets that it has changed, ascending.
    pub participants: Vec<BucketId>,
}

impl JointCommit {
    /// A position of the commit: a closed cut of the bucket has all of the commit if it includes the position, and otherwise nothing.
    /// `None` if no document was changed here.
    pub fn at(&self) -> Option<(VbucketId, Seqno)> {
        self.committed.positions.first().map(|(vbucket, position)| (*vbucket, position.seqno))
    }

    /// True if a closed cut has the commit.
    pub fn is_in(&self, cut: &Cut) -> bool {
        is_in(self.at(), cut)
    }
}

/// True if a closed cut has the joint commit with this position.
pub fn is_in(at: Option<(VbucketId, Seqno)>, cut: &Cut) -> bool {
    at.is_none_or(|(vbucket, seqno)| cut.get(vbucket).seqno >= seqno)
}

/// An open joint commit, as SYNC names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JointMark {
    /// The id of the transaction.
    pub transaction: TransactionId,
    /// The other buckets without which the bucket has no epoch with the commit.
    pub others: Vec<BucketId>,
    /// See [`JointCommit::at`].
    pub at: Option<(VbucketId, Seqno)>,
}

/// A joint commit of which one bucket has its part and another bucket has lost its part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HalvedCommit {
    /// The id of the transaction.
    pub transaction: TransactionId,
    /// The bucket that has its part.
    pub bucket: BucketId,
    /// The bucket that has lost it.
    pub lost_in: BucketId,
}

/// The prepared transactions and the open joint commits of a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JointCommits {
    prepared: BTreeMap<TransactionId, Arc<Prepared>>,
    open: BTreeMap<TransactionId, JointCommit>,
}

impl JointCommits {
    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.prepared.is_empty() && self.open.is_empty()
    }

    /// The prepared transactions, by number.
    pub fn prepared(&self) -> impl Iterator<Item = &Arc<Prepared>> {
        self.prepared.values()
    }

    /// A prepared transaction.
    pub fn find_prepared(&self, transaction: TransactionId) -> Option<&Arc<Prepared>> {
        self.prepared.get(&transaction)
    }

    /// The open joint commits, by number.
    pub fn open(&self) -> impl Iterator<Item = &JointCommit> {
        self.open.values()
    }

    /// An open joint commit.
    pub fn find_open(&self, transaction: TransactionId) -> Option<&JointCommit> {
        self.open.get(&transaction)
    }

    /// The prepared transactions alone: a few pointers.
    pub fn prepared_only(&self) -> Self {
        Self { prepared: self.prepared.clone(), open: BTreeMap::new() }
    }

    /// The prepared transaction that holds a document.
    pub fn holder(&self, id: &str) -> Option<&Arc<Prepared>> {
        let holds = |prepared: &&Arc<Prepared>| prepared.has(id);
        self.prepared.values().find(holds).filter(|_| !plant::is(Plant::PreparedNotHeld))
    }

    pub(super) fn prepare(&mut self, prepared: &Arc<Prepared>) {
        self.prepared.insert(prepared.transaction, Arc::clone(prepared));
    }

    pub(super) fn replace_prepared(
        &mut self,
        with: impl FnMut(&Arc<Prepared>) -> Option<Arc<Prepared>>,
    ) {
        let replaced = self.prepared.values().filter_map(with);
        self.prepared = replaced.map(|prepared| (prepared.transaction, prepared)).collect();
    }

    pub(super) fn roll_back(&mut self, transaction: TransactionId) {
        self.prepared.remove(&transaction);
    }

    pub(super) fn commit(&mut self, joint: &JointCommit) {
        self.prepared.remove(&joint.committed.transaction);
        self.open.insert(joint.committed.transaction, joint.clone());
    }

    pub(super) fn settle(&mut self, transaction: TransactionId) {
        self.open.remove(&transaction);
    }

    pub(super) fn go_back(&mut self, vbucket: VbucketId, to: Seqno) {
        self.open.retain(|_, joint| !joint.committed.reaches_behind(vbucket, to));
    }
}
