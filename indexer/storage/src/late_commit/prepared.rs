//! A large commit that was written ahead of its epoch.
//!
//! While a projector checks and logs a large commit, the indexers already write its rows (`prepare`), with an epoch that is unknown
//! yet. So little is left to do when the epoch comes, and other epochs of the bucket hardly wait.
//!
//! The rows depend on the entries that the documents had before, since the commit removes these. So the rows count only if none of the
//! documents was changed meanwhile, and if the index has the same slices and groups; otherwise the commit is written anew in its turn
//! (`enter`). The writer marks its beginning before it looks a document up, and each epoch checks its documents after it was applied.
//! So each change is seen by the look-up or by the check.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use proto::Result;
use proto::lock::lock;
use proto::model::ids::{LocalIndexId, SliceNo};

use crate::late_commit::commit_writer::{CommitRows, Target};
use crate::late_commit::usage::Usage;
use crate::rows::columns::Grouping;

/// The rows of a commit that are written, by index.
#[derive(Default)]
pub struct PreparedCommit {
    indexes: BTreeMap<LocalIndexId, PreparedIndex>,
    /// Dropped behind the files.
    _counted: Option<CountedPreparation>,
}

/// Counts a preparation as long as it may have files.
pub struct CountedPreparation(Arc<Usage>);

impl CountedPreparation {
    /// Counts one more.
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
    /// Nothing yet, of a preparation that is counted.
    pub fn counted(usage: &Arc<Usage>) -> Self {
        Self { indexes: BTreeMap::new(), _counted: Some(CountedPreparation::new(usage)) }
    }

    /// Takes what is written of an index.
    pub fn of(&mut self, index: LocalIndexId) -> Option<PreparedIndex> {
        self.indexes.remove(&index)
    }

    /// Adds what is written of an index.
    pub fn add(&mut self, index: LocalIndexId, prepared: PreparedIndex) {
        self.indexes.insert(index, prepared);
    }
}

/// The rows of a commit in one index.
pub struct PreparedIndex {
    slices: Vec<SliceNo>,
    grouping: Grouping,
    rows: CommitRows,
}

impl PreparedIndex {
    /// Rows that were written for an index.
    pub fn new(target: &Target<'_>, rows: CommitRows) -> Self {
        let slices = target.version.slices.keys().copied().collect();
        Self { slices, grouping: target.grouping, rows }
    }

    /// The rows, if the index is still as it was.
    pub fn rows_for(self, target: &Target<'_>) -> Option<CommitRows> {
        let is_same = self.slices.iter().eq(target.version.slices.keys())
            && self.grouping == target.grouping
            && !target.is_building;
        is_same.then_some(self.rows)
    }
}

/// The preparation of a transaction's commit.
#[derive(Default)]
pub struct Preparation {
    has_begun: AtomicBool,
    /// True if a document of the transaction was changed by others since the beginning, or the transaction is not wanted any more.
    is_void: AtomicBool,
    /// Held while the rows are written.
    written: Mutex<Option<PreparedCommit>>,
}

impl Preparation {
    /// Writes the rows, unless that was done before or is not wanted any more. An error voids what is written.
    pub fn write(&self, rows: impl FnOnce() -> Result<PreparedCommit>) -> Result<()> {
        let mut written = lock(&self.written);
        if self.has_begun.swap(true, Ordering::SeqCst) || self.is_void() {
            return Ok(());
        }
        *written = Some(rows().inspect_err(|_| self.void())?);
        Ok(())
    }

    /// Takes what is written, and waits for it if it is being written. Nothing is written from now on.
    pub fn take(&self) -> Option<PreparedCommit> {
        if !self.is_under_way() {
            self.void();
            return None;
        }
        let written = lock(&self.written).take();
        written.filter(|_| !self.is_void())
    }

    /// True if changes of the documents matter.
    pub fn is_under_way(&self) -> bool {
        self.has_begun.load(Ordering::SeqCst) && !self.is_void()
    }

    /// The transaction changes: its last place was none.
    pub fn void_what_is_written(&self) {
        if self.is_under_way() {
            self.void();
        }
    }

    /// Makes what is written worthless, and ends the writing soon.
    pub fn void(&self) {
        self.is_void.store(true, Ordering::SeqCst);
    }

    /// True if what is written is worthless.
    pub fn is_void(&self) -> bool {
        self.is_void.load(Ordering::SeqCst)
    }
}
