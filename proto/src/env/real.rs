//! The seams of a real process. The services call the operating system only through this file.
#![allow(clippy::disallowed_methods, reason = "this is the seam that the lint points to")]

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::bulk::{self, BulkThreads};
use super::clock::{Clock, Random};
use super::failure::{TaskFailure, TaskPolicy};
use super::files::{File, FileSystem, OpenMode, Owner, ResolvedPath};
use super::spawning::{BoxFuture, Bulk, LentThread, Spawner, Task};
use crate::lock::lock;

/// The system's wall clock.
pub struct SystemClock;

impl Clock for SystemClock {
    fn unix_ms(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
    }
}

/// The system's generator of random numbers, also for secrets. A few numbers are fetched at once,
/// and each is returned once.
pub struct SystemRandom(Mutex<Vec<u8>>);

/// The number of random numbers that one call of the system fetches.
const RANDOM_NUMBERS: usize = 32;

impl Default for SystemRandom {
    fn default() -> Self {
        Self(Mutex::new(Vec::new()))
    }
}

impl Random for SystemRandom {
    /// # Panics
    /// If the system has no random numbers: secrets could not be drawn, and ids would not be
    /// unique.
    #[expect(clippy::panic, reason = "a process without random numbers must not go on")]
    fn next_u64(&self) -> u64 {
        let mut unused = lock(&self.0);
        if unused.len() < 8 {
            unused.resize(8 * RANDOM_NUMBERS, 0);
            if let Err(error) = getrandom::fill(&mut unused) {
                panic!("the system gives no random numbers: {error}");
            }
        }
        let left = unused.len() - 8;
        unused.drain(left..).fold(0, |number, byte| number << 8 | u64::from(byte))
    }
}

/// A generator that returns equal numbers for equal seeds, for tests and the simulation.
pub struct SeededRandom(Mutex<fastrand::Rng>);

impl SeededRandom {
    /// Creates a generator with a seed.
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(fastrand::Rng::with_seed(seed)))
    }
}

impl Random for SeededRandom {
    fn next_u64(&self) -> u64 {
        lock(&self.0).u64(..)
    }
}

/// A function that ends the process because of a failure.
pub type EndProcess = Arc<dyn Fn(&TaskFailure) + Send + Sync>;

/// A spawner that runs tasks on tokio's threads.
pub struct TokioSpawner {
    end_process: EndProcess,
    lending: Arc<Mutex<ThreadLending>>,
    queued: Arc<BulkThreads>,
    at_once: Arc<BulkThreads>,
}

/// The state of lending tokio's worker threads for short blocking work. One thread is lent at a
/// time, and none for a while after one was lent for too long. So a slow disk stops at most one
/// of several threads, for at most a tenth of the time.
///
/// A tokio worker that was woken by sockets or timers still drives them while it runs a task, and
/// the other workers may sleep. So a separate thread *watches*: when a thread is lent for longer
/// than [`WATCH`], it wakes another worker, which takes over sockets, timers and waiting tasks.
/// The watching thread ends when no thread was lent for [`WATCHED_AFTER`].
#[derive(Default)]
struct ThreadLending {
    lent_since: Option<Instant>,
    not_before: Option<Instant>,
    last_lent: Option<Instant>,
    is_watched: bool,
}

/// The interval between two checks of the lent thread.
const WATCH: Duration = Duration::from_millis(5);
/// The time without a lent thread after which the watching thread ends.
const WATCHED_AFTER: Duration = Duration::from_secs(1);

/// Wakes another worker whenever a thread is lent for longer than [`WATCH`]. Returns when no
/// thread was lent for [`WATCHED_AFTER`].
fn watch_lent_threads(lending: &Mutex<ThreadLending>, runtime: &tokio::runtime::Handle) {
    loop {
        std::thread::sleep(WATCH);
        let (now, mut state) = (Instant::now(), lock(lending));
        if state.last_lent.is_none_or(|at| now.duration_since(at) > WATCHED_AFTER) {
            state.is_watched = false;
            return;
        }
        if state.lent_since.is_some_and(|since| now.duration_since(since) >= WATCH) {
            state.last_lent = Some(now);
            drop(state);
            // Only a task from outside of its workers surely wakes one.
            drop(runtime.spawn(async {}));
        }
    }
}

