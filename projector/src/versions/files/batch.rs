//! Rows that were read from a part of a file, and the rules by which they are read.

use proto::model::assignment::VbucketSet;
use proto::model::data_set::FilesRead;
use proto::model::ids::{VbucketId, hash_id};
use proto::value::key::check_id;
use proto::{Error, ErrorCode, Result};

/// The rules by which the rows of a data set's version are read.
#[derive(Clone, Debug)]
pub struct RowRules {
    /// The name of the field or column with the id.
    pub id: String,
    /// The size limit of a document, in bytes.
    pub document_bytes_max: usize,
    /// The number of partitions of the version.
    pub partitions: u16,
    /// The partitions whose rows are kept; rows of other partitions are only counted.
    pub wanted: VbucketSet,
}

/// The rows that were read from a part of a file, in order: the rows of the requested partitions,
/// and the numbers of rows of all partitions.
#[derive(Debug)]
pub struct Batch {
    /// The document of each kept row, followed by its id.
    bytes: Vec<u8>,
    rows: Vec<BatchRow>,
    /// The offset in `bytes` at which the row begins that is being read.
    from: usize,
    /// The number of rows of each partition.
    counts: Vec<u32>,
    read: FilesRead,
    /// The bytes of all rows that were read, including those that are not kept.
    read_bytes: usize,
}

/// A row of a requested partition in a batch.
#[derive(Clone, Copy, Debug)]
pub struct BatchRow {
    from: usize,
    document_bytes: u32,
    id_bytes: u32,
    /// The partition of the row.
    pub partition: VbucketId,
    /// The number of the row among the rows of its partition in this batch, from 1 on.
    pub number: u32,
    /// The hash of the row's id.
    pub hash: u64,
}

impl Batch {
    /// Creates an empty batch, with memory for this many bytes of rows.
    pub fn new(rules: &RowRules, bytes: usize) -> Self {
        let counts = vec![0; usize::from(rules.partitions)];
        let (bytes, rows, read) = (Vec::with_capacity(bytes), Vec::new(), FilesRead::default());
        Self { bytes, rows, from: 0, counts, read, read_bytes: 0 }
    }

    /// Returns the buffer to which the reader appends the document of the row that is being read.
    /// The bytes of a row count only after [`Self::end_row`].
    #[inline]
    pub fn document(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Returns the document of the row that is being read.
    pub fn row(&self) -> &[u8] {
        &self.bytes[self.from..]
    }

    /// Ends the row that is being read, which has this id: counts the row, and keeps it if its
    /// partition is requested.
    #[inline]
    pub fn end_row(&mut self, rules: &RowRules, id: &str) -> Result<()> {
        check_id(id)?;
        let document = &self.bytes[self.from..];
        if document.len() > rules.document_bytes_max {
            return Err(document_too_long(document.len(), rules.document_bytes_max));
        }
        let hash = hash_id(id);
        self.read.add(hash, document);
        self.read_bytes += document.len() + id.len() + size_of::<BatchRow>();
        let partition = VbucketId((hash % u64::from(rules.partitions.max(1))) as u16);
        let number = &mut self.counts[usize::from(partition.0)];
        *number += 1;
        if rules.wanted.contains(partition) {
            let (document_bytes, id_bytes) = (document.len() as u32, id.len() as u32);
            let (from, number) = (self.from, *number);
            self.rows.push(BatchRow { from, document_bytes, id_bytes, partition, number, hash });
            self.bytes.extend_from_slice(id.as_bytes());
        } else {
            self.bytes.truncate(self.from);
        }
        self.from = self.bytes.len();
        Ok(())
    }

    /// Frees memory that the kept rows do not need. Often only few rows belong to the requested
    /// partitions.
    pub fn shrink(&mut self) {
        if self.bytes.len() < self.bytes.capacity() / 2 {
            self.bytes.shrink_to_fit();
        }
        if self.rows.len() < self.rows.capacity() / 2 {
            self.rows.shrink_to_fit();
        }
    }

    /// The kept rows.
    pub fn rows(&self) -> &[BatchRow] {
        &self.rows
    }

    /// The id of a kept row.
    #[inline]
    pub fn id(&self, row: &BatchRow) -> &[u8] {
        let from = row.from + row.document_bytes as usize;
        &self.bytes[from..from + row.id_bytes as usize]
    }

    /// The document of a kept row.
    #[inline]
    pub fn document_of(&self, row: &BatchRow) -> &[u8] {
        &self.bytes[row.from..row.from + row.document_bytes as usize]
    }

    /// The number of rows of each partition.
    pub fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// Returns the summary of all rows that were read, including those that are not kept.
    pub fn read(&self) -> FilesRead {
        self.read
    }

    /// Returns the bytes of all rows, including those of other partitions.
    pub fn read_bytes(&self) -> usize {
        self.read_bytes
    }

    /// Memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let (rows, counts) = (self.rows.capacity(), self.counts.capacity());
        self.bytes.capacity() + rows * size_of::<BatchRow>() + counts * size_of::<u32>()
    }
}

/// The error for a document that is over its limit.
pub fn document_too_long(bytes: usize, bytes_max: usize) -> Error {
    let what = format!("the document has {bytes} bytes; the limit is {bytes_max} bytes");
    Error::new(ErrorCode::OverLimit, what)
}
