//! Opening a store: what a node finds of itself after a restart or a crash.
//!
//! 1. The manifests say which fragments make up which slices; those of the back index are opened. What
//!    no manifest names is left from a flush, merge or build that a crash cut short, and is deleted.
//! 2. The node manifest says which epochs all indexes have in their fragments, and which epochs a
//!    rollback has taken back.
//! 3. The log is replayed, each epoch for those indexes that do not have it in their fragments, with the
//!    same work as the first time; when memory runs short, it is flushed as it was then.
//!    What nothing in memory came from is not needed any more, and goes.
//! 4. Epochs are taken from here on. The other fragments are opened in the background, one index after
//!    another, and each index is read as soon as it is whole (`loading`).
//!
//! A crash anywhere in here leaves nothing that the next opening does not take the same way.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use proto::env::{Env, create_dir_durably};
use proto::model::cut::EpochMark;
use proto::model::ids::{Epoch, NodeId};
use proto::{Error, Result};
use tokio::sync::Notify;

use crate::apply::apply_epoch::apply_epoch;
use crate::batch::EpochBatch;
use crate::edit::rollback::truncate_index;
use crate::file_id::FileId;
use crate::files::data_files::Files;
use crate::index::load_state::LoadEvent;
use crate::index::local_index::Slot;
use crate::layout;
use crate::lock::lock;
use crate::log::commit_log::CommitLog;
use crate::log::lsn::Lsn;
use crate::log_record::Record;
use crate::maintain::flush::flush;
use crate::maintain::merge_runs::merge_index_runs;
use crate::manifest;
use crate::manifest::index_manifest::IndexManifest;
use crate::manifest::node_manifest::{DeadEpochs, NodeManifest};
use crate::node::context::Inner;
use crate::node::log_order::Order;
use crate::node::state::State;
use crate::options::StoreOptions;

/// Runs are merged after so many records of the replay: nobody reads them meanwhile, and the more are merged at
/// once, the fewer times each row is.
const MERGE_EVERY: u64 = 256;

/// Opens a store.
pub(crate) fn open(env: &Env, node: NodeId, dir: &Path, options: StoreOptions) -> Result<Inner> {
    for dir in [layout::log_dir(dir), layout::manifest_dir(dir), layout::fragment_dir(dir)] {
        create_dir_durably(&*env.fs, &dir)
            .map_err(|error| Error::from(error).context(format!("making {}", dir.display())))?;
    }
    let manifests = manifest::read_all(&*env.fs, &layout::manifest_dir(dir))?;
    let node_manifest = manifests.node.unwrap_or_default();
    let files = Files::new(env, dir, &options);
    let state = Arc::new(State::default());
    open_fragments(&files, &state, manifests.indexes, &node_manifest)?;
    for mark in &node_manifest.marks {
        let mut buckets = lock(&state.buckets);
        let progress = buckets.entry(mark.bucket).or_default();
        progress.applied = Some(mark.clone());
        progress.logged = Some(mark.clone());
        progress.durable = mark.epoch;
    }
    for dead in &node_manifest.dead {
        lock(&state.buckets).entry(dead.bucket).or_default().dead.push(*dead);
    }
    let mut replay = Replay {
        state: &state,
        files: &files,
        manifest: &node_manifest,
        stop_bytes: options.stop_bytes(),
        begin: 0,
        records: 0,
        gone_back: Vec::new(),
    };
    let log_dir = layout::log_dir(dir);
    let log = CommitLog::open(env, &log_dir, options.log.clone(), &mut |end, record| {
        replay.record(end, record)
    })?;
    let (gone_back, records) = (replay.gone_back, replay.records);
    state.slots().iter().try_for_each(|slot| merge_index_runs(slot))?;
    tracing::info!(records, "the log was replayed");
    take_back_the_unlogged(&state, &files)?;
    let mut order = Order {
        marks: node_manifest.marks.clone(),
        dead: Arc::new(Mutex::new(node_manifest.dead.clone())),
        ..Order::default()
    };
    for (mark, dead) in &gone_back {
        order.go_back(mark);
        lock(&order.dead).push(*dead);
    }
    state.advance_all(LoadEvent::LogReplayed)?;
    let all_flushed = state.slots().iter().all(|slot| slot.figures.needs_log_from().is_none());
    if all_flushed {
        order.marks = state.logged();
    }
    if !gone_back.is_empty() || order.marks != node_manifest.marks {
        files.write_node_manifest(&order.node_manifest(files.next()))?;
    }
    if all_flushed {
        log.release(log.end())?;
    }
    state.advance_all(LoadEvent::ManifestSaved)?;
    Ok(Inner {
        env: env.clone(),
        opening: env.random.next_u64(),
        node,
        options,
        files,
        log,
        state,
        order: tokio::sync::Mutex::new(order),
        background: Mutex::default(),
        room: Notify::new(),
    })
}

