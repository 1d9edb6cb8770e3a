//! Converts events of the change log into changes of the document table, and replays them when a
//! bucket is opened.

use std::collections::BTreeSet;
use std::sync::Arc;

use proto::Result;
use proto::model::commits::TransactionEvent;
use proto::model::ids::{Seqno, TransactionId, VbucketId};
use proto::model::joint::PreparedTransaction;
use proto::plant::{self, Plant};
use proto::rpc::mutation::MutationKind;
use storage::log::Lsn;

use super::checkpoint::Checkpoint;
use crate::change_log::{
    EventPlace, LogEvent, MutationPlace, PreparedPlace, PreparedPlaces, Run, RunMutation,
};
use crate::document_store::StoredDocument;
use crate::mutation::Mutation;
use crate::record::BucketRecord;
use crate::table::{DeadVersions, DocumentTable, VersionRef};

/// Returns the place of a mutation in the table's order of all versions, which follows the order
/// of the log.
pub(super) fn version_place(place: &MutationPlace) -> u64 {
    place.item + u64::from(place.offset)
}

/// Converts a mutation into a version of the table, with this place in the order of versions.
pub(super) fn version(mutation: &Mutation, place: u64) -> VersionRef<'_> {
    let is_upsert = mutation.kind == MutationKind::Upsert;
    VersionRef {
        place,
        id: &mutation.id,
        seqno: mutation.seqno,
        document: is_upsert.then_some(&mutation.document[..]),
    }
}

/// Converts copied documents into versions of the table. Each version gets its own place inside
/// the log item that begins at `item`; the item has more bytes than documents.
pub(super) fn copied_versions(documents: &[StoredDocument], item: Lsn) -> Vec<VersionRef<'_>> {
    let mut versions = Vec::with_capacity(documents.len());
    for (StoredDocument { id, seqno, document }, place) in documents.iter().zip(item + 1..) {
        versions.push(VersionRef { place, id, seqno: *seqno, document: Some(document) });
    }
    versions
}

/// The progress of replaying the groups after a checkpoint.
pub(super) struct Replay<'a> {
    pub(super) table: &'a DocumentTable,
    /// The place up to which the table has all versions already.
    pub(super) covered: u64,
    pub(super) record: BucketRecord,
    /// The places in the log of the changes of the bucket's prepared transactions.
    pub(super) places: PreparedPlaces,
    /// The prepared transactions whose changes must still be read from those places.
    unread: BTreeSet<TransactionId>,
    /// The number of events replayed so far.
    pub(super) events: u64,
}

impl<'a> Replay<'a> {
    /// Creates the replay of the log after a checkpoint.
    pub(super) fn after_checkpoint(checkpoint: &Checkpoint, table: &'a DocumentTable) -> Self {
        let Checkpoint { record, table: manifest, places, .. } = checkpoint;
        let (record, places) = (record.clone(), places.clone());
        let unread = places.iter().map(|(transaction, _)| transaction).collect();
        Self { table, covered: manifest.covered(), record, places, unread, events: 0 }
    }

    /// Reads the changes of the transactions that are still prepared, except those that the
    /// replayed events contained.
    pub(super) fn read_prepared(
        &mut self,
        read: impl Fn(TransactionId, PreparedPlace) -> Result<Arc<PreparedTransaction>>,
    ) -> Result<()> {
        for transaction in std::mem::take(&mut self.unread) {
            if let Some(place) = self.places.get(transaction) {
                let prepared = read(transaction, place)?;
                self.record.commits.apply_event(&TransactionEvent::Prepared(prepared));
            }
        }
        Ok(())
    }

    /// Reads the changes of prepared transactions from a damaged log. A transaction whose changes
    /// cannot be read is removed from the record, and returned without its changes.
    pub(super) fn read_or_forget(
        &mut self,
        read: impl Fn(TransactionId, PreparedPlace) -> Result<Arc<PreparedTransaction>>,
    ) -> Vec<Arc<PreparedTransaction>> {
        let mut forgotten = Vec::new();
        for transaction in std::mem::take(&mut self.unread) {
            let Some(place) = self.places.get(transaction) else { continue };
            match read(transaction, place) {
                Ok(prepared) => {
                    self.record.commits.apply_event(&TransactionEvent::Prepared(prepared));
                }
                Err(error) => {
                    tracing::warn!(%transaction, %error, "the changes of a prepared transaction are lost");
                    forgotten.extend(self.record.commits.find_prepared(transaction).cloned());
                    self.record.commits.apply_event(&TransactionEvent::RolledBack(transaction));
                }
            }
        }
        forgotten
    }

    pub(super) fn event(&mut self, event: LogEvent<'_>, place: &EventPlace) -> Result<()> {
        let is_known = place.item < self.covered;
        self.events += 1;
        match event {
            LogEvent::Record(record, places) => self.take_record(*record, places),
            LogEvent::Run(run) if !is_known => self.run(run)?,
            LogEvent::Documents { documents, .. } if !is_known => {
                self.table.apply(&copied_versions(&documents, place.item))?;
            }
            LogEvent::Transaction(TransactionEvent::Prepared(_))
                if plant::is(Plant::PreparedForgotten) => {}
            LogEvent::Transaction(event) => {
                if let TransactionEvent::Prepared(prepared) = &event {
                    let of_item = PreparedPlace { item: place.item, bytes: place.item_bytes };
                    self.places.put(prepared.transaction, of_item);
                    self.unread.remove(&prepared.transaction);
                }
                self.record.commits.apply_event(&event);
                self.places.keep_prepared(&self.record.commits);
            }
            LogEvent::Rewind { vbucket, to } => self.add_dead_versions(vbucket, to, place),
            LogEvent::Remove { vbucket } => self.add_dead_versions(vbucket, Seqno(0), place),
            _ => {}
        }
        Ok(())
    }

    /// Replaces the record. Changes of prepared transactions that were read already are kept.
    fn take_record(&mut self, mut record: BucketRecord, places: PreparedPlaces) {
        for (transaction, place) in places.iter() {
            let is_here =
                self.places.get(transaction) == Some(place) && !self.unread.contains(&transaction);
            let here = self.record.commits.find_prepared(transaction);
            match here.filter(|_| is_here) {
                Some(here) => {
                    record.commits.apply_event(&TransactionEvent::Prepared(Arc::clone(here)))
                }
                None => {
                    self.unread.insert(transaction);
                }
            }
        }
        (self.record, self.places) = (record, places);
    }

    fn add_dead_versions(&mut self, vbucket: VbucketId, after: Seqno, place: &EventPlace) {
        self.record.commits.remove_lost_commits(vbucket, after);
        if place.group.end > self.covered {
            self.table.add_dead_versions(&[DeadVersions {
                vbucket,
                before: place.group.end,
                after,
            }]);
        }
    }

    fn run(&self, run: Run<'_>) -> Result<()> {
        let mut versions = Vec::new();
        for mutation in run.mutations() {
            let RunMutation { place, seqno, kind, id, document } = mutation?;
            let document = (kind == MutationKind::Upsert).then_some(document);
            versions.push(VersionRef { place: version_place(&place), id, seqno, document });
        }
        self.table.apply(&versions)
    }
}
