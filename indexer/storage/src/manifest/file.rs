//! Manifests on disk.
//!
//! ```text
//! file := "sxmf" version:u32 kind:u32 len:u64 number:u64 crc:u32  body[len]      (little endian)
//! ```
//!
//! `body` is postcard; `crc` is CRC-32C over kind, length, number and body. A manifest is written
//! completely under a temporary name, synced and renamed. So a crash leaves the old manifest or the
//! new one.
//!
//! `number` grows with each write of an index manifest on a node; the node manifest contains the
//! numbers of all index manifests. An index manifest with a smaller number is an old copy, which
//! lacks epochs that the log has released since. The number of a node manifest is 0.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proto::env::{FileSystem, OpenMode};
use proto::model::ids::LocalIndexId;
use proto::{Error, ErrorCode, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::manifest::damage::damaged;
use crate::manifest::index_manifest::IndexManifest;

#[cfg(debug_assertions)]
use crate::manifest::invariants::{broken_in_index, broken_in_node};
use crate::manifest::node_manifest::NodeManifest;

const MAGIC: &[u8; 4] = b"sxmf";
const VERSION: u32 = 2;
const HEADER_BYTES: usize = 32;
/// The part of the header that the checksum covers; the checksum follows it.
const SUMMED: std::ops::Range<usize> = 8..28;
const NODE_NAME: &str = "node.manifest";
const SUFFIX: &str = ".manifest";
const HINT: &str =
    "restore the file, or remove it together with the fragments: the slices are then rebuilt";
const VERSION_HINT: &str =
    "start the build that wrote the directory, or use an empty one: the slices are then rebuilt";

/// The kind of a manifest: of an index generation, or of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ManifestKind {
    Node = 1,
    Index = 2,
}

/// All manifests of a directory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifests {
    /// The node manifest; `None` before the first one was written.
    pub node: Option<NodeManifest>,
    /// Index manifests, by index and generation.
    pub indexes: Vec<IndexManifest>,
    /// Numbers of the index manifests, for the node manifest.
    pub numbers: BTreeMap<LocalIndexId, u64>,
}

/// Writes an index manifest durably, replacing an earlier one. `number` must be larger than the
/// number of the earlier one.
pub fn write_index(
    fs: &dyn FileSystem,
    dir: &Path,
    manifest: &IndexManifest,
    number: u64,
) -> Result<()> {
    manifest.check()?;
    #[cfg(debug_assertions)]
    assert_eq!(
        broken_in_index(manifest),
        None,
        "an invariant of index {}",
        manifest.info.local_id()
    );
    let name = index_name(manifest.info.local_id());
    write(fs, dir, &name, &encode(ManifestKind::Index, number, manifest)?)
}

/// Writes the node manifest durably, replacing an earlier one.
pub fn write_node(fs: &dyn FileSystem, dir: &Path, manifest: &NodeManifest) -> Result<()> {
    #[cfg(debug_assertions)]
    assert_eq!(broken_in_node(manifest), None, "an invariant of the node manifest");
    write(fs, dir, NODE_NAME, &encode(ManifestKind::Node, 0, manifest)?)
}

/// Reads the manifest of an index and its number; `None` if there is none.
pub fn read_index(
    fs: &dyn FileSystem,
    dir: &Path,
    index: LocalIndexId,
) -> Result<Option<(IndexManifest, u64)>> {
    let path = dir.join(index_name(index));
    read(fs, &path, |bytes| decode_index(&path, bytes))
}

/// Reads the node manifest; `None` if there is none.
pub fn read_node(fs: &dyn FileSystem, dir: &Path) -> Result<Option<NodeManifest>> {
    read(fs, &dir.join(NODE_NAME), |bytes| decode(ManifestKind::Node, bytes))
}

/// Removes the manifest of an index durably. A missing manifest is no error.
pub fn remove_index(fs: &dyn FileSystem, dir: &Path, index: LocalIndexId) -> Result<()> {
    let path = dir.join(index_name(index));
    let removed = match fs.remove_file(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    };
    removed
        .and_then(|()| fs.sync_dir(dir))
        .map_err(|error| Error::from(error).context(format!("removing {}", path.display())))
}

