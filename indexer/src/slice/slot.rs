//! One index of the memory store: what its writer keeps, and what readers see of it.
//!
//! Readers take an `Arc` of what is visible and are never waited for. The writer's part is behind a
//! lock that only the bucket's writer and a merge that puts its result in place ever take.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use arc_swap::ArcSwap;
use proto::Result;
use proto::cut::EpochMark;
use proto::ids::{Epoch, SliceNo};
use proto::index::IndexInfo;
use proto::mutation::KeyVersions;

use super::back_index::BackIndex;
use super::build::Build;
use super::changes::Changes;
use super::old_compaction::choose;
use super::old_merge::compact;
use super::run::Run;

/// One index.
pub(super) struct Slot {
    pub info: Arc<IndexInfo>,
    pub writer: Mutex<Writer>,
    pub visible: ArcSwap<Visible>,
}

/// What readers see of an index.
#[derive(Clone, Default)]
pub(super) struct Visible {
    pub runs: Vec<Arc<Run>>,
    /// The oldest epoch that can be answered; `None` while the index is being built.
    pub floor: Option<Epoch>,
}

impl Visible {
    /// Bytes of each run, the oldest first.
    fn sizes(&self) -> Vec<usize> {
        self.runs.iter().map(|run| run.size()).collect()
    }
}

/// What only the writer touches.
#[derive(Default)]
pub(super) struct Writer {
    pub back: BackIndex,
    pub build: Option<Build>,
    /// Entries at the newest epoch, by slice.
    pub entries: BTreeMap<SliceNo, i64>,
    /// A merge in the background reads some of the runs.
    compacting: bool,
    horizon: Epoch,
}

/// Locks; what a panicking holder left is still whole enough to be read.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Slot {
    /// An index without anything to be seen.
    pub fn new(info: Arc<IndexInfo>) -> Self {
        Self { info, writer: Mutex::default(), visible: ArcSwap::default() }
    }

    /// Applies the states of some documents; `gap` raises the floor.
    pub fn apply(&self, mark: &EpochMark, states: &[KeyVersions<'_>], gap: bool) -> Result<()> {
        let mut writer = lock(&self.writer);
        writer.horizon = writer.horizon.max(mark.horizon);
        let (id, generation) = (self.info.id, self.info.generation);
        let mine = states.iter().filter_map(|versions| {
            let keys =
                versions.indexes().find(|keys| (keys.index, keys.generation) == (id, generation));
            keys.map(|keys| (versions, keys))
        });
        if let Some(build) = &mut writer.build {
            for (versions, keys) in mine {
                build.set(versions.id, versions.seqno_minus_base, &keys);
            }
            return Ok(());
        }
        let mut changes = Changes::default();
        for (versions, keys) in mine {
            changes.document(&mut writer, versions.id, &keys);
        }
        let run = changes.into_run(mark.epoch);
        if run.is_some() || gap {
            let mut next = Visible::clone(&self.visible.load());
            next.runs.extend(run.map(Arc::new));
            if gap {
                next.floor = next.floor.max(Some(mark.epoch));
            }
            self.visible.store(Arc::new(next));
        }
        Ok(())
    }

    /// Shows what a build has gathered.
    pub fn finish(&self, build: &Build, epoch: Epoch) -> Result<()> {
        let (runs, back) = build.finish(epoch)?;
        let mut writer = lock(&self.writer);
        writer.entries.clear();
        for (slice, rows) in runs.iter().flat_map(Run::slices) {
            *writer.entries.entry(slice).or_default() += i64::from(rows.end - rows.start);
        }
        writer.back = back;
        writer.build = None;
        let runs = runs.into_iter().map(Arc::new).collect();
        self.visible.store(Arc::new(Visible { runs, floor: Some(epoch) }));
        Ok(())
    }

    /// Is there a merge to make?
    pub fn is_worth_compacting(&self) -> bool {
        choose(&self.visible.load().sizes()).is_some()
    }

    /// Merges runs where that pays, unless somebody does already.
    pub fn compact(&self) {
        if let Some((at, runs, horizon)) = self.begin_compaction() {
            let merged = compact(&runs, horizon, at == 0);
            self.end_compaction(at, &runs, merged, horizon);
        }
    }

    fn begin_compaction(&self) -> Option<(usize, Vec<Arc<Run>>, Epoch)> {
        let mut writer = lock(&self.writer);
        if writer.compacting {
            return None;
        }
        let visible = self.visible.load();
        let range = choose(&visible.sizes())?;
        writer.compacting = true;
        Some((range.start, visible.runs[range].to_vec(), writer.horizon))
    }

    /// Puts a merged run in the place of its inputs, if they are still there as one piece.
    fn end_compaction(&self, at: usize, inputs: &[Arc<Run>], merged: Option<Run>, horizon: Epoch) {
        let mut writer = lock(&self.writer);
        writer.compacting = false;
        let mut next = Visible::clone(&self.visible.load());
        let there = next.runs.get(at..at + inputs.len()).is_some_and(|runs| {
            runs.iter().zip(inputs).all(|(left, right)| Arc::ptr_eq(left, right))
        });
        if there {
            next.runs.splice(at..at + inputs.len(), merged.map(Arc::new));
            next.floor = next.floor.map(|floor| floor.max(horizon));
            self.visible.store(Arc::new(next));
        }
    }
}
