//! Recovery of a source that has lost data (`sextant source recover --accept-loss`).
//!
//! A bucket with a complete log is not changed; it may still be an older copy, which only the
//! coordinators can detect. Any other bucket is *made again* from its remaining data, in a new
//! directory, as if a projector had copied it document by document:
//!
//! 1. The fragments of the document table that the checkpoint names are opened and read
//!    completely. They contain most documents, which are in no log any more: a bucket with a
//!    damaged fragment cannot be made again.
//! 2. The change log is read from the checkpoint on, up to the first damage
//!    (`change_log::salvage`). Its groups are replayed into the table, as a start does. Versions
//!    in the fragments from after the damage are ignored. If a vbucket was rewound after the
//!    damage, versions from before the damage may be missing, so all data of the vbucket is given
//!    up.
//! 3. A new directory gets the record, the end of each vbucket as its purge point, and all
//!    documents. Its log has no mutations, so an index that lags behind must be resynced from a
//!    snapshot.
//! 4. When all damaged buckets are made again, one write of the manifest names the new
//!    directories instead of the old ones. An operator removes the old ones later. A crash before
//!    that write changes nothing.
//!
//! A bucket that cannot be made again does not delay the others. An operator can give it up
//! completely: the next catalog recreates it, empty.
//!
//! The coordinators detect the loss of an intact but outdated bucket by comparing it with an
//! epoch; the loss is recorded in the manifest with that epoch. The write that names the new
//! directories also accepts the recorded losses ([`crate::DocumentStore::losses`]). No other
//! losses are accepted: a bucket that was made again must first be compared by the coordinators.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proto::env::{Env, FileSystem, check_version};
use proto::model::history::MissingEnd;
use proto::model::ids::{BucketId, Epoch, Seqno, VbucketId, vbucket_of};
use proto::{Error, ErrorCode, Result};
use storage::verify::Remark;

use super::bucket_store::BucketStore;
use super::checkpoint::{CHECKPOINT_FILE, Checkpoint};
use super::disk_store::{VERSION, check_log_id, entry_of};
use super::lost_commits::{LostCommit, add_unreadable, all_commits, lost_commits};
use super::options::DiskStoreOptions;
use super::paired_file::{PairedFile, inspect};
use super::replay::Replay;
use super::source_manifest::{self, BucketEntry, SourceManifest, directory_path};
use crate::change_log::{self, LogRemark, read_damaged_log, read_prepared};
use crate::document_store::StoredDocument;
use crate::record::BucketRecord;
use crate::table::{self, DeadVersions, DocumentTable, TableManifest, TableOptions};

/// The size in bytes of the documents that are copied at once. Those of each vbucket become one
/// record of the new log.
const CHUNK_BYTES: usize = 64 << 20;

/// The outcome of a recovery for one bucket.
#[derive(Debug)]
pub enum RecoveryOutcome {
    /// The files of the bucket are intact. Contains the epoch of the loss that the coordinators
    /// have reported, and which is accepted now; `None` if no loss was reported.
    Whole(Option<Epoch>),
    /// The bucket was made again, in a new directory, from its remaining data.
    MadeAgain {
        /// The damage of its files.
        damage: Error,
        /// The vbuckets that have lost mutations, each with its last seqno now, and the last
        /// seqno that it once had, as far as that is known.
        lost: Vec<MissingEnd>,
        /// The old directory of the bucket.
        old: PathBuf,
    },
    /// All data of the bucket was given up. Contains its old directory.
    GivenUp(PathBuf),
    /// The bucket cannot be made again, and is unchanged. Contains the reason.
    Unsaved(Error),
}

/// A bucket of a directory that was recovered, with the outcome.
#[derive(Debug)]
pub struct RecoveredBucket {
    /// The bucket that was recovered.
    pub bucket: BucketId,
    /// The name of the bucket; empty if it is unknown.
    pub name: String,
    /// The outcome of the recovery.
    pub outcome: RecoveryOutcome,
    /// The commits over several buckets whose changes in this bucket are lost, according to the
    /// readable files. If the directory is an older copy, later commits are unknown.
    pub commits: Vec<LostCommit>,
}

