//! Checks a whole change log, and continues after damage. Reports the numbers of its contents,
//! the damage, and the affected mutations.
//!
//! The log is read once, from its beginning to its end. The memory in use is that of the longest
//! group, of the index of one segment, and of one position for each vbucket.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use proto::env::{FileSystem, OpenMode};
use proto::model::ids::{Seqno, VbucketId};
use proto::{Error, ErrorCode, Result};
use serde::Serialize;
use storage::log::{
    Lsn, RECORD_OVERHEAD_BYTES, RecordInfo, RecordState, SEGMENT_OVERHEAD_BYTES, SegmentInfo,
    Witness, scan_segment, segment_bases, segment_log_id, segment_path,
};

use super::expected::LogRequirements;
use crate::change_log::index::file::IndexedSegment;
use crate::change_log::index::files::{index_path, read_index};
use crate::change_log::index::segment::SegmentIndex;
use crate::change_log::items::format::HINT;
use crate::change_log::items::item::{Item, items};
use crate::change_log::items::state::{Change, LogState};

/// The number of gaps that an error message lists; further gaps are only counted.
const GAPS_LISTED_MAX: usize = 8;

/// The number of findings, and the number of notes, that a survey lists; further ones are only
/// counted.
const REMARKS_MAX: usize = 1000;

/// The result of checking a change log: the numbers of its contents, and its damage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LogSurvey {
    /// The random id of the log, if a segment is readable.
    pub log_id: Option<u64>,
    /// Number of segments.
    pub segments: u64,
    /// Number of valid groups.
    pub groups: u64,
    /// Number of items in the valid groups.
    pub items: u64,
    /// Number of mutations in the valid groups.
    pub mutations: u64,
    /// Bytes of the segments.
    pub bytes: u64,
    /// Mutations that are lost or damaged.
    pub gaps: Vec<SeqnoGap>,
    /// Damaged or missing data.
    pub findings: Vec<LogRemark>,
    /// Harmless remarks: leftovers of a crash, and side files that will be written again.
    pub notes: Vec<LogRemark>,
    /// Number of findings and notes that are not listed.
    pub unlisted: u64,
}

/// A range of mutations of a vbucket that are lost or damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SeqnoGap {
    /// The vbucket with the gap.
    pub vbucket: VbucketId,
    /// The last intact seqno before the gap; `None` if none is known.
    pub after: Option<Seqno>,
    /// The first intact seqno after the gap. It is at or before `after` if a rewind is lost.
    pub before: Seqno,
}

/// A remark about a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogRemark {
    /// The path of the file.
    pub path: PathBuf,
    /// The text of the remark.
    pub message: String,
}

/// Checks every segment, record, item and side file of a change log. With a checkpoint, also
/// checks that the log has all data that the checkpoint needs. Changes no file.
pub fn verify(fs: &dyn FileSystem, dir: &Path, checkpoint: Option<&LogState>) -> Result<LogSurvey> {
    let bases = segment_bases(fs, dir)?;
    let witness = Witness::read(fs, dir)?;
    let expected = checkpoint.map(LogRequirements::new);
    let mut surveyor = Surveyor { witness, expected, ..Surveyor::new(fs, dir) };
    for (n, base) in bases.iter().enumerate() {
        surveyor.segment(*base, bases.get(n + 1).copied());
    }
    surveyor.witness(bases.last().copied());
    if let Some(expected) = surveyor.expected.take() {
        let end = surveyor.before.as_ref().map_or(Lsn::MAX, |before| before.end);
        let missing = expected.missing(surveyor.survey.log_id, bases.first().copied(), end);
        missing.into_iter().for_each(|message| surveyor.finding(dir, message));
    }
    surveyor.other_files(&bases)?;
    Ok(surveyor.survey)
}

/// Adds to an error about damage which mutations are affected.
pub(in crate::change_log) fn with_affected_mutations(
    fs: &dyn FileSystem,
    dir: &Path,
    error: Error,
) -> Error {
    if error.code != ErrorCode::Corrupt {
        return error;
    }
    let Ok(survey) = verify(fs, dir, None) else { return error };
    let mut message = error.message;
    for gap in survey.gaps.iter().take(GAPS_LISTED_MAX) {
        let _ = write!(message, "; {gap}");
    }
    if let Some(more) = survey.gaps.len().checked_sub(GAPS_LISTED_MAX + 1) {
        let _ = write!(message, "; and {} more gaps", more + 1);
    }
    if survey.gaps.is_empty() {
        message += "; no later mutation shows which vbuckets are concerned";
    }
    Error { message, ..error }.with_hint(HINT)
}