/// Reads all manifests of a directory and removes temporary files of interrupted writes. A damaged
/// manifest is an error that names it.
pub fn read_all(fs: &dyn FileSystem, dir: &Path) -> Result<Manifests> {
    let listing =
        |error: std::io::Error| Error::from(error).context(format!("listing {}", dir.display()));
    let mut manifests = Manifests { node: read_node(fs, dir)?, ..Manifests::default() };
    for path in fs.list(dir).map_err(listing)? {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.ends_with(".manifest.tmp") {
            fs.remove_file(&path).map_err(listing)?;
        } else if name.ends_with(SUFFIX)
            && name != NODE_NAME
            && let Some((manifest, number)) = read(fs, &path, |bytes| decode_index(&path, bytes))?
        {
            manifests.numbers.insert(manifest.info.local_id(), number);
            manifests.indexes.push(manifest);
        }
    }
    manifests.indexes.sort_by_key(|manifest| manifest.info.local_id());
    Ok(manifests)
}

impl Manifests {
    /// Checks that the manifests of a directory belong together. The error `Corrupt` names the file
    /// that does not fit.
    ///
    /// - An index manifest has a floor only after the node manifest named an applied epoch of its
    ///   bucket (`node/checkpoints.rs`). Without the node manifest it is unknown which part of the
    ///   log the fragments need.
    /// - The log was released up to the position in the node manifest, since the index manifests
    ///   with the numbers in the node manifest needed no earlier record. An older index manifest
    ///   lacks epochs that the log no longer has.
    pub fn check(&self, dir: &Path) -> Result<()> {
        match self.contradiction() {
            None => Ok(()),
            Some((name, what)) => {
                let what = format!("{}: {what}", dir.join(name).display());
                Err(Error::new(ErrorCode::Corrupt, what).with_hint(HINT))
            }
        }
    }

    /// Returns the name of a manifest that does not fit the others, and the reason; `None` if all
    /// fit.
    pub(crate) fn contradiction(&self) -> Option<(String, String)> {
        let Some(node) = &self.node else {
            let readable = self.indexes.iter().find(|manifest| manifest.floor.is_some())?;
            let what = format!(
                "the file is missing, though index {} has slices that can be read",
                readable.info.local_id()
            );
            return Some((NODE_NAME.into(), what));
        };
        let is_old = |(index, number): &(&LocalIndexId, &u64)| {
            self.numbers.get(index).is_some_and(|found| found < number)
        };
        let (index, number) = node.index_numbers.iter().find(is_old)?;
        let what = format!(
            "the file is an old copy: it has number {}, and the node manifest knows of number {number}",
            self.numbers.get(index).copied().unwrap_or_default()
        );
        Some((index_name(*index), what))
    }
}

/// Returns the file name of an index manifest.
pub(super) fn index_name(index: LocalIndexId) -> String {
    format!("index-{index}{SUFFIX}")
}

/// Returns the path of an index manifest in a directory.
pub fn index_path(dir: &Path, index: LocalIndexId) -> PathBuf {
    dir.join(index_name(index))
}

/// Writes a file durably: under a temporary name, which is then renamed to `name`.
fn write(fs: &dyn FileSystem, dir: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let (path, tmp) = (dir.join(name), dir.join(format!("{name}.tmp")));
    let publish = || {
        let file = fs.open(&tmp, OpenMode::Create)?;
        file.set_len(0)?;
        file.write_all_at(bytes, 0)?;
        file.sync()?;
        fs.rename(&tmp, &path)?;
        fs.sync_dir(dir)
    };
    publish().map_err(|error| Error::from(error).context(format!("writing {}", path.display())))
}

