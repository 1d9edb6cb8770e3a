//! Recovery of a source that lacks something (`sextant source recover --accept-loss`).
//!
//! A bucket whose log is whole stays as it is; it may still be an older copy, which only the coordinators can tell. Any other
//! bucket is *made again* from what is left of it, in a new directory, as if a projector had copied it by its documents:
//!
//! 1. The fragments of the document table are opened as the checkpoint names them. They are the larger part of the documents, and
//!    nothing is made of them if they are damaged themselves: `Corrupt` then, since no log has their documents any more.
//! 2. The change log is read from the checkpoint on, up to the first damage (`change_log::salvage`). Its groups are replayed into
//!    the table, as a start does. What the fragments have from behind the damage does not count.
//! 3. A new directory gets the record, the end of each vbucket as its purge point, and all documents. Its log has no mutation, so
//!    a copy of an index that is behind is resynced.
//! 4. The manifest names the new directory instead of the old one, which is removed.
//!
//! The manifest also notes that an operator has accepted the loss ([`crate::DocumentStore::accepts_loss`]). A crash before step 4
//! leaves the old directory as it was.

use std::collections::BTreeMap;
use std::path::Path;

use proto::env::{Env, check_version};
use proto::model::ids::{BucketId, Seqno, VbucketId, vbucket_of};
use proto::{Error, ErrorCode, Result};

use super::bucket_store::{BucketStore, Replay};
use super::checkpoint::{CHECKPOINT_FILE, Checkpoint};
use super::disk_store::{DiskStoreOptions, VERSION, check_log_id, entry_of, tables_of};
use super::paired_file::PairedFile;
use super::source_manifest::{self, BucketEntry, SourceManifest, directory_path};
use crate::change_log::{self, LogRemark, salvage};
use crate::document_store::StoredDocument;
use crate::record::BucketRecord;
use crate::table::{DeadVersions, DocumentTable, TableOptions};

/// The documents that are read at once: a group of each vbucket becomes a record of the new log.
const CHUNK_BYTES: usize = 64 << 20;

/// What became of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveredBucket {
    /// The bucket.
    pub bucket: BucketId,
    /// Its name.
    pub name: String,
    /// What was wrong with its files; `None` if they were whole.
    pub damage: Option<String>,
    /// The vbuckets that have less than they had: the last seqno now, and the last one that was known to be synced.
    pub lost: Vec<(VbucketId, Seqno, Seqno)>,
}

/// Makes a projector's directory one that opens, from what is left, and notes that the loss is accepted. Nobody else may have the
/// directory open. Blocks the thread.
pub fn recover(env: &Env, dir: &Path, options: &DiskStoreOptions) -> Result<Vec<RecoveredBucket>> {
    check_version(&*env.fs, dir, VERSION, true)?;
    let (mut file, mut contents) = source_manifest::open(&*env.fs, dir)?;
    let mut found = Vec::new();
    for (id, entry) in contents.buckets.clone() {
        let named = |error: Error| error.context(format!("bucket {id}"));
        let recovery = BucketRecovery { env, dir, options, tables: tables_of(env, options) };
        let recovered = match recovery.open_whole(&entry).map_err(named)? {
            Ok(name) => RecoveredBucket { bucket: id, name, damage: None, lost: Vec::new() },
            Err(damage) => {
                let number = contents.next_directory;
                contents.next_directory += 1;
                contents.making.insert(number);
                file.write(&*env.fs, &contents)?;
                let made = recovery.make_again(&entry, number).map_err(named)?;
                let lost = lost(&entry, &made.ends());
                let name = made.record().info.name;
                replace(&mut contents, id, entry_of(&made, number));
                file.write(&*env.fs, &contents)?;
                let damage = Some(damage.to_string());
                RecoveredBucket { bucket: id, name, damage, lost }
            }
        };
        found.push(recovered);
    }
    contents.accepts_loss = true;
    file.write(&*env.fs, &contents)?;
    source_manifest::settle(&*env.fs, dir, &contents)?;
    Ok(found)
}

/// Names the new directory of a bucket instead of the old one.
fn replace(contents: &mut SourceManifest, bucket: BucketId, entry: BucketEntry) {
    contents.making.remove(&entry.directory);
    if let Some(old) = contents.buckets.insert(bucket, entry) {
        contents.removing.insert(old.directory);
    }
}

