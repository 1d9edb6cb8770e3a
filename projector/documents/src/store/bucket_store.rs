//! One bucket: its change log, its table, and the order in which they change.
//!
//! A batch of mutations changes the bucket in two steps. [`BucketStore::log_group`] appends it to
//! the log as one group, and syncs; [`BucketStore::show`] adds it to the table. The next batch
//! may be logged before that, and batches are added to the table in the order of the log, each by
//! its number. Any other change is made in one step, and is refused while a batch is between its
//! two steps.
//!
//! - The log may be ahead of the table; the table is never ahead of the log.
//! - *Shown* means: added to the table. A flush covers the log only up to the last shown group,
//!   so that its checkpoint never covers data that only the log has.
//! - If a group is logged but cannot be added to the table, the bucket accepts no more writes,
//!   and writes no checkpoint. The next opening replays the groups.
//!
//! Readers need none of the locks of this module. Positions and mutations are visible once a
//! group is synced, and documents once the table has them; the service publishes a group after
//! both.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use proto::env::{Env, create_dir_durably};
use proto::lock::lock;
use proto::model::ids::Seqno;
use proto::{Error, ErrorCode, Result};
use storage::log::Lsn;

use super::checkpoint::{CHECKPOINT_FILE, Checkpoint};
use super::options::DiskStoreOptions;
use super::paired_file::PairedFile;
use super::replay::Replay;
use crate::change_log::{
    ChangeLog, ChangeLogOptions, GroupBuilder, GroupPlace, KnownLog, LogState, PreparedPlaces,
    VbucketRange,
};
use crate::document_store::{LogExtent, LogRange};
use crate::mutation::Mutation;
use crate::record::BucketRecord;
use crate::table::{DocumentTable, MadeRuns, Retention, TableManifest, TableOptions};

/// The store of one bucket on disk: its log, its table and its checkpoint.
pub struct BucketStore {
    pub(super) env: Env,
    pub(super) dir: PathBuf,
    pub(super) log: ChangeLog,
    pub(super) table: DocumentTable,
    pub(super) changes: Mutex<Changes>,
    /// The state that the table has reached. A caller that needs both locks must lock `changes`
    /// first.
    pub(super) shown: Mutex<TableState>,
    /// True after a failed [`Self::show`]: no further batch is logged. (Whether a batch may be
    /// added to the table is decided under the lock of `shown`.)
    pub(super) has_failed_show: AtomicBool,
    checkpoint: Mutex<LastCheckpoint>,
    /// Locked during a flush, so that flushes run one at a time and checkpoints never move back.
    pub(super) flushing: Mutex<()>,
    /// True while documents are loaded that are not in the log.
    pub(super) is_loading: AtomicBool,
    /// The distance from the end of the log; see [`DiskStoreOptions::prepared_behind_bytes`].
    pub(super) prepared_behind_bytes: u64,
}

/// The data that a change of the log reads and alters. The lock is held while a group is
/// prepared, appended and synced.
pub(super) struct Changes {
    pub(super) record: BucketRecord,
    /// The places in the log at which the changes of prepared transactions are.
    pub(super) places: PreparedPlaces,
    pub(super) group: GroupBuilder,
    /// Number of batches logged since the bucket was opened.
    pub(super) batches: u64,
    /// True if the log may have a group that the table will never get. Writes are then refused.
    pub(super) is_broken: bool,
}

/// The state that the table has reached: the logged groups that it has.
pub(super) struct TableState {
    /// Number of batches added to the table since the bucket was opened.
    pub(super) batches: u64,
    /// The positions in the log after the last group that the table has.
    pub(super) state: LogState,
    pub(super) record: BucketRecord,
    pub(super) places: PreparedPlaces,
    /// True if the table may have only a part of a group. No checkpoint is written then.
    pub(super) is_broken: bool,
}

/// A batch that is in the log and not in the table yet.
pub(super) struct LoggedGroup {
    pub(super) place: GroupPlace,
    /// The places in the log of the changes of all transactions that are prepared after the
    /// batch.
    pub(super) places: PreparedPlaces,
    pub(super) number: u64,
    /// The sorted runs for the table, if they were built while the log was written.
    pub(super) made: Option<MadeRuns>,
}

/// The newest checkpoint on disk.
struct LastCheckpoint {
    file: PairedFile,
    last: Checkpoint,
}

/// The part of a checkpoint that follows from the log: the positions that it covers, and the
/// record there.
pub(super) struct CheckpointState {
    pub(super) log: LogState,
    pub(super) record: BucketRecord,
    pub(super) places: PreparedPlaces,
}

