//! The change log of one bucket: the functions with which the document store appends, syncs and
//! releases it.

use std::ops::Range;
use std::sync::{Arc, Mutex, RwLock};

use proto::env::Env;
use proto::lock::{lock, read, write};
use proto::model::ids::{Seqno, TransactionId, VbucketId};
use proto::model::joint::PreparedTransaction;
use proto::plant::{self, Plant};
use proto::{Error, ErrorCode, Result};
use storage::log::{DirectLog, Lsn};

use super::index::directory::{LogIndex, PlacedChange};
use super::index::file::IndexedSegment;
use super::index::files::IndexFiles;
use super::index::segment::SegmentIndex;
use super::items::append::Encoder;
use super::items::format::HINT;
use super::items::group::{GroupBuilder, MUTATIONS_AT};
use super::items::item::{MutationPlace, prepared_at};
use super::items::prepared_places::PreparedPlace;
use super::items::state::{LogState, VbucketState};
use crate::document_store::LogExtent;

/// The change log of one bucket. All calls block the thread.
pub struct ChangeLog {
    pub(super) log: DirectLog,
    pub(super) files: IndexFiles,
    /// The data that an append needs; locked by the thread that appends or syncs.
    pub(super) writer: Mutex<Writer>,
    /// The index that readers use. It is never locked during file input and output.
    pub(super) index: RwLock<LogIndex>,
}

/// The data that an append needs, and the appended changes that become visible with the next
/// sync.
#[derive(Default)]
pub(super) struct Writer {
    pub(super) states: Vec<VbucketState>,
    pub(super) unsynced: Vec<PlacedChange>,
    pub(super) encoder: Encoder,
}

/// The place of an appended group in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupPlace {
    /// LSN of the group's beginning.
    pub start: Lsn,
    /// LSN of the group's end.
    pub end: Lsn,
    /// The place of each mutation, in the order in which the mutations were added to the builder.
    pub mutations: Vec<MutationPlace>,
    /// The indexes of the mutations, in the order of their places in the log.
    pub order: Vec<u32>,
    /// The vbuckets that the group changes, and their new positions.
    pub states: Vec<(VbucketId, VbucketState)>,
    /// The places of the changes of transactions that the group prepares.
    pub prepared: Vec<(TransactionId, PreparedPlace)>,
}

/// A group that is encoded and not written yet.
#[derive(Default)]
struct EncodedGroup {
    /// LSN of the group's first item.
    payload: Lsn,
    /// The vbuckets that the group changes, and their new positions.
    staged: Vec<(VbucketId, VbucketState)>,
    /// The place of each mutation, as in [`GroupPlace`].
    mutations: Vec<MutationPlace>,
    order: Vec<u32>,
}

impl EncodedGroup {
    fn at(self, Range { start, end }: Range<Lsn>, writer: &Writer) -> GroupPlace {
        let Self { staged: states, mutations, order, .. } = self;
        let prepared = writer.encoder.prepared.clone();
        GroupPlace { start, end, mutations, order, states, prepared }
    }
}

impl ChangeLog {
    /// Appends a group. The append is atomic: after a crash the log has the complete group or
    /// nothing of it. The group is visible and durable after [`Self::sync`].
    ///
    /// The error is `OutOfOrder`, and nothing is written, if a mutation does not directly follow
    /// the last one of its vbucket, or if another item does not fit the position of its vbucket.
    /// After a failed write the log accepts no more groups. If the group rewinds or purges,
    /// earlier groups are made durable and visible first. The group must not rewind its own
    /// mutations.
    pub fn append(&self, group: &GroupBuilder) -> Result<GroupPlace> {
        let mut writer = lock(&self.writer);
        let planned = self.plan(&mut writer, group)?;
        let range = self.write(&mut writer, group, &planned)?;
        Ok(planned.at(range, &writer))
    }

