//! Refuses commands whose result would exceed the limits of the state
//! ([`crate::state::capacity::table`]). An eighth of each limit is reserved for administrators.
//! Other users with the privilege to define can use up the rest, and an administrator can still
//! drop and define.
//!
//! The router checks the reserve before it sends the command of a user that is no administrator.
//! The state itself does not know the sender. The leader checks the reserve before an index grows
//! automatically.

pub mod limits;
pub mod table;

use std::sync::Arc;

use proto::model::bucket::BucketInfo;
use proto::model::catalog::Catalog;
use proto::model::index::{IndexInfo, IndexSpec};
use proto::rpc::command::{Command, StateUsage, encoded_bytes};
use proto::{Error, ErrorCode, Result};

use crate::state::capacity::limits::{BUCKET_DEFINITION_BYTES_MAX, BUCKET_INDEXES_MAX};
use crate::state::capacity::table::{CAPACITIES, Capacity};
use crate::state::context::StateContext;
use crate::state::indexes::record::IndexRecord;

/// The number of indexes that a refusal proposes to drop, at most.
const PROPOSED: usize = 3;

/// Refuses a definition that would use a part of the capacity that is reserved for
/// administrators.
pub fn check_reserve(catalog: &Catalog, command: &Command) -> Result<()> {
    let more = command.room(catalog);
    if more == StateUsage::default() {
        return Ok(());
    }
    let indexes = catalog.indexes.values().chain(catalog.generations.values());
    let used = used_capacity(catalog.buckets.values(), indexes, catalog.data_sets.len());
    check(more, used, Capacity::check_without_reserve)
}

/// Returns the capacity that buckets, indexes and data sets use: the numbers of records of each
/// kind.
fn used_capacity<'a>(
    buckets: impl Iterator<Item = &'a Arc<BucketInfo>>,
    indexes: impl Iterator<Item = &'a Arc<IndexInfo>>,
    data_sets: usize,
) -> StateUsage {
    let of_indexes = indexes.fold(StateUsage::default(), |room, index| {
        room.with(StateUsage { places: places_of(index), ..StateUsage::of_index(&index.spec) })
    });
    buckets.fold(StateUsage { data_sets, ..of_indexes }, |room, bucket| {
        room.with(StateUsage {
            vbuckets: usize::from(bucket.vbuckets),
            ..StateUsage::of_name(&bucket.name)
        })
    })
}

/// Checks with `check` that the records `used` and `more` together are within the limits.
/// Considers only the kinds of records of which `more` needs some, so that a full kind does not
/// affect other commands.
fn check(
    more: StateUsage,
    used: StateUsage,
    check: fn(&Capacity, usize) -> Result<()>,
) -> Result<()> {
    let all = used.with(more);
    let of_room = CAPACITIES.iter().filter_map(|of| Some((of, of.of_room?)));
    let mut needed = of_room.filter(|(_, count)| count(&more) > 0);
    needed.try_for_each(|(capacity, count)| check(capacity, count(&all)))
}

/// Returns the number of copies of slices that an index needs: the present or the desired number,
/// whichever is larger.
fn places_of(info: &IndexInfo) -> usize {
    let placed: usize = info.topology.placement.iter().map(Vec::len).sum();
    StateUsage::of_index(&info.spec).places.max(placed)
}

impl StateContext {
    /// Returns the capacity that the state uses.
    fn used(&self) -> StateUsage {
        used_capacity(self.buckets.all().values(), self.indexes.infos(), self.versions.sets().len())
    }

    /// Checks that the state has free capacity for the records of a command.
    pub(in crate::state) fn check_free_capacity(&self, more: StateUsage) -> Result<()> {
        check(more, self.used(), Capacity::check).map_err(|error| match &error.hint {
            Some(hint) if hint.is_empty() => error.with_hint(self.what_to_drop()),
            _ => error,
        })
    }

    /// Returns true if the state has free capacity for a generation with this definition, without
    /// the part that is reserved for administrators.
    pub(crate) fn fits_without_reserve(&self, spec: &IndexSpec) -> bool {
        check(StateUsage::of_index(spec), self.used(), Capacity::check_without_reserve).is_ok()
    }

    /// Checks that a bucket may have another index. The limits for one bucket keep capacity free
    /// for other buckets.
    pub(in crate::state) fn check_bucket_limits(&self, spec: &IndexSpec) -> Result<()> {
        let of_bucket =
            || self.named_indexes().filter(|other| other.info.spec.bucket == spec.bucket);
        if of_bucket().count() >= BUCKET_INDEXES_MAX {
            let what = format!(
                "bucket \"{}\" has {BUCKET_INDEXES_MAX} indexes, the most that are possible",
                spec.bucket
            );
            return Err(over_limit_error(what).with_hint("DROP INDEX what is no longer needed"));
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
        Err(over_limit_error(what)
            .with_hint("DROP INDEX what is no longer needed, or write shorter ones"))
    }

    /// Returns the advice to drop indexes; it names those with the longest definitions.
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

fn over_limit_error(what: String) -> Error {
    Error::new(ErrorCode::OverLimit, what)
}

#[cfg(test)]
mod reserve_tests;
#[cfg(test)]
mod tests;
