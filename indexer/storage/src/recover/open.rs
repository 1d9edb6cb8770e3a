//! Opening of a store after a restart or a crash.
//!
//! 1. The manifests list the fragments of each slice. The fragments of the back index are opened. A
//!    fragment that no manifest names is left over from a flush, merge or build that a crash has
//!    interrupted, and is deleted.
//! 2. The node manifest records which epochs all indexes have in their fragments, and which epochs
//!    a rollback has undone.
//! 3. The log is replayed. Each epoch is applied to the indexes whose fragments lack it, by the
//!    same code as the first time. If memory runs short, it is flushed. If no data of the log is
//!    only in memory afterwards, the log is released.
//! 4. From now on epochs are accepted. The other fragments are opened in the background, one index
//!    after another, and each index is readable as soon as all its fragments are open (`load`).
//!
//! A crash during an opening leaves a state that the next opening handles in the same way.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use proto::env::{Env, create_dir_durably};
use proto::lock::lock;
use proto::model::cut::EpochMark;
use proto::model::ids::{Epoch, NodeId};
use proto::{Error, ErrorCode, Result};
use tokio::sync::Notify;

use crate::apply::apply_epoch::apply_epoch;
use crate::apply::documents::last_changes;
use crate::batch::EpochBatch;
use crate::edit::rollback::roll_back_index;
use crate::file_id::FileId;
use crate::files::data_files::DataFiles;
use crate::index::load_state::LoadEvent;
use crate::index::local_index::LocalIndex;
use crate::log::commit_log::CommitLog;
use crate::log::lsn::Lsn;
use crate::log::segment::{first_lsn, segment_path};
use crate::log_record::Record;
use crate::maintain::flush::flush;
use crate::maintain::merge_runs::merge_index_runs;
use crate::manifest::index_manifest::IndexManifest;
use crate::manifest::node_manifest::{DeadEpochs, NodeManifest};
use crate::node::checkpoints::LogCheckpoints;
use crate::node::context::EngineContext;
use crate::node::state::{NodeState, epochs_skipped_by};
use crate::options::StoreOptions;
use crate::{layout, manifest};

/// Number of replayed records between merges of runs: large, because no reads run during a replay,
/// and large merges rewrite each row fewer times.
const MERGE_EVERY: u64 = 256;

/// Opens a store after a start; returns the engine's shared context.
pub(crate) fn open(
    env: &Env,
    node: NodeId,
    dir: &Path,
    options: StoreOptions,
) -> Result<EngineContext> {
    create_dirs(env, dir)?;
    let manifests = manifest::read_all(&*env.fs, &layout::manifest_dir(dir))?;
    manifests.check(&layout::manifest_dir(dir))?;
    let log_dir = layout::log_dir(dir);
    if let Some(node) = &manifests.node {
        check_log(env, &log_dir, node)?;
    }
    let node_manifest = manifests.node.unwrap_or_default();
    let files = DataFiles::new(env, dir, &options);
    files.restore_numbers(manifests.numbers, &node_manifest);
    let state = Arc::new(NodeState::default());
    open_fragments(&files, &state, manifests.indexes, &node_manifest)?;
    restore_buckets(&state, &node_manifest);
    let mut replay = Replay {
        state: &state,
        files: &files,
        manifest: &node_manifest,
        stop_bytes: options.stop_bytes(),
        begin: 0,
        records: 0,
        gone_back: Vec::new(),
        skipped: Vec::new(),
    };
    let log = CommitLog::open(env, &log_dir, options.log.clone(), &mut |end, record| {
        replay.replay_record(end, record)
    })?;
    let (gone_back, skipped, records) = (replay.gone_back, replay.skipped, replay.records);
    state.indexes_and_rebuilds().iter().try_for_each(|index| merge_index_runs(index))?;
    tracing::info!(records, "replayed the commit log");
    undo_unlogged_epochs(&state, &files)?;
    let order = checkpoints_after_replay(&state, &node_manifest, &gone_back, skipped);
    let order = save_replayed(&state, &files, &log, &node_manifest, order)?;
    Ok(EngineContext {
        env: env.clone(),
        opening: env.random.next_u64(),
        node,
        options,
        files: Arc::new(files),
        log,
        state,
        order: tokio::sync::Mutex::new(order),
        background: Mutex::default(),
        room: Notify::new(),
        open_transactions_bytes: Arc::default(),
    })
}

/// Creates the directories of a store.
fn create_dirs(env: &Env, dir: &Path) -> Result<()> {
    for dir in [layout::log_dir(dir), layout::manifest_dir(dir), layout::fragment_dir(dir)] {
        create_dir_durably(&*env.fs, &dir)
            .map_err(|error| Error::from(error).context(format!("creating {}", dir.display())))?;
    }
    Ok(())
}

