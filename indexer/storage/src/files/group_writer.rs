//! Writes rows into one new fragment for each of some column groups, in one pass.
//!
//! Every fragment of a slice's entries has whole rows: entry, epoch, erased or not. What the groups differ
//! in is the value. In the group of the entries alone it is left out; in the group of the included values
//! it stands beside the entry and the epoch to which it belongs, and the erasures stand there too. So
//! each column by itself has its whole history, and its chain of fragments
//!
//! - is read alone: a scan asks the chain of the entries or, if it wants included values, theirs, and
//!   never joins the two;
//! - is compacted alone: what may be dropped, and which epochs may be written smaller, is decided within
//!   the chain, whatever the other one has come to;
//! - moves between groups without touching the other.
//!
//! The price is that keys and ids stand on disk twice where values are kept apart. Fragments of values
//! alone would have to name entry and epoch of each too, to be joined by them.

use std::sync::Arc;

use proto::Result;
use proto::model::ids::SliceNo;

use crate::file_id::FileId;
use crate::fragment::writer::FragmentWriter;
use crate::rows::block::Block;
use crate::rows::columns::Columns;
use crate::rows::row::Version;
use crate::rows::sinks::RowSink;
use crate::rows::table_builder::TableBuilder;
use crate::tables::table::Table;

/// Fragments that are being written.
#[derive(Debug, Default)]
pub struct GroupWriter {
    parts: Vec<Part>,
}

/// The fragment of one group.
#[derive(Debug)]
struct Part {
    columns: Columns,
    file: FileId,
    out: TableBuilder<FragmentWriter>,
}

/// A fragment that was written; `None` if it has no rows.
pub type Finished = (FileId, Columns, Option<Table>);

impl GroupWriter {
    /// A fragment for one more group.
    pub fn add(&mut self, columns: Columns, file: FileId, out: TableBuilder<FragmentWriter>) {
        self.parts.push(Part { columns, file, out });
    }

    /// The files that were begun.
    pub fn files(&self) -> Vec<FileId> {
        self.parts.iter().map(|part| part.file).collect()
    }

    /// Their blocks go to the cache as they are written.
    pub fn set_warm(&mut self) {
        self.parts.iter_mut().for_each(|part| part.out.sink_mut().set_warm());
    }

    /// Bytes of all blocks so far.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.out.bytes()).sum()
    }

    /// Writes what is left, and syncs the files.
    pub fn finish(self) -> Result<Vec<Finished>> {
        let finish = |part: Part| {
            let Part { columns, file, out } = part;
            let Some((writer, stats, index)) = out.finish_parts()? else {
                return Ok((file, columns, None));
            };
            Ok((file, columns, Some(Table::from_fragment(writer.finish(stats, index)?))))
        };
        self.parts.into_iter().map(finish).collect()
    }
}

impl RowSink for GroupWriter {
    #[inline]
    fn push(&mut self, row: &Version<'_>) -> Result<()> {
        for part in &mut self.parts {
            match part.columns == Columns::ENTRY {
                true => part.out.push(&Version { value: &[], ..*row })?,
                false => part.out.push(row)?,
            }
        }
        Ok(())
    }

    /// Not where the columns are divided.
    fn takes_blocks(&self) -> bool {
        matches!(&self.parts[..], [only] if only.columns != Columns::ENTRY)
    }

    fn push_block(&mut self, slice: SliceNo, block: &Arc<Block>) -> Result<()> {
        self.parts.iter_mut().try_for_each(|part| part.out.push_block(slice, block))
    }
}

#[cfg(test)]
#[path = "group_writer_tests.rs"]
mod tests;
