//! The election timeout of a member. The `raft` crate draws timeouts from its own random
//! generator. Each of them is overwritten with one from our own source of random numbers, so that
//! a simulation can be repeated from its seed.

use std::sync::Arc;

use proto::env::Random;
use raft::{Raft, StateRole, Storage};

/// The drawn election timeout, and the source of random numbers.
pub(super) struct ElectionTimeout {
    random: Arc<dyn Random>,
    /// The shortest timeout in ticks; a drawn timeout is less than twice as long.
    ticks_min: usize,
    ticks: usize,
    /// The state for which the timeout was drawn: term, role and leader.
    drawn_for: (u64, StateRole, u64),
}

impl ElectionTimeout {
    pub fn new(random: Arc<dyn Random>, ticks_min: usize) -> Self {
        Self { random, ticks_min, ticks: 0, drawn_for: (u64::MAX, StateRole::Follower, 0) }
    }

    /// Sets the drawn timeout in the `raft` crate. Draws a new one whenever the term, role or
    /// leader has changed, as the crate does.
    pub fn set<T: Storage>(&mut self, raft: &mut Raft<T>) {
        let state = (raft.term, raft.state, raft.leader_id);
        if self.drawn_for != state {
            self.drawn_for = state;
            let spread = self.ticks_min.max(1) as u64;
            self.ticks = self.ticks_min + (self.random.next_u64() % spread) as usize;
        }
        raft.set_randomized_election_timeout(self.ticks);
    }
}
