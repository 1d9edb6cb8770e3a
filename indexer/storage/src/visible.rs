//! What readers see of an index, and its state at one epoch.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::model::ids::{Epoch, SliceNo};
use proto::model::index::IndexInfo;
use proto::rpc::scan::KeyRange;
use proto::{Error, ErrorCode, Result};

use super::cursor::{AHEAD_BLOCKS_MAX, Source};
use super::load_state::LoadState;
use super::manifest::{Columns, FileId, IndexManifest, ListItem};
use super::merge::Visible as VisibleRows;
use super::table::Table;
use super::versions::Protected;
use super::{Rows, Snapshot};

/// What readers see of an index.
#[derive(Clone, Default)]
pub struct Visible {
    /// In memory, the oldest first.
    pub runs: Vec<Arc<Table>>,
    /// The slices that are here, with their fragments.
    pub slices: BTreeMap<SliceNo, Arc<Fragments>>,
    /// The oldest epoch that can be answered; `None` while the index is being built.
    pub floor: Option<Epoch>,
    /// Below the floor: the epochs to which it can go back all the same.
    pub points: Vec<Epoch>,
    /// Of slices that came from another node: to what of the above each is restricted.
    pub arrived: BTreeMap<SliceNo, Protected>,
}

/// The fragments of a slice, the oldest first.
#[derive(Clone, Debug, Default)]
pub struct Fragments {
    /// Of entries.
    pub forward: Vec<Source>,
    /// Of entries with their included values, where they are not the same.
    pub included: Option<Vec<Source>>,
    /// Of the back index.
    pub back: Vec<Source>,
}

impl Fragments {
    /// What to read for the entries, and for their included values if they are asked for: one chain or
    /// the other (see [`super::group_writer`]).
    pub fn rows(&self, include: bool) -> &[Source] {
        match &self.included {
            Some(included) if include => included,
            _ => &self.forward,
        }
    }

    /// How many there are in the longest list.
    pub fn longest(&self) -> usize {
        self.rows(false).len().max(self.rows(true).len()).max(self.back.len())
    }

    /// All of them, each once.
    pub fn all(&self) -> impl Iterator<Item = &Source> {
        let is_forward = |source: &Source| {
            self.forward.iter().any(|other| Arc::ptr_eq(&other.table, &source.table))
        };
        let apart = self.included.iter().flatten().filter(move |source| !is_forward(source));
        self.forward.iter().chain(apart).chain(&self.back)
    }
}

impl Visible {
    /// What a manifest says, with those of its fragments that are open.
    pub fn of(
        manifest: &IndexManifest,
        tables: &BTreeMap<FileId, Arc<Table>>,
        load: LoadState,
    ) -> Result<Self> {
        Ok(Self {
            runs: Vec::new(),
            slices: fragments(manifest, tables, load)?,
            floor: manifest.floor,
            points: manifest.points.clone(),
            arrived: manifest.arrived.clone(),
        })
    }

    /// The oldest epoch at which a slice can be answered; `None` while the index is being built.
    pub fn floor_of(&self, slice: SliceNo) -> Option<Epoch> {
        let arrived = self.arrived.get(&slice).map_or(Epoch(0), |reach| reach.horizon);
        Some(self.floor?.max(arrived))
    }

    /// What can be answered, now or by going back; `None` while the index is being built.
    pub fn reach(&self) -> Option<Protected> {
        Some(Protected { horizon: self.floor?, points: self.points.clone() })
    }

    /// Merges have kept only what is protected.
    pub fn narrow(&mut self, to: &Protected) {
        if let Some(reach) = self.reach() {
            self.set_reach(reach.and(to));
        }
    }

    /// Changes what can be answered.
    pub fn set_reach(&mut self, reach: Protected) {
        (self.floor, self.points) = (Some(reach.horizon), reach.points);
    }

    /// What of a slice can be answered, now or by going back; `None` while it is being built, or not here.
    pub fn reach_of(&self, slice: SliceNo) -> Option<Protected> {
        let reach = self.reach().filter(|_| self.slices.contains_key(&slice))?;
        Some(self.arrived.get(&slice).map_or_else(|| reach.clone(), |arrived| reach.and(arrived)))
    }

    /// Can everything here go back to an epoch?
    pub fn can_go_back(&self, epoch: Epoch) -> bool {
        let keeps = |reach: &Protected| reach.keeps(epoch);
        self.reach().is_some_and(|reach| keeps(&reach))
            && self.slices.keys().all(|slice| self.arrived.get(slice).is_none_or(keeps))
    }

    /// All that a slice's entries stand in.
    pub fn entries(&self, slice: SliceNo) -> Vec<Source> {
        let fragments = self.slices.get(&slice).map_or(&[][..], |fragments| fragments.rows(false));
        let runs = self.runs.iter().map(|run| Source::whole(run, slice));
        fragments.iter().cloned().chain(runs).collect()
    }
}

