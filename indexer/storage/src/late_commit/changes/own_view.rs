//! The own view of a transaction: an epoch's snapshot with the rows of one transaction merged in,
//! as of a *place*, the number of one of its changes.
//!
//! A row of the snapshot is hidden if the transaction has changed its document at or before the
//! place, in whatever slice. The key-versions of a change list all entries that the document has
//! on this node after the change, and these entries are among the transaction's rows. So no entry
//! is on both sides of the merge.
//!
//! The transaction's rows are those at the time when the snapshot was taken: tables in memory, and
//! fragments of spilled pieces. Whether a document was changed is looked up in the transaction's
//! present data: a record of a change may move from memory to disk meanwhile, and the answer does
//! not change.
//!
//! Each step reads one row: the next row of either side, whether it is visible or not. So a step
//! is short, however much the transaction has deleted, and a scan that restarts at the next entry
//! never reads the same rows again.

use std::sync::Arc;

use proto::model::ids::{Epoch, SliceNo, TransactionPlace};
use proto::model::index::IndexInfo;
use proto::plant::{self, Plant};
use proto::rpc::scan::KeyRange;
use proto::value::key;
use proto::{Error, Result};

use crate::late_commit::changes::part::{PartVersion, TransactionChanges, epoch_of};
use crate::read::index_snapshot::ahead_max;
use crate::read::rows::Rows;
use crate::read::snapshot::Snapshot;
use crate::read::source::Source;
use crate::read::visible_rows::VisibleRows;
use crate::tables::table::BlocksFrom;

/// A snapshot of an index with the rows of one transaction merged in.
pub struct TransactionSnapshot {
    base: Arc<dyn Snapshot>,
    part: Arc<TransactionChanges>,
    /// The transaction's rows when the snapshot was taken; all rows up to the place are among
    /// them.
    version: Arc<PartVersion>,
    place: Epoch,
    walk_bytes_max: usize,
    blocks: BlocksFrom,
}

impl TransactionSnapshot {
    /// Creates a snapshot that merges the rows of `part` over `base`, a snapshot of the index. The
    /// part has all changes up to `place`. The cursors of a walk use about `walk_bytes_max` bytes
    /// for blocks of the part's fragments.
    pub fn new(
        base: Arc<dyn Snapshot>,
        part: Arc<TransactionChanges>,
        place: TransactionPlace,
        walk_bytes_max: usize,
    ) -> Self {
        let (version, place) = (part.version(), epoch_of(place));
        Self { base, part, version, place, walk_bytes_max, blocks: BlocksFrom::Anywhere }
    }

    /// Returns the sources of the transaction's rows in some slices.
    fn sources(&self, slices: &[SliceNo], include: bool) -> Vec<Source> {
        let mut sources = Vec::new();
        for slice in slices {
            let spilled = self.version.index.slices.get(slice);
            sources.extend(spilled.map_or(&[][..], |lists| lists.rows(include)).iter().cloned());
            sources.extend(self.version.index.runs.iter().map(|run| Source::of_slice(run, *slice)));
        }
        sources.retain(|source| source.table.stats.oldest <= self.place);
        sources
    }

    /// Returns the total size in bytes of one block from each source.
    fn block_bytes(sources: &[Source]) -> usize {
        sources.iter().map(Source::block_bytes).sum()
    }
}

impl Snapshot for TransactionSnapshot {
    fn info(&self) -> &Arc<IndexInfo> {
        self.base.info()
    }

    fn has(&self, slice: SliceNo) -> bool {
        self.base.has(slice)
    }

    fn without_waiting(&self) -> Arc<dyn Snapshot> {
        Arc::new(Self {
            base: self.base.without_waiting(),
            part: Arc::clone(&self.part),
            version: Arc::clone(&self.version),
            blocks: BlocksFrom::Memory,
            ..*self
        })
    }

    fn walk_bytes(&self, slices: &[SliceNo], include: bool) -> usize {
        let own = Self::block_bytes(&self.sources(slices, include));
        let ahead = ahead_max(self.walk_bytes_max, own) as usize;
        self.base.walk_bytes(slices, include) + own * (1 + ahead)
    }

    fn cursors(&self, slices: &[SliceNo], include: bool) -> usize {
        self.base.cursors(slices, include) + self.sources(slices, include).len()
    }

