//! Target of a move: receives, for each file of a slice, the part with the slice's rows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proto::model::cut::EpochMark;
use proto::model::ids::{Epoch, NodeId, SliceNo};
use proto::plant::{self, Plant};
use proto::rpc::export::{ExportHead, FilePiece};
use proto::{Error, Result};

use crate::edit::packed_lists::unpack;
use crate::edit::part_writer::{PartWriter, SyncedFile, UnsyncedFile};
use crate::file_id::FileId;
use crate::manifest::index_manifest::IndexManifest;
use crate::manifest::lists::SliceLists;
use crate::node::context::EngineContext;
use crate::read::index_snapshot::IndexSnapshot;
use crate::read::index_version::IndexVersion;
use crate::read::slice_fragments::UnopenedPolicy;
use crate::read::snapshot::Snapshot;
use crate::rows::columns::Columns;
use crate::tables::table::Table;

/// The number of bytes between two syncs: large enough that syncs cost little, and small enough
/// that the last sync, which delays the move, is short.
const SYNC_BYTES: u64 = 64 << 20;
/// The largest number of complete files that wait for a sync. Each of them is open.
const UNSYNCED_MAX: usize = 64;

/// The files that the target of a move has received, until they are installed or discarded.
pub struct ReceivedFiles {
    context: Arc<EngineContext>,
    /// The node that sends the files, and whose numbers they have.
    source: NodeId,
    pub(super) head: Option<ExportHead>,
    /// Complete, durable files of this node, by their numbers at the source.
    pub(super) files: BTreeMap<u64, (FileId, Arc<Table>)>,
    /// Complete files that are not synced yet, by their numbers at the source.
    unsynced: BTreeMap<u64, UnsyncedFile>,
    /// The file that is being received. After an error or a cancelled write it is dropped, because
    /// the content of the file is then unknown.
    open: Option<PartWriter>,
    /// Number of bytes received since the last sync.
    unsynced_bytes: u64,
}

/// The result of storing some received bytes: the file in progress and the files that they have
/// completed.
struct StoredPieces {
    open: Option<PartWriter>,
    complete: BTreeMap<u64, UnsyncedFile>,
}

impl ReceivedFiles {
    /// Creates an empty set of files from one source.
    pub(crate) fn new(context: Arc<EngineContext>, source: NodeId) -> Self {
        Self {
            context,
            source,
            head: None,
            files: BTreeMap::new(),
            unsynced: BTreeMap::new(),
            open: None,
            unsynced_bytes: 0,
        }
    }

    /// Returns the node that sends the files.
    pub fn source(&self) -> NodeId {
        self.source
    }

    /// Returns the numbers at the source of the files that are completely received.
    pub fn complete_files(&self) -> Vec<u64> {
        let all: BTreeSet<_> = self.files.keys().chain(self.unsynced.keys()).copied().collect();
        all.into_iter().collect()
    }

    /// Returns the newest description of the slice that the source has sent.
    pub fn head(&self) -> Option<&ExportHead> {
        self.head.as_ref()
    }

    /// Begins another round of sending, with the source's newest description of the slice.
    pub async fn begin_round(&mut self, head: ExportHead) -> Result<()> {
        let before = self.head.as_ref().map(|head| head.opening);
        let mut named: BTreeSet<u64> = head.files.iter().map(|(file, _)| *file).collect();
        if before.is_some_and(|before| before != head.opening) {
            named.clear();
        }
        let gone: Vec<u64> = self.files.keys().filter(|f| !named.contains(f)).copied().collect();
        let gone = gone.into_iter().filter_map(|file| self.files.remove(&file)).collect();
        self.context.files.retire(gone);
        self.head = Some(head);
        let (open, unsynced) = (self.open.take(), std::mem::take(&mut self.unsynced));
        let (kept, gone): (BTreeMap<_, _>, BTreeMap<_, _>) =
            unsynced.into_iter().partition(|(file, _)| named.contains(file));
        self.unsynced = kept;
        self.context.env.blocking(move || drop((open, gone))).await;
        Ok(())
    }

    /// Stores received byte ranges of files together on one thread, in the order in which the
    /// source sent them.
    pub async fn store_pieces(&mut self, pieces: Vec<FilePiece>) -> Result<()> {
        let mut lengths = BTreeMap::new();
        for piece in &pieces {
            if self.files.contains_key(&piece.file) || self.unsynced.contains_key(&piece.file) {
                let what = format!("file {} was sent again", piece.file);
                return Err(Error::unavailable(what));
            }
            lengths.insert(piece.file, self.length_of(piece.file)?);
            self.unsynced_bytes += piece.bytes.len() as u64;
        }
        let is_sync_due = self.unsynced_bytes >= SYNC_BYTES;
        let (context, open) = (Arc::clone(&self.context), self.open.take());
        let work = move || {
            let mut stored = StoredPieces { open, complete: BTreeMap::new() };
            let all = pieces.iter().try_for_each(|piece| {
                stored.store(&context, piece, lengths.get(&piece.file).copied().unwrap_or(0))
            });
            let all = all.and_then(|()| match &mut stored.open {
                Some(open) if is_sync_due => open.sync(),
                _ => Ok(()),
            });
            if all.is_err() {
                stored.open = None;
            }
            (stored, all)
        };
        let (stored, all) = self.context.env.blocking(work).await;
        self.open = stored.open;
        self.unsynced.extend(stored.complete);
        all.map_err(|error| error.context("storing a file of a move"))?;
        match is_sync_due || self.unsynced.len() >= UNSYNCED_MAX {
            true => self.sync().await,
            false => Ok(()),
        }
    }

