//! Writer of column groups: writes rows into one new fragment per group, in one pass.
//!
//! Every fragment of a slice's entries has complete rows: entry, epoch, tombstone flag. The groups
//! differ only in the value of a row. The group of the entries leaves the value empty. The group
//! of the included values stores the value together with entry and epoch, and has the tombstones
//! too. So each column has its whole history in one chain of fragments, and that chain
//!
//! - is read alone: a scan reads the chain of the entries or, if it wants included values, the
//!   chain of the values, and never joins the two;
//! - is compacted alone: the chain decides which versions are dropped and which epochs are rounded
//!   down, whatever the state of the other chain;
//! - moves between groups without touching the other chain.
//!
//! The price is that keys and ids are stored twice if the included values are in a separate group.
//! Fragments of values alone would have to name entry and epoch of each value as well, to allow a
//! join.

use std::sync::Arc;

use proto::Result;
use proto::model::ids::{Epoch, SliceNo};

use crate::file_id::FileId;
use crate::fragment::writer::FragmentWriter;
use crate::rows::block::Block;
use crate::rows::block_index::BlockIndex;
use crate::rows::columns::Columns;
use crate::rows::row::RowVersion;
use crate::rows::sinks::RowSink;
use crate::rows::stats::TableStats;
use crate::rows::table_builder::TableBuilder;
use crate::tables::table::Table;

/// Writer of rows into several new fragments, one for each column group.
#[derive(Debug, Default)]
pub struct GroupWriter {
    parts: Vec<GroupDraft>,
}

/// A new fragment of one column group, in progress.
#[derive(Debug)]
struct GroupDraft {
    columns: Columns,
    file: FileId,
    out: TableBuilder<FragmentWriter>,
}

/// The durability that new fragments need: whether they must survive a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The fragments are synced, since a manifest may name them later.
    Synced,
    /// The fragments are not synced, since the next start deletes them.
    UntilRestart,
}

/// The new fragment of a column group: its file, its columns, and the finished or suspended
/// fragment; `None` if the group has no rows.
pub type GroupFragment<T> = (FileId, Columns, Option<T>);

/// A fragment whose rows are durable but get their epoch later, all the same one.
#[derive(Debug)]
pub struct SuspendedFragment {
    writer: FragmentWriter,
    stats: TableStats,
    index: BlockIndex,
}

impl SuspendedFragment {
    /// Gives all rows their epoch and finishes the fragment.
    pub fn stamp(self, epoch: Epoch) -> Result<Table> {
        let Self { writer, stats, index } = self;
        Ok(Table::from_fragment(writer.finish_stamped(epoch, stats, index)?))
    }
}

impl GroupWriter {
    /// Adds a fragment with these columns, in the file `file`.
    pub fn add(&mut self, columns: Columns, file: FileId, out: TableBuilder<FragmentWriter>) {
        self.parts.push(GroupDraft { columns, file, out });
    }

    /// Returns the files of all fragments.
    pub fn files(&self) -> Vec<FileId> {
        self.parts.iter().map(|part| part.file).collect()
    }

    /// Puts all further blocks into the block cache too.
    pub fn cache_new_blocks(&mut self) {
        self.parts.iter_mut().for_each(|part| part.out.sink_mut().cache_new_blocks());
    }

    /// Returns the number of bytes of all blocks so far.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.out.bytes()).sum()
    }

    /// Writes the remaining rows, and syncs the files if they must survive a crash.
    pub fn finish(self, lasting: Durability) -> Result<Vec<GroupFragment<Table>>> {
        self.end_fragments(|writer, stats, index| {
            let unsynced = writer.finish_unsynced(stats, index)?;
            let open = match lasting {
                Durability::Synced => unsynced.sync()?,
                Durability::UntilRestart => unsynced.open(),
            };
            Ok(Table::from_fragment(open))
        })
    }

    /// Writes all rows durably, without finishing the fragments: the epoch of their rows is not
    /// known yet.
    pub fn suspend(self) -> Result<Vec<GroupFragment<SuspendedFragment>>> {
        self.end_fragments(|mut writer, stats, index| {
            writer.sync_blocks()?;
            Ok(SuspendedFragment { writer, stats, index })
        })
    }

    /// Ends each fragment with the function `each`.
    fn end_fragments<T>(
        self,
        each: impl Fn(FragmentWriter, TableStats, BlockIndex) -> Result<T>,
    ) -> Result<Vec<GroupFragment<T>>> {
        let end = |GroupDraft { columns, file, out }| {
            let parts = out.finish_parts()?;
            let ended =
                parts.map(|(writer, stats, index)| each(writer, stats, index)).transpose()?;
            Ok((file, columns, ended))
        };
        self.parts.into_iter().map(end).collect()
    }
}

impl RowSink for GroupWriter {
    #[inline]
    fn push(&mut self, row: &RowVersion<'_>) -> Result<()> {
        for part in &mut self.parts {
            match part.columns == Columns::ENTRY {
                true => part.out.push(&RowVersion { value: &[], ..*row })?,
                false => part.out.push(row)?,
            }
        }
        Ok(())
    }

    /// Returns true if complete blocks of other tables can be copied. A group of entries alone
    /// cannot copy them, because blocks contain values.
    fn takes_blocks(&self) -> bool {
        matches!(&self.parts[..], [only] if only.columns != Columns::ENTRY)
    }

    fn push_block(&mut self, slice: SliceNo, block: &Arc<Block>) -> Result<()> {
        self.parts.iter_mut().try_for_each(|part| part.out.push_block(slice, block))
    }
}
