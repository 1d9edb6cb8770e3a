//! The target's end of a move: takes a slice's files in.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proto::env::File;
use proto::model::cut::EpochMark;
use proto::model::ids::{Epoch, NodeId, SliceNo};
use proto::plant::{self, Plant};
use proto::rpc::export::{ExportHead, FilePiece};
use proto::{Error, Result};

use crate::edit::packed_lists::unpack;
use crate::file_id::FileId;
use crate::manifest::index_manifest::IndexManifest;
use crate::manifest::lists::SliceLists;
use crate::node::context::Inner;
use crate::read::index_snapshot::SlotSnapshot;
use crate::read::index_version::Visible;
use crate::read::slice_fragments::Unopened;
use crate::read::snapshot::Snapshot;
use crate::rows::columns::Columns;
use crate::tables::table::Table;

/// What the target of a move has received, until it is installed or given up.
pub struct Received {
    inner: Arc<Inner>,
    /// Whose numbers the files have.
    source: NodeId,
    pub(super) head: Option<ExportHead>,
    /// Whole files: the source's number, ours.
    pub(super) files: BTreeMap<u64, (FileId, Arc<Table>)>,
    open: Option<OpenFile>,
}

/// A file that is being received.
struct OpenFile {
    source: u64,
    ours: FileId,
    file: Arc<dyn File>,
    bytes: u64,
}

impl Received {
    /// Room for the files of one source.
    pub(crate) fn new(inner: Arc<Inner>, source: NodeId) -> Self {
        Self { inner, source, head: None, files: BTreeMap::new(), open: None }
    }

    /// Whose files these are.
    pub fn source(&self) -> NodeId {
        self.source
    }

    /// The source's numbers of the files that are here.
    pub fn have(&self) -> Vec<u64> {
        self.files.keys().copied().collect()
    }

    /// What the source said last.
    pub fn head(&self) -> Option<&ExportHead> {
        self.head.as_ref()
    }

    /// A round of the source begins.
    pub async fn begin(&mut self, head: ExportHead) -> Result<()> {
        let before = self.head.as_ref().map(|head| head.opening);
        let mut named: BTreeSet<u64> = head.files.iter().map(|(file, _)| *file).collect();
        if before.is_some_and(|before| before != head.opening) {
            named.clear();
        }
        let gone: Vec<u64> = self.files.keys().filter(|f| !named.contains(f)).copied().collect();
        let gone = gone.into_iter().filter_map(|file| self.files.remove(&file)).collect();
        self.inner.files.retire(gone);
        self.head = Some(head);
        self.abandon_open().await
    }

    /// Stores a piece; the last one of a file makes the file durable.
    pub async fn piece(&mut self, piece: FilePiece) -> Result<()> {
        if !piece.is_whole() {
            let (file, offset) = (piece.file, piece.offset);
            let text = format!("a piece of file {file} at {offset} was changed on its way");
            return Err(Error::unavailable(text));
        }
        let len = self.length_of(piece.file)?;
        if self.open.as_ref().is_none_or(|open| open.source != piece.file) {
            self.abandon_open().await?;
            self.open = Some(self.create(piece.file).await?);
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        let end = piece.offset + piece.bytes.len() as u64;
        if piece.offset != open.bytes || end > len {
            let text =
                format!("file {}: a piece at {} is out of its order", piece.file, piece.offset);
            return Err(Error::unavailable(text));
        }
        let (file, whole, inner) = (Arc::clone(&open.file), end == len, Arc::clone(&self.inner));
        let (piece_of, ours) = (open.source, open.ours);
        open.bytes = end;
        let work = move || -> Result<Option<Arc<Table>>> {
            file.write_all_at(&piece.bytes, piece.offset)?;
            if !whole {
                return Ok(None);
            }
            file.sync()?;
            let table = inner.files.open(ours)?;
            // Damage on the source's disk must not become the only copy.
            (0..table.index.blocks()).try_for_each(|block| table.block(block).map(drop))?;
            Ok(Some(table))
        };
        let stored = self.inner.env.blocking(work).await;
        let stored = stored.map_err(|error| error.context("storing a file of a move"))?;
        if let Some(table) = stored {
            self.open = None;
            self.files.insert(piece_of, (ours, table));
        }
        Ok(())
    }

    /// Is all here that the last head names?
    pub fn is_whole(&self) -> bool {
        self.head.is_some() && self.missing().next().is_none()
    }

    /// Bytes of what the last head names and what is not here.
    pub fn missing_bytes(&self) -> u64 {
        self.missing().map(|(_, len)| len).sum()
    }

    fn missing(&self) -> impl Iterator<Item = &(u64, u64)> {
        let named = self.head.iter().flat_map(|head| &head.files);
        named.filter(|(file, _)| !self.files.contains_key(file))
    }

    /// The checksum of what the slice shows at the newest epoch that the source has sent, and how many entries that is.
    pub async fn checksum(&self, slice: SliceNo) -> Result<(u64, u64)> {
        let head = self.head.as_ref().filter(|_| self.is_whole());
        let head =
            head.ok_or_else(|| Error::unavailable("the slice is not here as a whole yet"))?;
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
        let visible = Arc::new(Visible::of(&manifest, &tables, Unopened::Missing)?);
        let shown = SlotSnapshot::new(info, epoch, visible, self.inner.options.walk_bytes());
        self.inner.env.blocking(move || shown.checksum(slice)).await
    }

    fn length_of(&self, file: u64) -> Result<u64> {
        let known = self.head.iter().flat_map(|head| &head.files).find(|(f, _)| *f == file);
        let unknown = || Error::unavailable(format!("file {file} was not announced"));
        known.map(|(_, len)| *len).ok_or_else(unknown)
    }

    async fn create(&self, source: u64) -> Result<OpenFile> {
        let inner = Arc::clone(&self.inner);
        let (ours, file) = self.inner.env.blocking(move || inner.files.create_raw()).await?;
        Ok(OpenFile { source, ours, file, bytes: 0 })
    }

    async fn abandon_open(&mut self) -> Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let inner = Arc::clone(&self.inner);
        self.inner.env.blocking(move || inner.files.delete(open.ours)).await
    }

    /// The lists with our numbers, as an epoch shows them.
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
            head.ok_or_else(|| Error::unavailable("the slice is not here as a whole yet"))?;
        if head.epoch < mark.epoch || head.floor > mark.epoch {
            let (floor, newest, epoch) = (head.floor, head.epoch, mark.epoch);
            let text = format!("the files have epochs {floor} to {newest}, not {epoch}");
            return Err(Error::unavailable(text));
        }
        Ok(())
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        self.inner.files.retire(std::mem::take(&mut self.files).into_values().collect());
        self.inner.files.collect();
        if let Some(open) = self.open.take() {
            drop(open.file);
            if let Err(error) = self.inner.files.delete(open.ours) {
                // The next start finds it again.
                tracing::warn!(%error, "deleting a file of a move");
            }
        }
    }
}
