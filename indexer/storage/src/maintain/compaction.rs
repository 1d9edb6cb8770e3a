//! Compactions: some neighbouring fragments of a list become one.
//!
//! What to merge is a pure choice over sizes, made for one slice and extended to all slices whose lists
//! have the same piece. The merge runs without a lock; its result is thrown away if the lists no longer
//! have its inputs as one piece when it is done. A slice that is large enough gets a file of its own.
//!
//! **After a change of column groups** a list may begin with fragments of which only some of the group's
//! columns count: where groups were joined, the chains of their columns stand side by side. These are
//! welded: they are merged all together, from the oldest to the last such fragment, or not at all. Only
//! there do the chains tell the same history, and the output, which has all columns of the group, can
//! take the place of each of them. Its rows come from the chain of the included values, which has
//! everything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use proto::Result;
use proto::model::ids::{Epoch, SliceNo};
use proto::plant::{self, Plant};
use proto::rpc::scan::KeyRange;

use crate::files::data_files::{Files, Written};
use crate::files::pacing::Paced;
use crate::fragment::filter::FILTER_BYTES;
use crate::index::fragment_lists::Structure;
use crate::index::local_index::Slot;
use crate::lock::lock;
use crate::maintain::rewrite::Rewrite;
use crate::manifest::lists::{EpochRange, ListItem};
use crate::merge_policy::{FRAGMENTS_MIN, choose};
use crate::read::slice_fragments::source_of;
use crate::read::source::Source;
use crate::retention::Protected;
use crate::rows::columns::Columns;
use crate::tables::table::Table;

/// A slice with so many bytes in a compaction gets a file of its own: it can be moved by itself then.
const OWN_FILE_BYTES: u64 = 64 << 20;

/// While a slice is given away lists may grow up to this; then they are merged, and sent anew.
const KEPT_FRAGMENTS_MAX: usize = 24;

/// Which lists to merge.
pub enum Extent<'a> {
    /// Where it pays.
    WherePays,
    /// Each list down to one fragment, but for those that are noted here; what is done is noted.
    Everything(&'a mut BTreeSet<(Columns, SliceNo)>),
}

/// What a compaction merges.
struct Choice {
    group: Columns,
    pieces: Vec<Piece>,
    protected: Protected,
}

/// A slice that has the inputs as one piece of its list.
struct Piece {
    slice: SliceNo,
    inputs: Vec<ListItem>,
    sources: Vec<Source>,
    at_bottom: bool,
    /// Is it all of the list?
    whole: bool,
    bytes: u64,
}

/// Runs one compaction; false if there is none to run.
pub fn compact_index(index: &Slot, files: &Files, mut extent: Extent<'_>) -> Result<bool> {
    let short = index.lists_max.load(Ordering::Relaxed) < KEPT_FRAGMENTS_MAX;
    if matches!(extent, Extent::WherePays) && short && index.keeps_files.load(Ordering::Relaxed) {
        return Ok(false);
    }
    let Some(choice) = choose_fragments(index, &extent) else { return Ok(false) };
    if let Extent::Everything(done) = &mut extent {
        let whole = choice.pieces.iter().filter(|piece| piece.whole);
        done.extend(whole.map(|piece| (choice.group, piece.slice)));
    }
    let longest = || match extent {
        Extent::WherePays => index.lists_max.load(Ordering::Relaxed),
        // Somebody waits for it.
        Extent::Everything(_) => usize::MAX,
    };
    let _output = index.hold(choice.held_bytes());
    let outputs = choice.run(files, longest)?;
    files.sync_names()?;
    replace(index, &choice, outputs, files)?;
    Ok(true)
}

fn choose_fragments(index: &Slot, extent: &Extent<'_>) -> Option<Choice> {
    let protected = index.writer().protected.clone();
    let structure = lock(&index.structure);
    // Of an index that is being built nothing is at the bottom: the backfill goes below all of it.
    if structure.dropped || structure.manifest.floor.is_none() {
        return None;
    }
    let slices = &structure.manifest.slices;
    let groups: BTreeSet<Columns> =
        slices.values().flat_map(|lists| lists.groups.iter().map(|g| g.columns)).collect();
    groups.into_iter().find_map(|group| {
        let pieces = choose_pieces(&structure, group, extent)?;
        Some(Choice { group, pieces, protected: protected.clone() })
    })
}

