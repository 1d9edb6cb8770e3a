//! The groups of a bucket that are numbered but not yet visible to readers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proto::model::commits::NewestCommits;
use proto::model::cut::Position;
use proto::model::history::Branches;

use documents::document_store::Batch;
use documents::mutation::Mutation;

/// The numbered groups of a bucket that are not in the document table yet, and the bucket's
/// positions after them.
#[derive(Default)]
pub(in crate::source) struct UnshownGroups {
    positions: Option<Positions>,
    unshown: VecDeque<GroupBetweenTurns>,
}

/// The positions of a bucket after all numbered groups: the end and the branches of each vbucket,
/// and the newest commits.
#[derive(Clone)]
pub(in crate::source) struct Positions {
    pub(in crate::source) next: Vec<Position>,
    pub(in crate::source) branches: Vec<Branches>,
    pub(in crate::source) commits: NewestCommits,
}

/// A group that is in the log, and not yet visible to readers.
pub(in crate::source) struct GroupBetweenTurns {
    batch: Arc<Batch>,
    is_shown: Arc<AtomicBool>,
    newest: LastMutations,
}

/// The number of mutations above which a group is large: freeing its memory takes longer than
/// waking another thread.
const LARGE_MUTATIONS: usize = 10_000;

impl GroupBetweenTurns {
    /// Returns true if freeing the group's memory takes long.
    pub(in crate::source) fn is_large(&self) -> bool {
        self.batch.mutations.len() > LARGE_MUTATIONS
    }
}

/// Finds the last mutation of an id in a list of mutations. The index is built at the first
/// look-up, because a group of upserts needs none.
#[derive(Default)]
pub(in crate::source) struct LastMutations {
    places: BTreeMap<Arc<str>, usize>,
    /// The number of mutations that `places` covers.
    indexed: usize,
}

impl LastMutations {
    /// Returns the last mutation of an id in `mutations`. The list may only grow at its end
    /// between two calls.
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

impl UnshownGroups {
    /// Removes all groups and positions, because the bucket has published all groups.
    pub(super) fn clear(&mut self) {
        self.positions = None;
        self.unshown.clear();
    }

    /// Takes the positions after all numbered groups; the caller returns the new ones with
    /// [`Self::put`]. If there are no unpublished groups, the positions are those that
    /// `published` returns.
    pub(in crate::source) fn take_positions(
        &mut self,
        published: impl FnOnce() -> Positions,
    ) -> Positions {
        self.positions.take().unwrap_or_else(published)
    }

    /// Stores the positions after a further numbered group.
    pub(in crate::source) fn put_positions(&mut self, positions: Positions) {
        self.positions = Some(positions);
    }

    /// Adds a group that is in the log. `is_shown` becomes true when the document table has the
    /// group. Returns the earlier groups that the table has now; the caller drops them, since
    /// that may take long.
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

    /// Iterates over all mutations that the document table lacks, and possibly some that it has
    /// just received.
    pub(in crate::source) fn unshown(&self) -> impl Iterator<Item = &Mutation> {
        self.unshown.iter().flat_map(|group| group.batch.mutations.iter().map(Arc::as_ref))
    }

    /// Returns the last mutation of an id that the document table may lack; `None` if the
    /// document in the table is the newest.
    pub(in crate::source) fn newest(&mut self, id: &str) -> Option<&Mutation> {
        // A group that is shown meanwhile agrees with the documents.
        let mut unshown = self.unshown.iter_mut().rev();
        unshown.find_map(|group| group.newest.of(&group.batch.mutations, id))
    }
}
