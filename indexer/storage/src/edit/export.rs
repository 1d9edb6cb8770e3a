//! Source of a move: sends another node the blocks of each fragment that contain a slice's rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::lock::lock;
use proto::model::ids::{Epoch, SliceNo};
use proto::rpc::export::{ExportHead, FilePiece};
use proto::{Error, ErrorCode, Result};

use crate::edit::packed_lists::pack;
use crate::fragment::part::FragmentPart;
use crate::index::fragment_lists::FragmentLists;
use crate::index::local_index::LocalIndex;
use crate::maintain::flush::flush;
use crate::manifest::lists::SliceLists;
use crate::node::context::EngineContext;
use crate::retention::RetainedEpochs;
use crate::tables::table::Table;

/// A slice that is sent to another node: for each of its files, the part with the slice's rows.
/// The files are retained on disk while this value or a read from it exists.
pub struct Export {
    /// The description of the slice that is sent to the target.
    pub head: ExportHead,
    parts: Arc<Parts>,
    context: Arc<EngineContext>,
}

/// The parts of a slice to send, by the numbers of their files.
type Parts = BTreeMap<u64, (Arc<Table>, FragmentPart)>;

/// A byte range to be read from the slice's part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartRange {
    /// The file's number.
    pub file: u64,
    /// The offset in the slice's part of the file.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: usize,
}

impl Export {
    /// Reads several byte ranges together on one thread.
    pub fn read(
        &self,
        wanted: Vec<PartRange>,
    ) -> impl Future<Output = Result<Vec<FilePiece>>> + Send + use<> {
        let (parts, env) = (Arc::clone(&self.parts), self.context.env.clone());
        let read = move |PartRange { file, offset, bytes }| {
            let (table, part) = parts.get(&file).ok_or_else(|| {
                Error::internal(format!("file {file} is not part of this export"))
            })?;
            Ok(FilePiece::new(file, offset, part.read(&table.index, offset, bytes)?))
        };
        async move { env.blocking(move || wanted.into_iter().map(read).collect()).await }
    }
}

/// Exports a slice with all epochs up to the newest applied one. Blocks the thread.
pub fn export_slice(
    context: &Arc<EngineContext>,
    index: &LocalIndex,
    slice: SliceNo,
) -> Result<Export> {
    let epoch = context.committed(index.info.bucket);
    let (head, parts) = flush_and_describe(index, slice, epoch, context)?;
    Ok(Export { head, parts: Arc::new(parts), context: Arc::clone(context) })
}

/// Flushes an index. Returns the description of a slice and the parts of its files.
fn flush_and_describe(
    index: &LocalIndex,
    slice: SliceNo,
    epoch: Epoch,
    EngineContext { files, opening, .. }: &EngineContext,
) -> Result<(ExportHead, Parts)> {
    flush(index, files)?;
    let fragment_lists = lock(&index.fragment_lists);
    let manifest = &fragment_lists.manifest;
    let (Some(lists), Some(floor)) = (manifest.slices.get(&slice), manifest.floor) else {
        let text = format!("slice {slice} of index {} is not on this node", index.info.local_id());
        return Err(Error::new(ErrorCode::SliceMoved, text));
    };
    let parts = file_parts_of(lists, &fragment_lists)?;
    let on_disk = RetainedEpochs { horizon: floor, points: manifest.points.clone() };
    let shown = index.version.load().readable_epochs_of(slice);
    let reach = shown.map_or_else(|| on_disk.clone(), |shown| shown.intersection(&on_disk));
    let head = ExportHead {
        info: Arc::clone(&manifest.info),
        opening: *opening,
        floor: reach.horizon,
        points: reach.points,
        epoch,
        entries: manifest.entries.get(&slice).copied().unwrap_or_default(),
        lists: pack(lists)?,
        files: parts.iter().map(|(file, (_, part))| (*file, part.byte_len())).collect(),
    };
    Ok((head, parts))
}

/// Returns, for each file that the lists of a slice name, the part with the slice's rows. The list
/// items of a slice that name the same file select the same slice number in it, because a split or
/// a clone gives a slice all its items at once.
fn file_parts_of(lists: &SliceLists, fragment_lists: &FragmentLists) -> Result<Parts> {
    let mut slices = BTreeMap::new();
    let mut parts = Parts::new();
    for item in lists.groups.iter().flat_map(|group| &group.items) {
        let (file, rows_of) = (item.file, item.rows_of);
        if *slices.entry(file).or_insert(rows_of) != rows_of {
            let what = format!("fragment {file} counts for two slices in the lists of one");
            return Err(Error::internal(what));
        }
        if parts.contains_key(&file.0) {
            continue;
        }
        let table = fragment_lists.tables.get(&file);
        let table = table.ok_or_else(|| Error::internal(format!("fragment {file} is missing")))?;
        let part = table
            .fragment()
            .and_then(|fragment| FragmentPart::new(fragment, &table.index, rows_of))
            .ok_or_else(|| {
                let what = format!("fragment {file} has no rows of slice {rows_of}");
                Error::new(ErrorCode::Corrupt, what)
            })?;
        parts.insert(file.0, (Arc::clone(table), part));
    }
    Ok(parts)
}

#[cfg(test)]
#[path = "export_tests.rs"]
mod tests;
