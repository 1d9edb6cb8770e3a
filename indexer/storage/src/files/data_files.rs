//! Fragments and manifests of a node as files: numbers, openings, publication, deletion.
//!
//! A file that no list names any more is deleted after its last reader has dropped the `Arc` of its
//! table. Files that a crash leaves without a name in any manifest are deleted at the next start.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

use proto::env::Env;
use proto::lock::lock;
use proto::model::ids::{BucketId, LocalIndexId};
use proto::{Error, Result};

use crate::file_id::FileId;
use crate::files::group_writer::{Durability, GroupFragment, GroupWriter};
use crate::files::named_files::NamedFiles;
use crate::files::pacing::Pacer;
use crate::files::pending::{PendingFiles, deletable};
use crate::fragment::blob_store::BlobStore;
use crate::fragment::cache::BlockCache;
use crate::fragment::compression::Compression;
use crate::fragment::file_blobs::FileBlobs;
use crate::fragment::reader::Fragment;
use crate::fragment::writer::{FragmentOptions, FragmentWriter};
use crate::log::lsn::Lsn;
use crate::manifest::index_manifest::IndexManifest;
use crate::manifest::node_manifest::NodeManifest;
use crate::options::StoreOptions;
use crate::rows::columns::Columns;
use crate::rows::table_builder::TableBuilder;
use crate::tables::table::Table;
use crate::{layout, manifest};

/// A new fragment that no manifest names yet.
#[derive(Clone, Debug)]
pub struct NewFragment {
    /// File number.
    pub file: FileId,
    /// Columns of its group.
    pub columns: Columns,
    /// The rows of the fragment.
    pub table: Arc<Table>,
}

/// The files of a node.
pub struct DataFiles {
    env: Env,
    dir: PathBuf,
    blobs: Arc<dyn BlobStore>,
    cache: Arc<BlockCache>,
    /// The limiter of the write rate of compactions.
    pub pacer: Pacer,
    pending: Mutex<PendingFiles>,
    retired: Mutex<Vec<(FileId, Weak<Table>)>>,
    doubts: Mutex<BTreeMap<LocalIndexId, UncertainManifest>>,
    numbers: Mutex<ManifestNumbers>,
    named: Mutex<NamedFiles>,
}

/// Numbers of the index manifests on disk; each write of a manifest gets the next number.
#[derive(Default)]
struct ManifestNumbers {
    /// The largest number that a manifest of this node has had.
    last: u64,
    /// For each index, the number of the manifest that is durable for certain. If a later write
    /// has failed, a newer manifest may be on disk.
    durable: BTreeMap<LocalIndexId, u64>,
}

/// Uncertainty about which manifest of an index is durable: the manifest on disk may be newer than
/// the one in memory. A crash would then restore the newer manifest, and the log must still have
/// the later epochs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UncertainManifest {
    /// The bucket that the index belongs to.
    pub bucket: BucketId,
    /// The LSN from which the log has the epochs that the newer manifest lacks.
    pub lsn: Lsn,
}

/// An error that occurred when an index manifest was replaced.
pub struct ManifestNotReplaced {
    /// Cause.
    pub error: Error,
    /// True if either manifest may be on disk, also after a crash. False if the earlier manifest
    /// is certainly on disk.
    pub is_uncertain: bool,
}

impl DataFiles {
    /// Creates the access to the files of a node's directory.
    pub fn new(env: &Env, dir: &Path, options: &StoreOptions) -> Self {
        Self {
            env: env.clone(),
            dir: dir.into(),
            blobs: Arc::new(FileBlobs::new(&env.fs, dir, options.open_files_max)),
            cache: Arc::new(BlockCache::new(options.cache_bytes())),
            pacer: Pacer::new(env, options.compaction_bytes_per_s),
            pending: Mutex::default(),
            retired: Mutex::default(),
            doubts: Mutex::default(),
            numbers: Mutex::default(),
            named: Mutex::default(),
        }
    }

    /// Continues the numbers of the index manifests that were found on disk. Numbers that the node
    /// manifest mentions are not used again.
    pub fn restore_numbers(&self, found: BTreeMap<LocalIndexId, u64>, used: &NodeManifest) {
        let last = found.values().chain(used.index_numbers.values()).max();
        let last = last.copied().unwrap_or_default();
        *lock(&self.numbers) = ManifestNumbers { last, durable: found };
    }

