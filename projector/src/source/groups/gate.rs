//! The order in which groups become durable and visible.
//!
//! A group of a bucket takes two turns. In the first it is numbered, appended to the bucket's log,
//! and synced. In the second it is added to the document table, and the bucket publishes it. While
//! a group has its second turn, the next group has its first. Both turns are taken in one order, so
//! groups are published in the order of their numbers.
//!
//! Groups between the turns wait in a queue. The thread with the second turn takes the oldest
//! group. Any thread may take the second turn, so a thread that needs all groups published can
//! publish them itself.
//!
//! - While the guard of [`Gate::shown`] exists, documents and bucket agree: the table has exactly
//!   the groups that the bucket has published.
//! - While the guard of [`Gate::close`] exists, no group is between its turns either, so the log
//!   agrees with both.
//!
//! The numbers of groups that are not shown yet are kept in [`Ahead`], under the first turn.
//!
//! **Copies.** A group of a bucket with several copies waits before its second turn until every
//! copy that the leader waits for has it ([`super::links`]). So the gate is closed only when no
//! group waits for another copy ([`Gate::is_settled`]). A leader that lost its role *abandons* the
//! groups that wait: they are added to the document table, which must have all groups of the log,
//! but not published, and their callers get the error that the writes are in doubt.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use proto::Result;
use proto::lock::{lock, try_lock};

use super::ahead::{Ahead, Positions};
use super::links::Links;

/// A function that publishes or abandons a group; returns the remaining work, its answers, which
/// needs no turn.
pub(super) type Show = Box<dyn FnOnce(Fate) -> Answers + Send>;
/// A function that answers the requests of a group.
pub(in crate::source) type Answers = Box<dyn FnOnce() + Send>;

/// The outcome of a logged group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source) enum Fate {
    /// The group is published to readers.
    Shown,
    /// The group is not published: this projector does not lead the bucket any more.
    Abandoned,
}

/// The two turns of a bucket's groups.
#[derive(Default)]
pub struct Gate {
    log: Mutex<Ahead>,
    show: Mutex<()>,
    waiting: Mutex<VecDeque<WaitingGroup>>,
    links: Arc<Links>,
}

/// A group that has had its first turn (it is logged) and waits for its second (its publication).
pub(in crate::source) struct WaitingGroup {
    /// The number of the group in the order in which other copies receive groups.
    pub(in crate::source) number: u64,
    /// The approximate size in bytes.
    pub(in crate::source) bytes: usize,
    /// The work of the group's second turn.
    pub(in crate::source) show: Show,
}

/// The size in bytes up to which a group is small.
pub const SMALL_BYTES_MAX: usize = 64 << 10;
/// The number of small groups that are published together on a thread that must not wait.
const SMALL_GROUPS_MAX: usize = 4;

/// A guard that keeps the gate closed: while the guard exists, no group is between its first and
/// its second turn, so that the log, the documents and the bucket agree.
pub struct ClosedGate<'g> {
    _shown: MutexGuard<'g, ()>,
    _ahead: MutexGuard<'g, Ahead>,
}

impl Gate {
    /// Creates the gate of a bucket with links to its copies.
    pub fn new(links: Arc<Links>) -> Self {
        Self { links, ..Self::default() }
    }

    /// True if no group waits for another copy.
    pub fn is_settled(&self) -> bool {
        let waiting = lock(&self.waiting);
        let durable = self.links.durable();
        waiting.back().is_none_or(|group| group.number <= durable)
    }

    /// Returns true if a group is waiting that all required copies have.
    pub fn has_ready(&self) -> bool {
        let waiting = lock(&self.waiting);
        let durable = self.links.durable();
        waiting.front().is_some_and(|group| group.number <= durable)
    }

    /// The number of groups between their turns.
    pub fn waiting(&self) -> usize {
        lock(&self.waiting).len()
    }

