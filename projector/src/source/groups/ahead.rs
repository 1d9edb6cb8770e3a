//! The groups of a bucket that are numbered and not published yet.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proto::model::commits::NewestCommits;
use proto::model::cut::Position;
use proto::model::history::Branches;

use documents::document_store::Batch;
use documents::mutation::Mutation;

/// The positions of a bucket after its numbered groups, and the groups that are not in the document
/// table yet.
#[derive(Default)]
pub(in crate::source) struct Ahead {
    positions: Option<Positions>,
    unshown: VecDeque<GroupBetweenTurns>,
}

/// The ends of the vbuckets, their branches and the newest commits, including all numbered groups.
#[derive(Clone)]
pub(in crate::source) struct Positions {
    pub(in crate::source) next: Vec<Position>,
    pub(in crate::source) branches: Vec<Branches>,
    pub(in crate::source) commits: NewestCommits,
}

/// A group that is logged and not published yet.
pub(in crate::source) struct GroupBetweenTurns {
    batch: Arc<Batch>,
    is_shown: Arc<AtomicBool>,
    newest: LastMutations,
}

/// The number of mutations above which a group is large: a drop of it takes longer than to wake a
/// thread.
const LARGE_MUTATIONS: usize = 10_000;

impl GroupBetweenTurns {
    /// Returns true if a drop of the group takes long.
    pub(in crate::source) fn is_large(&self) -> bool {
        self.batch.mutations.len() > LARGE_MUTATIONS
    }
}

/// An index of the last mutation of each id in a list. A group of upserts needs no look-up, so the
/// ids are sorted only at the first one.
#[derive(Default)]
pub(in crate::source) struct LastMutations {
    places: BTreeMap<Arc<str>, usize>,
    /// The number of mutations that `places` covers.
    indexed: usize,
}

impl LastMutations {
    /// Returns the last mutation of an id. `mutations` must begin with the mutations of the
    /// previous call.
    pub(in crate::source) fn of<'m>(
        &mut self,
        mutations: &'m [Arc<Mutation>],
        id: &str,
    ) -> Option<&'m Mutation> {
        for (at, mutation) in mutations.iter().enumerate().skip(self.indexed) {
            self.places.insert(Arc::clone(&mutation.id), at);
        }
        self.indexed = mutations.len();
        self.places.get(id).map(|at| &*mutations[*at])
    }
}

impl Ahead {
    /// Removes all mutations from the index, because the bucket has published them.
    pub(super) fn clear(&mut self) {
        self.positions = None;
        self.unshown.clear();
    }

    /// Takes the positions, to be returned by [`Self::put`]. `published` returns the bucket's
    /// positions, which are valid if no group is ahead of them.
    pub(in crate::source) fn take(&mut self, published: impl FnOnce() -> Positions) -> Positions {
        self.positions.take().unwrap_or_else(published)
    }

    /// Stores the positions after a group.
    pub(in crate::source) fn put(&mut self, positions: Positions) {
        self.positions = Some(positions);
    }

    /// Adds a logged group. `is_shown` becomes true when the document table has it. Returns the
    /// groups that the table has by now, for the caller to drop, since a drop may take long.
    pub(in crate::source) fn push(
        &mut self,
        batch: Arc<Batch>,
        is_shown: Arc<AtomicBool>,
    ) -> Vec<GroupBetweenTurns> {
        let is_unshown = |group: &GroupBetweenTurns| !group.is_shown.load(Ordering::Acquire);
        // Groups are shown in their order.
        let at = self.unshown.iter().position(is_unshown).unwrap_or(self.unshown.len());
        let shown = self.unshown.drain(..at).collect();
        self.unshown.push_back(GroupBetweenTurns {
            batch,
            is_shown,
            newest: LastMutations::default(),
        });
        shown
    }

    /// Returns all mutations that the document table lacks, and possibly some that were just added
    /// to it.
    pub(in crate::source) fn unshown(&self) -> impl Iterator<Item = &Mutation> {
        self.unshown.iter().flat_map(|group| group.batch.mutations.iter().map(Arc::as_ref))
    }

    /// Returns the last mutation of an id that the document table lacks or has just got; `None` if
    /// the stored document is current.
    pub(in crate::source) fn newest(&mut self, id: &str) -> Option<&Mutation> {
        // A group that is shown meanwhile agrees with the documents.
        let mut unshown = self.unshown.iter_mut().rev();
        unshown.find_map(|group| group.newest.of(&group.batch.mutations, id))
    }
}