/// Makes the data directory of a projector usable again from its remaining data, and accepts the
/// reported losses. `given_up` names the buckets (by name or number) whose data is given up
/// completely. No other process may have the directory open. Blocks the thread.
pub fn recover(
    env: &Env,
    dir: &Path,
    options: &DiskStoreOptions,
    given_up: &[String],
) -> Result<Vec<RecoveredBucket>> {
    check_version(&*env.fs, dir, VERSION, true)?;
    let (mut file, mut contents) = source_manifest::open(&*env.fs, dir)?;
    let tables = options.tables(env);
    let recovery = Recovery { env, dir, options, tables };
    let mut found = Vec::new();
    for (id, entry) in contents.buckets.clone() {
        let old = directory_path(dir, entry.directory);
        let name = recovery.name_of(&old);
        let is_given_up = given_up.iter().any(|given| *given == name || *given == id.to_string());
        let mut commits = Vec::new();
        let outcome = match recovery.open_whole(id, &entry) {
            _ if is_given_up => {
                commits = all_commits(&*env.fs, &old);
                contents.buckets.remove(&id);
                contents.give_up_by_operator(id, entry.directory);
                // The present catalog counts as new, so that it makes the bucket.
                contents.catalog_cas = 0;
                RecoveryOutcome::GivenUp(old)
            }
            Ok(()) => RecoveryOutcome::Whole(accept_loss(&mut contents, id)),
            Err(damage) => {
                let number = contents.next_directory;
                contents.next_directory += 1;
                contents.making.insert(number);
                file.write(&*env.fs, &contents)?;
                match recovery.make_again(id, &entry, number) {
                    Ok((made, lost, lost_commits)) => {
                        commits = lost_commits;
                        contents.buckets.insert(id, made);
                        contents.give_up_by_operator(id, entry.directory);
                        RecoveryOutcome::MadeAgain { damage, lost, old }
                    }
                    Err(error) => RecoveryOutcome::Unsaved(error),
                }
            }
        };
        found.push(RecoveredBucket { bucket: id, name, outcome, commits });
    }
    let made = contents.buckets.values().map(|entry| entry.directory);
    let made: Vec<u64> = made.filter(|number| contents.making.contains(number)).collect();
    contents.making.retain(|number| !made.contains(number));
    let SourceManifest { losses, buckets, .. } = &mut contents;
    losses.retain(|bucket, _| buckets.contains_key(bucket));
    file.write(&*env.fs, &contents)?;
    Ok(found)
}

/// Accepts the loss that was reported for a bucket, and returns its epoch; `None` if none was
/// reported.
fn accept_loss(contents: &mut SourceManifest, bucket: BucketId) -> Option<Epoch> {
    let loss = contents.losses.get_mut(&bucket)?;
    loss.is_accepted = true;
    Some(loss.epoch)
}

/// The progress of a directory's recovery.
struct Recovery<'a> {
    env: &'a Env,
    dir: &'a Path,
    options: &'a DiskStoreOptions,
    tables: TableOptions,
}

/// The data of a damaged bucket that can still be read.
struct BucketRest {
    record: BucketRecord,
    table: DocumentTable,
    /// The last readable seqno of each vbucket.
    ends: Vec<Seqno>,
    /// The last seqno that each vbucket once had, as far as that is known.
    seen: Vec<Seqno>,
    /// The commits over several buckets whose changes in this bucket are lost.
    commits: Vec<LostCommit>,
}

