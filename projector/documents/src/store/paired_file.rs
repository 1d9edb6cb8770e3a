//! A *paired file*: a small file that is stored in two equal copies, so that nothing is lost if
//! one copy is damaged or lost.
//!
//! ```text
//! copy := "sxdm" version:u32 kind:u32 number:u64 len:u64 crc:u32  body[len]      (little endian)
//! ```
//!
//! `body` is postcard; `crc` is CRC-32C over everything before it and the body. `number` grows
//! with each write. A write replaces the first copy and then the second, each under a temporary
//! name that is synced and renamed. So a crash leaves two copies whose numbers differ by at most
//! one, and the copy with the larger number is valid.
//!
//! A missing or damaged copy is written again from the other one. If no copy is valid, the file
//! cannot be read. If both copies are missing, the caller decides whether the directory is new.

use std::path::{Path, PathBuf};

use proto::env::{FileSystem, OpenMode};
use proto::{Error, ErrorCode, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A type that is stored as the body of a paired file.
pub trait Contents: Sized {
    /// Decodes the value from a complete body.
    fn decode(body: &[u8]) -> Result<Self>;
}

impl<T: DeserializeOwned> Contents for T {
    fn decode(body: &[u8]) -> Result<Self> {
        let corrupt = |what: String| Error::new(ErrorCode::Corrupt, what);
        match postcard::take_from_bytes(body) {
            Ok((contents, [])) => Ok(contents),
            Ok((_, rest)) => Err(corrupt(format!("{} bytes behind the body", rest.len()))),
            Err(error) => Err(corrupt(format!("the body cannot be decoded: {error}"))),
        }
    }
}

const MAGIC: &[u8; 4] = b"sxdm";
const VERSION: u32 = 1;
pub(super) const HEADER_BYTES: usize = 32;
/// The number of bytes of the header that the checksum covers.
pub(super) const SUMMED_BYTES: usize = 28;
const HINT: &str = "restore the file from a copy of the data directory";

/// The kinds of paired files. A file of another kind than expected is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// The manifest of a source, which lists the buckets that must exist.
    Source = 1,
    /// The checkpoint of a bucket, which lists the fragments of its table.
    Checkpoint = 2,
}

/// Returns the paths of both copies of a file.
fn copies(dir: &Path, name: &str) -> [PathBuf; 2] {
    [dir.join(format!("{name}.1")), dir.join(format!("{name}.2"))]
}

/// Returns the temporary path of a copy while it is being written. A crash may leave this file,
/// and the next write replaces it.
pub fn temporary(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.tmp"))
}

/// A file that is stored in two copies.
#[derive(Debug)]
pub struct PairedFile {
    dir: PathBuf,
    name: &'static str,
    kind: FileKind,
    /// The number of the last write, which the newest copy contains.
    number: u64,
}