/// Puts the outputs in the place of the inputs, or throws them away.
fn replace(index: &Slot, choice: &Choice, outputs: Vec<Written>, files: &Files) -> Result<()> {
    let mut structure = lock(&index.structure);
    let mut manifest = structure.manifest.clone();
    let mut in_place = !structure.dropped && manifest.floor.is_some();
    for piece in &choice.pieces {
        let items = outputs.iter().filter(|new| new.table.index.section(piece.slice).is_some());
        let items = items.map(|new| ListItem {
            file: new.file,
            rows_of: piece.slice,
            range: KeyRange::all(),
            columns: choice.group,
            epochs: EpochRange::from_stats(&new.table.stats),
        });
        let (slice, items) = (piece.slice, items.collect());
        in_place = in_place && manifest.replace(slice, choice.group, &piece.inputs, items)?;
    }
    let kept = match plant::is(Plant::FloorNotRaised) {
        true => manifest.reach().unwrap_or_default(),
        false => choice.protected.clone(),
    };
    manifest.narrow(&kept);
    if !in_place {
        files.discard(outputs);
        return Ok(());
    }
    // After an error the manifest on disk may be either: all files stay, and the next start sorts
    // out which of them are named.
    files.write_manifest(&manifest)?;
    structure.manifest = manifest;
    structure.tables.extend(outputs.into_iter().map(|new| (new.file, new.table)));
    let mut writer = index.writer();
    index.publish(&structure, &mut writer, |visible| {
        visible.narrow(&kept);
    })?;
    files.retire(structure.take_unnamed());
    Ok(())
}

/// Merges each list down to one fragment.
pub fn compact_everything(index: &Slot, files: &Files) -> Result<()> {
    let mut done = Default::default();
    while compact_index(index, files, Extent::Everything(&mut done))? {}
    Ok(())
}

/// The pieces to merge in a group of columns: chosen for one slice, and taken wherever the same
/// fragments stand together.
fn choose_pieces(structure: &Structure, group: Columns, extent: &Extent<'_>) -> Option<Vec<Piece>> {
    let lists = || {
        structure.manifest.slices.iter().filter_map(|(slice, lists)| {
            let items = &lists.group(group)?.items;
            let source =
                |item: &ListItem| Some(source_of(structure.tables.get(&item.file)?, *slice, item));
            let sources: Vec<Source> = items.iter().filter_map(source).collect();
            (sources.len() == items.len()).then_some((*slice, items, sources))
        })
    };
    let files = lists().find_map(|(slice, items, sources)| {
        if matches!(extent, Extent::Everything(done) if done.contains(&(group, slice))) {
            return None;
        }
        let range = choose_piece(&sources, welded(items, group), extent)?;
        Some(items[range].iter().map(|item| item.file).collect::<Vec<_>>())
    })?;
    let mut pieces = Vec::new();
    for (slice, items, sources) in lists() {
        let whole = items.len() == files.len();
        let at = items
            .windows(files.len())
            .position(|window| window.iter().map(|item| item.file).eq(files.iter().copied()));
        let Some(at) = at else { continue };
        let (end, welded) = (at + files.len(), welded(items, group));
        if at < welded && (at > 0 || end < welded) {
            continue;
        }
        let inputs = items[at..end].to_vec();
        let counts = |(item, source): (&ListItem, &Source)| {
            item.columns.intersects(deciding(group)).then(|| source.clone())
        };
        let sources: Vec<Source> =
            items.iter().zip(&sources).take(end).skip(at).filter_map(counts).collect();
        let bytes = sources.iter().map(section_bytes).sum();
        let at_bottom = at == 0 || plant::is(Plant::TombstonesDroppedAbove);
        pieces.push(Piece { slice, inputs, sources, at_bottom, whole, bytes });
    }
    Some(pieces)
}

