//! The files of the audit: `audit.jsonl` and `refused.jsonl`. A file that has reached half of the
//! size limit is renamed to `audit.1.jsonl` or `refused.1.jsonl` and keeps the older lines.
//!
//! A file is reopened for each batch of lines, so that a tool may move it away at any time. A
//! batch that could not be written completely is removed. A line that a crash has cut off remains
//! in the file; a line break separates it from the next line.

use std::io;
use std::path::{Path, PathBuf};

use proto::env::{Env, FileSystem, OpenMode, create_dir_durably};
use proto::{Error, Result};

/// A file of the audit, and the file with its older lines.
#[derive(Clone)]
pub(super) struct AuditFile {
    env: Env,
    dir: PathBuf,
    path: PathBuf,
    older: PathBuf,
    /// The size limit of one file, in bytes.
    bytes_max: u64,
}

impl AuditFile {
    /// Returns the pair of files with a name. The sizes of the two files together are at most
    /// `bytes_max`.
    pub(super) fn new(env: &Env, dir: &Path, name: &str, bytes_max: u64) -> Self {
        let (path, older) =
            (dir.join(format!("{name}.jsonl")), dir.join(format!("{name}.1.jsonl")));
        let (env, dir) = (env.clone(), dir.to_owned());
        Self { env, dir, path, older, bytes_max: bytes_max / 2 }
    }

    /// Creates the directory with permissions by which only its owner may read the files. Blocks
    /// the thread.
    pub(super) fn prepare(&self) -> Result<()> {
        let fs = &*self.env.fs;
        let prepare = || {
            create_dir_durably(fs, &self.dir)?;
            let files = [&self.path, &self.older];
            let there = files.into_iter().filter(|path| fs.exists(path));
            there.into_iter().try_for_each(|path| fs.make_private(path))
        };
        prepare().map_err(|error| self.write_error(error))
    }

    /// Appends lines durably, all of them or none. Blocks the thread.
    pub(super) fn append(&self, lines: &str) -> Result<()> {
        self.write(&*self.env.fs, lines.as_bytes()).map_err(|error| self.write_error(error))
    }

    /// Returns an error of the file system with the path of the audit file.
    fn write_error(&self, error: io::Error) -> Error {
        let what = format!("writing the audit {}", self.path.display());
        Error::from(error).context(what).with_hint(
            "statements that have to be in the audit are refused until it can be written",
        )
    }

    fn write(&self, fs: &dyn FileSystem, lines: &[u8]) -> io::Result<()> {
        // The rename of an empty file would delete the older lines without a benefit.
        let is_full = || -> io::Result<bool> {
            let len = fs.open(&self.path, OpenMode::Read)?.len()?;
            Ok(len > 0 && len + lines.len() as u64 > self.bytes_max)
        };
        if fs.exists(&self.path) && is_full()? {
            fs.rename(&self.path, &self.older)?;
        }
        let file = fs.open(&self.path, OpenMode::Create)?;
        let len = file.len()?;
        if len == 0 {
            // The file is new, or its name was not durable yet when an earlier batch failed.
            fs.sync_dir(&self.dir)?;
        }
        let mut last = [b'\n'];
        if len > 0 {
            file.read_exact_at(&mut last, len - 1)?;
        }
        let cut: &[u8] = if last == [b'\n'] { &[] } else { b"\n" };
        let written = file.write_all_at(&[cut, lines].concat(), len).and_then(|()| file.sync());
        if written.is_err() {
            // If this fails too, the next batch begins on a new line.
            let _also_failed = file.set_len(len);
        }
        written
    }
}
