//! The seam for files: the traits of a file system and of an open file.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The owner of a file, as seen by this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The user that this process runs as.
    Process,
    /// The administrator of the machine, if this process runs as another user.
    Root,
    /// Another user of the system.
    Other,
}

/// The mode in which a file is opened.
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

/// The target of a path after all symbolic links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedPath {
    /// The path without symbolic links.
    pub path: PathBuf,
    /// True for a regular file, as opposed to a directory, a device, a pipe or a socket.
    pub is_file: bool,
}

/// A file system. All calls block: they must be made inside [`Env::blocking`](super::Env::blocking)
/// or a blocking task.
///
/// A crash keeps file contents that were synced with [`File::sync`], and names (creation, rename,
/// removal) whose directory was synced afterwards with [`FileSystem::sync_dir`]. It may lose
/// everything else.
pub trait FileSystem: Send + Sync + 'static {
    /// Opens a file. A created file can be read and written only by its owner.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>>;
    /// Atomically renames the file and replaces the file that had the new name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file; the removal is durable after a sync of its directory.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes a directory with its contents.
    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Makes a directory and its parents. Created directories can be entered only by their owner.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Returns the names in a directory (files and directories), sorted.
    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>>;
    /// Returns true if a file or directory of that name exists.
    fn exists(&self, path: &Path) -> bool;
    /// Resolves all symbolic links of a path. A file system without links returns the path
    /// unchanged.
    fn resolve(&self, path: &Path) -> io::Result<ResolvedPath> {
        Ok(ResolvedPath { path: path.to_path_buf(), is_file: self.exists(path) })
    }
    /// Returns the permissions of a file or directory, as the last twelve bits of its mode;
    /// `None` in a file system without modes.
    fn mode(&self, _path: &Path) -> io::Result<Option<u32>> {
        Ok(None)
    }
    /// Returns the owner of a file or directory; `None` in a file system without owners.
    fn owner(&self, _path: &Path) -> io::Result<Option<Owner>> {
        Ok(None)
    }
    /// Removes the permissions of all users but the owner from a file or directory.
    fn make_private(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }
    /// Locks the directory for this process until the returned guard is dropped. Fails
    /// immediately if another process has locked it.
    fn lock_dir(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>>;
}

/// Creates a directory and its parents, and makes their names durable.
pub fn create_dir_durably(fs: &dyn FileSystem, dir: &Path) -> io::Result<()> {
    // The directory may exist without being durable, after an earlier start that crashed.
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

/// An open file. Reads and writes take an offset, so that several threads can use one file.
pub trait File: Send + Sync + 'static {
    /// Fills `buf` with the bytes from `offset` on; an error if the file ends before.
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()>;
    /// Fills `buf` like [`Self::read_exact_at`], but only if the bytes are in memory; the call
    /// never waits for the disk, so it may be made on an async thread. Returns false if they are
    /// not in memory, or if that is unknown; the contents of `buf` are then undefined.
    fn read_from_memory(&self, _buf: &mut [u8], _offset: u64) -> bool {
        false
    }
    /// Writes all of `buf` at `offset`, growing the file as needed.
    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()>;
    /// Returns the length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Returns true if the file is empty.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Truncates the file to `len` bytes, or extends it with zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Makes the contents and the length durable.
    fn sync(&self) -> io::Result<()>;
}
