//! A vbucket of the producer: its branches, its log, and the end that is known to be stored.

use std::sync::Arc;

use projector::testing::Mutation;
use proto::model::cut::Position;
use proto::model::history::{Branches, SourceHistory, branch_of};
use proto::model::ids::{Seqno, VbucketId, Vbuuid};

/// The mutations of a vbucket, in the order of their seqnos from 1.
pub(super) type Log = Vec<Arc<Mutation>>;

/// The producer's state of a vbucket.
#[derive(Default)]
pub(super) struct Feed {
    pub(super) branches: Branches,
    pub(super) log: Log,
    /// The lost histories.
    pub(super) past: Vec<(Branches, Log)>,
    /// The length of the log that is known to be stored.
    pub(super) taken: usize,
    /// True if the projector's state is unknown.
    pub(super) unsure: bool,
    /// The end of the projector's log after it has lost acknowledged mutations, as only the judge
    /// knows.
    pub(super) lost_behind: Option<u64>,
    /// A seqno after which some copy that may still become the owner may lack mutations. A
    /// successful push clears it.
    pub(super) lacks_behind: Option<u64>,
    /// The number of such losses.
    pub(super) losses: u64,
}

impl Feed {
    /// Returns the end of the acknowledged mutations, excluding those that some copy may lack.
    pub(super) fn acknowledged(&self) -> Position {
        self.position(self.lacks_behind.unwrap_or(u64::MAX).min(self.taken as u64))
    }

    pub(super) fn position(&self, seqno: u64) -> Position {
        Position { vbuuid: branch_of(&self.branches, Seqno(seqno)), seqno: Seqno(seqno) }
    }

    pub(super) fn history_with(&self, position: Position) -> Option<(&Branches, &Log)> {
        let present = std::iter::once((&self.branches, &self.log));
        let past = self.past.iter().rev().map(|(branches, log)| (branches, log));
        let has = |(branches, log): &(&Branches, &Log)| {
            log.len() as u64 >= position.seqno.0
                && (position.seqno.0 == 0 || branch_of(branches, position.seqno) == position.vbuuid)
        };
        present.chain(past).find(has)
    }

    /// Returns a text about acknowledged mutations that the projector lacks without a known reason.
    /// A failover of the source shortens the acknowledged log, and the judge knows of restored
    /// disks. The projector is only checked up to `asked_for`, the position acknowledged before the
    /// request; nothing is judged if the history has changed since.
    pub(super) fn lacks(
        &self,
        vbucket: VbucketId,
        asked_for: Position,
        there: &SourceHistory,
    ) -> Option<String> {
        if self.position(asked_for.seqno.0) != asked_for {
            return None;
        }
        let taken = asked_for.seqno.0.min(self.taken as u64);
        let taken = self.lacks_behind.unwrap_or(u64::MAX).min(taken);
        let (taken, end) = (self.position(taken), there.durable.get(vbucket));
        let is_there = end.seqno >= taken.seqno && there.logs.includes(vbucket, taken);
        (!is_there).then(|| {
            format!("acknowledged and lost: vbucket {vbucket} ends at {end:?}, {taken:?} was taken")
        })
    }

    /// Records that a projector has all mutations up to a seqno.
    pub(super) fn is_there(&mut self, seqno: u64) {
        let rest = self.lost_behind.filter(|_| seqno < self.log.len() as u64);
        self.lost_behind = rest.map(|behind| behind.max(seqno));
    }

    /// Returns the next push of a vbucket: a new branch if there is one, and the range of mutations
    /// after it.
    pub(super) fn next_push(
        &self,
        there: &Branches,
        end: u64,
    ) -> (Option<(Vbuuid, u64)>, std::ops::Range<usize>) {
        let unknown = |branch: &&(Vbuuid, u64)| !there.iter().any(|known| known.0 == branch.0);
        let mut missing = self.branches.iter().rev().filter(unknown);
        let (branch, from) = match missing.clone().next() {
            // An empty vbucket takes its first branch from its first mutation.
            Some((_, began)) if *began <= end && !there.is_empty() => {
                (missing.next().copied(), *began)
            }
            _ => (None, end),
        };
        if there.is_empty() {
            missing.next();
        }
        let to = missing.next().map_or(self.log.len(), |(_, began)| *began as usize);
        (branch, (from as usize).min(to)..to.min(self.log.len()))
    }
}