/// Checks that the log reaches back to the epochs that are in fragments according to the node
/// manifest. A log that ends too early, or is missing, is accepted: the stream sends the lost
/// epochs again, from the marks of the node manifest on.
fn check_log(env: &Env, dir: &Path, node: &NodeManifest) -> Result<()> {
    match first_lsn(&*env.fs, dir)? {
        None => {
            tracing::warn!(dir = %dir.display(), "the commit log is missing: its epochs are read from the stream again");
            Ok(())
        }
        Some(first) if first <= node.log_from => Ok(()),
        Some(first) => Err(Error::new(
            ErrorCode::Corrupt,
            late_log_error(dir, first, node.log_from),
        )
        .with_hint(
            "restore the files, or remove the node's data directory: the slices are then rebuilt",
        )),
    }
}

/// Returns the error text for a log whose first LSN `first` is above `log_from`, the LSN from
/// which records are needed.
pub(crate) fn late_log_error(dir: &Path, first: Lsn, log_from: Lsn) -> String {
    let (path, dir) = (segment_path(dir, first), dir.display());
    format!(
        "{dir}: the oldest segment is {}, but the node manifest needs the log from LSN {log_from} on: \
         a segment is missing, or the node manifest is an old copy",
        path.display()
    )
}

/// Sets the progress of each bucket to its mark in the node manifest.
fn restore_buckets(state: &NodeState, manifest: &NodeManifest) {
    let mut buckets = lock(&state.buckets);
    for mark in &manifest.marks {
        let progress = buckets.entry(mark.bucket).or_default();
        progress.applied = Some(mark.clone());
        progress.logged = Some(mark.clone());
        progress.durable = mark.epoch;
    }
    for dead in &manifest.dead {
        buckets.entry(dead.bucket).or_default().dead.push(*dead);
    }
}

/// Returns the checkpoints of the log after a replay. `gone_back` are the rollbacks and `skipped`
/// the skipped epochs that it has found.
fn checkpoints_after_replay(
    state: &NodeState,
    manifest: &NodeManifest,
    gone_back: &[EpochMark],
    mut skipped: Vec<DeadEpochs>,
) -> LogCheckpoints {
    skipped.retain(|skipped| !manifest.dead.contains(skipped));
    let mut dead = dead_epochs(state);
    dead.retain(|dead| !skipped.contains(dead));
    let mut order = LogCheckpoints {
        marks: manifest.marks.clone(),
        named: manifest.marks.iter().map(|mark| mark.bucket).collect(),
        log_from: manifest.log_from,
        dead: Arc::new(Mutex::new(dead)),
        skipped,
        ..LogCheckpoints::default()
    };
    gone_back.iter().for_each(|mark| order.roll_back_to(mark));
    order
}

/// Saves the results of the replay in the node manifest. Releases the log if all of its data is in
/// fragments. Afterwards indexes may load their other fragments.
fn save_replayed(
    state: &NodeState,
    files: &DataFiles,
    log: &CommitLog,
    manifest: &NodeManifest,
    mut order: LogCheckpoints,
) -> Result<LogCheckpoints> {
    state.advance_all(LoadEvent::LogReplayed)?;
    let all_flushed =
        state.indexes_and_rebuilds().iter().all(|index| index.stats.needs_log_from().is_none());
    if all_flushed {
        order.marks = state.logged();
        order.log_from = log.end();
    }
    // Once the log is released, only the manifest knows which epochs were skipped.
    let replayed = order.node_manifest(files.next(), files.index_numbers());
    let is_new = replayed.marks != manifest.marks
        || replayed.log_from != manifest.log_from
        || replayed.dead != manifest.dead;
    if is_new {
        files.write_node_manifest(&replayed)?;
        order.named.extend(order.marks.iter().map(|mark| mark.bucket));
    }
    if all_flushed {
        log.release(log.end())?;
    }
    state.advance_all(LoadEvent::ManifestSaved)?;
    Ok(order)
}

/// Returns the epochs of all buckets that rollbacks have undone, each range once.
fn dead_epochs(state: &NodeState) -> Vec<DeadEpochs> {
    let mut all = Vec::new();
    for dead in lock(&state.buckets).values().flat_map(|progress| &progress.dead) {
        if !all.contains(dead) {
            all.push(*dead);
        }
    }
    all
}

/// Rolls back indexes that have epochs which the log lacks. A flush does not wait for the log, so
/// fragments may contain epochs whose log records a crash has lost. These epochs are undone, so
/// that all indexes of a bucket continue from the same epoch. An index whose oldest readable epoch
/// is above that epoch cannot be rolled back, and waits until the stream has reached its oldest
/// epoch again.
fn undo_unlogged_epochs(state: &NodeState, files: &DataFiles) -> Result<()> {
    for index in state.indexes_and_rebuilds() {
        let applied = lock(&state.buckets)
            .get(&index.info.bucket)
            .and_then(|progress| progress.applied.as_ref().map(|mark| mark.epoch));
        let Some(applied) = applied else { continue };
        let ahead = index.writer().applied > applied;
        if ahead && index.version.load().floor.is_some_and(|floor| floor <= applied) {
            roll_back_index(&index, applied, files)?;
        }
    }
    Ok(())
}

