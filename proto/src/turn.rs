//! The seam by which a simulation decides which thread runs. Tests only: without the feature `testing`, locks do not use it.
//!
//! A simulation that runs blocking work on separate threads lets only one of them run at a time. Each lock is then a
//! place at which another thread may get the turn ([`crate::env::sim::Turns`],
//! [`crate::env::sim::Interleaving`]).

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

/// A thread's side of the simulation that it runs in.
pub trait Turn {
    /// Called before a lock; other threads may run first.
    fn may_switch(&self);
    /// Called when a lock is taken: others run for a while. False if the thread may wait for the lock as usual.
    fn blocked(&self) -> bool;
    /// Called in a pause of blocking work; other threads may run for this simulated time.
    fn pause(&self, _time: Duration) {
        self.may_switch();
    }
}

thread_local! {
    static TURN: RefCell<Option<Arc<dyn Turn>>> = const { RefCell::new(None) };
}

/// Makes this thread a part of a simulation, or of none.
pub fn set(turn: Option<Arc<dyn Turn>>) {
    // A thread that ends no longer has this variable, and takes no turn.
    let _ended = TURN.try_with(|mine| mine.replace(turn));
}

/// Pauses blocking work for a simulated time, if the thread is a part of a simulation with such a time.
pub fn pause(time: Duration) {
    if let Some(turn) = TURN.try_with(|mine| mine.borrow().clone()).ok().flatten() {
        turn.pause(time);
    }
}

/// Takes a lock, or anything else that others may have, in turn. `None` if the thread is not a part of a simulation.
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
