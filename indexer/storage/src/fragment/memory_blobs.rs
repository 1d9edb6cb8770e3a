//! Blobs in memory, for tests and fuzzers.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use proto::lock::lock;

use crate::fragment::blob_store::{Blob, BlobStore, BlobWriter};

type Blobs = Arc<Mutex<BTreeMap<u64, Arc<Vec<u8>>>>>;

/// A blob store in memory, for tests.
#[derive(Clone, Default)]
pub struct MemoryBlobs {
    blobs: Blobs,
}

impl MemoryBlobs {
    /// Adds a finished blob.
    pub fn insert(&self, id: u64, bytes: Vec<u8>) {
        lock(&self.blobs).insert(id, Arc::new(bytes));
    }

    /// Returns the bytes of a blob.
    pub fn bytes(&self, id: u64) -> Option<Arc<Vec<u8>>> {
        lock(&self.blobs).get(&id).cloned()
    }
}

impl BlobStore for MemoryBlobs {
    fn create(&self, id: u64) -> io::Result<Box<dyn BlobWriter>> {
        if self.bytes(id).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.insert(id, Vec::new());
        Ok(Box::new(MemoryBlobWriter { blobs: Arc::clone(&self.blobs), id, bytes: Vec::new() }))
    }

    fn open(&self, id: u64) -> io::Result<Arc<dyn Blob>> {
        Ok(Arc::new(MemoryBlob(self.bytes(id).ok_or(io::ErrorKind::NotFound)?)))
    }

    fn list(&self) -> io::Result<Vec<u64>> {
        Ok(lock(&self.blobs).keys().copied().collect())
    }

    fn delete(&self, id: u64) -> io::Result<()> {
        let removed = lock(&self.blobs).remove(&id);
        removed.map(drop).ok_or(io::ErrorKind::NotFound.into())
    }

    fn sync_names(&self) -> io::Result<()> {
        Ok(())
    }

    fn name(&self, id: u64) -> String {
        format!("blob {id} in memory")
    }

    fn store_name(&self) -> String {
        "blobs in memory".to_owned()
    }
}

struct MemoryBlobWriter {
    blobs: Blobs,
    id: u64,
    bytes: Vec<u8>,
}

impl BlobWriter for MemoryBlobWriter {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        lock(&self.blobs).insert(self.id, Arc::new(self.bytes.clone()));
        Ok(())
    }

    fn into_blob(self: Box<Self>) -> Arc<dyn Blob> {
        Arc::new(MemoryBlob(Arc::new(self.bytes)))
    }
}

struct MemoryBlob(Arc<Vec<u8>>);

impl Blob for MemoryBlob {
    fn byte_len(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_exact_at(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        let from = usize::try_from(offset).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        let rest = self.0.get(from..).and_then(|rest| rest.get(..out.len()));
        out.copy_from_slice(rest.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}
