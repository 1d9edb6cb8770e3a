//! The own view of a transaction: an epoch's snapshot with the rows of one transaction merged in, as of a place.
//!
//! A row of the snapshot is hidden if the transaction has changed its document at or before the place, in whatever slice: the key-versions of a
//! change say all entries that the document has on this node from then on, and these are the transaction's own rows. So no entry
//! is on both sides of the merge.
//!
//! The merge looks one row ahead on each side. A look that finds a row of the snapshot hidden, or an own row deleted, ends there:
//! a look is short, however much the transaction has deleted.

use std::cmp::Ordering;
use std::sync::Arc;

use proto::model::ids::{Epoch, SliceNo, TransactionPlace};
use proto::model::index::IndexInfo;
use proto::plant::{self, Plant};
use proto::rpc::rows::RowBlockBuilder;
use proto::rpc::scan::KeyRange;
use proto::value::key;
use proto::{Error, Result};

use crate::late_commit::part::{ChangedDocuments, OwnPart, epoch_of};
use crate::read::rows::{Bounds, Rows, Walked};
use crate::read::snapshot::Snapshot;
use crate::read::source::Source;
use crate::read::visible_rows::VisibleRows;
use crate::tables::table::Table;

/// A snapshot with a transaction's rows.
pub struct OwnSnapshot {
    base: Arc<dyn Snapshot>,
    part: Arc<OwnPart>,
    /// The runs when the snapshot was taken: they have all rows up to the place.
    runs: Vec<Arc<Table>>,
    place: Epoch,
}

impl OwnSnapshot {
    /// Merges the rows of a part, which has all changes up to the place, over a snapshot of its index.
    pub fn new(base: Arc<dyn Snapshot>, part: Arc<OwnPart>, place: TransactionPlace) -> Self {
        let runs = part.runs();
        Self { base, part, runs, place: epoch_of(place) }
    }
}

impl Snapshot for OwnSnapshot {
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
            runs: self.runs.clone(),
            place: self.place,
        })
    }

    fn walk_bytes(&self, slices: &[SliceNo], include: bool) -> usize {
        // The transaction's blocks are in memory anyway.
        self.base.walk_bytes(slices, include)
    }

    fn cursors(&self, slices: &[SliceNo], include: bool) -> usize {
        self.base.cursors(slices, include) + slices.len() * self.runs.len()
    }

    fn rows(
        &self,
        slices: &[SliceNo],
        range: &KeyRange,
        reverse: bool,
        include: bool,
    ) -> Result<Box<dyn Rows>> {
        let base = self.base.rows(slices, range, reverse, include)?;
        let runs = || self.runs.iter().filter(|run| run.stats.oldest <= self.place);
        let sources = slices.iter().flat_map(|slice| runs().map(|run| Source::whole(run, *slice)));
        let sources = sources.map(|source| source.clip(range));
        let merge = OwnMerge {
            base: Side::new(base),
            own: Side::new(Box::new(VisibleRows::new(sources, self.place, reverse, include)?)),
            shown: None,
            place: self.place,
            reverse,
            descending: self.info().spec.keys.iter().map(|part| part.descending).collect(),
        };
        Ok(Box::new(OwnRows { part: Arc::clone(&self.part), merge }))
    }

    fn checksum_while(&self, _slice: SliceNo, _wanted: &dyn Fn() -> bool) -> Result<(u64, u64)> {
        Err(Error::internal("a checksum of what only one transaction sees"))
    }
}

/// The rows of an own view.
struct OwnRows {
    part: Arc<OwnPart>,
    merge: OwnMerge,
}

/// The rows of the snapshot and those of the transaction, merged.
struct OwnMerge {
    base: Side,
    own: Side,
    /// The side whose row was found last.
    shown: Option<Shown>,
    place: Epoch,
    reverse: bool,
    /// The directions of the key parts, behind which an entry has its document's id.
    descending: Vec<bool>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Base,
    Own,
}

/// One side of the merge.
struct Side {
    rows: Box<dyn Rows>,
    at: At,
}

/// The place of a side.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    /// Before the next look.
    Between,
    /// On a row that takes part in the merge.
    Row,
    /// Behind the last row.
    End,
}

impl Side {
    fn new(rows: Box<dyn Rows>) -> Self {
        Self { rows, at: At::Between }
    }

