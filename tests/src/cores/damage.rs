//! Damaged copies. Some moves deliver a copy whose checksum differs from the source's in the sum,
//! the number of entries or both, as each comparison of the move then reports. A damaged copy must
//! never become live: the leader undoes the move.

use std::collections::BTreeMap;

use proto::model::ids::MoveId;
use proto::model::moves::MoveStage;

use super::world::World;

/// The number n of moves of which one delivers a damaged copy, on average.
const DAMAGED_ONE_IN: u32 = 8;

/// The damage of each move's copy.
pub struct Damage {
    /// A separate random generator, so that damages do not change other draws.
    random: fastrand::Rng,
    /// The differences of the sum and of the number of entries; zeros for an intact copy.
    by_move: BTreeMap<MoveId, (u64, u64)>,
}

impl Damage {
    /// Returns the damages of a run with this seed.
    pub fn new(seed: u64) -> Self {
        Self { random: fastrand::Rng::with_seed(seed ^ 0xda3a), by_move: BTreeMap::new() }
    }

    /// Returns the checksum of a target's copy as a comparison reports it.
    pub fn read(&mut self, id: MoveId, (sum, entries): (u64, u64)) -> (u64, u64) {
        let random = &mut self.random;
        let draw = || match random.u32(..3 * DAMAGED_ONE_IN) {
            0 => (random.u64(1..), 0),
            1 => (0, random.u64(1..9)),
            2 => (random.u64(1..), random.u64(1..9)),
            _ => (0, 0),
        };
        let (sum_error, entries_error) = *self.by_move.entry(id).or_insert_with(draw);
        (sum.wrapping_add(sum_error), entries + entries_error)
    }

    fn is_damaged(&self, id: MoveId) -> bool {
        self.by_move.get(&id).is_some_and(|damage| *damage != (0, 0))
    }

    /// The number of damaged copies.
    pub fn count(&self) -> u64 {
        self.by_move.values().filter(|damage| **damage != (0, 0)).count() as u64
    }
}

impl World {
    /// Records a violation if a damaged copy is live in a member's state.
    pub fn judge_damage(&mut self, at: usize) {
        let Some(running) = &self.members[at].running else { return };
        let view = running.replica.view();
        let mut moves = view.state.indexes().flat_map(|record| &record.info.moves);
        let live = moves.find(|m| m.stage == MoveStage::Done && self.damage.is_damaged(m.id));
        if let Some(live) = live {
            self.judge.wrong(format!("the damaged copy of a move is live: {live:?}"));
        }
    }
}