/// The sources that the lists of a manifest mean. While the index is loaded, those that are not open
/// yet are left out.
pub fn fragments(
    manifest: &IndexManifest,
    tables: &BTreeMap<FileId, Arc<Table>>,
    load: LoadState,
) -> Result<BTreeMap<SliceNo, Arc<Fragments>>> {
    let mut slices = BTreeMap::new();
    for (slice, lists) in &manifest.slices {
        let mut fragments = Fragments::default();
        let (mut included, mut apart) = (Vec::new(), false);
        for group in &lists.groups {
            for item in &group.items {
                let Some(table) = tables.get(&item.file) else {
                    if load.is_loading() {
                        continue;
                    }
                    let text =
                        format!("a manifest names fragment {}, which is not here", item.file);
                    return Err(Error::new(ErrorCode::Corrupt, text));
                };
                let source = source_of(table, *slice, item);
                if item.columns.contains(Columns::BACK) {
                    fragments.back.push(source);
                    continue;
                }
                let has_entries = item.columns.contains(Columns::ENTRY);
                let has_values = item.columns.intersects(Columns::INCLUDE);
                apart |= has_entries != has_values;
                included.extend(has_values.then(|| source.clone()));
                fragments.forward.extend(has_entries.then_some(source));
            }
        }
        fragments.included = apart.then_some(included);
        slices.insert(*slice, Arc::new(fragments));
    }
    Ok(slices)
}

/// What an item of a slice's list means.
pub fn source_of(table: &Arc<Table>, slice: SliceNo, item: &ListItem) -> Source {
    // The range of a back fragment restricts the entries inside the states, not the documents.
    let (range, keys) = match item.columns.contains(Columns::BACK) {
        true => (KeyRange::all(), item.range.clone()),
        false => (item.range.clone(), KeyRange::all()),
    };
    let epochs = item.epochs.from..=item.epochs.to;
    Source { table: Arc::clone(table), slice, rows_of: item.rows_of, range, epochs, keys }
}

/// An epoch below the floor of what was asked.
pub fn too_old(epoch: Epoch, what: String, floor: Epoch) -> Error {
    let text = format!("epoch {epoch} is gone: {what} answers from epoch {floor} on");
    Error::new(ErrorCode::SnapshotTooOld, text).with_hint("begin the scan or the transaction anew")
}

/// An index at one epoch.
pub struct SlotSnapshot {
    info: Arc<IndexInfo>,
    epoch: Epoch,
    visible: Arc<Visible>,
    walk_bytes_max: usize,
}

impl SlotSnapshot {
    /// A snapshot of what is visible; the cursors of a walk hold about `walk_bytes_max` bytes of blocks, as far as
    /// one block at hand and one ahead of each allow.
    pub fn new(
        info: Arc<IndexInfo>,
        epoch: Epoch,
        visible: Arc<Visible>,
        walk_bytes_max: usize,
    ) -> Self {
        Self { info, epoch, visible, walk_bytes_max }
    }

    /// How many blocks each of some cursors may read at once, whose blocks have so many bytes together.
    fn ahead_max(&self, block_bytes: usize) -> u32 {
        let blocks = self.walk_bytes_max / block_bytes.max(1);
        u32::try_from(blocks).unwrap_or(u32::MAX).saturating_sub(1).clamp(1, AHEAD_BLOCKS_MAX)
    }
}

impl Snapshot for SlotSnapshot {
    fn info(&self) -> &Arc<IndexInfo> {
        &self.info
    }

    fn has(&self, slice: SliceNo) -> bool {
        self.visible.slices.contains_key(&slice)
    }

    fn is_in_memory(&self) -> bool {
        let mut slices = self.visible.slices.values();
        slices.all(|of| of.rows(false).is_empty() && of.rows(true).is_empty())
    }

    fn walk_bytes(&self, slices: &[SliceNo], include: bool) -> usize {
        let fragments = slices.iter().filter_map(|slice| self.visible.slices.get(slice));
        let blocks: usize =
            fragments.flat_map(|of| of.rows(include)).map(Source::block_bytes).sum();
        blocks * (1 + self.ahead_max(blocks) as usize)
    }

    fn rows(
        &self,
        slices: &[SliceNo],
        range: &KeyRange,
        reverse: bool,
        include: bool,
    ) -> Result<Box<dyn Rows>> {
        let mut sources = Vec::new();
        for slice in slices {
            let Some(fragments) = self.visible.slices.get(slice) else {
                let message = format!("slice {slice} of index {} is not here", self.info.id);
                return Err(Error::new(ErrorCode::SliceMoved, message));
            };
            if let Some(floor) = self.visible.floor_of(*slice).filter(|floor| *floor > self.epoch) {
                let what = format!("slice {slice} of index {}", self.info.id);
                return Err(too_old(self.epoch, what, floor));
            }
            sources.extend(fragments.rows(include).iter().cloned());
            sources.extend(self.visible.runs.iter().map(|run| Source::whole(run, *slice)));
        }
        sources.retain(|source| source.table.stats.oldest <= self.epoch);
        let ahead = self.ahead_max(sources.iter().map(Source::block_bytes).sum());
        let sources = sources.into_iter().map(|source| source.clip(range));
        let rows = VisibleRows::new(sources, self.epoch, reverse, include)?;
        Ok(Box::new(rows.with_ahead_max(ahead)))
    }
}
