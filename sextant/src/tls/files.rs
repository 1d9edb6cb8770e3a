//! Reads and writes the files of certificates and keys.

use std::io;
use std::path::{Path, PathBuf};

use proto::env::{Env, FileSystem, OpenMode, Owner};
use proto::{Error, ErrorCode, Result};

/// The maximum size of a file, in bytes. A longer file is refused.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The contents of the three files of a process: certificate, key, authority.
#[derive(Clone, PartialEq, Eq)]
pub struct Pem {
    /// The certificate, followed by intermediate certificates.
    pub certificate: Vec<u8>,
    /// The private key.
    pub key: Vec<u8>,
    /// The certificates of the authority. There are several while a new authority replaces an old
    /// one.
    pub ca: Vec<u8>,
}

/// The paths of the three files of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The file of the certificate, followed by intermediate certificates.
    pub certificate: PathBuf,
    /// The file of the private key. Only its owner may read it, as `check_private` requires.
    pub key: PathBuf,
    /// The file of the authority's certificates.
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
    pub(super) fn with_file_names(&self, error: Error) -> Error {
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

/// Checks the permissions of a file with a secret and reads it. Blocks the thread.
pub fn read_private(fs: &dyn FileSystem, path: &Path) -> Result<Vec<u8>> {
    let (mode, owner) =
        (|| Ok((fs.mode(path)?, fs.owner(path)?)))().map_err(|error: io::Error| {
            Error::from(error).context(format!("reading {}", path.display()))
        })?;
    if let Some(mode) = mode {
        check_private(path, mode, owner)?;
    }
    read_public(fs, path)
}

/// Returns an error if users other than the owner may read a file with a secret, as in
/// PostgreSQL. If the owner is root, the group of this process may read it too, since
/// orchestrators mount secrets in this form.
fn check_private(path: &Path, mode: u32, owner: Option<Owner>) -> Result<()> {
    let path = path.display();
    let (refused, hint) = match owner {
        Some(Owner::Root) => (0o037, format!("chmod 640 {path}")),
        _ => (0o077, format!("chmod 600 {path}")),
    };
    if mode & refused == 0 {
        return Ok(());
    }
    let what = format!("{path} may be read by others: its mode is {mode:04o}");
    Err(Error::new(ErrorCode::InvalidParameter, what).with_hint(hint))
}

/// Creates a file durably so that only its owner may read it. Blocks the thread.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_may_read_a_secret_of_root_only() {
        let refusal = |mode, owner| check_private(Path::new("/key"), mode, owner).err();
        for mode in [0o600, 0o400, 0o640, 0o440] {
            assert_eq!(refusal(mode, Some(Owner::Root)), None, "{mode:o}");
        }
        for (mode, owner) in [
            (0o660, Owner::Root),
            (0o650, Owner::Root),
            (0o644, Owner::Root),
            (0o640, Owner::Process),
            (0o440, Owner::Other),
        ] {
            assert!(refusal(mode, Some(owner)).is_some(), "{mode:o} of {owner:?}");
        }
        let root = refusal(0o644, Some(Owner::Root)).expect("refused");
        assert_eq!(root.hint.as_deref(), Some("chmod 640 /key"));
        assert!(refusal(0o640, None).is_some() && refusal(0o600, None).is_none());
    }
}