/// The time within which work on a lent thread should end.
const LENT_MAX: Duration = Duration::from_millis(2);
/// After work on a lent thread that took longer than [`LENT_MAX`], no thread is lent for this
/// multiple of the work's time.
const LENT_AGAIN_AFTER: u32 = 10;

impl Default for TokioSpawner {
    fn default() -> Self {
        Self::with_end_process(Arc::new(exit))
    }
}

impl TokioSpawner {
    /// Creates a spawner that calls `end_process` for failures that end the process.
    pub fn with_end_process(end_process: EndProcess) -> Self {
        Self {
            end_process,
            lending: Arc::default(),
            queued: Arc::new(BulkThreads::for_queued()),
            at_once: Arc::new(BulkThreads::for_immediate_work()),
        }
    }
}

/// Ends the process with status 1 and one line on standard error. No data is flushed: the next
/// start recovers as after a crash.
fn exit(failure: &TaskFailure) {
    let line = format!(
        "sextant: {failure}; the process ends: start it again, and it recovers as after a crash\n"
    );
    // An error here cannot be reported any more.
    let _lost = std::io::stderr().write_all(line.as_bytes());
    std::process::exit(1);
}

impl Spawner for TokioSpawner {
    fn spawn(&self, name: &'static str, future: BoxFuture<()>) -> Task {
        let handle = tokio::spawn(future);
        tracing::trace!(task = name, "spawned");
        Task::new(move || handle.abort())
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        bulk::spawn_blocking(&tokio::runtime::Handle::current(), work);
    }

    fn spawn_bulk(&self, kind: Bulk, work: Box<dyn FnOnce() + Send>) {
        match kind {
            Bulk::Queued => self.queued.run(work),
            Bulk::AtOnce => self.at_once.run(work),
        }
    }

    fn lend_thread(&self) -> Option<LentThread> {
        let runtime = tokio::runtime::Handle::current();
        if runtime.metrics().num_workers() < 2 {
            return None;
        }
        let (begun, mut state) = (Instant::now(), lock(&self.lending));
        if state.lent_since.is_some() || state.not_before.is_some_and(|at| begun < at) {
            return None;
        }
        if !state.is_watched {
            let lending = Arc::clone(&self.lending);
            let watcher = std::thread::Builder::new().name("lent threads".to_owned());
            // Without a watcher no thread is lent.
            watcher.spawn(move || watch_lent_threads(&lending, &runtime)).ok()?;
            state.is_watched = true;
        }
        (state.lent_since, state.last_lent) = (Some(begun), Some(begun));
        let lending = Arc::clone(&self.lending);
        Some(LentThread::new(move || {
            let (now, mut state) = (Instant::now(), lock(&lending));
            let lent = now.duration_since(begun);
            state.not_before = (lent > LENT_MAX).then(|| now + lent * LENT_AGAIN_AFTER);
            state.lent_since = None;
        }))
    }

    fn run_in_parallel(&self, aside: &mut (dyn FnMut() + Send), own: &mut dyn FnMut()) {
        let aside = Mutex::new(aside);
        let has_thread = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("beside".to_owned());
            let begun = thread.spawn_scoped(scope, || lock(&aside)());
            own();
            begun.is_ok()
        });
        if !has_thread {
            lock(&aside)();
        }
    }

    fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn failed(&self, failure: TaskFailure) {
        match failure.policy {
            TaskPolicy::Request => tracing::error!("{failure}"),
            TaskPolicy::Restart(pause) => {
                tracing::error!("{failure}; it begins anew in {} ms", pause.as_millis());
            }
            TaskPolicy::EndProcess => (self.end_process)(&failure),
        }
    }
}

