//! Applies the automatic growth of indexes. The leader finds indexes whose slices are too large
//! (`leader/generations/growth.rs`, `splits.rs`). Each gets a new generation: either one with
//! more slices, as `ALTER INDEX … SET (slices = n)` would begin it, or one in which a slice is
//! split in place.

use std::sync::Arc;

use proto::model::ids::LocalIndexId;
use proto::model::index::{IndexInfo, IndexSpec, PartitionBy, SLICE_BYTES_MAX_LEAST, SLICES_MAX};
use proto::rpc::command::{GrowIndex, SplitSlice};
use proto::{Error, ErrorCode, Result};

use crate::state::context::StateContext;
use crate::state::decisions::Decisions;
use crate::state::effect::{Apply, Change, nothing};
use crate::state::indexes::checks::check_split;
use crate::state::indexes::generations::begin;
use crate::state::indexes::generations::derived::derived_placement;

impl Apply for GrowIndex {
    /// Begins a generation with more slices; changes nothing if the index has changed since the
    /// leader's decision.
    fn apply(&self, state: &mut StateContext, decided: &Decisions) -> Change {
        let slices = self.slices;
        let Some(info) = growing_index(state, self.from) else { return nothing() };
        let divides = matches!(info.spec.partition, PartitionBy::Range(_));
        if divides || slices <= info.spec.slices || slices > SLICES_MAX {
            return nothing();
        }
        let spec = IndexSpec { slices, ..(*info.spec).clone() };
        let unique = state.buckets.unique_id(info.bucket);
        begin(state, &info, &spec, (unique, &decided.silent))
    }
}

impl Apply for SplitSlice {
    /// Begins a generation in which a slice is split in place, on the nodes that have the slice.
    /// Changes nothing while one of these nodes may not receive slices: on other nodes, all
    /// slices would be rebuilt from the source, which costs more than the split is worth.
    fn apply(&self, state: &mut StateContext, decided: &Decisions) -> Change {
        let Some(info) = growing_index(state, self.from) else { return nothing() };
        let Some(spec) = info.spec.with_split(self.slice, &self.at) else { return nothing() };
        check_split(&spec)?;
        if derived_placement(state, &info, (&spec, info.bucket), &decided.silent).is_none() {
            return nothing();
        }
        let unique = state.buckets.unique_id(info.bucket);
        begin(state, &info, &spec, (unique, &decided.silent))
    }
}

/// Returns the index whose growth the leader has decided; `None` if the index has changed since.
fn growing_index(state: &StateContext, from: LocalIndexId) -> Option<Arc<IndexInfo>> {
    let grows = state.indexes.slice_bytes_max().contains_key(&from.index);
    state.indexes.get(from.index).filter(|_| grows && state.can_grow(from)).cloned()
}

/// Checks the slice size from which an index should grow automatically.
pub(in crate::state::indexes) fn check_slice_bytes_max(spec: &IndexSpec, bytes: u64) -> Result<()> {
    if bytes != 0 && bytes < SLICE_BYTES_MAX_LEAST {
        let what = format!(
            "slice_bytes_max must be 0, for never, or at least {SLICE_BYTES_MAX_LEAST} bytes, not {bytes}"
        );
        return Err(Error::new(ErrorCode::InvalidParameter, what));
    }
    let divides = matches!(spec.partition, PartitionBy::Range(_));
    if bytes == 0 || !divides || spec.leading_ranges().is_some() {
        return Ok(());
    }
    let what = format!(
        "index \"{}\" is partitioned by ranges of another expression than an ascending first key: its slices cannot be split in place",
        spec.name
    );
    Err(Error::new(ErrorCode::WrongState, what)
        .with_hint("ALTER INDEX … PARTITION BY RANGE (…) SPLIT AT (…) gives it other ranges"))
}
