//! Reads a damaged log for a recovery: all events from a checkpoint on, up to the first damage.
//!
//! Damage before the checkpoint is ignored, because the document table has those mutations. Data
//! after the first damage is ignored too, because its order is unknown. No file is changed.

use std::io;
use std::path::Path;
use std::sync::Arc;

use proto::env::{FileSystem, OpenMode};
use proto::model::ids::{Seqno, TransactionId, VbucketId};
use proto::model::joint::PreparedTransaction;
use proto::{Error, ErrorCode, Result};
use storage::log::{
    Lsn, RECORD_OVERHEAD_BYTES, RecordInfo, RecordState, SEGMENT_OVERHEAD_BYTES, SegmentInfo,
    scan_segment, segment_bases, segment_log_id, segment_path,
};

use super::items::item::{LogEvent, items, prepared_at};
use super::items::prepared_places::PreparedPlace;
use super::items::state::{Change, LogState};
use super::joint_seen::{SeenCommits, SeenJointStep};
use super::open::{EventPlace, EventReplay};

/// The data that was found in a damaged log.
#[derive(Debug)]
pub struct ReadableRest {
    /// The positions of the vbuckets after the last event before the damage.
    pub state: LogState,
    /// The last seqno of each vbucket that occurs in any readable range of the log, including
    /// ranges after the damage.
    pub seen: Vec<Seqno>,
    /// The newest commits over several buckets in any readable range after the checkpoint.
    pub joint: Vec<SeenJointStep>,
    /// The first damage; `None` if the log is intact from the checkpoint on.
    pub damage: Option<Error>,
}

/// Passes the events of a log from a checkpoint on to `replay`, in order, up to the first damage.
/// A segment that cannot be read counts as damage.
pub fn read_damaged_log(
    fs: &dyn FileSystem,
    dir: &Path,
    checkpoint: &LogState,
    replay: EventReplay<'_>,
) -> Result<ReadableRest> {
    let seen = checkpoint.vbuckets.iter().map(|state| state.extent.end).collect();
    let (state, joint) = (checkpoint.clone(), SeenCommits::default());
    let mut reading = Reading { fs, state, seen, joint, before: None, replay };
    let bases = segment_bases(fs, dir)?;
    let first = bases.partition_point(|base| *base <= checkpoint.from).saturating_sub(1);
    let mut damage = None;
    for base in bases.into_iter().skip(first) {
        let path = segment_path(dir, base);
        // The next read reports the error.
        let _unreadable = reading.record_readable(&path);
        if damage.is_none() {
            damage = match reading.segment(&path, base) {
                // Not of the file: the replay has failed.
                Err(error) if error.code == ErrorCode::Internal => return Err(error),
                read => read.err(),
            };
        }
    }
    let Reading { state, seen, joint, .. } = reading;
    Ok(ReadableRest { state, seen, joint: joint.into_inner(), damage })
}

/// Reads the changes of a prepared transaction from a log that is not open.
pub fn read_prepared(
    fs: &dyn FileSystem,
    dir: &Path,
    log_id: u64,
    (transaction, place): (TransactionId, PreparedPlace),
) -> Result<Arc<PreparedTransaction>> {
    let bases = segment_bases(fs, dir)?;
    let lacks = || corrupt(format!("no segment has LSN {}", place.item));
    let base = bases.into_iter().rfind(|base| *base <= place.item).ok_or_else(lacks)?;
    let path = segment_path(dir, base);
    let named = |error: Error| error.context(path.display().to_string());
    if segment_log_id(fs, &path)? != log_id {
        return Err(named(corrupt("the segment belongs to another log")));
    }
    let unreadable = |error: io::Error| named(corrupt(error.to_string()));
    let file = fs.open(&path, OpenMode::Read).map_err(unreadable)?;
    let mut bytes = vec![0; place.bytes as usize];
    file.read_exact_at(&mut bytes, place.item - base + SEGMENT_OVERHEAD_BYTES)
        .map_err(unreadable)?;
    prepared_at(log_id, (transaction, place), &bytes).map_err(named)
}

