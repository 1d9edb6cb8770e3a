//! Side files: small files with one value each, in an envelope. A change writes the complete file
//! anew.
//!
//! ```text
//! file := [`Envelope`] body
//! ```
//!
//! `body` is the value in postcard. The file is written under a temporary name, synced and
//! renamed, so that a crash leaves the former value or the new one. The version in the envelope
//! stands for the encoding of the value: another encoding has another version.

use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::env::{FileSystem, OpenMode};
use crate::envelope::{Envelope, damaged_file_error};
use crate::{Error, Result};

/// The name and the format of a side file with one value of type `T`.
pub struct SideFile<T> {
    name: &'static str,
    envelope: Envelope,
    bytes_max: u64,
    value: PhantomData<fn() -> T>,
}

impl<T: Serialize + DeserializeOwned> SideFile<T> {
    /// Creates the description of a side file. When it is read, a file of more than `bytes_max`
    /// bytes counts as damaged.
    pub const fn new(name: &'static str, envelope: Envelope, bytes_max: u64) -> Self {
        Self { name, envelope, bytes_max, value: PhantomData }
    }

    /// Returns the path of the file in a directory.
    pub fn path(&self, dir: &Path) -> PathBuf {
        dir.join(self.name)
    }

    /// Reads the value; `None` if the file does not exist. An error names the file.
    pub fn read(&self, fs: &dyn FileSystem, dir: &Path) -> Result<Option<T>> {
        let path = self.path(dir);
        if !fs.exists(&path) {
            return Ok(None);
        }
        let bytes = || {
            let file = fs.open(&path, OpenMode::Read)?;
            let mut bytes = vec![0; file.len()?.min(self.bytes_max) as usize];
            file.read_exact_at(&mut bytes, 0)?;
            Ok(bytes)
        };
        let bytes = bytes().map_err(|error: io::Error| error.into());
        let decoded = bytes.and_then(|bytes: Vec<u8>| self.decode(&bytes));
        decoded.map(Some).map_err(|error: Error| with_file_context("reading", &path, error))
    }

    /// Replaces the file durably by one with this value.
    pub fn write(&self, fs: &dyn FileSystem, dir: &Path, value: &T) -> Result<()> {
        let (path, bytes) = (self.path(dir), self.encode(value)?);
        let tmp = path.with_extension("tmp");
        let publish = || {
            // A created file has the mode of this process's files; a leftover file may have another mode.
            if fs.exists(&tmp) {
                fs.remove_file(&tmp)?;
            }
            let file = fs.open(&tmp, OpenMode::CreateNew)?;
            file.write_all_at(&bytes, 0)?;
            file.sync()?;
            fs.rename(&tmp, &path)?;
            fs.sync_dir(dir)
        };
        publish().map_err(|error: io::Error| with_file_context("writing", &path, error.into()))
    }

    /// Removes the file durably, if it exists.
    pub fn remove(&self, fs: &dyn FileSystem, dir: &Path) -> Result<()> {
        let path = self.path(dir);
        let removed = || {
            for file in [path.with_extension("tmp"), path.clone()] {
                if fs.exists(&file) {
                    fs.remove_file(&file)?;
                }
            }
            fs.sync_dir(dir)
        };
        removed().map_err(|error: io::Error| with_file_context("removing", &path, error.into()))
    }

    /// Returns the bytes of a file with this value.
    pub fn encode(&self, value: &T) -> Result<Vec<u8>> {
        let body = postcard::to_stdvec(value)
            .map_err(|error| Error::internal(format!("encoding {}: {error}", self.name)))?;
        Ok(self.envelope.seal(&body))
    }

    /// Returns the value in the bytes of a file; an error if they are damaged or of another
    /// version.
    pub fn decode(&self, bytes: &[u8]) -> Result<T> {
        postcard::from_bytes(self.envelope.open(bytes)?).map_err(|_| damaged_file_error())
    }

    /// Decodes arbitrary bytes for the fuzzer: first as a complete file, then as a body in a
    /// correct envelope.
    #[cfg(any(test, feature = "testing"))]
    pub fn fuzz(&self, data: &[u8]) {
        let _ = self.decode(data);
        let Some(body) = data.get(self.envelope.bytes_before()..) else { return };
        if let Ok(value) = self.decode(&self.envelope.seal(body)) {
            self.encode(&value).expect("a value that was read can be encoded");
        }
    }
}

fn with_file_context(what: &str, path: &Path, error: Error) -> Error {
    error.context(format!("{what} {}", path.display()))
}
