//! Reads and writes the side files of a log, which contain the indexes of closed segments. A
//! missing or damaged side file is written again from its segment.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use proto::env::{FileSystem, OpenMode};
use proto::lock::lock;
use proto::model::ids::VbucketId;
use proto::{Error, ErrorCode, Result};
use storage::log::{LogRecord, Lsn, RecordState, scan_segment, segment_path};

use super::cache::{IndexCache, LogIndexes, Runs};
use super::file::{
    HEADER_BYTES, IndexedSegment, RANGE_BYTES, Section, encode, parse_sections, range_count,
};
use super::segment::{SegmentIndex, SeqnoRange};
use crate::change_log::items::item::items;

/// The side files of a log, with the indexes of its closed segments.
pub(in crate::change_log) struct IndexFiles {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    cache: LogIndexes,
    /// Locked while a side file is written.
    writing: Mutex<()>,
}

/// Returns the path of the side file of the segment that begins at `base`.
pub(in crate::change_log) fn index_path(dir: &Path, base: Lsn) -> PathBuf {
    segment_path(dir, base).with_extension("index")
}

impl IndexFiles {
    pub(in crate::change_log) fn new(
        fs: &Arc<dyn FileSystem>,
        dir: &Path,
        cache: &Arc<IndexCache>,
    ) -> Self {
        let cache = cache.of_new_log();
        Self { fs: Arc::clone(fs), dir: dir.to_owned(), cache, writing: Mutex::default() }
    }

    /// Returns the index entries of a vbucket in a closed segment.
    pub(in crate::change_log) fn runs(
        &self,
        segment: IndexedSegment,
        vbucket: VbucketId,
    ) -> Result<Runs> {
        if let Some(runs) = self.cache.get(segment.base, vbucket) {
            return Ok(runs);
        }
        let found = match read_runs(&*self.fs, &self.dir, segment, vbucket) {
            Some(found) => found,
            None => self.rebuild(segment)?.runs(vbucket).into(),
        };
        self.cache.put(segment.base, vbucket, &found);
        Ok(found)
    }

    /// Returns the seqno ranges of all vbuckets in a closed segment.
    pub(in crate::change_log) fn ranges(&self, segment: IndexedSegment) -> Result<Vec<SeqnoRange>> {
        match read_sections(&*self.fs, &self.dir, segment) {
            Some((_, sections)) => Ok(sections.into_iter().map(|section| section.range).collect()),
            None => Ok(self.rebuild(segment)?.ranges()),
        }
    }

    /// Builds the index of a closed segment from the segment, and writes its side file.
    fn rebuild(&self, segment: IndexedSegment) -> Result<SegmentIndex> {
        let index = index_of(&*self.fs, &self.dir, segment)?;
        self.write(segment, &index);
        Ok(index)
    }

    /// Writes the side file of a closed segment. A failure is only logged, because the index can
    /// be built from the segment again.
    pub(in crate::change_log) fn write(&self, segment: IndexedSegment, index: &SegmentIndex) {
        let _one_at_a_time = lock(&self.writing);
        let path = index_path(&self.dir, segment.base);
        let put = || -> io::Result<()> {
            let new = path.with_extension("index.tmp");
            let file = self.fs.open(&new, OpenMode::Create)?;
            file.set_len(0)?;
            file.write_all_at(&encode(segment, index), 0)?;
            self.fs.rename(&new, &path)
        };
        if let Err(error) = put() {
            tracing::warn!(%error, path = %path.display(), "the index of a segment was not written");
        }
    }

    /// Returns true if the side file of the segment that begins at `base` exists.
    pub(in crate::change_log) fn is_written(&self, base: Lsn) -> bool {
        self.fs.exists(&index_path(&self.dir, base))
    }

    /// Removes the side files of segments that begin before `first`, and of the segment `last`,
    /// which is not closed and must not have a side file.
    pub(in crate::change_log) fn remove_stale(&self, first: Lsn, last: Lsn) -> Result<()> {
        let names = self.fs.list(&self.dir)?;
        for path in names {
            let is_stale = match path.extension().and_then(|extension| extension.to_str()) {
                Some("tmp") => true,
                Some("index") => {
                    let stem = path.file_stem().and_then(|stem| stem.to_str());
                    let base = stem.and_then(|stem| stem.parse::<Lsn>().ok());
                    base.is_some_and(|base| base < first || base >= last)
                }
                _ => false,
            };
            if is_stale {
                self.fs.remove_file(&path)?;
            }
        }
        Ok(())
    }

