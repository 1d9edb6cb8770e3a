//! The edits of lists. Each either does all of its work or, with an error, nothing.

use bytes::Bytes;
use proto::model::ids::{Epoch, SliceNo};
use proto::rpc::scan::KeyRange;
use proto::{Error, ErrorCode, Result};

use crate::file_id::FileId;
use crate::manifest::index_manifest::IndexManifest;
use crate::manifest::key_ranges::{intersection, is_empty};
use crate::manifest::lists::{EpochRange, ListItem, SliceLists};
use crate::manifest::regroup::regroup;
use crate::retention::Protected;
use crate::rows::columns::Columns;

/// Where new items go in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Behind all others: what was flushed.
    Newest,
    /// Before all others: what a backfill has built, below the epochs since.
    Oldest,
}

impl IndexManifest {
    /// A fragment with rows of these slices, each under its own number, is there. In each slice it
    /// goes to every group that has one of its columns. `epochs` is what the fragment holds, which
    /// restricts nothing yet, and lets [`Self::truncate`] see what lies wholly above an epoch.
    pub fn add(
        &mut self,
        file: FileId,
        slices: &[SliceNo],
        columns: Columns,
        epochs: EpochRange,
        place: Place,
    ) -> Result<()> {
        let mut edited = Vec::with_capacity(slices.len());
        for &slice in slices {
            let mut lists = self.lists(slice)?.clone();
            let item = ListItem { file, rows_of: slice, range: KeyRange::all(), columns, epochs };
            lists.add(&item, place)?;
            edited.push((slice, lists));
        }
        self.slices.extend(edited);
        Ok(())
    }

    /// Puts what a merge has made into the place of what it read: `inputs`, as they stood in the list
    /// of the group. `false`, and nothing is done, if they are no longer there as a contiguous piece
    /// with the same restrictions: the slice was split or dropped, rolled back, or its columns moved,
    /// and the result must be thrown away.
    pub fn replace(
        &mut self,
        slice: SliceNo,
        group: Columns,
        inputs: &[ListItem],
        outputs: Vec<ListItem>,
    ) -> Result<bool> {
        let Some(lists) = self.slices.get_mut(&slice) else { return Ok(false) };
        let Some(group) = lists.groups.iter_mut().find(|of_slice| of_slice.columns == group) else {
            return Ok(false);
        };
        let Some(at) = group.find_piece(inputs) else { return Ok(false) };
        for output in &outputs {
            output.check(group.columns)?;
        }
        group.items.splice(at..at + inputs.len(), outputs);
        Ok(true)
    }

    /// Makes of a slice two: `low` has the entries before `at`, `high` those from it on. How many that
    /// are is not known from the lists.
    pub fn split(&mut self, slice: SliceNo, at: &[u8], low: SliceNo, high: SliceNo) -> Result<()> {
        let lists = self.lists(slice)?;
        for new in [low, high] {
            if new != slice && self.slices.contains_key(&new) {
                return Err(exists(new));
            }
        }
        if low == high {
            return Err(exists(low));
        }
        let at = Bytes::copy_from_slice(at);
        let below = KeyRange { low: Bytes::new(), high: Some(at.clone()) };
        let above = KeyRange { low: at, high: None };
        let halves = [(low, lists.restricted(&below)), (high, lists.restricted(&above))];
        self.slices.remove(&slice);
        self.entries.remove(&slice);
        self.slices.extend(halves);
        Ok(())
    }

    /// Makes `to` a slice with the same entries.
    pub fn clone_slice(&mut self, slice: SliceNo, to: SliceNo) -> Result<()> {
        let lists = self.lists(slice)?.clone();
        if self.slices.contains_key(&to) {
            return Err(exists(to));
        }
        self.slices.insert(to, lists);
        self.entries.extend(self.entries.get(&slice).copied().map(|entries| (to, entries)));
        Ok(())
    }