    /// Appends a group and makes it durable, and at the same time runs `beside` with the places
    /// of the group's mutations. Returns the results of both. The outer error means that nothing
    /// was written.
    pub fn append_beside<T: Send>(
        &self,
        group: &GroupBuilder,
        env: &Env,
        beside: impl FnOnce(&[MutationPlace], &[u32]) -> T + Send,
    ) -> Result<(T, Result<GroupPlace>)> {
        let mut writer = lock(&self.writer);
        let planned = self.plan(&mut writer, group)?;
        let write = || {
            let range = self.write(&mut writer, group, &planned)?;
            self.sync_locked(&mut writer)?;
            Ok(range)
        };
        let (made, range) = env.run_both(|| beside(&planned.mutations, &planned.order), write);
        Ok((made, range.map(|range| planned.at(range, &writer))))
    }

    /// Encodes a group, and computes the places that its items will have in the log.
    fn plan(&self, writer: &mut Writer, group: &GroupBuilder) -> Result<EncodedGroup> {
        let payload = self.log.end() + storage::log::RECORD_OVERHEAD_BYTES;
        if group.is_empty() {
            writer.encoder.prepared.clear();
            return Ok(EncodedGroup { payload, ..EncodedGroup::default() });
        }
        if group.needs_earlier_bytes() && !writer.unsynced.is_empty() {
            // The counters of earlier mutations are read from the visible part.
            self.sync_locked(writer)?;
        }
        let Writer { states, encoder, .. } = writer;
        let look_up = |vbucket, seqno| self.bytes_to(vbucket, seqno);
        let staged = encoder.encode(group, (self.log.log_id(), payload), states, &look_up)?;
        let place = |(run, offset): &(u32, u32)| {
            let (item, item_bytes) = encoder.runs[*run as usize];
            MutationPlace { item, item_bytes, offset: MUTATIONS_AT + offset }
        };
        let mutations = group.places.iter().map(place).collect();
        Ok(EncodedGroup { payload, staged, mutations, order: group.order() })
    }

    /// Writes an encoded group; returns the LSNs of its beginning and its end.
    fn write(
        &self,
        writer: &mut Writer,
        group: &GroupBuilder,
        planned: &EncodedGroup,
    ) -> Result<Range<Lsn>> {
        let EncodedGroup { payload, staged, .. } = planned;
        if group.is_empty() {
            return Ok(self.log.end()..self.log.end());
        }
        let Writer { states, encoder, .. } = writer;
        let Range { start, end } = self.log.append(&encoder.parts(group))?;
        if start + storage::log::RECORD_OVERHEAD_BYTES != *payload {
            return Err(Error::internal("the change log was written by another writer"));
        }
        let segment = self.log.segment_of(start).map_or(start, |(base, _)| base);
        for (vbucket, state) in staged {
            states[usize::from(vbucket.0)] = *state;
        }
        let changes = encoder.changes.iter();
        let changes: Vec<PlacedChange> = changes
            .map(|(vbucket, change, lsn)| {
                let (vbucket, change, lsn) = (*vbucket, *change, *lsn);
                PlacedChange { vbucket, change, lsn, segment }
            })
            .collect();
        writer.unsynced.extend(changes);
        Ok(start..end)
    }

    /// Reads the changes of a prepared transaction from their place in the log. An error names
    /// the file.
    pub fn read_prepared(
        &self,
        transaction: TransactionId,
        place: PreparedPlace,
    ) -> Result<Arc<PreparedTransaction>> {
        let read = self.log.read(place.item, place.bytes as usize);
        let found =
            read.and_then(|bytes| prepared_at(self.log.log_id(), (transaction, place), &bytes));
        found.map_err(|error| {
            let (path, offset) = self.log.place_of(place.item);
            let what = format!(
                "{}: the changes of prepared transaction {transaction} at offset {offset} are not readable: {error}",
                path.display()
            );
            Error::new(ErrorCode::Corrupt, what).with_hint(HINT)
        })
    }

    /// Makes all appended groups durable and visible.
    pub fn sync(&self) -> Result<()> {
        self.sync_locked(&mut lock(&self.writer))
    }

    /// Makes all appended groups durable and visible; the caller has locked the writer.
    fn sync_locked(&self, writer: &mut Writer) -> Result<()> {
        if !plant::is(Plant::ChangeLogNotSynced) {
            self.log.sync()?;
        }
        let Writer { states, unsynced, .. } = writer;
        let closed = {
            let mut index = write(&self.index);
            index.publish(unsynced, states, self.log.end());
            index.closed.clone()
        };
        for index in &closed {
            self.write_index(index);
        }
        if !closed.is_empty() {
            write(&self.index).closed.clear();
        }
        Ok(())
    }