impl Choice {
    /// What the output's filter takes, and about what its sparse index does.
    fn held_bytes(&self) -> u64 {
        let sources = self.pieces.iter().flat_map(|piece| &piece.sources);
        sources.map(section_rows).sum::<u64>() * FILTER_BYTES
    }

    /// Writes the outputs, at the pace that so many fragments in the longest list ask for.
    fn run(&self, files: &Files, longest: impl Fn() -> usize + Copy) -> Result<Vec<Written>> {
        let rewrite =
            Rewrite { protected: self.protected.clone(), back: self.group.contains(Columns::BACK) };
        let mut outputs = Vec::new();
        let mut at = 0;
        while at < self.pieces.len() {
            let alone = self.pieces[at].bytes >= OWN_FILE_BYTES;
            let more = self.pieces[at + 1..]
                .iter()
                .take_while(|piece| !alone && piece.bytes < OWN_FILE_BYTES);
            let group = &self.pieces[at..at + 1 + more.count()];
            at += group.len();
            let rows = group.iter().flat_map(|piece| &piece.sources).map(section_rows).sum();
            let filter = self.group.contains(Columns::BACK).then_some(rows);
            let warm = is_in_cache(group);
            let written = files.write(&[self.group], filter, |out| {
                if warm {
                    out.set_warm();
                }
                let mut out = Paced::new(out, &files.pacer, longest);
                group.iter().try_for_each(|piece| {
                    rewrite.slice(piece.slice, piece.sources.clone(), piece.at_bottom, &mut out)
                })
            });
            match written {
                Ok(written) => outputs.extend(written),
                Err(error) => {
                    files.discard(outputs);
                    return Err(error);
                }
            }
        }
        Ok(outputs)
    }
}

/// Is at least half of the inputs in the cache? Then the output takes their place there, too.
fn is_in_cache(pieces: &[Piece]) -> bool {
    let tables = pieces.iter().flat_map(|piece| &piece.sources).map(|source| &source.table);
    let tables: BTreeMap<u64, &Table> =
        tables.filter_map(|table| Some((table.fragment()?.id(), &**table))).collect();
    let cached = |table: &&Table| table.fragment().map_or(0, |file| file.cached_blocks());
    let blocks: u32 = tables.values().map(|table| table.index.blocks()).sum();
    2 * tables.values().map(cached).sum::<u32>() >= blocks
}

fn section_bytes(source: &Source) -> u64 {
    let index = &source.table.index;
    index.section(source.rows_of).map_or(0, |section| index.sections()[section].bytes)
}

fn section_rows(source: &Source) -> u64 {
    let index = &source.table.index;
    index.section(source.rows_of).map_or(0, |section| index.sections()[section].rows)
}

/// How many of a list's first items are welded: all up to the last of which not all columns count.
fn welded(items: &[ListItem], group: Columns) -> usize {
    items.iter().rposition(|item| item.columns != group).map_or(0, |last| last + 1)
}

/// The columns whose chain has the rows of a group.
fn deciding(group: Columns) -> Columns {
    if group.intersects(Columns::INCLUDE) { Columns::INCLUDE } else { group }
}

/// Chooses among the items of a list, of which the first are welded.
fn choose_piece(
    sources: &[Source],
    welded: usize,
    extent: &Extent<'_>,
) -> Option<std::ops::Range<usize>> {
    match extent {
        Extent::WherePays => {
            let (first, rest) = sources.split_at(welded);
            let first = (welded > 0).then(|| first.iter().map(section_bytes).sum());
            let sizes: Vec<u64> = first.into_iter().chain(rest.iter().map(section_bytes)).collect();
            let range = choose(&sizes, FRAGMENTS_MIN, u64::MAX)?;
            // One size stands for all that are welded.
            let more = welded.saturating_sub(1);
            let begin = if range.start == 0 { 0 } else { range.start + more };
            Some(begin..range.end + more)
        }
        Extent::Everything(_) => {
            let settled = match sources {
                [] => true,
                [only] => welded == 0 && only.table.stats.shows_whole_at(Epoch(u64::MAX)),
                _ => false,
            };
            (!settled).then_some(0..sources.len())
        }
    }
}
