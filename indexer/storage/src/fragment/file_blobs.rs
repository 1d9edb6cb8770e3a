//! Blobs as files of a directory, through the file system of the environment.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proto::env::{File, FileSystem, OpenMode};

use crate::fragment::blob_store::{Blob, BlobStore, BlobWriter};
use crate::layout;

/// The fragments of an indexer's directory.
pub struct FileBlobs {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
}

impl FileBlobs {
    /// The fragments of an indexer's directory `dir`.
    pub fn new(fs: &Arc<dyn FileSystem>, dir: &Path) -> Self {
        Self { fs: Arc::clone(fs), dir: dir.to_path_buf() }
    }

    fn begin(&self, id: u64, mode: OpenMode) -> io::Result<Box<dyn BlobWriter>> {
        let file = self.fs.open(&layout::fragment_path(&self.dir, id), mode)?;
        Ok(Box::new(FileBlobWriter { file, offset: 0 }))
    }
}

impl BlobStore for FileBlobs {
    fn create(&self, id: u64) -> io::Result<Box<dyn BlobWriter>> {
        self.begin(id, OpenMode::CreateNew)
    }

    fn create_or_replace(&self, id: u64) -> io::Result<Box<dyn BlobWriter>> {
        self.begin(id, OpenMode::Create)
    }

    fn open(&self, id: u64) -> io::Result<Arc<dyn Blob>> {
        open_file(&*self.fs, &layout::fragment_path(&self.dir, id))
    }

    fn list(&self) -> io::Result<Vec<u64>> {
        let paths = self.fs.list(&layout::fragment_dir(&self.dir))?;
        Ok(paths.iter().filter_map(|path| layout::fragment_id(path)).collect())
    }

    fn delete(&self, id: u64) -> io::Result<()> {
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

/// Opens any file as a blob.
pub fn open_file(fs: &dyn FileSystem, path: &Path) -> io::Result<Arc<dyn Blob>> {
    Ok(Arc::new(FileBlob(fs.open(path, OpenMode::Read)?)))
}

struct FileBlobWriter {
    file: Arc<dyn File>,
    /// End of the bytes written so far.
    offset: u64,
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
        Arc::new(FileBlob(self.file))
    }
}

struct FileBlob(Arc<dyn File>);

impl Blob for FileBlob {
    fn byte_len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read_exact_at(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_exact_at(out, offset)
    }
}
