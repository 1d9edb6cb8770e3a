//! Compaction: merges neighbouring fragments of a list into one.
//!
//! The fragments to merge are chosen by their sizes alone. The choice is made for one slice and
//! extended to all slices whose lists contain the same fragments next to each other. The merge
//! runs without a lock. Its result is discarded if the lists no longer contain the inputs next to
//! each other when it ends. A large enough slice gets a separate file.
//!
//! **After a change of column groups** a list can begin with fragments that are read for only some
//! of the group's columns. After two groups were joined, the list contains a separate chain of
//! fragments for the columns of each. These items are *welded*: all of them, from the oldest to
//! the last such item, are merged in one compaction, or none is. Only complete chains contain the
//! same versions of entries. So only then can the output, which has all columns of the group,
//! replace each of them. The output's rows come from the chain of the included values, which has
//! all columns.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use proto::Result;
use proto::lock::lock;
use proto::model::ids::{Epoch, SliceNo};
use proto::plant::{self, Plant};
use proto::rpc::scan::KeyRange;

use crate::files::data_files::DataFiles;
use crate::files::new_files::UnnamedFragments;
use crate::files::pacing::PacedSink;
use crate::fragment::compression::Compression;
use crate::fragment::filter::FILTER_BYTES;
use crate::index::fragment_lists::FragmentLists;
use crate::index::local_index::LocalIndex;
use crate::maintain::rewrite::Rewrite;
use crate::manifest::lists::{EpochRange, ListItem};
use crate::merge_policy::{FRAGMENTS_MIN, choose_node};
use crate::read::slice_fragments::source_of;
use crate::read::source::Source;
use crate::retention::RetainedEpochs;
use crate::rows::columns::Columns;
use crate::tables::table::Table;

/// The size in bytes from which a slice gets a separate file, so that it can be moved alone.
const OWN_FILE_BYTES: u64 = 64 << 20;

/// Number of fragments up to which lists may grow while a slice is sent to another node. Longer
/// lists are compacted all the same, and the new fragments must be sent again.
const KEPT_FRAGMENTS_MAX: usize = 24;

/// The lists that a compaction considers, and its aim.
pub enum CompactionScope<'a> {
    /// Merges neighbouring fragments where a merge is worthwhile.
    WherePays,
    /// Merges each list into one fragment, except the lists in this set. Finished lists are added
    /// to the set.
    Everything(&'a mut BTreeSet<(Columns, SliceNo)>),
}

/// A chosen compaction: the fragments to merge, in the lists of one or more slices.
struct CompactionChoice {
    group: Columns,
    pieces: Vec<ListInputs>,
    retained: RetainedEpochs,
}

/// The fragments in one slice's list that a compaction merges.
struct ListInputs {
    slice: SliceNo,
    inputs: Vec<ListItem>,
    sources: Vec<Source>,
    at_bottom: bool,
    /// True if these are all fragments of the list.
    whole: bool,
    bytes: u64,
}

/// Runs one compaction; returns false if none is needed.
pub fn compact_index(
    index: &LocalIndex,
    files: &DataFiles,
    mut scope: CompactionScope<'_>,
) -> Result<bool> {
    let short = index.longest_list.load(Ordering::Relaxed) < KEPT_FRAGMENTS_MAX;
    if matches!(scope, CompactionScope::WherePays)
        && short
        && index.keeps_files.load(Ordering::Relaxed)
    {
        return Ok(false);
    }
    let Some(choice) = choose_fragments(index, &scope) else { return Ok(false) };
    if let CompactionScope::Everything(done) = &mut scope {
        let whole = choice.pieces.iter().filter(|piece| piece.whole);
        done.extend(whole.map(|piece| (choice.group, piece.slice)));
    }
    let longest = || match scope {
        CompactionScope::WherePays => index.longest_list.load(Ordering::Relaxed),
        // A caller waits for the result, so there is no limit.
        CompactionScope::Everything(_) => usize::MAX,
    };
    let _output = index.count_temporary(choice.output_memory_bytes());
    let outputs = choice.write_outputs(files, index.info.spec.compression, longest)?;
    files.sync_names()?;
    replace(index, &choice, outputs, files)?;
    tracing::debug!(slices = choice.pieces.len(), "merged fragments");
    Ok(true)
}

