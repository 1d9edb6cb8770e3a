//! The source's end of a move: gives a slice's fragments away as files.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use proto::model::ids::{Epoch, SliceNo};
use proto::rpc::export::ExportHead;
use proto::{Error, ErrorCode, Result};

use crate::edit::packed_lists::pack;
use crate::file_id::FileId;
use crate::index::local_index::Slot;
use crate::lock::lock;
use crate::maintain::flush::flush;
use crate::node::context::Inner;
use crate::retention::Protected;
use crate::tables::table::Table;

/// A slice as files, kept while this is.
pub struct Export {
    /// What the target is told.
    pub head: ExportHead,
    tables: BTreeMap<FileId, Arc<Table>>,
    inner: Arc<Inner>,
}

impl Export {
    /// Bytes of a file.
    pub async fn read(&self, file: u64, offset: u64, len: usize) -> Result<Bytes> {
        let table = self.tables.get(&FileId(file)).cloned();
        let inner = Arc::clone(&self.inner);
        let work = move || {
            let _kept = table.ok_or_else(|| Error::internal(format!("file {file} is not sent")))?;
            inner.files.read_raw(FileId(file), offset, len)
        };
        self.inner.env.blocking(work).await
    }
}

/// A slice's fragments, with all epochs up to the newest one applied. Blocks.
pub fn export(context: &Arc<Inner>, index: &Slot, slice: SliceNo) -> Result<Export> {
    let epoch = context.committed(index.info.bucket);
    let (head, tables) = lists_and_files(index, slice, epoch, context)?;
    Ok(Export { head, tables, inner: Arc::clone(context) })
}

fn lists_and_files(
    index: &Slot,
    slice: SliceNo,
    epoch: Epoch,
    Inner { files, opening, .. }: &Inner,
) -> Result<(ExportHead, BTreeMap<FileId, Arc<Table>>)> {
    flush(index, files)?;
    let structure = lock(&index.structure);
    let manifest = &structure.manifest;
    let (Some(lists), Some(floor)) = (manifest.slices.get(&slice), manifest.floor) else {
        let text = format!("slice {slice} of index {} is not here", index.info.id);
        return Err(Error::new(ErrorCode::SliceMoved, text));
    };
    let mut tables = BTreeMap::new();
    let mut lengths = BTreeMap::new();
    for file in lists.files() {
        let table = structure.tables.get(&file).cloned();
        let table = table.ok_or_else(|| Error::internal(format!("fragment {file} is missing")))?;
        lengths.insert(file.0, files.raw_len(file)?);
        tables.insert(file, table);
    }
    let on_disk = Protected { horizon: floor, points: manifest.points.clone() };
    let shown = index.visible.load().reach_of(slice);
    let reach = shown.map_or_else(|| on_disk.clone(), |shown| shown.and(&on_disk));
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
