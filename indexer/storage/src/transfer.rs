//! The two ends of a slice move: giving a slice's fragments away as files, and taking them in.
//!
//! The source flushes, so that all epochs up to one are in fragments, and hands out the slice's lists and the
//! files that they name, byte for byte, with all versions that are in them. It can be asked again: what the
//! target has already is not sent a second time, and while a slice is being given away its index is not
//! compacted, so that a later round brings only what was flushed since. Files are known by their numbers, which mean
//! something only as long as the source has its store open: every opening has a random mark, and another mark than
//! before lets go of all that was received.
//!
//! The target stores each file under a number of its own and checks every piece. It *installs* the slice at an
//! epoch that it has applied, between two epochs: the lists, restricted to that epoch, become the slice's
//! ([`super::arrival`]), and from the next epoch on the slice is fed by the node's own stream. So nothing is applied
//! twice and nothing is missed: what is at or below the epoch comes from the source, what is above from the stream.
//!
//! A floor above the epoch means that the source has let go of what the epoch needs: the target waits for a
//! later one. Files that were received and are in no manifest are deleted when the node starts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use proto::env::File;
use proto::model::cut::EpochMark;
use proto::model::ids::{Epoch, IndexId, NodeId, SliceId, SliceNo};
use proto::model::index::IndexInfo;
use proto::plant::{self, Plant};
use proto::rpc::export::{ExportHead, FilePiece};
use proto::{Error, ErrorCode, Result};

use super::Snapshot;
use super::arrival::{Arrived, ArrivedSlice, Between, Entries, NotInstalled};
use super::edits::count_at;
use super::load_state::LoadState;
use super::manifest::{Columns, FileId, IndexManifest, SliceLists};
use super::slot::{Slot, lock};
use super::store::{FragmentStore, Inner};
use super::table::Table;
use super::versions::Protected;
use super::visible::{SlotSnapshot, Visible};

/// The first byte of packed lists.
const LISTS_VERSION: u8 = 1;

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

/// What the target of a move has received, until it is installed or given up.
pub struct Received {
    inner: Arc<Inner>,
    /// Whose numbers the files have.
    source: NodeId,
    head: Option<ExportHead>,
    /// Whole files: the source's number, ours.
    files: BTreeMap<u64, (FileId, Arc<Table>)>,
    open: Option<OpenFile>,
}

/// Why a slice was not installed; what was received is kept.
pub struct Refused {
    /// Why.
    pub error: Error,
    /// What was received.
    pub received: Received,
}

/// A file that is being received.
struct OpenFile {
    source: u64,
    ours: FileId,
    file: Arc<dyn File>,
    bytes: u64,
}

