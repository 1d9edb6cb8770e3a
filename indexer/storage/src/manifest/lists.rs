//! What manifests hold.

use proto::Result;
use proto::model::ids::{Epoch, SliceNo};
use proto::rpc::scan::KeyRange;
use serde::{Deserialize, Serialize};

use crate::file_id::FileId;
use crate::manifest::damage::damaged;
use crate::manifest::key_ranges::is_empty;
use crate::rows::columns::Columns;
use crate::rows::stats::TableStats;

/// Epochs, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EpochRange {
    /// The oldest.
    pub from: Epoch,
    /// The newest.
    pub to: Epoch,
}

impl EpochRange {
    /// All epochs.
    pub const ALL: Self = Self { from: Epoch(0), to: Epoch(u64::MAX) };

    /// The epochs of a table's rows.
    pub fn from_stats(stats: &TableStats) -> Self {
        Self { from: stats.oldest, to: stats.newest }
    }

    /// Is an epoch inside?
    pub fn contains(&self, epoch: Epoch) -> bool {
        self.from <= epoch && epoch <= self.to
    }

    /// Is none inside?
    pub fn is_empty(&self) -> bool {
        self.from > self.to
    }
}

impl Default for EpochRange {
    fn default() -> Self {
        Self::ALL
    }
}

/// A fragment in the list of a group, and what of it counts there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListItem {
    /// The file.
    pub file: FileId,
    /// The slice under whose number the rows stand in the file: after a split or a clone another one
    /// than the list's.
    pub rows_of: SliceNo,
    /// Entries inside count. In a back index, of the entries in a document's packed state only those
    /// inside count; a state of which none does says that the document has no entries here.
    pub range: KeyRange,
    /// These columns count.
    pub columns: Columns,
    /// Versions of these epochs count.
    pub epochs: EpochRange,
}

/// The fragments of one column group of a slice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupList {
    /// The columns of the group.
    pub columns: Columns,
    /// Its fragments, the oldest first.
    pub items: Vec<ListItem>,
}

/// The fragments of a slice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceLists {
    /// By column group.
    pub groups: Vec<GroupList>,
}

impl SliceLists {
    /// Lists without fragments.
    pub fn new(groups: &[Columns]) -> Self {
        let group = |columns: &Columns| GroupList { columns: *columns, items: Vec::new() };
        Self { groups: groups.iter().map(group).collect() }
    }

    /// The group of these columns.
    pub fn group(&self, columns: Columns) -> Option<&GroupList> {
        self.groups.iter().find(|group| group.columns == columns)
    }

    /// The group that a column belongs to.
    pub fn group_of(&self, column: Columns) -> Option<&GroupList> {
        self.groups.iter().find(|group| group.columns.contains(column))
    }

    /// The files that are named.
    pub fn files(&self) -> impl Iterator<Item = FileId> + '_ {
        self.groups.iter().flat_map(|group| group.items.iter().map(|item| item.file))
    }

    /// Does all hold that holds of each list by itself?
    pub fn check(&self) -> Result<()> {
        let mut seen = Columns::NONE;
        for group in &self.groups {
            if group.columns.is_empty() || seen.intersects(group.columns) {
                return Err(damaged("a column stands in two groups, or a group has none"));
            }
            seen = seen.union(group.columns);
            for item in &group.items {
                item.check(group.columns)?;
            }
        }
        Ok(())
    }
}

impl GroupList {
    /// Where a contiguous piece of items begins in the list.
    pub(super) fn find_piece(&self, piece: &[ListItem]) -> Option<usize> {
        if piece.is_empty() {
            return None;
        }
        self.items.windows(piece.len()).position(|window| window == piece)
    }
}

impl ListItem {
    pub(super) fn check(&self, group: Columns) -> Result<()> {
        let file = self.file;
        if self.columns.is_empty() || !group.contains(self.columns) {
            return Err(damaged(format!("fragment {file} has columns that its group has not")));
        }
        if self.epochs.is_empty() || is_empty(&self.range) {
            return Err(damaged(format!("of fragment {file} nothing counts")));
        }
        Ok(())
    }
}