/// The system's file system. Files that this process creates can be read and written only by their
/// owner, because data directories contain documents and secrets.
pub struct RealFs;

/// The mode of created files.
const FILE_MODE: u32 = 0o600;
/// The mode of created directories.
const DIR_MODE: u32 = 0o700;

struct RealFile(fs::File);

impl FileSystem for RealFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut options = fs::OpenOptions::new();
        options.read(true).mode(FILE_MODE);
        match mode {
            OpenMode::Read => {}
            OpenMode::ReadWrite => {
                options.write(true);
            }
            OpenMode::Create => {
                options.write(true).create(true).truncate(false);
            }
            OpenMode::CreateNew => {
                options.write(true).create_new(true);
            }
        }
        Ok(Arc::new(RealFile(options.open(path)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(DIR_MODE).create(path)
    }

    fn mode(&self, path: &Path) -> io::Result<Option<u32>> {
        Ok(Some(fs::metadata(path)?.permissions().mode() & 0o7777))
    }

    fn owner(&self, path: &Path) -> io::Result<Option<Owner>> {
        let owner = fs::metadata(path)?.uid();
        Ok(Some(match owner {
            _ if owner == rustix::process::geteuid().as_raw() => Owner::Process,
            0 => Owner::Root,
            _ => Owner::Other,
        }))
    }

    fn make_private(&self, path: &Path) -> io::Result<()> {
        let found = fs::metadata(path)?;
        let private = if found.is_dir() { DIR_MODE } else { FILE_MODE };
        if found.permissions().mode() & 0o077 == 0 {
            return Ok(());
        }
        fs::set_permissions(path, fs::Permissions::from_mode(private))
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        fs::File::open(path)?.sync_all()
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let mut names =
            fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
        names.sort();
        Ok(names)
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn resolve(&self, path: &Path) -> io::Result<ResolvedPath> {
        let path = fs::canonicalize(path)?;
        let is_file = fs::metadata(&path)?.is_file();
        Ok(ResolvedPath { path, is_file })
    }

    fn lock_dir(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        let file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(FILE_MODE)
            .open(path.join("LOCK"))?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(file)),
            Err(fs::TryLockError::WouldBlock) => Err(io::Error::new(
                io::ErrorKind::WouldBlock,
                format!("{} is in use by another process", path.display()),
            )),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }
}

impl File for RealFile {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_exact_at(buf, offset)
    }

    #[cfg(target_os = "linux")]
    fn read_from_memory(&self, buf: &mut [u8], offset: u64) -> bool {
        // The kernel returns what it has in its page cache, and fails where it would have to read.
        let len = buf.len();
        let mut into = [io::IoSliceMut::new(buf)];
        let nowait = rustix::io::ReadWriteFlags::NOWAIT;
        let read = rustix::io::preadv2(&self.0, &mut into, offset, nowait);
        read.is_ok_and(|read| read == len)
    }

    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(buf, offset)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

#[cfg(test)]
mod mode_tests {
    use super::*;

    #[test]
    fn nobody_else_reads_what_a_process_creates() {
        let dir = tempfile::tempdir().unwrap();
        let (fs, made) = (RealFs, dir.path().join("above/data"));
        fs.create_dir_all(&made).unwrap();
        for mode in [OpenMode::Create, OpenMode::CreateNew] {
            let path = made.join(format!("{mode:?}"));
            fs.open(&path, mode).unwrap();
            assert_eq!(fs.mode(&path).unwrap(), Some(0o600));
        }
        let _lock = fs.lock_dir(&made).unwrap();
        assert_eq!(fs.mode(&made.join("LOCK")).unwrap(), Some(0o600));
        for dir in [made.as_path(), made.parent().unwrap()] {
            assert_eq!(fs.mode(dir).unwrap(), Some(0o700));
        }
        std::fs::set_permissions(&made, std::fs::Permissions::from_mode(0o755)).unwrap();
        fs.make_private(&made).unwrap();
        assert_eq!(fs.mode(&made).unwrap(), Some(0o700), "of an earlier build");
    }
}