    /// Removes a slice.
    pub fn drop_slice(&mut self, slice: SliceNo) -> Result<()> {
        self.lists(slice)?;
        self.slices.remove(&slice);
        self.entries.remove(&slice);
        Ok(())
    }

    /// What can be answered, now or by going back; `None` while the index is being built.
    pub fn reach(&self) -> Option<Protected> {
        Some(Protected { horizon: self.floor?, points: self.points.clone() })
    }

    /// Changes what can be answered.
    pub fn set_reach(&mut self, reach: Protected) {
        (self.floor, self.points) = (Some(reach.horizon), reach.points);
    }

    /// Merges have kept only what is protected.
    pub fn narrow(&mut self, to: &Protected) {
        if let Some(reach) = self.reach() {
            self.set_reach(reach.and(to));
        }
    }

    /// What is newer than an epoch counts no more.
    pub fn truncate(&mut self, epoch: Epoch) -> Result<()> {
        if let Some(mut reach) = self.reach() {
            if !reach.keeps(epoch) {
                let (index, floor) = (self.info.id, reach.horizon);
                let message = format!(
                    "index {index} cannot go back to epoch {epoch}: the oldest that it has is {floor}"
                );
                return Err(Error::new(ErrorCode::InvalidParameter, message));
            }
            reach.go_back(epoch);
            self.set_reach(reach);
        }
        self.arrived.values_mut().for_each(|reach| reach.go_back(epoch));
        self.flushed = self.flushed.min(epoch);
        for group in self.slices.values_mut().flat_map(|lists| &mut lists.groups) {
            for item in &mut group.items {
                item.epochs.to = item.epochs.to.min(epoch);
            }
            group.items.retain(|item| !item.epochs.is_empty());
        }
        Ok(())
    }

    /// Divides the columns of all slices anew.
    pub fn regroup(&mut self, groups: &[Columns]) -> Result<()> {
        let regrouped =
            |(slice, lists): (&SliceNo, &SliceLists)| Ok((*slice, regroup(lists, groups)?));
        self.slices = self.slices.iter().map(regrouped).collect::<Result<_>>()?;
        Ok(())
    }

    fn lists(&self, slice: SliceNo) -> Result<&SliceLists> {
        self.slices.get(&slice).ok_or_else(|| {
            let message = format!("index {} has no slice {slice} here", self.info.id);
            Error::new(ErrorCode::SliceMoved, message)
        })
    }
}

impl SliceLists {
    /// Puts a fragment into every group that has one of its columns, restricted to these.
    fn add(&mut self, fragment: &ListItem, place: Place) -> Result<()> {
        let known = self.groups.iter().fold(Columns::NONE, |all, group| all.union(group.columns));
        if fragment.columns.is_empty() || !known.contains(fragment.columns) {
            return Err(Error::internal(format!(
                "fragment {} has columns {} and the groups have {known}",
                fragment.file, fragment.columns
            )));
        }
        for group in &mut self.groups {
            let columns = fragment.columns.intersection(group.columns);
            if columns.is_empty() {
                continue;
            }
            let item = ListItem { columns, ..fragment.clone() };
            item.check(group.columns)?;
            let at = if place == Place::Oldest { 0 } else { group.items.len() };
            group.items.insert(at, item);
        }
        Ok(())
    }

    /// The same lists for a part of the entries. An item of which nothing is left goes. In a back
    /// index, too, that brings no older state of a document to light: an item has been through at
    /// least the splits that the newer ones behind it have, so where it has nothing left to count in a
    /// range, nothing that is older has.
    fn restricted(&self, range: &KeyRange) -> Self {
        let mut lists = self.clone();
        for group in &mut lists.groups {
            for item in &mut group.items {
                item.range = intersection(&item.range, range);
            }
            group.items.retain(|item| !is_empty(&item.range));
        }
        lists
    }
}

fn exists(slice: SliceNo) -> Error {
    Error::new(ErrorCode::Exists, format!("there is a slice {slice} already"))
}
