//! Indexes that get more slices by themselves. The leader finds those that have outgrown theirs (`leader/growth.rs`); each gets a new
//! generation with more slices, as `ALTER INDEX … SET (slices = n)` would begin it.

use proto::Result;
use proto::model::ids::{IndexId, LocalIndexId, NodeId};
use proto::model::index::{
    GENERATIONS_MAX, IndexSpec, IndexState, PartitionBy, SLICE_BYTES_MAX_LEAST, SLICES_MAX,
};
use proto::rpc::command::Outcome;
use proto::{Error, ErrorCode};

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
        if bytes > 0 && matches!(info.spec.partition, PartitionBy::Range(_)) {
            let what = format!(
                "index \"{name}\" is partitioned by ranges: their number is that of its slices"
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

    /// True if a generation with more slices may be begun for an index that serves.
    pub(crate) fn can_grow(&self, from: LocalIndexId) -> bool {
        let generations = self.generations_of(from.index);
        let is_built = |id: &LocalIndexId| {
            self.record(*id).is_some_and(|record| record.info.state == IndexState::Backfill)
        };
        let shown = self.indexes.get(&from.index).map(|record| &record.info);
        let serves = shown.is_some_and(|info| {
            info.local_id() == from
                && info.state == IndexState::Maintenance
                && !matches!(info.spec.partition, PartitionBy::Range(_))
        });
        serves && !generations.iter().any(is_built) && generations.len() < GENERATIONS_MAX
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
        if slices <= info.spec.slices || slices > SLICES_MAX {
            return nothing();
        }
        let spec = IndexSpec { slices, ..(*info.spec).clone() };
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
