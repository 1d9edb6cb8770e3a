//! The layout of documents and change logs in the trees, and the version file that names it.
//!
//! A log entry is `kind:u8  bytes-before:u64  len(id) id  JSON`. `bytes-before` is the size of all earlier entries of
//! the vbucket's log, purged ones included. The size between two entries is therefore a subtraction.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use proto::env::{FileSystem, OpenMode};
use proto::model::ids::{BucketId, Seqno, VbucketId};
use proto::rpc::mutation::MutationKind;
use proto::rpc::varint::{put_bytes, take_bytes};
use proto::{Error, ErrorCode, Result};

use documents::mutation::Mutation;
use documents::record::BucketRecord;

/// The content of the data directory's version file. Another number means another layout.
const VERSION: &str = "sextant documents 3\n";
const VERSION_FILE: &str = "VERSION";
/// The database's directory inside the data directory.
pub const DATABASE_DIR: &str = "fjall";

/// The key of the catalog's cas.
pub const CAS_KEY: &[u8] = b"cas";
/// The prefix of the keys of buckets' records.
pub const RECORD_PREFIX: &[u8] = b"bucket/";
/// The prefix of the keys of buckets' random ids.
pub const UNIQUE_PREFIX: &[u8] = b"unique/";
/// The prefix of the keys of purge points.
const PURGED_PREFIX: &[u8] = b"purged/";

/// Accepts a directory of this layout, or creates one. `Version` for any other layout.
pub fn check_version(fs: &dyn FileSystem, directory: &Path) -> Result<()> {
    fs.create_dir_all(directory)?;
    let path = directory.join(VERSION_FILE);
    if fs.exists(&path) {
        let file = fs.open(&path, OpenMode::Read)?;
        // A version file is one short line, so a longer file has another origin.
        let mut found = vec![0; file.len()?.min(200) as usize];
        file.read_exact_at(&mut found, 0)?;
        return if found == VERSION.as_bytes() {
            Ok(())
        } else {
            let found = String::from_utf8_lossy(&found);
            Err(Error::new(
                ErrorCode::Version,
                format!(
                    "the data directory has version {:?}, this build reads {:?}",
                    found.trim(),
                    VERSION.trim()
                ),
            )
            .with_hint(
                "start the build that created the directory, or choose another data directory",
            ))
        };
    }
    if fs.exists(&directory.join(DATABASE_DIR)) {
        return Err(Error::new(ErrorCode::Version, "the data directory has no version file")
            .with_hint(
                "the directory is damaged or not Sextant's; choose another data directory",
            ));
    }
    let draft = directory.join("VERSION.draft");
    let file = fs.open(&draft, OpenMode::Create)?;
    file.set_len(0)?;
    file.write_all_at(VERSION.as_bytes(), 0)?;
    file.sync()?;
    fs.rename(&draft, &path)?;
    fs.sync_dir(directory)?;
    Ok(())
}

/// Encodes a document and the seqno of its last change.
pub fn stored(seqno: Seqno, document: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(document.len() + 8);
    value.extend_from_slice(&seqno.0.to_be_bytes());
    value.extend_from_slice(document);
    value
}

/// The document id of a key.
pub fn document_id(key: &[u8]) -> Result<&str> {
    std::str::from_utf8(key).map_err(|_| damaged("a document's id"))
}

/// The names of a bucket's trees: its documents and its log.
pub fn tree_names(bucket: BucketId) -> [String; 2] {
    [format!("docs-{bucket}"), format!("log-{bucket}")]
}

/// The key of a bucket's record.
pub fn record_key(bucket: BucketId) -> Vec<u8> {
    [RECORD_PREFIX, &bucket.0.to_be_bytes()].concat()
}

/// The key of a bucket's random id.
pub fn unique_key(bucket: BucketId) -> Vec<u8> {
    [UNIQUE_PREFIX, &bucket.0.to_be_bytes()].concat()
}

