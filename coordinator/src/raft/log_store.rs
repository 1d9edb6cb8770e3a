//! The log on disk: one `redb` file, accessed through the file-system seam so that the simulation can break it.
//!
//! Each value carries its own checksum, because redb verifies its pages only during a repair. One [`LogWrite`] is one
//! durable transaction: a crash keeps all of it or nothing. The file is created under a temporary name and renamed
//! when it is complete, so that a crash leaves no half-made log. redb reuses freed pages but seldom gives them
//! back, and a large value needs adjacent ones. So the file is compacted when it has become much longer than its data.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use proto::env::{File, FileSystem, OpenMode};
use proto::lock::lock;
use proto::model::ids::NodeId;
use proto::{Error, ErrorCode, Result};
use raft::eraftpb::HardState;
use redb::{
    Database, Durability, ReadableDatabase, ReadableTable, StorageBackend, TableDefinition,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::log_write::{LogOp, LogWrite};
use super::memory_log::MemoryLog;
use super::wire::LogEntry;

const FILE: &str = "raft.redb";
const FILE_NEW: &str = "raft.redb.new";
/// The version of this file's layout.
const FORMAT: u32 = 1;
/// The cache size of the database, in bytes. It is small, because the log is small and is read
/// once, at the start.
const CACHE_BYTES: usize = 8 << 20;
const CHECKSUM_BYTES: usize = 4;
/// The file length, in bytes, below which the file is not compacted, because that would not be
/// worth a rewrite of the data.
const COMPACT_BYTES_MIN: u64 = 64 << 20;
/// The file is compacted when it is this many times as long as its data.
const COMPACT_FACTOR: u64 = 4;

const ENTRIES: TableDefinition<u64, &[u8]> = TableDefinition::new("entries");
const META: TableDefinition<&str, &[u8]> = TableDefinition::new("meta");

/// Returns true if a directory has a log.
pub fn has_log(fs: &dyn FileSystem, dir: &Path) -> bool {
    fs.exists(&dir.join(FILE))
}

/// The identity of a log: the member to which it belongs, and the founders of its group.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    format: u32,
    member: u64,
    /// The members at the beginning of the log; empty if the member has joined a group.
    founders: Vec<u64>,
}

/// The hard state of Raft, as it is stored: term, vote and commit index.
#[derive(Serialize, Deserialize)]
struct StoredHardState {
    term: u64,
    vote: u64,
    commit: u64,
}

/// The log on disk.
pub struct LogStore {
    /// The database. Compaction needs exclusive access; otherwise one write at a time uses it.
    database: Mutex<Database>,
    file: Arc<dyn File>,
}

impl LogStore {
    /// Opens or creates the log of `member` in a directory, and reads all of it. `founders` is used
    /// for a new log only.
    pub fn open(
        fs: &dyn FileSystem,
        dir: &Path,
        member: NodeId,
        founders: &[u64],
    ) -> Result<(Self, MemoryLog)> {
        let path = dir.join(FILE);
        let open = || -> Result<(Self, MemoryLog)> {
            if !fs.exists(&path) {
                Self::create(fs, dir, member, founders)?;
            }
            let store = Self::open_file(fs, &path, OpenMode::ReadWrite)?;
            store.compact_if_due()?;
            let identity = store.identity()?;
            check_identity(&identity, member)?;
            let log = store.read(identity.founders)?;
            Ok((store, log))
        };
        open().map_err(|error| error.context(format!("open the raft log {}", path.display())))
    }

    fn open_file(fs: &dyn FileSystem, path: &Path, mode: OpenMode) -> Result<Self> {
        let file = fs.open(path, mode)?;
        let backend = Backend(file.clone());
        let database = Database::builder()
            .set_cache_size(CACHE_BYTES)
            .create_with_backend(backend)
            .map_err(redb_error)?;
        Ok(Self { database: Mutex::new(database), file })
    }

    /// Creates an empty log under a temporary name, and renames it when it is complete.
    fn create(fs: &dyn FileSystem, dir: &Path, member: NodeId, founders: &[u64]) -> Result<()> {
        proto::env::create_dir_durably(fs, dir)?;
        let unfinished = dir.join(FILE_NEW);
        if fs.exists(&unfinished) {
            fs.remove_file(&unfinished)?;
        }
        let founders = founders.to_vec();
        let identity = Identity { format: FORMAT, member: member.0, founders };
        let store = Self::open_file(fs, &unfinished, OpenMode::CreateNew)?;
        // The transaction creates both tables, including the one that stays empty.
        store.transaction(|_entries, meta| put(meta, "identity", &identity))?;
        drop(store);
        fs.rename(&unfinished, &dir.join(FILE))?;
        fs.sync_dir(dir)?;
        Ok(())
    }

