//! Changes of a bucket that are made in one step: each is logged and then added to the table,
//! before any other change begins.

use std::sync::{Arc, MutexGuard};

use proto::lock::lock;
use proto::model::ids::{Seqno, VbucketId};
use proto::plant::{self, Plant};
use proto::{Error, Result};
use storage::log::RECORD_OVERHEAD_BYTES;

use super::bucket_store::{BucketStore, Changes, check_not_broken};
use super::replay::copied_versions;
use crate::change_log::{GroupBuilder, GroupPlace, VbucketRange};
use crate::document_store::{LogExtent, StoredDocument};
use crate::mutation::Mutation;
use crate::record::BucketRecord;
use crate::rules::{check_empty, check_rewind, documents_before};
use crate::table::DeadVersions;

/// The size in bytes of one read of the log.
const PIECE_BYTES: usize = 1 << 20;

impl BucketStore {
    /// Locks the log for a change in one step. An error if a batch is logged and not yet in the
    /// table, or if an earlier change has failed between its steps.
    pub(super) fn changes(&self) -> Result<MutexGuard<'_, Changes>> {
        let this = lock(&self.changes);
        let shown = lock(&self.shown);
        check_not_broken(this.is_broken || shown.is_broken)?;
        match this.batches == shown.batches {
            true => {
                drop(shown);
                Ok(this)
            }
            false => Err(Error::internal("a batch of the bucket is in the log and not shown yet")),
        }
    }

    /// Ends a change in one step, after the change was added to the table.
    pub(super) fn end_change(&self, this: &mut Changes) {
        let mut shown = lock(&self.shown);
        (shown.state, shown.record) = (self.log.state(), this.record.clone());
        shown.places = this.places.clone();
        this.is_broken = false;
    }

    /// Replaces the record of the bucket.
    pub fn put_record(&self, record: &BucketRecord) -> Result<()> {
        let mut this = self.changes()?;
        let place = self.change(&mut this, Some(record), |_| {})?;
        self.table.record_reached(place.end);
        self.end_change(&mut this);
        Ok(())
    }

    /// Logs a change without mutations, and returns its place in the log. The caller then applies
    /// the change to the table.
    pub(super) fn change(
        &self,
        this: &mut MutexGuard<'_, Changes>,
        record: Option<&BucketRecord>,
        build: impl FnOnce(&mut GroupBuilder),
    ) -> Result<GroupPlace> {
        this.group.clear();
        let known = record.map(|record| this.known_places(record));
        if let (Some(record), Some(known)) = (record, &known) {
            this.group.record(record, known)?;
        }
        build(&mut this.group);
        let place = self.append(this)?;
        if let (Some(record), Some(known)) = (record, known) {
            (this.record, this.places) = (record.clone(), known);
        }
        this.note_prepared(&place);
        Ok(place)
    }

    /// Rewinds vbuckets to earlier positions. `record` has the branches after the rewind.
    pub fn rewind(&self, record: &BucketRecord, to: &[(VbucketId, Seqno)]) -> Result<()> {
        let mut this = self.changes()?;
        let mut back = Vec::new();
        for (vbucket, to) in to {
            let extent = self.log.extent(*vbucket);
            check_rewind(*vbucket, extent.purged, *to)?;
            if *to < extent.end {
                self.check_versions(*vbucket, &extent, *to)?;
                back.push((*vbucket, *to));
            }
        }
        let place = self.change(&mut this, Some(record), |group| {
            back.iter().for_each(|(vbucket, to)| group.rewind(*vbucket, *to));
        })?;
        back.iter()
            .for_each(|(vbucket, to)| this.record.commits.remove_lost_commits(*vbucket, *to));
        let dead = |(vbucket, after): &(VbucketId, Seqno)| DeadVersions {
            vbucket: *vbucket,
            before: place.end,
            after: *after,
        };
        if !plant::is(Plant::RewindKeepsDocuments) {
            self.table.add_dead_versions(&back.iter().map(dead).collect::<Vec<_>>());
        }
        self.table.record_reached(place.end);
        self.end_change(&mut this);
        Ok(())
    }

    /// Returns an error if the documents at an earlier position can no longer be determined,
    /// because the log does not reach back far enough. A vbucket that was copied by its documents
    /// may never have had the versions before its purge point.
    fn check_versions(&self, vbucket: VbucketId, extent: &LogExtent, to: Seqno) -> Result<()> {
        if extent.purged.0 == 0 || to.0 == 0 {
            return Ok(());
        }
        let beyond = self.mutations(VbucketRange { vbucket, after: to, to: extent.end });
        let before = self.mutations(VbucketRange { vbucket, after: extent.purged, to });
        documents_before(beyond, before, vbucket, extent.purged).map(|_| ())
    }

    /// Returns the mutations of a range, which are read from the log in pieces of limited size.
    fn mutations(&self, range: VbucketRange) -> impl Iterator<Item = Result<Arc<Mutation>>> {
        let mut next = range;
        let mut piece = Vec::new().into_iter();
        std::iter::from_fn(move || {
            if let Some(mutation) = piece.next() {
                return Some(Ok(mutation));
            }
            match self.log.read(next, PIECE_BYTES) {
                Ok(found) => {
                    next.after = found.last()?.seqno;
                    piece = found.into_iter();
                    piece.next().map(Ok)
                }
                Err(error) => {
                    next.after = next.to;
                    Some(Err(error))
                }
            }
        })
    }

    /// Purges the mutations of some vbuckets up to these seqnos. All mutations of a vbucket may
    /// be purged, since the checkpoint stores its end. So a vbucket that does not change retains
    /// no segment of the log.
    pub fn purge(&self, to: &[(VbucketId, Seqno)]) -> Result<()> {
        let mut this = self.changes()?;
        let points: Vec<(VbucketId, Seqno)> = to
            .iter()
            .filter_map(|(vbucket, to)| {
                let extent = self.log.extent(*vbucket);
                let to = (*to).min(extent.end);
                (to > extent.purged).then_some((*vbucket, to))
            })
            .collect();
        if !points.is_empty() {
            let place = self.change(&mut this, None, |group| group.purge(&points))?;
            self.table.record_reached(place.end);
            self.end_change(&mut this);
        }
        Ok(())
    }

    /// Begins the log of a vbucket without data after a purge point, and stores the record.
    pub fn begin_purged(
        &self,
        record: &BucketRecord,
        vbucket: VbucketId,
        purged: Seqno,
    ) -> Result<()> {
        let mut this = self.changes()?;
        check_empty(vbucket, &self.log.extent(vbucket))?;
        let place = self.change(&mut this, Some(record), |group| group.begin(vbucket, purged))?;
        self.table.record_reached(place.end);
        self.end_change(&mut this);
        Ok(())
    }

    /// Stores documents of a vbucket that is being copied.
    pub fn put_documents(&self, documents: &[StoredDocument]) -> Result<()> {
        let mut this = self.changes()?;
        let Some(first) = documents.first() else { return Ok(()) };
        let vbuckets = this.record.info.vbuckets;
        let vbucket = proto::model::ids::vbucket_of(&first.id, vbuckets);
        let place = self.change(&mut this, None, |group| group.documents(vbucket, documents))?;
        // A copied document is in the log until the checkpoint covers it, so it has a place like any other version.
        self.table.apply(&copied_versions(documents, place.start + RECORD_OVERHEAD_BYTES))?;
        self.table.record_reached(place.end);
        self.end_change(&mut this);
        Ok(())
    }

    /// Removes all data of a vbucket, and its branches.
    pub fn remove(&self, record: &BucketRecord, vbucket: VbucketId) -> Result<()> {
        let mut this = self.changes()?;
        let place = self.change(&mut this, Some(record), |group| group.remove(vbucket))?;
        this.record.commits.remove_lost_commits(vbucket, Seqno(0));
        self.table.add_dead_versions(&[DeadVersions {
            vbucket,
            before: place.end,
            after: Seqno(0),
        }]);
        self.end_change(&mut this);
        Ok(())
    }
}
