//! Lists of fragments: for each slice and column group, the fragments that are read, with
//! restrictions.

use proto::Result;
use proto::model::ids::{Epoch, SliceNo};
use proto::rpc::scan::KeyRange;
use serde::{Deserialize, Serialize};

use crate::file_id::FileId;
use crate::manifest::damage::damaged;
use crate::manifest::key_ranges::is_empty;
use crate::rows::columns::Columns;
use crate::rows::stats::TableStats;

/// A range of epochs, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EpochRange {
    /// Oldest epoch.
    pub from: Epoch,
    /// Newest epoch.
    pub to: Epoch,
}

impl EpochRange {
    /// The range of all epochs.
    pub const ALL: Self = Self { from: Epoch(0), to: Epoch(u64::MAX) };

    /// Returns the range of the epochs of a table's rows.
    pub fn from_stats(stats: &TableStats) -> Self {
        Self { from: stats.oldest, to: stats.newest }
    }

    /// Returns true if an epoch is in the range.
    pub fn contains(&self, epoch: Epoch) -> bool {
        self.from <= epoch && epoch <= self.to
    }

    /// Returns true if no epoch is in the range.
    pub fn is_empty(&self) -> bool {
        self.from > self.to
    }
}

impl Default for EpochRange {
    fn default() -> Self {
        Self::ALL
    }
}

/// A fragment in a list, with a restriction: only rows within it are read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListItem {
    /// The file of the fragment.
    pub file: FileId,
    /// Slice number of the rows in the file. After a split or a clone it differs from the list's
    /// slice.
    pub rows_of: SliceNo,
    /// The range of entries that are read from the fragment. In a back index, the range restricts
    /// the entries of each document; a document without entries in the range has none in this
    /// slice.
    pub range: KeyRange,
    /// The columns that are read from the fragment.
    pub columns: Columns,
    /// The epochs of the versions that are read from the fragment.
    pub epochs: EpochRange,
}

/// The list of one column group of a slice: the fragments that are read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupList {
    /// Columns of the group.
    pub columns: Columns,
    /// Fragments, oldest first.
    pub items: Vec<ListItem>,
}

/// The fragments of a slice, by column group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceLists {
    /// Lists by column group.
    pub groups: Vec<GroupList>,
}

impl SliceLists {
    /// Creates empty lists for these column groups.
    pub fn new(groups: &[Columns]) -> Self {
        let group = |columns: &Columns| GroupList { columns: *columns, items: Vec::new() };
        Self { groups: groups.iter().map(group).collect() }
    }

    /// Returns the list of the group with exactly these columns.
    pub fn group(&self, columns: Columns) -> Option<&GroupList> {
        self.groups.iter().find(|group| group.columns == columns)
    }

    /// Returns the list of the group that contains a column.
    pub fn group_of(&self, column: Columns) -> Option<&GroupList> {
        self.groups.iter().find(|group| group.columns.contains(column))
    }

    /// Returns the files that the lists name.
    pub fn files(&self) -> impl Iterator<Item = FileId> + '_ {
        self.groups.iter().flat_map(|group| group.items.iter().map(|item| item.file))
    }

    /// Checks the invariants that concern each list alone.
    pub fn check(&self) -> Result<()> {
        let mut seen = Columns::NONE;
        for group in &self.groups {
            if group.columns.is_empty() || seen.intersects(group.columns) {
                return Err(damaged("a column is in two groups, or a group has no column"));
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
    /// Returns the position of neighbouring items in the list; `None` if the list does not contain
    /// them.
    pub(super) fn position_of(&self, piece: &[ListItem]) -> Option<usize> {
        if piece.is_empty() {
            return None;
        }
        self.items.windows(piece.len()).position(|window| window == piece)
    }
}

impl ListItem {
    /// Checks that the item has columns, only columns of its group, and a restriction that allows
    /// a row.
    pub(super) fn check(&self, group: Columns) -> Result<()> {
        let file = self.file;
        if self.columns.is_empty() || !group.contains(self.columns) {
            return Err(damaged(format!("fragment {file} has columns that are not in its group")));
        }
        if self.epochs.is_empty() || is_empty(&self.range) {
            return Err(damaged(format!("the restriction of fragment {file} is empty")));
        }
        Ok(())
    }
}
