//! The files VERSION and IDENTITY of a data directory.
//!
//! ```text
//! VERSION   := one line that names the layout
//! IDENTITY  := "sextant identity 1" "role" "node" "cluster" "secret" "check", one per line    (text)
//! ```
//!
//! `cluster` is `-` until the directory has joined a cluster. `check` is the CRC-32C of the lines
//! before it. The file is written completely under a temporary name, synced and renamed. A process
//! with the secret can register as the node.

use std::path::{Path, PathBuf};

use super::clock::Random;
use super::files::{FileSystem, OpenMode};
use crate::error::{Error, ErrorCode, Result};
use crate::model::identity::{ClusterId, NodeProof};
use crate::model::ids::NodeId;
use crate::model::node::Role;

const IDENTITY_FILE: &str = "IDENTITY";
const IDENTITY_HEAD: &str = "sextant identity 1";
/// Maximum size of the files in bytes; a longer file is invalid.
const FILE_BYTES_MAX: u64 = 1024;

/// Checks that a directory has the layout `version`, which this build reads. If the file VERSION
/// is missing, writes it; but if `has_data` is true, returns an error: the file was lost, and the
/// layout of the data is unknown.
pub fn check_version(fs: &dyn FileSystem, dir: &Path, version: &str, has_data: bool) -> Result<()> {
    let path = dir.join("VERSION");
    let found = read_text(fs, &path)?.unwrap_or_default();
    if found == version {
        return Ok(());
    }
    if found.is_empty() && !has_data {
        return replace(fs, &path, version);
    }
    let what = match found.is_empty() {
        true => format!("{} is missing or empty, though the directory has data", path.display()),
        false => {
            let (found, version) = (found.trim(), version.trim());
            format!(
                "{path} is of another version: it holds {found:?}, this build reads {version:?}",
                path = path.display()
            )
        }
    };
    Err(Error::new(ErrorCode::Version, what).with_hint(
        "start the build that wrote the directory, restore the file, or use another directory",
    ))
}

/// The identity stored in a data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryIdentity {
    /// The role of the process.
    pub role: Role,
    /// The number of the node.
    pub node: NodeId,
    /// The cluster that the directory belongs to; `None` before the node has joined one.
    pub cluster: Option<ClusterId>,
    secret: u128,
}

impl DirectoryIdentity {
    /// Reads the identity of a directory, or creates one. Returns an error if the directory
    /// belongs to another node or role. `has_data` is true if the directory contains files that
    /// are written only after the identity; a missing identity is then an error too.
    pub fn open(
        fs: &dyn FileSystem,
        dir: &Path,
        (role, node): (Role, NodeId),
        random: &dyn Random,
        has_data: bool,
    ) -> Result<Self> {
        let path = Self::path(dir);
        let Some(found) = Self::read(fs, dir)? else {
            if has_data {
                let what = format!("{} is missing, though the directory has data", path.display());
                return Err(Error::new(ErrorCode::Corrupt, what).with_hint(
                    "restore the file, or use another directory: nothing says to which cluster the data belongs",
                ));
            }
            let secret = u128::from(random.next_u64()) << 64 | u128::from(random.next_u64());
            let drawn = Self { role, node, cluster: None, secret };
            drawn.write(fs, dir)?;
            return Ok(drawn);
        };
        if (found.role, found.node) != (role, node) {
            let what = format!(
                "{} names {} {}, this process is {} {node}",
                path.display(),
                found.role.name(),
                found.node,
                role.name()
            );
            return Err(Error::new(ErrorCode::InvalidParameter, what).with_hint(
                "give the process its own directory, or the number and role of this one",
            ));
        }
        Ok(found)
    }

    /// Returns the path of the file IDENTITY in a directory.
    pub fn path(dir: &Path) -> PathBuf {
        dir.join(IDENTITY_FILE)
    }

    /// Reads the identity of a directory; `None` if it has none.
    pub fn read(fs: &dyn FileSystem, dir: &Path) -> Result<Option<Self>> {
        let path = Self::path(dir);
        let Some(text) = read_text(fs, &path)? else { return Ok(None) };
        let damaged = || {
            let what = format!("{} is damaged, or of another version", path.display());
            Error::new(ErrorCode::Corrupt, what)
                .with_hint("restore the file, or use another directory")
        };
        Self::parse(&text).map(Some).ok_or_else(damaged)
    }

    /// Writes the identity durably.
    pub fn write(&self, fs: &dyn FileSystem, dir: &Path) -> Result<()> {
        replace(fs, &Self::path(dir), &self.to_text())
    }

    /// Returns the proof that this process owns its node id.
    pub fn proof(&self) -> NodeProof {
        let derive = |part: u8| {
            let mut bytes = [part; 17];
            bytes[1..].copy_from_slice(&self.secret.to_le_bytes());
            xxhash_rust::xxh3::xxh3_64(&bytes)
        };
        NodeProof(u128::from(derive(1)) << 64 | u128::from(derive(2)))
    }

