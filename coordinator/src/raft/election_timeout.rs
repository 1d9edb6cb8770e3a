//! The election timeout. The `raft` crate draws it from its own generator; each draw is overwritten with one from our own
//! source, so that everything follows from the seed.

use std::sync::Arc;

use proto::env::Random;
use raft::{Raft, StateRole, Storage};

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

    /// Overwrites the crate's timeout. The crate draws a timeout for each new state; this method
    /// draws one for each such state too.
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
