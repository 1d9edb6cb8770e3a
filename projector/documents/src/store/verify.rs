//! Offline check of a projector's data directory: `sextant verify`. Nothing is changed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proto::Result;
use proto::env::{Env, FileSystem};
use proto::model::ids::{Seqno, VbucketId};
use storage::log::{Lsn, scan, segment_bases, segment_path};
use storage::verify::{Remark, Report};

use super::checkpoint::{CHECKPOINT_FILE, Checkpoint};
use super::paired_file::inspect;
use super::source_manifest::{
    BucketEntry, SOURCE_FILE, SourceManifest, directory_path, unknown_directories,
};
use crate::change_log::{self, ItemContent, LogState, VbucketState, describe};
use crate::table;

/// True if a directory has the documents of a projector.
pub fn is_data_dir(env: &Env, dir: &Path) -> bool {
    ["source.1", "source.2", "buckets"].iter().any(|name| env.fs.exists(&dir.join(name)))
}

/// Checks all files of a projector's directory: the manifest of the source, and checkpoint, change log and fragments of each bucket.
pub fn verify(env: &Env, dir: &Path) -> Report {
    let mut check = Check { fs: &env.fs, report: Report::default() };
    let manifest: Option<SourceManifest> = check.paired(dir, SOURCE_FILE);
    let Some(manifest) = manifest else { return check.report };
    match unknown_directories(&*env.fs, dir, &manifest) {
        Ok(unknown) => unknown.into_iter().for_each(|path| {
            check.finding(path, "the manifest of the source does not know this directory".into());
        }),
        Err(error) => check.finding(dir.to_path_buf(), error.to_string()),
    }
    for entry in manifest.buckets.values() {
        check.bucket(&directory_path(dir, entry.directory), entry);
    }
    check.report
}

struct Check<'a> {
    fs: &'a Arc<dyn FileSystem>,
    report: Report,
}

impl Check<'_> {
    fn finding(&mut self, path: PathBuf, message: String) {
        self.report.findings.push(Remark { path, message });
    }

    /// Reads a file of two copies; each bad copy is a finding.
    fn paired<T: serde::de::DeserializeOwned>(
        &mut self,
        dir: &Path,
        file: (&'static str, super::paired_file::FileKind),
    ) -> Option<T> {
        let (found, errors) = inspect(&**self.fs, dir, file);
        self.report.manifests += 2 - errors.len() as u64;
        for error in errors {
            self.finding(dir.join(file.0), error.to_string());
        }
        found
    }

    fn bucket(&mut self, dir: &Path, entry: &BucketEntry) {
        let checkpoint: Option<Checkpoint> = self.paired(dir, CHECKPOINT_FILE);
        if let Err(error) = self.log(&dir.join("log"), entry) {
            self.finding(dir.join("log"), error.to_string());
        }
        let Some(Checkpoint { log, table, .. }) = checkpoint else { return };
        match missing(&**self.fs, &dir.join("log"), &log) {
            Ok(missing) => missing.into_iter().for_each(|what| self.finding(dir.join("log"), what)),
            Err(error) => self.finding(dir.join("log"), error.to_string()),
        }
        self.report.fragments += table.fragments().len() as u64;
        self.report.rows += table.fragments().iter().map(|one| one.versions).sum::<u64>();
        self.report.bytes += table.fragments().iter().map(|one| one.bytes).sum::<u64>();
        self.report.findings.extend(table::verify(self.fs, dir, &table));
    }

    fn log(&mut self, dir: &Path, entry: &BucketEntry) -> Result<()> {
        let survey = change_log::verify(&**self.fs, dir)?;
        self.report.log_segments += survey.segments;
        self.report.log_records += survey.groups;
        self.report.bytes += survey.bytes;
        let remark = |one: change_log::LogRemark| Remark { path: one.path, message: one.message };
        self.report.findings.extend(survey.findings.into_iter().map(remark));
        self.report.notes.extend(survey.notes.into_iter().map(remark));
        let end = end_of(&**self.fs, dir)?;
        if end < entry.end {
            let what = format!(
                "the change log ends at LSN {end}, and the manifest of the source knows that it was synced up to LSN {}",
                entry.end
            );
            self.finding(dir.to_path_buf(), what);
        }
        Ok(())
    }
}

/// The first mutation that a log must have of a vbucket, and the first one that it has.
struct FirstMutation {
    purged: Seqno,
    begun: Lsn,
    is_needed: bool,
    found: Option<Seqno>,
}

impl FirstMutation {
    fn new(VbucketState { extent, begun }: &VbucketState) -> Self {
        let is_needed = extent.end > extent.purged;
        Self { purged: extent.purged, begun: *begun, is_needed, found: None }
    }

    fn run(&mut self, lsn: Lsn, first: Seqno) {
        if lsn >= self.begun {
            self.found = Some(self.found.map_or(first, |found| found.min(first)));
        }
    }

    fn begin(&mut self, lsn: Lsn, purged: Seqno) {
        if lsn >= self.begun {
            *self = Self { purged, begun: lsn, is_needed: false, found: None };
        }
    }

    fn is_missing(&self) -> bool {
        match self.found {
            Some(found) => found.0 > self.purged.0 + 1,
            None => self.is_needed,
        }
    }
}

/// Describes the beginnings of vbuckets' logs that a checkpoint needs and the log lacks, because its first segments are missing.
fn missing(fs: &dyn FileSystem, dir: &Path, state: &LogState) -> Result<Vec<String>> {
    let mut firsts: Vec<_> = state.vbuckets.iter().map(FirstMutation::new).collect();
    for base in segment_bases(fs, dir)? {
        let described = describe(fs, &segment_path(dir, base), &mut |item| {
            let mut of = |vbucket: VbucketId, change: &dyn Fn(&mut FirstMutation)| {
                firsts.get_mut(usize::from(vbucket.0)).into_iter().for_each(change);
            };
            let lsn = item.lsn;
            match &item.content {
                ItemContent::Run { vbucket, first, .. } => {
                    of(*vbucket, &|one| one.run(lsn, *first))
                }
                ItemContent::Rewind { vbucket, to: Seqno(0) } | ItemContent::Remove { vbucket } => {
                    of(*vbucket, &|one| one.begin(lsn, Seqno(0)));
                }
                ItemContent::Begin { vbucket, purged } => {
                    of(*vbucket, &|one| one.begin(lsn, *purged))
                }
                ItemContent::Purge { points } => points.iter().for_each(|(vbucket, to)| {
                    of(*vbucket, &|one| one.purged = one.purged.max(*to));
                }),
                _ => {}
            }
        });
        // The survey of the log names what cannot be read.
        let _damage = described.is_err();
    }
    let lacks = |(first, n): (&FirstMutation, u16)| {
        let from = first.purged.0 + 1;
        first.is_missing().then(|| {
            format!("the change log lacks seqno {from} of vbucket {n}: segments are missing")
        })
    };
    Ok(firsts.iter().zip(0..).filter_map(lacks).collect())
}

/// The end of the last segment of a log.
fn end_of(fs: &dyn FileSystem, dir: &Path) -> Result<Lsn> {
    match segment_bases(fs, dir)?.last() {
        Some(last) => Ok(scan(fs, &segment_path(dir, *last), &mut |_, _| ())?.end),
        None => Ok(0),
    }
}
