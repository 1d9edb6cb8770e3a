//! Checks a projector's data directory offline, for `sextant verify`. The check changes no file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proto::Result;
use proto::env::{Env, FileSystem, check_version};
use storage::log::{Lsn, scan_segment, segment_bases, segment_path};
use storage::verify::{Remark, Report};

use super::checkpoint::{CHECKPOINT_FILE, Checkpoint};
use super::disk_store::VERSION;
use super::paired_file::{Contents, inspect, temporary};
use super::source_manifest::{
    BucketEntry, SOURCE_FILE, SourceManifest, directory_path, left_directories, unknown_directories,
};
use crate::change_log::{self, LogState, PreparedPlaces, read_prepared};
use crate::table;

/// Returns true if a directory is the data directory of a projector.
pub fn is_data_dir(env: &Env, dir: &Path) -> bool {
    ["source.1", "source.2", "buckets"].iter().any(|name| env.fs.exists(&dir.join(name)))
}

/// Returns an error if a projector's directory has another format or has lost its file VERSION.
/// Changes no file.
pub fn check_format(env: &Env, dir: &Path) -> Result<()> {
    check_version(&*env.fs, dir, VERSION, true)
}

/// Checks all files of a projector's directory: the manifest of the source, and for each bucket
/// the checkpoint, the change log and the fragments.
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
    let left = left_directories(&*env.fs, dir, &manifest).unwrap_or_default();
    left.into_iter().for_each(|path| check.leftover(path));
    for (directory, bucket) in manifest.replaced() {
        let message = format!("damaged: it stays until the new copy of bucket {bucket} is in sync");
        check.report.notes.push(Remark { path: directory_path(dir, directory), message });
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

    fn leftover(&mut self, path: PathBuf) {
        let message = "left of a crash: the next start removes or replaces it".to_owned();
        self.report.notes.push(Remark { path, message });
    }

    /// Reads a paired file, and reports each missing or damaged copy as a finding.
    fn paired<T: Contents>(
        &mut self,
        dir: &Path,
        file: (&'static str, super::paired_file::FileKind),
    ) -> Option<T> {
        let (found, errors) = inspect(&**self.fs, dir, file);
        self.report.manifests += 2 - errors.len() as u64;
        let temporary = temporary(dir, file.0);
        if self.fs.exists(&temporary) {
            self.leftover(temporary);
        }
        for (path, error) in errors {
            self.finding(path, error.to_string());
        }
        found
    }

    fn bucket(&mut self, dir: &Path, entry: &BucketEntry) {
        let checkpoint: Option<Checkpoint> = self.paired(dir, CHECKPOINT_FILE);
        let state = checkpoint.as_ref().map(|checkpoint| &checkpoint.log);
        if let Err(error) = self.log(&dir.join("log"), entry, state) {
            self.finding(dir.join("log"), error.to_string());
        }
        let Some(Checkpoint { table, places, .. }) = checkpoint else { return };
        self.prepared(&dir.join("log"), entry, &places);
        self.report.fragments += table.fragments().len() as u64;
        self.report.rows += table.fragments().iter().map(|one| one.versions).sum::<u64>();
        self.report.bytes += table.fragments().iter().map(|one| one.bytes).sum::<u64>();
        self.report.findings.extend(table::verify(self.fs, dir, &table));
        let unnamed = table::unnamed_fragments(&**self.fs, dir, &table);
        unnamed.into_iter().for_each(|path| self.leftover(path));
    }

    /// Reads the changes of prepared transactions from their places in the log, as the next start
    /// does.
    fn prepared(&mut self, dir: &Path, entry: &BucketEntry, places: &PreparedPlaces) {
        for (transaction, place) in places.iter() {
            let read = read_prepared(&**self.fs, dir, entry.log_id, (transaction, place));
            if let Err(error) = read {
                let what = format!(
                    "the changes of prepared transaction {transaction} are not readable: {error}"
                );
                self.finding(dir.to_path_buf(), what);
            }
        }
    }

    fn log(&mut self, dir: &Path, entry: &BucketEntry, state: Option<&LogState>) -> Result<()> {
        let survey = change_log::verify(&**self.fs, dir, state)?;
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

/// Returns the LSN of the end of the last segment of a log.
fn end_of(fs: &dyn FileSystem, dir: &Path) -> Result<Lsn> {
    match segment_bases(fs, dir)?.last() {
        Some(last) => Ok(scan_segment(fs, &segment_path(dir, *last), &mut |_, _| ())?.end),
        None => Ok(0),
    }
}