impl Changes {
    /// Returns the places of prepared changes in the log that are still valid when the record
    /// `next` replaces the present one.
    pub(super) fn known_places(&self, next: &BucketRecord) -> PreparedPlaces {
        self.places.still_valid_for(&self.record.commits, &next.commits)
    }

    /// Records the places of the changes of transactions that a group has prepared.
    pub(super) fn note_prepared(&mut self, place: &GroupPlace) {
        for (transaction, item) in &place.prepared {
            self.places.put(*transaction, *item);
        }
        self.places.keep_prepared(&self.record.commits);
    }
}

impl BucketStore {
    /// Creates a bucket durably in an empty directory. `number` is the number of the directory,
    /// from which the ids of the table's files are derived.
    pub fn create(
        env: &Env,
        dir: &Path,
        (record, number): (&BucketRecord, u64),
        options: &DiskStoreOptions,
        tables: &TableOptions,
    ) -> Result<Self> {
        create_dir_durably(&*env.fs, dir)?;
        let log = LogState::new(record.info.vbuckets);
        let table = TableManifest::new(number);
        // Prepared changes go into the log.
        let commits = record.commits.with_prepared(|_| None);
        let (of_first, places) = (BucketRecord { commits, ..record.clone() }, Default::default());
        let first = Checkpoint { log, record: of_first, table, places };
        let (mut file, _) = PairedFile::open::<Checkpoint>(&*env.fs, dir, CHECKPOINT_FILE)?;
        file.write(&*env.fs, &first)?;
        let made = Self::open(env, dir, 0, options, tables)?;
        if record.commits.has_prepared() {
            made.put_record(record)?;
        }
        made.write_checkpoint(made.log.state())?;
        Ok(made)
    }

    /// Opens a bucket, and replays the log after its checkpoint. The error is `Corrupt` if the
    /// log ends before `synced`, an LSN up to which it was certainly synced.
    pub fn open(
        env: &Env,
        dir: &Path,
        synced: Lsn,
        options: &DiskStoreOptions,
        tables: &TableOptions,
    ) -> Result<Self> {
        let fs = &env.fs;
        let (file, last) = PairedFile::open::<Checkpoint>(&**fs, dir, CHECKPOINT_FILE)?;
        let last = last.ok_or_else(|| {
            let what = format!("{}: the checkpoint of the bucket is missing", dir.display());
            Error::new(ErrorCode::Corrupt, what)
                .with_hint("restore the files checkpoint.1 and checkpoint.2 of the bucket")
        })?;
        let vbuckets = last.record.info.vbuckets;
        let table = DocumentTable::open(fs, dir, vbuckets, tables.clone(), last.table.clone())?;
        let mut replay = Replay::after_checkpoint(&last, &table);
        // The fragments have only what was synced.
        let synced = synced.max(table.covered()).max(last.log.from);
        let open_files = Some(Arc::clone(&tables.open_files));
        let of_log = ChangeLogOptions { open_files, ..options.log.clone() };
        let log = ChangeLog::open(
            env,
            &dir.join("log"),
            &of_log,
            KnownLog { checkpoint: &last.log, synced },
            &mut |event, place| replay.event(event, &place),
        )?;
        replay.read_prepared(|transaction, place| log.read_prepared(transaction, place))?;
        let Replay { record, places, events, .. } = replay;
        if events > 0 {
            tracing::debug!(dir = %dir.display(), events, "replayed a change log");
        }
        table.record_reached(log.end());
        let (state, shown_record) = (log.state(), record.clone());
        let shown_places = places.clone();
        let shown = TableState {
            batches: 0,
            state,
            record: shown_record,
            places: shown_places,
            is_broken: false,
        };
        Ok(Self {
            env: env.clone(),
            dir: dir.to_path_buf(),
            log,
            table,
            changes: Mutex::new(Changes {
                record,
                places,
                group: GroupBuilder::default(),
                batches: 0,
                is_broken: false,
            }),
            shown: Mutex::new(shown),
            has_failed_show: AtomicBool::new(false),
            checkpoint: Mutex::new(LastCheckpoint { file, last }),
            flushing: Mutex::default(),
            is_loading: AtomicBool::new(false),
            prepared_behind_bytes: options.prepared_behind_bytes,
        })
    }

    /// Returns the record of the bucket, including groups that are not in the table yet.
    pub fn record(&self) -> BucketRecord {
        lock(&self.changes).record.clone()
    }