impl Received {
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
        let visible = Arc::new(Visible::of(&manifest, &tables, LoadState::Active)?);
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
    fn lists_at(&self, head: &ExportHead, epoch: Epoch) -> Result<SliceLists> {
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

fn pack(lists: &SliceLists) -> Result<Bytes> {
    let packed = postcard::to_extend(lists, vec![LISTS_VERSION]);
    packed.map(Bytes::from).map_err(|error| Error::internal(error.to_string()))
}

fn unpack(bytes: &[u8]) -> Result<SliceLists> {
    match bytes.split_first() {
        Some((&LISTS_VERSION, body)) => postcard::from_bytes(body).map_err(|error| {
            Error::new(ErrorCode::Corrupt, format!("the lists of a slice: {error}"))
        }),
        _ => Err(Error::new(ErrorCode::Version, "lists of a slice of another version")
            .with_hint("run one version of sextant everywhere")),
    }
}

impl FragmentStore {
    /// The indexes of which slices are being given away: they are not compacted meanwhile.
    pub fn keep_files_of(&self, leaving: &BTreeSet<IndexId>) {
        for slot in self.inner.state.slots() {
            slot.keeps_files.store(leaving.contains(&slot.info.id), Ordering::Relaxed);
        }
    }

    /// A slice's fragments, with all epochs up to the newest one applied.
    pub async fn export(&self, slice: SliceId) -> Result<Export> {
        let slot = self.slot(slice.index, slice.generation)?;
        self.inner.wait_loaded(slice.index).await?;
        slot.check_readable()?;
        let inner = Arc::clone(&self.inner);
        let work = move || {
            let epoch = inner.committed(slot.info.bucket);
            let (head, tables) = slot.export(slice.slice, epoch, &inner)?;
            Ok(Export { head, tables, inner })
        };
        self.inner.env.blocking(work).await
    }

    /// Room for the files of one source.
    pub fn receive(&self, source: NodeId) -> Received {
        let (inner, files) = (Arc::clone(&self.inner), BTreeMap::new());
        Received { inner, source, head: None, files, open: None }
    }

    /// Shows a received slice from an epoch on, which must be the newest one applied to its bucket, and no
    /// epoch may be applied meanwhile. `Unavailable` where another round of the source is needed first.
    pub async fn install(
        &self,
        received: Received,
        slice: SliceId,
        info: Arc<IndexInfo>,
        mark: &EpochMark,
    ) -> std::result::Result<(), Box<Refused>> {
        if let Err(error) = received.check(mark) {
            return Err(Box::new(Refused { error, received }));
        }
        // What is at or below the epoch must not be asked of the stream again after a crash.
        if let Err(error) = self.inner.log.sync().await {
            return Err(Box::new(Refused { error, received }));
        }
        let inner = Arc::clone(&self.inner);
        let at = inner.behind(mark.bucket, mark.epoch).await;
        let work = move || {
            let alone = inner.state.alone(info.bucket);
            let _alone = lock(&alone);
            let mut received = received;
            match inner.install(&received, slice, info, at) {
                Ok(()) => {
                    received.files.clear();
                    Ok(())
                }
                Err(NotInstalled::For(error)) => Err(Box::new(Refused { error, received })),
                Err(NotInstalled::Unsure(error)) => {
                    // The manifest on disk may name the files: they stay, and the next start sorts that out.
                    received.files.clear();
                    Err(Box::new(Refused { error, received }))
                }
            }
        };
        self.inner.env.blocking(work).await
    }

    /// Counts what an installed slice shows: until then the source's count is told.
    pub async fn count_installed(&self, slice: SliceId, epoch: Epoch, told: u64) -> Result<()> {
        let slot = self.slot(slice.index, slice.generation)?;
        let work = move || -> Result<()> {
            let counted = count_at(slot.visible.load().entries(slice.slice), epoch)?;
            let mut writer = slot.writer();
            if writer.uncounted.remove(&slice.slice) {
                *writer.entries.entry(slice.slice).or_default() += counted as i64 - told as i64;
            }
            Ok(())
        };
        self.inner.env.blocking(work).await
    }
}

impl Received {
    fn check(&self, mark: &EpochMark) -> Result<()> {
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

impl Inner {
    fn install(
        &self,
        received: &Received,
        slice: SliceId,
        info: Arc<IndexInfo>,
        at: Between,
    ) -> std::result::Result<(), NotInstalled> {
        let head = received.head.as_ref().ok_or_else(|| Error::internal("nothing was received"))?;
        let lists = received.lists_at(head, at.epoch)?;
        let named: BTreeSet<FileId> = lists.files().collect();
        let tables = received.files.values().filter(|(file, _)| named.contains(file));
        let arrived = ArrivedSlice {
            lists,
            reach: Protected { horizon: head.floor, points: head.points.clone() },
            entries: Entries::Told(head.entries),
        };
        let slices = BTreeMap::from([(slice.slice, arrived)]);
        self.files.sync_names()?;
        self.take_in(Arrived { slices, tables: tables.cloned().collect(), info }, at)?;
        // Fragments that hold nothing of the epoch's past are in no list.
        let unnamed = received.files.values().filter(|(file, _)| !named.contains(file)).cloned();
        self.files.retire(unnamed.collect());
        Ok(())
    }
}

impl Slot {
    fn export(
        &self,
        slice: SliceNo,
        epoch: Epoch,
        Inner { files, opening, .. }: &Inner,
    ) -> Result<(ExportHead, BTreeMap<FileId, Arc<Table>>)> {
        self.flush(files)?;
        let structure = lock(&self.structure);
        let manifest = &structure.manifest;
        let (Some(lists), Some(floor)) = (manifest.slices.get(&slice), manifest.floor) else {
            let text = format!("slice {slice} of index {} is not here", self.info.id);
            return Err(Error::new(ErrorCode::SliceMoved, text));
        };
        let mut tables = BTreeMap::new();
        let mut lengths = BTreeMap::new();
        for file in lists.files() {
            let table = structure.tables.get(&file).cloned();
            let table =
                table.ok_or_else(|| Error::internal(format!("fragment {file} is missing")))?;
            lengths.insert(file.0, files.raw_len(file)?);
            tables.insert(file, table);
        }
        let on_disk = Protected { horizon: floor, points: manifest.points.clone() };
        let shown = self.visible.load().reach_of(slice);
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
}

#[cfg(test)]
#[path = "transfer_tests.rs"]
pub(super) mod tests;
