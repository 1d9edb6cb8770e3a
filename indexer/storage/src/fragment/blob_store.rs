//! The seam between fragments and the place where their bytes are kept.
//!
//! A *blob* is an immutable byte string with a number. A blob is written once, from beginning to
//! end, and then only read and deleted. The log and the manifests do not use this seam: they need
//! files that can be appended to, synced and renamed ([`proto::env::FileSystem`]).

use std::io;
use std::sync::Arc;

/// A store of blobs. All calls block the thread.
pub trait BlobStore: Send + Sync + 'static {
    /// Begins a blob. It is an error if a blob with that id exists.
    fn create(&self, id: u64) -> io::Result<Box<dyn BlobWriter>>;

    /// Opens a finished blob. The opened blob can be read even after its deletion.
    fn open(&self, id: u64) -> io::Result<Arc<dyn Blob>>;

    /// Returns the ids of all blobs, ascending, unfinished ones included.
    fn list(&self) -> io::Result<Vec<u64>>;

    /// Deletes a blob; `NotFound` if there is none.
    fn delete(&self, id: u64) -> io::Result<()>;

    /// Makes the names of all synced blobs durable, so that a crash does not lose them.
    fn sync_names(&self) -> io::Result<()>;

    /// Returns the name of a blob for error messages.
    fn name(&self, id: u64) -> String;

    /// Returns the name of the store for error messages.
    fn store_name(&self) -> String;
}

/// Writer of a new blob. Dropping the writer before [`BlobWriter::into_blob`] leaves an unfinished
/// blob.
pub trait BlobWriter: Send + Sync {
    /// Appends bytes. After an error none of them count as appended.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes the content durable.
    fn sync(&mut self) -> io::Result<()>;

    /// Ends the blob and returns it, open for reading.
    fn into_blob(self: Box<Self>) -> Arc<dyn Blob>;
}

/// A finished blob. Reads take an offset instead of a position in the blob, so that readers can
/// share it.
pub trait Blob: Send + Sync + 'static {
    /// Returns the length in bytes.
    fn byte_len(&self) -> io::Result<u64>;

    /// Fills `out` with the bytes from `offset` on; `UnexpectedEof` if the blob ends before.
    fn read_exact_at(&self, out: &mut [u8], offset: u64) -> io::Result<()>;

    /// Reads like [`Self::read_exact_at`], but only bytes that are in memory. Returns false if the
    /// read would wait for a disk; the contents of `out` are then undefined.
    fn read_from_memory(&self, _out: &mut [u8], _offset: u64) -> bool {
        false
    }
}
