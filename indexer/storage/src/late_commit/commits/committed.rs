//! Transactions whose commit waits for its epoch: the store keeps them until their rows are in the
//! indexes.
//!
//! A marker is accepted only if the store has the whole transaction. Otherwise the error is
//! `DropData`: the follower opens another stream. That stream does not carry the changes of an
//! ended transaction, so it sends the mutations of the commit. The transaction may also be given up
//! before its epoch, with the same effect.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use proto::model::ids::{BucketId, TransactionId};
use proto::rpc::mutation::CommitMarker;
use proto::{Error, ErrorCode, Result};

use crate::apply::documents::Document;
use crate::batch::EpochBatch;
use crate::late_commit::commit_rows::prepared::PreparedCommit;
use crate::late_commit::commits::order::has_changed;
use crate::late_commit::store::LateCommitStore;
use crate::late_commit::transactions::open::{OpenTransaction, Parts};

/// The error of a marker whose transaction is not in the store.
fn not_here(marker: &CommitMarker) -> Error {
    let CommitMarker { transaction, place, .. } = marker;
    let text = format!("transaction {transaction} was committed at place {place}, and is not here");
    Error::new(ErrorCode::DropData, text)
}

/// Records the documents of an epoch that the transaction has changed too.
fn note_changes(
    documents: &[Document<'_>],
    transaction: &OpenTransaction,
    parts: &Parts,
) -> Result<()> {
    for id in documents.iter().map(|document| document.versions.id.as_bytes()) {
        if transaction.preparation().is_void() {
            break;
        }
        if has_changed(parts, id)? {
            transaction.preparation().note(id);
        }
    }
    Ok(())
}

impl LateCommitStore {
    /// Keeps a committed transaction until its rows are in the indexes, even after its end.
    /// `DropData` if the store lacks any of its changes.
    pub fn keep_committed(&self, bucket: BucketId, marker: &CommitMarker) -> Result<()> {
        let transaction = self.buckets.get(bucket, marker.transaction);
        let transaction = transaction.ok_or_else(|| not_here(marker))?;
        transaction.committed(marker)?;
        let mut buckets = self.buckets.lock();
        let of = buckets.get_mut(&bucket).ok_or_else(|| not_here(marker))?;
        let before = of.committed.insert(marker.transaction, transaction);
        drop(buckets);
        self.spiller.dispose(before);
        Ok(())
    }

    /// Returns the parts of a committed transaction. `DropData` if it was given up meanwhile.
    pub(crate) fn committed(&self, bucket: BucketId, marker: &CommitMarker) -> Result<Parts> {
        self.kept(bucket, marker.transaction).ok_or_else(|| not_here(marker))?.committed(marker)
    }

    /// Returns the rows of a commit that were written ahead of its epoch, if they are valid.
    pub(crate) fn take_prepared(
        &self,
        bucket: BucketId,
        marker: &CommitMarker,
    ) -> Option<PreparedCommit> {
        self.kept(bucket, marker.transaction)?.preparation().take()
    }

    /// Records the documents of an applied epoch: rows of these documents that were written ahead
    /// of a commit need a correction.
    pub(crate) fn note_applied(&self, batch: &EpochBatch, documents: &[Document<'_>]) {
        for transaction in self.under_way(batch) {
            // The documents of another commit are not in the batch.
            let parts = transaction.present_parts().ok().filter(|_| batch.commits.is_empty());
            let noted = parts.map(|parts| note_changes(documents, &transaction, &parts));
            if noted.is_none_or(|noted| noted.is_err()) {
                transaction.preparation().void();
            }
        }
    }

    /// Returns the transactions with rows written ahead of a commit, or being written, whose commit
    /// is not in the epoch.
    fn under_way(&self, batch: &EpochBatch) -> Vec<Arc<OpenTransaction>> {
        let buckets = self.buckets.lock();
        let Some(of) = buckets.get(&batch.mark.bucket) else { return Vec::new() };
        // Between its marker and its end a transaction is among both.
        let committed = of.committed.iter().filter(|(id, _)| !of.open.contains_key(id));
        let here = of.open.iter().chain(committed);
        let is_other = |id| batch.commits.iter().all(|marker| marker.transaction != id);
        let other = here.filter(|(id, _)| is_other(**id)).map(|(_, transaction)| transaction);
        other.filter(|transaction| transaction.preparation().is_under_way()).cloned().collect()
    }

    fn kept(&self, bucket: BucketId, id: TransactionId) -> Option<Arc<OpenTransaction>> {
        let buckets = self.buckets.lock();
        buckets.get(&bucket).and_then(|of| of.committed.get(&id)).cloned()
    }

    /// Drops transactions whose rows are in the indexes.
    pub(crate) fn entered(&self, bucket: BucketId, markers: &[CommitMarker]) {
        let gone: Vec<_> = {
            let mut buckets = self.buckets.lock();
            let Some(of) = buckets.get_mut(&bucket) else { return };
            markers.iter().filter_map(|marker| of.committed.remove(&marker.transaction)).collect()
        };
        if !gone.is_empty() {
            tracing::debug!(%bucket, commits = gone.len(), "large commits are in the indexes");
        }
        self.usage.entered.fetch_add(gone.len() as u64, Ordering::Relaxed);
        self.spiller.dispose(gone);
    }
}
