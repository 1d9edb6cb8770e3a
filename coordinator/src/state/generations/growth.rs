//! Indexes that get more slices by themselves. The leader finds indexes whose slices are too large (`leader/generations/growth.rs`,
//! `splits.rs`); each gets a new generation with more slices, as `ALTER INDEX … SET (slices = n)` would begin it, or with one slice split
//! in place.

use std::sync::Arc;

use proto::Result;
use proto::model::ids::{IndexId, LocalIndexId, NodeId, SliceNo};
use proto::model::index::{
    GENERATIONS_MAX, IndexSpec, IndexState, PartitionBy, SLICE_BYTES_MAX_LEAST, SLICES_MAX,
};
use proto::rpc::command::Outcome;
use proto::{Error, ErrorCode};

use crate::state::capacity::limits::GROWING_INDEXES_MAX;
use crate::state::context::StateContext;
use crate::state::effect::{Change, Effect, nothing};
use crate::state::indexes::checks::check_split;

impl StateContext {
    /// Sets the size from which on an index gets more slices; 0 means never.
    pub(in crate::state) fn set_slice_bytes_max(&mut self, id: IndexId, bytes: u64) -> Change {
        let info = self.index_of_command(id)?;
        check_slice_bytes_max(bytes)?;
        let divides = matches!(info.spec.partition, PartitionBy::Range(_));
        if bytes > 0 && divides && info.spec.leading_ranges().is_none() {
            let what = format!(
                "index \"{}\" is partitioned by ranges of another expression than an ascending first key: its slices cannot be split in place",
                info.spec.name
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

    /// The indexes that grow automatically, each with the size of a slice, in bytes, from which it grows.
    pub(crate) fn slice_bytes_max(&self) -> impl Iterator<Item = (IndexId, u64)> {
        self.slice_bytes_max.iter().map(|(index, bytes)| (*index, *bytes))
    }

    /// True if a generation with more slices may be begun for an index that serves. One more is left for a statement, which would otherwise
    /// be refused until a retired generation is dropped.
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
    pub(in crate::state) fn grow_index(
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
    pub(in crate::state) fn split_slice(
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
