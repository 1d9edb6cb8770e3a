//! What a node has on disk of one generation of an index.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proto::Result;
use proto::model::ids::{Epoch, SliceNo};
use proto::model::index::IndexInfo;
use serde::{Deserialize, Serialize};

use crate::file_id::FileId;
use crate::manifest::lists::SliceLists;
use crate::manifest::order::common_order;
use crate::retention::Protected;
use crate::rows::columns::{Columns, Grouping};

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

impl IndexManifest {
    /// Does all hold that must hold of any manifest?
    pub fn check(&self) -> Result<()> {
        for (slice, lists) in &self.slices {
            let checked = lists.check().and_then(|()| common_order(lists).map(drop));
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
