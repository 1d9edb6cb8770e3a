//! A large commit that was written ahead of its epoch.
//!
//! While a projector checks and logs a large commit, the indexers already write its rows
//! (`prepare`), with an epoch that is unknown yet. So little work is left when the epoch arrives,
//! and other epochs of the bucket hardly wait.
//!
//! The rows depend on the entries that the documents had before, since the commit removes these. A
//! document that another mutation changes meanwhile is *noted*, and looked up once more when the
//! epoch arrives (`correction`). The writer records that it has begun before it looks up any
//! document, and each epoch notes its documents after it was applied. So each change is found by
//! the look-up, or noted, or both.
//!
//! If too many documents are noted, or another large commit belongs to the same epoch or to an
//! earlier epoch that is still to be applied, the commit is written again when its epoch is
//! applied (`enter`). If the slices or groups of an index have changed by then, the commit's rows
//! in this index are written again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use proto::Result;
use proto::lock::lock;
use proto::model::ids::{LocalIndexId, SliceNo};

use crate::files::data_files::DataFiles;
use crate::late_commit::changes::usage::Usage;
use crate::late_commit::commit_rows::states::BackFragments;
use crate::late_commit::commit_rows::writer::{CommitRows, Target};
use crate::read::slice_fragments::SliceFragments;
use crate::rows::columns::Grouping;

/// The maximum total size in bytes of the noted documents. A document is noted if another mutation
/// changes it while a commit is prepared.
const NOTED_BYTES_MAX: usize = 1 << 20;
/// Memory that a noted document takes in addition to its id, in bytes.
const NOTED_BYTES: usize = 64;

/// The rows of a commit that were written ahead of its epoch, by index.
#[derive(Default)]
pub struct PreparedCommit {
    indexes: BTreeMap<LocalIndexId, PreparedIndex>,
    /// The ids of the documents that other mutations have changed meanwhile.
    pub changed: ChangedIds,
    /// A guard that counts the preparation; dropped after the files.
    _counted: Option<CountedPreparation>,
}

/// A guard that counts a preparation in the usage counters, as long as its files may exist.
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
    /// Creates an empty value, which the usage counters count.
    pub fn with_counter(usage: &Arc<Usage>) -> Self {
        Self { _counted: Some(CountedPreparation::new(usage)), ..Self::default() }
    }

    /// Returns true if no rows were written in any index.
    pub fn is_empty(&self) -> bool {
        self.indexes.is_empty()
    }

    /// Removes and returns the rows of the commit in an index.
    pub fn take_index(&mut self, index: LocalIndexId) -> Option<PreparedIndex> {
        self.indexes.remove(&index)
    }

    /// Adds the rows of the commit in an index.
    pub fn add(&mut self, index: LocalIndexId, prepared: PreparedIndex) {
        self.indexes.insert(index, prepared);
    }
}

/// The ids of the documents that other mutations have changed during a preparation.
pub type ChangedIds = BTreeSet<Vec<u8>>;

/// The rows of a commit in one index, with the fragments in which its documents were looked up.
pub struct PreparedIndex {
    before: LookUpFragments,
    grouping: Grouping,
    rows: CommitRows,
}

/// The fragments in which a commit's documents were looked up. The files are not deleted while
/// this value exists, even if compactions have replaced them.
pub struct LookUpFragments {
    slices: BackFragments,
    files: Arc<DataFiles>,
}

impl LookUpFragments {
    /// Returns the present back-index fragments of an index.
    fn of(target: &Target<'_>) -> Self {
        let back_alone = |(slice, fragments): (&SliceNo, &Arc<SliceFragments>)| {
            let back = fragments.back.clone();
            (*slice, Arc::new(SliceFragments { back, ..SliceFragments::default() }))
        };
        let slices = target.version.slices.iter().map(back_alone).collect();
        Self { slices, files: Arc::clone(target.files) }
    }

    /// Returns the fragments by slice.
    pub fn slices(&self) -> &BackFragments {
        &self.slices
    }
}

impl Drop for LookUpFragments {
    fn drop(&mut self) {
        self.slices.clear();
        self.files.delete_retired();
    }
}

impl PreparedIndex {
    /// Creates the value from rows that were just written for an index.
    pub fn new(target: &Target<'_>, rows: CommitRows) -> Self {
        Self { before: LookUpFragments::of(target), grouping: target.grouping, rows }
    }

    /// Returns the rows and the fragments of their look-ups; `None` if the slices or column groups
    /// of the index have changed since they were written.
    pub fn rows_for(self, target: &Target<'_>) -> Option<(CommitRows, LookUpFragments)> {
        let is_same = self.before.slices.keys().eq(target.version.slices.keys())
            && self.grouping == target.grouping
            && !target.is_building;
        is_same.then_some((self.rows, self.before))
    }
}

/// The progress of writing a transaction's commit ahead of its epoch.
#[derive(Default)]
pub struct Preparation {
    has_begun: AtomicBool,
    /// True if rows written ahead of the epoch must not be used, or are no longer needed.
    is_void: AtomicBool,
    noted: Mutex<ForeignChanges>,
    /// The rows written ahead of the epoch; locked while they are written.
    written: Mutex<Option<PreparedCommit>>,
}

/// The documents of the transaction that other mutations have changed since its rows began to be
/// written.
#[derive(Default)]
struct ForeignChanges {
    ids: ChangedIds,
    bytes: usize,
}

impl Preparation {
    /// Writes the rows with the function `rows`, unless that was done before or is no longer
    /// needed. After an error no written rows are used.
    pub fn write(&self, rows: impl FnOnce() -> Result<PreparedCommit>) -> Result<()> {
        let mut written = lock(&self.written);
        if self.has_begun.swap(true, Ordering::SeqCst) || self.is_invalid() {
            return Ok(());
        }
        *written = Some(rows().inspect_err(|_| self.invalidate())?);
        Ok(())
    }

    /// Removes and returns the written rows; waits while they are being written. Returns `None` if
    /// they must not be used. No rows are written after this call.
    pub fn take_rows(&self) -> Option<PreparedCommit> {
        if !self.is_active() {
            self.invalidate();
        }
        let mut written = lock(&self.written).take()?;
        written.changed = std::mem::take(&mut lock(&self.noted).ids);
        (!self.is_invalid()).then_some(written)
    }

    /// Records that another mutation has changed a document of the transaction. If too many
    /// documents are recorded, the written rows will not be used.
    pub fn note_change(&self, id: &[u8]) {
        let mut noted = lock(&self.noted);
        if noted.ids.contains(id) {
            return;
        }
        noted.bytes += id.len() + NOTED_BYTES;
        match noted.bytes <= NOTED_BYTES_MAX {
            true => drop(noted.ids.insert(id.to_owned())),
            false => self.invalidate(),
        }
    }

    /// Returns true if writing has begun and its rows may still be used: then changes of the
    /// transaction's documents must be recorded.
    pub fn is_active(&self) -> bool {
        self.has_begun.load(Ordering::SeqCst) && !self.is_invalid()
    }

    /// Forbids the use of rows written so far, because the transaction changes again after the
    /// change that was taken for its last one.
    pub fn void_if_begun(&self) {
        if self.is_active() {
            self.invalidate();
        }
    }

    /// Forbids the use of the rows, and stops a write in progress.
    pub fn invalidate(&self) {
        self.is_void.store(true, Ordering::SeqCst);
    }

    /// Returns true if the written rows must not be used.
    pub fn is_invalid(&self) -> bool {
        self.is_void.load(Ordering::SeqCst)
    }
}
