//! New fragments whose rows are durable and have no epoch yet (`fragment`: stamped fragments).

use std::sync::Arc;

use proto::Result;
use proto::model::ids::Epoch;

use crate::file_id::FileId;
use crate::files::data_files::{DataFiles, NewFragment};
use crate::files::group_writer::Suspended;
use crate::rows::columns::Columns;

/// A new fragment without an epoch. Its file is deleted when this value is dropped.
pub struct UnstampedFragment {
    files: Arc<DataFiles>,
    columns: Columns,
    file: FileId,
    /// `None` once the file has another owner.
    rows: Option<Suspended>,
}

impl UnstampedFragment {
    /// The fragment of a group in a file.
    pub fn new(
        files: &Arc<DataFiles>,
        (file, columns): (FileId, Columns),
        rows: Suspended,
    ) -> Self {
        Self { files: Arc::clone(files), columns, file, rows: Some(rows) }
    }

    /// Gives all rows an epoch, durably. After an error the file is gone. The name of the file is not durable yet.
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
