//! Reads the bytes of a file from its beginning to its end, and decompresses them if needed.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use proto::Result;
use proto::env::{File, FileSystem, OpenMode};

/// The size in bytes of a read from the disk.
const READ_BYTES: usize = 256 << 10;
/// The largest window with which compressed files are accepted, as a power of two: 128 MiB, as
/// for the `zstd` tool without a flag.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;
/// The size in bytes of the text that is read at once: large enough that the cost per read is
/// small, and small enough that many of them fit in memory.
pub const PIECE_BYTES: usize = 512 << 10;

/// A reader of a file's bytes from its beginning to its end.
struct FileReader {
    file: Arc<dyn File>,
    at: u64,
    len: u64,
}

impl Read for FileReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.len - self.at).unwrap_or(usize::MAX);
        let count = out.len().min(left);
        self.file.read_exact_at(&mut out[..count], self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

/// The text of a file, decompressed.
pub type TextInput = Box<dyn Read + Send>;

/// Opens a text file, which may be compressed.
pub fn open_text(fs: &dyn FileSystem, path: &Path, is_compressed: bool) -> Result<TextInput> {
    let file = fs.open(path, OpenMode::Read)?;
    let len = file.len()?;
    let file = FileReader { file, at: 0, len };
    if !is_compressed {
        return Ok(Box::new(file));
    }
    let file = io::BufReader::with_capacity(READ_BYTES, file);
    let mut text = zstd::stream::read::Decoder::with_buffer(file)?;
    text.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
    Ok(Box::new(text))
}

/// Reads the next bytes of a text and appends them to `buffer`. Returns false at the end.
pub fn read_piece(input: &mut TextInput, buffer: &mut Vec<u8>) -> Result<bool> {
    let from = buffer.len();
    buffer.resize(from + PIECE_BYTES, 0);
    let mut filled = from;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                buffer.truncate(filled);
                return Err(error.into());
            }
        }
    }
    buffer.truncate(filled);
    Ok(filled > from)
}
