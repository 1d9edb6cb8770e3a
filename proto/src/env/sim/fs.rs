//! A file system in memory that may lose unsynced data at a crash, like a disk.
//!
//! A file has its current contents, its durable contents (at its last sync), and the list of
//! changes between the two, each of at most one sector. A crash keeps a random subset of these
//! changes, so that writes are lost, torn and reordered. Names work the same way: current names,
//! names that were durable at the last sync of their directory, and the changes between them. A
//! rename is one change, so that a crash keeps all of it or nothing.
//!
//! After a crash every operation fails until [`SimFs::restart`], and handles from before the
//! crash fail forever. A fault is armed for an operation with a certain number, so that a test
//! can interrupt a run at each of its operations: [`SimFs::fail_at`], [`SimFs::crash_at`].

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::disk::{
    Disk, FlippedBit, Node, OccurredFaults, apply_name, error, is_top, not_found, parent,
};
use super::handle::{SimFile, SimLock};
use super::inode::{Flip, Inode};
use crate::env::files::{File, FileSystem, OpenMode};
use crate::lock::lock;

/// A file system in memory; clones share it.
#[derive(Clone)]
pub struct SimFs(Arc<Mutex<Disk>>);

impl SimFs {
    /// Creates an empty file system. The seed determines which changes its crashes keep.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(Disk {
            random: fastrand::Rng::with_seed(seed),
            boot: 0,
            crashed: false,
            operations: 0,
            written_bytes: 0,
            fail_at: BTreeSet::new(),
            sync_fails: false,
            crash_at: None,
            panic_at: None,
            capacity_bytes: u64::MAX,
            struck: OccurredFaults::default(),
            names: BTreeMap::new(),
            durable: BTreeMap::new(),
            changes: Vec::new(),
            locks: BTreeSet::new(),
            flipped: Vec::new(),
        })))
    }

    /// Crashes the machine: keeps synced data and a random subset of the unsynced changes.
    pub fn crash(&self) {
        lock(&self.0).crash();
    }

    /// Restarts the machine with the files that the crash left.
    pub fn restart(&self) {
        let mut state = lock(&self.0);
        state.crashed = false;
        state.crash_at = None;
    }

    /// Returns true while the machine is down.
    pub fn is_crashed(&self) -> bool {
        lock(&self.0).crashed
    }

    /// Returns the number of operations so far. The next operation has this number plus one.
    pub fn operations(&self) -> u64 {
        lock(&self.0).operations
    }

    /// Returns the number of bytes written into files so far.
    pub fn written_bytes(&self) -> u64 {
        lock(&self.0).written_bytes
    }

    /// Makes the operation with this number fail without effect.
    pub fn fail_at(&self, operation: u64) {
        lock(&self.0).fail_at.insert(operation);
    }

    /// Returns the numbers of armed faults that have occurred.
    pub fn occurred_faults(&self) -> OccurredFaults {
        lock(&self.0).struck
    }

    /// Makes the next sync of a file fail without effect.
    pub fn fail_next_sync(&self) {
        lock(&self.0).sync_fails = true;
    }

    /// Disarms the faults of [`SimFs::fail_at`], [`SimFs::fail_next_sync`] and [`SimFs::crash_at`]
    /// that have not occurred yet.
    pub fn disarm_faults(&self) {
        let mut state = lock(&self.0);
        state.fail_at.clear();
        state.sync_fails = false;
        state.crash_at = None;
    }

    /// Crashes the machine in the middle of the operation with this number. The changes of this
    /// operation may survive in part.
    pub fn crash_at(&self, operation: u64) {
        lock(&self.0).crash_at = Some(operation);
    }

    /// Makes the operation with this number, or the first later one, panic, as if its caller had
    /// a bug.
    pub fn panic_at(&self, operation: u64) {
        lock(&self.0).panic_at = Some(operation);
    }

    /// Sets the size of the disk in bytes; writes that exceed it fail.
    pub fn set_capacity(&self, bytes: u64) {
        lock(&self.0).capacity_bytes = bytes;
    }

    /// Flips one bit of a file, as a worn disk would.
    pub fn flip_bit(&self, path: &Path, bit: u64) -> io::Result<()> {
        let mut state = lock(&self.0);
        let Some(Node::File(file)) = state.names.get(path).cloned() else {
            return Err(not_found(path));
        };
        let mut inode = lock(&file);
        let (byte, mask) = ((bit / 8) as usize, 1 << (bit % 8));
        if let Some(value) = inode.durable.get_mut(byte) {
            *value ^= mask;
        }
        match inode.current.get_mut(byte) {
            Some(value) => *value ^= mask,
            None => return Err(error(io::ErrorKind::InvalidInput, path, "no such bit")),
        }
        inode.flips.push(Flip { byte: bit / 8, mask, ..Flip::default() });
        drop(inode);
        if !state.flipped.iter().any(|known| Arc::ptr_eq(known, &file)) {
            state.flipped.push(file);
        }
        Ok(())
    }

    /// Returns what has become of each flipped bit.
    pub fn flipped_bits(&self) -> Vec<FlippedBit> {
        let state = lock(&self.0);
        let fates = |file: &Arc<Mutex<Inode>>| -> Vec<FlippedBit> {
            let is_here = |node: &Node| matches!(node, Node::File(of) if Arc::ptr_eq(of, file));
            let path = state.names.iter().find(|(_, node)| is_here(node)).map(|(path, _)| path);
            let fate = |Flip { byte, is_read, is_replaced, .. }: &Flip| match path {
                Some(path) if !is_replaced => {
                    FlippedBit::Stays { path: path.clone(), byte: *byte, is_read: *is_read }
                }
                _ => FlippedBit::Replaced,
            };
            lock(file).flips.iter().map(fate).collect()
        };
        state.flipped.iter().flat_map(fates).collect()
    }

    /// Returns what has become of each flipped bit, and removes all bits from the list.
    pub fn take_flipped_bits(&self) -> Vec<FlippedBit> {
        let fates = self.flipped_bits();
        for file in std::mem::take(&mut lock(&self.0).flipped) {
            lock(&file).flips.clear();
        }
        fates
    }

    /// Flips back the bits that are still wrong, and removes all bits from the list.
    pub fn flip_back(&self) {
        for file in std::mem::take(&mut lock(&self.0).flipped) {
            lock(&file).flip_back();
        }
    }

    /// Copies the durable files and directories of the disk.
    pub fn copy(&self) -> DiskCopy {
        let state = lock(&self.0);
        let contents = |node: &Node| match node {
            Node::Dir => None,
            Node::File(file) => Some(lock(file).durable.clone()),
        };
        DiskCopy(state.durable.iter().map(|(path, node)| (path.clone(), contents(node))).collect())
    }

    /// Replaces the contents of the disk by a copy. Handles to the earlier files become invalid.
    pub fn restore_disk(&self, copy: &DiskCopy) {
        let mut state = lock(&self.0);
        let node = |contents: &Option<Vec<u8>>| match contents {
            None => Node::Dir,
            Some(bytes) => Node::File(Arc::new(Mutex::new(Inode::durable(bytes)))),
        };
        state.boot += 1;
        state.locks.clear();
        state.changes.clear();
        state.flipped.clear();
        state.durable = copy.0.iter().map(|(path, of)| (path.clone(), node(of))).collect();
        state.names = state.durable.clone();
    }
}

