//! The seam by which a simulation decides which thread runs. For tests only: locks use it only with
//! the feature `testing`.
//!
//! A simulation that runs blocking work on separate threads lets only one of them run at a time.
//! Each lock is then a place at which another thread may get the turn ([`crate::env::sim::Turns`],
//! [`crate::env::sim::Interleaving`]).

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

/// The simulation in which a thread runs, as the thread calls it.
pub trait Turn {
    /// Lets other threads run first, if the simulation decides so. Called before a lock is taken.
    fn may_switch(&self);
    /// Lets other threads run for a while because a lock is taken. False if the thread may wait for
    /// the lock as usual.
    fn blocked(&self) -> bool;
    /// Lets other threads run for this simulated time, during a pause of blocking work.
    fn pause(&self, _time: Duration) {
        self.may_switch();
    }
}

thread_local! {
    static TURN: RefCell<Option<Arc<dyn Turn>>> = const { RefCell::new(None) };
}

/// Adds this thread to a simulation, or removes it with `None`.
pub fn set(turn: Option<Arc<dyn Turn>>) {
    // A thread that ends no longer has this variable, and takes no turn.
    let _ended = TURN.try_with(|mine| mine.replace(turn));
}

/// Pauses blocking work for a simulated time, if this thread belongs to a simulation that simulates
/// time.
pub fn pause(time: Duration) {
    if let Some(turn) = TURN.try_with(|mine| mine.borrow().clone()).ok().flatten() {
        turn.pause(time);
    }
}

/// Calls `take` until it returns a value, for example a lock, and lets other threads run in
/// between. `None` if the thread does not belong to a simulation.
pub fn in_turn<G>(mut take: impl FnMut() -> Option<G>) -> Option<G> {
    let turn = TURN.try_with(|mine| mine.borrow().clone()).ok().flatten()?;
    turn.may_switch();
    loop {
        if let Some(guard) = take() {
            return Some(guard);
        }
        if !turn.blocked() {
            return None;
        }
    }
}