impl PairedFile {
    /// Opens the file in a directory, and returns its contents; `None` if both copies are
    /// missing. The error is `Corrupt` if no copy can be read, and `Version` if another build has
    /// written the file.
    pub fn open<T: Contents>(
        fs: &dyn FileSystem,
        dir: &Path,
        (name, kind): (&'static str, FileKind),
    ) -> Result<(Self, Option<T>)> {
        let mut file = Self { dir: dir.to_path_buf(), name, kind, number: 0 };
        let found = copies(dir, name).map(|path| read(fs, &path, kind));
        let newest = match &found {
            [Ok(None), Ok(None)] => return Ok((file, None)),
            [Ok(Some((one, _))), Ok(Some((other, _)))] => usize::from(other > one),
            [Ok(Some(_)), _] => 0,
            [_, Ok(Some(_))] => 1,
            [Err(error), _] | [_, Err(error)] => return Err(error.clone()),
        };
        for error in found.iter().filter_map(|copy| copy.as_ref().err()) {
            // The other copy may have an older format than this one.
            if error.code != ErrorCode::Corrupt {
                return Err(error.clone());
            }
            tracing::warn!(%error, "a copy of the file is written again from the other one");
        }
        let missing = found.iter().any(|copy| matches!(copy, Ok(None)));
        let mut copies_read = found.iter().filter_map(|copy| copy.as_ref().ok()?.as_ref());
        let differ = copies_read.next() != copies_read.next();
        let Some((number, bytes)) = found.into_iter().nth(newest).and_then(|c| c.ok().flatten())
        else {
            return Err(Error::internal("a copy that was read is gone"));
        };
        let contents = T::decode(&bytes[HEADER_BYTES..])
            .map_err(|error| with_path(error, &copies(dir, name)[newest]))?;
        file.number = number;
        if missing || differ {
            file.put(fs, &bytes)?;
        }
        Ok((file, Some(contents)))
    }

    /// Replaces the contents durably.
    pub fn write<T: Serialize>(&mut self, fs: &dyn FileSystem, contents: &T) -> Result<()> {
        // A write that fails may have replaced a copy, so its number counts.
        self.number += 1;
        self.put(fs, &encode(self.kind, self.number, contents)?)
    }

    fn put(&self, fs: &dyn FileSystem, bytes: &[u8]) -> Result<()> {
        let tmp = temporary(&self.dir, self.name);
        for path in copies(&self.dir, self.name) {
            let publish = || {
                let file = fs.open(&tmp, OpenMode::Create)?;
                file.set_len(0)?;
                file.write_all_at(bytes, 0)?;
                file.sync()?;
                fs.rename(&tmp, &path)?;
                fs.sync_dir(&self.dir)
            };
            publish().map_err(|error: std::io::Error| {
                Error::from(error).context(format!("writing {}", path.display()))
            })?;
        }
        Ok(())
    }
}

/// Returns the kind of a file from one of its copies. An error if the checksum is wrong.
pub fn kind_of(fs: &dyn FileSystem, path: &Path) -> Result<FileKind> {
    for kind in [FileKind::Source, FileKind::Checkpoint] {
        match read(fs, path, kind) {
            Ok(Some(_)) => return Ok(kind),
            Err(error) if kind == FileKind::Checkpoint => return Err(error),
            _ => {}
        }
    }
    Err(Error::new(ErrorCode::Unknown, format!("{} does not exist", path.display())))
}

/// Reads and checks one copy of a file.
pub fn read_copy<T: Contents>(fs: &dyn FileSystem, path: &Path, kind: FileKind) -> Result<T> {
    let (_, bytes) = read(fs, path, kind)?.ok_or_else(|| {
        Error::new(ErrorCode::Unknown, format!("{} does not exist", path.display()))
    })?;
    T::decode(&bytes[HEADER_BYTES..]).map_err(|error| with_path(error, path))
}

/// Reads the contents without writing anything, for checks of a directory. Returns the contents
/// of the newer valid copy, if any, and for each damaged or missing copy its path and error.
pub fn inspect<T: Contents>(
    fs: &dyn FileSystem,
    dir: &Path,
    (name, kind): (&'static str, FileKind),
) -> (Option<T>, Vec<(PathBuf, Error)>) {
    let (mut newest, mut errors) = (None, Vec::new());
    for path in copies(dir, name) {
        match read(fs, &path, kind) {
            Ok(Some((number, bytes))) => match T::decode(&bytes[HEADER_BYTES..]) {
                Ok(contents) if newest.as_ref().is_none_or(|(other, _)| *other < number) => {
                    newest = Some((number, contents));
                }
                Ok(_) => {}
                Err(error) => errors.push((path.clone(), with_path(error, &path))),
            },
            Ok(None) => {
                let what = format!("{} is missing", path.display());
                errors.push((path, Error::new(ErrorCode::Corrupt, what).with_hint(HINT)));
            }
            Err(error) => errors.push((path, error)),
        }
    }
    (newest.map(|(_, contents)| contents), errors)
}

pub(super) fn encode<T: Serialize>(kind: FileKind, number: u64, contents: &T) -> Result<Vec<u8>> {
    let body = postcard::to_stdvec(contents)
        .map_err(|error| Error::internal(format!("encoding a manifest: {error}")))?;
    let mut out = Vec::with_capacity(HEADER_BYTES + body.len());
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&(kind as u32).to_le_bytes());
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(&(body.len() as u64).to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&out), &body);
    out.extend_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(&body);
    Ok(out)
}

/// Reads one copy and checks its checksum. Returns the number of its write, and its bytes; `None`
/// if it is missing.
fn read(fs: &dyn FileSystem, path: &Path, kind: FileKind) -> Result<Option<(u64, Vec<u8>)>> {
    if !fs.exists(path) {
        return Ok(None);
    }
    let bytes = || {
        let file = fs.open(path, OpenMode::Read)?;
        let mut bytes = vec![0; file.len()? as usize];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    };
    let bytes = bytes().map_err(|error: std::io::Error| {
        Error::from(error).context(format!("reading {}", path.display()))
    })?;
    let number = check(&bytes, kind).map_err(|error| with_path(error, path))?;
    Ok(Some((number, bytes)))
}

