//! The generations of indexes.
//!
//! A generation is one complete set of slices, built for one definition. Nodes treat each
//! generation as a separate index, with its own placement, build, moves and files. The name of an
//! index refers to one of them (the *named* one): the generation that serves, or the first one
//! during its build. An index may have further generations:
//!
//! - at most one that is newer and being built. When it is complete, one command puts it in the
//!   place of the serving generation. A cancelled one is dropped without any effect on the
//!   serving one. An index whose first generation is not complete gets a newer one only over the
//!   next version of its data set. The first build continues at the same time until the switch,
//!   and is then abandoned: over a version that has lost a partition for good it would wait for
//!   ever.
//! - retired generations, which were replaced. They still receive mutations, and answer the
//!   scans, transactions and tokens that began on them, until the leader finds that they have no
//!   reader any more (`leader/generations/retired.rs`). There is no way back from a newer
//!   generation to an older one.
//!
//! The generations of an index may be over different buckets: the versions of a data set. The
//! switch to a version is the switch of all its generations in one command (`versions`).
//!
//! Numbers of generations only grow, and are not reused. If a node has files of a generation that
//! the catalog does not list, it drops them when the catalog has a newer one
//! (`Catalog::is_gone`). A change of the set of generations also changes the record of the named
//! generation, so that nodes can tell an older catalog by the revision of that record.

pub mod derived;
pub mod growth;
pub mod queries;

use std::sync::Arc;

use proto::model::identity::UniqueId;
use proto::model::ids::{BucketId, IndexId, LocalIndexId, NodeId, TopologyNo};
use proto::model::index::{GENERATIONS_MAX, IndexInfo, IndexSpec, IndexState};
use proto::model::topology::IndexTopology;
use proto::plant::{self, Plant};
use proto::rpc::command::{
    BuildGeneration, CancelBuild, DropGeneration, IndexReady, Outcome, StateUsage,
};
use proto::{Error, ErrorCode, Result};

use crate::planner;
use crate::state::consequence::Consequence;
use crate::state::context::StateContext;
use crate::state::decisions::Decisions;
use crate::state::effect::{Apply, Change, catalog_changed, changed_if, nothing};
use crate::state::indexes::checks::check_spec;
use crate::state::indexes::generations::derived::derived_placement;

impl Apply for BuildGeneration {
    fn apply(&self, state: &mut StateContext, decided: &Decisions) -> Change {
        let info = check_change(state, self.index, &self.spec)?;
        check_spec(&self.spec)?;
        begin(state, &info, &self.spec, (decided.unique, &decided.silent))
    }
}

/// Begins a generation of an index over the bucket of its named generation.
fn begin(
    state: &mut StateContext,
    info: &IndexInfo,
    spec: &IndexSpec,
    how: (UniqueId, &[NodeId]),
) -> Change {
    let next = new_generation(state, info, (spec, info.bucket), how)?;
    let id = next.local_id();
    state.indexes.begin_generation(next, state.clock.now());
    Ok((Outcome::Generation(id), changed_if(true)))
}

/// Returns the next generation of an index, over a bucket. Returns an error if that would exceed
/// a limit of the state.
pub(in crate::state) fn new_generation(
    state: &StateContext,
    info: &IndexInfo,
    (spec, bucket): (&IndexSpec, BucketId),
    (unique, silent): (UniqueId, &[NodeId]),
) -> Result<IndexInfo> {
    let room = state.check_free_capacity(StateUsage::of_index(spec));
    room.map_err(|error| error.context(format!("index \"{}\"", spec.name)))?;
    let newest = state.newest_generation(info.id).unwrap_or(info.generation);
    let generation = unique.generation_after(newest).ok_or_else(|| {
        Error::new(
            ErrorCode::OverLimit,
            format!("index \"{}\" has no number left for another generation", spec.name),
        )
        .with_hint("create it under another name, and drop it under this one")
    })?;
    let placement = match derived_placement(state, info, (spec, bucket), silent) {
        Some(placement) => placement,
        None => planner::place_slices(spec.slices, spec.replicas, &state.indexer_loads(silent))?,
    };
    Ok(IndexInfo {
        bucket,
        spec: Arc::new(spec.clone()),
        state: match info.state {
            IndexState::Pending => IndexState::Pending,
            _ => IndexState::Backfill,
        },
        generation,
        topology: Arc::new(IndexTopology { number: TopologyNo(1), placement }),
        moves: Vec::new(),
        ..info.clone()
    })
}

