//! Workers in the background: a bounded number of each kind, and for flushes and compactions one for each index.

use std::sync::Arc;

use crate::index::local_index::LocalIndex;

/// Kinds of work. No kind waits for another.
#[derive(Clone, Copy, Debug)]
pub enum WorkKind {
    MergeRuns,
    Flush,
    Compact,
}

/// The background work of a node.
#[derive(Default)]
pub struct Background {
    workers: [Workers; 3],
    /// Error of the last flush or compaction.
    pub trouble: Option<String>,
}

/// The workers of one kind.
#[derive(Default)]
pub struct Workers {
    running: usize,
    /// True if new work arrived while all workers were busy: a worker that would end checks again.
    again: bool,
    /// Indexes that workers have.
    taken: Vec<Arc<LocalIndex>>,
}

impl Background {
    /// The workers of a kind.
    pub fn workers(&mut self, kind: WorkKind) -> &mut Workers {
        &mut self.workers[kind as usize]
    }
}

impl Workers {
    /// True if another worker may begin; it then counts as running.
    pub fn begin(&mut self, workers_max: usize) -> bool {
        let may = self.running < workers_max;
        match may {
            true => self.running += 1,
            false => self.again = true,
        }
        may
    }

    /// True if a worker that found no more work may end. Otherwise work has come meanwhile.
    pub fn end(&mut self) -> bool {
        let ends = !std::mem::take(&mut self.again);
        self.running -= usize::from(ends);
        ends
    }

    /// True if no worker runs.
    pub fn is_idle(&self) -> bool {
        self.running == 0
    }

    /// True if no worker has an index.
    pub fn is_at_rest(&self) -> bool {
        self.taken.is_empty()
    }

    /// True if a worker has the index.
    pub fn has(&self, index: &Arc<LocalIndex>) -> bool {
        self.taken.iter().any(|taken| Arc::ptr_eq(taken, index))
    }

    /// Gives an index to a worker.
    pub fn take(&mut self, index: &Arc<LocalIndex>) {
        self.taken.push(Arc::clone(index));
    }

    /// Takes an index back from its worker.
    pub fn give_back(&mut self, index: &Arc<LocalIndex>) {
        self.taken.retain(|taken| !Arc::ptr_eq(taken, index));
    }
}