/// A copy of a simulated disk: directories, and files with their contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskCopy(BTreeMap<PathBuf, Option<Vec<u8>>>);

impl DiskCopy {
    /// Returns the length of a file; `None` if it is not in the copy.
    pub fn len_of(&self, path: &Path) -> Option<u64> {
        self.0.get(path)?.as_ref().map(|bytes| bytes.len() as u64)
    }
}

impl FileSystem for SimFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut state = lock(&self.0);
        let crash = state.begin()?;
        let inode = match (state.names.get(path), mode) {
            (Some(Node::Dir), _) => {
                return Err(error(io::ErrorKind::IsADirectory, path, "is a directory"));
            }
            (Some(Node::File(_)), OpenMode::CreateNew) => {
                return Err(error(io::ErrorKind::AlreadyExists, path, "exists"));
            }
            (Some(Node::File(inode)), _) => inode.clone(),
            (None, OpenMode::Read | OpenMode::ReadWrite) => return Err(not_found(path)),
            (None, OpenMode::Create | OpenMode::CreateNew) => {
                let dir = parent(path);
                if !state.is_dir(&dir) {
                    return Err(not_found(&dir));
                }
                let inode = Arc::new(Mutex::new(Inode::default()));
                state.rename_to(dir, None, Some((path.to_path_buf(), Node::File(inode.clone()))));
                inode
            }
        };
        state.end(crash)?;
        let writable = mode != OpenMode::Read;
        Ok(Arc::new(SimFile { disk: self.0.clone(), inode, boot: state.boot, writable }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = lock(&self.0);
        let crash = state.begin()?;
        let Some(node @ Node::File(_)) = state.names.get(from).cloned() else {
            return Err(not_found(from));
        };
        let dir = parent(to);
        if !state.is_dir(&dir) {
            return Err(not_found(&dir));
        }
        state.rename_to(dir, Some(from.to_path_buf()), Some((to.to_path_buf(), node)));
        state.end(crash)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = lock(&self.0);
        let crash = state.begin()?;
        if !matches!(state.names.get(path), Some(Node::File(_))) {
            return Err(not_found(path));
        }
        state.rename_to(parent(path), Some(path.to_path_buf()), None);
        state.end(crash)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut state = lock(&self.0);
        let crash = state.begin()?;
        if !state.is_dir(path) {
            return Err(not_found(path));
        }
        let below: Vec<PathBuf> =
            state.names.keys().filter(|name| name.starts_with(path)).rev().cloned().collect();
        for name in below {
            state.rename_to(parent(&name), Some(name), None);
        }
        state.end(crash)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut state = lock(&self.0);
        let crash = state.begin()?;
        let mut chain: Vec<&Path> = path.ancestors().filter(|dir| !is_top(dir)).collect();
        chain.reverse();
        for dir in chain {
            match state.names.get(dir) {
                Some(Node::Dir) => {}
                Some(Node::File(_)) => {
                    return Err(error(io::ErrorKind::NotADirectory, dir, "is a file"));
                }
                None => state.rename_to(parent(dir), None, Some((dir.to_path_buf(), Node::Dir))),
            }
        }
        state.end(crash)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = lock(&self.0);
        state.begin_atomic_operation()?;
        if !state.is_dir(path) {
            return Err(not_found(path));
        }
        let Disk { changes, durable, .. } = &mut *state;
        changes.retain(|change| {
            if change.dir == path {
                apply_name(change, durable);
            }
            change.dir != path
        });
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let mut state = lock(&self.0);
        state.begin_atomic_operation()?;
        if !state.is_dir(path) {
            return Err(not_found(path));
        }
        Ok(state.names.keys().filter(|name| name.parent() == Some(path)).cloned().collect())
    }

    fn exists(&self, path: &Path) -> bool {
        let state = lock(&self.0);
        !state.crashed && (is_top(path) || state.names.contains_key(path))
    }

    fn lock_dir(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        let mut state = lock(&self.0);
        state.begin_atomic_operation()?;
        if !state.is_dir(path) {
            return Err(not_found(path));
        }
        if !state.locks.insert(path.to_path_buf()) {
            return Err(error(io::ErrorKind::WouldBlock, path, "in use by another process"));
        }
        Ok(Box::new(SimLock { disk: self.0.clone(), path: path.to_path_buf(), boot: state.boot }))
    }
}

#[cfg(test)]
#[path = "fs_tests.rs"]
mod tests;
