//! The files of certificates and keys.

use std::io;
use std::path::{Path, PathBuf};

use proto::env::{Env, FileSystem, OpenMode};
use proto::{Error, ErrorCode, Result};

/// A longer file is none of these.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Three files as they were read: certificate, key, authority.
#[derive(Clone, PartialEq, Eq)]
pub struct Pem {
    /// The certificate, and intermediate ones behind it.
    pub certificate: Vec<u8>,
    /// The private key.
    pub key: Vec<u8>,
    /// The certificates of the authority; several while one takes the place of another.
    pub ca: Vec<u8>,
}

/// The three files of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, and intermediate ones behind it.
    pub certificate: PathBuf,
    /// The private key; nobody but its owner may read it.
    pub key: PathBuf,
    /// The certificates of the cluster's authority.
    pub ca: PathBuf,
}

impl TlsFiles {
    /// Reads the files.
    pub(super) async fn read(&self, env: &Env) -> Result<Pem> {
        let (files, its_env) = (self.clone(), env.clone());
        env.blocking(move || {
            let fs = &*its_env.fs;
            Ok(Pem {
                certificate: read_public(fs, &files.certificate)?,
                key: read_private(fs, &files.key)?,
                ca: read_public(fs, &files.ca)?,
            })
        })
        .await
    }

    /// Adds the names of the files to an error.
    pub(super) fn named(&self, error: Error) -> Error {
        let [certificate, key, ca] =
            [&self.certificate, &self.key, &self.ca].map(|path| path.display());
        error.context(format!("certificate {certificate}, key {key}, authority {ca}"))
    }
}

/// Reads a file of certificates. Blocks the thread.
pub fn read_public(fs: &dyn FileSystem, path: &Path) -> Result<Vec<u8>> {
    let read = || {
        let file = fs.open(path, OpenMode::Read)?;
        let len = file.len()?;
        if len > FILE_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is too long"));
        }
        let mut bytes = vec![0; len as usize];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    };
    read().map_err(|error| Error::from(error).context(format!("reading {}", path.display())))
}

/// Reads a file with a secret, which nobody but its owner may read. Blocks the thread.
pub fn read_private(fs: &dyn FileSystem, path: &Path) -> Result<Vec<u8>> {
    let mode = fs
        .mode(path)
        .map_err(|error| Error::from(error).context(format!("reading {}", path.display())))?;
    if let Some(mode) = mode.filter(|mode| mode & 0o077 != 0) {
        let what = format!("{} may be read by others: its mode is {mode:04o}", path.display());
        return Err(Error::new(ErrorCode::InvalidParameter, what)
            .with_hint(format!("chmod 600 {}", path.display())));
    }
    read_public(fs, path)
}

/// Writes a new file that nobody but its owner may read, durably. Blocks the thread.
pub fn write_private(fs: &dyn FileSystem, path: &Path, text: &str) -> Result<()> {
    let write = || {
        let file = fs.open(path, OpenMode::CreateNew)?;
        file.write_all_at(text.as_bytes(), 0)?;
        file.sync()?;
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
        fs.sync_dir(dir.unwrap_or(Path::new(".")))
    };
    write().map_err(|error| Error::from(error).context(format!("writing {}", path.display())))
}
