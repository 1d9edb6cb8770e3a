//! Files in parts. The parts of a file are cut one after another, and several are read in parallel.

use proto::Result;
use proto::model::data_set::FilesRead;

use super::batch::{Batch, RowRules};

/// The approximate size in bytes of the rows of a part: large enough that the cost per part is
/// small, and small enough that many fit in memory.
pub const PART_BYTES: usize = 4 << 20;

/// A part of a file.
pub enum Part {
    /// A part that is still to be read, on any thread.
    Unread(Read),
    /// A part that could only be cut by reading it.
    Read(Batch),
}

/// A function that reads rows of a part: all of them, or some megabytes and the remaining part. An
/// error names the place in the file.
pub type Read = Box<dyn FnOnce(&RowRules) -> Result<(Batch, Option<Part>)> + Send>;

/// A file that is cut into parts.
pub trait Parts: Send {
    /// Returns the next part; `None` at the end. An error names the place in the file; no part
    /// follows an error.
    fn next_part(&mut self, rules: &RowRules) -> Result<Option<Part>>;
}

impl Part {
    /// Reads rows of the part; also returns the part that remains, if any.
    pub fn read(self, rules: &RowRules) -> Result<(Batch, Option<Self>)> {
        let (mut batch, rest) = match self {
            Self::Unread(read) => read(rules)?,
            Self::Read(batch) => (batch, None),
        };
        batch.shrink();
        Ok((batch, rest))
    }
}

/// A file whose rows are read one after another.
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
