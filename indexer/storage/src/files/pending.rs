//! Garbage collection of fragment files.
//!
//! File ids grow and are never reused, so a smaller id means an older file. A file is garbage when
//! no manifest names it and no later manifest can name it. [`PendingFiles`] tracks the second
//! condition with the list of pending files: the files that are being written, or were written and
//! are not in a manifest yet. They belong to a flush, a compaction, a build or a move. This node
//! will never publish a file that is older than the oldest pending file (or, with none pending,
//! older than the next id). Its heartbeats may report that.
//!
//! A file stops being pending when a write of a manifest that names it has ended, even with an
//! error. After an error the old or the new manifest may be on disk. The file is not published
//! again, and the next start finds out whether it is named.
//!
//! Each node has a separate directory, and moves between nodes copy files. So the node's manifests
//! and its pending files alone decide, file by file. An old pending file (of a build that takes
//! hours) does not keep younger files from being deleted.

use std::collections::BTreeSet;

use crate::file_id::FileId;

/// The source of file ids, with the list of pending files: files that no manifest names yet and a
/// later manifest may name.
#[derive(Debug)]
pub struct PendingFiles {
    files: BTreeSet<FileId>,
    next: FileId,
}

impl Default for PendingFiles {
    fn default() -> Self {
        Self { files: BTreeSet::new(), next: FileId(1) }
    }
}

impl PendingFiles {
    /// Skips all ids up to `used`.
    pub fn skip_to(&mut self, used: FileId) {
        self.next.0 = self.next.0.max(used.0 + 1);
    }

    /// Returns the id that the next new file will get.
    pub fn next(&self) -> FileId {
        self.next
    }

    /// Returns the id of a new file, which is pending from now on.
    pub fn begin_file(&mut self) -> FileId {
        let file = self.next;
        self.next.0 += 1;
        self.files.insert(file);
        file
    }

    /// Removes a file from the pending files: a manifest names it, or none ever will.
    pub fn end_pending(&mut self, file: FileId) {
        self.files.remove(&file);
    }

    /// Returns the oldest file that a manifest may still be going to name; without pending files,
    /// the next id.
    pub fn oldest_pending(&self) -> FileId {
        self.files.first().copied().unwrap_or(self.next)
    }

    /// Returns true if a file that no manifest names may be deleted.
    pub fn may_delete(&self, file: FileId) -> bool {
        file < self.next && !self.files.contains(&file)
    }
}

/// Returns the files on disk that may be deleted. The caller must list the directory before it
/// reads the manifests, so that a file published in between is named.
pub fn deletable(
    on_disk: &[FileId],
    named: &BTreeSet<FileId>,
    pending: &PendingFiles,
) -> Vec<FileId> {
    let garbage = |file: &FileId| pending.may_delete(*file) && !named.contains(file);
    on_disk.iter().copied().filter(garbage).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(ids: impl IntoIterator<Item = u64>) -> Vec<FileId> {
        ids.into_iter().map(FileId).collect()
    }

    /// Returns the deletable files of files 1 to 12, of which 2 and 5 are named.
    fn deleted(pending: &PendingFiles) -> Vec<FileId> {
        deletable(&ids(1..13), &ids([2, 5]).into_iter().collect(), pending)
    }

    #[test]
    fn named_or_pending_files_stay() {
        let mut pending = PendingFiles::default();
        pending.skip_to(FileId(8));
        let (first, second) = (pending.begin_file(), pending.begin_file());
        assert_eq!((first, second), (FileId(9), FileId(10)));
        // Ids from 11 on were not given out, so files with such ids are not garbage.
        assert_eq!(deleted(&pending), ids([1, 3, 4, 6, 7, 8]));
        pending.end_pending(first);
        assert_eq!(deleted(&pending), ids([1, 3, 4, 6, 7, 8, 9]));
    }

    #[test]
    fn the_oldest_pending_file_never_goes_back() {
        let mut pending = PendingFiles::default();
        assert_eq!(pending.oldest_pending(), FileId(1), "the next one");
        let files: Vec<FileId> = (0..4).map(|_| pending.begin_file()).collect();
        let mut oldest = pending.oldest_pending();
        for settled in [files[2], files[0], files[3], files[1]] {
            pending.end_pending(settled);
            assert!(pending.oldest_pending() >= oldest);
            oldest = pending.oldest_pending();
        }
        assert_eq!(oldest, pending.next());
        pending.skip_to(FileId(3));
        assert_eq!(pending.next(), FileId(5), "no number is given out twice");
    }
}
