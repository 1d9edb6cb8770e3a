//! Orders the steps in which groups of mutations become durable and visible.
//!
//! A group of a bucket takes two turns. In the first it is numbered, appended to the bucket's
//! log, and synced. In the second it is added to the document table, and the bucket publishes it.
//! While a group has its second turn, the next group has its first. All groups take both turns in
//! the same order, so groups are published in the order of their numbers.
//!
//! Groups between the turns wait in a queue. The thread with the second turn takes the oldest
//! group. Any thread may take the second turn, so a thread that needs all groups published can
//! publish them itself.
//!
//! - While the guard of [`Gate::shown`] exists, the document table has exactly the groups that
//!   the bucket has published.
//! - While the guard of [`Gate::close`] exists, no group is between its turns either, so the log
//!   has exactly these groups too.
//!
//! The positions after groups that are not published yet are in [`Ahead`], which the lock of the
//! first turn protects.
//!
//! **Copies.** A group of a bucket with several copies waits before its second turn until every
//! copy that the leader waits for has it ([`super::links`]). So the gate is closed only when no
//! group waits for another copy ([`Gate::is_settled`]). A leader that has lost its role
//! *abandons* the groups that wait. They are added to the document table, which must have all
//! groups of the log, but they are not published. Their callers get the error that the writes are
//! in doubt.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use proto::Result;
use proto::lock::{lock, try_lock};

use super::ahead::{Positions, UnshownGroups};
use super::links::Links;

/// A function that publishes or abandons a group, in the group's second turn. Returns the answers
/// to the group's requests, which are sent after the turn.
pub(super) type ShowGroup = Box<dyn FnOnce(GroupFate) -> Answers + Send>;
/// A function that answers the requests of a group.
pub(in crate::source) type Answers = Box<dyn FnOnce() + Send>;

/// The outcome of a group that is in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source) enum GroupFate {
    /// The group is published, so that readers see it.
    Shown,
    /// The group is not published, because this projector does not lead the bucket any more.
    Abandoned,
}

/// The locks for the two turns of a bucket's groups (to be logged, and to be published), and the
/// groups between the turns.
#[derive(Default)]
pub struct Gate {
    log: Mutex<UnshownGroups>,
    show: Mutex<()>,
    waiting: Mutex<VecDeque<WaitingGroup>>,
    links: Arc<Links>,
}

/// A group that is logged (its first turn) and waits to be published (its second turn).
pub(in crate::source) struct WaitingGroup {
    /// The number of the group in the order in which other copies receive groups.
    pub(in crate::source) number: u64,
    /// The approximate size of the group in bytes.
    pub(in crate::source) bytes: usize,
    /// The function that publishes the group.
    pub(in crate::source) show: ShowGroup,
}

/// The size in bytes up to which a group is small.
pub const SMALL_BYTES_MAX: usize = 64 << 10;
/// The number of small groups that are published in one call by a thread that must not wait.
const SMALL_GROUPS_MAX: usize = 4;

/// A guard that keeps the gate closed. While it exists, no group is logged but unpublished, so
/// the log, the documents and the bucket have the same groups.
pub struct ClosedGate<'g> {
    _shown: MutexGuard<'g, ()>,
    _ahead: MutexGuard<'g, UnshownGroups>,
}

impl Gate {
    /// Creates the gate of a bucket; `links` are the links to its other copies.
    pub fn new(links: Arc<Links>) -> Self {
        Self { links, ..Self::default() }
    }

    /// Returns true if no group waits for another copy.
    pub fn is_settled(&self) -> bool {
        let waiting = lock(&self.waiting);
        let durable = self.links.last_durable_group();
        waiting.back().is_none_or(|group| group.number <= durable)
    }

    /// Returns true if a waiting group can be published, because all required copies have it.
    pub fn has_ready(&self) -> bool {
        let waiting = lock(&self.waiting);
        let durable = self.links.last_durable_group();
        waiting.front().is_some_and(|group| group.number <= durable)
    }

    /// Returns the number of groups that are logged and not published.
    pub fn waiting(&self) -> usize {
        lock(&self.waiting).len()
    }