    fn rows(
        &self,
        slices: &[SliceNo],
        range: &KeyRange,
        reverse: bool,
        include: bool,
    ) -> Result<Box<dyn Rows>> {
        let base = self.base.rows(slices, range, reverse, include)?;
        let sources = self.sources(slices, include);
        let ahead = ahead_max(self.walk_bytes_max, Self::block_bytes(&sources));
        let sources = sources
            .into_iter()
            .map(|source| source.restrict_to_range(range).with_blocks(self.blocks));
        let own = VisibleRows::new(sources, self.place, reverse, include)?.with_ahead_max(ahead);
        Ok(Box::new(TransactionRows {
            base: Side::new(base),
            own: Side::new(Box::new(own)),
            shown: None,
            part: Arc::clone(&self.part),
            place: self.place,
            blocks: self.blocks,
            reverse,
            descending: self.info().spec.keys.iter().map(|part| part.descending).collect(),
        }))
    }

    fn checksum_while(&self, _slice: SliceNo, _wanted: &dyn Fn() -> bool) -> Result<(u64, u64)> {
        Err(Error::internal("a checksum of what only one transaction sees"))
    }
}

/// The merged rows of a snapshot and of a transaction.
struct TransactionRows {
    base: Side,
    own: Side,
    /// The side of the merge that the current row comes from; `None` if there is no current row.
    shown: Option<MergeSide>,
    part: Arc<TransactionChanges>,
    place: Epoch,
    blocks: BlocksFrom,
    reverse: bool,
    /// For each key part, whether it is descending; needed to find the document's id in an entry.
    descending: Vec<bool>,
}

/// The side of the merge that a row comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MergeSide {
    Base,
    Own,
}

/// One side of the merge: the rows of the snapshot, or those of the transaction.
struct Side {
    rows: Box<dyn Rows>,
    /// The entry that is read next; unused at the end of the rows.
    ahead: Vec<u8>,
    is_end: bool,
}

impl Side {
    fn new(rows: Box<dyn Rows>) -> Self {
        let mut side = Self { rows, ahead: Vec::new(), is_end: false };
        side.read_ahead();
        side
    }

    /// Stores the entry that is read next, or notes the end of the rows.
    fn read_ahead(&mut self) {
        self.ahead.clear();
        self.is_end = !self.rows.put_next_entry(&mut self.ahead);
    }

    /// Reads the next row; returns true if it is visible.
    fn read_row(&mut self) -> Result<bool> {
        let found = self.rows.read_entry()?;
        self.read_ahead();
        Ok(found == Some(true))
    }
}

impl TransactionRows {
    /// Returns the side whose row is next; `None` at the end of both sides.
    fn next_side(&self) -> Option<MergeSide> {
        let is_base_first = || match self.reverse {
            true => self.base.ahead > self.own.ahead,
            false => self.base.ahead < self.own.ahead,
        };
        match (self.base.is_end, self.own.is_end) {
            (true, true) => None,
            (false, true) => Some(MergeSide::Base),
            (true, false) => Some(MergeSide::Own),
            (false, false) => Some(if is_base_first() { MergeSide::Base } else { MergeSide::Own }),
        }
    }

    /// Returns true if the transaction has changed the document of the snapshot's current row.
    fn is_hidden(&self) -> Result<bool> {
        let entry = self.base.rows.entry();
        let id = &entry[key::id_offset(entry, &self.descending)?..];
        let is_replaced = self.part.has_changed(id, self.place, self.blocks)?;
        Ok(is_replaced && !plant::is(Plant::ReplacedShown))
    }
}

impl Rows for TransactionRows {
    fn read_entry(&mut self) -> Result<Option<bool>> {
        self.shown = None;
        let Some(side) = self.next_side() else { return Ok(None) };
        let is_shown = match side {
            MergeSide::Base => self.base.read_row()? && !self.is_hidden()?,
            MergeSide::Own => self.own.read_row()?,
        };
        self.shown = is_shown.then_some(side);
        Ok(Some(is_shown))
    }

    fn entry(&self) -> &[u8] {
        match self.shown {
            Some(MergeSide::Base) => self.base.rows.entry(),
            Some(MergeSide::Own) => self.own.rows.entry(),
            None => &[],
        }
    }

    fn include(&self) -> &[u8] {
        match self.shown {
            Some(MergeSide::Base) => self.base.rows.include(),
            Some(MergeSide::Own) => self.own.rows.include(),
            None => &[],
        }
    }

    fn put_next_entry(&self, out: &mut Vec<u8>) -> bool {
        match self.next_side() {
            Some(MergeSide::Base) => out.extend_from_slice(&self.base.ahead),
            Some(MergeSide::Own) => out.extend_from_slice(&self.own.ahead),
            None => return false,
        }
        true
    }
}