    /// Makes all complete files durable.
    pub async fn sync(&mut self) -> Result<()> {
        self.unsynced_bytes = 0;
        if self.unsynced.is_empty() {
            return Ok(());
        }
        let unsynced = std::mem::take(&mut self.unsynced);
        let work = move || {
            let mut synced = Vec::with_capacity(unsynced.len());
            let all = unsynced.into_iter().try_for_each(|(source, file)| {
                synced.push((source, file.sync()?));
                Ok(())
            });
            (synced, all)
        };
        let (synced, all): (Vec<(u64, SyncedFile)>, Result<()>) =
            self.context.env.blocking(work).await;
        let synced =
            synced.into_iter().filter_map(|(source, file)| Some((source, file.into_file()?)));
        self.files.extend(synced);
        all.map_err(|error| error.context("syncing the files of a move"))
    }

    /// Returns true if all files of the last description were received and are durable.
    pub fn is_complete(&self) -> bool {
        let mut named = self.head.iter().flat_map(|head| &head.files);
        self.head.is_some() && named.all(|(file, _)| self.files.contains_key(file))
    }

    /// Returns how many bytes of the files in the newest description are still to be received.
    pub fn missing_bytes(&self) -> u64 {
        let is_here = |file| self.files.contains_key(file) || self.unsynced.contains_key(file);
        let named = self.head.iter().flat_map(|head| &head.files);
        named.filter(|(file, _)| !is_here(file)).map(|(_, len)| len).sum()
    }

    /// Returns the checksum and the number of the slice's entries, at the newest epoch of the
    /// received files.
    pub async fn checksum(&self, slice: SliceNo) -> Result<(u64, u64)> {
        let head = self.head.as_ref().filter(|_| self.is_complete());
        let head =
            head.ok_or_else(|| Error::unavailable("the slice is not completely received yet"))?;
        let (info, epoch) = (Arc::clone(&head.info), head.epoch);
        let manifest = IndexManifest {
            info: Arc::clone(&info),
            floor: Some(head.floor),
            points: Vec::new(),
            arrived: BTreeMap::new(),
            flushed: epoch,
            slices: BTreeMap::from([(slice, self.local_lists_at(head, epoch)?)]),
            entries: BTreeMap::new(),
        };
        let tables = self.files.values().cloned().collect();
        let version =
            Arc::new(IndexVersion::from_manifest(&manifest, &tables, UnopenedPolicy::Missing)?);
        let shown = IndexSnapshot::new(info, epoch, version, self.context.options.walk_bytes());
        self.context.env.blocking(move || shown.checksum(slice)).await
    }

    /// Returns the announced length of a file's part; an error if the source did not announce the
    /// file.
    fn length_of(&self, file: u64) -> Result<u64> {
        let known = self.head.iter().flat_map(|head| &head.files).find(|(f, _)| *f == file);
        let unknown = || Error::unavailable(format!("file {file} was not announced"));
        known.map(|(_, len)| *len).ok_or_else(unknown)
    }

    /// Returns the lists of the slice with this node's file numbers, as of an epoch.
    pub(super) fn local_lists_at(&self, head: &ExportHead, epoch: Epoch) -> Result<SliceLists> {
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

    /// Returns an error unless the received files are complete and can be read at the epoch of
    /// `mark`.
    pub(super) fn check_readable_at(&self, mark: &EpochMark) -> Result<()> {
        let head = self.head.as_ref().filter(|_| self.is_complete());
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
    }
}

impl StoredPieces {
    /// Stores received bytes of a file's part, which is `len` bytes long in total.
    fn store(&mut self, context: &Arc<EngineContext>, piece: &FilePiece, len: u64) -> Result<()> {
        let (file, offset) = (piece.file, piece.offset);
        if !piece.is_whole() {
            let text =
                format!("the piece of file {file} at offset {offset} was damaged in transit");
            return Err(Error::unavailable(text));
        }
        let open = self.open.take().filter(|open| open.source == file);
        let mut open = open.unwrap_or_else(|| PartWriter::new(context, file, len));
        match open.write_piece(piece)? {
            true => drop(self.complete.insert(file, open.finish()?)),
            false => self.open = Some(open),
        }
        Ok(())
    }
}