    /// Waits until every group is published, and then closes the gate for further groups. Called
    /// only by the writer's exclusive work, when no group waits for another copy, or when the
    /// bucket has ended and waiting groups are not published.
    pub fn close(&self) -> ClosedGate<'_> {
        let mut ahead = lock(&self.log);
        self.show_waiting();
        let shown = lock(&self.show);
        // The caller that closes the gate may change positions and branches.
        ahead.clear();
        ClosedGate { _shown: shown, _ahead: ahead }
    }

    /// Prevents groups from being published while the guard exists.
    pub fn shown(&self) -> MutexGuard<'_, ()> {
        lock(&self.show)
    }

    /// Runs `also` when no group is in its first turn, and returns the positions after all logged
    /// groups.
    pub(in crate::source) fn logged(
        &self,
        published: impl FnOnce() -> Positions,
        also: impl FnOnce() -> Result<()>,
    ) -> Result<Positions> {
        let mut ahead = lock(&self.log);
        also()?;
        let behind = ahead.take(published);
        let found = behind.clone();
        ahead.put(behind);
        Ok(found)
    }

    /// Locks the first turn, for a group.
    pub(in crate::source) fn log(&self) -> MutexGuard<'_, Ahead> {
        lock(&self.log)
    }

    /// Adds a group after its first turn, which the caller still has. Returns the number of waiting
    /// groups.
    pub(in crate::source) fn push(
        &self,
        _first_turn: &MutexGuard<'_, Ahead>,
        group: WaitingGroup,
    ) -> usize {
        let mut waiting = lock(&self.waiting);
        waiting.push_back(group);
        waiting.len()
    }

    /// Publishes all waiting groups that all required copies have.
    pub fn show_waiting(&self) {
        self.take_waiting(Fate::Shown);
    }

    /// Publishes the waiting groups that all required copies have, as long as they are small and no
    /// other thread has the second turn. This is quick, and costs less than waking another thread.
    /// Returns false if such groups remain.
    pub fn show_small(&self) -> bool {
        for _ in 0..SMALL_GROUPS_MAX {
            let answers = {
                let Some(_turn) = try_lock(&self.show) else { return false };
                match self.next_ready(Fate::Shown, SMALL_BYTES_MAX) {
                    NextReady::None => return true,
                    NextReady::Larger => return false,
                    NextReady::Group(group) => (group.show)(Fate::Shown),
                }
            };
            answers();
        }
        !self.has_ready()
    }

    /// Abandons all waiting groups, and closes the gate. The bucket must have been ended or retired
    /// before, so that it accepts no writes.
    pub fn abandon(&self) -> ClosedGate<'_> {
        let mut ahead = lock(&self.log);
        self.take_waiting(Fate::Abandoned);
        ahead.clear();
        ClosedGate { _shown: lock(&self.show), _ahead: ahead }
    }

    fn take_waiting(&self, fate: Fate) {
        loop {
            let answers = {
                let _turn = lock(&self.show);
                let NextReady::Group(group) = self.next_ready(fate, usize::MAX) else { return };
                (group.show)(fate)
            };
            answers();
        }
    }

    /// Takes the next group from the queue. The caller has the second turn, so that groups are
    /// published in order. The queue is read before the state of the copies: a group that was added
    /// later may need a copy that was not required before.
    fn next_ready(&self, fate: Fate, bytes_max: usize) -> NextReady {
        let mut waiting = lock(&self.waiting);
        let durable = match fate {
            Fate::Shown => self.links.durable(),
            Fate::Abandoned => u64::MAX,
        };
        match waiting.front() {
            Some(next) if next.number <= durable && next.bytes > bytes_max => NextReady::Larger,
            Some(next) if next.number <= durable => {
                waiting.pop_front().map_or(NextReady::None, NextReady::Group)
            }
            _ => NextReady::None,
        }
    }
}

/// The next group for the second turn.
enum NextReady {
    None,
    Group(WaitingGroup),
    /// The next group is larger than the limit, and remains in the queue.
    Larger,
}
