//! The order in which groups become durable and visible.
//!
//! A group of a bucket takes two turns. In the first it is numbered, and the bucket's log takes it and is synced. In the second
//! the document table takes it, and the bucket publishes it. While a group has its second turn the next one has its first. Both
//! turns are taken in one order, so a group is published before all that were numbered after it.
//!
//! What is between the turns waits in a queue. Whoever has the second turn takes the oldest from it, on any thread, so
//! a thread that needs all of them shown shows them itself and waits for nobody.
//!
//! - While [`Gate::shown`] is held, documents and bucket agree: the table has exactly what the bucket has published.
//! - While [`Gate::close`] is held, no group is on its way either, so the log agrees with both.
//!
//! The numbers that were given to groups on their way are kept in [`Ahead`], under the first turn.
//!
//! **Copies.** A group of a bucket with several copies waits before its second turn until every copy that the leader awaits has it
//! ([`super::links`]). So the gate is closed only when no group waits for another copy ([`Gate::is_settled`]). A leader that lost
//! its place *abandons* the groups that wait: the document table takes them, since it follows the log, but nobody sees them, and their
//! callers learn that the writes are in doubt.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use proto::Result;
use proto::lock::{lock, try_lock};

use super::ahead::{Ahead, Positions};
use super::links::Links;

/// Shows a group, or abandons it; returns the work that needs no turn: its answers.
pub(super) type Show = Box<dyn FnOnce(Fate) -> Answers + Send>;
/// Answers the requests of a group.
pub(super) type Answers = Box<dyn FnOnce() + Send>;

/// The end of a logged group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Readers see it.
    Shown,
    /// Nobody sees it: this projector does not lead the bucket any more.
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
pub(super) struct WaitingGroup {
    /// Its number among the groups that other copies get.
    pub(super) number: u64,
    /// The approximate size.
    pub(super) bytes: usize,
    /// Its second turn.
    pub(super) show: Show,
}

/// A group of at most this size is small.
pub const SMALL_BYTES_MAX: usize = 64 << 10;
/// Small groups that are shown at once on a thread that must not wait.
const SMALL_GROUPS_MAX: usize = 4;

/// Nothing is on its way while this is held.
pub struct Closed<'g> {
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
    /// waits for another copy, or when the bucket has ended and nobody sees what waits.
    pub fn close(&self) -> Closed<'_> {
        let mut ahead = lock(&self.log);
        self.show_waiting();
        let shown = lock(&self.show);
        // Whoever closes the gate may change positions and branches.
        ahead.clear();
        Closed { _shown: shown, _ahead: ahead }
    }

    /// Lets no group be shown.
    pub fn shown(&self) -> MutexGuard<'_, ()> {
        lock(&self.show)
    }

    /// The positions behind everything that the log has, and what `also` does at that place.
    pub(super) fn logged(
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
    pub(super) fn log(&self) -> MutexGuard<'_, Ahead> {
        lock(&self.log)
    }

    /// Adds a group that has had its first turn; its caller still holds that turn. Returns the number of groups that wait.
    pub(super) fn push(&self, _first_turn: &MutexGuard<'_, Ahead>, group: WaitingGroup) -> usize {
        let mut waiting = lock(&self.waiting);
        waiting.push_back(group);
        waiting.len()
    }

    /// Shows all groups that wait for no other copy.
    pub fn show_waiting(&self) {
        self.take_waiting(Fate::Shown);
    }

    /// Shows groups that wait for no other copy as long as they are small and nobody else has the second turn. So it is quick, and costs
    /// less than the wake-up of another thread. Returns false if such groups are left.
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
    pub fn abandon(&self) -> Closed<'_> {
        let mut ahead = lock(&self.log);
        self.take_waiting(Fate::Abandoned);
        ahead.clear();
        Closed { _shown: lock(&self.show), _ahead: ahead }
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

    /// Takes the next group from the queue. The caller has the second turn, so that groups are shown in their order. The queue is looked
    /// at before the copies: a group that was added later may wait for one that was not awaited yet.
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

/// The next group that wants its second turn.
enum NextReady {
    None,
    Group(WaitingGroup),
    /// It is larger than asked for, and waits on.
    Larger,
}
