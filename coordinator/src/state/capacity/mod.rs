//! Refusals of commands whose result would not fit in the state ([`crate::state::capacity::limits`]). Each one proposes objects to drop.

pub mod limits;
pub mod reserve;

use proto::model::ids::LocalIndexId;
use proto::model::index::{IndexInfo, IndexSpec};
use proto::model::topology::IndexTopology;
use proto::rpc::command::encoded_bytes;
use proto::{Error, ErrorCode, Result};

use crate::state::capacity::limits::{
    BUCKET_DEFINITION_BYTES_MAX, BUCKET_INDEXES_MAX, DEFINITION_BYTES_IN_ALL_MAX, INDEXES_MAX,
    MOVES_IN_ALL_MAX, NODES_MAX, PAST_TOPOLOGY_BYTES_IN_ALL_MAX, PLACE_BYTES_MAX,
    PLACES_IN_ALL_MAX, RECORD_BYTES_MAX, TOPOLOGY_BYTES_MAX, VBUCKETS_IN_ALL_MAX,
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
        let all = self.vbuckets_in_all() + usize::from(vbuckets);
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
        let all = more + self.indexes().map(|record| places_of(&record.info)).sum::<usize>();
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

    /// Checks that there is room for another process.
    pub(in crate::state) fn check_room_for_node(&self) -> Result<()> {
        if self.nodes.len() < NODES_MAX {
            return Ok(());
        }
        Err(over(format!("there are {NODES_MAX} nodes, the most that are possible"))
            .with_hint("REMOVE NODE what is no longer needed"))
    }

    /// Forgets the oldest past topologies of all indexes beyond what a snapshot has room for. A scan that names a
    /// forgotten one begins anew.
    pub(in crate::state) fn forget_topologies(&mut self) {
        let past = |record: &IndexRecord| {
            let newest = record.topologies.len().saturating_sub(1);
            record.topologies[..newest].iter().map(|t| topology_bytes(&t.topology)).sum::<usize>()
        };
        let mut bytes: usize = self.indexes().map(past).sum();
        while bytes > PAST_TOPOLOGY_BYTES_IN_ALL_MAX {
            let with_past = self.indexes().filter(|record| record.topologies.len() > 1);
            let by_age =
                |record: &&IndexRecord| (record.topologies[0].position, record.info.local_id());
            let oldest = with_past.min_by_key(by_age);
            let Some(id) = oldest.map(|record| record.info.local_id()) else { return };
            let forgotten = self.forget_oldest_topology(id);
            // Only in a damaged snapshot is a record stored under a wrong key.
            if forgotten == 0 {
                return;
            }
            bytes -= forgotten;
        }
    }

    fn forget_oldest_topology(&mut self, id: LocalIndexId) -> usize {
        let Some(record) = self.record_mut(id) else { return 0 };
        match record.topologies.is_empty() {
            true => 0,
            false => topology_bytes(&record.topologies.remove(0).topology),
        }
    }

    pub(in crate::state) fn definition_bytes(&self) -> usize {
        let indexes = self.indexes().map(|record| definition_bytes(&record.info.spec));
        let buckets = self.buckets.values().map(|b| b.info.name.len() + RECORD_BYTES_MAX);
        indexes.chain(buckets).sum()
    }

    /// Names the indexes with the longest definitions.
    fn what_to_drop(&self) -> String {
        let spec = |record: &IndexRecord| {
            (definition_bytes(&record.info.spec), record.info.spec.name.clone())
        };
        let mut all: Vec<(usize, String)> = self.indexes.values().map(spec).collect();
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

/// The size limit of a topology in a snapshot.
fn topology_bytes(topology: &IndexTopology) -> usize {
    TOPOLOGY_BYTES_MAX + PLACE_BYTES_MAX * topology_places(topology)
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
