//! Segment files: their names, how one is begun, and which are still there.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use proto::env::{File, FileSystem, OpenMode};
use proto::{Error, Result};

use crate::lock::lock;
use crate::log::format::{SEGMENT_HEADER_BYTES, segment_header};
use crate::log::lsn::Lsn;

/// The file of the segment that begins at `base`.
pub(super) fn segment_path(dir: &Path, base: Lsn) -> PathBuf {
    dir.join(format!("{base:020}.log"))
}

/// The inverse of [`segment_path`]; `None` for files of other names.
pub(super) fn segment_base(path: &Path) -> Option<Lsn> {
    let digits = path.file_name()?.to_str()?.strip_suffix(".log")?;
    let plain = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    if plain { digits.parse().ok() } else { None }
}

/// Writes a segment's header into an empty file and makes it durable with its name: only then may
/// records follow.
pub(super) fn begin_segment(
    fs: &dyn FileSystem,
    dir: &Path,
    base: Lsn,
    mode: OpenMode,
) -> io::Result<Arc<dyn File>> {
    let file = fs.open(&segment_path(dir, base), mode)?;
    file.set_len(0)?;
    file.write_all_at(&segment_header(base), 0)?;
    file.sync()?;
    fs.sync_dir(dir)?;
    Ok(file)
}

/// The segments that are there, by where they begin, the oldest first; never none.
pub(super) struct Segments {
    bases: Mutex<VecDeque<Lsn>>,
    /// Held while segments are removed, so that they go one after another.
    releasing: Mutex<()>,
}

impl Segments {
    pub(super) fn new(bases: VecDeque<Lsn>) -> Self {
        Self { bases: Mutex::new(bases), releasing: Mutex::new(()) }
    }

    /// A new last segment is there.
    pub(super) fn push(&self, base: Lsn) {
        lock(&self.bases).push_back(base);
    }

    /// Removes whole segments below an LSN, each for good before the next.
    pub(super) fn release(&self, fs: &dyn FileSystem, dir: &Path, lsn: Lsn) -> Result<()> {
        let _one_at_a_time = lock(&self.releasing);
        while let Some(base) = self.first_below(lsn) {
            let path = segment_path(dir, base);
            let removed = match fs.remove_file(&path) {
                // An earlier try came as far as here.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                other => other,
            };
            removed.and_then(|()| fs.sync_dir(dir)).map_err(|error| {
                Error::from(error).context(format!("removing {}", path.display()))
            })?;
            lock(&self.bases).pop_front();
        }
        Ok(())
    }

    /// The oldest segment, if it is not the last and ends at or before `lsn`.
    fn first_below(&self, lsn: Lsn) -> Option<Lsn> {
        let bases = lock(&self.bases);
        let end = *bases.get(1)?;
        (end <= lsn).then(|| bases[0])
    }

    /// Bytes of all segments, if the last one ends at `end`.
    pub(super) fn held_bytes(&self, end: Lsn) -> u64 {
        let bases = lock(&self.bases);
        let first = bases.front().copied().unwrap_or(end);
        end.saturating_sub(first) + (bases.len() * SEGMENT_HEADER_BYTES) as u64
    }
}
