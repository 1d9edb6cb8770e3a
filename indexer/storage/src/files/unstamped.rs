//! New fragments whose rows are durable and get their epoch later (stamped fragments, see
//! `fragment`).

use std::sync::Arc;

use proto::Result;
use proto::model::ids::Epoch;

use crate::file_id::FileId;
use crate::files::data_files::{DataFiles, NewFragment};
use crate::files::group_writer::{GroupWriter, SuspendedFragment};
use crate::fragment::compression::Compression;
use crate::fragment::writer::FragmentOptions;
use crate::rows::columns::Columns;

impl DataFiles {
    /// Writes new fragments whose rows get their epoch later. `filter_rows` requests a filter over
    /// about that many keys.
    pub fn write_unstamped(
        self: &Arc<Self>,
        groups: &[Columns],
        (compression, filter_rows): (Compression, Option<u64>),
        rows: impl FnOnce(&mut GroupWriter) -> Result<()>,
    ) -> Result<Vec<UnstampedFragment>> {
        let is_stamped = true;
        let options =
            FragmentOptions { compression, filter_rows, is_stamped, ..FragmentOptions::default() };
        let written = self.write_groups(groups, &options, rows, GroupWriter::suspend)?;
        let new = |(file, columns, rows)| UnstampedFragment {
            files: Arc::clone(self),
            columns,
            file,
            rows: Some(rows),
        };
        Ok(written.into_iter().map(new).collect())
    }
}

/// A new fragment whose rows have no epoch yet. Its file is deleted when this value is dropped.
pub struct UnstampedFragment {
    files: Arc<DataFiles>,
    columns: Columns,
    file: FileId,
    /// The fragment without its epoch; `None` once another value owns the file.
    rows: Option<SuspendedFragment>,
}

impl UnstampedFragment {
    /// Gives all rows their epoch, durably; the name of the file is not durable yet. Returns
    /// `None` if the group has no rows. After an error the file is deleted.
    pub fn stamp(mut self, epoch: Epoch) -> Result<Option<NewFragment>> {
        let (file, columns) = (self.file, self.columns);
        let Some(rows) = self.rows.take() else { return Ok(None) };
        let stamped = rows.stamp(epoch).inspect_err(|_| drop(self.files.delete(file)))?;
        Ok(Some(NewFragment { file, columns, table: Arc::new(stamped) }))
    }
}

impl Drop for UnstampedFragment {
    fn drop(&mut self) {
        let Some(rows) = self.rows.take() else { return };
        // The writer has the file open.
        drop(rows);
        if let Err(error) = self.files.delete(self.file) {
            // The next start finds the file.
            tracing::warn!(%error, "deleting a file of an open transaction failed");
        }
    }
}
