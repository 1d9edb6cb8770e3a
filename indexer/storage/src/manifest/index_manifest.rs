//! The manifest of one generation of an index: its slices, fragments and epochs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proto::Result;
use proto::model::ids::{Epoch, SliceNo};
use proto::model::index::IndexInfo;
use serde::{Deserialize, Serialize};

use crate::file_id::FileId;
use crate::manifest::lists::SliceLists;
use crate::manifest::order::common_order;
use crate::retention::RetainedEpochs;
use crate::rows::columns::{Columns, Grouping};

/// The description of all data of one generation of an index on a node's disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexManifest {
    /// The definition of the index and its slices.
    pub info: Arc<IndexInfo>,
    /// Oldest epoch that can be read in the slices; `None` while they are being built.
    pub floor: Option<Epoch>,
    /// Rollback points below `floor`, ascending: epochs to which the index can still be rolled
    /// back.
    pub points: Vec<Epoch>,
    /// The epochs that can be read in slices which were received from another node or rebuilt. In
    /// these slices only epochs can be read that `floor` and `points` allow too.
    pub arrived: BTreeMap<SliceNo, RetainedEpochs>,
    /// All epochs up to this one are in the fragments.
    pub flushed: Epoch,
    /// The slices of the generation on this node.
    pub slices: BTreeMap<SliceNo, SliceLists>,
    /// Number of entries of each slice, as of the epoch `flushed`. A slice that was received from
    /// another node and not counted yet is missing.
    pub entries: BTreeMap<SliceNo, u64>,
}

impl IndexManifest {
    /// Checks the invariants of the lists, see [`super`].
    pub fn check(&self) -> Result<()> {
        for (slice, lists) in &self.slices {
            let checked = lists.check().and_then(|()| common_order(lists).map(drop));
            checked.map_err(|error| error.context(format!("slice {slice}")))?;
        }
        Ok(())
    }

    /// Returns the column groups of the index, which all slices share. An index without slices is
    /// not grouped.
    pub fn grouping(&self) -> Grouping {
        let apart = |lists: &SliceLists| lists.group(Columns::INCLUDE).is_some();
        match self.slices.values().next().is_some_and(apart) {
            true => Grouping::Apart,
            false => Grouping::Together,
        }
    }

    /// Returns the files that the lists name.
    pub fn files(&self) -> BTreeSet<FileId> {
        self.slices.values().flat_map(SliceLists::files).collect()
    }
}