impl std::fmt::Display for SeqnoGap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { vbucket, after, before } = self;
        match after {
            Some(after) if after < before => {
                write!(f, "vbucket {vbucket} lacks what lies between seqnos {after} and {before}")
            }
            Some(after) => {
                write!(
                    f,
                    "vbucket {vbucket} goes back from seqno {after} to {before} without a reason"
                )
            }
            None => write!(f, "vbucket {vbucket} may lack what lies before seqno {before}"),
        }
    }
}

/// The last position of a vbucket that the survey has read.
#[derive(Clone, Copy)]
struct LastPosition {
    end: Seqno,
    /// The number of damaged ranges of the log before the vbucket's last item.
    damaged: u64,
}

/// The progress of checking a change log.
struct Surveyor<'a> {
    fs: &'a dyn FileSystem,
    dir: &'a Path,
    survey: LogSurvey,
    witness: Option<Witness>,
    expected: Option<LogRequirements>,
    /// The previous segment, if it was readable.
    before: Option<SegmentInfo>,
    known: BTreeMap<VbucketId, LastPosition>,
    /// The number of damaged ranges found so far.
    damaged: u64,
}

impl<'a> Surveyor<'a> {
    fn new(fs: &'a dyn FileSystem, dir: &'a Path) -> Self {
        let (survey, known) = (LogSurvey::default(), BTreeMap::new());
        let (witness, expected, before) = (None, None, None);
        Self { fs, dir, survey, witness, expected, before, known, damaged: 0 }
    }

    fn finding(&mut self, path: &Path, message: impl Into<String>) {
        Self::put(&mut self.survey.findings, &mut self.survey.unlisted, path, message.into());
    }

    fn note(&mut self, path: &Path, message: impl Into<String>) {
        Self::put(&mut self.survey.notes, &mut self.survey.unlisted, path, message.into());
    }

    fn put(remarks: &mut Vec<LogRemark>, unlisted: &mut u64, path: &Path, message: String) {
        match remarks.len() < REMARKS_MAX {
            true => remarks.push(LogRemark { path: path.to_owned(), message }),
            false => *unlisted += 1,
        }
    }

    /// Checks the segment that begins at `base`, and that the next one begins where it ends.
    fn segment(&mut self, base: Lsn, next: Option<Lsn>) {
        let path = segment_path(self.dir, base);
        self.survey.segments += 1;
        if let Some(end) = self.before.as_ref().map(|before| before.end).filter(|end| *end != base)
        {
            self.damaged += 1;
            self.finding(
                &path,
                format!("the segment before ends at LSN {end}: one is missing or cut short"),
            );
        }
        let (fs, mut bad, mut durable) = (self.fs, Vec::new(), 0);
        let mut index = SegmentIndex::new(base);
        let log_id = segment_log_id(fs, &path).unwrap_or_default();
        let found = scan_segment(fs, &path, &mut |record, payload| {
            durable = durable.max(record.durable.unwrap_or(0));
            match record.state {
                RecordState::Ok if record.mark => {}
                RecordState::Ok => self.group(&path, log_id, record, payload, &mut index),
                _ => {
                    self.damaged += 1;
                    bad.push(record.clone());
                }
            }
        });
        let mut found = match found {
            Ok(found) => found,
            Err(error) => return self.unreadable(&path, base, next, &error),
        };
        self.survey.bytes += found.used_bytes();
        self.survey.log_id.get_or_insert(found.log_id);
        let vouched = self.witness.map_or(0, |witness| witness.synced).max(durable);
        for record in bad {
            let place = format!("offset {}, {} bytes", record.offset, record.bytes);
            match next.is_none() && record.lsn >= vouched {
                true => {
                    self.note(&path, format!("{place}: a torn end, which the next start cuts off"))
                }
                false => self.finding(&path, format!("{place}: a damaged group")),
            }
        }
        if next.is_some() && found.room_bytes > 0 {
            self.damaged += 1;
            let (at, bytes) = (found.end, found.room_bytes);
            self.finding(&path, format!("LSN {at}: {bytes} zeros in the place of groups"));
            (found.damaged, found.chain_end) = (1, None);
        }
        self.order(&path, base, &found);
        if let Some(end) = next.filter(|_| found.damaged == 0) {
            self.side_file(IndexedSegment { log_id, base, end }, &index);
        }
        self.before = Some(found);
    }

    fn unreadable(&mut self, path: &Path, base: Lsn, next: Option<Lsn>, error: &Error) {
        let is_begun = next.is_none()
            && self.witness.is_none_or(|witness| witness.synced <= base)
            && self.before.is_some()
            && self
                .fs
                .open(path, OpenMode::Read)
                .and_then(|file| file.len())
                .is_ok_and(|len| len <= SEGMENT_OVERHEAD_BYTES);
        match is_begun {
            true => self.note(path, "a segment without groups, whose creation was interrupted"),
            false => {
                self.damaged += 1;
                self.finding(path, error.message.clone());
            }
        }
        self.before = None;
    }

