//! Damaged copies. Some moves deliver a copy whose checksum differs from the source's, by its sum, its number of entries or both; each
//! comparison of that move reports this. Such a copy must never become live: the leader undoes the move.

use std::collections::BTreeMap;

use proto::model::ids::MoveId;
use proto::model::moves::MoveStage;

use super::world::World;

/// One move in this many delivers a damaged copy.
const DAMAGED_ONE_IN: u32 = 8;

/// The damage of each move's copy.
pub struct Damage {
    /// A separate random generator, so that a damage changes no other draw.
    random: fastrand::Rng,
    /// The errors of the sum and of the number of entries; zeros if the copy is intact.
    by_move: BTreeMap<MoveId, (u64, u64)>,
}

impl Damage {
    /// The damages of a run.
    pub fn new(seed: u64) -> Self {
        Self { random: fastrand::Rng::with_seed(seed ^ 0xda3a), by_move: BTreeMap::new() }
    }

    /// The checksum of a target's copy as a comparison reads it.
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
    /// Judges that no damaged copy is live in a member's state.
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