    /// Applies the writes to the file in one transaction, with one disk sync: all of them become
    /// durable, or none.
    pub fn commit(&self, writes: &[LogWrite]) -> Result<()> {
        self.transaction(|entries, meta| {
            for op in writes.iter().flat_map(|write| &write.ops) {
                apply(op, entries, meta)?;
            }
            Ok(())
        })
        .and_then(|()| match writes.iter().flat_map(|write| &write.ops).any(LogOp::frees_space) {
            true => self.compact_if_due(),
            false => Ok(()),
        })
        .map_err(|error| error.context("write the raft log"))
    }

    /// Compacts the file if most of it is unused.
    fn compact_if_due(&self) -> Result<()> {
        let len = self.file.len()?;
        if len < COMPACT_BYTES_MIN {
            return Ok(());
        }
        let mut database = lock(&self.database);
        let stats = || -> std::result::Result<u64, redb::Error> {
            let transaction = database.begin_write()?;
            let stored = transaction.stats()?.stored_bytes();
            transaction.abort()?;
            Ok(stored)
        };
        if len / COMPACT_FACTOR < stats().map_err(redb_error)? {
            return Ok(());
        }
        database.compact().map_err(redb_error)?;
        tracing::info!(
            bytes_before = len,
            bytes = self.file.len()?,
            "compacted the raft log's file"
        );
        Ok(())
    }

    /// Runs `work` in one durable transaction on both tables.
    fn transaction(
        &self,
        work: impl FnOnce(&mut Entries<'_>, &mut Meta<'_>) -> Result<()>,
    ) -> Result<()> {
        let run = || -> std::result::Result<Result<()>, redb::Error> {
            let mut transaction = lock(&self.database).begin_write()?;
            transaction.set_durability(Durability::Immediate)?;
            {
                let mut entries = transaction.open_table(ENTRIES)?;
                let mut meta = transaction.open_table(META)?;
                if let Err(error) = work(&mut entries, &mut meta) {
                    return Ok(Err(error));
                }
            }
            transaction.commit()?;
            Ok(Ok(()))
        };
        run().map_err(redb_error)?
    }

    /// Reads the identity of the log.
    fn identity(&self) -> Result<Identity> {
        let transaction = lock(&self.database).begin_read().map_err(redb_error)?;
        let meta = transaction.open_table(META).map_err(redb_error)?;
        get(&meta, "identity")?.ok_or_else(|| corrupt_error("no identity record".into()))
    }

    /// Reads the whole log, and checks that its records fit together.
    fn read(&self, founders: Vec<u64>) -> Result<MemoryLog> {
        let mut log = MemoryLog::new(founders);
        let transaction = lock(&self.database).begin_read().map_err(redb_error)?;
        let meta = transaction.open_table(META).map_err(redb_error)?;
        if let Some(StoredHardState { term, vote, commit }) = get(&meta, "hard_state")? {
            log.hard_state = HardState { term, vote, commit, ..Default::default() };
        }
        log.snapshot = get(&meta, "snapshot")?;
        if let Some(start) = get(&meta, "start")? {
            log.start = start;
        }
        let entries = transaction.open_table(ENTRIES).map_err(redb_error)?;
        let range = entries.range(log.start.0 + 1..).map_err(redb_error)?;
        for row in range {
            let (index, value) = row.map_err(redb_error)?;
            let entry: LogEntry = decode(value.value(), "entry")?;
            if index.value() != log.last() + 1 || entry.index != index.value() {
                return Err(corrupt_error(format!(
                    "entry {} follows {}",
                    index.value(),
                    log.last()
                )));
            }
            log.entries.push_back(entry.into_raft());
        }
        let snapshot_index = log.snapshot_index();
        log.hard_state.commit = log.hard_state.commit.max(snapshot_index);
        let members = log.members()?;
        if !members.is_unknown() && !members.is_sound() {
            return Err(corrupt_error(format!("the members do not fit together: {members:?}")));
        }
        if snapshot_index < log.start.0 || log.hard_state.commit > log.last() {
            return Err(corrupt_error(format!(
                "entries {}..={} do not fit snapshot {snapshot_index} and commit index {}",
                log.start.0 + 1,
                log.last(),
                log.hard_state.commit
            )));
        }
        Ok(log)
    }
}

