//! Refusals of commands whose result would not fit in the state ([`crate::state::capacity::limits`]). Each one proposes objects to drop.

pub mod limits;
pub mod reserve;

use proto::model::ids::IndexId;
use proto::model::index::{IndexInfo, IndexSpec};
use proto::model::topology::IndexTopology;
use proto::rpc::command::encoded_bytes;
use proto::{Error, ErrorCode, Result};

use crate::state::capacity::limits::{
    BUCKET_DEFINITION_BYTES_MAX, BUCKET_INDEXES_MAX, DATA_SETS_MAX, DEFINITION_BYTES_IN_ALL_MAX,
    GROWING_INDEXES_MAX, INDEXES_MAX, MOVES_IN_ALL_MAX, PLACES_IN_ALL_MAX, RECORD_BYTES_MAX,
    VBUCKETS_IN_ALL_MAX,
};
use crate::state::context::StateContext;
use crate::state::indexes::record::IndexRecord;

/// Maximum number of indexes that a refusal proposes to drop.
const PROPOSED: usize = 3;

impl StateContext {
    /// Checks that there is room for another index.
    pub(in crate::state) fn check_room_for_index(&self, spec: &IndexSpec) -> Result<()> {
        if self.indexes().count() >= INDEXES_MAX {
            return Err(over(format!(
                "there are {INDEXES_MAX} indexes, the most that are possible"
            ))
            .with_hint("DROP INDEX what is no longer needed"));
        }
        self.check_places(places(spec))?;
        let bytes = definition_bytes(spec);
        let all = self.definition_bytes() + bytes;
        if all <= DEFINITION_BYTES_IN_ALL_MAX {
            return Ok(());
        }
        let what = format!(
            "index \"{}\" has a definition of {bytes} bytes; all definitions would have {all}, \
             the limit is {DEFINITION_BYTES_IN_ALL_MAX}",
            spec.name
        );
        Err(over(what).with_hint(self.what_to_drop()))
    }

    /// Checks that a bucket may have another index. One bucket must not take the room of all others.
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
        let others: usize = of_bucket().map(|other| definition_bytes(&other.info.spec)).sum();
        let all = others + definition_bytes(spec);
        if all <= BUCKET_DEFINITION_BYTES_MAX {
            return Ok(());
        }
        let what = format!(
            "the definitions of all indexes on bucket \"{}\" would have {all} bytes; at most {BUCKET_DEFINITION_BYTES_MAX}",
            spec.bucket
        );
        Err(over(what).with_hint("DROP INDEX what is no longer needed, or write shorter ones"))
    }

    /// Checks that there is room for another bucket.
    pub(in crate::state) fn check_room_for_bucket(&self, name: &str, vbuckets: u16) -> Result<()> {
        let all = self.buckets.all().values().map(|info| usize::from(info.vbuckets)).sum::<usize>()
            + usize::from(vbuckets);
        if all > VBUCKETS_IN_ALL_MAX {
            let what = format!("{all} vbuckets in all buckets; at most {VBUCKETS_IN_ALL_MAX}");
            return Err(over(what).with_hint(
                "DROP BUCKET what is no longer needed, or give the new one fewer vbuckets",
            ));
        }
        let bytes = self.definition_bytes() + name.len() + RECORD_BYTES_MAX;
        if bytes > DEFINITION_BYTES_IN_ALL_MAX {
            let what = format!(
                "all definitions would have {bytes} bytes; at most {DEFINITION_BYTES_IN_ALL_MAX}"
            );
            return Err(over(what).with_hint(self.what_to_drop()));
        }
        Ok(())
    }

    /// Checks that there is room for more copies of slices.
    pub(in crate::state) fn check_places(&self, more: usize) -> Result<()> {
        let all = more + self.indexes.infos().map(|info| places_of(info)).sum::<usize>();
        if all <= PLACES_IN_ALL_MAX {
            return Ok(());
        }
        let what =
            format!("all indexes would have {all} copies of slices; at most {PLACES_IN_ALL_MAX}");
        Err(over(what)
            .with_hint("DROP INDEX what is no longer needed, or ask for fewer slices or replicas"))
    }

    /// Checks that there is room for another move.
    pub(in crate::state) fn check_room_for_move(&self) -> Result<()> {
        let all: usize = self.indexes().map(|record| record.info.moves.len()).sum();
        if all < MOVES_IN_ALL_MAX {
            return Ok(());
        }
        Err(Error::unavailable(format!("{all} moves are in progress, the most that are possible"))
            .with_hint("wait until some have ended (SHOW MOVES), and repeat the request"))
    }

    /// Checks that there is room for another data set.
    pub(in crate::state) fn check_room_for_data_set(&self) -> Result<()> {
        if self.versions.sets().len() < DATA_SETS_MAX {
            return Ok(());
        }
        let what = format!(
            "there are {DATA_SETS_MAX} buckets made FROM FILES, the most that are possible"
        );
        Err(over(what).with_hint("DROP BUCKET what is no longer needed"))
    }

    /// Checks that there is room for the `slice_bytes_max` of an index.
    pub(in crate::state) fn check_room_for_growing(&self, id: IndexId, bytes: u64) -> Result<()> {
        let growing = self.indexes.slice_bytes_max();
        if bytes == 0 || growing.contains_key(&id) || growing.len() < GROWING_INDEXES_MAX {
            return Ok(());
        }
        let what =
            format!("{GROWING_INDEXES_MAX} indexes have a slice_bytes_max, which is the limit");
        Err(over(what).with_hint(
            "set it to 0 for others, or set the number of slices with ALTER INDEX … SET (slices = n)",
        ))
    }

    pub(in crate::state) fn definition_bytes(&self) -> usize {
        let indexes = self.indexes().map(|record| definition_bytes(&record.info.spec));
        let buckets = self.buckets.all().values().map(|b| b.name.len() + RECORD_BYTES_MAX);
        indexes.chain(buckets).sum()
    }

    /// Names the indexes with the longest definitions.
    fn what_to_drop(&self) -> String {
        let spec = |record: &IndexRecord| {
            (definition_bytes(&record.info.spec), record.info.spec.name.clone())
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

/// The number of copies of slices that an index should have.
pub(in crate::state) fn places(spec: &IndexSpec) -> usize {
    usize::from(spec.slices) * (usize::from(spec.replicas) + 1)
}

/// The number of copies of slices that an index has or should have, whichever is more.
pub(in crate::state) fn places_of(info: &IndexInfo) -> usize {
    places(&info.spec).max(topology_places(&info.topology))
}

fn topology_places(topology: &IndexTopology) -> usize {
    topology.placement.iter().map(Vec::len).sum()
}

/// The size of a definition in a snapshot.
pub(in crate::state) fn definition_bytes(spec: &IndexSpec) -> usize {
    encoded_bytes(spec)
}

fn over(what: String) -> Error {
    Error::new(ErrorCode::OverLimit, what)
}

#[cfg(test)]
mod tests;
