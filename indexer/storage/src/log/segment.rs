//! Segment files: names, creation, removal.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use proto::env::{File, FileSystem, OpenMode};
use proto::lock::lock;
use proto::{Error, Result};

use crate::log::format::{SEGMENT_HEADER_BYTES, SegmentHead};

#[cfg(debug_assertions)]
use crate::log::invariants::{release_kept_the_rest, segments_are_in_order};
use crate::log::lsn::Lsn;

/// Returns the path of the segment that begins at the LSN `base`.
pub fn segment_path(dir: &Path, base: Lsn) -> PathBuf {
    dir.join(format!("{base:020}.log"))
}

/// Returns the LSN that a segment's file name contains; `None` for other files.
pub(super) fn segment_base(path: &Path) -> Option<Lsn> {
    let digits = path.file_name()?.to_str()?.strip_suffix(".log")?;
    let plain = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    if plain { digits.parse().ok() } else { None }
}

/// Returns the LSNs of the segments' beginnings in a directory, oldest first.
pub fn segment_bases(fs: &dyn FileSystem, dir: &Path) -> Result<Vec<Lsn>> {
    let listing =
        |error: io::Error| Error::from(error).context(format!("listing {}", dir.display()));
    let names = fs.list(dir).map_err(listing)?;
    Ok(names.iter().filter_map(|path| segment_base(path)).collect())
}

/// Returns the LSN of the oldest segment's beginning in a directory; `None` if there is no segment.
pub(crate) fn first_lsn(fs: &dyn FileSystem, dir: &Path) -> Result<Option<Lsn>> {
    Ok(segment_bases(fs, dir)?.first().copied())
}

/// Writes the header of a segment into an empty file, and makes the header and the file's name
/// durable. Records may be written only afterwards.
pub(super) fn begin_segment(
    fs: &dyn FileSystem,
    dir: &Path,
    head: &SegmentHead,
    mode: OpenMode,
) -> io::Result<Arc<dyn File>> {
    let file = fs.open(&segment_path(dir, head.base), mode)?;
    file.set_len(0)?;
    file.write_all_at(&head.encode(), 0)?;
    file.sync()?;
    fs.sync_dir(dir)?;
    Ok(file)
}

/// The LSNs of the existing segments' beginnings, oldest first; never empty.
pub(super) struct Segments {
    bases: Mutex<VecDeque<Lsn>>,
    /// Locked during a release, so that releases do not overlap.
    releasing: Mutex<()>,
}

impl Segments {
    pub(super) fn new(bases: VecDeque<Lsn>) -> Self {
        Self { bases: Mutex::new(bases), releasing: Mutex::new(()) }
    }

    /// Adds a new segment, which is the last from now on.
    pub(super) fn push(&self, base: Lsn) {
        let mut bases = lock(&self.bases);
        bases.push_back(base);
        #[cfg(debug_assertions)]
        assert!(segments_are_in_order(&bases), "segments begin at {bases:?}");
    }

    /// Removes the segments that end at or before an LSN. Each removal is durable before the next
    /// one begins.
    pub(super) fn release(&self, fs: &dyn FileSystem, dir: &Path, lsn: Lsn) -> Result<()> {
        let _one_at_a_time = lock(&self.releasing);
        while let Some(base) = self.first_to_release(lsn) {
            let path = segment_path(dir, base);
            let removed = match fs.remove_file(&path) {
                // An earlier release removed the file and then failed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                other => other,
            };
            removed.and_then(|()| fs.sync_dir(dir)).map_err(|error| {
                Error::from(error).context(format!("removing {}", path.display()))
            })?;
            self.remove_first(lsn);
        }
        Ok(())
    }

    /// Removes the oldest segment from the list after a release up to `lsn` has deleted its file.
    /// Takes one lock in every build: a simulation counts locks, and a run with a given seed must
    /// take the same course with and without the debug checks.
    #[cfg_attr(not(debug_assertions), expect(unused_variables, reason = "the checks use it"))]
    fn remove_first(&self, lsn: Lsn) {
        let mut bases = lock(&self.bases);
        let removed = bases.pop_front();
        debug_assert!(removed.is_some(), "a segment was released that nobody knows");
        #[cfg(debug_assertions)]
        {
            assert!(segments_are_in_order(&bases), "segments begin at {bases:?}");
            assert!(
                release_kept_the_rest(removed.unwrap_or_default(), &bases, lsn),
                "a release up to LSN {lsn} has left {bases:?}"
            );
        }
    }

    /// Returns the oldest segment if a release up to `lsn` may delete it; `None` if it is the last
    /// segment or ends after `lsn`.
    fn first_to_release(&self, lsn: Lsn) -> Option<Lsn> {
        let bases = lock(&self.bases);
        let end = *bases.get(1)?;
        (end <= lsn).then(|| bases[0])
    }

    /// Returns the LSNs of the segments' beginnings, oldest first.
    pub(super) fn bases(&self) -> Vec<Lsn> {
        lock(&self.bases).iter().copied().collect()
    }

    /// Returns the LSN of the beginning of the last segment.
    pub(super) fn last(&self) -> Lsn {
        lock(&self.bases).back().copied().unwrap_or_default()
    }

    /// Returns the beginning of the segment that contains an LSN below the end of the log, and its
    /// end if another segment follows.
    pub(super) fn containing(&self, lsn: Lsn) -> Option<(Lsn, Option<Lsn>)> {
        let bases = lock(&self.bases);
        let behind = bases.partition_point(|base| *base <= lsn);
        Some((*bases.get(behind.checked_sub(1)?)?, bases.get(behind).copied()))
    }

    /// Returns the total size of all segments in bytes; the last one ends at the LSN `end`.
    pub(super) fn retained_bytes(&self, end: Lsn) -> u64 {
        let bases = lock(&self.bases);
        let first = bases.front().copied().unwrap_or(end);
        end.saturating_sub(first) + (bases.len() * SEGMENT_HEADER_BYTES) as u64
    }
}
