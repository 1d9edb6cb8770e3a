//! A bounded pool of open files.
//!
//! A store may have more fragments than its process may have open files. A [`PooledFile`] opens its
//! file when it is read, and the pool closes files that were not read lately: the pool visits the
//! open files in turn (the clock algorithm), and skips each file that was read since the last
//! visit. A file that is about to be deleted is *pinned*: it stays open as long as it has readers,
//! since it could not be opened again.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use proto::env::{File, FileSystem, OpenMode};
use proto::lock::lock;

/// A pool that keeps a bounded number of files open.
pub struct OpenFiles {
    fs: Arc<dyn FileSystem>,
    max: usize,
    /// The open files that are not pinned. Some of them may have been closed since they were
    /// added.
    open: Mutex<VecDeque<Weak<Slot>>>,
}

/// A file in a pool of open files. The pool may close it, and it is opened again when it is read.
pub struct PooledFile {
    pool: Arc<OpenFiles>,
    slot: Arc<Slot>,
}

/// A file in the pool, open or closed. The lock of its state is taken after the pool's lock.
struct Slot {
    path: PathBuf,
    mode: OpenMode,
    state: Mutex<SlotState>,
    was_read: AtomicBool,
}

/// The open file of a slot, if any, and whether the pool must not close it.
struct SlotState {
    file: Option<Arc<dyn File>>,
    is_pinned: bool,
}

impl OpenFiles {
    /// Creates a pool that keeps at most `max` files open.
    pub fn new(fs: &Arc<dyn FileSystem>, max: usize) -> Arc<Self> {
        Arc::new(Self { fs: Arc::clone(fs), max: max.max(1), open: Mutex::default() })
    }

    /// Opens a file for reading.
    pub fn open(self: &Arc<Self>, path: &Path) -> io::Result<PooledFile> {
        Ok(self.add(path, self.open_file(path, OpenMode::Read)?))
    }

    /// Adds a file that is open for reading to the pool, which may close it and open it again.
    pub fn add(self: &Arc<Self>, path: &Path, file: Arc<dyn File>) -> PooledFile {
        self.add_file(OpenMode::Read, path, file)
    }

    /// Adds a file that is open for reading and writing to the pool. The writer keeps the file
    /// open until it is synced, since the kernel reports a failure of the disk only to processes
    /// that have the file open.
    pub fn add_writable(self: &Arc<Self>, path: &Path, file: Arc<dyn File>) -> PooledFile {
        self.add_file(OpenMode::ReadWrite, path, file)
    }

    fn add_file(self: &Arc<Self>, mode: OpenMode, path: &Path, file: Arc<dyn File>) -> PooledFile {
        let state = Mutex::new(SlotState { file: Some(file), is_pinned: false });
        let was_read = AtomicBool::new(false);
        let slot = Slot { path: path.to_owned(), mode, state, was_read };
        let file = PooledFile { pool: Arc::clone(self), slot: Arc::new(slot) };
        self.add_open_file(&file.slot);
        file
    }

    /// Opens a file without adding it to the pool. If the process has too many open files, other
    /// files of the pool are closed first.
    fn open_file(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let first = self.fs.open(path, mode);
        match &first {
            Err(error) if is_out_of_files(error) => {
                self.close_surplus(self.max / 2);
                self.fs.open(path, mode)
            }
            _ => first,
        }
    }

    /// Adds a file to the open files, and closes others if there are too many.
    fn add_open_file(&self, slot: &Arc<Slot>) {
        lock(&self.open).push_back(Arc::downgrade(slot));
        self.close_surplus(self.max);
    }

    /// Closes files until at most `max` are open.
    fn close_surplus(&self, max: usize) {
        let mut open = lock(&self.open);
        // After one round no file has its mark any more.
        let mut turns = 2 * open.len();
        while open.len() > max && turns > 0 {
            turns -= 1;
            let Some(slot) = open.pop_front() else { return };
            let Some(live) = slot.upgrade() else { continue };
            if live.was_read.swap(false, Ordering::Relaxed) {
                open.push_back(slot);
                continue;
            }
            let mut state = lock(&live.state);
            if !state.is_pinned {
                state.file = None;
            }
        }
    }

    /// Returns the number of files that are open now.
    #[cfg(test)]
    pub(crate) fn open_now_count(&self) -> usize {
        let open = lock(&self.open);
        let is_open = |slot: &Arc<Slot>| lock(&slot.state).file.is_some();
        open.iter().filter_map(Weak::upgrade).filter(is_open).count()
    }
}

impl PooledFile {
    /// Returns the open file, and opens it if necessary.
    pub fn file(&self) -> io::Result<Arc<dyn File>> {
        let mut state = lock(&self.slot.state);
        self.slot.was_read.store(true, Ordering::Relaxed);
        if let Some(file) = &state.file {
            return Ok(Arc::clone(file));
        }
        drop(state);
        // The pool is locked before a slot, and making room locks the pool.
        let opened = self.pool.open_file(&self.slot.path, self.slot.mode);
        state = lock(&self.slot.state);
        // Another reader has opened the file meanwhile, or a deletion has, and has removed its name.
        if let Some(file) = &state.file {
            return Ok(Arc::clone(file));
        }
        let file = Arc::clone(state.file.insert(opened?));
        drop(state);
        self.pool.add_open_file(&self.slot);
        Ok(file)
    }

    /// Returns the file if it is open at present.
    pub fn file_if_open(&self) -> Option<Arc<dyn File>> {
        self.slot.was_read.store(true, Ordering::Relaxed);
        lock(&self.slot.state).file.clone()
    }

    /// Returns a weak reference, through which the deletion of the file finds its readers.
    pub fn reader(&self) -> Reader {
        Reader { pool: Arc::downgrade(&self.pool), slot: Arc::downgrade(&self.slot) }
    }
}

/// A weak reference to a pooled file. The reference does not keep the file open.
pub struct Reader {
    pool: Weak<OpenFiles>,
    slot: Weak<Slot>,
}

impl Reader {
    /// Returns true if the file has no readers any more.
    pub fn has_no_readers(&self) -> bool {
        self.slot.strong_count() == 0
    }

    /// Keeps the file open as long as it has readers, even if its name is deleted.
    pub fn pin(&self) -> io::Result<()> {
        let (Some(pool), Some(slot)) = (self.pool.upgrade(), self.slot.upgrade()) else {
            return Ok(());
        };
        lock(&slot.state).is_pinned = true;
        if lock(&slot.state).file.is_none() {
            let file = pool.open_file(&slot.path, slot.mode)?;
            lock(&slot.state).file.get_or_insert(file);
        }
        Ok(())
    }
}

impl std::fmt::Debug for OpenFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OpenFiles(at most {})", self.max)
    }
}

/// Returns true for the errors ENFILE and EMFILE: too many open files in the process or the system.
fn is_out_of_files(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(23 | 24))
}
