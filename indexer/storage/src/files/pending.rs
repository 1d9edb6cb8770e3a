//! Which fragment files nobody can need any more.
//!
//! File ids grow and are never used twice, so age is a number. A file is garbage when no manifest names
//! it and none can come to name it. The second half is what [`Pending`] knows: the files that are being
//! written, or were written and are not in a manifest yet, for a flush, a compaction, a build or what a
//! node receives. What is older than the oldest of them, or than the number that the next one will have,
//! is never published by this node any more: with its heartbeats it may say so.
//!
//! A file's publication is settled when a manifest that names it was written, also where the write has
//! failed: the manifest on disk may be the old one or the new one then, but nobody publishes the file
//! again, and the next start sorts out whether it is named.
//!
//! Each node has a directory of its own, and what moves between nodes is copied. So a node's manifests
//! and what is pending on it decide alone, file by file, and an old pending file (of a build that takes
//! hours) does not keep the younger ones from being deleted.

use std::collections::BTreeSet;

use crate::file_id::FileId;

/// Gives out file ids, and knows which of them may still come into a manifest.
#[derive(Debug)]
pub struct Pending {
    files: BTreeSet<FileId>,
    next: FileId,
}

impl Default for Pending {
    fn default() -> Self {
        Self { files: BTreeSet::new(), next: FileId(1) }
    }
}

impl Pending {
    /// No id up to this one is given out.
    pub fn skip_to(&mut self, used: FileId) {
        self.next.0 = self.next.0.max(used.0 + 1);
    }

    /// The id that the next file will have.
    pub fn next(&self) -> FileId {
        self.next
    }

    /// A new file, which is pending from now on.
    pub fn begin(&mut self) -> FileId {
        let file = self.next;
        self.next.0 += 1;
        self.files.insert(file);
        file
    }

    /// A file is in a manifest, or never will be.
    pub fn settle(&mut self, file: FileId) {
        self.files.remove(&file);
    }

    /// No file below this one will be published.
    pub fn oldest(&self) -> FileId {
        self.files.first().copied().unwrap_or(self.next)
    }

    /// Can a file that no manifest names be deleted?
    pub fn may_delete(&self, file: FileId) -> bool {
        file < self.next && !self.files.contains(&file)
    }
}

/// The files that can be deleted, of those on disk. The order is the caller's: first the directory is
/// listed, then the manifests are read, so that what was published in between is named.
pub fn deletable(on_disk: &[FileId], named: &BTreeSet<FileId>, pending: &Pending) -> Vec<FileId> {
    let garbage = |file: &FileId| pending.may_delete(*file) && !named.contains(file);
    on_disk.iter().copied().filter(garbage).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(ids: impl IntoIterator<Item = u64>) -> Vec<FileId> {
        ids.into_iter().map(FileId).collect()
    }

    /// Of files 1 to 12, of which 2 and 5 are named.
    fn deleted(pending: &Pending) -> Vec<FileId> {
        deletable(&ids(1..13), &ids([2, 5]).into_iter().collect(), pending)
    }

    #[test]
    fn what_is_named_or_may_be_published_stays() {
        let mut pending = Pending::default();
        pending.skip_to(FileId(8));
        let (first, second) = (pending.begin(), pending.begin());
        assert_eq!((first, second), (FileId(9), FileId(10)));
        // Numbers from 11 on are not given out: whoever wrote such files, they are not garbage here.
        assert_eq!(deleted(&pending), ids([1, 3, 4, 6, 7, 8]));
        pending.settle(first);
        assert_eq!(deleted(&pending), ids([1, 3, 4, 6, 7, 8, 9]));
    }

    #[test]
    fn the_oldest_pending_file_never_goes_back() {
        let mut pending = Pending::default();
        assert_eq!(pending.oldest(), FileId(1), "the next one");
        let files: Vec<FileId> = (0..4).map(|_| pending.begin()).collect();
        let mut oldest = pending.oldest();
        for settled in [files[2], files[0], files[3], files[1]] {
            pending.settle(settled);
            assert!(pending.oldest() >= oldest);
            oldest = pending.oldest();
        }
        assert_eq!(oldest, pending.next());
        pending.skip_to(FileId(3));
        assert_eq!(pending.next(), FileId(5), "no number is given out twice");
    }
}