    /// Writes the side file of a closed segment.
    fn write_index(&self, index: &SegmentIndex) {
        if let Some(segment) = self.closed_segment(index.base) {
            self.files.write(segment, index);
        }
    }

    /// Returns the closed segment that begins at an LSN; `None` if that segment is not closed, or
    /// was released.
    pub(super) fn closed_segment(&self, base: Lsn) -> Option<IndexedSegment> {
        let log_id = self.log.log_id();
        match self.log.segment_of(base)? {
            (found, Some(end)) if found == base => Some(IndexedSegment { log_id, base, end }),
            _ => None,
        }
    }

    /// Records durably up to where the log is synced, in a mark and in the witness file. So later
    /// damage before that position is not mistaken for the effect of a crash. Called when the log
    /// is idle.
    pub fn record_synced_end(&self) -> Result<()> {
        let _writer = lock(&self.writer);
        self.log.append_mark()
    }

    /// Returns the error of the first failed write or sync, if there was one. The log accepts no
    /// groups after it.
    pub fn check(&self) -> Result<()> {
        self.log.check_not_failed()
    }

    /// Removes old segments: those that end at or before `covered`, and whose mutations are all
    /// purged, rewound or removed. The caller must have a durable checkpoint that covers the log
    /// before `covered`.
    pub fn release(&self, covered: Lsn) -> Result<()> {
        let segments = self.log.segments();
        let to = {
            let index = read(&self.index);
            let needed = index.vbuckets.iter().filter_map(|vbucket| vbucket.oldest()).min();
            let needed = needed.filter(|_| !plant::is(Plant::SegmentReleasedEarly));
            covered.min(index.end).min(needed.unwrap_or(Lsn::MAX))
        };
        self.log.release(to)?;
        let first = self.log.segments().first().copied().unwrap_or_default();
        let released: Vec<Lsn> = segments.into_iter().filter(|base| *base < first).collect();
        if !released.is_empty() {
            tracing::debug!(segments = released.len(), first, "released segments of a change log");
        }
        self.files.forget(&released, first);
        Ok(())
    }

    /// Returns the retained and durable range of each vbucket's log.
    pub fn extents(&self) -> Vec<LogExtent> {
        read(&self.index).vbuckets.iter().map(|vbucket| vbucket.state.extent).collect()
    }

    /// Returns the retained and durable range of a vbucket's log; empty for an unknown vbucket.
    pub fn extent(&self, vbucket: VbucketId) -> LogExtent {
        let index = read(&self.index);
        index
            .vbuckets
            .get(usize::from(vbucket.0))
            .map_or_else(LogExtent::default, |vbucket| vbucket.state.extent)
    }

    /// Returns what a checkpoint that covers the complete durable log must store.
    pub fn state(&self) -> LogState {
        let index = read(&self.index);
        let vbuckets = index.vbuckets.iter().map(|vbucket| vbucket.state).collect();
        LogState { log_id: Some(self.log.log_id()), from: index.end, vbuckets }
    }

    /// Returns the LSN of the end of the log, including groups that are not durable yet.
    pub fn end(&self) -> Lsn {
        self.log.end()
    }

    /// Returns the bytes of the segments that were not released.
    pub fn retained_bytes(&self) -> u64 {
        self.log.retained_bytes()
    }

    /// Returns the seqnos up to which vbuckets must be purged, so that the log can release all
    /// but its newest segments, of about `bytes` together. Empty if the log is already that
    /// short, or if the older segments have no retained mutations.
    pub fn points_to_shrink_to(&self, bytes: u64) -> Vec<(VbucketId, Seqno)> {
        if self.retained_bytes() <= bytes {
            return Vec::new();
        }
        let (segments, end) = (self.log.segments(), self.log.end());
        let kept = segments.iter().find(|base| end - **base <= bytes).or(segments.last());
        kept.map_or_else(Vec::new, |kept| read(&self.index).lasts_before(*kept))
    }

    /// Returns the LSNs at which the segments begin, oldest first.
    pub fn segments(&self) -> Vec<Lsn> {
        self.log.segments()
    }
}
