//! Writer of column groups: writes rows into one new fragment per group, in one pass.
//!
//! Every fragment of a slice's entries has whole rows: entry, epoch, tombstone flag. The groups
//! differ in the value. The group of the entries leaves the value out. The group of the included
//! values stores the value beside entry and epoch, and has the tombstones too. So each column has
//! its whole history in one chain of fragments, and that chain
//!
//! - is read alone: a scan reads the chain of the entries or, if it wants included values, the
//!   chain of the values, and never joins the two;
//! - is compacted alone: the chain decides which versions are dropped and which epochs are rounded
//!   down, whatever the state of the other chain;
//! - moves between groups without touching the other chain.
//!
//! The price is that keys and ids are stored twice where values are apart. Fragments of values
//! alone would have to name entry and epoch of each value as well, to allow a join.

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

/// Fragments that are being written.
#[derive(Debug, Default)]
pub struct GroupWriter {
    parts: Vec<GroupPart>,
}

/// The fragment of one group.
#[derive(Debug)]
struct GroupPart {
    columns: Columns,
    file: FileId,
    out: TableBuilder<FragmentWriter>,
}

/// The durability that new fragments need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// The fragments are synced, since a manifest may name them later.
    Synced,
    /// The fragments are not synced, since the next start deletes them.
    UntilRestart,
}

/// The fragment of a group, finished or suspended; `None` if the group has no rows.
pub type GroupFragment<T> = (FileId, Columns, Option<T>);

/// A stamped fragment whose rows are durable but have no epoch yet.
#[derive(Debug)]
pub struct SuspendedFragment {
    writer: FragmentWriter,
    stats: TableStats,
    index: BlockIndex,
}

impl SuspendedFragment {
    /// Finishes the fragment with the epoch of its rows.
    pub fn stamp(self, epoch: Epoch) -> Result<Table> {
        let Self { writer, stats, index } = self;
        Ok(Table::from_fragment(writer.finish_stamped(epoch, stats, index)?))
    }
}

impl GroupWriter {
    /// Adds the fragment `file` for a group.
    pub fn add(&mut self, columns: Columns, file: FileId, out: TableBuilder<FragmentWriter>) {
        self.parts.push(GroupPart { columns, file, out });
    }

    /// Files of all fragments.
    pub fn files(&self) -> Vec<FileId> {
        self.parts.iter().map(|part| part.file).collect()
    }

    /// Puts all further blocks into the block cache.
    pub fn set_warm(&mut self) {
        self.parts.iter_mut().for_each(|part| part.out.sink_mut().set_warm());
    }

    /// The number of bytes of all blocks so far.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.out.bytes()).sum()
    }

    /// Writes the remaining rows, and syncs the files if they must survive a crash.
    pub fn finish(self, lasting: Lifetime) -> Result<Vec<GroupFragment<Table>>> {
        self.end(|writer, stats, index| {
            let unsynced = writer.finish_unsynced(stats, index)?;
            let open = match lasting {
                Lifetime::Synced => unsynced.sync()?,
                Lifetime::UntilRestart => unsynced.open(),
            };
            Ok(Table::from_fragment(open))
        })
    }

    /// Writes all rows durably. The fragments are finished later, with the epoch of their rows.
    pub fn suspend(self) -> Result<Vec<GroupFragment<SuspendedFragment>>> {
        self.end(|mut writer, stats, index| {
            writer.sync_blocks()?;
            Ok(SuspendedFragment { writer, stats, index })
        })
    }

    fn end<T>(
        self,
        each: impl Fn(FragmentWriter, TableStats, BlockIndex) -> Result<T>,
    ) -> Result<Vec<GroupFragment<T>>> {
        let end = |GroupPart { columns, file, out }| {
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

    /// Returns true if whole blocks can be copied. Blocks contain values, so a group of entries
    /// alone cannot copy them.
    fn takes_blocks(&self) -> bool {
        matches!(&self.parts[..], [only] if only.columns != Columns::ENTRY)
    }

    fn push_block(&mut self, slice: SliceNo, block: &Arc<Block>) -> Result<()> {
        self.parts.iter_mut().try_for_each(|part| part.out.push_block(slice, block))
    }
}
