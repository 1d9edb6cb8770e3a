//! What readers see of an index, and its state at one epoch.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::Result;
use proto::model::ids::{Epoch, SliceNo};

use crate::file_id::FileId;
use crate::manifest::index_manifest::IndexManifest;
use crate::read::slice_fragments::{Fragments, Unopened, fragments};
use crate::read::source::Source;
use crate::retention::Protected;
use crate::tables::table::Table;

/// What readers see of an index.
#[derive(Clone, Default)]
pub struct Visible {
    /// In memory, the oldest first.
    pub runs: Vec<Arc<Table>>,
    /// The slices that are here, with their fragments.
    pub slices: BTreeMap<SliceNo, Arc<Fragments>>,
    /// The oldest epoch that can be answered; `None` while the index is being built.
    pub floor: Option<Epoch>,
    /// Below the floor: the epochs to which it can go back all the same.
    pub points: Vec<Epoch>,
    /// Of slices that came from another node: to what of the above each is restricted.
    pub arrived: BTreeMap<SliceNo, Protected>,
}

impl Visible {
    /// What a manifest says, with those of its fragments that are open.
    pub fn of(
        manifest: &IndexManifest,
        tables: &BTreeMap<FileId, Arc<Table>>,
        unopened: Unopened,
    ) -> Result<Self> {
        Ok(Self {
            runs: Vec::new(),
            slices: fragments(manifest, tables, unopened)?,
            floor: manifest.floor,
            points: manifest.points.clone(),
            arrived: manifest.arrived.clone(),
        })
    }

    /// The oldest epoch at which a slice can be answered; `None` while the index is being built.
    pub fn floor_of(&self, slice: SliceNo) -> Option<Epoch> {
        let arrived = self.arrived.get(&slice).map_or(Epoch(0), |reach| reach.horizon);
        Some(self.floor?.max(arrived))
    }

    /// What can be answered, now or by going back; `None` while the index is being built.
    pub fn reach(&self) -> Option<Protected> {
        Some(Protected { horizon: self.floor?, points: self.points.clone() })
    }

    /// Merges have kept only what is protected.
    pub fn narrow(&mut self, to: &Protected) {
        if let Some(reach) = self.reach() {
            self.set_reach(reach.and(to));
        }
    }

    /// Changes what can be answered.
    pub fn set_reach(&mut self, reach: Protected) {
        (self.floor, self.points) = (Some(reach.horizon), reach.points);
    }

    /// What of a slice can be answered, now or by going back; `None` while it is being built, or not here.
    pub fn reach_of(&self, slice: SliceNo) -> Option<Protected> {
        let reach = self.reach().filter(|_| self.slices.contains_key(&slice))?;
        Some(self.arrived.get(&slice).map_or_else(|| reach.clone(), |arrived| reach.and(arrived)))
    }

    /// Can everything here go back to an epoch?
    pub fn can_go_back(&self, epoch: Epoch) -> bool {
        let keeps = |reach: &Protected| reach.keeps(epoch);
        self.reach().is_some_and(|reach| keeps(&reach))
            && self.slices.keys().all(|slice| self.arrived.get(slice).is_none_or(keeps))
    }

    /// All that a slice's entries stand in.
    pub fn entries(&self, slice: SliceNo) -> Vec<Source> {
        let fragments = self.slices.get(&slice).map_or(&[][..], |fragments| fragments.rows(false));
        let runs = self.runs.iter().map(|run| Source::whole(run, slice));
        fragments.iter().cloned().chain(runs).collect()
    }
}
