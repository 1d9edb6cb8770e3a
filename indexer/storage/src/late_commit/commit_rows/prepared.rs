//! A large commit that was written ahead of its epoch.
//!
//! While a projector checks and logs a large commit, the indexers already write its rows
//! (`prepare`), with an epoch that is unknown yet. So little work is left when the epoch arrives,
//! and other epochs of the bucket hardly wait.
//!
//! The rows depend on the entries that the documents had before, since the commit removes these. A
//! document that another mutation changes meanwhile is *noted*, and looked up once more when the
//! epoch arrives (`correction`). The writer marks its beginning before it looks a document up, and
//! each epoch notes its documents after it was applied. So each change is found by the look-up, or
//! noted, or both.
//!
//! If too many documents are noted, or another commit by a marker belongs to the same epoch or to
//! an earlier epoch that is still to be applied, the commit is written again when its epoch is
//! applied (`enter`). If the slices or groups of an index have changed by then, the commit's part
//! in this index is written again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use proto::Result;
use proto::lock::lock;
use proto::model::ids::{LocalIndexId, SliceNo};

use crate::files::data_files::DataFiles;
use crate::late_commit::changes::usage::Usage;
use crate::late_commit::commit_rows::states::LookedUp;
use crate::late_commit::commit_rows::writer::{CommitRows, Target};
use crate::read::slice_fragments::SliceFragments;
use crate::rows::columns::Grouping;

/// The largest size in bytes of all noted documents.
const NOTED_BYTES_MAX: usize = 1 << 20;
/// The size in bytes of a noted document without its id.
const NOTED_BYTES: usize = 64;

/// The rows of a commit that were written ahead of its epoch, by index.
#[derive(Default)]
pub struct PreparedCommit {
    indexes: BTreeMap<LocalIndexId, PreparedIndex>,
    /// The documents that were noted.
    pub changed: ChangedIds,
    /// A guard that is dropped after the files.
    _counted: Option<CountedPreparation>,
}

/// Counts a preparation as long as it may have files.
pub struct CountedPreparation(Arc<Usage>);

impl CountedPreparation {
    /// Registers one more preparation in the usage counters.
    pub fn new(usage: &Arc<Usage>) -> Self {
        usage.prepared.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(usage))
    }
}

impl Drop for CountedPreparation {
    fn drop(&mut self) {
        self.0.prepared.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PreparedCommit {
    /// Creates an empty commit of a preparation that is already counted.
    pub fn counted(usage: &Arc<Usage>) -> Self {
        Self { _counted: Some(CountedPreparation::new(usage)), ..Self::default() }
    }

    /// Returns true if no row was written.
    pub fn is_empty(&self) -> bool {
        self.indexes.is_empty()
    }

    /// Removes and returns the rows that were written for an index.
    pub fn of(&mut self, index: LocalIndexId) -> Option<PreparedIndex> {
        self.indexes.remove(&index)
    }

    /// Adds the rows that were written for an index.
    pub fn add(&mut self, index: LocalIndexId, prepared: PreparedIndex) {
        self.indexes.insert(index, prepared);
    }
}

/// Ids of documents.
pub type ChangedIds = BTreeSet<Vec<u8>>;

/// The rows of a commit in one index, with the fragments that their look-ups read.
pub struct PreparedIndex {
    before: HeldStates,
    grouping: Grouping,
    rows: CommitRows,
}

/// The fragments in which the documents were looked up. This value keeps their files, even if
/// compactions have replaced them.
pub struct HeldStates {
    slices: LookedUp,
    files: Arc<DataFiles>,
}

impl HeldStates {
    fn of(target: &Target<'_>) -> Self {
        let back_alone = |(slice, fragments): (&SliceNo, &Arc<SliceFragments>)| {
            let back = fragments.back.clone();
            (*slice, Arc::new(SliceFragments { back, ..SliceFragments::default() }))
        };
        let slices = target.version.slices.iter().map(back_alone).collect();
        Self { slices, files: Arc::clone(target.files) }
    }

    /// The fragments by slice.
    pub fn slices(&self) -> &LookedUp {
        &self.slices
    }
}

impl Drop for HeldStates {
    fn drop(&mut self) {
        self.slices.clear();
        self.files.delete_retired();
    }
}

impl PreparedIndex {
    /// Rows that were written for an index.
    pub fn new(target: &Target<'_>, rows: CommitRows) -> Self {
        Self { before: HeldStates::of(target), grouping: target.grouping, rows }
    }

    /// Returns the rows and the fragments of their look-ups; `None` if the slices or groups of the
    /// index have changed since.
    pub fn rows_for(self, target: &Target<'_>) -> Option<(CommitRows, HeldStates)> {
        let is_same = self.before.slices.keys().eq(target.version.slices.keys())
            && self.grouping == target.grouping
            && !target.is_building;
        is_same.then_some((self.rows, self.before))
    }
}

/// The state of the preparation of a transaction's commit.
#[derive(Default)]
pub struct Preparation {
    has_begun: AtomicBool,
    /// True if the written rows must not be used, or are no longer needed.
    is_void: AtomicBool,
    noted: Mutex<ForeignChanges>,
    /// The written rows; locked while they are written.
    written: Mutex<Option<PreparedCommit>>,
}

/// The documents of the transaction that other mutations have changed since the preparation began.
#[derive(Default)]
struct ForeignChanges {
    ids: ChangedIds,
    bytes: usize,
}

impl Preparation {
    /// Writes the rows, unless they were written before or are no longer needed. An error makes the written rows void.
    pub fn write(&self, rows: impl FnOnce() -> Result<PreparedCommit>) -> Result<()> {
        let mut written = lock(&self.written);
        if self.has_begun.swap(true, Ordering::SeqCst) || self.is_void() {
            return Ok(());
        }
        *written = Some(rows().inspect_err(|_| self.void())?);
        Ok(())
    }

    /// Returns the written rows, after a wait if they are being written; `None` if they are void.
    /// No rows are written afterwards.
    pub fn take(&self) -> Option<PreparedCommit> {
        if !self.is_under_way() {
            self.void();
        }
        let mut written = lock(&self.written).take()?;
        written.changed = std::mem::take(&mut lock(&self.noted).ids);
        (!self.is_void()).then_some(written)
    }

    /// Records a document of the transaction that another mutation has changed.
    pub fn note(&self, id: &[u8]) {
        let mut noted = lock(&self.noted);
        if noted.ids.contains(id) {
            return;
        }
        noted.bytes += id.len() + NOTED_BYTES;
        match noted.bytes <= NOTED_BYTES_MAX {
            true => drop(noted.ids.insert(id.to_owned())),
            false => self.void(),
        }
    }

    /// Returns true if changes of the documents must be recorded.
    pub fn is_under_way(&self) -> bool {
        self.has_begun.load(Ordering::SeqCst) && !self.is_void()
    }

    /// Makes the written rows void, because the transaction changes after the place that was taken
    /// for its last one.
    pub fn void_what_is_written(&self) {
        if self.is_under_way() {
            self.void();
        }
    }

    /// Makes the written rows void, and stops a write in progress.
    pub fn void(&self) {
        self.is_void.store(true, Ordering::SeqCst);
    }

    /// Returns true if the written rows must not be used.
    pub fn is_void(&self) -> bool {
        self.is_void.load(Ordering::SeqCst)
    }
}
