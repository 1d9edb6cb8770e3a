//! Adds the rows of an epoch's large commits to the indexes of their bucket, before the epoch
//! itself is applied.
//!
//! An epoch is one table in memory, and a transaction may be larger than the memory. So its rows
//! are written into fragments, and with them the other rows of the epoch. For each index:
//!
//! 1. The memory is flushed: the fragments have everything before the epoch.
//! 2. The rows of the epoch are written (`commit_rows::writer`), in bounded memory, and synced.
//!    Mostly the rows of the commit were written already (`prepare`), and only get a correction for
//!    documents that were changed meanwhile (`correction`), and their epoch.
//! 3. One manifest names the new fragments, and records that the index has the epoch.
//!
//! Then the epoch is logged and applied as usual. The fragments have it already, as after a crash
//! that lost the end of the log, so this only makes it visible: in all indexes at once, since
//! scans see no epoch that its bucket has not applied. A crash in between leaves indexes with an
//! epoch that the log lacks, and the next start rolls them back (`recover/open.rs`). So the log
//! needs no rows of a commit, and the rows of a transaction become visible all at once.
//!
//! After an error some indexes may have the epoch. They skip it when it is applied again, as
//! mutations.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use proto::Error;
use proto::Result;
use proto::lock::lock;
use proto::model::cut::EpochMark;
use proto::model::ids::{Epoch, SliceNo};

use crate::apply::apply_epoch::has_gap_before;
use crate::apply::delta::{BackIndexScope, EpochDelta};
use crate::apply::documents::EpochDocuments;
use crate::batch::EpochBatch;
use crate::files::data_files::{DataFiles, NewFragment};
use crate::files::new_files::UnnamedFragments;
use crate::index::load_state::{Answer, LoadRequest};
use crate::index::local_index::LocalIndex;
use crate::index::writer_state::WriterState;
use crate::late_commit::commit_rows::correction::correct_rows;
use crate::late_commit::commit_rows::prepared::{ChangedIds, PreparedCommit, PreparedIndex};
use crate::late_commit::commit_rows::writer::{CommitRows, CommitWriter, Target};
use crate::late_commit::commits::order::CommitOrder;
use crate::late_commit::store::LateCommitStore;
use crate::maintain::flush::{flush, put_runs, put_states};
use crate::manifest::edit::ListPosition;
use crate::manifest::lists::EpochRange;
use crate::node::context::EngineContext;
use crate::retention::RetainedEpochs;
use crate::rows::columns::Columns;

/// The maximum of rows that gather in memory while a commit is written is the memory limit divided
/// by this number.
pub const GATHERED_SHARE: u64 = 16;

/// The fragments of an epoch in one index, and the change of the number of entries of each slice.
type EpochFragments<'a> = (UnnamedFragments<'a>, BTreeMap<SliceNo, i64>);

/// Writes the rows of an epoch's commits into all indexes of the bucket. The rows are not visible
/// yet. `DropData` if the store lacks changes of a transaction. Blocks the thread.
pub fn enter_commits(
    context: &EngineContext,
    late: &LateCommitStore,
    batch: &EpochBatch,
) -> Result<()> {
    let (state, mark) = (&context.state, &batch.mark);
    let bucket_lock = state.bucket_lock(mark.bucket);
    let _alone = lock(&bucket_lock);
    if state.is_dead(mark.bucket, mark.epoch) {
        // The bucket was rolled back before the epoch could enter.
        return Ok(());
    }
    let parts = batch.commits.iter().map(|marker| late.committed_changes(mark.bucket, marker));
    let (order, documents) = CommitOrder::read(batch, parts.collect::<Result<_>>()?)?;
    let mut prepared = take_prepared(late, batch, &order)?;
    let mut is_from_ahead = !prepared.is_empty();
    let documents = EpochDocuments::by_index(&documents)?;
    let bytes_max = (context.options.memory_bytes / GATHERED_SHARE) as usize;
    for index in state.indexes_of_bucket(mark.bucket) {
        let gap = has_gap_before(state, mark, &index);
        let entry = CommitEntry { index: &index, mark, files: &context.files, gap, bytes_max };
        let ahead =
            prepared.take_index(index.info.local_id()).map(|rows| (rows, &prepared.changed));
        is_from_ahead &= entry.enter_index(&order, ahead, &documents)? != RowsOrigin::WrittenNow;
    }
    if is_from_ahead {
        late.usage.entered_prepared.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// The origin of the rows of the commits that an index got.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RowsOrigin {
    /// The index has no rows of the commits, or has them already.
    None,
    WrittenAhead,
    WrittenNow,
}

/// Returns the rows that were written ahead of an epoch's only commit. Returns none if a later
/// mutation of the epoch changes one of the same documents: an epoch has one version of an entry,
/// so such rows could not be corrected.
fn take_prepared(
    late: &LateCommitStore,
    batch: &EpochBatch,
    order: &CommitOrder<'_>,
) -> Result<PreparedCommit> {
    let prepared = match &batch.commits[..] {
        [marker] => late.take_prepared(batch.mark.bucket, marker),
        _ => None,
    };
    match prepared {
        Some(prepared) if order.are_commits_last()? => Ok(prepared),
        _ => Ok(PreparedCommit::default()),
    }
}

/// The work of adding an epoch with commits to one index.
struct CommitEntry<'a> {
    index: &'a LocalIndex,
    mark: &'a EpochMark,
    files: &'a Arc<DataFiles>,
    /// True if epochs are missing in the index between its last epoch and this one.
    gap: bool,
    bytes_max: usize,
}

