//! The fragments of a node as files: which numbers are given out, what is open, and what may go.
//!
//! A file that no list names any more is deleted when its last reader has gone: until then the reader's
//! `Arc` keeps it alive. What a crash leaves behind unnamed is deleted when the node starts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

use bytes::Bytes;
use proto::env::{Env, File, OpenMode};
use proto::model::ids::{BucketId, Generation, IndexId};
use proto::{Error, Result};

use crate::file_id::FileId;
use crate::files::group_writer::GroupWriter;
use crate::files::pacing::Pacer;
use crate::files::pending::{Pending, deletable};
use crate::fragment::cache::BlockCache;
use crate::fragment::compression::Compression;
use crate::fragment::reader::Fragment;
use crate::fragment::writer::{FragmentOptions, FragmentWriter};
use crate::layout;
use crate::lock::lock;
use crate::log::lsn::Lsn;
use crate::manifest;
use crate::manifest::index_manifest::IndexManifest;
use crate::manifest::node_manifest::NodeManifest;
use crate::options::StoreOptions;
use crate::rows::columns::Columns;
use crate::rows::table_builder::TableBuilder;
use crate::tables::table::Table;

/// A new fragment, which no manifest names yet.
#[derive(Clone, Debug)]
pub struct Written {
    /// Its number.
    pub file: FileId,
    /// The columns of its group.
    pub columns: Columns,
    /// Its rows.
    pub table: Arc<Table>,
}

/// The fragments of a node.
pub struct Files {
    env: Env,
    dir: PathBuf,
    cache: Arc<BlockCache>,
    compression: Compression,
    /// Holds compactions up.
    pub pacer: Pacer,
    pending: Mutex<Pending>,
    retired: Mutex<Vec<(FileId, Weak<Table>)>>,
    doubts: Mutex<BTreeMap<(IndexId, Generation), Doubt>>,
}

/// A manifest on disk may be a newer one than that of which memory is: a crash now would bring back what it says, and
/// of the epochs since only those that the log has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// The bucket of its index.
    pub bucket: BucketId,
    /// From here on the log has the epochs that the newer manifest does not.
    pub lsn: Lsn,
}

/// Why a manifest was not replaced.
pub struct NotReplaced {
    /// Why.
    pub error: Error,
    /// On disk may be either of them, also after a crash; otherwise it is the one before.
    pub unsure: bool,
}

impl Files {
    /// The files of a node's directory.
    pub fn new(env: &Env, dir: &Path, options: &StoreOptions) -> Self {
        Self {
            env: env.clone(),
            dir: dir.into(),
            cache: Arc::new(BlockCache::new(options.cache_bytes())),
            compression: options.compression,
            pacer: Pacer::new(env, options.compaction_bytes_per_s),
            pending: Mutex::default(),
            retired: Mutex::default(),
            doubts: Mutex::default(),
        }
    }

    /// No number up to this one is given out.
    pub fn skip_to(&self, used: FileId) {
        lock(&self.pending).skip_to(used);
    }

    /// The next number.
    pub fn next(&self) -> FileId {
        lock(&self.pending).next()
    }

    /// The oldest file that may still come into a manifest.
    pub fn oldest_pending(&self) -> FileId {
        lock(&self.pending).oldest()
    }

    /// Opens a fragment.
    pub fn open(&self, file: FileId) -> Result<Arc<Table>> {
        let open = Fragment::open(&*self.env.fs, &self.dir, file.0, &self.cache)?;
        Ok(Arc::new(Table::from_fragment(open)))
    }

    /// Writes a new fragment for each of some groups and syncs them, but for their names; those that
    /// would have no rows are left out. `filter_rows`: with a filter for so many keys. After an error
    /// nothing of them is left.
    pub fn write(
        &self,
        groups: &[Columns],
        filter_rows: Option<u64>,
        rows: impl FnOnce(&mut GroupWriter) -> Result<()>,
    ) -> Result<Vec<Written>> {
        let mut out = GroupWriter::default();
        let begun = groups.iter().try_for_each(|columns| {
            let (file, builder) = self.create(*columns, filter_rows)?;
            out.add(*columns, file, builder);
            Ok(())
        });
        let files = out.files();
        let finished = begun.and_then(|()| rows(&mut out)).and_then(|()| out.finish());
        let finished = finished.inspect_err(|_| {
            // On a full disk what could be written must not stay; the error at hand says more.
            files.iter().for_each(|file| drop(self.delete(*file)));
        })?;
        let mut written = Vec::with_capacity(finished.len());
        for (file, columns, table) in finished {
            match table {
                Some(table) => written.push(Written { file, columns, table: Arc::new(table) }),
                None => self.delete(file)?,
            }
        }
        Ok(written)
    }

