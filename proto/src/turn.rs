//! The interface by which a simulation decides which thread runs. For tests only: locks use it
//! only with the feature `testing`.
//!
//! A simulation that runs blocking work on separate threads lets only one of them run at a time.
//! At each lock it may let another thread run ([`crate::env::sim::Turns`],
//! [`crate::env::sim::Interleaving`]).

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

/// The simulation to which a thread belongs, as the thread calls it at each lock.
pub trait ThreadTurns {
    /// Lets other threads run first, if the simulation decides so. Called before a lock is taken.
    fn may_switch(&self);
    /// Lets other threads run for a while, because a lock is not free. Returns false if the
    /// thread may simply wait for the lock.
    fn yield_while_locked(&self) -> bool;
    /// Lets other threads run for this simulated time, during a pause of blocking work.
    fn pause(&self, _time: Duration) {
        self.may_switch();
    }
}

thread_local! {
    static TURN: RefCell<Option<Arc<dyn ThreadTurns>>> = const { RefCell::new(None) };
}

/// Sets the simulation to which this thread belongs; `None` removes the thread from it.
pub fn set(turn: Option<Arc<dyn ThreadTurns>>) {
    // A thread that ends no longer has this variable, and takes no turn.
    let _ended = TURN.try_with(|mine| mine.replace(turn));
}

/// Pauses blocking work for a simulated time, if this thread belongs to a simulation of time.
pub fn pause(time: Duration) {
    if let Some(turn) = TURN.try_with(|mine| mine.borrow().clone()).ok().flatten() {
        turn.pause(time);
    }
}

/// Calls `take`, for example an attempt to lock, until it returns a value. Lets other threads run
/// between the calls. Returns `None` if the thread does not belong to a simulation.
pub fn take_with_turns<G>(mut take: impl FnMut() -> Option<G>) -> Option<G> {
    let turn = TURN.try_with(|mine| mine.borrow().clone()).ok().flatten()?;
    turn.may_switch();
    loop {
        if let Some(guard) = take() {
            return Some(guard);
        }
        if !turn.yield_while_locked() {
            return None;
        }
    }
}
