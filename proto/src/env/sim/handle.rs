//! Handles of programs on the simulated machine: open files and locks.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use super::disk::{Disk, machine_down_error};
use super::inode::{Change, Inode};
use crate::env::files::File;
use crate::lock::lock;

/// A lock of a directory, which a drop or a crash releases.
pub(super) struct SimLock {
    pub(super) disk: Arc<Mutex<Disk>>,
    pub(super) path: PathBuf,
    pub(super) boot: u64,
}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut state = lock(&self.disk);
        if state.boot == self.boot {
            state.locks.remove(&self.path);
        }
    }
}

/// An open file; invalid after a crash.
pub(super) struct SimFile {
    pub(super) disk: Arc<Mutex<Disk>>,
    pub(super) inode: Arc<Mutex<Inode>>,
    pub(super) boot: u64,
    pub(super) writable: bool,
}

impl SimFile {
    /// Returns the disk; an error if the machine has crashed since the file was opened.
    fn state(&self) -> io::Result<MutexGuard<'_, Disk>> {
        let state = lock(&self.disk);
        if state.boot == self.boot { Ok(state) } else { Err(machine_down_error()) }
    }

    fn state_to_write(&self) -> io::Result<MutexGuard<'_, Disk>> {
        if !self.writable {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "opened for reading"));
        }
        self.state()
    }
}

impl File for SimFile {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.state()?.begin_atomic_operation()?;
        let mut inode = lock(&self.inode);
        let end = offset.saturating_add(buf.len() as u64);
        inode.note_read(offset..end);
        match inode.current.get(offset as usize..end as usize) {
            Some(bytes) => buf.copy_from_slice(bytes),
            None => {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file ends before"));
            }
        }
        Ok(())
    }

    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.state_to_write()?;
        let crash = state.begin()?;
        let len = lock(&self.inode).current.len() as u64;
        state.check_free_capacity((offset + buf.len() as u64).saturating_sub(len))?;
        lock(&self.inode).write(buf, offset);
        state.written_bytes += buf.len() as u64;
        state.end(crash)
    }

    fn len(&self) -> io::Result<u64> {
        self.state()?.begin_atomic_operation()?;
        Ok(lock(&self.inode).current.len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state_to_write()?;
        let crash = state.begin()?;
        let current = lock(&self.inode).current.len() as u64;
        state.check_free_capacity(len.saturating_sub(current))?;
        lock(&self.inode).change(Change::SetLen(len));
        state.end(crash)
    }

    fn sync(&self) -> io::Result<()> {
        self.state()?.begin_sync()?;
        lock(&self.inode).sync();
        Ok(())
    }
}
