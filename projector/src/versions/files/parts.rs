//! The interface of files that are cut into parts, so that several parts can be read in parallel.

use proto::Result;
use proto::model::data_set::FilesRead;

use super::batch::{Batch, RowRules};

/// The approximate size in bytes of the rows of a part: large enough that the cost per part is
/// small, and small enough that many fit in memory.
pub const PART_BYTES: usize = 4 << 20;

/// A part of a file, already read or not.
pub enum Part {
    /// A part that is still to be read; any thread may read it.
    Unread(Read),
    /// A part whose end could only be found by reading it, with its rows.
    Read(Batch),
}

/// A function that reads the rows of a part: all of them, or some megabytes and the rest of the
/// part. An error names the place in the file.
pub type Read = Box<dyn FnOnce(&RowRules) -> Result<(Batch, Option<Part>)> + Send>;

/// A file that is cut into parts, one after another.
pub trait Parts: Send {
    /// Returns the next part; `None` at the end. An error names the place in the file; no part
    /// follows an error.
    fn next_part(&mut self, rules: &RowRules) -> Result<Option<Part>>;
}

impl Part {
    /// Reads rows of the part. Also returns the rest of the part, if there is any.
    pub fn read(self, rules: &RowRules) -> Result<(Batch, Option<Self>)> {
        let (mut batch, rest) = match self {
            Self::Unread(read) => read(rules)?,
            Self::Read(batch) => (batch, None),
        };
        batch.shrink();
        Ok((batch, rest))
    }
}

/// A file that is read row by row, because the end of a row is known only after reading it.
pub trait Rows: Send {
    /// Reads the next row into a batch; returns false at the end. An error names the place in the
    /// file.
    fn next_row(&mut self, rules: &RowRules, batch: &mut Batch) -> Result<bool>;
}

impl<R: Rows> Parts for R {
    fn next_part(&mut self, rules: &RowRules) -> Result<Option<Part>> {
        let mut batch = Batch::new(rules, PART_BYTES);
        let mut looked_at = 0;
        while looked_at < PART_BYTES && self.next_row(rules, &mut batch)? {
            looked_at = batch.read_bytes();
        }
        Ok((batch.read() != FilesRead::default()).then_some(Part::Read(batch)))
    }
}
