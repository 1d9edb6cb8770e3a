//! Check of an indexer's data directory.
//!
//! The check changes no file: the node may be down, or the directory may be a copy. Damaged or
//! missing data is a *finding*. Leftovers of a crash, which the next start removes, are *notes*.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proto::env::{Env, OpenMode, check_version};
use proto::model::ids::LocalIndexId;
use proto::{Error, Result};
use serde::Serialize;

use crate::file_id::FileId;
use crate::log::describe::{RecordInfo, RecordState, SegmentInfo};
use crate::log::format::SEGMENT_HEADER_BYTES;
use crate::log::lsn::Lsn;
use crate::log::segment::first_lsn;
use crate::manifest::Manifests;
use crate::manifest::describe::CheckedManifest;
use crate::recover::open::late_log_error;
use crate::verify::slices;
use crate::{fragment, layout, log, manifest};

/// The paths of the index manifests.
type Indexes = BTreeMap<LocalIndexId, PathBuf>;

/// The beginning of the text in a file VERSION, in all versions of the format.
const VERSION_BEGINNING: &[u8] = b"sextant indexer";

/// The result of a check: numbers of checked files and rows, and the damage that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Segments of the commit log.
    pub log_segments: u64,
    /// Valid records in the segments.
    pub log_records: u64,
    /// The number of manifests that were checked.
    pub manifests: u64,
    /// Fragments that a manifest names.
    pub fragments: u64,
    /// Rows of these fragments.
    pub rows: u64,
    /// The size in bytes of all checked files.
    pub bytes: u64,
    /// Damaged or missing data.
    pub findings: Vec<Remark>,
    /// Leftovers of a crash, which the next start removes, and files that are not of the store.
    pub notes: Vec<Remark>,
}

/// A remark about a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// The file.
    pub path: PathBuf,
    /// The text of the remark.
    pub message: String,
}

impl Report {
    /// Adds a finding about a file.
    fn finding(&mut self, path: &Path, message: impl Into<String>) {
        self.findings.push(Remark { path: path.into(), message: message.into() });
    }

    /// Adds a note about a file.
    fn note(&mut self, path: &Path, message: impl Into<String>) {
        self.notes.push(Remark { path: path.into(), message: message.into() });
    }
}

/// Returns true if a directory is the data directory of an indexer.
pub fn is_data_dir(env: &Env, dir: &Path) -> bool {
    let read = || -> std::io::Result<bool> {
        let file = env.fs.open(&layout::version_path(dir), OpenMode::Read)?;
        let mut begins = [0; VERSION_BEGINNING.len()];
        file.read_exact_at(&mut begins, 0)?;
        Ok(begins == VERSION_BEGINNING)
    };
    read().unwrap_or(false)
}

/// Returns an error for a data directory whose format this build does not read. A directory
/// without the file VERSION is no error, because [`verify`] reports it.
pub fn check_format(env: &Env, dir: &Path) -> Result<()> {
    match env.fs.exists(&layout::version_path(dir)) {
        true => check_version(&*env.fs, dir, layout::DATA_VERSION, true),
        false => Ok(()),
    }
}

/// Checks the data directory of an indexer and returns the findings. Blocks the thread.
pub fn verify(env: &Env, dir: &Path) -> Report {
    let mut verify = Verify { env, report: Report::default() };
    if !is_data_dir(env, dir) {
        let path = layout::version_path(dir);
        verify.report.finding(&path, "the file is missing, or does not name an indexer's data");
    }
    verify.check_log(&layout::log_dir(dir));
    let (named, indexes) = verify.manifests(&layout::manifest_dir(dir));
    verify.check_agreement(dir, &indexes);
    let whole = verify.fragments(dir, &named);
    for (index, path) in indexes {
        match slices::check(env, dir, index, |file| whole.contains(&file)) {
            Ok(findings) => {
                findings.into_iter().for_each(|finding| verify.report.finding(&path, finding));
            }
            Err(error) => verify.report.finding(&path, error.message),
        }
    }
    verify.report
}

/// A check in progress.
struct Verify<'a> {
    env: &'a Env,
    report: Report,
}

