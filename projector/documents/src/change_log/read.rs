//! Reads mutations of one vbucket from a change log.
//!
//! A read looks up its runs (sequences of mutations) in the index, releases the index's lock, and
//! reads each run with one call. Each run is verified by its own checksum. If the vbucket is
//! rewound during the read, the read returns the mutations read so far: they belong to the
//! history in which the read began.

use std::sync::Arc;

use bytes::Bytes;
use proto::lock::read;
use proto::model::ids::{Seqno, VbucketId};
use proto::{Error, ErrorCode, Result};
use storage::log::Lsn;

use super::index::cache::Runs;
use super::index::segment::{RunEntry, SegmentIndex, position_of};
use super::items::format::HINT;
use super::items::item::{Item, MutationPlace, RunMutation, items};
use super::log::ChangeLog;
use crate::document_store::LogExtent;
use crate::mutation::Mutation;

/// A range of seqnos in a vbucket's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VbucketRange {
    /// The vbucket to read.
    pub vbucket: VbucketId,
    /// The seqno before the range.
    pub after: Seqno,
    /// The last seqno of the range.
    pub to: Seqno,
}

/// The part of a read that is in one segment.
struct Step {
    after: Seqno,
    to: Seqno,
    /// The purge point and the history counter of the vbucket when the step was planned; used to
    /// detect a later change.
    moment: (Seqno, u64),
    base: Lsn,
    runs: StepRuns,
}

/// The place of the index entries for the runs of a step.
enum StepRuns {
    /// The runs are in the last segment.
    Tail(Vec<RunEntry>),
    /// The runs are in a closed segment whose side file is not written yet.
    Closed(Arc<SegmentIndex>),
    /// The runs are in a closed segment; its side file has the index entries.
    File,
}

/// The mutations that a read has found so far.
struct Reading {
    found: Vec<Arc<Mutation>>,
    /// The number of bytes that may still be read.
    left: usize,
    is_full: bool,
}