/// Chooses the next compaction of an index; `None` if no merge is worthwhile.
fn choose_fragments(index: &LocalIndex, scope: &CompactionScope<'_>) -> Option<CompactionChoice> {
    let retained = index.writer().retained.clone();
    let fragment_lists = lock(&index.fragment_lists);
    // In a build no merge is at the bottom, because the backfill is inserted below all fragments.
    if fragment_lists.is_dropped || fragment_lists.manifest.floor.is_none() {
        return None;
    }
    let slices = &fragment_lists.manifest.slices;
    let groups: BTreeSet<Columns> =
        slices.values().flat_map(|lists| lists.groups.iter().map(|g| g.columns)).collect();
    groups.into_iter().find_map(|group| {
        let pieces = choose_inputs(&fragment_lists, group, scope)?;
        Some(CompactionChoice { group, pieces, retained: retained.clone() })
    })
}

/// Replaces the merged fragments by the new ones in the lists. Deletes the new fragments if the
/// merged ones are no longer in the lists.
fn replace(
    index: &LocalIndex,
    choice: &CompactionChoice,
    outputs: UnnamedFragments<'_>,
    files: &DataFiles,
) -> Result<()> {
    let mut fragment_lists = lock(&index.fragment_lists);
    let mut manifest = fragment_lists.manifest.clone();
    let mut in_place = !fragment_lists.is_dropped && manifest.floor.is_some();
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
    let mut kept = match plant::is(Plant::FloorNotRaised) {
        true => manifest.readable_epochs().unwrap_or_default(),
        false => choice.retained.clone(),
    };
    // A rollback to below the horizon may have come since the choice. The inputs are still there, so they have no newer rows.
    kept.roll_back_to(index.writer().applied);
    manifest.restrict_readable(&kept);
    if !in_place {
        return Ok(());
    }
    let outputs = outputs.into_fragments();
    // After an error, either manifest may be on disk. So all files stay, and the next start finds
    // out which are named.
    files.write_manifest(&manifest)?;
    fragment_lists.manifest = manifest;
    fragment_lists.tables.extend(outputs.into_iter().map(|new| (new.file, new.table)));
    let mut writer = index.writer();
    index.publish(&fragment_lists, &mut writer, |version| {
        version.restrict_readable(&kept);
    })?;
    files.retire(fragment_lists.take_unnamed());
    Ok(())
}

/// Merges each list into one fragment.
pub fn compact_everything(index: &LocalIndex, files: &DataFiles) -> Result<()> {
    let mut done = Default::default();
    while compact_index(index, files, CompactionScope::Everything(&mut done))? {}
    Ok(())
}

/// Chooses neighbouring fragments to merge in one slice's list of a column group. Returns them for
/// each slice whose list contains the same fragments next to each other.
fn choose_inputs(
    fragment_lists: &FragmentLists,
    group: Columns,
    scope: &CompactionScope<'_>,
) -> Option<Vec<ListInputs>> {
    let lists = || {
        fragment_lists.manifest.slices.iter().filter_map(|(slice, lists)| {
            let items = &lists.group(group)?.items;
            let source = |item: &ListItem| {
                Some(source_of(fragment_lists.tables.get(&item.file)?, *slice, item))
            };
            let sources: Vec<Source> = items.iter().filter_map(source).collect();
            (sources.len() == items.len()).then_some((*slice, items, sources))
        })
    };
    let files = lists().find_map(|(slice, items, sources)| {
        if matches!(scope, CompactionScope::Everything(done) if done.contains(&(group, slice))) {
            return None;
        }
        let range = choose_range(&sources, welded_count(items, group), scope)?;
        Some(items[range].iter().map(|item| item.file).collect::<Vec<_>>())
    })?;
    let mut pieces = Vec::new();
    for (slice, items, sources) in lists() {
        let whole = items.len() == files.len();
        let at = items
            .windows(files.len())
            .position(|window| window.iter().map(|item| item.file).eq(files.iter().copied()));
        let Some(at) = at else { continue };
        let (end, welded) = (at + files.len(), welded_count(items, group));
        if at < welded && (at > 0 || end < welded) {
            continue;
        }
        let inputs = items[at..end].to_vec();
        let counts = |(item, source): (&ListItem, &Source)| {
            item.columns.intersects(deciding_columns(group)).then(|| source.clone())
        };
        let sources: Vec<Source> =
            items.iter().zip(&sources).take(end).skip(at).filter_map(counts).collect();
        let bytes = sources.iter().map(section_bytes).sum();
        let at_bottom = at == 0 || plant::is(Plant::TombstonesDroppedAbove);
        pieces.push(ListInputs { slice, inputs, sources, at_bottom, whole, bytes });
    }
    Some(pieces)
}