/// The rows that were written ahead of the epoch, and the documents that were changed since then.
type PreparedRows<'a> = (PreparedIndex, &'a ChangedIds);

impl CommitEntry<'_> {
    /// Adds the epoch to the index, unless the index has it or is being dropped.
    fn enter_index(
        &self,
        order: &CommitOrder<'_>,
        ahead: Option<PreparedRows<'_>>,
        documents: &EpochDocuments<'_>,
    ) -> Result<RowsOrigin> {
        let Self { index, mark, files, .. } = *self;
        if index.load_state().answer(LoadRequest::Write) == Answer::Refuse {
            // The index is being dropped.
            return Ok(RowsOrigin::None);
        }
        if mark.epoch <= index.writer().applied {
            return Ok(RowsOrigin::None);
        }
        flush(index, files)?;
        let (written, rows) = self.write(order, ahead, documents)?;
        files.sync_names()?;
        self.add_to_lists(written)?;
        Ok(rows)
    }

    /// Writes the rows of the commits and of the epoch's other mutations into fragments.
    fn write(
        &self,
        order: &CommitOrder<'_>,
        ahead: Option<PreparedRows<'_>>,
        documents: &EpochDocuments<'_>,
    ) -> Result<(EpochFragments<'_>, RowsOrigin)> {
        let Self { index, mark, files, bytes_max, .. } = *self;
        let version = index.version.load_full();
        let grouping = lock(&index.fragment_lists).manifest.grouping();
        let (info, is_building) = (&*index.info, index.writer().is_building);
        let version = &*version;
        let target = Target { info, version, files, grouping, is_building, bytes_max };
        let part = order.parts().find_map(|parts| parts.get(&info.local_id()));
        let ahead = ahead.and_then(|(rows, changed)| Some((rows.rows_for(&target)?, changed)));
        let (rows, made) = match (ahead, part) {
            (_, None) => (CommitRows::default(), RowsOrigin::None),
            (Some((prepared, changed)), Some(part)) => {
                let _held = index.count_temporary(bytes_max as u64);
                (correct_rows(&target, part, prepared, changed)?, RowsOrigin::WrittenAhead)
            }
            (None, Some(_)) => (self.write_commits(&target, order)?, RowsOrigin::WrittenNow),
        };
        let (mut written, mut counts) = rows.stamp(mark.epoch, files)?;
        let (others, more) = write_other_changes(&target, mark.epoch, documents)?;
        written.extend(others);
        more.into_iter().for_each(|(slice, more)| *counts.entry(slice).or_default() += more);
        Ok(((written, counts), made))
    }

    /// Writes the rows of the commits.
    fn write_commits(&self, target: &Target<'_>, order: &CommitOrder<'_>) -> Result<CommitRows> {
        let mut out = CommitWriter::new(target);
        for (n, parts) in order.parts().enumerate() {
            let Some(part) = parts.get(&target.info.local_id()) else { continue };
            let sources = part.sources()?;
            let _held = self.index.count_temporary(sources.memory_bytes() + self.bytes_max as u64);
            out.write_transaction(&sources, &|id| order.is_changed_later(n, id))?;
        }
        out.finish()
    }

    /// Adds the fragments to the lists, durably. Afterwards the index has the epoch.
    fn add_to_lists(&self, (written, counts): EpochFragments<'_>) -> Result<()> {
        let Self { index, mark, files, gap, .. } = *self;
        let _no_flush = lock(&index.flush);
        let mut lists = lock(&index.fragment_lists);
        if lists.is_dropped {
            return Ok(());
        }
        let mut writer = index.writer();
        if !is_empty(index, &writer) {
            let text = format!("index {} has taken rows meanwhile", index.info.local_id());
            return Err(Error::unavailable(text));
        }
        let mut entries = writer.entries.clone();
        for (slice, more) in counts {
            *entries.entry(slice).or_default() += more;
        }
        let mut manifest = lists.manifest.clone();
        for NewFragment { file, columns, table } in written.iter() {
            // Rows of a slice that was dropped meanwhile are in no list.
            let slices = table.index.sections().iter().map(|section| section.slice);
            let slices: Vec<_> =
                slices.filter(|slice| manifest.slices.contains_key(slice)).collect();
            let epochs = EpochRange::from_stats(&table.stats);
            manifest.add(*file, &slices, *columns, epochs, ListPosition::Newest)?;
        }
        manifest.flushed = mark.epoch;
        let counted = entries.iter().map(|(slice, n)| (*slice, (*n).max(0) as u64));
        let here = |slice: &SliceNo| manifest.slices.contains_key(slice);
        let counted: Vec<_> = counted.filter(|(slice, _)| here(slice)).collect();
        manifest.entries.extend(counted);
        manifest.entries.retain(|slice, _| !writer.uncounted.contains(slice));
        let reach = gap.then(|| readable_after_gap(mark, writer.applied));
        reach.iter().for_each(|reach| manifest.restrict_readable(reach));
        let written = written.into_fragments();
        if !writer.is_building {
            files.write_manifest(&manifest)?;
        }
        lists.manifest = manifest;
        lists.tables.extend(written.into_iter().map(|new| (new.file, new.table)));
        writer.entries = entries;
        writer.applied = mark.epoch;
        if mark.horizon >= writer.retained.horizon {
            writer.retained = RetainedEpochs::from_mark(mark);
        }
        index.publish(&lists, &mut writer, |version| {
            reach.iter().for_each(|reach| version.restrict_readable(reach));
        })
    }
}

