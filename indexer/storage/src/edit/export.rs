//! Source of a move: sends the fragments of a slice as files.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use proto::lock::lock;
use proto::model::ids::{Epoch, SliceNo};
use proto::rpc::export::ExportHead;
use proto::{Error, ErrorCode, Result};

use crate::edit::packed_lists::pack;
use crate::file_id::FileId;
use crate::index::local_index::LocalIndex;
use crate::maintain::flush::flush;
use crate::node::context::EngineContext;
use crate::retention::RetainedEpochs;
use crate::tables::table::Table;

/// A slice as files. The files stay on disk while this value lives.
pub struct Export {
    /// Description for the target.
    pub head: ExportHead,
    tables: BTreeMap<FileId, Arc<Table>>,
    context: Arc<EngineContext>,
}

impl Export {
    /// Reads bytes of a file.
    pub async fn read(&self, file: u64, offset: u64, len: usize) -> Result<Bytes> {
        let table = self.tables.get(&FileId(file)).cloned();
        let context = Arc::clone(&self.context);
        let work = move || {
            let _kept = table.ok_or_else(|| {
                Error::internal(format!("file {file} is not part of this export"))
            })?;
            context.files.read_raw(FileId(file), offset, len)
        };
        self.context.env.blocking(work).await
    }
}

/// Exports a slice with all epochs up to the newest applied one. Blocks the thread.
pub fn export(context: &Arc<EngineContext>, index: &LocalIndex, slice: SliceNo) -> Result<Export> {
    let epoch = context.committed(index.info.bucket);
    let (head, tables) = lists_and_files(index, slice, epoch, context)?;
    Ok(Export { head, tables, context: Arc::clone(context) })
}

fn lists_and_files(
    index: &LocalIndex,
    slice: SliceNo,
    epoch: Epoch,
    EngineContext { files, opening, .. }: &EngineContext,
) -> Result<(ExportHead, BTreeMap<FileId, Arc<Table>>)> {
    flush(index, files)?;
    let fragment_lists = lock(&index.fragment_lists);
    let manifest = &fragment_lists.manifest;
    let (Some(lists), Some(floor)) = (manifest.slices.get(&slice), manifest.floor) else {
        let text = format!("slice {slice} of index {} is not on this node", index.info.local_id());
        return Err(Error::new(ErrorCode::SliceMoved, text));
    };
    let mut tables = BTreeMap::new();
    let mut lengths = BTreeMap::new();
    for file in lists.files() {
        let table = fragment_lists.tables.get(&file).cloned();
        let table = table.ok_or_else(|| Error::internal(format!("fragment {file} is missing")))?;
        lengths.insert(file.0, files.raw_len(file)?);
        tables.insert(file, table);
    }
    let on_disk = RetainedEpochs { horizon: floor, points: manifest.points.clone() };
    let shown = index.version.load().reach_of(slice);
    let reach = shown.map_or_else(|| on_disk.clone(), |shown| shown.intersection(&on_disk));
    let head = ExportHead {
        info: Arc::clone(&manifest.info),
        opening: *opening,
        floor: reach.horizon,
        points: reach.points,
        epoch,
        entries: manifest.entries.get(&slice).copied().unwrap_or_default(),
        lists: pack(lists)?,
        files: lengths.into_iter().collect(),
    };
    Ok((head, tables))
}
