//! Edits of the lists of fragments in a manifest. An edit that returns an error leaves the lists
//! unchanged.

use bytes::Bytes;
use proto::model::ids::{Epoch, SliceNo};
use proto::rpc::scan::KeyRange;
use proto::{Error, ErrorCode, Result};

use crate::file_id::FileId;
use crate::manifest::index_manifest::IndexManifest;
use crate::manifest::key_ranges::{intersection, is_empty};
use crate::manifest::lists::{EpochRange, ListItem, SliceLists};
use crate::manifest::regroup::regroup;
use crate::retention::RetainedEpochs;
use crate::rows::columns::Columns;

/// The position at which a new item is added to a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListPosition {
    /// After all other items: for rows that are newer than those of all other items.
    Newest,
    /// Before all other items: for rows of a backfill, which are older than those of all other
    /// items.
    Oldest,
}

impl IndexManifest {
    /// Adds a fragment with rows of `slices` to their lists. In each slice the fragment is added
    /// to every group that has one of its columns. `epochs` is the range of epochs in the
    /// fragment. The range restricts nothing yet, but lets [`Self::roll_back_to`] find fragments with
    /// only later epochs.
    pub fn add(
        &mut self,
        file: FileId,
        slices: &[SliceNo],
        columns: Columns,
        epochs: EpochRange,
        place: ListPosition,
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

    /// Replaces the inputs of a merge by its outputs. Returns false and changes nothing if the
    /// list no longer contains `inputs` next to each other with the same restrictions. In that
    /// case the slice was split, dropped, rolled back or regrouped during the merge, and the
    /// outputs must be discarded.
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
        let Some(at) = group.position_of(inputs) else { return Ok(false) };
        for output in &outputs {
            output.check(group.columns)?;
        }
        group.items.splice(at..at + inputs.len(), outputs);
        Ok(true)
    }

    /// Splits a slice: `low` gets the entries before `at`, `high` the others. The entry counts of
    /// the new slices stay unknown.
    pub fn split(&mut self, slice: SliceNo, at: &[u8], low: SliceNo, high: SliceNo) -> Result<()> {
        let lists = self.lists(slice)?;
        for new in [low, high] {
            if new != slice && self.slices.contains_key(&new) {
                return Err(slice_exists_error(new));
            }
        }
        if low == high {
            return Err(slice_exists_error(low));
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

    /// Creates the slice `to` with all entries of `slice`.
    pub fn clone_slice(&mut self, slice: SliceNo, to: SliceNo) -> Result<()> {
        let lists = self.lists(slice)?.clone();
        if self.slices.contains_key(&to) {
            return Err(slice_exists_error(to));
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

    /// Returns the epochs that can be read, now or after a rollback; `None` during a build.
    pub fn readable_epochs(&self) -> Option<RetainedEpochs> {
        Some(RetainedEpochs { horizon: self.floor?, points: self.points.clone() })
    }

    /// Sets the epochs that can be read, now or after a rollback.
    pub fn set_readable_epochs(&mut self, reach: RetainedEpochs) {
        (self.floor, self.points) = (Some(reach.horizon), reach.points);
    }

    /// Restricts the epochs that can be read to those in `to`. Called after merges that retained
    /// only the versions for these epochs.
    pub fn restrict_readable(&mut self, to: &RetainedEpochs) {
        if let Some(reach) = self.readable_epochs() {
            self.set_readable_epochs(reach.intersection(to));
        }
    }

    /// Removes everything above an epoch from the lists.
    pub fn roll_back_to(&mut self, epoch: Epoch) -> Result<()> {
        if let Some(mut reach) = self.readable_epochs() {
            if !reach.retains(epoch) {
                let (index, floor) = (self.info.local_id(), reach.horizon);
                let message = format!(
                    "index {index} cannot be rolled back to epoch {epoch}: its oldest epoch is {floor}"
                );
                return Err(Error::new(ErrorCode::InvalidParameter, message));
            }
            reach.roll_back_to(epoch);
            self.set_readable_epochs(reach);
        }
        self.arrived.values_mut().for_each(|reach| reach.roll_back_to(epoch));
        self.flushed = self.flushed.min(epoch);
        for group in self.slices.values_mut().flat_map(|lists| &mut lists.groups) {
            for item in &mut group.items {
                item.epochs.to = item.epochs.to.min(epoch);
            }
            group.items.retain(|item| !item.epochs.is_empty());
        }
        Ok(())
    }

    /// Changes the column groups of all slices.
    pub fn regroup(&mut self, groups: &[Columns]) -> Result<()> {
        let regrouped =
            |(slice, lists): (&SliceNo, &SliceLists)| Ok((*slice, regroup(lists, groups)?));
        self.slices = self.slices.iter().map(regrouped).collect::<Result<_>>()?;
        Ok(())
    }

    /// Returns the lists of a slice; an error if the slice is not on this node.
    fn lists(&self, slice: SliceNo) -> Result<&SliceLists> {
        self.slices.get(&slice).ok_or_else(|| {
            let message =
                format!("index {} has no slice {slice} on this node", self.info.local_id());
            Error::new(ErrorCode::SliceMoved, message)
        })
    }
}

impl SliceLists {
    /// Adds a fragment to the list of each group that has one of its columns, restricted to the
    /// group's columns.
    fn add(&mut self, fragment: &ListItem, place: ListPosition) -> Result<()> {
        let known = self.groups.iter().fold(Columns::NONE, |all, group| all.union(group.columns));
        if fragment.columns.is_empty() || !known.contains(fragment.columns) {
            return Err(Error::internal(format!(
                "fragment {} has columns {}, but the groups have only {known}",
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
            let at = if place == ListPosition::Oldest { 0 } else { group.items.len() };
            group.items.insert(at, item);
        }
        Ok(())
    }

    /// Returns a copy of the lists, restricted to a range of entries. Items with an empty
    /// restriction are removed. In a back index, the removal of an item never makes outdated
    /// entries of a document visible. An older item was split at least as often as a newer one: if
    /// the newer item's restriction is empty, each older item's restriction is empty too.
    pub fn restricted(&self, range: &KeyRange) -> Self {
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

/// Returns the error that a slice exists already.
fn slice_exists_error(slice: SliceNo) -> Error {
    Error::new(ErrorCode::Exists, format!("slice {slice} exists already"))
}