impl Verify<'_> {
    /// Returns the files of a directory; none if it cannot be read.
    fn list(&mut self, dir: &Path) -> Vec<PathBuf> {
        if !self.env.fs.exists(dir) {
            return Vec::new();
        }
        match self.env.fs.list(dir) {
            Ok(paths) => paths,
            Err(error) => {
                self.report.finding(dir, error.to_string());
                Vec::new()
            }
        }
    }

    /// Adds the size of a file to the report.
    fn add_bytes(&mut self, path: &Path) {
        let len = self.env.fs.open(path, OpenMode::Read).and_then(|file| file.len());
        self.report.bytes += len.unwrap_or(0);
    }

    /// Returns true if a segment has no bytes after its header, so that its creation may have been
    /// interrupted.
    fn has_no_records(&self, path: &Path) -> bool {
        let len = self.env.fs.open(path, OpenMode::Read).and_then(|file| file.len());
        len.is_ok_and(|len| len <= SEGMENT_HEADER_BYTES as u64)
    }

    /// Checks the segments of the log.
    fn check_log(&mut self, dir: &Path) {
        let (segments, others): (Vec<_>, Vec<_>) =
            self.list(dir).into_iter().partition(|path| has_extension(path, layout::LOG_EXTENSION));
        self.note_foreign_files(&others);
        let mut before: Option<SegmentInfo> = None;
        for (n, path) in segments.iter().enumerate() {
            before = self.segment(path, n + 1 == segments.len(), before);
        }
    }

    /// Checks a segment, which must follow the segment `before`. Returns its description; `None` if
    /// it could not be read.
    fn segment(
        &mut self,
        path: &Path,
        is_last: bool,
        before: Option<SegmentInfo>,
    ) -> Option<SegmentInfo> {
        self.report.log_segments += 1;
        self.add_bytes(path);
        let mut damaged: Vec<RecordInfo> = Vec::new();
        let mut durable = 0;
        let described = log::describe(self.env, path, &mut |record| {
            durable = durable.max(record.durable.unwrap_or(0));
            if record.state != RecordState::Ok {
                damaged.push(record.clone());
            }
        });
        let mut segment = match described {
            Ok(segment) => segment,
            Err(_) if is_last && self.has_no_records(path) => {
                self.report.note(path, "a segment without records, whose creation was interrupted");
                return None;
            }
            Err(error) => {
                self.report.finding(path, error.message);
                return None;
            }
        };
        self.report.log_records += segment.records;
        let named: Option<Lsn> =
            path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
        if named != Some(segment.base)
            || before.as_ref().is_some_and(|before| before.end != segment.base)
        {
            let message = format!(
                "the segment begins at LSN {}, which contradicts its name or the segment before",
                segment.base
            );
            self.report.finding(path, message);
        }
        if let Some(what) = before.and_then(|before| segment.contradiction(&before)) {
            self.report.finding(path, what);
        }
        if !is_last && segment.room_bytes > 0 {
            let (at, bytes) = (segment.end, segment.room_bytes);
            self.report.finding(path, format!("LSN {at}: {bytes} zeros in the place of records"));
            segment.chain_end = None;
        }
        self.damaged_records(path, is_last, durable, &damaged);
        Some(segment)
    }

    /// Reports the damaged records of a segment.
    fn damaged_records(
        &mut self,
        path: &Path,
        is_last: bool,
        durable: Lsn,
        damaged: &[RecordInfo],
    ) {
        for record in damaged {
            let place = format!("offset {}, {} bytes", record.offset, record.bytes);
            if is_last && record.lsn >= durable {
                self.report
                    .note(path, format!("{place}: a torn tail, which the next start cuts off"));
            } else {
                self.report.finding(path, format!("{place}: a damaged record"));
            }
        }
    }

    /// Checks the manifests. Returns the manifest that names each fragment, and the paths of the
    /// index manifests.
    fn manifests(&mut self, dir: &Path) -> (BTreeMap<FileId, PathBuf>, Indexes) {
        let (mut named, mut indexes) = (BTreeMap::new(), Indexes::new());
        let (manifests, others): (Vec<_>, Vec<_>) = self
            .list(dir)
            .into_iter()
            .partition(|path| has_extension(path, layout::MANIFEST_EXTENSION));
        self.note_foreign_files(&others);
        for path in manifests {
            self.report.manifests += 1;
            self.add_bytes(&path);
            match manifest::describe(self.env, &path) {
                Ok(CheckedManifest::Index { index, generation, items, .. }) => {
                    let index = LocalIndexId { index, generation };
                    let expected = manifest::index_path(dir, index);
                    if expected != path {
                        let message = format!("the file name should be {}", expected.display());
                        self.report.finding(&path, message);
                    } else {
                        indexes.insert(index, path.clone());
                    }
                    named.extend(items.into_iter().map(|item| (item.file, path.clone())));
                }
                Ok(CheckedManifest::Node { .. }) => {}
                Err(error) => self.report.finding(&path, error.message),
            }
        }
        (named, indexes)
    }

    /// Checks that manifests and log fit together. Damaged manifests were reported before, and are
    /// skipped.
    fn check_agreement(&mut self, dir: &Path, indexes: &Indexes) {
        let (fs, manifest_dir) = (&*self.env.fs, layout::manifest_dir(dir));
        let Ok(node) = manifest::read_node(fs, &manifest_dir) else { return };
        let mut manifests = Manifests { node, ..Manifests::default() };
        for index in indexes.keys() {
            if let Ok(Some((manifest, number))) = manifest::read_index(fs, &manifest_dir, *index) {
                manifests.numbers.insert(*index, number);
                manifests.indexes.push(manifest);
            }
        }
        if let Some((name, what)) = manifests.contradiction() {
            self.report.finding(&manifest_dir.join(name), what);
        }
        let Some(node) = &manifests.node else { return };
        for manifest in manifests.indexes.iter().filter(|manifest| manifest.floor.is_some()) {
            let (id, bucket) = (manifest.info.local_id(), manifest.info.bucket);
            if node.marks.iter().all(|mark| mark.bucket != bucket) {
                let what = format!(
                    "index {id} has slices that can be read, but no epoch of bucket {bucket} is known: \
                     the next start compares them with the source"
                );
                self.report.finding(&manifest_dir.join("node.manifest"), what);
            }
        }
        let log_dir = layout::log_dir(dir);
        match first_lsn(fs, &log_dir) {
            Ok(Some(first)) if first > node.log_from => {
                self.report.finding(&log_dir, late_log_error(&log_dir, first, node.log_from));
            }
            Ok(Some(_)) => {}
            _ => self.report.finding(
                &log_dir,
                "the commit log is missing: the next start reads its epochs from the stream again",
            ),
        }
    }

    /// Checks the fragments that manifests name. Returns the undamaged ones.
    fn fragments(&mut self, dir: &Path, named: &BTreeMap<FileId, PathBuf>) -> BTreeSet<FileId> {
        let (mut here, mut whole) = (BTreeSet::new(), BTreeSet::new());
        for path in self.list(&layout::fragment_dir(dir)) {
            match layout::fragment_id(&path).map(FileId) {
                Some(id) if named.contains_key(&id) => {
                    here.insert(id);
                    if self.fragment(&path) {
                        whole.insert(id);
                    }
                }
                Some(_) => self
                    .report
                    .note(&path, "no manifest names this file: the next start removes it"),
                None => self.note_foreign_files(&[path]),
            }
        }
        for (id, manifest) in named.iter().filter(|(id, _)| !here.contains(id)) {
            let path = layout::fragment_path(dir, id.0);
            let message = format!("the file is missing, but {} names it", manifest.display());
            self.report.finding(&path, message);
        }
        whole
    }

    /// Checks a fragment. Returns true if it is undamaged.
    fn fragment(&mut self, path: &Path) -> bool {
        self.report.fragments += 1;
        match fragment::describe(self.env, path, &mut |_| ()) {
            Ok(info) => {
                self.report.rows += info.stats.rows;
                self.report.bytes += info.file_bytes;
                let whole = info.findings.is_empty();
                info.findings.into_iter().for_each(|finding| self.report.finding(path, finding));
                whole
            }
            Err(Error { message, .. }) => {
                self.report.finding(path, message);
                false
            }
        }
    }

    /// Notes files that do not belong into a directory.
    fn note_foreign_files(&mut self, paths: &[PathBuf]) {
        for path in paths {
            let message = match has_extension(path, "tmp") {
                true => "an interrupted write: the next start removes the file",
                false => "not a file of the store",
            };
            self.report.note(path, message);
        }
    }
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
