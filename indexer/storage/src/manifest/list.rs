//! What manifests hold.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use proto::model::cut::EpochMark;
use proto::model::ids::{BucketId, Epoch, SliceNo};
use proto::model::index::IndexInfo;
use proto::rpc::scan::KeyRange;
use proto::{Error, ErrorCode, Result};
use serde::{Deserialize, Serialize};

use super::super::versions::Protected;
use super::{Columns, Grouping};

/// The number of a file of a node; it grows and is never used twice, whatever becomes of the file.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct FileId(pub u64);

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

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

/// All that a node has on disk of one generation of an index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexManifest {
    /// The index.
    pub info: Arc<IndexInfo>,
    /// The oldest epoch that its slices answer; `None` while they are being built.
    pub floor: Option<Epoch>,
    /// Below the floor, ascending: the epochs to which it can go back all the same.
    pub points: Vec<Epoch>,
    /// Of slices that came from another node: to what of the above each is restricted.
    pub arrived: BTreeMap<SliceNo, Protected>,
    /// All epochs up to this one are in the fragments.
    pub flushed: Epoch,
    /// Its slices.
    pub slices: BTreeMap<SliceNo, SliceLists>,
    /// How many entries each slice had at the epoch up to which everything is in the fragments; a slice that
    /// has arrived and was not counted yet is not among them.
    pub entries: BTreeMap<SliceNo, u64>,
}

/// What a node keeps beside its indexes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeManifest {
    /// No file has this number or a larger one.
    pub next_file: FileId,
    /// For each bucket, the epoch up to which the fragments of each of its indexes have everything.
    pub marks: Vec<EpochMark>,
    /// Epochs that a rollback has taken back on all indexes; where the log still has them, they are
    /// passed over.
    pub dead: Vec<DeadEpochs>,
}

/// Epochs of a bucket that a rollback has taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadEpochs {
    /// The bucket.
    pub bucket: BucketId,
    /// The epoch that it went back to.
    pub above: Epoch,
    /// The newest epoch that was taken back.
    pub to: Epoch,
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

impl ListItem {
    pub(super) fn check(&self, group: Columns) -> Result<()> {
        let file = self.file;
        if self.columns.is_empty() || !group.contains(self.columns) {
            return Err(damaged(format!("fragment {file} has columns that its group has not")));
        }
        if self.epochs.is_empty() || super::edit::is_empty(&self.range) {
            return Err(damaged(format!("of fragment {file} nothing counts")));
        }
        Ok(())
    }
}

impl IndexManifest {
    /// Does all hold that must hold of any manifest?
    pub fn check(&self) -> Result<()> {
        for (slice, lists) in &self.slices {
            let checked =
                lists.check().and_then(|()| super::columns::common_order(lists).map(drop));
            checked.map_err(|error| error.context(format!("slice {slice}")))?;
        }
        Ok(())
    }

    /// How its columns are divided: alike in all slices. Without slices nothing is.
    pub fn grouping(&self) -> Grouping {
        let apart = |lists: &SliceLists| lists.group(Columns::INCLUDE).is_some();
        match self.slices.values().next().is_some_and(apart) {
            true => Grouping::Apart,
            false => Grouping::Together,
        }
    }

    /// The files that are named.
    pub fn files(&self) -> BTreeSet<FileId> {
        self.slices.values().flat_map(SliceLists::files).collect()
    }
}

pub(super) fn damaged(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::Corrupt, message)
}