    /// Removes the side files of released segments. If a removal fails, the file is removed at
    /// the next opening of the log.
    pub(in crate::change_log) fn forget(&self, released: &[Lsn], first: Lsn) {
        self.cache.forget_before(first);
        for base in released {
            let path = index_path(&self.dir, *base);
            match self.fs.remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(%error, path = %path.display(), "the index of a released segment stays");
                }
                _ => {}
            }
        }
    }
}

/// Opens a side file, and reads its header and its ranges; `None` if the file is missing or
/// damaged.
pub(super) fn read_sections(
    fs: &dyn FileSystem,
    dir: &Path,
    segment: IndexedSegment,
) -> Option<(Arc<dyn proto::env::File>, Vec<Section>)> {
    let path = index_path(dir, segment.base);
    if !fs.exists(&path) {
        return None;
    }
    let file = fs.open(&path, OpenMode::Read).ok()?;
    let mut header = vec![0; HEADER_BYTES];
    file.read_exact_at(&mut header, 0).ok()?;
    let ranges = range_count(&header, segment)?;
    header.resize(HEADER_BYTES + ranges * RANGE_BYTES, 0);
    file.read_exact_at(&mut header[HEADER_BYTES..], HEADER_BYTES as u64).ok()?;
    Some((file, parse_sections(&header)?))
}

fn read_runs(
    fs: &dyn FileSystem,
    dir: &Path,
    segment: IndexedSegment,
    vbucket: VbucketId,
) -> Option<Runs> {
    let (file, sections) = read_sections(fs, dir, segment)?;
    let Some(section) = sections.iter().find(|section| section.range.vbucket == vbucket) else {
        return Some([].into());
    };
    let is_there = u64::from(section.at) + u64::from(section.len) <= file.len().ok()?;
    let mut bytes = vec![0; if is_there { section.len as usize } else { return None }];
    file.read_exact_at(&mut bytes, u64::from(section.at)).ok()?;
    section.parse(segment.base, &bytes).map(Runs::from)
}

/// Reads a complete side file; `None` if the file is missing or damaged.
pub(in crate::change_log) fn read_index(
    fs: &dyn FileSystem,
    dir: &Path,
    segment: IndexedSegment,
) -> Option<Vec<(VbucketId, Runs)>> {
    let (_, sections) = read_sections(fs, dir, segment)?;
    let runs = |section: &Section| {
        let vbucket = section.range.vbucket;
        Some((vbucket, read_runs(fs, dir, segment, vbucket)?))
    };
    sections.iter().map(runs).collect()
}

/// Builds the index of a closed segment from its items.
fn index_of(fs: &dyn FileSystem, dir: &Path, segment: IndexedSegment) -> Result<SegmentIndex> {
    let path = segment_path(dir, segment.base);
    let mut index = SegmentIndex::new(segment.base);
    let mut built = Ok(());
    let found = scan_segment(fs, &path, &mut |record, payload| {
        if built.is_err() || record.mark {
            return;
        }
        built = match record.state {
            RecordState::Ok => {
                let end = record.lsn + storage::log::RECORD_OVERHEAD_BYTES + record.bytes;
                let (log_id, segment, start) = (segment.log_id, segment.base, record.lsn);
                put_record(&mut index, LogRecord { log_id, segment, start, end, payload })
            }
            _ => Err(Error::new(ErrorCode::Corrupt, "the record is damaged")),
        }
        .map_err(|error| error.context(format!("{} at offset {}", path.display(), record.offset)));
    })?;
    built?;
    if (found.log_id, found.base, found.end) != (segment.log_id, segment.base, segment.end) {
        let message = format!("{}: the segment was exchanged or cut short", path.display());
        return Err(Error::new(ErrorCode::Corrupt, message));
    }
    Ok(index)
}

fn put_record(index: &mut SegmentIndex, record: LogRecord<'_>) -> Result<()> {
    for item in items(record.log_id, payload_lsn(&record), record.payload) {
        let item = item?;
        for (vbucket, change) in item.changes()? {
            index.apply(vbucket, &change, item.lsn);
        }
    }
    Ok(())
}

/// Returns the LSN of the first item in a record of the log, which contains one group of items.
pub(in crate::change_log) fn payload_lsn(record: &LogRecord<'_>) -> Lsn {
    record.end - record.payload.len() as u64
}
