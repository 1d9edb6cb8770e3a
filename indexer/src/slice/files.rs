//! The fragments of a node as files: which numbers are given out, what is open, and what may go.
//!
//! A file that no list names any more is deleted when its last reader has gone: until then the reader's
//! `Arc` keeps it alive. What a crash leaves behind unnamed is deleted when the node starts.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

use bytes::Bytes;
use proto::env::{Env, File, OpenMode};
use proto::ids::{Generation, IndexId};
use proto::{Error, Result};

use super::fragment::{BlockCache, Compression, Fragment, FragmentOptions, FragmentWriter};
use super::layout;
use super::manifest::{self, Columns, FileId, IndexManifest, NodeManifest};
use super::slot::lock;
use super::table::{Table, TableBuilder};

/// The fragments of a node.
pub struct Files {
    env: Env,
    dir: PathBuf,
    cache: Arc<BlockCache>,
    compression: Compression,
    next: Mutex<FileId>,
    retired: Mutex<Vec<(FileId, Weak<Table>)>>,
}

impl Files {
    /// The files of a node's directory; `next` is the first number that was never given out.
    pub fn new(env: &Env, dir: &Path, cache_bytes: u64, compression: Compression) -> Self {
        Self {
            env: env.clone(),
            dir: dir.into(),
            cache: Arc::new(BlockCache::new(cache_bytes)),
            compression,
            next: Mutex::new(FileId(1)),
            retired: Mutex::default(),
        }
    }

    /// No number up to this one is given out.
    pub fn skip_to(&self, used: FileId) {
        let mut next = lock(&self.next);
        next.0 = next.0.max(used.0 + 1);
    }

    /// The next number.
    pub fn next(&self) -> FileId {
        *lock(&self.next)
    }

    /// Opens a fragment.
    pub fn open(&self, file: FileId) -> Result<Arc<Table>> {
        Ok(Arc::new(Fragment::open(&*self.env.fs, &self.dir, file.0, &self.cache)?))
    }

    /// Writes a new fragment and syncs it, but for its name; `None` if it would have no rows.
    /// `filter_rows`: with a filter for so many keys. After an error nothing of it is left.
    pub fn write(
        &self,
        columns: Columns,
        filter_rows: Option<u64>,
        rows: impl FnOnce(&mut TableBuilder<FragmentWriter>) -> Result<()>,
    ) -> Result<Option<(FileId, Arc<Table>)>> {
        let (file, mut out) = self.create(columns, filter_rows)?;
        let written = rows(&mut out).and_then(|()| FragmentWriter::finish(out));
        match written {
            Ok(Some(table)) => Ok(Some((file, Arc::new(table)))),
            Ok(None) => self.delete(file).map(|()| None),
            Err(error) => {
                // On a full disk what could be written must not stay; the error at hand says more.
                let _ = self.delete(file);
                Err(error)
            }
        }
    }

    /// Gives out the next number.
    fn number(&self) -> FileId {
        let mut next = lock(&self.next);
        let file = *next;
        next.0 += 1;
        file
    }

    fn create(
        &self,
        columns: Columns,
        filter_rows: Option<u64>,
    ) -> Result<(FileId, TableBuilder<FragmentWriter>)> {
        let file = self.number();
        let options =
            FragmentOptions { compression: self.compression, filter_rows, columns: columns.0 };
        let writer =
            FragmentWriter::create(&*self.env.fs, &self.dir, file.0, &self.cache, &options)?;
        Ok((file, TableBuilder::new(writer)))
    }

    /// A new file, to be filled with the bytes of another node's fragment.
    pub fn create_raw(&self) -> Result<(FileId, Arc<dyn File>)> {
        let file = self.number();
        Ok((file, self.open_raw(file, OpenMode::Create)?))
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

    /// Makes a manifest durable in the place of an earlier one.
    pub fn write_manifest(&self, manifest: &IndexManifest) -> Result<()> {
        manifest::write_index(&*self.env.fs, &layout::manifest_dir(&self.dir), manifest)
    }

    /// Makes the node manifest durable in the place of an earlier one.
    pub fn write_node_manifest(&self, manifest: &NodeManifest) -> Result<()> {
        manifest::write_node(&*self.env.fs, &layout::manifest_dir(&self.dir), manifest)
    }

    /// Removes the manifest of an index for good.
    pub fn remove_manifest(&self, index: IndexId, generation: Generation) -> Result<()> {
        let dir = layout::manifest_dir(&self.dir);
        manifest::remove_index(&*self.env.fs, &dir, index, generation)
    }

    /// Deletes some tables that nothing on disk names any more, each when its last reader has gone.
    pub fn retire(&self, tables: Vec<(FileId, Arc<Table>)>) {
        let weak = tables.into_iter().map(|(file, table)| (file, Arc::downgrade(&table)));
        lock(&self.retired).extend(weak);
    }

    /// Deletes what was retired and is no longer read.
    pub fn collect(&self) {
        let unread: Vec<FileId> = {
            let mut retired = lock(&self.retired);
            let gone = retired.iter().filter(|(_, table)| table.strong_count() == 0);
            let unread = gone.map(|(file, _)| *file).collect();
            retired.retain(|(_, table)| table.strong_count() > 0);
            unread
        };
        for file in unread {
            if let Err(error) = self.delete(file) {
                // The next start finds it again.
                tracing::warn!(%error, "deleting a fragment");
            }
        }
    }

    /// Deletes a file.
    pub fn delete(&self, file: FileId) -> Result<()> {
        let path = layout::fragment_path(&self.dir, file.0);
        self.env
            .fs
            .remove_file(&path)
            .map_err(|error| Error::from(error).context(format!("deleting {}", path.display())))
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