/// Reads and decodes a manifest; `None` if the file does not exist.
fn read<T>(
    fs: &dyn FileSystem,
    path: &Path,
    decode: impl FnOnce(&[u8]) -> Result<T>,
) -> Result<Option<T>> {
    if !fs.exists(path) {
        return Ok(None);
    }
    let bytes = read_bytes(fs, path)?;
    let reading = |error: Error| match error.code {
        ErrorCode::Corrupt => error.context(format!("reading {}", path.display())).with_hint(HINT),
        _ => error.context(format!("reading {}", path.display())),
    };
    decode(&bytes).map(Some).map_err(reading)
}

/// Reads all bytes of a file.
pub(super) fn read_bytes(fs: &dyn FileSystem, path: &Path) -> Result<Vec<u8>> {
    let read = || {
        let file = fs.open(path, OpenMode::Read)?;
        let mut bytes = vec![0; file.len()? as usize];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    };
    read().map_err(|error: std::io::Error| {
        Error::from(error).context(format!("reading {}", path.display()))
    })
}

pub(super) fn encode<T: Serialize>(
    kind: ManifestKind,
    number: u64,
    manifest: &T,
) -> Result<Vec<u8>> {
    let body = postcard::to_stdvec(manifest)
        .map_err(|error| Error::internal(format!("encoding a manifest: {error}")))?;
    let mut out = Vec::with_capacity(HEADER_BYTES + body.len());
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&(kind as u32).to_le_bytes());
    out.extend_from_slice(&(body.len() as u64).to_le_bytes());
    out.extend_from_slice(&number.to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&out[SUMMED]), &body);
    out.extend_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(&body);
    Ok(out)
}

/// Checks the header and the checksum of a manifest file; returns its kind, its number and its
/// encoded content.
pub(super) fn parse(bytes: &[u8]) -> Result<(ManifestKind, u64, &[u8])> {
    let Some((header, body)) = bytes.split_at_checked(HEADER_BYTES) else {
        return Err(damaged("the file ends within its header"));
    };
    let word = |at: usize| {
        u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    if &header[..4] != MAGIC {
        return Err(damaged("the file is not a manifest"));
    }
    if word(4) != VERSION {
        let message = format!(
            "the manifest has format version {}, this build reads version {VERSION}",
            word(4)
        );
        return Err(Error::new(ErrorCode::Version, message).with_hint(VERSION_HINT));
    }
    let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    let (len, number) = (long(12), long(20));
    if len != body.len() as u64 {
        return Err(damaged(format!("the body has {} bytes, the header says {len}", body.len())));
    }
    if crc32c::crc32c_append(crc32c::crc32c(&header[SUMMED]), body) != word(SUMMED.end) {
        return Err(damaged("the checksum does not match"));
    }
    match word(8) {
        kind if kind == ManifestKind::Node as u32 => Ok((ManifestKind::Node, number, body)),
        kind if kind == ManifestKind::Index as u32 => Ok((ManifestKind::Index, number, body)),
        kind => Err(damaged(format!("unknown kind of manifest: {kind}"))),
    }
}

pub(super) fn decode<T: DeserializeOwned>(kind: ManifestKind, bytes: &[u8]) -> Result<T> {
    let (said, _, body) = parse(bytes)?;
    if said != kind {
        return Err(damaged(format!("expected a manifest of kind {kind:?}, found kind {said:?}")));
    }
    match postcard::take_from_bytes(body) {
        Ok((manifest, [])) => Ok(manifest),
        Ok((_, rest)) => Err(damaged(format!("{} extra bytes behind the body", rest.len()))),
        Err(error) => Err(damaged(format!("cannot decode the body: {error}"))),
    }
}

fn decode_index(path: &Path, bytes: &[u8]) -> Result<(IndexManifest, u64)> {
    let manifest: IndexManifest = decode(ManifestKind::Index, bytes)?;
    manifest.check()?;
    let (_, number, _) = parse(bytes)?;
    let name = PathBuf::from(index_name(manifest.info.local_id()));
    if path.file_name() != Some(name.as_os_str()) {
        return Err(damaged(format!("the manifest belongs to another index: {}", name.display())));
    }
    Ok((manifest, number))
}