impl CompactionChoice {
    /// Returns the memory for the new fragment's filter and sparse index while it is written, in
    /// bytes (approximate).
    fn output_memory_bytes(&self) -> u64 {
        let sources = self.pieces.iter().flat_map(|piece| &piece.sources);
        sources.map(section_rows).sum::<u64>() * FILTER_BYTES
    }

    /// Writes the new fragments. `longest` returns the length of the index's longest list, which
    /// determines the write rate.
    fn write_outputs<'a>(
        &self,
        files: &'a DataFiles,
        compression: Compression,
        longest: impl Fn() -> usize + Copy,
    ) -> Result<UnnamedFragments<'a>> {
        let rewrite =
            Rewrite { retained: self.retained.clone(), back: self.group.contains(Columns::BACK) };
        let mut outputs = UnnamedFragments::new(files, Vec::new());
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
            let written = files.write(&[self.group], (compression, filter), |out| {
                if warm {
                    out.cache_new_blocks();
                }
                let mut out = PacedSink::new(out, &files.pacer, longest);
                group.iter().try_for_each(|piece| {
                    rewrite.rewrite_slice(
                        piece.slice,
                        piece.sources.clone(),
                        piece.at_bottom,
                        &mut out,
                    )
                })
            });
            outputs.extend(written?);
        }
        Ok(outputs)
    }
}

/// Returns true if at least half of the blocks to be merged are cached. Then the blocks of the new
/// fragment are cached instead.
fn is_in_cache(pieces: &[ListInputs]) -> bool {
    let tables = pieces.iter().flat_map(|piece| &piece.sources).map(|source| &source.table);
    let tables: BTreeMap<u64, &Table> =
        tables.filter_map(|table| Some((table.fragment()?.id(), &**table))).collect();
    let cached = |table: &&Table| table.fragment().map_or(0, |file| file.cached_blocks());
    let blocks: u32 = tables.values().map(|table| table.index.blocks()).sum();
    2 * tables.values().map(cached).sum::<u32>() >= blocks
}

/// Returns the bytes of a source's slice in its table.
fn section_bytes(source: &Source) -> u64 {
    let index = &source.table.index;
    index.section(source.rows_of).map_or(0, |section| index.sections()[section].bytes)
}

/// Returns the number of rows of a source's slice in its table.
fn section_rows(source: &Source) -> u64 {
    let index = &source.table.index;
    index.section(source.rows_of).map_or(0, |section| index.sections()[section].rows)
}

/// Returns the number of welded items at the beginning of a list: all items up to the last one
/// that is read for only some of the group's columns.
fn welded_count(items: &[ListItem], group: Columns) -> usize {
    items.iter().rposition(|item| item.columns != group).map_or(0, |last| last + 1)
}

/// Returns the columns whose fragments decide which rows a compaction of the group writes.
fn deciding_columns(group: Columns) -> Columns {
    if group.intersects(Columns::INCLUDE) { Columns::INCLUDE } else { group }
}

/// Chooses the range of a list's fragments to merge; the first `welded` ones are merged together
/// or not at all. `None` if no merge is worthwhile.
fn choose_range(
    sources: &[Source],
    welded: usize,
    scope: &CompactionScope<'_>,
) -> Option<std::ops::Range<usize>> {
    match scope {
        CompactionScope::WherePays => {
            let (first, rest) = sources.split_at(welded);
            let first = (welded > 0).then(|| first.iter().map(section_bytes).sum());
            let sizes: Vec<u64> = first.into_iter().chain(rest.iter().map(section_bytes)).collect();
            let range = choose_node(&sizes, FRAGMENTS_MIN, u64::MAX)?;
            // All welded items together have one size.
            let more = welded.saturating_sub(1);
            let begin = if range.start == 0 { 0 } else { range.start + more };
            Some(begin..range.end + more)
        }
        CompactionScope::Everything(_) => {
            let settled = match sources {
                [] => true,
                [only] => welded == 0 && only.table.stats.is_all_visible_at(Epoch(u64::MAX)),
                _ => false,
            };
            (!settled).then_some(0..sources.len())
        }
    }
}
