//! Statistics of a table.

use proto::model::ids::Epoch;
use serde::{Deserialize, Serialize};

/// What a table says of all its rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableStats {
    /// How many rows.
    pub rows: u64,
    /// How many of them are tombstones.
    pub tombstones: u64,
    /// The smallest epoch of a row.
    pub oldest: Epoch,
    /// The largest epoch of a row.
    pub newest: Epoch,
    /// Does any entry have more than one version here?
    pub versions: bool,
}

impl TableStats {
    /// Does every row show at an epoch, each entry once? Then nothing has to be checked per row.
    pub fn shows_whole_at(&self, epoch: Epoch) -> bool {
        self.tombstones == 0 && !self.versions && self.newest <= epoch
    }
}