fn lost(entry: &BucketEntry, ends: &[Seqno]) -> Vec<(VbucketId, Seqno, Seqno)> {
    let had = entry.positions.iter().zip(ends);
    had.map(|((vbucket, had), has)| (vbucket, *has, had.seqno))
        .filter(|(_, has, had)| has < had)
        .collect()
}

/// The recovery of one bucket.
struct BucketRecovery<'a> {
    env: &'a Env,
    dir: &'a Path,
    options: &'a DiskStoreOptions,
    tables: TableOptions,
}

impl BucketRecovery<'_> {
    /// Opens the bucket as a start does, and reads its log; returns its name, or the damage.
    fn open_whole(&self, entry: &BucketEntry) -> Result<std::result::Result<String, Error>> {
        let dir = directory_path(self.dir, entry.directory);
        let opened = BucketStore::open(self.env, &dir, entry.end, self.options, &self.tables)
            .and_then(|bucket| check_log_id(&bucket, entry).map(|()| bucket.record().info.name))
            .and_then(|name| self.check_log(&dir).map(|()| name));
        match opened {
            Err(error) if error.code == ErrorCode::Corrupt => Ok(Err(error)),
            opened => opened.map(Ok),
        }
    }

    /// Checks the part of the log that a start does not read.
    fn check_log(&self, dir: &Path) -> Result<()> {
        let fs = &*self.env.fs;
        let (_, last) = PairedFile::open::<Checkpoint>(fs, dir, CHECKPOINT_FILE)?;
        let state = last.map(|last| last.log);
        let survey = change_log::verify(fs, &dir.join("log"), state.as_ref())?;
        match survey.findings.into_iter().next() {
            None => Ok(()),
            Some(LogRemark { path, message }) => {
                Err(Error::new(ErrorCode::Corrupt, format!("{}: {message}", path.display())))
            }
        }
    }

    /// Makes the bucket again in another directory.
    fn make_again(&self, entry: &BucketEntry, number: u64) -> Result<BucketStore> {
        let from = directory_path(self.dir, entry.directory);
        let (record, table, ends) = self.left_of(&from)?;
        let dir = directory_path(self.dir, number);
        let options = (self.options, &self.tables);
        let made = BucketStore::create(self.env, &dir, (&record, number), options.0, options.1)?;
        for (vbucket, end) in (0..).map(VbucketId).zip(&ends) {
            if end.0 > 0 {
                made.begin_purged(&record, vbucket, *end)?;
            }
        }
        copy_documents(&table, &made, &record)?;
        while made.flush()? {}
        made.log.mark()?;
        Ok(made)
    }

    /// The record, the documents and the end of each vbucket, as far as the log is whole.
    fn left_of(&self, dir: &Path) -> Result<(BucketRecord, DocumentTable, Vec<Seqno>)> {
        let fs = &self.env.fs;
        let (_, last) = PairedFile::open::<Checkpoint>(&**fs, dir, CHECKPOINT_FILE)?;
        let Some(Checkpoint { log, record, table }) = last else {
            let what = format!("{}: both copies of the checkpoint are missing", dir.display());
            return Err(Error::new(ErrorCode::Corrupt, what)
                .with_hint("without it nothing tells what the files of the bucket have; restore it from a copy"));
        };
        let (vbuckets, covered) = (record.info.vbuckets, table.covered());
        let table = DocumentTable::open(fs, dir, vbuckets, self.tables.clone(), table)?;
        let mut replay = Replay { table: &table, covered, record, events: 0 };
        let left = salvage(&**fs, &dir.join("log"), &log, &mut |event, place| {
            replay.event(event, &place)
        })?;
        let record = replay.record;
        let ends: Vec<Seqno> = left.state.vbuckets.iter().map(|state| state.extent.end).collect();
        if left.state.from < covered {
            let beyond = |(vbucket, after): (VbucketId, &Seqno)| DeadVersions {
                vbucket,
                before: covered,
                after: *after,
            };
            let dead: Vec<_> = (0..).map(VbucketId).zip(&ends).map(beyond).collect();
            table.kill(&dead);
        }
        Ok((record, table, ends))
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