/// The progress of reading a damaged log.
struct Reading<'a> {
    fs: &'a dyn FileSystem,
    /// The positions of the vbuckets after the last complete group.
    state: LogState,
    seen: Vec<Seqno>,
    joint: SeenCommits,
    before: Option<SegmentInfo>,
    replay: EventReplay<'a>,
}

fn corrupt(what: impl Into<String>) -> Error {
    Error::new(ErrorCode::Corrupt, what)
}

impl Reading<'_> {
    fn segment(&mut self, path: &Path, base: Lsn) -> Result<()> {
        let named = |error: Error| error.context(path.display().to_string());
        if base > self.state.from {
            let from = self.state.from;
            return Err(named(corrupt(format!("the log goes on at LSN {base}, not {from}"))));
        }
        let log_id = segment_log_id(self.fs, path)?;
        if self.state.log_id != Some(log_id) {
            return Err(named(corrupt("the segment belongs to another log")));
        }
        // The chain is compared before anything of the segment counts.
        let info = scan_segment(self.fs, path, &mut |_, _| ())?;
        if let Some(what) = self.before.as_ref().and_then(|before| info.contradiction(before)) {
            return Err(named(corrupt(what)));
        }
        let mut failed = None;
        self.before = Some(scan_segment(self.fs, path, &mut |record, payload| {
            if failed.is_none() {
                failed = self.record(log_id, record, payload).err();
            }
        })?);
        failed.map_or(Ok(()), |error| Err(named(error)))
    }

    /// Records which seqnos and which commits occur in the readable ranges of a segment.
    fn record_readable(&mut self, path: &Path) -> Result<()> {
        let log_id = segment_log_id(self.fs, path)?;
        let (seen, joint) = (&mut self.seen, &mut self.joint);
        scan_segment(self.fs, path, &mut |record, payload| {
            for item in items(log_id, record.lsn + RECORD_OVERHEAD_BYTES, payload).flatten() {
                if let Some(event) = item.transaction() {
                    joint.record_step(&event, item.lsn);
                }
                let Ok(Some((_, run))) = item.run() else { continue };
                if let Some(seen) = seen.get_mut(usize::from(run.vbucket.0)) {
                    *seen = (*seen).max(run.last);
                }
            }
        })?;
        Ok(())
    }

    /// Processes a complete group of the log. After an error none of the group's events count.
    fn record(&mut self, log_id: u64, record: &RecordInfo, payload: &[u8]) -> Result<()> {
        let start = record.lsn;
        let end = start + RECORD_OVERHEAD_BYTES + record.bytes;
        if start < self.state.from {
            return Ok(());
        }
        if record.state != RecordState::Ok || start > self.state.from {
            return Err(corrupt(format!("offset {}: the group is damaged", record.offset)));
        }
        let (mut next, mut events) = (self.state.clone(), Vec::new());
        next.from = end;
        if !record.mark {
            for item in items(log_id, start + RECORD_OVERHEAD_BYTES, payload) {
                let item = item?;
                for (vbucket, change) in item.changes()? {
                    apply(&mut next, vbucket, &change, item.lsn)?;
                }
                let event = item.event()?;
                check(&event)?;
                let item_bytes = item.header.item_bytes();
                let place = EventPlace { group: start..end, item: item.lsn, item_bytes };
                events.push((event, place));
            }
        }
        self.state = next;
        events.into_iter().try_for_each(|(event, place)| (self.replay)(event, place))
    }
}

fn apply(state: &mut LogState, vbucket: VbucketId, change: &Change, lsn: Lsn) -> Result<()> {
    match state.vbuckets.get_mut(usize::from(vbucket.0)) {
        Some(state) => {
            state.apply(change, lsn).map_err(|why| corrupt(format!("vbucket {vbucket}: {why}")))
        }
        None => Err(corrupt(format!("the bucket does not have vbucket {vbucket}"))),
    }
}

/// Decodes an event completely, so that a decoding error is found before the event is applied.
fn check(event: &LogEvent<'_>) -> Result<()> {
    match event {
        LogEvent::Run(run) => run.mutations().try_for_each(|mutation| mutation.map(drop)),
        _ => Ok(()),
    }
}
