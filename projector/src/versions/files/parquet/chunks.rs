//! Gives the Parquet library access to a file.

use std::io::{self, Read};
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length, SerializedFileReader};
use proto::env::File;

/// The size in bytes of a read of data without a known length, such as the header of a page.
const READ_BYTES: usize = 8 << 10;

/// A Parquet file that was opened with the library.
pub type Reader = SerializedFileReader<Chunks>;

/// A file, in the form in which the Parquet library reads it.
#[derive(Clone)]
pub struct Chunks {
    /// The file that is read.
    pub file: Arc<dyn File>,
    /// The length of the file in bytes.
    pub len: u64,
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.len
    }
}

impl ChunkReader for Chunks {
    type T = io::BufReader<ChunkRead>;

    fn get_read(&self, start: u64) -> std::result::Result<Self::T, ParquetError> {
        let read = ChunkRead { file: Arc::clone(&self.file), at: start, len: self.len };
        Ok(io::BufReader::with_capacity(READ_BYTES, read))
    }

    fn get_bytes(&self, start: u64, length: usize) -> std::result::Result<Bytes, ParquetError> {
        // A damaged length must not take memory.
        if start.checked_add(length as u64).is_none_or(|end| end > self.len) {
            let what = format!("{length} bytes at {start} are beyond the end of the file");
            return Err(ParquetError::EOF(what));
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

/// A sequential read of a file from an offset on.
pub struct ChunkRead {
    file: Arc<dyn File>,
    at: u64,
    len: u64,
}

impl Read for ChunkRead {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.len.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let count = out.len().min(left);
        self.file.read_exact_at(&mut out[..count], self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}
