//! The document table of a bucket: adds versions of documents, and reads single documents.

use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use proto::env::FileSystem;
use proto::model::ids::{Seqno, hash_id};
use proto::{Error, ErrorCode, Result};
use storage::fragment::{BlobStore, FileBlobs};

use crate::table::dead::DeadVersions;
use crate::table::files;
use crate::table::lookup::{DocumentQuery, FoundVersion};
use crate::table::manifest::TableManifest;
use crate::table::memory::{Memtable, Run};
use crate::table::options::TableOptions;
use crate::table::tables::Tables;
use crate::table::version::{StoredVersion, VersionRef, joined};
use crate::table::yielding_lock::YieldingLock;

/// The number of versions whose entries in the hash table are prefetched together.
const BATCH: usize = 32;
/// A batch is large if its size is at least that of a full memtable divided by this number.
/// Groups of many small writes are much smaller.
const LARGE_PART: usize = 4;
/// The approximate bytes of a version in memory, without its id and document.
const VERSION_BYTES: usize = 64;

/// The documents of one bucket by id.
///
/// All calls block the thread. One thread adds versions (`apply`, `reach`) and makes versions
/// invalid (`kill`), in the order of the change log; any number of threads read, and any thread
/// may flush and merge.
pub struct DocumentTable {
    pub(super) blobs: FileBlobs,
    pub(super) options: TableOptions,
    pub(super) vbuckets: u16,
    pub(super) state: YieldingLock<State>,
    /// Locked while a manifest is written and installed, so that each manifest is derived from
    /// the previous one. Contains files that are named only by a manifest whose write has failed:
    /// that manifest may be on disk until the next one is written.
    pub(super) publication: Mutex<Vec<u64>>,
}

/// The parts of a table that change. They are locked for short times only: never during a sort, a
/// merge or an access to a file.
#[derive(Debug)]
pub(super) struct State {
    pub memtable: Memtable,
    pub tables: Arc<Tables>,
    /// The smallest place, in the order of versions, that the next version may have.
    pub next_place: u64,
    /// The id that the next file gets.
    pub next_file: u64,
    /// The place before which versions are being flushed; `None` if no flush is in progress.
    pub flushing: Option<u64>,
    /// True while a merge of fragments is in progress.
    pub is_merging: bool,
    /// True while runs are merged in memory.
    pub is_merging_runs: bool,
}

impl State {
    /// Converts the memtable into a run, a set of versions in memory that does not change any
    /// more.
    pub fn freeze(&mut self) {
        if let Some(run) = Run::freeze(std::mem::take(&mut self.memtable)) {
            self.change_tables(|tables| tables.runs.push(run));
        }
    }

    /// Replaces the tables by changed ones, for all readers that begin later.
    pub fn change_tables(&mut self, change: impl FnOnce(&mut Tables)) {
        change(Arc::make_mut(&mut self.tables));
        debug_assert!(self.tables.are_in_order(), "{:?}", self.tables);
    }

    /// Returns true if the fragments on disk have all versions.
    pub fn has_all_on_disk(&self) -> bool {
        self.memtable.places().is_none() && self.tables.runs.is_empty()
    }

    /// Returns the memory in bytes of the versions that no fragment has.
    pub fn memory_bytes(&self) -> usize {
        let runs: usize = self.tables.runs.iter().map(Run::memory_bytes).sum();
        self.memtable.memory_bytes() + runs
    }

    /// Returns an error if versions are not in the order of their places.
    fn check_places(&self, versions: &[VersionRef<'_>]) -> Result<()> {
        let mut next = self.next_place;
        for VersionRef { place, .. } in versions {
            if *place < next || *place == u64::MAX {
                let what = format!("a version has place {place}, and the next place is {next}");
                return Err(Error::internal(what));
            }
            next = place + 1;
        }
        Ok(())
    }

    /// Returns an error if the places of runs do not ascend from `next_place` on.
    fn check_runs(&self, runs: &[Run]) -> Result<()> {
        let mut next = self.next_place;
        for Run { places, .. } in runs {
            if places.first < next || places.last == u64::MAX {
                let first = places.first;
                let what = format!("a run begins at place {first}, and the next place is {next}");
                return Err(Error::internal(what));
            }
            next = places.last + 1;
        }
        Ok(())
    }
}

/// The sorted runs of a large batch of versions, before they are added to the table.
pub struct MadeRuns(Vec<Run>);

impl DocumentTable {
    /// Opens the table that a manifest describes, in its own directory. The caller then adds all
    /// versions from [`TableManifest::covered`] on. Files that the manifest does not name are
    /// removed. A missing or damaged file is an error that names it.
    pub fn open(
        fs: &Arc<dyn FileSystem>,
        dir: &Path,
        vbuckets: u16,
        options: TableOptions,
        manifest: TableManifest,
    ) -> Result<Self> {
        let (blobs, fragments, next_file) = files::open(fs, dir, &options, &manifest)?;
        let TableManifest { covered, dead, .. } = manifest;
        let tables = Tables { fragments, runs: Vec::new(), dead: Arc::new(dead), covered };
        let state = State {
            memtable: Memtable::default(),
            tables: Arc::new(tables),
            next_place: covered,
            next_file,
            flushing: None,
            is_merging: false,
            is_merging_runs: false,
        };
        let (state, publication) = (YieldingLock::new(state), Mutex::default());
        Ok(Self { blobs, options, vbuckets, state, publication })
    }

