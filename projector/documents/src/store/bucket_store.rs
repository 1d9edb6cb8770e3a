//! One bucket: its change log, its table, and the order in which they change.
//!
//! All changes of a bucket run under one lock, each as one group: append, sync, then the table. Readers take no part in it. They see
//! positions and mutations when the group is synced, and documents when the table has them; the service publishes a
//! group after both.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use proto::env::{Env, create_dir_durably};
use proto::lock::lock;
use proto::model::history::branch_of;
use proto::model::ids::{Seqno, VbucketId};
use proto::plant::{self, Plant};
use proto::{Error, ErrorCode, Result};
use storage::log::{Lsn, RECORD_OVERHEAD_BYTES};

use super::checkpoint::{CHECKPOINT_FILE, Checkpoint};
use super::options::DiskStoreOptions;
use super::paired_file::PairedFile;
use super::replay::{Replay, copied, version, version_place};
use crate::change_log::{ChangeLog, GroupBuilder, GroupPlace, KnownLog, LogState, VbucketRange};
use crate::document_store::{BucketChanges, LogExtent, LogRange, StoredDocument};
use crate::mutation::Mutation;
use crate::record::BucketRecord;
use crate::rules::{check_empty, check_rewind, documents_before};
use crate::table::{
    DeadVersions, DocumentTable, Retention, TableManifest, TableOptions, VersionRef,
};

/// The size of a read of the log.
const PIECE_BYTES: usize = 1 << 20;

/// A bucket on disk.
pub struct BucketStore {
    pub(super) env: Env,
    pub(super) dir: PathBuf,
    pub(super) log: ChangeLog,
    pub(super) table: DocumentTable,
    changes: Mutex<Changes>,
    checkpoint: Mutex<LastCheckpoint>,
    /// Held during a flush: a later one waits for its end, and checkpoints never go back.
    pub(super) flushing: Mutex<()>,
}

/// What a change needs and alters; locked from the first look at a group until the table has it.
struct Changes {
    record: BucketRecord,
    group: GroupBuilder,
    /// True if a group may be in the log and not in the table. Nothing is accepted and no checkpoint is written then: the next
    /// opening replays the group.
    is_broken: bool,
}

/// The last checkpoint on disk.
struct LastCheckpoint {
    file: PairedFile,
    last: Checkpoint,
}

