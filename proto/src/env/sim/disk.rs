//! The contents of a simulated disk: file names and files, as programs read them now and as a
//! crash would leave them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::inode::Inode;
use crate::lock::lock;

pub(super) struct Disk {
    pub random: fastrand::Rng,
    /// The number of crashes so far; a file handle from before a crash is invalid.
    pub boot: u64,
    pub crashed: bool,
    pub operations: u64,
    pub written_bytes: u64,
    pub fail_at: BTreeSet<u64>,
    /// True if the next sync of a file fails.
    pub sync_fails: bool,
    pub crash_at: Option<u64>,
    pub panic_at: Option<u64>,
    pub capacity_bytes: u64,
    pub struck: OccurredFaults,
    /// The names that programs can use.
    pub names: BTreeMap<PathBuf, Node>,
    /// The names that survive every crash.
    pub durable: BTreeMap<PathBuf, Node>,
    /// The changes from `durable` to `names`, in order.
    pub changes: Vec<NameChange>,
    pub locks: BTreeSet<PathBuf>,
    /// The files in which a test has flipped a bit.
    pub flipped: Vec<Arc<Mutex<Inode>>>,
}

/// The numbers of armed faults that have struck, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OccurredFaults {
    /// Operations that failed.
    pub failed: u64,
    /// Operations that failed because the disk was full.
    pub full: u64,
    /// Operations in which the machine crashed.
    pub crashed: u64,
}

/// The fate of a flipped bit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlippedBit {
    /// The bit is gone: a write replaced its byte, or the file was removed.
    Replaced,
    /// The bit is still flipped.
    Stays {
        /// The file.
        path: PathBuf,
        /// The offset of the byte with the bit.
        byte: u64,
        /// True if a program has read the byte.
        is_read: bool,
    },
}

#[derive(Clone)]
pub(super) enum Node {
    Dir,
    File(Arc<Mutex<Inode>>),
}

pub(super) struct NameChange {
    /// The directory whose sync makes the change durable.
    pub dir: PathBuf,
    pub removed: Option<PathBuf>,
    pub added: Option<(PathBuf, Node)>,
}

pub(super) fn error(kind: io::ErrorKind, path: &Path, what: &str) -> io::Error {
    io::Error::new(kind, format!("{}: {what}", path.display()))
}

pub(super) fn not_found(path: &Path) -> io::Error {
    error(io::ErrorKind::NotFound, path, "no such file or directory")
}

pub(super) fn parent(path: &Path) -> PathBuf {
    path.parent().map(Path::to_path_buf).unwrap_or_default()
}

/// Returns true for the top directory, absolute or relative, which always exists.
pub(super) fn is_top(path: &Path) -> bool {
    path.parent().is_none_or(|above| above.as_os_str().is_empty() && path.as_os_str().is_empty())
}

/// Returns the error of an operation while the machine is down.
pub(super) fn machine_down_error() -> io::Error {
    io::Error::other("the simulated machine is down")
}

impl Disk {
    /// Counts an operation. Returns `Ok(true)` if the machine crashes in it: the caller must then
    /// carry out the changes that may survive, and call [`Disk::end`].
    pub fn begin(&mut self) -> io::Result<bool> {
        if self.crashed {
            return Err(machine_down_error());
        }
        self.operations += 1;
        if self.panic_at.take_if(|at| *at <= self.operations).is_some() {
            panic!("simulated panic at operation {}", self.operations);
        }
        if self.fail_at.remove(&self.operations) {
            self.struck.failed += 1;
            return Err(io::Error::other(format!(
                "simulated fault at operation {}",
                self.operations
            )));
        }
        let crashes = self.crash_at.is_some_and(|at| self.operations >= at);
        self.struck.crashed += u64::from(crashes);
        Ok(crashes)
    }

    /// Counts a sync of a file. Returns an error if a fault is armed for it.
    pub fn begin_sync(&mut self) -> io::Result<()> {
        self.begin_atomic_operation()?;
        if std::mem::take(&mut self.sync_fails) {
            self.struck.failed += 1;
            return Err(io::Error::other("simulated fault of a sync"));
        }
        Ok(())
    }

    /// Counts an operation that has no effect if the machine crashes in it.
    pub fn begin_atomic_operation(&mut self) -> io::Result<()> {
        if self.begin()? {
            self.crash();
            return Err(machine_down_error());
        }
        Ok(())
    }

    /// Ends an operation: crashes the machine if `crash` is true.
    pub fn end(&mut self, crash: bool) -> io::Result<()> {
        if crash {
            self.crash();
            return Err(machine_down_error());
        }
        Ok(())
    }

    pub fn is_dir(&self, path: &Path) -> bool {
        is_top(path) || matches!(self.names.get(path), Some(Node::Dir))
    }

    /// Removes a name and adds another one, as one change.
    pub fn rename_to(
        &mut self,
        dir: PathBuf,
        removed: Option<PathBuf>,
        added: Option<(PathBuf, Node)>,
    ) {
        let change = NameChange { dir, removed, added };
        apply_name(&change, &mut self.names);
        self.changes.push(change);
    }

    /// Returns the total size of all files in bytes.
    pub fn used_bytes(&self) -> u64 {
        let len = |node: &Node| match node {
            Node::Dir => 0,
            Node::File(inode) => lock(inode).current.len() as u64,
        };
        self.names.values().map(len).sum()
    }

    /// Returns an error if `growth` more bytes do not fit on the disk.
    pub fn check_free_capacity(&mut self, growth: u64) -> io::Result<()> {
        if self.capacity_bytes < u64::MAX && self.used_bytes() + growth > self.capacity_bytes {
            self.struck.full += 1;
            return Err(io::Error::new(
                io::ErrorKind::StorageFull,
                "no space left on the simulated disk",
            ));
        }
        Ok(())
    }

    /// Crashes the machine: keeps a random subset of the changes that were not synced.
    pub fn crash(&mut self) {
        self.crashed = true;
        self.boot += 1;
        self.crash_at = None;
        self.locks.clear();
        // Sometimes all changes survive, sometimes none, mostly some of them.
        let kept_of_8 = [0, 1, 4, 4, 4, 7, 8][self.random.usize(0..7)];
        let mut random = self.random.fork();
        let mut keep = || random.u8(0..8) < kept_of_8;
        for change in std::mem::take(&mut self.changes) {
            if keep() {
                apply_name(&change, &mut self.durable);
            }
        }
        // The contents of a directory are lost with the directory.
        let dirs: BTreeSet<PathBuf> = self
            .durable
            .iter()
            .filter(|(_, node)| matches!(node, Node::Dir))
            .map(|(path, _)| path.clone())
            .collect();
        let has_dirs =
            |path: &Path| path.ancestors().skip(1).all(|up| is_top(up) || dirs.contains(up));
        self.durable.retain(|path, _| has_dirs(path));
        for node in self.durable.values() {
            if let Node::File(inode) = node {
                lock(inode).crash(&mut keep);
            }
        }
        self.names = self.durable.clone();
    }
}

pub(super) fn apply_name(change: &NameChange, names: &mut BTreeMap<PathBuf, Node>) {
    if let Some(path) = &change.removed {
        names.remove(path);
    }
    if let Some((path, node)) = &change.added {
        names.insert(path.clone(), node.clone());
    }
}
