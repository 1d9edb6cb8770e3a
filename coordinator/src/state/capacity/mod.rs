//! The room in the state: refusals of commands whose result would not fit
//! ([`crate::state::capacity::table`]), and the eighth of it that is reserved for administrators.
//! Other users with the privilege to define can fill the rest, and an administrator can still drop
//! and define.
//!
//! The router checks the reserve before it sends the command of a user that is no administrator.
//! The state itself does not know the sender. The leader checks it before an index grows
//! automatically.

pub mod limits;
pub mod table;

use std::sync::Arc;

use proto::model::bucket::BucketInfo;
use proto::model::catalog::Catalog;
use proto::model::index::{IndexInfo, IndexSpec};
use proto::rpc::command::{Command, Room, encoded_bytes};
use proto::{Error, ErrorCode, Result};

use crate::state::capacity::limits::{BUCKET_DEFINITION_BYTES_MAX, BUCKET_INDEXES_MAX};
use crate::state::capacity::table::{CAPACITIES, Capacity};
use crate::state::context::StateContext;
use crate::state::indexes::record::IndexRecord;

/// Maximum number of indexes that a refusal proposes to drop.
const PROPOSED: usize = 3;

/// Refuses a definition that would take room reserved for administrators.
pub fn check_reserve(catalog: &Catalog, command: &Command) -> Result<()> {
    let more = command.room(catalog);
    if more == Room::default() {
        return Ok(());
    }
    let indexes = catalog.indexes.values().chain(catalog.generations.values());
    let used = taken(catalog.buckets.values(), indexes, catalog.data_sets.len());
    check(more, used, Capacity::check_for_all)
}

/// Returns the room that buckets, indexes and data sets take.
fn taken<'a>(
    buckets: impl Iterator<Item = &'a Arc<BucketInfo>>,
    indexes: impl Iterator<Item = &'a Arc<IndexInfo>>,
    data_sets: usize,
) -> Room {
    let of_indexes = indexes.fold(Room::default(), |room, index| {
        room.with(Room { places: places_of(index), ..Room::of_index(&index.spec) })
    });
    buckets.fold(Room { data_sets, ..of_indexes }, |room, bucket| {
        room.with(Room { vbuckets: usize::from(bucket.vbuckets), ..Room::of_name(&bucket.name) })
    })
}

/// Checks each kind of record of which `more` needs some. So a command that needs no record of a
/// full kind is not refused.
fn check(more: Room, used: Room, check: fn(&Capacity, usize) -> Result<()>) -> Result<()> {
    let all = used.with(more);
    let of_room = CAPACITIES.iter().filter_map(|of| Some((of, of.of_room?)));
    let mut needed = of_room.filter(|(_, count)| count(&more) > 0);
    needed.try_for_each(|(capacity, count)| check(capacity, count(&all)))
}

/// Returns the number of places (copies of slices) of an index: the present or the desired number,
/// whichever is larger.
fn places_of(info: &IndexInfo) -> usize {
    let placed: usize = info.topology.placement.iter().map(Vec::len).sum();
    Room::of_index(&info.spec).places.max(placed)
}

impl StateContext {
    fn used(&self) -> Room {
        taken(self.buckets.all().values(), self.indexes.infos(), self.versions.sets().len())
    }

    /// Checks that there is room for more.
    pub(in crate::state) fn check_room(&self, more: Room) -> Result<()> {
        check(more, self.used(), Capacity::check).map_err(|error| match &error.hint {
            Some(hint) if hint.is_empty() => error.with_hint(self.what_to_drop()),
            _ => error,
        })
    }

    /// Returns true if a generation with this definition fits without the room reserved for
    /// administrators.
    pub(crate) fn has_room_for_all(&self, spec: &IndexSpec) -> bool {
        check(Room::of_index(spec), self.used(), Capacity::check_for_all).is_ok()
    }

    /// Checks that a bucket may have another index. One bucket must not use up the room of all
    /// others.
    pub(in crate::state) fn check_room_in_bucket(&self, spec: &IndexSpec) -> Result<()> {
        let of_bucket =
            || self.named_indexes().filter(|other| other.info.spec.bucket == spec.bucket);
        if of_bucket().count() >= BUCKET_INDEXES_MAX {
            let what = format!(
                "bucket \"{}\" has {BUCKET_INDEXES_MAX} indexes, the most that are possible",
                spec.bucket
            );
            return Err(over(what).with_hint("DROP INDEX what is no longer needed"));
        }
        let others: usize = of_bucket().map(|other| encoded_bytes(&*other.info.spec)).sum();
        let all = others + encoded_bytes(spec);
        if all <= BUCKET_DEFINITION_BYTES_MAX {
            return Ok(());
        }
        let what = format!(
            "the definitions of all indexes on bucket \"{}\" would have {all} bytes; at most {BUCKET_DEFINITION_BYTES_MAX}",
            spec.bucket
        );
        Err(over(what).with_hint("DROP INDEX what is no longer needed, or write shorter ones"))
    }

    /// Returns an advice that names the indexes with the longest definitions.
    fn what_to_drop(&self) -> String {
        let spec = |record: &IndexRecord| {
            (encoded_bytes(&*record.info.spec), record.info.spec.name.clone())
        };
        let mut all: Vec<(usize, String)> = self.named_indexes().map(spec).collect();
        all.sort_unstable_by(|a, b| b.cmp(a));
        let longest: Vec<String> = (all.iter().take(PROPOSED))
            .map(|(bytes, name)| format!("\"{name}\" ({bytes} bytes)"))
            .collect();
        match longest.is_empty() {
            true => "DROP BUCKET what is no longer needed".into(),
            false => format!(
                "DROP INDEX what is no longer needed; the longest definitions: {}",
                longest.join(", ")
            ),
        }
    }
}

fn over(what: String) -> Error {
    Error::new(ErrorCode::OverLimit, what)
}

#[cfg(test)]
mod reserve_tests;
#[cfg(test)]
mod tests;
