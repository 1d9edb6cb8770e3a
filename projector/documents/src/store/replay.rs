//! From the change log to the table: what the events of the log are there.

use proto::Result;
use proto::model::commits::TransactionEvent;
use proto::model::ids::{Seqno, VbucketId};
use proto::plant::{self, Plant};
use proto::rpc::mutation::MutationKind;
use storage::log::Lsn;

use crate::change_log::{EventPlace, LogEvent, MutationPlace, Run, RunMutation};
use crate::document_store::StoredDocument;
use crate::mutation::Mutation;
use crate::record::BucketRecord;
use crate::table::{DeadVersions, DocumentTable, VersionRef};

/// The place of a mutation in the order of all versions.
pub(super) fn version_place(place: &MutationPlace) -> u64 {
    place.item + u64::from(place.offset)
}

/// A mutation as a version at a place.
pub(super) fn version(mutation: &Mutation, place: u64) -> VersionRef<'_> {
    let is_upsert = mutation.kind == MutationKind::Upsert;
    VersionRef {
        place,
        id: &mutation.id,
        seqno: mutation.seqno,
        document: is_upsert.then_some(&mutation.document[..]),
    }
}

/// The versions of copied documents whose item begins at a place. An item is longer than it has documents.
pub(super) fn copied(documents: &[StoredDocument], item: Lsn) -> Vec<VersionRef<'_>> {
    let mut versions = Vec::with_capacity(documents.len());
    for (StoredDocument { id, seqno, document }, place) in documents.iter().zip(item + 1..) {
        versions.push(VersionRef { place, id, seqno: *seqno, document: Some(document) });
    }
    versions
}

/// The replay of the groups behind a checkpoint.
pub(super) struct Replay<'a> {
    pub(super) table: &'a DocumentTable,
    /// The table has all versions before this place.
    pub(super) covered: u64,
    pub(super) record: BucketRecord,
    /// The number of events so far.
    pub(super) events: u64,
}

impl Replay<'_> {
    pub(super) fn event(&mut self, event: LogEvent<'_>, place: &EventPlace) -> Result<()> {
        let is_known = place.item < self.covered;
        self.events += 1;
        match event {
            LogEvent::Record(record) => self.record = *record,
            LogEvent::Run(run) if !is_known => self.run(run)?,
            LogEvent::Documents { documents, .. } if !is_known => {
                self.table.apply(&copied(&documents, place.item))?;
            }
            LogEvent::Transaction(TransactionEvent::Prepared(_))
                if plant::is(Plant::PreparedForgotten) => {}
            LogEvent::Transaction(event) => self.record.commits.add(&event),
            LogEvent::Rewind { vbucket, to } => self.kill(vbucket, to, place),
            LogEvent::Remove { vbucket } => self.kill(vbucket, Seqno(0), place),
            _ => {}
        }
        Ok(())
    }

    fn kill(&mut self, vbucket: VbucketId, after: Seqno, place: &EventPlace) {
        self.record.commits.go_back(vbucket, after);
        if place.group.end > self.covered {
            self.table.kill(&[DeadVersions { vbucket, before: place.group.end, after }]);
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
