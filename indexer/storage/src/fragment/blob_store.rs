//! The seam between fragments and the place where their bytes are kept.
//!
//! A *blob* is an immutable byte string with a number. It is written once, from beginning to end, and then
//! only read and deleted. The log and the manifests do not use this seam: they need files that can be
//! appended to, synced and renamed ([`proto::env::FileSystem`]).

use std::io;
use std::sync::Arc;

/// A place where blobs are kept. All calls block.
pub trait BlobStore: Send + Sync + 'static {
    /// Begins a blob. It is an error if a blob with that id exists.
    fn create(&self, id: u64) -> io::Result<Box<dyn BlobWriter>>;

    /// Opens a finished blob. It stays readable after its deletion.
    fn open(&self, id: u64) -> io::Result<Arc<dyn Blob>>;

    /// Ids of all blobs, ascending, unfinished ones included.
    fn list(&self) -> io::Result<Vec<u64>>;

    /// Deletes a blob; `NotFound` if there is none.
    fn delete(&self, id: u64) -> io::Result<()>;

    /// Makes the existence of all synced blobs durable.
    fn sync_names(&self) -> io::Result<()>;

    /// Name of a blob in errors.
    fn name(&self, id: u64) -> String;

    /// Name of the whole store in errors.
    fn store_name(&self) -> String;
}

/// A blob that is being written. Dropping the writer leaves an unfinished blob.
pub trait BlobWriter: Send + Sync {
    /// Appends bytes. After an error none of them count as appended.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes the content durable.
    fn sync(&mut self) -> io::Result<()>;

    /// Ends the blob and opens it for reading.
    fn into_blob(self: Box<Self>) -> Arc<dyn Blob>;
}

/// A finished blob. Reads take an offset, so that readers share the blob.
pub trait Blob: Send + Sync + 'static {
    /// Length in bytes.
    fn byte_len(&self) -> io::Result<u64>;

    /// Fills `out` from `offset`; `UnexpectedEof` if the blob ends before.
    fn read_exact_at(&self, out: &mut [u8], offset: u64) -> io::Result<()>;

    /// Reads like [`Self::read_exact_at`], without waiting for a disk. Returns false if that is not possible now; the contents
    /// of `out` are then undefined.
    fn read_from_memory(&self, _out: &mut [u8], _offset: u64) -> bool {
        false
    }
}