    fn create(
        &self,
        columns: Columns,
        filter_rows: Option<u64>,
    ) -> Result<(FileId, TableBuilder<FragmentWriter>)> {
        let file = lock(&self.pending).begin();
        let options =
            FragmentOptions { compression: self.compression, filter_rows, columns: columns.0 };
        let writer =
            FragmentWriter::create(&*self.env.fs, &self.dir, file.0, &self.cache, &options);
        let writer = writer.inspect_err(|_| self.settle([file]))?;
        Ok((file, TableBuilder::new(writer)))
    }

    /// A new file, to be filled with the bytes of another node's fragment.
    pub fn create_raw(&self) -> Result<(FileId, Arc<dyn File>)> {
        let file = lock(&self.pending).begin();
        let opened = self.open_raw(file, OpenMode::Create).inspect_err(|_| self.settle([file]))?;
        Ok((file, opened))
    }

    /// Bytes of a file as they stand there.
    pub fn read_raw(&self, file: FileId, offset: u64, len: usize) -> Result<Bytes> {
        let mut bytes = vec![0; len];
        let read = self.open_raw(file, OpenMode::Read)?.read_exact_at(&mut bytes, offset);
        read.map_err(|error| Error::from(error).context(format!("reading fragment {file}")))?;
        Ok(bytes.into())
    }

    /// How many bytes a file has.
    pub fn raw_len(&self, file: FileId) -> Result<u64> {
        let len = self.open_raw(file, OpenMode::Read)?.len();
        len.map_err(|error| Error::from(error).context(format!("fragment {file}")))
    }

    fn open_raw(&self, file: FileId, mode: OpenMode) -> Result<Arc<dyn File>> {
        let path = layout::fragment_path(&self.dir, file.0);
        let opened = self.env.fs.open(&path, mode);
        opened.map_err(|error| Error::from(error).context(format!("opening {}", path.display())))
    }

    /// Makes the names of finished fragments durable.
    pub fn sync_names(&self) -> Result<()> {
        let dir = layout::fragment_dir(&self.dir);
        self.env.fs.sync_dir(&dir).map_err(|error| {
            Error::from(error).context(format!("syncing the directory {}", dir.display()))
        })
    }

    /// Makes a manifest durable in the place of an earlier one. What it names is not pending any more.
    pub fn write_manifest(&self, manifest: &IndexManifest) -> Result<()> {
        let dir = layout::manifest_dir(&self.dir);
        let written = manifest::write_index(&*self.env.fs, &dir, manifest);
        match &written {
            Ok(()) => self.is_written(manifest),
            Err(_) => self.settle(manifest.files()),
        }
        written
    }

    /// As [`Self::write_manifest`], where memory is as `before` says until this is done, `None` if nothing of the
    /// index is here. After an error `before` is durable again; where that fails too, the log is not let go of
    /// from `lsn` on until it is.
    pub fn replace_manifest(
        &self,
        manifest: &IndexManifest,
        before: Option<&IndexManifest>,
        lsn: Lsn,
    ) -> std::result::Result<(), NotReplaced> {
        let (dir, info) = (layout::manifest_dir(&self.dir), &manifest.info);
        let written = manifest::write_index(&*self.env.fs, &dir, manifest);
        let Err(error) = written else {
            self.is_written(manifest);
            return Ok(());
        };
        if let Err(again) = self.put_back_manifest(info.id, info.generation, before) {
            tracing::warn!(error = %again, index = %info.id, "putting a manifest back");
            self.settle(manifest.files());
            let mut doubts = lock(&self.doubts);
            let doubt = doubts.entry((info.id, info.generation));
            let doubt = doubt.or_insert(Doubt { bucket: info.bucket, lsn });
            doubt.lsn = doubt.lsn.min(lsn);
            return Err(NotReplaced { error, unsure: true });
        }
        Err(NotReplaced { error, unsure: false })
    }

