//! Indexes that get more slices by themselves. The leader finds those that have outgrown theirs (`leader/growth.rs`, `leader/splits.rs`);
//! each gets a new generation with more slices, as `ALTER INDEX … SET (slices = n)` would begin it, or with one slice split in place.

use std::sync::Arc;

use proto::Result;
use proto::model::ids::{BucketId, IndexId, LocalIndexId, NodeId, SliceNo};
use proto::model::index::{
    GENERATIONS_MAX, IndexInfo, IndexSpec, IndexState, PartitionBy, SLICE_BYTES_MAX_LEAST,
    SLICES_MAX,
};
use proto::model::range_split::DerivedSlice;
use proto::rpc::command::Outcome;
use proto::{Error, ErrorCode};

use super::checks::check_split;
use super::context::StateContext;
use super::effect::{Change, Effect, nothing};
use super::limits::GROWING_INDEXES_MAX;
use super::lookup::no_index;

impl StateContext {
    /// Sets the size from which on an index gets more slices; 0 means never.
    pub(super) fn set_slice_bytes_max(&mut self, name: &str, bytes: u64) -> Change {
        let id = self.index_named(name).ok_or_else(|| no_index(name))?;
        check_slice_bytes_max(bytes)?;
        let info = &self.indexes[&id].info;
        let divides = matches!(info.spec.partition, PartitionBy::Range(_));
        if bytes > 0 && divides && info.spec.leading_ranges().is_none() {
            let what = format!(
                "index \"{name}\" is partitioned by ranges of another expression than an ascending first key: its slices cannot be split in place"
            );
            return Err(Error::new(ErrorCode::WrongState, what).with_hint(
                "ALTER INDEX … PARTITION BY RANGE (…) SPLIT AT (…) gives it other ranges",
            ));
        }
        let is_new = bytes > 0 && !self.slice_bytes_max.contains_key(&id);
        if is_new && self.slice_bytes_max.len() >= GROWING_INDEXES_MAX {
            let what =
                format!("{GROWING_INDEXES_MAX} indexes have a slice_bytes_max, which is the limit");
            return Err(Error::new(ErrorCode::OverLimit, what)
                .with_hint("set it to 0 for others, or set the number of slices with ALTER INDEX … SET (slices = n)"));
        }
        let before = match bytes {
            0 => self.slice_bytes_max.remove(&id),
            _ => self.slice_bytes_max.insert(id, bytes),
        };
        match before.unwrap_or(0) == bytes {
            true => nothing(),
            false => Ok((Outcome::Done, vec![Effect::CatalogChanged])),
        }
    }

    /// The indexes that get more slices by themselves, with the size in bytes from which on.
    pub(crate) fn slice_bytes_max(&self) -> impl Iterator<Item = (IndexId, u64)> {
        self.slice_bytes_max.iter().map(|(index, bytes)| (*index, *bytes))
    }

    /// True if a generation with more slices may be begun for an index that serves. One more is left for a statement, which would be
    /// refused otherwise until a retired one goes.
    pub(crate) fn can_grow(&self, from: LocalIndexId) -> bool {
        let generations = self.generations_of(from.index);
        let is_built = |id: &LocalIndexId| {
            self.record(*id).is_some_and(|record| record.info.state == IndexState::Backfill)
        };
        let shown = self.indexes.get(&from.index).map(|record| &record.info);
        let serves = shown
            .is_some_and(|info| info.local_id() == from && info.state == IndexState::Maintenance);
        serves && !generations.iter().any(is_built) && generations.len() + 1 < GENERATIONS_MAX
    }

    /// Begins a generation with more slices.
    pub(super) fn grow_index(
        &mut self,
        from: LocalIndexId,
        slices: u16,
        silent: &[NodeId],
    ) -> Change {
        // The index may have been changed since the leader looked.
        if !self.can_grow(from) || !self.slice_bytes_max.contains_key(&from.index) {
            return nothing();
        }
        let info = self.indexes[&from.index].info.clone();
        let divides = matches!(info.spec.partition, PartitionBy::Range(_));
        if divides || slices <= info.spec.slices || slices > SLICES_MAX {
            return nothing();
        }
        let spec = IndexSpec { slices, ..(*info.spec).clone() };
        let unique = self.unique_id(info.bucket);
        self.begin_generation(&info, (&spec, info.bucket), unique, silent)
    }

    /// Begins a generation in which a slice is split in place. On other places all slices would be built from the source, which is more
    /// than the split of one slice is worth: an index with a host that may receive nothing waits.
    pub(super) fn split_slice(
        &mut self,
        from: LocalIndexId,
        (slice, at): (SliceNo, &[u8]),
        silent: &[NodeId],
    ) -> Change {
        // The index may have been changed since the leader looked.
        if !self.can_grow(from) || !self.slice_bytes_max.contains_key(&from.index) {
            return nothing();
        }
        let info = Arc::clone(&self.indexes[&from.index].info);
        let Some(spec) = info.spec.with_split(slice, at) else { return nothing() };
        check_split(&spec)?;
        if self.derived_placement(&info, (&spec, info.bucket), silent).is_none() {
            return nothing();
        }
        let unique = self.unique_id(info.bucket);
        self.begin_generation(&info, (&spec, info.bucket), unique, silent)
    }

    /// The places of the slices of a generation that derives from the one that serves: each is where the slice is that it is a part of, so
    /// that the nodes can make it from what they have. `None` if it does not derive, or if a node there may not receive slices.
    pub(super) fn derived_placement(
        &self,
        info: &IndexInfo,
        (spec, bucket): (&IndexSpec, BucketId),
        silent: &[NodeId],
    ) -> Option<Vec<Vec<NodeId>>> {
        let is_same = bucket == info.bucket && spec.replicas == info.spec.replicas;
        let derived = spec.derived_from(&info.spec).filter(|_| is_same)?;
        let nodes_of =
            |of: &DerivedSlice| info.topology.placement.get(usize::from(of.from.0)).cloned();
        let placement: Vec<Vec<NodeId>> = derived.iter().map(nodes_of).collect::<Option<_>>()?;
        self.hosts_receive(info, silent).then_some(placement)
    }

    /// True if each node that has a slice of an index may receive slices.
    pub(crate) fn hosts_receive(&self, info: &IndexInfo, silent: &[NodeId]) -> bool {
        let receives = |node: &NodeId| {
            !silent.contains(node) && self.receiving_indexers().any(|other| other == *node)
        };
        info.topology.placement.iter().flatten().all(receives)
    }
}

fn check_slice_bytes_max(bytes: u64) -> Result<()> {
    if bytes == 0 || bytes >= SLICE_BYTES_MAX_LEAST {
        return Ok(());
    }
    let what = format!(
        "slice_bytes_max must be 0, for never, or at least {SLICE_BYTES_MAX_LEAST} bytes, not {bytes}"
    );
    Err(Error::new(ErrorCode::InvalidParameter, what))
}
