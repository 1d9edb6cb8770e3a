//! The open files of a log's segments, for reading.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use proto::env::File;
use proto::lock::lock;

use crate::fragment::open_files::{OpenFiles, PooledFile};
use crate::log::lsn::Lsn;
use crate::log::segment::segment_path;

/// The open files of a log's segments; the pool may close any of them.
pub(super) struct SegmentFiles {
    dir: PathBuf,
    pool: Arc<OpenFiles>,
    files: Mutex<BTreeMap<Lsn, Arc<PooledFile>>>,
}

impl SegmentFiles {
    pub(super) fn new(dir: &Path, pool: &Arc<OpenFiles>) -> Self {
        Self { dir: dir.to_owned(), pool: Arc::clone(pool), files: Mutex::default() }
    }

    /// Returns the open file of a segment, and opens it if necessary. No lock is held during the
    /// opening.
    pub(super) fn file(&self, base: Lsn) -> io::Result<Arc<dyn File>> {
        let known = lock(&self.files).get(&base).cloned();
        let file = match known {
            Some(file) => file,
            None => {
                let opened = Arc::new(self.pool.open(&segment_path(&self.dir, base))?);
                Arc::clone(lock(&self.files).entry(base).or_insert(opened))
            }
        };
        file.file()
    }

    /// Removes the files of segments before `first` from the pool; they were deleted on disk.
    pub(super) fn remove_before(&self, first: Lsn) {
        let mut files = lock(&self.files);
        let kept = files.split_off(&first);
        let gone = std::mem::replace(&mut *files, kept);
        drop(files);
        drop(gone);
    }
}
