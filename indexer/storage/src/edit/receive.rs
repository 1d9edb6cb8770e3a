//! Target of a move: reception of files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use proto::lock::lock;
use proto::model::cut::EpochMark;
use proto::model::ids::{Epoch, NodeId, SliceNo};
use proto::plant::{self, Plant};
use proto::rpc::export::{ExportHead, FilePiece};
use proto::{Error, Result};

use crate::edit::packed_lists::unpack;
use crate::file_id::FileId;
use crate::fragment::blob_store::BlobWriter;
use crate::manifest::index_manifest::IndexManifest;
use crate::manifest::lists::SliceLists;
use crate::node::context::EngineContext;
use crate::read::index_snapshot::IndexSnapshot;
use crate::read::index_version::IndexVersion;
use crate::read::slice_fragments::Unopened;
use crate::read::snapshot::Snapshot;
use crate::rows::columns::Columns;
use crate::tables::table::Table;

/// The files that the target of a move has received, until they are installed or discarded.
pub struct ReceivedFiles {
    context: Arc<EngineContext>,
    /// The node whose file numbers these are.
    source: NodeId,
    pub(super) head: Option<ExportHead>,
    /// Complete files: the source's number, and the file here.
    pub(super) files: BTreeMap<u64, (FileId, Arc<Table>)>,
    open: Option<OpenFile>,
}

/// A file that is being received.
struct OpenFile {
    source: u64,
    ours: FileId,
    blob: Arc<Mutex<Box<dyn BlobWriter>>>,
    bytes: u64,
    /// True from the beginning of a write until it has succeeded. After an error, or if the caller has gone meanwhile, the
    /// file's content is unknown, and nothing is written behind it.
    is_torn: bool,
}

impl ReceivedFiles {
    /// An empty set of files from one source.
    pub(crate) fn new(context: Arc<EngineContext>, source: NodeId) -> Self {
        Self { context, source, head: None, files: BTreeMap::new(), open: None }
    }

    /// The node that sends the files.
    pub fn source(&self) -> NodeId {
        self.source
    }

    /// The source's numbers of the complete files.
    pub fn have(&self) -> Vec<u64> {
        self.files.keys().copied().collect()
    }

    /// The last description from the source.
    pub fn head(&self) -> Option<&ExportHead> {
        self.head.as_ref()
    }

    /// Begins a round of the source.
    pub async fn begin(&mut self, head: ExportHead) -> Result<()> {
        let before = self.head.as_ref().map(|head| head.opening);
        let mut named: BTreeSet<u64> = head.files.iter().map(|(file, _)| *file).collect();
        if before.is_some_and(|before| before != head.opening) {
            named.clear();
        }
        let gone: Vec<u64> = self.files.keys().filter(|f| !named.contains(f)).copied().collect();
        let gone = gone.into_iter().filter_map(|file| self.files.remove(&file)).collect();
        self.context.files.retire(gone);
        self.head = Some(head);
        self.abandon_open().await
    }

