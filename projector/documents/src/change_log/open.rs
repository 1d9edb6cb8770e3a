//! Opens a change log: reads the events after the checkpoint, and builds the directory of all
//! segments.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock};

use proto::env::Env;
use proto::model::ids::Seqno;
use proto::{Error, ErrorCode, Result};
use storage::fragment::OpenFiles;
use storage::log::{DirectLog, DirectLogOptions, LogRecord, Lsn};

use super::index::cache::IndexCache;
use super::index::directory::LogIndex;
use super::index::file::IndexedSegment;
use super::index::files::{IndexFiles, payload_lsn};
use super::index::segment::{SegmentIndex, SeqnoRange};
use super::inspection::survey;
use super::items::format::HINT;
use super::items::item::{Item, LogEvent, items};
use super::items::state::{LogState, VbucketState};
use super::log::{ChangeLog, Writer};

/// The default size of an index cache in bytes. It can contain the indexes of some hundred
/// segments of 32 MiB.
const INDEX_CACHE_BYTES: usize = 16 << 20;

/// Settings of a change log.
#[derive(Clone, Debug)]
pub struct ChangeLogOptions {
    /// Size in bytes above which a segment is closed.
    pub segment_bytes: u64,
    /// The pool of open files, which logs and tables can share; `None` for a small pool of this
    /// log alone.
    pub open_files: Option<Arc<OpenFiles>>,
    /// The cache of closed segments' indexes, which logs can share.
    pub index_cache: Arc<IndexCache>,
}

impl Default for ChangeLogOptions {
    fn default() -> Self {
        let index_cache = IndexCache::new(INDEX_CACHE_BYTES);
        Self { segment_bytes: 32 << 20, open_files: None, index_cache }
    }
}

/// The place of an event in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPlace {
    /// The LSNs of the beginning and the end of the event's group.
    pub group: Range<Lsn>,
    /// The LSN of the log item that contains the event.
    pub item: Lsn,
    /// The number of bytes of the item.
    pub item_bytes: u32,
}

/// The facts that the caller knows about a change log when it opens the log. The log is checked
/// against them.
#[derive(Clone, Copy, Debug)]
pub struct KnownLog<'a> {
    /// The checkpoint; it covers the log before [`LogState::from`].
    pub checkpoint: &'a LogState,
    /// An LSN up to which the log was certainly synced.
    pub synced: Lsn,
}

impl<'a> From<&'a LogState> for KnownLog<'a> {
    fn from(checkpoint: &'a LogState) -> Self {
        Self { checkpoint, synced: checkpoint.from }
    }
}

/// A function that receives the events after a checkpoint, in order.
pub type EventReplay<'a> = &'a mut dyn FnMut(LogEvent<'_>, EventPlace) -> Result<()>;

impl ChangeLog {
    /// Opens or creates the change log in a directory, and passes the events after the checkpoint
    /// to `replay`. The error is `Corrupt` if the log lacks data that the checkpoint or a reader
    /// needs. A missing log is created only if the checkpoint names no log. So the caller must
    /// store [`Self::state`] before the first append.
    pub fn open<'a>(
        env: &Env,
        dir: &Path,
        options: &ChangeLogOptions,
        known: impl Into<KnownLog<'a>>,
        replay: EventReplay<'_>,
    ) -> Result<Self> {
        let KnownLog { checkpoint, synced } = known.into();
        let LogState { log_id, from, ref vbuckets } = *checkpoint;
        let mut opening = Opening {
            dir: dir.to_owned(),
            files: IndexFiles::new(&env.fs, dir, &options.index_cache),
            from,
            states: vbuckets.clone(),
            index: None,
            walked: Vec::new(),
            log_id: log_id.unwrap_or_default(),
            replay,
        };
        let of_log = DirectLogOptions {
            segment_bytes: options.segment_bytes,
            open_files: options.open_files.clone(),
            log_id,
            from,
            synced,
            hint: HINT,
        };
        let opened = DirectLog::open(env, dir, &of_log, &mut |record| opening.record(record));
        let log = opened.map_err(|error| survey::with_affected_mutations(&*env.fs, dir, error))?;
        opening.finish(log).map_err(|error| survey::with_affected_mutations(&*env.fs, dir, error))
    }
}

/// The progress of opening a change log.
struct Opening<'a> {
    dir: PathBuf,
    files: IndexFiles,
    from: Lsn,
    states: Vec<VbucketState>,
    /// The index of the segment that is being replayed.
    index: Option<SegmentIndex>,
    /// The segments that were replayed completely, with their ranges of seqnos.
    walked: Vec<(Lsn, Vec<SeqnoRange>)>,
    log_id: u64,
    replay: EventReplay<'a>,
}

