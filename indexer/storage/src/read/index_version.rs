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

/// A version of an index that readers use. A version is immutable, and each change of the index
/// replaces it by a new one.
#[derive(Clone, Default)]
pub struct IndexVersion {
    /// Tables of rows in memory that are not in fragments yet, oldest first.
    pub runs: Vec<Arc<Table>>,
    /// Slices on this node, with their fragments.
    pub slices: BTreeMap<SliceNo, Arc<SliceFragments>>,
    /// Oldest epoch that can be read; `None` during a build.
    pub floor: Option<Epoch>,
    /// Rollback points below `floor`: epochs to which the index can still be rolled back.
    pub points: Vec<Epoch>,
    /// The epochs that can be read in slices which were received from another node or rebuilt. In
    /// these slices only epochs can be read that `floor` and `points` allow too.
    pub arrived: BTreeMap<SliceNo, RetainedEpochs>,
}

impl IndexVersion {
    /// Returns the version that a manifest describes; `tables` has its open fragments, and
    /// `unopened` says what to do with the other fragments.
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
    pub fn readable_epochs(&self) -> Option<RetainedEpochs> {
        Some(RetainedEpochs { horizon: self.floor?, points: self.points.clone() })
    }

    /// Restricts the epochs that can be read to those in `to`. Called after merges that retained
    /// only the versions for these epochs.
    pub fn restrict_readable(&mut self, to: &RetainedEpochs) {
        if let Some(reach) = self.readable_epochs() {
            self.set_readable_epochs(reach.intersection(to));
        }
    }

    /// Replaces the epochs that can be read.
    pub fn set_readable_epochs(&mut self, reach: RetainedEpochs) {
        (self.floor, self.points) = (Some(reach.horizon), reach.points);
    }

    /// Returns the epochs that can be read in a slice, now or after a rollback; `None` during a
    /// build or if the slice is absent.
    pub fn readable_epochs_of(&self, slice: SliceNo) -> Option<RetainedEpochs> {
        let reach = self.readable_epochs().filter(|_| self.slices.contains_key(&slice))?;
        Some(
            self.arrived
                .get(&slice)
                .map_or_else(|| reach.clone(), |arrived| reach.intersection(arrived)),
        )
    }

    /// Returns true if all slices can be rolled back to an epoch.
    pub fn can_roll_back(&self, epoch: Epoch) -> bool {
        let keeps = |reach: &RetainedEpochs| reach.retains(epoch);
        self.readable_epochs().is_some_and(|reach| keeps(&reach))
            && self.slices.keys().all(|slice| self.arrived.get(slice).is_none_or(keeps))
    }

    /// Returns true if a document's id alone decides its slice ([`slice_of_id`]). Returns false
    /// for an index with split or cloned slices, since the topology does not contain their
    /// numbers.
    pub fn is_by_id(&self, info: &IndexInfo) -> bool {
        let by_id = matches!(info.spec.partition, PartitionBy::DocumentId);
        let last = self.slices.last_key_value().map(|(slice, _)| slice.0);
        by_id && last.is_none_or(|last| last < info.topology.slices())
    }

    /// Returns the sources of all entries of a slice, in memory and in fragments.
    pub fn entries(&self, slice: SliceNo) -> Vec<Source> {
        let fragments = self.slices.get(&slice).map_or(&[][..], |fragments| fragments.rows(false));
        let runs = self.runs.iter().map(|run| Source::of_slice(run, slice));
        fragments.iter().cloned().chain(runs).collect()
    }
}

/// Returns the slice of a document, in an index where the id alone decides the slice.
pub fn slice_of_id(info: &IndexInfo, id: &str) -> SliceNo {
    info.topology.partition(PartitionKey::Id(id))
}