/// Encodes a bucket's record.
pub fn encode_record(record: &BucketRecord) -> Result<Vec<u8>> {
    postcard::to_stdvec(record).map_err(|e| Error::internal(format!("a bucket's record: {e}")))
}

/// The prefix of the keys of a bucket's purge points.
pub fn purged_prefix(bucket: BucketId) -> Vec<u8> {
    [PURGED_PREFIX, &bucket.0.to_be_bytes()].concat()
}

/// The key of a vbucket's purge point.
pub fn purged_key(bucket: BucketId, vbucket: VbucketId) -> Vec<u8> {
    [&purged_prefix(bucket)[..], &vbucket.0.to_be_bytes()].concat()
}

/// The key of a log entry.
pub fn log_key(vbucket: VbucketId, seqno: Seqno) -> [u8; 10] {
    let mut key = [0; 10];
    key[..2].copy_from_slice(&vbucket.0.to_be_bytes());
    key[2..].copy_from_slice(&seqno.0.to_be_bytes());
    key
}

/// The seqno in a log entry's key.
pub fn log_seqno(key: &[u8]) -> Result<Seqno> {
    let seqno = key.get(2..).ok_or_else(|| damaged("a log key"))?;
    Ok(Seqno(be_u64(seqno)?))
}

/// Decodes a number of eight bytes.
pub fn be_u64(bytes: &[u8]) -> Result<u64> {
    Ok(u64::from_be_bytes(bytes.try_into().map_err(|_| damaged("a number"))?))
}

/// Decodes a document: its seqno and its JSON.
pub fn split_document(value: &[u8]) -> Result<(Seqno, Bytes)> {
    let (seqno, document) = value.split_at_checked(8).ok_or_else(|| damaged("a document"))?;
    Ok((Seqno(be_u64(seqno)?), Bytes::copy_from_slice(document)))
}

/// Encodes a mutation as a log entry.
pub fn log_entry(mutation: &Mutation, bytes_before: u64) -> Vec<u8> {
    let mut value = Vec::with_capacity(mutation.document.len() + mutation.id.len() + 11);
    value.push(u8::from(mutation.kind == MutationKind::Deletion));
    value.extend_from_slice(&bytes_before.to_be_bytes());
    put_bytes(&mut value, mutation.id.as_bytes());
    value.extend_from_slice(&mutation.document);
    value
}

/// Decodes a log entry: the mutation, and the size of the log before it.
pub fn read_entry((vbucket, seqno): (VbucketId, Seqno), value: &[u8]) -> Result<(Mutation, u64)> {
    let entry = || damaged("a log entry");
    let (kind, rest) = match value {
        [0, rest @ ..] => (MutationKind::Upsert, rest),
        [1, rest @ ..] => (MutationKind::Deletion, rest),
        _ => return Err(entry()),
    };
    let (before, mut rest) = rest.split_at_checked(8).ok_or_else(entry)?;
    let id = std::str::from_utf8(take_bytes(&mut rest)?).map_err(|_| entry())?;
    let document = Bytes::copy_from_slice(rest);
    Ok((Mutation::new((vbucket, seqno), Arc::from(id), kind, document), be_u64(before)?))
}

/// The error for data that fails its checks.
pub fn damaged(what: &str) -> Error {
    Error::new(ErrorCode::Corrupt, format!("{what} in the document store cannot be read"))
}

/// Converts an error of the database.
pub fn store_error(error: fjall::Error) -> Error {
    match error {
        fjall::Error::Io(error) => error.into(),
        fjall::Error::Locked => Error::unavailable("another process has the document store open")
            .with_hint("end that process, or choose another data directory"),
        fjall::Error::Poisoned => Error::new(
            ErrorCode::Io,
            "the document store accepts no writes, because an earlier write could not be made durable",
        )
        .with_hint("check the disk, then restart the process"),
        fjall::Error::InvalidVersion(_) => {
            Error::new(ErrorCode::Version, format!("the document store: {error}"))
        }
        other => Error::new(ErrorCode::Corrupt, format!("the document store: {other}")),
    }
}