/// Checks the header and the checksum of a copy, and returns the number of its write.
fn check(bytes: &[u8], kind: FileKind) -> Result<u64> {
    let corrupt = |what: &str| Error::new(ErrorCode::Corrupt, what);
    let Some((header, body)) = bytes.split_at_checked(HEADER_BYTES) else {
        return Err(corrupt("the file ends within its header"));
    };
    let word = |at: usize| {
        u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    let crc = crc32c::crc32c_append(crc32c::crc32c(&header[..SUMMED_BYTES]), body);
    if &header[..4] != MAGIC || crc != word(SUMMED_BYTES) || long(20) != body.len() as u64 {
        return Err(corrupt("the checksum of the file does not match"));
    }
    if word(4) != VERSION {
        let what = format!("the file has format version {}, this build reads {VERSION}", word(4));
        return Err(Error::new(ErrorCode::Version, what)
            .with_hint("start the build that wrote the directory"));
    }
    if word(8) != kind as u32 {
        return Err(corrupt("the file is of another kind"));
    }
    Ok(long(12))
}

fn with_path(error: Error, path: &Path) -> Error {
    let is_damage = error.code == ErrorCode::Corrupt;
    let error = error.context(format!("reading {}", path.display()));
    if is_damage { error.with_hint(HINT) } else { error }
}

#[cfg(test)]
mod tests {
    use proto::env::sim::{self, SimFs};

    use super::*;

    const FILE: (&str, FileKind) = ("source", FileKind::Source);
    const DIR: &str = "/data";

    fn world() -> SimFs {
        let (_, _, fs) = sim::world(1);
        proto::env::create_dir_durably(&fs, Path::new(DIR)).expect("a directory");
        fs
    }

    fn open(fs: &SimFs) -> Result<(PairedFile, Option<Vec<u64>>)> {
        PairedFile::open(fs, Path::new(DIR), FILE)
    }

    fn written(fs: &SimFs) -> Vec<u64> {
        let (mut file, before) = open(fs).expect("empty");
        assert_eq!(before, None);
        for n in 1..=3_u64 {
            file.write(fs, &vec![n; 5]).expect("written");
        }
        vec![3_u64; 5]
    }

    #[test]
    fn one_damaged_or_missing_copy_is_healed_from_the_other() {
        let fs = world();
        let last = written(&fs);
        for n in 0..2 {
            let path = &copies(Path::new(DIR), FILE.0)[n];
            let bits =
                fs.open(path, OpenMode::Read).expect("a copy").len().expect("its length") * 8;
            for bit in 0..bits {
                fs.flip_bit(path, bit).expect("flipped");
                let (found, errors) = inspect::<Vec<u64>>(&fs, Path::new(DIR), FILE);
                assert_eq!((found.as_ref(), errors.len()), (Some(&last), 1), "bit {bit}");
                let (named, error) = &errors[0];
                assert_eq!(named, path, "{error}");
                assert!(error.message.contains(&path.display().to_string()), "{error}");
                assert_eq!(open(&fs).expect("the other copy").1.as_ref(), Some(&last));
                let (_, errors) = inspect::<Vec<u64>>(&fs, Path::new(DIR), FILE);
                assert!(errors.is_empty(), "healed: {errors:?}");
            }
            fs.remove_file(path).expect("removed");
            assert_eq!(open(&fs).expect("the other copy").1.as_ref(), Some(&last));
            assert!(fs.exists(path), "written again");
        }
    }

    #[test]
    fn two_damaged_copies_are_an_error_that_names_a_file() {
        let fs = world();
        written(&fs);
        for path in copies(Path::new(DIR), FILE.0) {
            fs.flip_bit(&path, 300).expect("flipped");
        }
        let error = open(&fs).expect_err("nothing is readable");
        assert_eq!(error.code, ErrorCode::Corrupt);
        assert!(error.message.contains("/data/source."), "{error}");
    }

    #[test]
    fn a_crash_at_any_file_operation_leaves_the_last_or_the_next_contents() {
        for seed in 0..200 {
            let (env, _, fs) = sim::world(seed);
            proto::env::create_dir_durably(&fs, Path::new(DIR)).expect("a directory");
            let last = written(&fs);
            let (mut file, _) = open(&fs).expect("the last contents");
            fs.crash_at(fs.operations() + env.random.next_u64() % 12);
            let next = vec![4_u64; 5];
            let is_written = file.write(&fs, &next).is_ok();
            fs.crash();
            fs.restart();
            let found = open(&fs).expect("readable after a crash").1.expect("contents");
            assert!(found == next || !is_written && found == last, "seed {seed}: {found:?}");
        }
    }
}
