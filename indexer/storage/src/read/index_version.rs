//! Immutable versions of an index, as readers see it.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::Result;
use proto::model::ids::{Epoch, SliceNo};
use proto::model::index::{IndexInfo, PartitionBy};
use proto::model::topology::{PartitionKey, TopologyProvider};

use crate::file_id::FileId;
use crate::manifest::index_manifest::IndexManifest;
use crate::read::slice_fragments::{SliceFragments, UnopenedPolicy, slice_fragments};
use crate::read::source::Source;
use crate::retention::RetainedEpochs;
use crate::tables::table::Table;

/// The version of an index that readers use: immutable, and replaced by a new version at each
/// change.
#[derive(Clone, Default)]
pub struct IndexVersion {
    /// Runs in memory, oldest first.
    pub runs: Vec<Arc<Table>>,
    /// Slices on this node, with their fragments.
    pub slices: BTreeMap<SliceNo, Arc<SliceFragments>>,
    /// Oldest epoch that can be read; `None` during a build.
    pub floor: Option<Epoch>,
    /// Rollback points below the floor.
    pub points: Vec<Epoch>,
    /// The epochs that can be read in slices which were received from another node or rebuilt; they
    /// further restrict `floor` and `points`.
    pub arrived: BTreeMap<SliceNo, RetainedEpochs>,
}

impl IndexVersion {
    /// Returns the version that a manifest describes; `unopened` says what to do with fragments
    /// that are not in `tables`.
    pub fn from_manifest(
        manifest: &IndexManifest,
        tables: &BTreeMap<FileId, Arc<Table>>,
        unopened: UnopenedPolicy,
    ) -> Result<Self> {
        Ok(Self {
            runs: Vec::new(),
            slices: slice_fragments(manifest, tables, unopened)?,
            floor: manifest.floor,
            points: manifest.points.clone(),
            arrived: manifest.arrived.clone(),
        })
    }

    /// Returns the oldest epoch that can be read in a slice; `None` during a build.
    pub fn floor_of(&self, slice: SliceNo) -> Option<Epoch> {
        let arrived = self.arrived.get(&slice).map_or(Epoch(0), |reach| reach.horizon);
        Some(self.floor?.max(arrived))
    }

    /// Returns the epochs that can be read, now or after a rollback; `None` during a build.
    pub fn reach(&self) -> Option<RetainedEpochs> {
        Some(RetainedEpochs { horizon: self.floor?, points: self.points.clone() })
    }

    /// Restricts the epochs that can be read to those in `to`, after merges that retained only
    /// these.
    pub fn restrict_to(&mut self, to: &RetainedEpochs) {
        if let Some(reach) = self.reach() {
            self.set_reach(reach.intersection(to));
        }
    }

    /// Replaces the epochs that can be read.
    pub fn set_reach(&mut self, reach: RetainedEpochs) {
        (self.floor, self.points) = (Some(reach.horizon), reach.points);
    }

    /// Returns the epochs that can be read in a slice, now or after a rollback; `None` during a
    /// build or if the slice is absent.
    pub fn reach_of(&self, slice: SliceNo) -> Option<RetainedEpochs> {
        let reach = self.reach().filter(|_| self.slices.contains_key(&slice))?;
        Some(
            self.arrived
                .get(&slice)
                .map_or_else(|| reach.clone(), |arrived| reach.intersection(arrived)),
        )
    }

    /// Returns true if all slices can be rolled back to an epoch.
    pub fn can_go_back(&self, epoch: Epoch) -> bool {
        let keeps = |reach: &RetainedEpochs| reach.retains(epoch);
        self.reach().is_some_and(|reach| keeps(&reach))
            && self.slices.keys().all(|slice| self.arrived.get(slice).is_none_or(keeps))
    }

    /// Returns true if a document's id alone decides its slice ([`slice_of_id`]). False for an
    /// index with split or cloned slices, since the topology does not contain their numbers.
    pub fn is_by_id(&self, info: &IndexInfo) -> bool {
        let by_id = matches!(info.spec.partition, PartitionBy::DocumentId);
        let last = self.slices.last_key_value().map(|(slice, _)| slice.0);
        by_id && last.is_none_or(|last| last < info.topology.slices())
    }

    /// Sources of all entries of a slice.
    pub fn entries(&self, slice: SliceNo) -> Vec<Source> {
        let fragments = self.slices.get(&slice).map_or(&[][..], |fragments| fragments.rows(false));
        let runs = self.runs.iter().map(|run| Source::whole(run, slice));
        fragments.iter().cloned().chain(runs).collect()
    }
}

/// Returns the slice of a document, in an index where the id alone decides the slice.
pub fn slice_of_id(info: &IndexInfo, id: &str) -> SliceNo {
    info.topology.partition(PartitionKey::Id(id))
}
