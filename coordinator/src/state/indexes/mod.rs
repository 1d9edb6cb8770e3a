//! Applies the DDL of indexes: creating, building, dropping, renaming and setting options.

pub mod checks;
pub mod generations;
pub mod placement;
pub mod record;
pub mod state;

use std::sync::Arc;

use proto::Error;
use proto::model::ids::{IndexId, TopologyNo};
use proto::model::index::{IndexInfo, IndexSpec, IndexState, REPLICAS_MAX};
use proto::model::topology::IndexTopology;
use proto::rpc::command::{
    BuildIndexes, CreateIndex, DropIndex, Outcome, RenameIndex, SetReplicas,
    SetSeparateIncludedColumns, SetSliceBytesMax, StateUsage,
};

use crate::planner;
use crate::state::capacity::table::GROWING;
use crate::state::context::StateContext;
use crate::state::decisions::Decisions;
use crate::state::effect::{Apply, Change, Effect, catalog_changed, changed_if, nothing};
use crate::state::indexes::checks::{check_name, check_range, check_spec};
use crate::state::indexes::generations::check_not_built;
use crate::state::indexes::generations::growth::check_slice_bytes_max;
use crate::state::indexes::placement::change_placement;
use crate::state::nodes::lost::NewHosts;

impl Apply for CreateIndex {
    fn apply(&self, state: &mut StateContext, decided: &Decisions) -> Change {
        let Self { spec, defer_build, if_not_exists, .. } = self;
        check_name(&spec.name)?;
        if state.bucket_of_command(self.bucket)?.name != spec.bucket {
            return Err(Error::internal("a definition has the name of its bucket"));
        }
        if let Some(id) = state.indexes.id_of(&spec.name).filter(|_| *if_not_exists) {
            return Ok((Outcome::Index(id), Vec::new()));
        }
        state.check_name_is_free(&spec.name)?;
        check_spec(spec)?;
        let room = state.check_free_capacity(StateUsage::of_index(spec));
        room.map_err(|error| error.context(format!("index \"{}\"", spec.name)))?;
        state.check_bucket_limits(spec)?;
        let loads = state.indexer_loads(&decided.silent);
        let placement = planner::place_slices(spec.slices, spec.replicas, &loads)?;
        let id = state.indexes.next_id();
        let info = IndexInfo {
            id,
            bucket: state.current_bucket(self.bucket),
            spec: Arc::new(spec.clone()),
            state: if *defer_build { IndexState::Pending } else { IndexState::Backfill },
            generation: decided.unique.first_generation(),
            topology: Arc::new(IndexTopology { number: TopologyNo(1), placement }),
            moves: Vec::new(),
            revision: 0,
            defined: 0,
        };
        state.indexes.create(info, state.clock.now());
        Ok((Outcome::Index(id), vec![Effect::CatalogChanged]))
    }
}

impl Apply for BuildIndexes {
    /// Begins the builds of indexes. Copies on silent nodes are first placed on other nodes, if
    /// there are any.
    fn apply(&self, state: &mut StateContext, decided: &Decisions) -> Change {
        let mut infos = Vec::new();
        for id in &self.indexes {
            infos.push(state.index_of_command(*id)?);
        }
        infos.sort_unstable_by_key(|info| info.id);
        infos.dedup_by_key(|info| info.id);
        // An index that is being built or is ready stays as it is.
        infos.retain(|info| info.state == IndexState::Pending);
        let mut heirs = NewHosts::new(state, &[], &decided.silent);
        for info in &infos {
            let (id, now) = (info.local_id(), state.clock.now());
            state.indexes.change(id, now, |info| info.state = IndexState::Backfill);
            if let Some(placement) = heirs.replace_silent_nodes(info) {
                state.indexes.change(id, now, |info| change_placement(info, placement));
            }
        }
        let ids: Vec<IndexId> = infos.iter().map(|info| info.id).collect();
        let effects = changed_if(!ids.is_empty());
        Ok((Outcome::Building(ids), effects))
    }
}

impl Apply for DropIndex {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        state.index_of_command(self.index)?;
        state.indexes.remove(self.index);
        catalog_changed()
    }
}

impl Apply for RenameIndex {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        let Self { index, to, sql } = self;
        let info = state.index_of_command(*index)?;
        check_name(to)?;
        state.check_name_is_free(to)?;
        check_not_built(state, &info)?;
        let rename = |spec: &mut IndexSpec| {
            spec.name.clone_from(to);
            spec.sql.clone_from(sql);
        };
        let mut renamed = IndexSpec::clone(&info.spec);
        rename(&mut renamed);
        check_spec(&renamed)?;
        state.indexes.change_spec(*index, (state.clock.now(), true), rename);
        catalog_changed()
    }
}

impl Apply for SetReplicas {
    /// Sets the desired number of copies. The leader then adds or removes copies by moves. An index
    /// whose build is not complete keeps its placement until then.
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        let Self { index, replicas } = *self;
        check_range("replicas", u64::from(replicas), 0, u64::from(REPLICAS_MAX))?;
        let before = state.index_of_command(index)?.spec.replicas;
        if before == replicas {
            return nothing();
        }
        if replicas > before {
            let kept = state.indexes.generations_of(index);
            let kept = kept.filter(|info| info.state != IndexState::Retired);
            let slices: usize = kept.map(|info| usize::from(info.spec.slices)).sum();
            let places = slices * usize::from(replicas - before);
            state.check_free_capacity(StateUsage { places, ..StateUsage::default() })?;
            let indexers: Vec<_> = state.nodes.receiving().map(|node| node.id).collect();
            planner::check_enough(replicas, &indexers)?;
        }
        let now = state.clock.now();
        state.indexes.change_spec(index, (now, false), |spec| spec.replicas = replicas);
        catalog_changed()
    }
}

impl Apply for SetSeparateIncludedColumns {
    /// Sets whether the included columns of an index are stored in separate fragments.
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        let Self { index, separate } = *self;
        if state.index_of_command(index)?.spec.separate_included_columns == separate {
            return nothing();
        }
        let set = |spec: &mut IndexSpec| spec.separate_included_columns = separate;
        state.indexes.change_spec(index, (state.clock.now(), false), set);
        catalog_changed()
    }
}

impl Apply for SetSliceBytesMax {
    /// Sets the slice size from which an index grows; 0 means never.
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        let Self { index, bytes } = *self;
        let info = state.index_of_command(index)?;
        check_slice_bytes_max(&info.spec, bytes)?;
        let growing = state.indexes.slice_bytes_max();
        if bytes > 0 && !growing.contains_key(&index) {
            GROWING.check(growing.len() + 1)?;
        }
        match state.indexes.set_slice_bytes_max(index, bytes) {
            true => catalog_changed(),
            false => nothing(),
        }
    }
}
