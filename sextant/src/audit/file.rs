//! The files of the audit: `audit.jsonl`, and behind half of the space `audit.1.jsonl` with the older lines.
//!
//! The file is opened anew for each batch of lines, so that a tool may move it away at any time. A batch that could not be written whole
//! is taken back. A line that a crash has cut ends with a line break before the next one begins, and stays as it is.

use std::io;
use std::path::{Path, PathBuf};

use proto::env::{Env, FileSystem, OpenMode, create_dir_durably};
use proto::{Error, Result};

const NAME: &str = "audit.jsonl";
const OLDER: &str = "audit.1.jsonl";

/// The files of a directory.
#[derive(Clone)]
pub(super) struct AuditFile {
    env: Env,
    dir: PathBuf,
    /// The size of one file.
    bytes_max: u64,
}

impl AuditFile {
    pub(super) fn new(env: &Env, dir: &Path, bytes_max: u64) -> Self {
        Self { env: env.clone(), dir: dir.to_owned(), bytes_max: bytes_max / 2 }
    }

    /// Makes the directory. Nobody but their owner may read the files. Blocks the thread.
    pub(super) fn prepare(&self) -> Result<()> {
        let fs = &*self.env.fs;
        let prepare = || {
            create_dir_durably(fs, &self.dir)?;
            let files = [NAME, OLDER].map(|name| self.dir.join(name));
            files.iter().filter(|path| fs.exists(path)).try_for_each(|path| fs.make_private(path))
        };
        prepare().map_err(|error| self.failed(error))
    }

    /// Appends lines durably, all of them or none. Blocks the thread.
    pub(super) fn append(&self, lines: &str) -> Result<()> {
        append(&*self.env.fs, &self.dir, self.bytes_max, lines.as_bytes())
            .map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> Error {
        let what = format!("writing the audit {}", self.dir.join(NAME).display());
        Error::from(error)
            .context(what)
            .with_hint("definitions and changes of users are refused until it can be written")
    }
}

fn append(fs: &dyn FileSystem, dir: &Path, bytes_max: u64, lines: &[u8]) -> io::Result<()> {
    let path = dir.join(NAME);
    let mut is_new = !fs.exists(&path);
    if !is_new && fs.open(&path, OpenMode::Read)?.len()? + lines.len() as u64 > bytes_max {
        fs.rename(&path, &dir.join(OLDER))?;
        is_new = true;
    }
    let file = fs.open(&path, OpenMode::Create)?;
    if is_new {
        fs.sync_dir(dir)?;
    }
    let len = file.len()?;
    let mut last = [b'\n'];
    if len > 0 {
        file.read_exact_at(&mut last, len - 1)?;
    }
    let cut: &[u8] = if last == [b'\n'] { &[] } else { b"\n" };
    let written = file.write_all_at(&[cut, lines].concat(), len).and_then(|()| file.sync());
    if written.is_err() {
        // If this fails too, the next batch begins on a line of its own.
        let _also_failed = file.set_len(len);
    }
    written
}