impl ChangeLog {
    /// Reads mutations in the order of their seqnos, from the beginning of a range: all of them,
    /// or about `bytes` bytes but at least one mutation. Purged mutations are skipped.
    pub fn read(&self, range: VbucketRange, bytes: usize) -> Result<Vec<Arc<Mutation>>> {
        let mut reading = Reading { found: Vec::new(), left: bytes, is_full: false };
        let (mut after, mut history) = (range.after, None);
        while !reading.is_full {
            let is_begun = !reading.found.is_empty();
            let Some(step) = self.step(range, after, reading.left)? else { break };
            if is_begun && (history != Some(step.moment.1) || step.after != after) {
                break;
            }
            history = Some(step.moment.1);
            match self.read_step(range.vbucket, &step, &mut reading) {
                Ok(()) => after = step.to.min(reading.last().unwrap_or(step.to)),
                // Its segment was released, since a rewind or a purge has overtaken this read.
                Err(_) if self.moment(range.vbucket) != step.moment => {
                    if let Some(last) = reading.last() {
                        after = last;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(reading.found)
    }

    fn moment(&self, vbucket: VbucketId) -> (Seqno, u64) {
        let index = read(&self.index);
        index
            .vbuckets
            .get(usize::from(vbucket.0))
            .map_or_else(Default::default, |vbucket| (vbucket.state.extent.purged, vbucket.history))
    }

    /// Returns the next part of a read, which follows the seqno `after`; `None` at the end.
    fn step(&self, range: VbucketRange, after: Seqno, bytes: usize) -> Result<Option<Step>> {
        let index = read(&self.index);
        let Some(vbucket) = index.vbuckets.get(usize::from(range.vbucket.0)) else {
            return Ok(None);
        };
        let LogExtent { purged, end, .. } = vbucket.state.extent;
        let (after, to) = (after.max(purged), range.to.min(end));
        if after >= to {
            return Ok(None);
        }
        let first = Seqno(after.0 + 1);
        let (base, last) = vbucket.segment_of(first).ok_or_else(|| {
            let id = range.vbucket;
            Error::internal(format!("no segment has seqno {first} of vbucket {id}"))
        })?;
        let to = to.min(last);
        let runs = if base == index.tail.base {
            StepRuns::Tail(runs_of(index.tail.runs(range.vbucket), first, to, bytes))
        } else {
            match index.closed.iter().find(|closed| closed.base == base) {
                Some(closed) => StepRuns::Closed(Arc::clone(closed)),
                None => StepRuns::File,
            }
        };
        let moment = (purged, vbucket.history);
        Ok(Some(Step { after, to, moment, base, runs }))
    }

    fn read_step(&self, vbucket: VbucketId, step: &Step, reading: &mut Reading) -> Result<()> {
        let from_file: Runs;
        let runs = match &step.runs {
            StepRuns::Tail(runs) => runs.as_slice(),
            StepRuns::Closed(index) => index.runs(vbucket),
            StepRuns::File => {
                from_file = self.file_runs(step.base, vbucket)?;
                &from_file
            }
        };
        let first = Seqno(step.after.0 + 1);
        let missing = || {
            let (path, _) = self.log.place_of(step.base);
            let message = format!("{} lacks seqno {first} of vbucket {vbucket}", path.display());
            Error::new(ErrorCode::Corrupt, message).with_hint(HINT)
        };
        let at = position_of(runs, first).ok_or_else(missing)?;
        for run in &runs[at..] {
            if reading.is_full || run.first > step.to {
                break;
            }
            self.read_run(vbucket, run, (step.after, step.to), reading)?;
        }
        Ok(())
    }

    fn file_runs(&self, base: Lsn, vbucket: VbucketId) -> Result<Runs> {
        let segment = self.closed_segment(base).ok_or_else(|| {
            Error::new(
                ErrorCode::HistoryPurged,
                format!("the segment from LSN {base} was released"),
            )
        })?;
        self.files.runs(segment, vbucket).map_err(|error| {
            error.context(format!("looking for vbucket {vbucket}")).with_hint(HINT)
        })
    }

    /// Reads the mutations of a run whose seqnos are in `(after, to]`.
    fn read_run(
        &self,
        vbucket: VbucketId,
        run: &RunEntry,
        (after, to): (Seqno, Seqno),
        reading: &mut Reading,
    ) -> Result<()> {
        let item = self.log.read(run.lsn, run.item_bytes as usize)?;
        let to = to.min(run.last());
        for mutation in self.mutations(&item, vbucket, run)? {
            let mutation = mutation?;
            if mutation.seqno > to || reading.is_full {
                break;
            }
            if mutation.seqno > after {
                reading.add_mutation(vbucket, &item, &mutation);
            }
        }
        Ok(())
    }

    /// Verifies the checksum of a run and returns its mutations.
    fn mutations<'a>(
        &self,
        item: &'a [u8],
        vbucket: VbucketId,
        run: &RunEntry,
    ) -> Result<impl Iterator<Item = Result<RunMutation<'a>>> + use<'a>> {
        let found = items(self.log.log_id(), run.lsn, item).next();
        let found: Option<Item<'a>> = found.and_then(Result::ok);
        match found.map(|item| item.run()) {
            Some(Ok(Some((head, found))))
                if (found.vbucket, head.first) == (vbucket, run.first) =>
            {
                Ok(found.mutations())
            }
            _ => {
                let (path, offset) = self.log.place_of(run.lsn);
                let (first, last) = (run.first, run.last());
                let message = format!(
                    "{} is damaged at offset {offset}: seqnos {first} to {last} of vbucket {vbucket}",
                    path.display()
                );
                Err(Error::new(ErrorCode::Corrupt, message).with_hint(HINT))
            }
        }
    }

    /// Reads the mutation at a place that an append or a replay of the log has returned.
    pub fn read_at(&self, vbucket: VbucketId, place: MutationPlace) -> Result<Mutation> {
        let MutationPlace { item: lsn, item_bytes, .. } = place;
        let bytes = self.log.read(lsn, item_bytes as usize)?;
        let item = items(self.log.log_id(), lsn, &bytes).next().and_then(Result::ok);
        let run = item.and_then(|item| item.run().ok().flatten());
        let run = run.filter(|(_, run)| run.vbucket == vbucket);
        let found = run.and_then(|(_, run)| {
            run.mutations().map_while(Result::ok).find(|mutation| mutation.place == place)
        });
        let found = found.ok_or_else(|| {
            let (path, offset) = self.log.place_of(lsn);
            let message = format!(
                "{} is damaged at offset {offset}: a mutation of vbucket {vbucket}",
                path.display()
            );
            Error::new(ErrorCode::Corrupt, message).with_hint(HINT)
        })?;
        let document = Bytes::copy_from_slice(found.document);
        Ok(Mutation::new((vbucket, found.seqno), found.id.into(), found.kind, document))
    }

    /// Returns the number of bytes of a vbucket's log up to a seqno, counted since the log began.
    /// A seqno that is not retained is replaced by the nearest retained one.
    pub fn bytes_to(&self, vbucket: VbucketId, to: Seqno) -> Result<u64> {
        loop {
            let extent = self.extent(vbucket);
            if to <= extent.purged {
                return Ok(extent.bytes_purged);
            }
            if to >= extent.end {
                return Ok(extent.bytes_end);
            }
            let range = VbucketRange { vbucket, after: to, to: Seqno(to.0 + 1) };
            let Some(step) = self.step(range, to, 0)? else { continue };
            match self.bytes_before(vbucket, &step) {
                Err(_) if self.moment(vbucket) != step.moment => {}
                done => return done,
            }
        }
    }

    /// Returns the number of bytes of a vbucket's log before the first seqno of a step.
    fn bytes_before(&self, vbucket: VbucketId, step: &Step) -> Result<u64> {
        let first = Seqno(step.after.0 + 1);
        let runs: Runs = match &step.runs {
            StepRuns::Tail(runs) => runs.as_slice().into(),
            StepRuns::Closed(index) => index.runs(vbucket).into(),
            StepRuns::File => self.file_runs(step.base, vbucket)?,
        };
        let at = position_of(&runs, first)
            .ok_or_else(|| Error::internal(format!("no run has seqno {first}")))?;
        let run = &runs[at];
        let mut bytes = run.bytes_before;
        if run.first < first {
            let item = self.log.read(run.lsn, run.item_bytes as usize)?;
            for mutation in self.mutations(&item, vbucket, run)? {
                let mutation = mutation?;
                if mutation.seqno >= first {
                    break;
                }
                bytes += mutation.entry_bytes();
            }
        }
        Ok(bytes)
    }
}

/// Returns the runs that a read of about `bytes` bytes needs, from the seqno `first` on.
fn runs_of(runs: &[RunEntry], first: Seqno, to: Seqno, bytes: usize) -> Vec<RunEntry> {
    let at = position_of(runs, first).unwrap_or(runs.len());
    let mut size = 0;
    let needed = runs[at..].iter().take_while(|run| {
        // The first run may lie mostly before the range, so it does not count.
        let more = run.first <= to && size <= bytes;
        size += if run.first <= first { 0 } else { run.item_bytes as usize };
        more
    });
    needed.copied().collect()
}

impl Reading {
    fn last(&self) -> Option<Seqno> {
        self.found.last().map(|mutation| mutation.seqno)
    }

    fn add_mutation(&mut self, vbucket: VbucketId, item: &Bytes, found: &RunMutation<'_>) {
        let document = match found.document.is_empty() {
            true => Bytes::new(),
            false => item.slice_ref(found.document),
        };
        let mutation = Mutation::new((vbucket, found.seqno), found.id.into(), found.kind, document);
        self.found.push(Arc::new(mutation));
        let bytes = found.id.len() + found.document.len() + 1;
        self.is_full = bytes >= self.left;
        self.left = self.left.saturating_sub(bytes);
    }
}
