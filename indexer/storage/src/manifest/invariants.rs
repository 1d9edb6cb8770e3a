//! Invariants of manifests, as predicates. Debug builds check them at each write.
//!
//! A read of a manifest checks only the invariants of lists ([`IndexManifest::check`]), since a
//! file on disk may be damaged. A write that breaks an invariant is a bug of this crate.

use std::collections::BTreeSet;

use proto::model::cut::EpochMark;

use crate::manifest::index_manifest::IndexManifest;
use crate::manifest::key_ranges::is_empty;
use crate::manifest::lists::{ListItem, SliceLists};
use crate::manifest::node_manifest::NodeManifest;
use crate::manifest::order::common_order;
use crate::rows::columns::Columns;

/// Returns the name of an invariant that an index manifest breaks; `None` if all hold.
pub(super) fn broken_in_index(manifest: &IndexManifest) -> Option<&'static str> {
    let all = |holds: fn(&SliceLists) -> bool| manifest.slices.values().all(holds);
    let broken = [
        (all(groups_share_no_column), "groups share no column"),
        (all(items_fit_their_group), "items fit their group"),
        (all(no_restriction_is_empty), "no restriction is empty"),
        (all(lists_agree_on_one_order), "lists agree on one order"),
        (counts_and_arrivals_have_slices(manifest), "counts and arrivals have slices"),
        (points_are_below_the_floor(manifest), "points are below the floor"),
    ];
    broken.into_iter().find_map(|(holds, name)| (!holds).then_some(name))
}

/// Returns the name of an invariant that a node manifest breaks; `None` if all hold.
pub(super) fn broken_in_node(manifest: &NodeManifest) -> Option<&'static str> {
    let broken = [
        (buckets_have_one_mark(manifest), "buckets have one mark"),
        (dead_ranges_are_valid(manifest), "dead ranges are valid"),
        (no_mark_is_dead(manifest), "no mark is dead"),
    ];
    broken.into_iter().find_map(|(holds, name)| (!holds).then_some(name))
}

/// Returns true if the groups of a slice share no column, and no group is without columns.
fn groups_share_no_column(lists: &SliceLists) -> bool {
    let mut seen = Columns::NONE;
    lists.groups.iter().all(|group| {
        let is_new = !group.columns.is_empty() && !seen.intersects(group.columns);
        seen = seen.union(group.columns);
        is_new
    })
}

/// Returns true if each item has columns, and only columns of its group.
fn items_fit_their_group(lists: &SliceLists) -> bool {
    lists.groups.iter().all(|group| {
        let fits =
            |item: &ListItem| !item.columns.is_empty() && group.columns.contains(item.columns);
        group.items.iter().all(fits)
    })
}

/// Returns true if the restriction of each item allows at least one row.
fn no_restriction_is_empty(lists: &SliceLists) -> bool {
    let mut items = lists.groups.iter().flat_map(|group| &group.items);
    items.all(|item| !item.epochs.is_empty() && !is_empty(&item.range))
}

/// Returns true if one order of a slice's fragments exists that agrees with all of its lists.
fn lists_agree_on_one_order(lists: &SliceLists) -> bool {
    common_order(lists).is_ok()
}

/// Returns true if each slice with an entry count or with separate readable epochs is in the
/// manifest.
fn counts_and_arrivals_have_slices(manifest: &IndexManifest) -> bool {
    let mut slices = manifest.entries.keys().chain(manifest.arrived.keys());
    slices.all(|slice| manifest.slices.contains_key(slice))
}

/// Returns true if the rollback points are ascending and below the floor (the oldest readable
/// epoch). A build has no floor and must have no rollback points.
fn points_are_below_the_floor(manifest: &IndexManifest) -> bool {
    let is_ascending = manifest.points.is_sorted_by(|left, right| left < right);
    let last = manifest.points.last();
    is_ascending && last.is_none_or(|last| manifest.floor.is_some_and(|floor| *last < floor))
}

/// Returns true if the manifest has at most one newest epoch for each bucket.
fn buckets_have_one_mark(manifest: &NodeManifest) -> bool {
    let mut seen = BTreeSet::new();
    manifest.marks.iter().all(|mark| seen.insert(mark.bucket))
}

/// Returns true if the range of each rollback ends at or after its beginning.
fn dead_ranges_are_valid(manifest: &NodeManifest) -> bool {
    manifest.dead.iter().all(|dead| dead.above <= dead.to)
}

/// Returns true if no bucket's newest epoch was undone by a rollback.
fn no_mark_is_dead(manifest: &NodeManifest) -> bool {
    let is_dead =
        |mark: &EpochMark| manifest.dead.iter().any(|dead| dead.contains(mark.bucket, mark.epoch));
    !manifest.marks.iter().any(is_dead)
}