    /// Records the file names that the manifests found on disk contain.
    pub fn restore_names(&self, manifests: &[IndexManifest]) {
        let mut named = lock(&self.named);
        manifests.iter().for_each(|manifest| named.note_durable(manifest));
    }

    /// Returns the number of each index manifest, to be stored in the node manifest.
    pub fn index_numbers(&self) -> BTreeMap<LocalIndexId, u64> {
        lock(&self.numbers).durable.clone()
    }

    /// Writes an index manifest with the next number, and records its number and the files that it
    /// names.
    fn write_index(&self, manifest: &IndexManifest) -> Result<()> {
        let number = {
            let mut numbers = lock(&self.numbers);
            numbers.last += 1;
            numbers.last
        };
        let dir = layout::manifest_dir(&self.dir);
        lock(&self.named).note_write_begun(manifest);
        manifest::write_index(&*self.env.fs, &dir, manifest, number)?;
        lock(&self.numbers).durable.insert(manifest.info.local_id(), number);
        lock(&self.named).note_durable(manifest);
        Ok(())
    }

    /// Skips all file numbers up to `used`.
    pub fn skip_to(&self, used: FileId) {
        lock(&self.pending).skip_to(used);
    }

    /// Returns the number that the next new file will get.
    pub fn next(&self) -> FileId {
        lock(&self.pending).next()
    }

    /// Returns the oldest file that no manifest names yet and a later manifest may still name.
    pub fn oldest_pending(&self) -> FileId {
        lock(&self.pending).oldest_pending()
    }

    /// Opens a fragment.
    pub fn open(&self, file: FileId) -> Result<Arc<Table>> {
        let open = Fragment::open(&*self.blobs, file.0, &self.cache)?;
        Ok(Arc::new(Table::from_fragment(open)))
    }

    /// Writes a new fragment for each column group and syncs the files, but not their names.
    /// Groups without rows get no fragment. `filter_rows` requests a filter for about that many
    /// keys. After an error no file is left.
    pub fn write(
        &self,
        groups: &[Columns],
        options: (Compression, Option<u64>),
        rows: impl FnOnce(&mut GroupWriter) -> Result<()>,
    ) -> Result<Vec<NewFragment>> {
        self.write_lasting(Durability::Synced, groups, options, rows)
    }

    /// Writes fragments like `write`. `lasting` says whether they must survive a restart; the
    /// other fragments are not synced.
    pub fn write_lasting(
        &self,
        lasting: Durability,
        groups: &[Columns],
        (compression, filter_rows): (Compression, Option<u64>),
        rows: impl FnOnce(&mut GroupWriter) -> Result<()>,
    ) -> Result<Vec<NewFragment>> {
        let options = FragmentOptions { compression, filter_rows, ..FragmentOptions::default() };
        let written = self.write_groups(groups, &options, rows, |out| out.finish(lasting))?;
        let new = |(file, columns, table)| NewFragment { file, columns, table: Arc::new(table) };
        Ok(written.into_iter().map(new).collect())
    }

    /// Writes a fragment for each column group with the function `rows`, and ends each fragment
    /// with the function `end`. After an error no file is left.
    pub(super) fn write_groups<T>(
        &self,
        groups: &[Columns],
        options: &FragmentOptions,
        rows: impl FnOnce(&mut GroupWriter) -> Result<()>,
        end: impl FnOnce(GroupWriter) -> Result<Vec<GroupFragment<T>>>,
    ) -> Result<Vec<(FileId, Columns, T)>> {
        let mut out = GroupWriter::default();
        let begun = groups.iter().try_for_each(|columns| {
            let options = FragmentOptions { columns: columns.0, ..*options };
            let (file, builder) = self.create(&options)?;
            out.add(*columns, file, builder);
            Ok(())
        });
        let files = out.files();
        let ended = begun.and_then(|()| rows(&mut out)).and_then(|()| end(out)).and_then(|ended| {
            let empty = ended.iter().filter(|(_, _, rows)| rows.is_none());
            empty.map(|(file, ..)| *file).try_for_each(|file| self.delete(file)).map(|()| ended)
        });
        let ended = ended.inspect_err(|_| {
            // On a full disk partial files must not stay. Their deletion may fail too, but the first error is the
            // useful one.
            files.iter().for_each(|file| drop(self.delete(*file)));
        })?;
        Ok(ended.into_iter().filter_map(|(file, of, rows)| Some((file, of, rows?))).collect())
    }