/// Opens the fragments that the replay needs, and deletes those that no manifest names.
fn open_fragments(
    files: &DataFiles,
    state: &NodeState,
    manifests: Vec<IndexManifest>,
    node: &NodeManifest,
) -> Result<()> {
    let listed = files.list()?;
    let named: BTreeSet<FileId> = manifests.iter().flat_map(IndexManifest::files).collect();
    let used = listed.iter().chain(&named).max().copied().unwrap_or_default();
    files.skip_to(used.max(FileId(node.next_file.0.saturating_sub(1))));
    files.restore_names(&manifests);
    for manifest in manifests {
        state.insert(LocalIndex::open(manifest, files)?);
    }
    files.delete_unnamed(&listed, &named)
}

/// A replay of the log.
struct Replay<'a> {
    state: &'a NodeState,
    files: &'a DataFiles,
    manifest: &'a NodeManifest,
    stop_bytes: u64,
    /// An LSN at or before the beginning of the current record.
    begin: Lsn,
    records: u64,
    /// Rollbacks that a crash had interrupted and that this replay has finished.
    gone_back: Vec<EpochMark>,
    /// Undone epochs between replayed epochs and their parents.
    skipped: Vec<DeadEpochs>,
}

impl Replay<'_> {
    /// Replays one record, which ends at the LSN `end`.
    fn replay_record(&mut self, end: Lsn, record: &[u8]) -> Result<()> {
        match Record::decode(record)? {
            Record::Epoch(batch) => self.replay_epoch(&batch)?,
            Record::Truncate(mark, to) => {
                let of = |dead: &DeadEpochs| {
                    (dead.bucket, dead.above, dead.to) == (mark.bucket, mark.epoch, to)
                };
                if self.manifest.dead.iter().any(of) {
                    self.apply_old_rollback(mark, to);
                } else {
                    // A crash happened before all indexes were rolled back. Indexes that were built or have arrived
                    // since are not affected.
                    let indexes = self.state.indexes_of_bucket(mark.bucket).into_iter();
                    for index in indexes.filter(|index| index.stats.applied() <= to) {
                        roll_back_index(&index, mark.epoch, self.files)?;
                    }
                    let mut buckets = lock(&self.state.buckets);
                    let progress = buckets.entry(mark.bucket).or_default();
                    let dead = DeadEpochs { bucket: mark.bucket, above: mark.epoch, to };
                    progress.dead.push(dead);
                    self.gone_back.push(mark.clone());
                    progress.durable = mark.epoch;
                    progress.logged = Some(mark.clone());
                    progress.applied = Some(mark);
                }
            }
        }
        self.begin = end;
        Ok(())
    }

    /// Applies a rollback that all index manifests contain already. No manifest has two facts that
    /// this record has. First, the bucket is at the rollback point, even if no epoch of the node
    /// is that old because all slices were received from other nodes. Second, the bucket is no
    /// longer at an undone epoch, even if an earlier log record was of such an epoch.
    fn apply_old_rollback(&self, mark: EpochMark, to: Epoch) {
        let mut buckets = lock(&self.state.buckets);
        let progress = buckets.entry(mark.bucket).or_default();
        // A manifest may have a later epoch than this record: one from after the rollback.
        let stays = |applied: &EpochMark| applied.epoch == mark.epoch || applied.epoch > to;
        if !progress.applied.as_ref().is_some_and(stays) {
            progress.durable = mark.epoch;
            progress.logged = Some(mark.clone());
            progress.applied = Some(mark);
        }
    }

    /// Applies a logged epoch to the indexes whose fragments lack it, and merges or flushes memory
    /// if necessary.
    fn replay_epoch(&mut self, batch: &EpochBatch) -> Result<()> {
        let mark = &batch.mark;
        let dead = |dead: &DeadEpochs| dead.contains(mark.bucket, mark.epoch);
        let settled = |known: &EpochMark| known.bucket == mark.bucket && mark.epoch <= known.epoch;
        if self.manifest.dead.iter().any(dead) || self.manifest.marks.iter().any(settled) {
            return Ok(());
        }
        apply_epoch(self.state, (&batch.mark, &last_changes(batch)?), self.begin)?;
        self.skipped.extend(epochs_skipped_by(mark));
        {
            let mut buckets = lock(&self.state.buckets);
            let progress = buckets.entry(mark.bucket).or_default();
            progress.logged = Some(mark.clone());
            progress.durable = mark.epoch;
        }
        let indexes = self.state.indexes_of_bucket(mark.bucket);
        self.records += 1;
        if self.records.is_multiple_of(MERGE_EVERY) {
            indexes.iter().try_for_each(|index| merge_index_runs(index))?;
        }
        while indexes.iter().map(|index| index.memory_bytes()).sum::<u64>() > self.stop_bytes {
            let Some(largest) = indexes.iter().max_by_key(|index| index.memory_bytes()) else {
                break;
            };
            if !flush(largest, self.files)? {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "skipped_tests.rs"]
mod skipped_tests;