/// A flush does not wait for the log: an index may have epochs in its fragments whose records a crash
/// took. They are taken back, so that whatever history brings next is applied on the same epoch
/// everywhere; where the floor is above, the index waits until the stream has come as far again.
fn take_back_the_unlogged(state: &State, files: &Files) -> Result<()> {
    for slot in state.slots() {
        let applied = lock(&state.buckets)
            .get(&slot.info.bucket)
            .and_then(|progress| progress.applied.as_ref().map(|mark| mark.epoch));
        let Some(applied) = applied else { continue };
        let ahead = slot.writer().applied > applied;
        if ahead && slot.visible.load().floor.is_some_and(|floor| floor <= applied) {
            truncate_index(&slot, applied, files)?;
        }
    }
    Ok(())
}

/// Opens what a replay needs of the fragments that manifests name, and deletes the others.
fn open_fragments(
    files: &Files,
    state: &State,
    manifests: Vec<IndexManifest>,
    node: &NodeManifest,
) -> Result<()> {
    let listed = files.list()?;
    let named: BTreeSet<FileId> = manifests.iter().flat_map(IndexManifest::files).collect();
    let used = listed.iter().chain(&named).max().copied().unwrap_or_default();
    files.skip_to(used.max(FileId(node.next_file.0.saturating_sub(1))));
    for manifest in manifests {
        state.insert(Slot::open(manifest, files)?);
    }
    files.delete_unnamed(&listed, &named)
}

/// Applies the records of the log again.
struct Replay<'a> {
    state: &'a State,
    files: &'a Files,
    manifest: &'a NodeManifest,
    stop_bytes: u64,
    /// Where the record at hand begins, or before.
    begin: Lsn,
    records: u64,
    /// Rollbacks that a crash had cut short.
    gone_back: Vec<(EpochMark, DeadEpochs)>,
}

impl Replay<'_> {
    fn record(&mut self, end: Lsn, record: &[u8]) -> Result<()> {
        match Record::decode(record)? {
            Record::Epoch(batch) => self.epoch(&batch)?,
            Record::Truncate(mark, to) => {
                let of = |dead: &DeadEpochs| {
                    (dead.bucket, dead.above, dead.to) == (mark.bucket, mark.epoch, to)
                };
                if self.manifest.dead.iter().any(of) {
                    self.went_back(mark, to);
                } else {
                    // A crash came before all indexes had gone back.
                    // What was built or has arrived since is not about it.
                    let slots = self.state.of_bucket(mark.bucket).into_iter();
                    for slot in slots.filter(|slot| slot.figures.applied() <= to) {
                        truncate_index(&slot, mark.epoch, self.files)?;
                    }
                    let mut buckets = lock(&self.state.buckets);
                    let progress = buckets.entry(mark.bucket).or_default();
                    let dead = DeadEpochs { bucket: mark.bucket, above: mark.epoch, to };
                    progress.dead.push(dead);
                    self.gone_back.push((mark.clone(), dead));
                    progress.durable = mark.epoch;
                    progress.logged = Some(mark.clone());
                    progress.applied = Some(mark);
                }
            }
        }
        self.begin = end;
        Ok(())
    }

    /// Applies a rollback that all indexes have in their manifests already. Its records say two things that no manifest
    /// does: the bucket stands at the rollback point even if the node had no epoch that old itself, since its slices
    /// came from other copies; and it no longer stands in the epochs that the rollback has undone, also where an
    /// earlier record of the log had led there.
    fn went_back(&self, mark: EpochMark, to: Epoch) {
        let mut buckets = lock(&self.state.buckets);
        let progress = buckets.entry(mark.bucket).or_default();
        // A manifest may know a later epoch than this record: one that came after the rollback.
        let stays = |applied: &EpochMark| applied.epoch == mark.epoch || applied.epoch > to;
        if !progress.applied.as_ref().is_some_and(stays) {
            progress.durable = mark.epoch;
            progress.logged = Some(mark.clone());
            progress.applied = Some(mark);
        }
    }

    fn epoch(&mut self, batch: &EpochBatch) -> Result<()> {
        let mark = &batch.mark;
        let dead = |dead: &DeadEpochs| {
            dead.bucket == mark.bucket && dead.above < mark.epoch && mark.epoch <= dead.to
        };
        let settled = |known: &EpochMark| known.bucket == mark.bucket && mark.epoch <= known.epoch;
        if self.manifest.dead.iter().any(dead) || self.manifest.marks.iter().any(settled) {
            return Ok(());
        }
        apply_epoch(self.state, batch, self.begin)?;
        {
            let mut buckets = lock(&self.state.buckets);
            let progress = buckets.entry(mark.bucket).or_default();
            progress.logged = Some(mark.clone());
            progress.durable = mark.epoch;
        }
        let slots = self.state.of_bucket(mark.bucket);
        self.records += 1;
        if self.records.is_multiple_of(MERGE_EVERY) {
            slots.iter().try_for_each(|slot| merge_index_runs(slot))?;
        }
        while slots.iter().map(|slot| slot.memory_bytes()).sum::<u64>() > self.stop_bytes {
            let Some(largest) = slots.iter().max_by_key(|slot| slot.memory_bytes()) else { break };
            if !flush(largest, self.files)? {
                break;
            }
        }
        Ok(())
    }
}
