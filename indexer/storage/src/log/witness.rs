//! The witness: a small file with the position up to which a log was synced.
//!
//! A lost or truncated last segment looks like a crash before the sync, since the records that
//! would prove the loss are missing too. The witness proves it:
//!
//! ```text
//! DIR/synced.witness := "sxlw" version:u32 log_id:u64 synced:u64 crc:u32      (little endian)
//! ```
//!
//! # Invariants
//!
//! - The witness is written only after the sync that it records, so it never claims more than is
//!   durable.
//! - The witness is not synced itself and lies within one sector. An old or damaged witness proves
//!   less, and is otherwise harmless.

use std::path::{Path, PathBuf};

use proto::env::{FileSystem, OpenMode};
use proto::{Error, ErrorCode, Result};

use crate::log::format::{u32_at, u64_at};
use crate::log::lsn::Lsn;

const MAGIC: &[u8; 4] = b"sxlw";
const VERSION: u32 = 1;
const WITNESS_BYTES: usize = 28;
const FIELDS_BYTES: usize = WITNESS_BYTES - 4;

/// The content of the witness file: the position up to which a log was synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Witness {
    /// Random id of the log.
    pub log_id: u64,
    /// All records before this LSN were synced.
    pub synced: Lsn,
}

impl Witness {
    /// Returns the path of the witness file in the directory of a log.
    pub fn path(dir: &Path) -> PathBuf {
        dir.join("synced.witness")
    }

    /// Reads the witness of a log; `None` if the file is missing or damaged.
    pub fn read(fs: &dyn FileSystem, dir: &Path) -> Result<Option<Self>> {
        let path = Self::path(dir);
        if !fs.exists(&path) {
            return Ok(None);
        }
        let mut bytes = [0; WITNESS_BYTES];
        let file = fs.open(&path, OpenMode::Read)?;
        if file.len()? < WITNESS_BYTES as u64 {
            return Ok(None);
        }
        file.read_exact_at(&mut bytes, 0)?;
        let is_whole = &bytes[..4] == MAGIC
            && u32_at(&bytes, 4) == VERSION
            && crc32c::crc32c(&bytes[..FIELDS_BYTES]) == u32_at(&bytes, FIELDS_BYTES);
        Ok(is_whole.then(|| Self { log_id: u64_at(&bytes, 8), synced: u64_at(&bytes, 16) }))
    }

    fn encode(&self) -> [u8; WITNESS_BYTES] {
        let mut bytes = [0; WITNESS_BYTES];
        bytes[..4].copy_from_slice(MAGIC);
        bytes[4..8].copy_from_slice(&VERSION.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.log_id.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.synced.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..FIELDS_BYTES]);
        bytes[FIELDS_BYTES..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Checks that the witness file belongs to the log with this id, which is in the headers of
    /// the segments.
    pub fn check_id(&self, dir: &Path, log_id: u64) -> Result<()> {
        if self.log_id == log_id {
            return Ok(());
        }
        let (path, of) = (Self::path(dir), self.log_id);
        let message = format!(
            "{}: the file belongs to log {of:016x}, the segments beside it to log {log_id:016x}",
            path.display()
        );
        Err(Error::new(ErrorCode::Corrupt, message))
    }
}

/// The writer of a log's witness file.
#[derive(Default)]
pub(super) struct WitnessFile {
    written: Lsn,
}

impl WitnessFile {
    /// Writes the witness file if its position is later than the last one written. A failure is
    /// ignored, because the older content remains valid.
    pub(super) fn write(&mut self, fs: &dyn FileSystem, dir: &Path, witness: Witness) {
        if witness.synced <= self.written {
            return;
        }
        // The witness is written seldom, so its file does not stay open: a process may have very many logs.
        let put = || -> std::io::Result<()> {
            let file = fs.open(&Witness::path(dir), OpenMode::Create)?;
            file.write_all_at(&witness.encode(), 0)
        };
        match put() {
            Ok(()) => self.written = witness.synced,
            Err(error) => {
                tracing::warn!(%error, dir = %dir.display(), "the witness of a log was not written");
            }
        }
    }
}
