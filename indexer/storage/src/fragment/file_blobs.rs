//! Blobs as files of a directory, in the file system of the environment. A bounded number of them
//! is open at once.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use proto::env::{File, FileSystem, OpenMode};
use proto::lock::lock;

use crate::fragment::blob_store::{Blob, BlobStore, BlobWriter};
use crate::fragment::open_files::{OpenFiles, PooledFile, Reader};
use crate::layout;

/// The blob store in an indexer's directory; its blobs are fragments.
pub struct FileBlobs {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    open: Arc<OpenFiles>,
    readers: Arc<Readers>,
}

/// The open files of each fragment, by the fragment's id. A deletion of the fragment looks for its
/// readers here.
type Readers = Mutex<BTreeMap<u64, Vec<Reader>>>;

impl FileBlobs {
    /// Creates a store of the blobs in an indexer's directory `dir`. At most `open_max` files are
    /// open at once.
    pub fn new(fs: &Arc<dyn FileSystem>, dir: &Path, open_max: usize) -> Self {
        Self::with_pool(fs, dir, &OpenFiles::new(fs, open_max))
    }

    /// Creates a store of the blobs in the directory `dir`, with a pool of open files that several
    /// stores can share.
    pub fn with_pool(fs: &Arc<dyn FileSystem>, dir: &Path, open: &Arc<OpenFiles>) -> Self {
        let open = Arc::clone(open);
        Self { fs: Arc::clone(fs), dir: dir.to_path_buf(), open, readers: Arc::default() }
    }
}

impl BlobStore for FileBlobs {
    fn create(&self, id: u64) -> io::Result<Box<dyn BlobWriter>> {
        let path = layout::fragment_path(&self.dir, id);
        let file = self.fs.open(&path, OpenMode::CreateNew)?;
        let (open, readers) = (Arc::clone(&self.open), Arc::clone(&self.readers));
        Ok(Box::new(FileBlobWriter { id, path, file, offset: 0, open, readers }))
    }

    fn open(&self, id: u64) -> io::Result<Arc<dyn Blob>> {
        let file = self.open.open(&layout::fragment_path(&self.dir, id))?;
        Ok(registered_blob(&self.readers, id, file))
    }

    fn list(&self) -> io::Result<Vec<u64>> {
        let paths = self.fs.list(&layout::fragment_dir(&self.dir))?;
        Ok(paths.iter().filter_map(|path| layout::fragment_id(path)).collect())
    }

    fn delete(&self, id: u64) -> io::Result<()> {
        // A reader could not open the file again after its deletion.
        let readers = lock(&self.readers).remove(&id).unwrap_or_default();
        if let Err(error) = readers.iter().try_for_each(Reader::pin) {
            lock(&self.readers).entry(id).or_default().extend(readers);
            return Err(error);
        }
        self.fs.remove_file(&layout::fragment_path(&self.dir, id))
    }

    fn sync_names(&self) -> io::Result<()> {
        self.fs.sync_dir(&layout::fragment_dir(&self.dir))
    }

    fn name(&self, id: u64) -> String {
        layout::fragment_path(&self.dir, id).display().to_string()
    }

    fn store_name(&self) -> String {
        layout::fragment_dir(&self.dir).display().to_string()
    }
}

/// Opens any file as a blob, outside of a store.
pub fn open_file(fs: &dyn FileSystem, path: &Path) -> io::Result<Arc<dyn Blob>> {
    Ok(Arc::new(FileBlob(fs.open(path, OpenMode::Read)?)))
}

/// Returns a file as a blob, and records it in `readers`, so that the deletion of the blob finds
/// it.
fn registered_blob(readers: &Readers, id: u64, file: PooledFile) -> Arc<dyn Blob> {
    let mut readers = lock(readers);
    let of_file = readers.entry(id).or_default();
    of_file.retain(|reader| !reader.has_no_readers());
    of_file.push(file.reader());
    Arc::new(PooledBlob(file))
}

/// Writer of a new blob's file.
struct FileBlobWriter {
    id: u64,
    path: PathBuf,
    file: Arc<dyn File>,
    /// The end of the bytes written so far.
    offset: u64,
    open: Arc<OpenFiles>,
    readers: Arc<Readers>,
}

impl BlobWriter for FileBlobWriter {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, self.offset)?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }

    fn into_blob(self: Box<Self>) -> Arc<dyn Blob> {
        let file = self.open.add(&self.path, self.file);
        registered_blob(&self.readers, self.id, file)
    }
}

/// A blob whose file stays open.
struct FileBlob(Arc<dyn File>);

impl Blob for FileBlob {
    fn byte_len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read_exact_at(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_exact_at(out, offset)
    }
}

/// A blob whose file the pool may close and open again.
struct PooledBlob(PooledFile);

impl Blob for PooledBlob {
    fn byte_len(&self) -> io::Result<u64> {
        self.0.file()?.len()
    }

    fn read_exact_at(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.file()?.read_exact_at(out, offset)
    }

    fn read_from_memory(&self, out: &mut [u8], offset: u64) -> bool {
        self.0.file_if_open().is_some_and(|file| file.read_from_memory(out, offset))
    }
}

#[cfg(test)]
#[path = "file_blobs_tests.rs"]
mod tests;
