//! A naive store of an indexer's slices, with the values of each document by epoch.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::model::cut::EpochMark;
use proto::model::ids::Epoch;
use proto::model::index::IndexInfo;

use super::history::weight;

/// A copy of a slice.
#[derive(Clone)]
pub struct Copy {
    /// The record of the index when the copy was created.
    pub info: Arc<IndexInfo>,
    /// The oldest epoch that the copy can answer; `None` during its build.
    pub floor: Option<Epoch>,
    /// The newest epoch of the copy.
    pub newest: Epoch,
    /// The checksum of the copy at the newest epoch.
    pub sum: u64,
    /// The values of each document by epoch; zero means that it does not exist.
    versions: BTreeMap<u16, Vec<(Epoch, u32)>>,
    /// Rollback points below the floor to which the copy can return.
    points: Vec<Epoch>,
}

impl Copy {
    /// Returns a copy at the beginning of its build.
    pub fn new(info: Arc<IndexInfo>) -> Self {
        Self {
            info,
            floor: None,
            newest: Epoch(0),
            sum: 0,
            versions: BTreeMap::new(),
            points: Vec::new(),
        }
    }

    /// Sets a document's value in an epoch, or replaces the value of this epoch.
    pub fn put(&mut self, doc: u16, epoch: Epoch, value: u32) {
        let versions = self.versions.entry(doc).or_default();
        let old = versions.last().map_or(0, |(_, value)| *value);
        match versions.last_mut() {
            Some(last) if last.0 == epoch => last.1 = value,
            _ => versions.push((epoch, value)),
        }
        self.sum = self.sum.wrapping_sub(weight(doc, old)).wrapping_add(weight(doc, value));
    }

    /// Adds the values of a snapshot, which are older than all values from epochs.
    pub fn put_below(&mut self, snapshot: &[(u16, u32)]) {
        for (doc, value) in snapshot {
            if !self.versions.contains_key(doc) {
                self.put(*doc, Epoch(0), *value);
            }
        }
    }

    /// Records an applied epoch. With `gap`, epochs were skipped, and the floor rises to this one.
    pub fn applied(&mut self, mark: &EpochMark, gap: bool) {
        self.newest = mark.epoch;
        if gap && self.floor.is_some() {
            self.floor = Some(mark.epoch);
            self.points.clear();
        }
    }

    /// Returns the value of a document at an epoch; zero means that it does not exist.
    fn at(versions: &[(Epoch, u32)], epoch: Epoch) -> u32 {
        let until = versions.partition_point(|(said, _)| *said <= epoch);
        until.checked_sub(1).map_or(0, |last| versions[last].1)
    }

    /// Returns the documents at an epoch, after the document `after`.
    pub fn read(&self, epoch: Epoch, after: Option<u16>) -> impl Iterator<Item = (u16, u32)> {
        let from = after.map_or(0, |doc| doc + 1);
        let shown = self.versions.range(from..);
        shown.map(move |(doc, v)| (*doc, Self::at(v, epoch))).filter(|(_, value)| *value != 0)
    }

    /// Returns the checksum and the number of documents at an epoch.
    pub fn checksum(&self, epoch: Epoch) -> (u64, u64) {
        let entries = self.read(epoch, None);
        entries.fold((0, 0), |(sum, n), (doc, v)| (weight(doc, v).wrapping_add(sum), n + 1))
    }

    /// True if the copy can return to an epoch.
    pub fn can_go_back(&self, epoch: Epoch) -> bool {
        self.floor.is_some_and(|floor| floor <= epoch) || self.points.contains(&epoch)
    }

    /// Returns to an epoch by removing newer values.
    pub fn go_back(&mut self, epoch: Epoch) {
        for versions in self.versions.values_mut() {
            versions.truncate(versions.partition_point(|(said, _)| *said <= epoch));
        }
        self.versions.retain(|_, versions| !versions.is_empty());
        self.newest = self.newest.min(epoch);
        self.points.retain(|point| *point <= epoch);
        self.floor = self.floor.map(|floor| floor.min(epoch));
        self.sum = self.checksum(epoch).0;
    }

    /// Drops the versions that no epoch needs, according to a mark's horizon and rollback points.
    pub fn compact(&mut self, mark: &EpochMark) {
        let Some(floor) = self.floor else { return };
        let horizon = floor.max(mark.horizon);
        self.points = mark.points.iter().copied().filter(|p| self.can_go_back(*p)).collect();
        self.floor = Some(horizon);
        for versions in self.versions.values_mut() {
            let mut next = u64::MAX;
            let mut kept = Vec::with_capacity(versions.len());
            for (said, value) in versions.drain(..).rev() {
                let seen = next > horizon.0
                    || self.points.iter().any(|point| said <= *point && point.0 < next);
                next = said.0;
                kept.extend(seen.then_some((said, value)));
            }
            kept.reverse();
            *versions = kept;
        }
        self.versions.retain(|_, versions| !versions.is_empty());
    }
}