    /// Looks at the next row unless the side is on one; false if the row that was looked at does not count.
    fn look(&mut self, counts: impl FnOnce(&[u8]) -> Result<bool>) -> Result<bool> {
        if self.at != At::Between {
            return Ok(true);
        }
        self.at = match self.rows.look()? {
            None => At::End,
            Some(true) if counts(self.rows.entry())? => At::Row,
            Some(_) => return Ok(false),
        };
        Ok(true)
    }

    /// The entry that comes next; `None` behind the last.
    fn ahead(&self, is_shown: bool) -> Option<Vec<u8>> {
        let mut entry = Vec::new();
        match self.at {
            At::End => None,
            At::Row if !is_shown => Some(self.rows.entry().to_vec()),
            At::Row | At::Between => self.rows.put_ahead(&mut entry).then_some(entry),
        }
    }
}

impl OwnMerge {
    fn look(&mut self, changed: &ChangedDocuments<'_>) -> Result<Option<bool>> {
        match self.shown.take() {
            Some(Shown::Base) => self.base.at = At::Between,
            Some(Shown::Own) => self.own.at = At::Between,
            None => {}
        }
        let (descending, place) = (&self.descending, self.place);
        let is_unchanged = |entry: &[u8]| {
            let id = &entry[key::id_offset(entry, descending)?..];
            Ok(!changed.has(id, place) || plant::is(Plant::ReplacedShown))
        };
        if !self.base.look(is_unchanged)? || !self.own.look(|_| Ok(true))? {
            return Ok(Some(false));
        }
        self.shown = match (self.base.at, self.own.at) {
            (At::Row, At::Row) => {
                let order = self.base.rows.entry().cmp(self.own.rows.entry());
                Some(if self.is_first(order) { Shown::Base } else { Shown::Own })
            }
            (At::Row, _) => Some(Shown::Base),
            (_, At::Row) => Some(Shown::Own),
            _ => None,
        };
        Ok(self.shown.map(|_| true))
    }

    /// True if a row of the snapshot comes before an own one.
    fn is_first(&self, order: Ordering) -> bool {
        if self.reverse { order.is_gt() } else { order.is_lt() }
    }

    fn entry(&self) -> &[u8] {
        match self.shown {
            Some(Shown::Base) => self.base.rows.entry(),
            Some(Shown::Own) => self.own.rows.entry(),
            None => &[],
        }
    }

    fn include(&self) -> &[u8] {
        match self.shown {
            Some(Shown::Base) => self.base.rows.include(),
            Some(Shown::Own) => self.own.rows.include(),
            None => &[],
        }
    }

    fn put_ahead(&self, out: &mut Vec<u8>) -> bool {
        let base = self.base.ahead(self.shown == Some(Shown::Base));
        let own = self.own.ahead(self.shown == Some(Shown::Own));
        let next = match (base, own) {
            (Some(base), Some(own)) => Some(if self.is_first(base.cmp(&own)) { base } else { own }),
            (base, own) => base.or(own),
        };
        next.inspect(|next| out.extend_from_slice(next)).is_some()
    }
}

impl Rows for OwnRows {
    fn look(&mut self) -> Result<Option<bool>> {
        self.merge.look(&self.part.changed())
    }

    fn entry(&self) -> &[u8] {
        self.merge.entry()
    }

    fn include(&self) -> &[u8] {
        self.merge.include()
    }

    fn put_ahead(&self, out: &mut Vec<u8>) -> bool {
        self.merge.put_ahead(out)
    }

    fn pack(&mut self, block: &mut RowBlockBuilder, bounds: Bounds) -> Result<Walked> {
        // One lock for the whole piece.
        let (changed, merge) = (self.part.changed(), &mut self.merge);
        let mut walked = Walked::default();
        while !bounds.are_reached(&walked, block.len()) {
            let Some(shown) = merge.look(&changed)? else { return Ok(walked.to_end()) };
            if shown {
                block.push(merge.entry(), merge.include());
            }
            walked.rows += u64::from(shown);
            walked.looks += 1;
        }
        Ok(walked)
    }

    fn count(&mut self, looks_max: u64) -> Result<Walked> {
        let (changed, merge) = (self.part.changed(), &mut self.merge);
        let mut walked = Walked::default();
        while walked.looks < looks_max {
            let Some(shown) = merge.look(&changed)? else { return Ok(walked.to_end()) };
            walked.rows += u64::from(shown);
            walked.looks += 1;
        }
        Ok(walked)
    }
}
