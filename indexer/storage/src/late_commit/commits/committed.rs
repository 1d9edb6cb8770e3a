//! Transactions whose commit waits for its epoch. The store retains their changes until their rows
//! are in the indexes.
//!
//! A commit marker is accepted only if the store has all changes of the transaction. Otherwise the
//! error is `DropData`, and the follower opens another stream. That stream does not carry the
//! changes of an ended transaction, so it sends the mutations of the commit. A transaction whose
//! changes are dropped before its epoch is handled in the same way.

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
use crate::late_commit::transactions::open::{ChangesByIndex, OpenTransaction};

/// Returns the error of a commit marker whose transaction is not in the store.
fn unknown_transaction(marker: &CommitMarker) -> Error {
    let CommitMarker { transaction, place, .. } = marker;
    let text = format!("transaction {transaction} was committed at place {place}, and is not here");
    Error::new(ErrorCode::DropData, text)
}

/// Records which documents of an epoch the transaction has changed too.
fn note_changes(
    documents: &[Document<'_>],
    transaction: &OpenTransaction,
    parts: &ChangesByIndex,
) -> Result<()> {
    for id in documents.iter().map(|document| document.versions.id.as_bytes()) {
        if transaction.preparation().is_invalid() {
            break;
        }
        if has_changed(parts, id)? {
            transaction.preparation().note_change(id);
        }
    }
    Ok(())
}

impl LateCommitStore {
    /// Retains a committed transaction until its rows are in the indexes, even after its end.
    /// `DropData` if the store lacks any of its changes.
    pub fn keep_committed(&self, bucket: BucketId, marker: &CommitMarker) -> Result<()> {
        let transaction = self.buckets.get(bucket, marker.transaction);
        let transaction = transaction.ok_or_else(|| unknown_transaction(marker))?;
        transaction.committed(marker)?;
        let mut buckets = self.buckets.lock();
        let of = buckets.get_mut(&bucket).ok_or_else(|| unknown_transaction(marker))?;
        let before = of.committed.insert(marker.transaction, transaction);
        drop(buckets);
        self.spiller.drop_off_thread(before);
        Ok(())
    }

    /// Returns a committed transaction's changes, by index. `DropData` if they were dropped
    /// meanwhile.
    pub(crate) fn committed_changes(
        &self,
        bucket: BucketId,
        marker: &CommitMarker,
    ) -> Result<ChangesByIndex> {
        self.committed_transaction(bucket, marker.transaction)
            .ok_or_else(|| unknown_transaction(marker))?
            .committed(marker)
    }

    /// Removes and returns the rows of a commit that were written ahead of its epoch, if they can
    /// be used.
    pub(crate) fn take_prepared(
        &self,
        bucket: BucketId,
        marker: &CommitMarker,
    ) -> Option<PreparedCommit> {
        self.committed_transaction(bucket, marker.transaction)?.preparation().take_rows()
    }

    /// Records the documents of an applied epoch for all commits that are written ahead of a later
    /// epoch: rows of these documents need a correction.
    pub(crate) fn note_applied(&self, batch: &EpochBatch, documents: &[Document<'_>]) {
        for transaction in self.prepared_for_later(batch) {
            // The documents of another commit are not in the batch.
            let parts = transaction.present_parts().ok().filter(|_| batch.commits.is_empty());
            let noted = parts.map(|parts| note_changes(documents, &transaction, &parts));
            if noted.is_none_or(|noted| noted.is_err()) {
                transaction.preparation().invalidate();
            }
        }
    }

    /// Returns the transactions whose commit is written ahead of a later epoch than this one.
    fn prepared_for_later(&self, batch: &EpochBatch) -> Vec<Arc<OpenTransaction>> {
        let buckets = self.buckets.lock();
        let Some(of) = buckets.get(&batch.mark.bucket) else { return Vec::new() };
        // Between its marker and its end a transaction is among both.
        let committed = of.committed.iter().filter(|(id, _)| !of.open.contains_key(id));
        let here = of.open.iter().chain(committed);
        let is_other = |id| batch.commits.iter().all(|marker| marker.transaction != id);
        let other = here.filter(|(id, _)| is_other(**id)).map(|(_, transaction)| transaction);
        other.filter(|transaction| transaction.preparation().is_active()).cloned().collect()
    }

    /// Returns a committed transaction that waits for its epoch.
    fn committed_transaction(
        &self,
        bucket: BucketId,
        id: TransactionId,
    ) -> Option<Arc<OpenTransaction>> {
        let buckets = self.buckets.lock();
        buckets.get(&bucket).and_then(|of| of.committed.get(&id)).cloned()
    }

    /// Drops the changes of committed transactions whose rows are in the indexes.
    pub(crate) fn drop_entered(&self, bucket: BucketId, markers: &[CommitMarker]) {
        let gone: Vec<_> = {
            let mut buckets = self.buckets.lock();
            let Some(of) = buckets.get_mut(&bucket) else { return };
            markers.iter().filter_map(|marker| of.committed.remove(&marker.transaction)).collect()
        };
        if !gone.is_empty() {
            tracing::debug!(%bucket, commits = gone.len(), "large commits are in the indexes");
        }
        self.usage.entered.fetch_add(gone.len() as u64, Ordering::Relaxed);
        self.spiller.drop_off_thread(gone);
    }
}