    /// Returns the last seqno of each vbucket.
    pub fn ends(&self) -> Vec<Seqno> {
        self.log.extents().iter().map(|extent| extent.end).collect()
    }

    /// Releases the segments of the log that are needed neither by readers nor by the last
    /// checkpoint.
    pub(super) fn release(&self) -> Result<()> {
        let to = {
            let checkpoint = lock(&self.checkpoint);
            let Checkpoint { log, places, .. } = &checkpoint.last;
            places.oldest().map_or(log.from, |oldest| oldest.min(log.from))
        };
        self.log.release(to)
    }

    /// Returns true if writes are refused until the bucket is opened again.
    pub fn has_failed(&self) -> bool {
        let is_broken = lock(&self.changes).is_broken || lock(&self.shown).is_broken;
        self.log.check().is_err() || is_broken
    }

    /// Appends a group of changes to the log, and syncs it.
    pub(super) fn append(&self, this: &mut Changes) -> Result<GroupPlace> {
        let place = self.log.append(&this.group)?;
        this.is_broken = true;
        self.log.sync()?;
        Ok(place)
    }

    /// Returns the documents with some ids, now or as of a cut; see
    /// [`crate::DocumentStore::get`].
    pub fn documents(
        &self,
        ids: &[String],
        cut: Option<&[Seqno]>,
        bytes_max: usize,
    ) -> Result<Vec<Option<Bytes>>> {
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let found = match cut {
            None => self.table.get_many(&ids, bytes_max)?,
            Some(cut) => self.table.get_many_at(&ids, cut, bytes_max)?,
        };
        Ok(found.into_iter().map(|found| found.map(|stored| stored.document)).collect())
    }

    /// Returns the mutations of a range, see [`crate::DocumentStore::read_log`].
    pub fn read_log(&self, range: LogRange, bytes: usize) -> Result<Vec<Arc<Mutation>>> {
        let LogRange { vbucket, after, to, .. } = range;
        self.log.read(VbucketRange { vbucket, after, to }, bytes)
    }

    /// Returns the retained range of each vbucket's log.
    pub fn extents(&self) -> Vec<LogExtent> {
        self.log.extents()
    }

    /// Returns the rule for the versions that a merge must not drop, because a rewind or a read
    /// as of a cut can still need them.
    pub(super) fn retention(&self) -> Retention {
        Retention { from: self.log.extents().iter().map(|extent| extent.purged).collect() }
    }

    /// Returns what a checkpoint may cover: the positions in the log, and the record, after the
    /// last group that the table has.
    pub(super) fn shown_state(&self) -> Result<CheckpointState> {
        let shown = lock(&self.shown);
        check_not_broken(shown.is_broken)?;
        let (log, record) = (shown.state.clone(), shown.record.clone());
        Ok(CheckpointState { log, record, places: shown.places.clone() })
    }

    /// Writes a checkpoint with a changed table. `state` is what the checkpoint covers of the
    /// log, if that changes too.
    pub(super) fn write_table(
        &self,
        state: Option<CheckpointState>,
        table: &TableManifest,
    ) -> Result<()> {
        let mut checkpoint = lock(&self.checkpoint);
        let LastCheckpoint { file, last } = &mut *checkpoint;
        let mut next = Checkpoint { table: table.clone(), ..last.clone() };
        if let Some(CheckpointState { log, record, places }) = state {
            (next.log, next.record, next.places) = (log, record, places);
        }
        file.write(&*self.env.fs, &next)?;
        *last = next;
        Ok(())
    }

    /// Writes a checkpoint that covers the log up to `log`, with an unchanged table. The
    /// fragments of the table must have all groups up to there.
    pub(super) fn write_checkpoint(&self, log: LogState) -> Result<()> {
        let table = lock(&self.checkpoint).last.table.clone();
        let covered = {
            let this = lock(&self.changes);
            CheckpointState { log, record: this.record.clone(), places: this.places.clone() }
        };
        self.write_table(Some(covered), &table)
    }

    /// Returns the LSN up to which the last checkpoint covers the log.
    pub(super) fn covered(&self) -> Lsn {
        lock(&self.checkpoint).last.log.from
    }
}

/// Returns an error if an earlier change has failed between its steps (`is_broken`).
pub(super) fn check_not_broken(is_broken: bool) -> Result<()> {
    match is_broken {
        true => {
            Err(Error::new(ErrorCode::Io, "an earlier change of the bucket has failed half way")
                .with_hint("the process ends, and its next start recovers"))
        }
        false => Ok(()),
    }
}
