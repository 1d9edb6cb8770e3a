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

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

use proto::lock::lock;

use super::ahead::Ahead;

/// Shows a group; returns the work that needs no turn: its answers.
pub(super) type Show = Box<dyn FnOnce() -> Answers + Send>;
/// Answers the requests of a group.
pub(super) type Answers = Box<dyn FnOnce() + Send>;

/// The turns of a bucket's groups.
#[derive(Default)]
pub struct Gate {
    log: Mutex<Ahead>,
    show: Mutex<()>,
    waiting: Mutex<VecDeque<Show>>,
}

/// Nothing is on its way while this is held.
pub struct Closed<'g> {
    _shown: MutexGuard<'g, ()>,
    _ahead: MutexGuard<'g, Ahead>,
}

impl Gate {
    /// Waits until every group is shown, and lets no further one begin.
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

    /// Takes the first turn of a group.
    pub(super) fn log(&self) -> MutexGuard<'_, Ahead> {
        lock(&self.log)
    }

    /// Adds a group that has had its first turn; its caller still holds that turn. Returns the number of groups that wait.
    pub(super) fn push(&self, _first_turn: &MutexGuard<'_, Ahead>, show: Show) -> usize {
        let mut waiting = lock(&self.waiting);
        waiting.push_back(show);
        waiting.len()
    }

    /// Shows all groups that wait.
    pub(super) fn show_waiting(&self) {
        loop {
            let answers = {
                let _turn = lock(&self.show);
                // The queue is looked at within the turn, so that groups are shown in their order.
                let next = lock(&self.waiting).pop_front();
                let Some(show) = next else { return };
                show()
            };
            answers();
        }
    }
}
