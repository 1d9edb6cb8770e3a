//! Files in parts. The parts of a file are cut one after another, and several are read at once.

use proto::Result;
use proto::model::data_set::FilesRead;

use super::batch::{Batch, RowRules};

/// About the size of the rows of a part: enough that its beginning costs little, and few enough that many fit in memory.
pub const PART_BYTES: usize = 4 << 20;

/// A part of a file.
pub enum Part {
    /// A part that is still to be read, on any thread.
    Unread(Read),
    /// A part that could only be cut by reading it.
    Read(Batch),
}

/// Reads rows of a part: all of them, or some megabytes and what is left. An error names the place in the file.
pub type Read = Box<dyn FnOnce(&RowRules) -> Result<(Batch, Option<Part>)> + Send>;

/// A file that is cut into parts.
pub trait Parts: Send {
    /// The next part; `None` at the end. An error names the place in the file. Nothing is cut after an error.
    fn next_part(&mut self, rules: &RowRules) -> Result<Option<Part>>;
}

impl Part {
    /// Rows of the part, and what is left of it.
    pub fn read(self, rules: &RowRules) -> Result<(Batch, Option<Self>)> {
        let (mut batch, rest) = match self {
            Self::Unread(read) => read(rules)?,
            Self::Read(batch) => (batch, None),
        };
        batch.shrink();
        Ok((batch, rest))
    }
}

/// Rows of a file that are read one after another.
pub trait Rows: Send {
    /// Reads the next row into a batch; false at the end. An error names the place in the file.
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