    /// Adds versions: all of them, or none after an error. Readers see all of them at once. Their
    /// places must ascend, and be larger than those of all earlier versions.
    pub fn apply(&self, versions: &[VersionRef<'_>]) -> Result<()> {
        let Some(last) = versions.last() else { return Ok(()) };
        if self.is_large(versions) {
            return self.add_made_runs(self.make_runs(versions));
        }
        let hashes: Vec<u64> = versions.iter().map(|version| hash_id(version.id)).collect();
        let mut state = self.state.write();
        state.check_places(versions)?;
        let state = &mut *state;
        let mut frozen = Vec::new();
        put_all(&mut state.memtable, (versions, &hashes), &mut frozen);
        if !frozen.is_empty() {
            state.change_tables(|tables| tables.runs.append(&mut frozen));
        }
        state.next_place = last.place + 1;
        Ok(())
    }

    fn is_large(&self, versions: &[VersionRef<'_>]) -> bool {
        let sizes = versions
            .iter()
            .map(|version| (version.id.len(), version.document.map_or(0, <[u8]>::len)));
        self.are_large(sizes)
    }

    /// Returns true if a batch of versions, whose ids and documents have these lengths, is so
    /// large that it should be added as separate runs.
    pub fn are_large(&self, sizes: impl Iterator<Item = (usize, usize)>) -> bool {
        let bytes = sizes.map(|(id, document)| VERSION_BYTES + id + document);
        bytes.sum::<usize>() >= self.options.memtable_bytes / LARGE_PART
    }

    /// Builds sorted runs of the versions of a large batch, which [`Self::add_made_runs`] then adds.
    /// Readers do not wait for this.
    pub fn make_runs(&self, versions: &[VersionRef<'_>]) -> MadeRuns {
        let hashes: Vec<u64> = versions.iter().map(|version| hash_id(version.id)).collect();
        let (mut memtable, mut runs) = (Memtable::default(), Vec::new());
        put_all(&mut memtable, (versions, &hashes), &mut runs);
        runs.extend(Run::freeze(memtable));
        MadeRuns(runs)
    }

    /// Adds the runs that [`Self::make_runs`] has built: all of them, or none after an error. Their
    /// places must be larger than those of all earlier versions.
    pub fn add_made_runs(&self, made: MadeRuns) -> Result<()> {
        let MadeRuns(mut runs) = made;
        let Some(last) = runs.last().map(|run| run.places.last) else { return Ok(()) };
        let mut state = self.state.write();
        state.check_runs(&runs)?;
        state.freeze();
        state.next_place = last + 1;
        state.change_tables(|tables| tables.runs.append(&mut runs));
        Ok(())
    }

    /// Makes versions dead (invalid), all sets of the list at once. Versions that are added later
    /// must have places at or after those of the list. A repeated call has no further effect.
    pub fn add_dead_versions(&self, dead: &[DeadVersions]) {
        let mut state = self.state.write();
        state.change_tables(|tables| {
            let list = Arc::make_mut(&mut tables.dead);
            dead.iter().for_each(|dead| list.add(dead));
        });
        let behind = dead.iter().map(|dead| dead.before).max().unwrap_or_default();
        state.next_place = state.next_place.max(behind);
    }

    /// Records that all versions before a place were added. So a flush covers the table up to
    /// that place, even if no version has it.
    pub fn record_reached(&self, place: u64) {
        let mut state = self.state.write();
        state.next_place = state.next_place.max(place);
    }

    /// Returns the number of fragments.
    pub fn fragments(&self) -> usize {
        self.state.read().tables.fragments.len()
    }

    /// Returns the current document with an id; `None` if there is none.
    pub fn get(&self, id: &str) -> Result<Option<StoredVersion>> {
        self.find(id, None, &stored)
    }

    /// Returns the document with an id as of a cut, which has the seqno of each vbucket.
    pub fn get_at(&self, id: &str, cut: &[Seqno]) -> Result<Option<StoredVersion>> {
        self.find(id, Some(cut), &stored)
    }

    /// True if a document with that id exists.
    pub fn contains(&self, id: &str) -> Result<bool> {
        Ok(self.find(id, None, &|_, _| ())?.is_some())
    }

    /// Returns the seqno of a document's newest valid version, which may be a deletion; `None` if
    /// there is no version. A deletion at or below the floor of its vbucket may not be found,
    /// because a merge may drop it.
    pub fn changed_at(&self, id: &str) -> Result<Option<Seqno>> {
        let newest = self.newest_valid_version(id, None, &|seqno, _| seqno)?;
        Ok(newest.map(|answer| match answer {
            FoundVersion::Absent(seqno) | FoundVersion::Present(seqno) => seqno,
        }))
    }

    /// Returns the current documents with some ids, all as of one moment: a call of
    /// [`Self::apply`] or [`Self::add_dead_versions`] affects all of them or none. The error is `OverLimit` if
    /// the documents together exceed `bytes_max`.
    pub fn get_many(&self, ids: &[&str], bytes_max: usize) -> Result<Vec<Option<StoredVersion>>> {
        self.find_many(ids, None, bytes_max)
    }

    /// Returns the documents with some ids as of a cut; otherwise like [`Self::get_many`].
    pub fn get_many_at(
        &self,
        ids: &[&str],
        cut: &[Seqno],
        bytes_max: usize,
    ) -> Result<Vec<Option<StoredVersion>>> {
        self.find_many(ids, Some(cut), bytes_max)
    }

    fn find_many(
        &self,
        ids: &[&str],
        cut: Option<&[Seqno]>,
        bytes_max: usize,
    ) -> Result<Vec<Option<StoredVersion>>> {
        let wanted: Vec<_> =
            ids.iter().map(|id| DocumentQuery::new(id, self.vbuckets, cut)).collect();
        let mut answers = Vec::with_capacity(ids.len());
        let mut limit = Limit { left: bytes_max, bytes_max };
        let tables = {
            let state = self.state.read();
            for wanted in &wanted {
                let answer = state.memtable.find(wanted, &state.tables.dead, &stored)?;
                answers.push(limit.spend(answer)?);
            }
            Arc::clone(&state.tables)
        };
        for (wanted, answer) in wanted.iter().zip(&mut answers) {
            if answer.is_none() {
                let found = tables.find(wanted, &stored).map_err(files::with_hint)?;
                *answer = limit.spend(found)?;
            }
        }
        Ok(answers.into_iter().map(|answer| answer.and_then(FoundVersion::present)).collect())
    }

    fn find<T>(
        &self,
        id: &str,
        cut: Option<&[Seqno]>,
        take: &impl Fn(Seqno, [&[u8]; 2]) -> T,
    ) -> Result<Option<T>> {
        Ok(self.newest_valid_version(id, cut, take)?.and_then(FoundVersion::present))
    }

    /// Returns the newest valid version of a document, which may be a deletion; `None` if no
    /// table has one.
    fn newest_valid_version<T>(
        &self,
        id: &str,
        cut: Option<&[Seqno]>,
        take: &impl Fn(Seqno, [&[u8]; 2]) -> T,
    ) -> Result<Option<FoundVersion<T>>> {
        let wanted = DocumentQuery::new(id, self.vbuckets, cut);
        let tables = {
            let state = self.state.read();
            let answer = state.memtable.find(&wanted, &state.tables.dead, take)?;
            if answer.is_some() {
                return Ok(answer);
            }
            Arc::clone(&state.tables)
        };
        tables.find(&wanted, take).map_err(files::with_hint)
    }
}

/// Adds versions to a memtable. When the memtable is full, it is frozen and added to `frozen`,
/// and an empty one replaces it.
fn put_all(
    memtable: &mut Memtable,
    (versions, hashes): (&[VersionRef<'_>], &[u64]),
    frozen: &mut Vec<Run>,
) {
    for (versions, hashes) in versions.chunks(BATCH).zip(hashes.chunks(BATCH)) {
        memtable.prefetch(hashes);
        for (version, hash) in versions.iter().zip(hashes) {
            if memtable.is_full() {
                frozen.extend(Run::freeze(std::mem::take(memtable)));
            }
            memtable.put(*hash, version);
        }
    }
}

/// The number of bytes that the documents of an answer may still have.
struct Limit {
    left: usize,
    bytes_max: usize,
}

impl Limit {
    fn spend(
        &mut self,
        answer: Option<FoundVersion<StoredVersion>>,
    ) -> Result<Option<FoundVersion<StoredVersion>>> {
        if let Some(FoundVersion::Present(found)) = &answer {
            self.left = self.left.checked_sub(found.document.len()).ok_or_else(|| {
                let what = format!("the documents have more than {} bytes", self.bytes_max);
                Error::new(ErrorCode::OverLimit, what).with_hint("read fewer documents at once")
            })?;
        }
        Ok(answer)
    }
}

impl std::fmt::Debug for DocumentTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DocumentTable({})", self.blobs.store_name())
    }
}

fn stored(seqno: Seqno, document: [&[u8]; 2]) -> StoredVersion {
    let document: Bytes = joined(document);
    StoredVersion { seqno, document }
}