    /// Begins a new fragment.
    pub fn create(
        &self,
        options: &FragmentOptions,
    ) -> Result<(FileId, TableBuilder<FragmentWriter>)> {
        let file = lock(&self.pending).begin_file();
        let writer = FragmentWriter::create(&*self.blobs, file.0, &self.cache, options);
        let writer = writer.inspect_err(|_| self.end_pending([file]))?;
        Ok((file, TableBuilder::new(writer)))
    }

    /// Makes the names of finished fragments durable.
    pub fn sync_names(&self) -> Result<()> {
        self.blobs.sync_names().map_err(|error| {
            let what = format!("syncing the directory {}", self.blobs.store_name());
            Error::from(error).context(what)
        })
    }

    /// Writes an index manifest durably, replacing an earlier one. The files that it names are no
    /// longer pending (`files/pending.rs`).
    pub fn write_manifest(&self, manifest: &IndexManifest) -> Result<()> {
        let written = self.write_index(manifest);
        match &written {
            Ok(()) => self.note_written(manifest),
            Err(_) => self.end_pending(manifest.files()),
        }
        written
    }

    /// Writes an index manifest that replaces the manifest `before`; `None` if the index has none.
    /// The caller changes its memory only after success. So after an error, `before` is made
    /// durable again. If that fails too, a doubt is recorded: the log from `lsn` on is retained
    /// until `before` is durable.
    pub fn replace_manifest(
        &self,
        manifest: &IndexManifest,
        before: Option<&IndexManifest>,
        lsn: Lsn,
    ) -> std::result::Result<(), ManifestNotReplaced> {
        let index = manifest.info.local_id();
        let written = self.write_index(manifest);
        let Err(error) = written else {
            self.note_written(manifest);
            return Ok(());
        };
        if let Err(again) = self.put_back_manifest(index, before) {
            tracing::warn!(error = %again, %index, "restoring the previous manifest failed");
            self.end_pending(manifest.files());
            let mut doubts = lock(&self.doubts);
            let bucket = manifest.info.bucket;
            let doubt = doubts.entry(index).or_insert(UncertainManifest { bucket, lsn });
            doubt.lsn = doubt.lsn.min(lsn);
            return Err(ManifestNotReplaced { error, is_uncertain: true });
        }
        Err(ManifestNotReplaced { error, is_uncertain: false })
    }

    /// Makes the manifest `before` the durable one again, even if it was replaced. If `before` is
    /// `None`, removes the manifest.
    pub fn put_back_manifest(
        &self,
        index: LocalIndexId,
        before: Option<&IndexManifest>,
    ) -> Result<()> {
        let (fs, dir) = (&*self.env.fs, layout::manifest_dir(&self.dir));
        let Some(before) = before else { return self.remove_manifest(index) };
        // An unchanged manifest is only synced, since a full disk could not take it again.
        let on_disk = manifest::read_index(fs, &dir, index)?.map(|(manifest, _)| manifest);
        match on_disk.as_ref() == Some(before) {
            true => {
                fs.sync_dir(&dir).map_err(|error| {
                    Error::from(error).context("syncing the directory of manifests")
                })?;
                lock(&self.named).note_durable(before);
            }
            false => self.write_index(before)?,
        }
        lock(&self.doubts).remove(&index);
        Ok(())
    }

    /// Returns the indexes whose manifest on disk may be newer than memory.
    pub fn uncertain_manifests(&self) -> Vec<(LocalIndexId, UncertainManifest)> {
        let doubts = lock(&self.doubts);
        doubts.iter().map(|(index, doubt)| (*index, *doubt)).collect()
    }

    /// Records that a manifest is on disk for certain: its files are no longer pending.
    fn note_written(&self, manifest: &IndexManifest) {
        lock(&self.doubts).remove(&manifest.info.local_id());
        self.end_pending(manifest.files());
    }