type Entries<'a> = redb::Table<'a, u64, &'static [u8]>;
type Meta<'a> = redb::Table<'a, &'static str, &'static [u8]>;

/// Applies one change of the log to the tables.
fn apply(op: &LogOp, entries: &mut Entries<'_>, meta: &mut Meta<'_>) -> Result<()> {
    match op {
        LogOp::HardState(HardState { term, vote, commit, .. }) => {
            put(meta, "hard_state", &StoredHardState { term: *term, vote: *vote, commit: *commit })
        }
        LogOp::Append(new) => {
            if let Some(first) = new.first() {
                remove(entries, first.index..)?;
            }
            for entry in new {
                let value = encode(&LogEntry::from_raft(entry.clone())?)?;
                entries.insert(entry.index, value.as_slice()).map_err(redb_error)?;
            }
            Ok(())
        }
        LogOp::Snapshot(snapshot) => put(meta, "snapshot", snapshot),
        LogOp::Reset(snapshot) => {
            remove(entries, 0..)?;
            put(meta, "snapshot", snapshot)?;
            put(meta, "start", &(snapshot.index, snapshot.term))
        }
        LogOp::DropThrough { index, term } => {
            remove(entries, 0..=*index)?;
            put(meta, "start", &(*index, *term))
        }
    }
}

fn remove(entries: &mut Entries<'_>, range: impl std::ops::RangeBounds<u64>) -> Result<()> {
    entries.retain_in(range, |_, _| false).map_err(redb_error)
}

fn put(meta: &mut Meta<'_>, key: &str, value: &impl Serialize) -> Result<()> {
    let value = encode(value)?;
    meta.insert(key, value.as_slice()).map_err(redb_error)?;
    Ok(())
}

fn get<T: DeserializeOwned>(
    meta: &impl ReadableTable<&'static str, &'static [u8]>,
    key: &str,
) -> Result<Option<T>> {
    let value = meta.get(key).map_err(redb_error)?;
    value.map(|value| decode(value.value(), key)).transpose()
}

/// Encodes a value, after the checksum of its encoding.
fn encode(value: &impl Serialize) -> Result<Vec<u8>> {
    let mut bytes = postcard::to_extend(value, vec![0; CHECKSUM_BYTES])
        .map_err(|error| Error::internal(format!("encode a raft record: {error}")))?;
    let checksum = crc32c::crc32c(&bytes[CHECKSUM_BYTES..]);
    bytes[..CHECKSUM_BYTES].copy_from_slice(&checksum.to_le_bytes());
    Ok(bytes)
}

/// Decodes a value, and verifies its checksum.
fn decode<T: DeserializeOwned>(bytes: &[u8], what: &str) -> Result<T> {
    let (checksum, body) = bytes
        .split_first_chunk::<CHECKSUM_BYTES>()
        .ok_or_else(|| corrupt_error(format!("{what}: too short")))?;
    if u32::from_le_bytes(*checksum) != crc32c::crc32c(body) {
        return Err(corrupt_error(format!("{what}: wrong checksum")));
    }
    postcard::from_bytes(body).map_err(|error| corrupt_error(format!("{what}: {error}")))
}

/// Checks that the log belongs to this member and has a known format.
fn check_identity(identity: &Identity, member: NodeId) -> Result<()> {
    let Identity { format, member: owner, .. } = identity;
    if *format != FORMAT {
        let what = format!("log of format {format}, this build reads format {FORMAT}");
        return Err(Error::new(ErrorCode::Version, what));
    }
    if *owner != member.0 {
        let what = format!("the log belongs to member {owner}, not to member {member}");
        return Err(Error::new(ErrorCode::InvalidParameter, what)
            .with_hint("start the member with its own --id and its own data directory"));
    }
    Ok(())
}

fn corrupt_error(what: String) -> Error {
    Error::new(ErrorCode::Corrupt, what)
        .with_hint("check this member's disk; the other members continue while they are a majority")
}

/// Converts an error of redb.
fn redb_error(error: impl Into<redb::Error>) -> Error {
    match error.into() {
        redb::Error::Io(error) => error.into(),
        redb::Error::Corrupted(what) => corrupt_error(what),
        error => Error::new(ErrorCode::Io, error.to_string()),
    }
}

/// A file of the file-system seam, in the form of a redb backend.
struct Backend(Arc<dyn File>);

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Backend")
    }
}

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(out, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_all_at(data, offset)
    }
}

#[cfg(test)]
#[path = "log_store_tests.rs"]
mod tests;