impl BucketStore {
    /// Creates a bucket in an empty directory of a number, durably.
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
        let first = Checkpoint { log, record: record.clone(), table };
        let (mut file, _) = PairedFile::open::<Checkpoint>(&*env.fs, dir, CHECKPOINT_FILE)?;
        file.write(&*env.fs, &first)?;
        let made = Self::open(env, dir, 0, options, tables)?;
        made.write_checkpoint(made.log.state())?;
        Ok(made)
    }

    /// Opens a bucket, and replays what its checkpoint does not cover. `Corrupt` if its log, which was `synced` up to an LSN once, lacks
    /// anything before.
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
        let mut replay = Replay {
            table: &table,
            covered: last.table.covered(),
            record: last.record.clone(),
            events: 0,
        };
        // The fragments have only what was synced.
        let synced = synced.max(table.covered()).max(last.log.from);
        let log = ChangeLog::open(
            env,
            &dir.join("log"),
            &options.log,
            KnownLog { checkpoint: &last.log, synced },
            &mut |event, place| replay.event(event, &place),
        )?;
        let Replay { record, events, .. } = replay;
        if events > 0 {
            tracing::debug!(dir = %dir.display(), events, "replayed a change log");
        }
        table.reach(log.end());
        Ok(Self {
            env: env.clone(),
            dir: dir.to_path_buf(),
            log,
            table,
            changes: Mutex::new(Changes {
                record,
                group: GroupBuilder::default(),
                is_broken: false,
            }),
            checkpoint: Mutex::new(LastCheckpoint { file, last }),
            flushing: Mutex::default(),
        })
    }

    /// The record.
    pub fn record(&self) -> BucketRecord {
        lock(&self.changes).record.clone()
    }

    /// The last seqno of each vbucket.
    pub fn ends(&self) -> Vec<Seqno> {
        self.log.extents().iter().map(|extent| extent.end).collect()
    }

    /// Commits mutations and a new record: durable, then in the table.
    pub fn commit(&self, changes: &BucketChanges) -> Result<()> {
        let mut this = self.changes()?;
        let Changes { record, group, .. } = &mut *this;
        group.clear();
        if let Some(next) = &changes.record {
            group.record(next)?;
        }
        let branches = &changes.record.as_ref().unwrap_or(record).branches;
        for mutation in &changes.mutations {
            let of_vbucket = branches.get(usize::from(mutation.vbucket.0));
            let vbuuid = of_vbucket.map(|branches| branch_of(branches, mutation.seqno));
            group.mutation(vbuuid.unwrap_or_default(), mutation);
        }
        let place = self.append(&mut this)?;
        self.apply(&changes.mutations, &place)?;
        if let Some(next) = &changes.record {
            this.record = next.clone();
        }
        this.is_broken = false;
        Ok(())
    }

    /// True if nothing is accepted until the bucket is opened again.
    pub fn has_failed(&self) -> bool {
        self.log.check().is_err() || lock(&self.changes).is_broken
    }

    /// The changes, unless an earlier one has failed half way.
    fn changes(&self) -> Result<MutexGuard<'_, Changes>> {
        let this = lock(&self.changes);
        match this.is_broken {
            true => Err(Error::new(
                ErrorCode::Io,
                "an earlier change of the bucket has failed half way",
            )
            .with_hint("the process ends, and its next start recovers")),
            false => Ok(this),
        }
    }

    /// Appends and syncs the group of a change.
    fn append(&self, this: &mut MutexGuard<'_, Changes>) -> Result<GroupPlace> {
        let place = self.log.append(&this.group)?;
        this.is_broken = true;
        self.log.sync()?;
        Ok(place)
    }

    /// Adds mutations to the table, in the order of their places.
    fn apply(&self, mutations: &[Arc<Mutation>], place: &GroupPlace) -> Result<()> {
        let places = place.mutations.iter().map(version_place);
        let mut versions: Vec<VersionRef<'_>> = mutations
            .iter()
            .zip(places)
            .map(|(mutation, place)| version(mutation, place))
            .collect();
        versions.sort_unstable_by_key(|version| version.place);
        self.table.apply(&versions)?;
        self.table.reach(place.end);
        Ok(())
    }

    /// Replaces the record.
    pub fn put_record(&self, record: &BucketRecord) -> Result<()> {
        let mut this = self.changes()?;
        let place = self.change(&mut this, Some(record), |_| {})?;
        self.table.reach(place.end);
        this.is_broken = false;
        Ok(())
    }

    /// Makes a change without mutations; returns its place. The caller tells the table of it.
    fn change(
        &self,
        this: &mut MutexGuard<'_, Changes>,
        record: Option<&BucketRecord>,
        build: impl FnOnce(&mut GroupBuilder),
    ) -> Result<GroupPlace> {
        this.group.clear();
        if let Some(record) = record {
            this.group.record(record)?;
        }
        build(&mut this.group);
        let place = self.append(this)?;
        if let Some(record) = record {
            this.record = record.clone();
        }
        Ok(place)
    }

    /// Takes vbuckets back to earlier positions, with the record that has the new branches.
    pub fn rewind(&self, record: &BucketRecord, to: &[(VbucketId, Seqno)]) -> Result<()> {
        let mut this = self.changes()?;
        let mut back = Vec::new();
        for (vbucket, to) in to {
            let extent = self.log.extent(*vbucket);
            check_rewind(*vbucket, extent.purged, *to)?;
            if *to < extent.end {
                self.check_versions(*vbucket, &extent, *to)?;
                back.push((*vbucket, *to));
            }
        }
        let place = self.change(&mut this, Some(record), |group| {
            back.iter().for_each(|(vbucket, to)| group.rewind(*vbucket, *to));
        })?;
        let dead = |(vbucket, after): &(VbucketId, Seqno)| DeadVersions {
            vbucket: *vbucket,
            before: place.end,
            after: *after,
        };
        if !plant::is(Plant::RewindKeepsDocuments) {
            self.table.kill(&back.iter().map(dead).collect::<Vec<_>>());
        }
        self.table.reach(place.end);
        this.is_broken = false;
        Ok(())
    }

    /// Checks that the log still tells what the documents were at an earlier position. A vbucket that was copied by its documents may
    /// never have had their versions before the purge point.
    fn check_versions(&self, vbucket: VbucketId, extent: &LogExtent, to: Seqno) -> Result<()> {
        if extent.purged.0 == 0 || to.0 == 0 {
            return Ok(());
        }
        let beyond = self.mutations(VbucketRange { vbucket, after: to, to: extent.end });
        let before = self.mutations(VbucketRange { vbucket, after: extent.purged, to });
        documents_before(beyond, before, vbucket, extent.purged).map(|_| ())
    }

    /// The mutations of a range, piece by piece.
    fn mutations(&self, range: VbucketRange) -> impl Iterator<Item = Result<Arc<Mutation>>> {
        let mut next = range;
        let mut piece = Vec::new().into_iter();
        std::iter::from_fn(move || {
            if let Some(mutation) = piece.next() {
                return Some(Ok(mutation));
            }
            match self.log.read(next, PIECE_BYTES) {
                Ok(found) => {
                    next.after = found.last()?.seqno;
                    piece = found.into_iter();
                    piece.next().map(Ok)
                }
                Err(error) => {
                    next.after = next.to;
                    Some(Err(error))
                }
            }
        })
    }

    /// Purges the mutations of some vbuckets. The checkpoint keeps the end of a vbucket without any, so that an idle vbucket holds
    /// no segment of the log.
    pub fn purge(&self, to: &[(VbucketId, Seqno)]) -> Result<()> {
        let mut this = self.changes()?;
        let points: Vec<(VbucketId, Seqno)> = to
            .iter()
            .filter_map(|(vbucket, to)| {
                let extent = self.log.extent(*vbucket);
                let to = (*to).min(extent.end);
                (to > extent.purged).then_some((*vbucket, to))
            })
            .collect();
        if !points.is_empty() {
            let place = self.change(&mut this, None, |group| group.purge(&points))?;
            self.table.reach(place.end);
            this.is_broken = false;
        }
        Ok(())
    }

    /// Gives an empty vbucket a purge point.
    pub fn begin_purged(
        &self,
        record: &BucketRecord,
        vbucket: VbucketId,
        purged: Seqno,
    ) -> Result<()> {
        let mut this = self.changes()?;
        check_empty(vbucket, &self.log.extent(vbucket))?;
        let place = self.change(&mut this, Some(record), |group| group.begin(vbucket, purged))?;
        self.table.reach(place.end);
        this.is_broken = false;
        Ok(())
    }

    /// Adds documents of a vbucket that is being copied.
    pub fn put_documents(&self, documents: &[StoredDocument]) -> Result<()> {
        let mut this = self.changes()?;
        let Some(first) = documents.first() else { return Ok(()) };
        let vbuckets = this.record.info.vbuckets;
        let vbucket = proto::model::ids::vbucket_of(&first.id, vbuckets);
        let place = self.change(&mut this, None, |group| group.documents(vbucket, documents))?;
        // A copied document is in the log until the checkpoint covers it, so it has a place like any other version.
        self.table.apply(&copied(documents, place.start + RECORD_OVERHEAD_BYTES))?;
        self.table.reach(place.end);
        this.is_broken = false;
        Ok(())
    }

    /// Removes all data of a vbucket, and its branches.
    pub fn remove(&self, record: &BucketRecord, vbucket: VbucketId) -> Result<()> {
        let mut this = self.changes()?;
        let place = self.change(&mut this, Some(record), |group| group.remove(vbucket))?;
        self.table.kill(&[DeadVersions { vbucket, before: place.end, after: Seqno(0) }]);
        this.is_broken = false;
        Ok(())
    }

    /// The mutations of a range, see [`crate::DocumentStore::read_log`].
    pub fn read_log(&self, range: LogRange, bytes: usize) -> Result<Vec<Arc<Mutation>>> {
        let LogRange { vbucket, after, to, .. } = range;
        self.log.read(VbucketRange { vbucket, after, to }, bytes)
    }

    /// The retained part of each vbucket's log.
    pub fn extents(&self) -> Vec<LogExtent> {
        self.log.extents()
    }

    /// The versions that a rewind or a read as of a cut can still ask for.
    pub(super) fn retention(&self) -> Retention {
        Retention { from: self.log.extents().iter().map(|extent| extent.purged).collect() }
    }

    /// The state of the log when the table has everything that it covers.
    pub(super) fn synced_state(&self) -> Result<(LogState, BucketRecord)> {
        let this = self.changes()?;
        self.log.sync()?;
        Ok((self.log.state(), this.record.clone()))
    }

    /// Writes a checkpoint for a change of the table.
    pub(super) fn write_table(
        &self,
        state: Option<(LogState, BucketRecord)>,
        table: &TableManifest,
    ) -> Result<()> {
        let mut checkpoint = lock(&self.checkpoint);
        let LastCheckpoint { file, last } = &mut *checkpoint;
        let mut next = Checkpoint { table: table.clone(), ..last.clone() };
        if let Some((log, record)) = state {
            (next.log, next.record) = (log, record);
        }
        file.write(&*self.env.fs, &next)?;
        *last = next;
        Ok(())
    }

    /// Writes a checkpoint that knows the log, with an unchanged table. The table has everything before.
    pub(super) fn write_checkpoint(&self, log: LogState) -> Result<()> {
        let table = lock(&self.checkpoint).last.table.clone();
        let record = self.record();
        self.write_table(Some((log, record)), &table)
    }

    /// The place up to which the last checkpoint covers the log.
    pub(super) fn covered(&self) -> Lsn {
        lock(&self.checkpoint).last.log.from
    }
}