    /// Removes files from the list of pending files.
    fn end_pending(&self, files: impl IntoIterator<Item = FileId>) {
        let mut pending = lock(&self.pending);
        files.into_iter().for_each(|file| pending.end_pending(file));
    }

    /// Writes the node manifest durably, replacing an earlier one.
    pub fn write_node_manifest(&self, manifest: &NodeManifest) -> Result<()> {
        manifest::write_node(&*self.env.fs, &layout::manifest_dir(&self.dir), manifest)
    }

    /// Removes the manifest of an index durably.
    pub fn remove_manifest(&self, index: LocalIndexId) -> Result<()> {
        let dir = layout::manifest_dir(&self.dir);
        lock(&self.numbers).durable.remove(&index);
        manifest::remove_index(&*self.env.fs, &dir, index)?;
        lock(&self.named).remove_index(index);
        lock(&self.doubts).remove(&index);
        Ok(())
    }

    /// Protects files of another index from deletion until [`Self::end_reservation`], because the
    /// manifest of `index` will name them too. The caller holds the lock of the lists that name
    /// the files at present.
    pub fn reserve(&self, index: LocalIndexId, files: BTreeSet<FileId>) {
        lock(&self.named).reserve(index, files);
    }

    /// Ends a reservation, after the manifest of the index was written or its write was abandoned.
    pub fn end_reservation(&self, index: LocalIndexId) {
        lock(&self.named).end_reservation(index);
    }

    /// Schedules the deletion of tables that no manifest names any more. Each file is deleted
    /// after the last reader of its table is gone.
    pub fn retire(&self, tables: Vec<(FileId, Arc<Table>)>) {
        self.end_pending(tables.iter().map(|(file, _)| *file));
        let weak = tables.into_iter().map(|(file, table)| (file, Arc::downgrade(&table)));
        lock(&self.retired).extend(weak);
    }

    /// Schedules the deletion of new fragments that no manifest will name.
    pub fn discard(&self, written: Vec<NewFragment>) {
        self.retire(written.into_iter().map(|new| (new.file, new.table)).collect());
    }

    /// Deletes the retired files that have no readers any more and that no other generation of the
    /// index names.
    pub fn delete_retired(&self) {
        let unread: Vec<FileId> = {
            let mut retired = lock(&self.retired);
            let gone = retired.iter().filter(|(_, table)| table.strong_count() == 0);
            let unread: BTreeSet<FileId> = gone.map(|(file, _)| *file).collect();
            let unread: Vec<FileId> = unread.into_iter().collect();
            // The list that has retired a file does not name it any more. Another manifest may still name it, and need not retire the file
            // later: the manifest of a generation that was being made, or one of two manifests of which either may be on disk.
            let named = lock(&self.named).named_among(&unread);
            retired.retain(|(file, table)| table.strong_count() > 0 || named.contains(file));
            deletable(&unread, &named, &lock(&self.pending))
        };
        for file in unread {
            if let Err(error) = self.delete(file) {
                // The next start finds the file again.
                tracing::warn!(%error, "deleting a fragment failed");
            }
        }
    }

    /// Deletes those of the listed files that no manifest names (`named`) and no later manifest
    /// can name.
    pub fn delete_unnamed(&self, listed: &[FileId], named: &BTreeSet<FileId>) -> Result<()> {
        let garbage = deletable(listed, named, &lock(&self.pending));
        garbage.into_iter().try_for_each(|file| self.delete(file))
    }

    /// Deletes a file.
    pub fn delete(&self, file: FileId) -> Result<()> {
        self.end_pending([file]);
        match self.blobs.delete(file.0) {
            // An earlier attempt deleted the file.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            deleted => deleted.map_err(|error| {
                Error::from(error).context(format!("deleting {}", self.blobs.name(file.0)))
            }),
        }
    }

    /// Returns the fragment files in the directory, ascending.
    pub fn list(&self) -> Result<Vec<FileId>> {
        let ids = self.blobs.list().map_err(|error| {
            let what = format!("reading the directory {}", self.blobs.store_name());
            Error::from(error).context(what)
        })?;
        Ok(ids.into_iter().map(FileId).collect())
    }

    /// Returns the memory use of the block cache, in bytes.
    pub fn cache_bytes(&self) -> u64 {
        self.cache.memory_bytes()
    }
}
