//! The numbers of moves, and the last ended moves. A move in progress is stored in its index.

use proto::model::ids::MoveId;
use proto::model::moves::EndedMove;
use serde::{Deserialize, Serialize};

use crate::state::capacity::limits::{ENDED_MOVES_MAX, REASON_BYTES_MAX, longest_prefix};
use crate::state::consequence::Consequence;

/// The numbers of moves, and the last ended moves. Numbers are never reused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::state) struct MovesState {
    /// The last number that was assigned.
    last: u64,
    /// The last ended moves, the newest last.
    ended: Vec<EndedMove>,
}

impl MovesState {
    pub(in crate::state) fn last(&self) -> MoveId {
        MoveId(self.last)
    }

    pub(in crate::state) fn ended(&self) -> &[EndedMove] {
        &self.ended
    }

    /// Assigns the next number.
    pub(super) fn assign_number(&mut self) -> MoveId {
        self.last += 1;
        MoveId(self.last)
    }

    /// Records the moves that have ended by a consequence.
    pub(in crate::state) fn on(&mut self, consequence: &Consequence, ended: Vec<EndedMove>) {
        match consequence {
            Consequence::NumbersSkipped(above) => self.last = *above,
            Consequence::SliceMovesEnded(ended) => self.end(ended.clone()),
            _ => {}
        }
        self.end(ended);
    }

    fn end(&mut self, mut ended: Vec<EndedMove>) {
        for why in ended.iter_mut().filter_map(|of| of.undone.as_mut()) {
            why.truncate(longest_prefix(why, REASON_BYTES_MAX).len());
        }
        self.ended.extend(ended);
        let surplus = self.ended.len().saturating_sub(ENDED_MOVES_MAX);
        self.ended.drain(..surplus);
    }
}