impl Recovery<'_> {
    /// Returns the name of the bucket in a directory; empty if its checkpoint is not readable.
    fn name_of(&self, dir: &Path) -> String {
        let checkpoint: (Option<Checkpoint>, _) = inspect(&*self.env.fs, dir, CHECKPOINT_FILE);
        checkpoint.0.map_or_else(String::new, |checkpoint| checkpoint.record.info.name)
    }

    /// Opens the bucket as a start does, and also reads all of its other files, to find any
    /// damage.
    fn open_whole(&self, id: BucketId, entry: &BucketEntry) -> Result<()> {
        let dir = directory_path(self.dir, entry.directory);
        let bucket = BucketStore::open(self.env, &dir, entry.end, self.options, &self.tables)?;
        check_log_id(&bucket, entry)?;
        check_id(&bucket.record(), id)?;
        drop(bucket);
        let fs = &self.env.fs;
        let (_, last) = PairedFile::open::<Checkpoint>(&**fs, &dir, CHECKPOINT_FILE)?;
        let Some(Checkpoint { log, table, .. }) = last else { return Ok(()) };
        check_fragments(fs, &dir, &table)?;
        let survey = change_log::verify(&**fs, &dir.join("log"), Some(&log))?;
        // Side files are built again.
        let is_log =
            |remark: &LogRemark| remark.path.extension().is_none_or(|kind| kind != "index");
        match survey.findings.into_iter().find(is_log) {
            None => Ok(()),
            Some(LogRemark { path, message }) => {
                Err(Error::new(ErrorCode::Corrupt, format!("{}: {message}", path.display())))
            }
        }
    }

    /// Makes the bucket again from its remaining data, in the directory with the number `number`.
    /// Returns its manifest entry, its lost mutations, and its lost commits.
    fn make_again(
        &self,
        id: BucketId,
        entry: &BucketEntry,
        number: u64,
    ) -> Result<(BucketEntry, Vec<MissingEnd>, Vec<LostCommit>)> {
        let from = directory_path(self.dir, entry.directory);
        let BucketRest { record, table, ends, seen, commits } =
            self.readable_rest_of(id, entry, &from)?;
        let dir = directory_path(self.dir, number);
        let made =
            BucketStore::create(self.env, &dir, (&record, number), self.options, &self.tables)?;
        for (vbucket, end) in (0..).map(VbucketId).zip(&ends) {
            if end.0 > 0 {
                made.begin_purged(&record, vbucket, *end)?;
            }
        }
        copy_documents(&table, &made, &record)?;
        while made.flush()? {}
        made.log.record_synced_end()?;
        let had = entry.positions.iter().zip(seen);
        let had = had.map(|((vbucket, at), seen)| (vbucket, at.seqno.max(seen)));
        let lost = had.zip(ends).map(|((vbucket, had), has)| MissingEnd { vbucket, has, had });
        let lost = lost.filter(|end| end.has < end.had).collect();
        Ok((entry_of(&made, number), lost, commits))
    }

    /// Reads the record of a damaged bucket, its documents, and the end of each vbucket, up to
    /// the first damage of the log.
    fn readable_rest_of(
        &self,
        id: BucketId,
        entry: &BucketEntry,
        dir: &Path,
    ) -> Result<BucketRest> {
        let fs = &self.env.fs;
        let (_, last) = PairedFile::open::<Checkpoint>(&**fs, dir, CHECKPOINT_FILE)?;
        let Some(Checkpoint { log, record, table: manifest, places }) = last else {
            let what = format!("{}: both copies of the checkpoint are missing", dir.display());
            return Err(Error::new(ErrorCode::Corrupt, what));
        };
        check_id(&record, id)?;
        if log.log_id != Some(entry.log_id) {
            let what = "the directory has another log than the manifest of the source means";
            return Err(Error::new(ErrorCode::Corrupt, what)
                .with_hint("put the directories of the buckets back as they were"));
        }
        check_fragments(fs, dir, &manifest)?;
        let (vbuckets, covered) = (record.info.vbuckets, manifest.covered());
        let table = DocumentTable::open(fs, dir, vbuckets, self.tables.clone(), manifest.clone())?;
        let checkpoint = Checkpoint { log, record, table: manifest, places };
        let (log, manifest) = (&checkpoint.log, &checkpoint.table);
        let mut replay = Replay::after_checkpoint(&checkpoint, &table);
        let log_dir = dir.join("log");
        let left = read_damaged_log(&**fs, &log_dir, log, &mut |event, place| {
            replay.event(event, &place)
        })?;
        let read =
            |transaction, place| read_prepared(&**fs, &log_dir, entry.log_id, (transaction, place));
        let unreadable = replay.read_or_forget(read);
        let mut record = replay.record;
        let mut ends: Vec<Seqno> = left.state.vbuckets.iter().map(|v| v.extent.end).collect();
        for vbucket in manifest.vbuckets_rewound_after(left.state.from) {
            ends[usize::from(vbucket.0)] = Seqno(0);
            record.branches[usize::from(vbucket.0)].clear();
        }
        let from = left.state.from;
        let mut commits = lost_commits(&record, (&ends, from), left.joint);
        add_unreadable(&mut commits, &unreadable);
        let kept = (0..).map(VbucketId).zip(&ends);
        kept.for_each(|(vbucket, end)| record.commits.remove_lost_commits(vbucket, *end));
        let before = covered.max(from);
        let beyond =
            |(vbucket, after): (VbucketId, &Seqno)| DeadVersions { vbucket, before, after: *after };
        table.add_dead_versions(&(0..).map(VbucketId).zip(&ends).map(beyond).collect::<Vec<_>>());
        Ok(BucketRest { record, table, ends, seen: left.seen, commits })
    }
}

fn check_id(record: &BucketRecord, id: BucketId) -> Result<()> {
    if record.info.id == id {
        return Ok(());
    }
    let what = format!("the directory has bucket {}, not {id}", record.info.id);
    Err(Error::new(ErrorCode::Corrupt, what)
        .with_hint("put the directories of the buckets back as they were"))
}

fn check_fragments(fs: &Arc<dyn FileSystem>, dir: &Path, table: &TableManifest) -> Result<()> {
    match table::verify(fs, dir, table).into_iter().next() {
        None => Ok(()),
        Some(Remark { path, message }) => {
            let what = format!("{}: {message}", path.display());
            Err(Error::new(ErrorCode::Corrupt, what).with_hint(
                "restore the fragment from a copy, or give up all documents of the bucket with --give-up",
            ))
        }
    }
}

fn copy_documents(from: &DocumentTable, to: &BucketStore, record: &BucketRecord) -> Result<()> {
    let mut walk = from.walk(None, None)?;
    loop {
        let chunk = walk.next_chunk(CHUNK_BYTES)?;
        let mut of_vbucket: BTreeMap<VbucketId, Vec<StoredDocument>> = BTreeMap::new();
        for walked in chunk.iter() {
            let vbucket = vbucket_of(walked.id, record.info.vbuckets);
            let (id, seqno, document) = (walked.id.to_owned(), walked.seqno, chunk.shared(&walked));
            of_vbucket.entry(vbucket).or_default().push(StoredDocument { id, seqno, document });
        }
        if of_vbucket.is_empty() {
            return Ok(());
        }
        for documents in of_vbucket.values() {
            to.put_documents(documents)?;
        }
        if to.table.needs_flush() {
            to.flush()?;
        }
    }
}
