//! Statistics of a table's rows.

use proto::model::ids::Epoch;
use serde::{Deserialize, Serialize};

/// Statistics of all rows of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableStats {
    /// Number of rows.
    pub rows: u64,
    /// Number of tombstones.
    pub tombstones: u64,
    /// Smallest epoch of a row.
    pub oldest: Epoch,
    /// Largest epoch of a row.
    pub newest: Epoch,
    /// True if some entry has more than one version in this table.
    pub versions: bool,
}

impl TableStats {
    /// Returns true if every row is visible at an epoch and no entry has two rows. Then a read
    /// need not check the rows one by one.
    pub fn is_all_visible_at(&self, epoch: Epoch) -> bool {
        self.tombstones == 0 && !self.versions && self.newest <= epoch
    }
}
