//! The seams: everything that a service takes from the world outside goes through an [`Env`], so that
//! the whole cluster can run from one seed.
//!
//! | seam | real | in the simulation |
//! |---|---|---|
//! | wall clock | the system's | a counter that the test moves, jumps and drifts |
//! | time-outs and sleeps | `tokio::time` | `tokio::time`, paused and driven by the simulator |
//! | randomness | the system's generator | seeded |
//! | files | [`real::RealFs`] | [`sim::SimFs`]: keeps any subset of unsynced sectors at a crash |
//! | tasks and blocking work | tokio's threads | one thread; blocking work runs inline |
//! | sockets | the binary's transport | the simulator's network |
//!
//! Services get an `Env` by value and clone it freely; it holds nothing but shared handles.

pub mod admission;
pub mod budget;
pub mod byte_channel;
pub mod real;
pub mod sim;

use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

pub use admission::{Admission, AdmissionLimits, AdmissionStatus, Permit};
pub use budget::{Budget, Reservation};
pub use byte_channel::{ByteReceiver, ByteSender, ReceiverGone, byte_channel};

/// Wall-clock time. For durations use `tokio::time`, which the simulation drives.
pub trait Clock: Send + Sync + 'static {
    /// Milliseconds since 1970-01-01 UTC. May jump in either direction.
    fn unix_ms(&self) -> u64;
}

/// A source of random numbers.
pub trait Random: Send + Sync + 'static {
    /// 64 random bits.
    fn next_u64(&self) -> u64;
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// For reading; the file must exist.
    Read,
    /// For reading and writing; the file must exist.
    ReadWrite,
    /// For reading and writing; created if it does not exist.
    Create,
    /// For reading and writing; it is an error if the file exists.
    CreateNew,
}

/// Files, by path. All calls block; make them inside [`Env::blocking`] or a blocking task.
///
/// What survives a crash: file contents that were synced with [`File::sync`], names (creation,
/// rename, removal) whose directory was synced after with [`FileSystem::sync_dir`]. Nothing else is
/// promised.
pub trait FileSystem: Send + Sync + 'static {
    /// Opens a file.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>>;
    /// Atomically gives the file a new name, replacing what had it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes a directory and all that is in it.
    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Makes a directory and its parents.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// The names in a directory (files and directories), sorted.
    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>>;
    /// Is there a file or directory of that name?
    fn exists(&self, path: &Path) -> bool;
    /// Takes the directory for this process alone, until the lock is dropped; fails at once if
    /// another has it.
    fn lock_dir(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>>;
}

/// Makes a directory and those above it, each with its name durable in the one above.
pub fn create_dir_durably(fs: &dyn FileSystem, dir: &Path) -> io::Result<()> {
    // The directory itself may be there and not be durable, if an earlier start was cut short.
    let missing = dir.ancestors().skip(1).take_while(|above| !fs.exists(above));
    let made: Vec<&Path> = std::iter::once(dir).chain(missing).collect();
    fs.create_dir_all(dir)?;
    for above in made.iter().filter_map(|made| made.parent()) {
        // The parent of a relative name is the current directory.
        let here = above.as_os_str().is_empty();
        fs.sync_dir(if here { Path::new(".") } else { above })?;
    }
    Ok(())
}

/// An open file; positional, so that readers share it.
pub trait File: Send + Sync + 'static {
    /// Fills `buf` from `offset`; an error if the file ends before.
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes all of `buf` at `offset`, growing the file as needed.
    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()>;
    /// The length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Is it empty?
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Cuts or grows (with zeros) the file.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Makes contents and length durable.
    fn sync(&self) -> io::Result<()>;
}

/// A future that owns all that it needs.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send + 'static>>;

/// Runs tasks.
pub trait Spawner: Send + Sync + 'static {
    /// Runs a future in the background until it ends or the [`Task`] is dropped.
    fn spawn(&self, name: &'static str, future: BoxFuture<()>) -> Task;
    /// Runs work that blocks where it may; in the simulation at once, in the caller's thread.
    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>);
    /// Holds blocking work up for a while; in the simulation, where others wait for it, it goes on.
    fn pause(&self, _time: Duration) {}
}

/// A background task; dropping it cancels the task at its next await.
#[must_use = "dropping a task cancels it"]
pub struct Task {
    abort: Option<Box<dyn FnOnce() + Send + Sync>>,
}

impl Task {
    /// A task that is cancelled by `abort`.
    pub fn new(abort: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self { abort: Some(Box::new(abort)) }
    }

    /// Lets the task run to its end.
    pub fn detach(mut self) {
        self.abort = None;
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(abort) = self.abort.take() {
            abort();
        }
    }
}

/// All seams together.
#[derive(Clone)]
pub struct Env {
    /// Wall-clock time.
    pub clock: Arc<dyn Clock>,
    /// Random numbers.
    pub random: Arc<dyn Random>,
    /// Files.
    pub fs: Arc<dyn FileSystem>,
    /// Tasks.
    pub spawner: Arc<dyn Spawner>,
}

impl Env {
    /// The world as it is.
    pub fn real() -> Self {
        Self {
            clock: Arc::new(real::SystemClock),
            random: Arc::new(real::SystemRandom::default()),
            fs: Arc::new(real::RealFs),
            spawner: Arc::new(real::TokioSpawner),
        }
    }

    /// Runs a future in the background until it ends or the [`Task`] is dropped.
    pub fn spawn(
        &self,
        name: &'static str,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> Task {
        self.spawner.spawn(name, Box::pin(future))
    }

    /// Runs blocking work off the async threads and waits for what it returns.
    ///
    /// # Panics
    /// If the work panics, which is a bug in the work.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let (done, result) = tokio::sync::oneshot::channel();
        self.spawner.spawn_blocking(Box::new(move || {
            let _ = done.send(catch_unwind(AssertUnwindSafe(work)));
        }));
        match result.await {
            Ok(Ok(value)) => value,
            Ok(Err(panic)) => resume_unwind(panic),
            // The process ends, and nobody runs the work any more; who waits for it ends with it.
            Err(_) => std::future::pending().await,
        }
    }
}