    /// Checks that a segment directly follows the previous one, in the same log.
    fn order(&mut self, path: &Path, base: Lsn, found: &SegmentInfo) {
        if found.base != base {
            let said = found.base;
            self.finding(path, format!("the header says that the segment begins at LSN {said}"));
        }
        let Some(before) = self.before.take() else { return };
        if let Some(what) = found.contradiction(&before) {
            self.damaged += 1;
            self.finding(path, what);
        }
    }

    fn group(
        &mut self,
        path: &Path,
        log_id: u64,
        record: &RecordInfo,
        payload: &[u8],
        index: &mut SegmentIndex,
    ) {
        self.survey.groups += 1;
        for item in items(log_id, record.lsn + RECORD_OVERHEAD_BYTES, payload) {
            let checked = item.and_then(|item| self.item(path, &item, index));
            if let Err(error) = checked {
                self.damaged += 1;
                self.finding(path, format!("offset {}: {}", record.offset, error.message));
                return;
            }
        }
    }

    fn item(&mut self, path: &Path, item: &Item<'_>, index: &mut SegmentIndex) -> Result<()> {
        self.survey.items += 1;
        if let Some((head, run)) = item.run()? {
            let mut bytes = 0;
            for mutation in run.mutations() {
                bytes += mutation?.entry_bytes();
                self.survey.mutations += 1;
            }
            if bytes != head.bytes {
                self.finding(path, format!("LSN {}: the run counts its bytes wrong", item.lsn));
            }
        } else {
            item.event()?;
        }
        for (vbucket, change) in item.changes()? {
            index.apply(vbucket, &change, item.lsn);
            if let Some(expected) = &mut self.expected {
                expected.change(vbucket, &change, item.lsn);
            }
            self.change(path, vbucket, &change, item.lsn);
        }
        Ok(())
    }

    fn change(&mut self, path: &Path, vbucket: VbucketId, change: &Change, lsn: Lsn) {
        let damaged = self.damaged;
        let known = self.known.get(&vbucket).copied();
        let end = match change {
            Change::Run { first, last, .. } => {
                let after = known.map(|known| known.end);
                let is_new = known.map_or(damaged > 0, |known| known.damaged < damaged);
                if after.map_or(is_new, |after| after.0 + 1 != first.0) {
                    self.survey.gaps.push(SeqnoGap { vbucket, after, before: *first });
                    if !is_new {
                        let gap = SeqnoGap { vbucket, after, before: *first };
                        self.finding(path, format!("LSN {lsn}: {gap}"));
                    }
                }
                *last
            }
            Change::Rewind { to, .. } => *to,
            Change::Remove => Seqno(0),
            Change::Begin { purged } => *purged,
            Change::Purge { .. } => return,
        };
        self.known.insert(vbucket, LastPosition { end, damaged });
    }

    fn side_file(&mut self, segment: IndexedSegment, index: &SegmentIndex) {
        let path = index_path(self.dir, segment.base);
        let found = read_index(self.fs, self.dir, segment);
        let is_right = found.as_ref().is_some_and(|found| {
            let found = found.iter().map(|(vbucket, runs)| (*vbucket, &**runs));
            found.eq(index.vbuckets())
        });
        match found {
            _ if is_right => {}
            Some(_) => self.finding(&path, "the index contradicts its segment; remove the file"),
            None => self.note(&path, "the index is missing or damaged, and is written again"),
        }
    }

    /// Checks that the log reaches the synced position that its witness file records.
    fn witness(&mut self, last: Option<Lsn>) {
        let path = Witness::path(self.dir);
        let Some(witness) = self.witness else {
            if self.fs.exists(&path) {
                self.note(
                    &path,
                    "damaged or incomplete: it vouches for nothing, and is written again",
                );
            }
            return;
        };
        let end = self.before.as_ref().map(|before| before.end).or(last);
        if end.is_none_or(|end| end < witness.synced) {
            let synced = witness.synced;
            self.finding(&path, format!("the log was synced up to LSN {synced}, and ends before"));
        }
        if let Some(log_id) = self.survey.log_id
            && let Err(error) = witness.check_id(self.dir, log_id)
        {
            self.finding(&path, error.message);
        }
    }

    fn other_files(&mut self, bases: &[Lsn]) -> Result<()> {
        let known: Vec<PathBuf> = bases
            .iter()
            .flat_map(|base| [segment_path(self.dir, *base), index_path(self.dir, *base)])
            .chain([Witness::path(self.dir)])
            .collect();
        for path in self.fs.list(self.dir)? {
            if !known.contains(&path) {
                self.note(
                    &path,
                    "not a file of the log, or a leftover that the next start removes",
                );
            }
        }
        Ok(())
    }
}
