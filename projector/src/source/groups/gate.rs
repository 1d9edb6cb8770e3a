//! The order in which groups become durable and visible.
//!
//! A group of a bucket takes two turns. In the first it is numbered, appended to the bucket's log, and synced. In the second it is added to
//! the document table, and the bucket publishes it. While a group has its second turn the next one has its first. Both turns are taken in
//! one order, so a group is published before all that were numbered after it.
//!
//! Groups between the turns wait in a queue. The thread with the second turn takes the oldest group, and it may be any thread, so a thread
//! that needs all groups shown can show them itself.
//!
//! - While [`Gate::shown`] is held, documents and bucket agree: the table has exactly what the bucket has published.
//! - While [`Gate::close`] is held, no group is between its turns either, so the log agrees with both.
//!
//! The numbers of groups that are not shown yet are kept in [`Ahead`], under the first turn.
//!
//! **Copies.** A group of a bucket with several copies waits before its second turn until every copy that the leader awaits has it
//! ([`super::links`]). So the gate is closed only when no group waits for another copy ([`Gate::is_settled`]). A leader that lost its role
//! *abandons* the groups that wait: they are added to the document table, which follows the log, but not published, and their callers get
//! the error that the writes are in doubt.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use proto::Result;
use proto::lock::{lock, try_lock};

use super::ahead::{Ahead, Positions};
use super::links::Links;

/// Shows a group, or abandons it; returns the work that needs no turn: its answers.
pub(super) type Show = Box<dyn FnOnce(Fate) -> Answers + Send>;
/// Answers the requests of a group.
pub(in crate::source) type Answers = Box<dyn FnOnce() + Send>;

/// The end of a logged group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source) enum Fate {
    /// Readers see it.
    Shown,
    /// The group is not published: this projector does not lead the bucket any more.
    Abandoned,
}

/// The turns of a bucket's groups.
#[derive(Default)]
pub struct Gate {
    log: Mutex<Ahead>,
    show: Mutex<()>,
    waiting: Mutex<VecDeque<WaitingGroup>>,
    links: Arc<Links>,
}

/// A group between its turns.
pub(in crate::source) struct WaitingGroup {
    /// The number of the group among those that other copies get.
    pub(in crate::source) number: u64,
    /// The approximate size.
    pub(in crate::source) bytes: usize,
    /// The work of the group's second turn.
    pub(in crate::source) show: Show,
}

/// A group of at most this size is small.
pub const SMALL_BYTES_MAX: usize = 64 << 10;
/// Small groups that are shown at once on a thread that must not wait.
const SMALL_GROUPS_MAX: usize = 4;

/// Held while the gate is closed: no group is between its turns.
pub struct ClosedGate<'g> {
    _shown: MutexGuard<'g, ()>,
    _ahead: MutexGuard<'g, Ahead>,
}

impl Gate {
    /// The gate of a bucket with these copies.
    pub fn new(links: Arc<Links>) -> Self {
        Self { links, ..Self::default() }
    }

    /// True if no group waits for another copy.
    pub fn is_settled(&self) -> bool {
        let waiting = lock(&self.waiting);
        let durable = self.links.durable();
        waiting.back().is_none_or(|group| group.number <= durable)
    }

    /// True if a group waits that no other copy lacks.
    pub fn has_ready(&self) -> bool {
        let waiting = lock(&self.waiting);
        let durable = self.links.durable();
        waiting.front().is_some_and(|group| group.number <= durable)
    }

    /// The number of groups between their turns.
    pub fn waiting(&self) -> usize {
        lock(&self.waiting).len()
    }

    /// Waits until every group is shown, and lets no further one begin. Only the writer's exclusive work closes the gate, when no group
    /// waits for another copy, or when the bucket has ended and waiting groups are not published.
    pub fn close(&self) -> ClosedGate<'_> {
        let mut ahead = lock(&self.log);
        self.show_waiting();
        let shown = lock(&self.show);
        // The caller that closes the gate may change positions and branches.
        ahead.clear();
        ClosedGate { _shown: shown, _ahead: ahead }
    }

    /// Prevents groups from being shown while the guard is held.
    pub fn shown(&self) -> MutexGuard<'_, ()> {
        lock(&self.show)
    }

    /// The positions after everything that the log has, and what `also` does at that place.
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

    /// Takes the first turn of a group.
    pub(in crate::source) fn log(&self) -> MutexGuard<'_, Ahead> {
        lock(&self.log)
    }

    /// Adds a group that has had its first turn; its caller still holds that turn. Returns the number of groups that wait.
    pub(in crate::source) fn push(
        &self,
        _first_turn: &MutexGuard<'_, Ahead>,
        group: WaitingGroup,
    ) -> usize {
        let mut waiting = lock(&self.waiting);
        waiting.push_back(group);
        waiting.len()
    }

    /// Shows all groups that wait for no other copy.
    pub fn show_waiting(&self) {
        self.take_waiting(Fate::Shown);
    }

    /// Shows the groups that wait for no other copy, as long as they are small and no other thread has the second turn. So this is quick,
    /// and costs less than waking another thread. Returns false if such groups are left.
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

    /// Abandons all groups that wait, and closes the gate. The bucket takes nothing more: it was ended or retired before.
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

    /// Takes the next group from the queue. The caller has the second turn, so that groups are shown in their order. The queue is read
    /// before the copies: a group that was added later may wait for a copy that was not awaited yet.
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
    /// The next group is larger than the limit, and stays in the queue.
    Larger,
}