    /// Makes sure that the manifest of an index is as it was, also where it may have been replaced.
    pub fn put_back_manifest(
        &self,
        index: IndexId,
        generation: Generation,
        before: Option<&IndexManifest>,
    ) -> Result<()> {
        let (fs, dir) = (&*self.env.fs, layout::manifest_dir(&self.dir));
        let Some(before) = before else { return self.remove_manifest(index, generation) };
        // On a full disk it could not be written again.
        match manifest::read_index(fs, &dir, index, generation)?.as_ref() == Some(before) {
            true => fs
                .sync_dir(&dir)
                .map_err(|error| Error::from(error).context("syncing manifests"))?,
            false => manifest::write_index(fs, &dir, before)?,
        }
        lock(&self.doubts).remove(&(index, generation));
        Ok(())
    }

    /// The indexes whose manifest on disk may say what is not in memory.
    pub fn doubts(&self) -> Vec<(IndexId, Generation, Doubt)> {
        let doubts = lock(&self.doubts);
        doubts.iter().map(|((index, generation), doubt)| (*index, *generation, *doubt)).collect()
    }

    fn is_written(&self, manifest: &IndexManifest) {
        lock(&self.doubts).remove(&(manifest.info.id, manifest.info.generation));
        self.settle(manifest.files());
    }

    fn settle(&self, files: impl IntoIterator<Item = FileId>) {
        let mut pending = lock(&self.pending);
        files.into_iter().for_each(|file| pending.settle(file));
    }

    /// Makes the node manifest durable in the place of an earlier one.
    pub fn write_node_manifest(&self, manifest: &NodeManifest) -> Result<()> {
        manifest::write_node(&*self.env.fs, &layout::manifest_dir(&self.dir), manifest)
    }

    /// Removes the manifest of an index for good.
    pub fn remove_manifest(&self, index: IndexId, generation: Generation) -> Result<()> {
        let dir = layout::manifest_dir(&self.dir);
        manifest::remove_index(&*self.env.fs, &dir, index, generation)?;
        lock(&self.doubts).remove(&(index, generation));
        Ok(())
    }

    /// Deletes some tables that nothing on disk names any more, each when its last reader has gone.
    pub fn retire(&self, tables: Vec<(FileId, Arc<Table>)>) {
        self.settle(tables.iter().map(|(file, _)| *file));
        let weak = tables.into_iter().map(|(file, table)| (file, Arc::downgrade(&table)));
        lock(&self.retired).extend(weak);
    }

    /// The same of fragments that were written and will not be named.
    pub fn discard(&self, written: Vec<Written>) {
        self.retire(written.into_iter().map(|new| (new.file, new.table)).collect());
    }

    /// Deletes what was retired and is no longer read.
    pub fn collect(&self) {
        let unread: Vec<FileId> = {
            let mut retired = lock(&self.retired);
            let gone = retired.iter().filter(|(_, table)| table.strong_count() == 0);
            let unread: Vec<FileId> = gone.map(|(file, _)| *file).collect();
            retired.retain(|(_, table)| table.strong_count() > 0);
            // What is retired is in no list.
            deletable(&unread, &BTreeSet::new(), &lock(&self.pending))
        };
        for file in unread {
            if let Err(error) = self.delete(file) {
                // The next start finds it again.
                tracing::warn!(%error, "deleting a fragment");
            }
        }
    }

    /// Deletes those files of the directory that are neither named nor pending.
    pub fn delete_unnamed(&self, listed: &[FileId], named: &BTreeSet<FileId>) -> Result<()> {
        let garbage = deletable(listed, named, &lock(&self.pending));
        garbage.into_iter().try_for_each(|file| self.delete(file))
    }

    /// Deletes a file.
    pub fn delete(&self, file: FileId) -> Result<()> {
        self.settle([file]);
        let path = layout::fragment_path(&self.dir, file.0);
        match self.env.fs.remove_file(&path) {
            // An earlier try came as far as here.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(|error| {
                Error::from(error).context(format!("deleting {}", path.display()))
            }),
        }
    }

    /// The files in the directory, ascending.
    pub fn list(&self) -> Result<Vec<FileId>> {
        let dir = layout::fragment_dir(&self.dir);
        let names = self.env.fs.list(&dir).map_err(|error| {
            Error::from(error).context(format!("reading the directory {}", dir.display()))
        })?;
        Ok(names.iter().filter_map(|path| layout::fragment_id(path)).map(FileId).collect())
    }

    /// Bytes that the block cache holds.
    pub fn cache_bytes(&self) -> u64 {
        self.cache.memory_bytes()
    }
}
