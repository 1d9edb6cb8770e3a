//! Compactions: some neighbouring fragments of a list become one.
//!
//! What to merge is a pure choice over sizes, made for one slice and extended to all slices whose lists
//! have the same piece. The merge runs without a lock; its result is thrown away if the lists no longer
//! have its inputs as one piece when it is done. A slice that is large enough gets a file of its own.

use std::sync::Arc;

use proto::Result;
use proto::ids::{Epoch, SliceNo};

use super::compaction::{FRAGMENTS_MIN, choose};
use super::cursor::Source;
use super::files::Files;
use super::manifest::{Columns, FileId, IndexManifest, ListItem};
use super::rewrite::Rewrite;
use super::slot::{Slot, Structure, lock};
use super::store::Manifests;
use super::table::Table;
use super::versions::Protected;

/// A slice with so many bytes in a compaction gets a file of its own: it can be moved by itself then.
const OWN_FILE_BYTES: u64 = 64 << 20;

/// How much to merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// What pays.
    WherePays,
    /// Each list down to one fragment.
    Everything,
}

/// What a compaction merges.
struct Choice {
    columns: Columns,
    inputs: Vec<FileId>,
    slices: Vec<Piece>,
    protected: Protected,
    rows: u64,
}

/// A slice that has the inputs as one piece of its list.
struct Piece {
    slice: SliceNo,
    sources: Vec<Source>,
    at_bottom: bool,
    bytes: u64,
}

/// A file that a compaction wrote, with the slices in it.
type Output = (FileId, Arc<Table>, Vec<SliceNo>);

impl Slot {
    /// Runs one compaction; false if there is none to run.
    pub fn compact(&self, files: &Files, manifests: &Manifests, extent: Extent) -> Result<bool> {
        for columns in [Columns::FORWARD, Columns::BACK] {
            if let Some(choice) = self.choose_fragments(columns, extent) {
                let outputs = choice.run(files)?;
                files.sync_names()?;
                self.replace(&choice, outputs, files, manifests)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn choose_fragments(&self, columns: Columns, extent: Extent) -> Option<Choice> {
        let horizon = lock(&self.writer).horizon;
        let structure = lock(&self.structure);
        if structure.dropped || structure.bulk.is_some() {
            return None;
        }
        let visible = self.visible.load();
        let lists = structure.manifest.slices.iter().filter_map(|(slice, lists)| {
            let items = lists.items(columns)?;
            let fragments = visible.slices.get(slice)?;
            let sources =
                if columns.has_back() { &fragments.back } else { &fragments.forward };
            (items.len() == sources.len()).then_some((*slice, items, sources))
        });
        let lists: Vec<(SliceNo, &[ListItem], &Vec<Source>)> = lists.collect();
        let inputs = lists.iter().find_map(|(_, items, sources)| {
            let range = choose_piece(sources, extent)?;
            Some(items[range].iter().map(|item| item.file).collect::<Vec<_>>())
        })?;
        let mut slices = Vec::new();
        for (slice, items, sources) in lists {
            let piece = items.windows(inputs.len()).position(|window| {
                window.iter().map(|item| item.file).eq(inputs.iter().copied())
            });
            if let Some(at) = piece {
                let sources = sources[at..at + inputs.len()].to_vec();
                let bytes = sources.iter().map(section_bytes).sum();
                slices.push(Piece { slice, sources, at_bottom: at == 0, bytes });
            }
        }
        let rows = slices.iter().flat_map(|piece| &piece.sources).map(section_rows).sum();
        let protected = Protected { horizon, points: Vec::new() };
        Some(Choice { columns, inputs, slices, protected, rows })
    }

    /// Puts the outputs in the place of the inputs, or throws them away.
    fn replace(
        &self,
        choice: &Choice,
        outputs: Vec<Output>,
        files: &Files,
        manifests: &Manifests,
    ) -> Result<()> {
        let mut structure = lock(&self.structure);
        let mut manifest = structure.manifest.clone();
        let in_place = !structure.dropped
            && choice.slices.iter().all(|piece| {
                let of_slice = outputs.iter().filter(|(.., slices)| slices.contains(&piece.slice));
                let items = of_slice
                    .map(|(file, ..)| ListItem::whole(*file, piece.slice, choice.columns))
                    .collect();
                manifest.replace(piece.slice, choice.columns, &choice.inputs, items)
            });
        let written = outputs.into_iter().map(|(file, table, _)| (file, table));
        if !in_place {
            files.retire(written.collect());
            return Ok(());
        }
        manifest.floor = manifest.floor.max(choice.protected.horizon);
        if let Err(error) = manifests.write(&manifest) {
            files.retire(written.collect());
            return Err(error);
        }
        structure.manifest = manifest;
        structure.tables.extend(written);
        self.publish(&structure, |visible| {
            visible.floor = visible.floor.map(|floor| floor.max(choice.protected.horizon));
        })?;
        files.retire(structure.take_unnamed());
        Ok(())
    }
}

impl Choice {
    fn run(&self, files: &Files) -> Result<Vec<Output>> {
        let rewrite =
            Rewrite { protected: self.protected.clone(), back: self.columns.has_back() };
        let mut outputs = Vec::new();
        let mut at = 0;
        while at < self.slices.len() {
            let alone = self.slices[at].bytes >= OWN_FILE_BYTES;
            let more = self.slices[at + 1..].iter().take_while(|piece| {
                !alone && piece.bytes < OWN_FILE_BYTES
            });
            let group = &self.slices[at..at + 1 + more.count()];
            at += group.len();
            let filter = self.columns.has_back().then_some(self.rows);
            let (file, mut out) = files.create(self.columns, filter)?;
            for piece in group {
                rewrite.slice(piece.slice, piece.sources.clone(), piece.at_bottom, &mut out)?;
            }
            if let Some((file, table)) = files.finish(file, out)? {
                let slices = table.index.sections().iter().map(|section| section.slice).collect();
                outputs.push((file, table, slices));
            }
        }
        Ok(outputs)
    }
}

fn section_bytes(source: &Source) -> u64 {
    let index = &source.table.index;
    index.section(source.rows_of).map_or(0, |section| index.sections()[section].bytes)
}

fn section_rows(source: &Source) -> u64 {
    let index = &source.table.index;
    index.section(source.rows_of).map_or(0, |section| index.sections()[section].rows)
}

fn choose_piece(sources: &[Source], extent: Extent) -> Option<std::ops::Range<usize>> {
    match extent {
        Extent::WherePays => {
            let sizes: Vec<u64> = sources.iter().map(section_bytes).collect();
            choose(&sizes, FRAGMENTS_MIN, u64::MAX)
        }
        Extent::Everything => {
            let settled = match sources {
                [] => true,
                [only] => only.table.stats.shows_whole_at(Epoch(u64::MAX)),
                _ => false,
            };
            (!settled).then_some(0..sources.len())
        }
    }
}

impl Structure {
    /// The manifest and the tables that it names.
    pub fn parts(&self) -> (&IndexManifest, impl Iterator<Item = &Arc<Table>>) {
        (&self.manifest, self.tables.values())
    }
}