impl Opening<'_> {
    /// Processes a group of the log. A group before the checkpoint only updates the index.
    fn record(&mut self, record: LogRecord<'_>) -> Result<()> {
        let LogRecord { log_id, segment, start, end, payload } = record;
        self.log_id = log_id;
        if start < self.from && self.from < end {
            let from = self.from;
            let message = format!(
                "the checkpoint ends at LSN {from}, inside a group from LSN {start} to {end}"
            );
            return Err(Error::new(ErrorCode::Corrupt, message).with_hint(HINT));
        }
        self.begin_segment(segment, segment);
        for item in items(log_id, payload_lsn(&record), payload) {
            let item = item.map_err(|error| error.with_hint(HINT))?;
            self.item(&item, start >= self.from)?;
            if start >= self.from {
                let item_bytes = item.header.item_bytes();
                let place = EventPlace { group: start..end, item: item.lsn, item_bytes };
                (self.replay)(item.event()?, place)?;
            }
        }
        Ok(())
    }

    /// Begins the index of the segment that begins at the LSN `segment`, and ends that of the
    /// previous segment, which ends at or before `end`.
    fn begin_segment(&mut self, segment: Lsn, end: Lsn) {
        if let Some(index) = self.index.take_if(|index| index.base != segment) {
            let base = index.base;
            if !self.files.is_written(base) {
                self.files.write(IndexedSegment { log_id: self.log_id, base, end }, &index);
            }
            self.walked.push((base, index.ranges()));
        }
        self.index.get_or_insert_with(|| SegmentIndex::new(segment));
    }

    fn item(&mut self, item: &Item<'_>, is_new: bool) -> Result<()> {
        for (vbucket, change) in item.changes()? {
            let corrupt = |why: String| {
                let message = format!("vbucket {vbucket}: {why}");
                Error::new(ErrorCode::Corrupt, message).with_hint(HINT)
            };
            let Some(state) = self.states.get_mut(usize::from(vbucket.0)) else {
                return Err(corrupt("the bucket does not have it".into()));
            };
            if is_new {
                state.apply(&change, item.lsn).map_err(corrupt)?;
            }
            if let Some(index) = &mut self.index {
                index.apply(vbucket, &change, item.lsn);
            }
        }
        Ok(())
    }

    fn finish(mut self, log: DirectLog) -> Result<ChangeLog> {
        let segments = log.segments();
        let last = segments.last().copied().unwrap_or_default();
        // Segments without records have no index yet. The second last segment ends where the last one begins, if it is
        // the last segment with records; otherwise its index is built when it is needed.
        self.begin_segment(last, last);
        let tail = self.index.take().unwrap_or_default();
        self.files.remove_stale(segments.first().copied().unwrap_or_default(), last)?;
        let mut index = LogIndex::new(&self.states, tail, log.end());
        let mut lasts = vec![Seqno(0); self.states.len()];
        let ends = segments.iter().skip(1).copied().chain([log.end()]);
        for (base, end) in segments.iter().copied().zip(ends) {
            let walked = self.walked.iter().find(|(walked, _)| *walked == base);
            let ranges = match walked {
                Some((_, ranges)) => ranges.clone(),
                None if base == last => index.tail.ranges(),
                None => self.files.ranges(IndexedSegment { log_id: log.log_id(), base, end })?,
            };
            index
                .add_segment(base, end, &ranges, &mut lasts)
                .map_err(|missing| self.lost_seqnos_error(&log, base, missing))?;
        }
        index.finish(&lasts).map_err(|missing| {
            let first = segments.first().copied().unwrap_or_default();
            self.lost_seqnos_error(&log, first, missing)
        })?;
        let writer = Writer { states: self.states, ..Writer::default() };
        let (writer, index) = (Mutex::new(writer), RwLock::new(index));
        Ok(ChangeLog { log, files: self.files, writer, index })
    }

    /// Returns the error for a range of seqnos that no segment has.
    fn lost_seqnos_error(&self, log: &DirectLog, base: Lsn, missing: SeqnoRange) -> Error {
        let SeqnoRange { vbucket, first, last } = missing;
        let (path, _) = log.place_of(base);
        let message = format!(
            "the change log in {} lacks seqnos {first} to {last} of vbucket {vbucket}: a segment at or before {} is missing or was exchanged",
            self.dir.display(),
            path.display()
        );
        Error::new(ErrorCode::Corrupt, message).with_hint(HINT)
    }
}