    /// Waits until every group is published, and then closes the gate for further groups. Only
    /// the writer's exclusive work may call this function, in one of two situations: no group
    /// waits for another copy, or the bucket has ended and waiting groups are not published.
    pub fn close(&self) -> ClosedGate<'_> {
        let mut ahead = lock(&self.log);
        self.show_waiting();
        let shown = lock(&self.show);
        // The caller that closes the gate may change positions and branches.
        ahead.clear();
        ClosedGate { _shown: shown, _ahead: ahead }
    }

    /// Prevents groups from being published while the guard exists.
    pub fn hold_publication(&self) -> MutexGuard<'_, ()> {
        lock(&self.show)
    }

    /// Waits until no group is being logged, runs `also`, and returns the positions after all
    /// logged groups.
    pub(in crate::source) fn with_logged_positions(
        &self,
        published: impl FnOnce() -> Positions,
        also: impl FnOnce() -> Result<()>,
    ) -> Result<Positions> {
        let mut ahead = lock(&self.log);
        also()?;
        let behind = ahead.take_positions(published);
        let found = behind.clone();
        ahead.put_positions(behind);
        Ok(found)
    }

    /// Locks the first turn, in which the caller logs a group.
    pub(in crate::source) fn lock_first_turn(&self) -> MutexGuard<'_, UnshownGroups> {
        lock(&self.log)
    }

    /// Adds a group that the caller has logged to the groups that wait to be published. The
    /// caller still has the first turn. Returns the number of waiting groups.
    pub(in crate::source) fn push(
        &self,
        _first_turn: &MutexGuard<'_, UnshownGroups>,
        group: WaitingGroup,
    ) -> usize {
        let mut waiting = lock(&self.waiting);
        waiting.push_back(group);
        waiting.len()
    }

    /// Publishes all waiting groups that all required copies have.
    pub fn show_waiting(&self) {
        self.process_waiting(GroupFate::Shown);
    }

    /// Publishes the waiting groups that all required copies have, as long as the groups are
    /// small and no other thread is publishing. This is quick, and costs less than waking another
    /// thread. Returns false if such groups remain.
    pub fn show_small(&self) -> bool {
        for _ in 0..SMALL_GROUPS_MAX {
            let answers = {
                let Some(_turn) = try_lock(&self.show) else { return false };
                match self.next_ready(GroupFate::Shown, SMALL_BYTES_MAX) {
                    NextReady::None => return true,
                    NextReady::Larger => return false,
                    NextReady::Group(group) => (group.show)(GroupFate::Shown),
                }
            };
            answers();
        }
        !self.has_ready()
    }

    /// Abandons all waiting groups, so that they are not published, and closes the gate. The
    /// bucket must have been ended or retired before, so that it accepts no writes.
    pub fn abandon(&self) -> ClosedGate<'_> {
        let mut ahead = lock(&self.log);
        self.process_waiting(GroupFate::Abandoned);
        ahead.clear();
        ClosedGate { _shown: lock(&self.show), _ahead: ahead }
    }

    /// Publishes or abandons the waiting groups, in their order.
    fn process_waiting(&self, fate: GroupFate) {
        loop {
            let answers = {
                let _turn = lock(&self.show);
                let NextReady::Group(group) = self.next_ready(fate, usize::MAX) else { return };
                (group.show)(fate)
            };
            answers();
        }
    }

    /// Takes the next group to publish from the queue. The caller has the second turn, so groups
    /// are published in order. The queue is locked before the state of the copies is read: a
    /// group that is added later may need a copy that was not required before.
    fn next_ready(&self, fate: GroupFate, bytes_max: usize) -> NextReady {
        let mut waiting = lock(&self.waiting);
        let durable = match fate {
            GroupFate::Shown => self.links.last_durable_group(),
            GroupFate::Abandoned => u64::MAX,
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

/// The result of looking for the next group to publish.
enum NextReady {
    None,
    Group(WaitingGroup),
    /// The next group is larger than the limit, and remains in the queue.
    Larger,
}