/// Checks that the definition of an index may change, and returns the generation that its name
/// refers to.
fn check_change(state: &StateContext, index: IndexId, spec: &IndexSpec) -> Result<Arc<IndexInfo>> {
    let info = state.index_of_command(index)?;
    let name = &info.spec.name;
    if (&spec.name, &spec.bucket) != (name, &info.spec.bucket) {
        return Err(Error::internal("a generation has the name and the bucket of its index"));
    }
    check_not_built(state, &info)?;
    if state.indexes.generations_of(index).count() >= GENERATIONS_MAX {
        let what = format!(
            "index \"{name}\" has {GENERATIONS_MAX} generations that scans or transactions may still read"
        );
        return Err(Error::new(ErrorCode::WrongState, what).with_hint(
            "SHOW SLICES shows them; each goes when the scans and transactions that began on it have ended",
        ));
    }
    Ok(info)
}

/// Checks that no generation of an index is being built.
pub(super) fn check_not_built(state: &StateContext, info: &IndexInfo) -> Result<()> {
    let is_first = info.state == IndexState::Backfill;
    if !is_first && state.indexes.next_generation(info.id).is_none() {
        return Ok(());
    }
    let what = format!("index \"{}\" is being built", info.spec.name);
    Err(Error::new(ErrorCode::WrongState, what)
        .with_hint("wait until SHOW INDEXES shows it as complete, or use CANCEL BUILD"))
}

impl Apply for IndexReady {
    /// Makes a generation whose slices can all be read the serving one, and retires the previous
    /// one.
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        let id = LocalIndexId { index: self.index, generation: self.generation };
        // The generation may have been cancelled, dropped or made ready since the leader looked.
        let record = state.indexes.record(id);
        let Some(info) = record.map(|of| &of.info).filter(|of| of.state == IndexState::Backfill)
        else {
            return nothing();
        };
        let is_next = state.indexes.others().contains_key(&id);
        if is_next && state.buckets.is_rolling_back(info.bucket) {
            // Its slices may contain lost mutations, while the serving generation can be rolled back.
            return nothing();
        }
        if state.is_of_next_version(info) {
            // All indexes of a data set are switched together.
            return nothing();
        }
        let ended = state.indexes.serve(id, state.clock.now());
        state.carry_out(&Consequence::SliceMovesEnded(ended));
        catalog_changed()
    }
}

impl Apply for DropGeneration {
    /// Removes a retired generation. The nodes then drop their data of it.
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        let id = self.generation;
        let other = state.indexes.others().get(&id);
        if other.is_none_or(|record| record.info.state != IndexState::Retired) {
            return nothing();
        }
        state.indexes.remove_generation(id, state.clock.now());
        catalog_changed()
    }
}

impl Apply for CancelBuild {
    /// Cancels a build: removes the whole index, or only the generation that would replace the
    /// serving one. The nodes then drop their data of it.
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        let info = state.index_of_command(self.index)?;
        let is_first = info.state == IndexState::Backfill;
        if let Some(next) = state.indexes.next_generation(info.id).filter(|_| !is_first) {
            check_not_of_version(state, next)?;
            let (id, now) = (next.local_id(), state.clock.now());
            match plant::is(Plant::CancelledServes) {
                true => state.indexes.renew_named_revision(info.id, now),
                false => state.indexes.remove_generation(id, now),
            }
            return catalog_changed();
        }
        let (what, hint) = match info.state {
            IndexState::Backfill => {
                state.indexes.remove(info.id);
                return catalog_changed();
            }
            IndexState::Pending => ("its build was not begun", "BUILD INDEX begins it"),
            IndexState::Maintenance | IndexState::Retired => {
                ("it is complete and serves scans", "SHOW INDEXES shows the builds under way")
            }
        };
        let message = format!("no build of index \"{}\" is running: {what}", info.spec.name);
        Err(Error::new(ErrorCode::WrongState, message)
            .with_hint(format!("{hint}; DROP INDEX removes the index")))
    }
}

/// Checks that the build of a generation is not part of the loading of a version.
fn check_not_of_version(state: &StateContext, next: &IndexInfo) -> Result<()> {
    let Some(version) = state.versions.version(next.bucket) else { return Ok(()) };
    if !state.is_of_next_version(next) {
        return Ok(());
    }
    let (name, bucket, version) = (&next.spec.name, &next.spec.bucket, &version.name);
    let what = format!("index \"{name}\" is built for version '{version}' of bucket \"{bucket}\"");
    let hint = format!("ALTER BUCKET {bucket} CANCEL VERSION '{version}' ends all of it");
    Err(Error::new(ErrorCode::WrongState, what).with_hint(hint))
}

#[cfg(test)]
mod tests;
