//! Adds files of documents that are not in the log ([`crate::table`], `sorted`), for loads of
//! large data sets.
//!
//! For each file the log gets an empty group, which reserves the place of the documents in the
//! order of events: after all earlier events, and before all later ones. The documents are valid
//! once the checkpoint names the file as a fragment. A crash before that leaves the empty group,
//! and a file that the next opening removes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use proto::Result;
use proto::lock::lock;
use proto::model::ids::VbucketId;

use super::bucket_store::BucketStore;
use crate::document_store::{AddSorted, DocumentRef};
use crate::table::SortedRows;

/// A file of documents that was written and not added to its bucket. The file is removed if this
/// value is dropped before.
struct TemporaryDocuments {
    bucket: Arc<BucketStore>,
    rows: Option<SortedRows>,
}

impl Drop for TemporaryDocuments {
    fn drop(&mut self) {
        if let Some(rows) = &self.rows {
            self.bucket.table.discard([rows.file()]);
        }
    }
}

impl BucketStore {
    /// Writes sorted documents to a file. Returns the function that adds the file to the bucket.
    pub fn write_sorted<'d>(
        self: &Arc<Self>,
        documents: &mut dyn ExactSizeIterator<Item = DocumentRef<'d>>,
    ) -> Result<AddSorted> {
        // A merge would rewrite what the next pieces are merged with again.
        self.is_loading.store(true, Ordering::Relaxed);
        let rows = self.table.write_sorted(documents)?;
        let mut written = TemporaryDocuments { bucket: Arc::clone(self), rows };
        Ok(Box::new(move || {
            let TemporaryDocuments { bucket, rows } = &mut written;
            if rows.is_some() { bucket.add_sorted(rows) } else { Ok(()) }
        }))
    }

    /// Ends a load of documents that are not in the log, so that merges run again.
    pub fn end_load(&self) {
        self.is_loading.store(false, Ordering::Relaxed);
    }

    /// Adds a file of documents to the table. Sets `rows` to `None` once the table is responsible
    /// for removing the file after a failure.
    fn add_sorted(&self, rows: &mut Option<SortedRows>) -> Result<()> {
        let _one_at_a_time = lock(&self.flushing);
        let mut this = self.changes()?;
        // Fragments come before all that is in memory.
        self.flush_now()?;
        let place = self.change(&mut this, None, |group| group.documents(VbucketId(0), &[]))?;
        self.table.record_reached(place.end);
        self.end_change(&mut this);
        let shown = self.shown_state()?;
        let Some(rows) = rows.take() else { return Ok(()) };
        let change = self.table.prepare_sorted(rows, place.start, place.end)?;
        change.install(|table| self.write_table(Some(shown), table))?;
        drop(this);
        self.release()
    }
}
