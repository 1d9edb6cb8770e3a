//! *Sheets*: blocks of rows that are sorted by id and stored together. Each id occurs once in a
//! sheet.

use std::collections::BTreeMap;

use proto::Result;
use proto::model::data_set::PartitionContent;
use proto::model::ids::{BucketId, Seqno, VbucketId};

use super::files::{Batch, BatchRow};
use crate::source::{AddSorted, DocumentRef, DocumentStore};

/// The rows of some consecutive parts of files, from which a sheet is made.
#[derive(Default)]
pub struct RowBlock {
    batches: Vec<NumberedRows>,
    bytes: usize,
}

/// The rows of one batch. For each partition, also the number of its rows before this batch.
struct NumberedRows {
    batch: Batch,
    before: Vec<u64>,
}

/// The contents (counts and digest) of a stored sheet.
#[derive(Default)]
pub struct SheetContents {
    /// The contents of each partition, without the numbers of rows, which are zero.
    pub partitions: BTreeMap<VbucketId, PartitionContent>,
    /// The hashes of the ids in the sheet, ascending.
    pub hashes: Vec<u64>,
}

/// A row to be sorted: its place in the block, and the first bytes of its id after the prefix
/// that all ids of the block share.
#[derive(Clone, Copy)]
struct Key {
    id_begin: u64,
    batch: u32,
    row: u32,
}

impl RowBlock {
    /// Adds the rows of the next batch; `before` has the number of rows of each partition in all
    /// earlier batches.
    pub fn add(&mut self, batch: Batch, before: Vec<u64>) {
        if batch.rows().is_empty() {
            return;
        }
        self.bytes += batch.memory_bytes() + before.capacity() * size_of::<u64>();
        self.batches.push(NumberedRows { batch, before });
    }

    /// Returns the memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Sorts the rows and writes them to a new file for a bucket. Returns the function that adds
    /// the file to the bucket, and the contents of the rows. If an id occurs in several rows,
    /// only the last row is written.
    pub fn write(
        &self,
        store: &dyn DocumentStore,
        bucket: BucketId,
    ) -> Result<(AddSorted, SheetContents)> {
        let keys = self.sorted();
        let mut contents = SheetContents::default();
        contents.hashes.extend(keys.iter().map(|key| self.row(key).1.hash));
        contents.hashes.sort_unstable();
        let mut counted = keys.iter().map(|key| {
            let (of, row) = self.row(key);
            let document = document(of, row);
            let content = contents.partitions.entry(row.partition).or_default();
            content.add(document.id, document.seqno, document.document);
            document
        });
        let add = store.write_sorted(bucket, &mut counted)?;
        Ok((add, contents))
    }

    fn row(&self, key: &Key) -> (&NumberedRows, &BatchRow) {
        let of = &self.batches[key.batch as usize];
        (of, &of.batch.rows()[key.row as usize])
    }

    /// Returns the last row of each id, sorted by id.
    fn sorted(&self) -> Vec<Key> {
        let common = self.common_bytes();
        let mut keys = Vec::with_capacity(self.rows().count());
        for (batch, numbered) in (0..).zip(&self.batches) {
            for (row, found) in (0..).zip(numbered.batch.rows()) {
                let id_begin = first_bytes(&numbered.batch.id(found)[common..]);
                keys.push(Key { id_begin, batch, row });
            }
        }
        // The sort is stable: rows with one id stay in their order.
        keys.sort_by(|one, other| {
            let ids = || self.id(one).cmp(self.id(other));
            one.id_begin.cmp(&other.id_begin).then_with(ids)
        });
        // Of adjacent rows with one id the first one stays, with the place of the last one.
        keys.dedup_by(|next, last| {
            let is_same = next.id_begin == last.id_begin && self.id(next) == self.id(last);
            if is_same {
                *last = *next;
            }
            is_same
        });
        keys
    }

    fn id(&self, key: &Key) -> &[u8] {
        let (of, row) = self.row(key);
        of.batch.id(row)
    }

    fn rows(&self) -> impl Iterator<Item = (&NumberedRows, &BatchRow)> {
        self.batches.iter().flat_map(|of| of.batch.rows().iter().map(move |row| (of, row)))
    }

    /// Returns the length of the prefix that all ids of the block share.
    fn common_bytes(&self) -> usize {
        let mut ids = self.rows().map(|(of, row)| of.batch.id(row));
        let Some(first) = ids.next() else { return 0 };
        ids.fold(first.len(), |common, id| {
            let same = first.iter().zip(id).take(common).take_while(|(one, other)| one == other);
            same.count()
        })
    }
}

/// Returns the first bytes of a text as a number, so that numbers compare like the texts.
fn first_bytes(text: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let count = text.len().min(8);
    bytes[..count].copy_from_slice(&text[..count]);
    u64::from_be_bytes(bytes)
}

fn document<'s>(of: &'s NumberedRows, row: &BatchRow) -> DocumentRef<'s> {
    let before = of.before.get(usize::from(row.partition.0)).copied().unwrap_or_default();
    // The id was valid text when the row was read. The store refuses an empty id.
    let id = std::str::from_utf8(of.batch.id(row)).unwrap_or_default();
    let seqno = Seqno(before + u64::from(row.number));
    DocumentRef { id, seqno, document: of.batch.document_of(row) }
}