    fn to_text(&self) -> String {
        let cluster = self.cluster.map_or_else(|| "-".to_owned(), |cluster| cluster.to_string());
        let Self { role, node, secret, .. } = self;
        let role = role.name();
        let body = format!(
            "{IDENTITY_HEAD}\nrole {role}\nnode {node}\ncluster {cluster}\nsecret {secret:032x}\n"
        );
        let check = crc32c::crc32c(body.as_bytes());
        format!("{body}check {check:08x}\n")
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next()? != IDENTITY_HEAD {
            return None;
        }
        let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let role = field("role")?;
        let roles = [Role::Coordinator, Role::Projector, Role::Indexer, Role::Router];
        let role = roles.into_iter().find(|known| known.name() == role)?;
        let node = NodeId(field("node")?.parse().ok()?);
        let cluster = match field("cluster")? {
            "-" => None,
            cluster => Some(cluster.parse().ok()?),
        };
        let secret = u128::from_str_radix(field("secret")?, 16).ok()?;
        let read = Self { role, node, cluster, secret };
        // Only one spelling is valid: this also compares the check.
        (read.to_text() == text).then_some(read)
    }
}

/// Reads a short text file; `None` if there is none. If the file is too long or not UTF-8,
/// returns only its beginning, which the callers refuse as invalid.
fn read_text(fs: &dyn FileSystem, path: &Path) -> Result<Option<String>> {
    if !fs.exists(path) {
        return Ok(None);
    }
    let read = || {
        let file = fs.open(path, OpenMode::Read)?;
        let mut bytes = vec![0; file.len()?.min(FILE_BYTES_MAX) as usize];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    read().map(Some).map_err(|error: std::io::Error| {
        Error::from(error).context(format!("reading {}", path.display()))
    })
}

/// Replaces a file durably: writes a temporary file, syncs it and renames it.
fn replace(fs: &dyn FileSystem, path: &Path, text: &str) -> Result<()> {
    let (tmp, dir) = (path.with_extension("tmp"), path.parent().unwrap_or(path));
    let write = || {
        let file = fs.open(&tmp, OpenMode::Create)?;
        file.set_len(0)?;
        file.write_all_at(text.as_bytes(), 0)?;
        file.sync()?;
        fs.rename(&tmp, path)?;
        fs.sync_dir(dir)
    };
    write().map_err(|error: std::io::Error| {
        Error::from(error).context(format!("writing {}", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::super::Env;
    use super::super::sim::{self, SimFs};
    use super::*;

    const WHO: (Role, NodeId) = (Role::Indexer, NodeId(7));
    const DIR: &str = "/node";

    /// Returns a file system with the empty directory [`DIR`].
    fn empty() -> (Env, SimFs) {
        let (env, _, fs) = sim::world(1);
        super::super::create_dir_durably(&fs, Path::new(DIR)).unwrap();
        (env, fs)
    }

    #[test]
    fn a_directory_keeps_its_owner_its_cluster_and_its_proof() {
        let (env, fs) = empty();
        let dir = Path::new(DIR);
        let open = |who| DirectoryIdentity::open(&fs, dir, who, &*env.random, false);
        let mut first = open(WHO).unwrap();
        first.cluster = Some(ClusterId(5));
        first.write(&fs, dir).unwrap();
        fs.crash();
        fs.restart();
        let again = open(WHO).unwrap();
        assert_eq!((again.clone(), again.proof()), (first.clone(), first.proof()));
        for other in [(Role::Projector, NodeId(7)), (Role::Indexer, NodeId(8))] {
            let error = open(other).expect_err("another process");
            assert!(error.message.contains("/node/IDENTITY"), "{error}");
        }
    }

    #[test]
    fn every_flipped_bit_of_an_identity_is_found_and_a_lost_one_is_named() {
        let (env, fs) = empty();
        let dir = Path::new(DIR);
        let open = |has_data| DirectoryIdentity::open(&fs, dir, WHO, &*env.random, has_data);
        open(false).unwrap();
        let path = DirectoryIdentity::path(dir);
        let bits = fs.open(&path, OpenMode::Read).unwrap().len().unwrap() * 8;
        for bit in 0..bits {
            fs.flip_bit(&path, bit).unwrap();
            let error = open(true).expect_err("damage must not pass");
            assert!(error.message.contains("/node/IDENTITY"), "{error}");
            fs.flip_bit(&path, bit).unwrap();
        }
        fs.remove_file(&path).unwrap();
        assert_eq!(open(true).unwrap_err().code, ErrorCode::Corrupt);
        open(false).expect("a new directory");
    }

    #[test]
    fn a_directory_of_another_version_or_without_one_is_refused() {
        let (_, fs) = empty();
        let dir = Path::new(DIR);
        assert_eq!(check_version(&fs, dir, "v 1\n", true).unwrap_err().code, ErrorCode::Version);
        check_version(&fs, dir, "v 1\n", false).unwrap();
        check_version(&fs, dir, "v 1\n", true).unwrap();
        let error = check_version(&fs, dir, "v 2\n", false).unwrap_err();
        assert!(error.message.contains("/node/VERSION"), "{error}");
    }
}