/// Returns the epochs at which an index can be read if epochs are missing before the epoch of
/// `mark`; `before` is the last epoch before the missing ones.
fn readable_after_gap(mark: &EpochMark, before: Epoch) -> RetainedEpochs {
    let mut kept = RetainedEpochs::from_mark(mark);
    kept.points.retain(|point| *point <= before);
    RetainedEpochs { horizon: mark.epoch, ..kept }
}

/// Returns true if the index has nothing in memory that needs a flush.
fn is_empty(index: &LocalIndex, writer: &WriterState) -> bool {
    let has_runs = !index.version.load().runs.is_empty();
    writer.memtable.is_empty() && writer.frozen.is_none() && !has_runs
}

/// Writes the changes of the epoch outside of its commits into fragments.
fn write_other_changes(
    target: &Target<'_>,
    epoch: Epoch,
    documents: &EpochDocuments<'_>,
) -> Result<(Vec<NewFragment>, BTreeMap<SliceNo, i64>)> {
    let Target { info, version, files, grouping, is_building, .. } = *target;
    // The index has no data in memory, so an empty writer represents it.
    let mut writer = WriterState::default();
    let delta = EpochDelta::look_up(info, &writer, version, documents)?;
    let remembered = if is_building { BackIndexScope::EverySlice } else { BackIndexScope::Changes };
    let run = delta.stage(remembered, epoch)?.publish(&mut writer, epoch).map(Arc::new);
    let (every, compression) = (RetainedEpochs::default(), info.spec.compression);
    let mut written = UnnamedFragments::new(files, Vec::new());
    if let Some(run) = run {
        let runs = [run];
        let put = |out: &mut _| put_runs(&runs, &every, out);
        written.extend(files.write(grouping.forward(), (compression, None), put)?);
    }
    if !writer.memtable.is_empty() {
        let options = (compression, Some(writer.memtable.states()));
        let put = |out: &mut _| put_states(&writer.memtable, &every, out);
        written.extend(files.write(&[Columns::BACK], options, put)?);
    }
    Ok((written.into_fragments(), writer.entries))
}
