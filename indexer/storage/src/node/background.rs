//! Background workers: a bounded number of each kind, and for flushes and compactions at most one
//! per index.

use std::sync::Arc;

use crate::index::local_index::LocalIndex;

/// Kinds of background work. The workers of one kind never wait for another kind.
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
    /// Error message of the last flush or compaction, if it failed.
    pub trouble: Option<String>,
}

/// The running workers of one kind.
#[derive(Default)]
pub struct Workers {
    running: usize,
    /// True if new work arrived while all workers were busy: a worker checks for work again before
    /// it ends.
    again: bool,
    /// Indexes that workers are working on.
    taken: Vec<Arc<LocalIndex>>,
}

impl Background {
    /// Returns the running workers of a kind.
    pub fn workers(&mut self, kind: WorkKind) -> &mut Workers {
        &mut self.workers[kind as usize]
    }
}

impl Workers {
    /// Registers another worker and returns true. If `workers_max` workers are running, returns
    /// false, and one of them will look for more work.
    pub fn begin(&mut self, workers_max: usize) -> bool {
        let may = self.running < workers_max;
        match may {
            true => self.running += 1,
            false => self.again = true,
        }
        may
    }

    /// Ends a worker that found no more work and returns true; returns false if new work has
    /// arrived, for which the worker must check again.
    pub fn end(&mut self) -> bool {
        let ends = !std::mem::take(&mut self.again);
        self.running -= usize::from(ends);
        ends
    }

    /// Returns true if no worker runs.
    pub fn is_idle(&self) -> bool {
        self.running == 0
    }

    /// Returns true if no index is reserved by a worker.
    pub fn has_no_reservation(&self) -> bool {
        self.taken.is_empty()
    }

    /// Returns true if a worker works on the index.
    pub fn has(&self, index: &Arc<LocalIndex>) -> bool {
        self.taken.iter().any(|taken| Arc::ptr_eq(taken, index))
    }

    /// Reserves an index for a worker.
    pub fn reserve(&mut self, index: &Arc<LocalIndex>) {
        self.taken.push(Arc::clone(index));
    }

    /// Ends the reservation of an index.
    pub fn release(&mut self, index: &Arc<LocalIndex>) {
        self.taken.retain(|taken| !Arc::ptr_eq(taken, index));
    }
}