    /// Stores a piece of a file. The last piece makes the file durable.
    pub async fn piece(&mut self, piece: FilePiece) -> Result<()> {
        if !piece.is_whole() {
            let (file, offset) = (piece.file, piece.offset);
            let text =
                format!("the piece of file {file} at offset {offset} was damaged in transit");
            return Err(Error::unavailable(text));
        }
        let len = self.length_of(piece.file)?;
        if self.open.as_ref().is_none_or(|open| open.source != piece.file || open.is_torn) {
            self.abandon_open().await?;
            self.open = Some(self.create(piece.file).await?);
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        let end = piece.offset + piece.bytes.len() as u64;
        if piece.offset != open.bytes || end > len {
            let text = format!(
                "file {}: the piece at offset {} is out of order",
                piece.file, piece.offset
            );
            return Err(Error::unavailable(text));
        }
        let (blob, whole, context) =
            (Arc::clone(&open.blob), end == len, Arc::clone(&self.context));
        let (piece_of, ours) = (open.source, open.ours);
        open.is_torn = true;
        let work = move || -> Result<Option<Arc<Table>>> {
            let mut blob = lock(&blob);
            blob.append(&piece.bytes)?;
            if !whole {
                return Ok(None);
            }
            blob.sync()?;
            let table = context.files.open(ours)?;
            // Every block is checked, since damage on the source's disk must not become the only
            // copy.
            (0..table.index.blocks()).try_for_each(|block| table.block(block).map(drop))?;
            Ok(Some(table))
        };
        let stored = self.context.env.blocking(work).await;
        let stored = stored.map_err(|error| error.context("storing a file of a move"))?;
        if let Some(table) = stored {
            self.open = None;
            self.files.insert(piece_of, (ours, table));
        } else if let Some(open) = &mut self.open {
            (open.bytes, open.is_torn) = (end, false);
        }
        Ok(())
    }

    /// True if all files of the last description are here.
    pub fn is_whole(&self) -> bool {
        self.head.is_some() && self.missing().next().is_none()
    }

    /// Bytes of the files of the last description that are not here.
    pub fn missing_bytes(&self) -> u64 {
        self.missing().map(|(_, len)| len).sum()
    }

    fn missing(&self) -> impl Iterator<Item = &(u64, u64)> {
        let named = self.head.iter().flat_map(|head| &head.files);
        named.filter(|(file, _)| !self.files.contains_key(file))
    }

    /// Checksum and number of the slice's entries at the newest epoch that the source has sent.
    pub async fn checksum(&self, slice: SliceNo) -> Result<(u64, u64)> {
        let head = self.head.as_ref().filter(|_| self.is_whole());
        let head =
            head.ok_or_else(|| Error::unavailable("the slice is not completely received yet"))?;
        let (info, epoch) = (Arc::clone(&head.info), head.epoch);
        let manifest = IndexManifest {
            info: Arc::clone(&info),
            floor: Some(head.floor),
            points: Vec::new(),
            arrived: BTreeMap::new(),
            flushed: epoch,
            slices: BTreeMap::from([(slice, self.lists_at(head, epoch)?)]),
            entries: BTreeMap::new(),
        };
        let tables = self.files.values().cloned().collect();
        let version = Arc::new(IndexVersion::from_manifest(&manifest, &tables, Unopened::Missing)?);
        let shown = IndexSnapshot::new(info, epoch, version, self.context.options.walk_bytes());
        self.context.env.blocking(move || shown.checksum(slice)).await
    }

    fn length_of(&self, file: u64) -> Result<u64> {
        let known = self.head.iter().flat_map(|head| &head.files).find(|(f, _)| *f == file);
        let unknown = || Error::unavailable(format!("file {file} was not announced"));
        known.map(|(_, len)| *len).ok_or_else(unknown)
    }

    async fn create(&self, source: u64) -> Result<OpenFile> {
        let context = Arc::clone(&self.context);
        let (ours, blob) = self.context.env.blocking(move || context.files.create_raw()).await?;
        Ok(OpenFile { source, ours, blob: Arc::new(Mutex::new(blob)), bytes: 0, is_torn: false })
    }

    async fn abandon_open(&mut self) -> Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let context = Arc::clone(&self.context);
        self.context.env.blocking(move || context.files.delete(open.ours)).await
    }

    /// The lists of the slice with this node's file numbers, as of an epoch.
    pub(super) fn lists_at(&self, head: &ExportHead, epoch: Epoch) -> Result<SliceLists> {
        let mut lists = unpack(&head.lists)?;
        for group in &mut lists.groups {
            for item in &mut group.items {
                let ours = self.files.get(&item.file.0);
                let missing = || Error::internal(format!("file {} was not received", item.file));
                item.file = ours.ok_or_else(missing)?.0;
                item.epochs.to = item.epochs.to.min(epoch);
            }
            group.items.retain(|item| !item.epochs.is_empty());
            if plant::is(Plant::InstallSkipsBackIndex) && group.columns == Columns::BACK {
                group.items.clear();
            }
        }
        lists.check()?;
        Ok(lists)
    }

    pub(super) fn check(&self, mark: &EpochMark) -> Result<()> {
        let head = self.head.as_ref().filter(|_| self.is_whole());
        let head =
            head.ok_or_else(|| Error::unavailable("the slice is not completely received yet"))?;
        if head.epoch < mark.epoch || head.floor > mark.epoch {
            let (floor, newest, epoch) = (head.floor, head.epoch, mark.epoch);
            let text = format!(
                "the received files have epochs {floor} to {newest}, but not epoch {epoch}"
            );
            return Err(Error::unavailable(text));
        }
        Ok(())
    }
}

impl Drop for ReceivedFiles {
    fn drop(&mut self) {
        self.context.files.retire(std::mem::take(&mut self.files).into_values().collect());
        self.context.files.delete_retired();
        if let Some(open) = self.open.take() {
            drop(open.blob);
            if let Err(error) = self.context.files.delete(open.ours) {
                // The next start finds the file again.
                tracing::warn!(%error, "deleting a received file failed");
            }
        }
    }
}
