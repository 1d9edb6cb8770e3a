//! The groups of a bucket that are numbered and not visible yet.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proto::model::commits::NewestCommits;
use proto::model::cut::Position;
use proto::model::history::Branches;

use documents::document_store::Batch;
use documents::mutation::Mutation;

/// The positions of a bucket after the numbered groups, and the groups that are not shown yet.
#[derive(Default)]
pub(in crate::source) struct Ahead {
    positions: Option<Positions>,
    unshown: VecDeque<GroupBetweenTurns>,
}

/// The ends of the vbuckets, their branches and the newest commits, with everything that was numbered.
#[derive(Clone)]
pub(in crate::source) struct Positions {
    pub(in crate::source) next: Vec<Position>,
    pub(in crate::source) branches: Vec<Branches>,
    pub(in crate::source) commits: NewestCommits,
}

/// A group between its turns.
pub(in crate::source) struct GroupBetweenTurns {
    batch: Arc<Batch>,
    is_shown: Arc<AtomicBool>,
    newest: LastMutations,
}

/// A group of more mutations is large: to drop it takes longer than to wake a thread.
const LARGE_MUTATIONS: usize = 10_000;

impl GroupBetweenTurns {
    /// True if it takes long to drop the group.
    pub(in crate::source) fn is_large(&self) -> bool {
        self.batch.mutations.len() > LARGE_MUTATIONS
    }
}

/// The last mutation of each id among some mutations. Upserts need no look-up, so the ids are sorted only at the first
/// one.
#[derive(Default)]
pub(in crate::source) struct LastMutations {
    places: BTreeMap<Arc<str>, usize>,
    /// The number of mutations that `places` covers.
    indexed: usize,
}

impl LastMutations {
    /// The last mutation of an id. The mutations are those of the last call, possibly with more after them.
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
    /// Forgets everything; the bucket has it all.
    pub(super) fn clear(&mut self) {
        self.positions = None;
        self.unshown.clear();
    }

    /// Takes the positions, to be put back by [`Self::put`]. `published` are those of the bucket, which count if no group is
    /// ahead of it.
    pub(in crate::source) fn take(&mut self, published: impl FnOnce() -> Positions) -> Positions {
        self.positions.take().unwrap_or_else(published)
    }

    /// Keeps the positions after a group.
    pub(in crate::source) fn put(&mut self, positions: Positions) {
        self.positions = Some(positions);
    }

    /// Adds a group between its turns. `is_shown` becomes true when the documents have it. Returns the groups that are shown: to drop a
    /// large one takes long.
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

    /// All mutations that are not shown yet, or were shown a moment ago.
    pub(in crate::source) fn unshown(&self) -> impl Iterator<Item = &Mutation> {
        self.unshown.iter().flat_map(|group| group.batch.mutations.iter().map(Arc::as_ref))
    }

    /// The last mutation of an id that is not shown yet, or was just shown. `None` if the stored document is current.
    pub(in crate::source) fn newest(&mut self, id: &str) -> Option<&Mutation> {
        // A group that is shown meanwhile agrees with the documents.
        let mut unshown = self.unshown.iter_mut().rev();
        unshown.find_map(|group| group.newest.of(&group.batch.mutations, id))
    }
}
