//! DDL of indexes.

pub mod checks;
pub mod placement;
pub mod record;

use std::sync::Arc;

use proto::Error;
use proto::model::ids::{BucketId, Generation, IndexId, NodeId, TopologyNo};
use proto::model::index::{IndexInfo, IndexSpec, IndexState, REPLICAS_MAX};
use proto::model::topology::IndexTopology;
use proto::rpc::command::{
    BuildIndexes, CreateIndex, DropIndex, Outcome, RenameIndex, SetReplicas,
    SetSeparateIncludedColumns, SetSliceBytesMax,
};

use crate::planner;
use crate::state::context::StateContext;
use crate::state::decisions::Decisions;
use crate::state::effect::{Apply, Change, Effect, catalog_changed, nothing};
use crate::state::indexes::checks::{check_name, check_range, check_spec};
use crate::state::indexes::record::IndexRecord;

impl Apply for CreateIndex {
    fn apply(&self, state: &mut StateContext, decided: &Decisions) -> Change {
        let how = (self.defer_build, self.if_not_exists);
        let generation = decided.unique.first_generation();
        state.create_index((self.bucket, &self.spec), generation, how, &decided.silent)
    }
}

impl Apply for BuildIndexes {
    fn apply(&self, state: &mut StateContext, decided: &Decisions) -> Change {
        state.build_on(&self.indexes, &decided.silent)
    }
}

impl Apply for DropIndex {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        state.drop_index(self.index)
    }
}

impl Apply for RenameIndex {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        state.rename_index(self.index, &self.to, &self.sql)
    }
}

impl Apply for SetReplicas {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        state.set_replicas(self.index, self.replicas)
    }
}

impl Apply for SetSeparateIncludedColumns {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        state.set_separate_included_columns(self.index, self.separate)
    }
}

impl Apply for SetSliceBytesMax {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        state.set_slice_bytes_max(self.index, self.bytes)
    }
}

impl StateContext {
    pub(in crate::state) fn create_index(
        &mut self,
        (bucket, spec): (BucketId, &IndexSpec),
        generation: Generation,
        (defer_build, if_not_exists): (bool, bool),
        silent: &[NodeId],
    ) -> Change {
        check_name(&spec.name)?;
        if self.bucket_of_command(bucket)?.name != spec.bucket {
            return Err(Error::internal("a definition has the name of its bucket"));
        }
        let bucket = self.current_bucket(bucket);
        if let Some(id) = self.index_named(&spec.name).filter(|_| if_not_exists) {
            return Ok((Outcome::Index(id), Vec::new()));
        }
        self.check_free(&spec.name)?;
        check_spec(spec)?;
        self.check_room_for_index(spec)?;
        self.check_room_in_bucket(spec)?;
        let placement = planner::place(spec.slices, spec.replicas, &self.indexer_loads(silent))?;
        self.last_index += 1;
        let id = IndexId(self.last_index);
        let state = if defer_build { IndexState::Pending } else { IndexState::Backfill };
        let info = IndexInfo {
            id,
            bucket,
            spec: Arc::new(spec.clone()),
            state,
            generation,
            topology: Arc::new(IndexTopology { number: TopologyNo(1), placement }),
            moves: Vec::new(),
            revision: 0,
            defined: 0,
        };
        self.indexes.insert(id, IndexRecord::new(info, self.revision(), self.unix_ms));
        Ok((Outcome::Index(id), vec![Effect::CatalogChanged]))
    }

    pub(in crate::state) fn build_indexes(&mut self, indexes: &[IndexId]) -> Change {
        indexes.iter().try_for_each(|id| self.index_of_command(*id).map(drop))?;
        let mut ids = indexes.to_vec();
        ids.sort_unstable();
        ids.dedup();
        // An index that is being built or is ready stays as it is.
        ids.retain(|id| self.indexes[id].info.state == IndexState::Pending);
        for id in &ids {
            let id = self.indexes[id].info.local_id();
            self.change_index(id, |info| info.state = IndexState::Backfill);
        }
        let effects = if ids.is_empty() { Vec::new() } else { vec![Effect::CatalogChanged] };
        Ok((Outcome::Building(ids), effects))
    }

    pub(in crate::state) fn drop_index(&mut self, id: IndexId) -> Change {
        self.index_of_command(id)?;
        self.remove_index(id);
        catalog_changed()
    }

    /// Keeps the included columns of an index in fragments of their own, or no longer.
    pub(in crate::state) fn set_separate_included_columns(
        &mut self,
        id: IndexId,
        separate: bool,
    ) -> Change {
        if self.index_of_command(id)?.spec.separate_included_columns == separate {
            return nothing();
        }
        self.change_spec(id, |spec| spec.separate_included_columns = separate);
        catalog_changed()
    }

    /// Sets the desired number of copies. The leader adds and removes copies by moves. An index that is not built yet
    /// keeps its placement until its build is complete.
    pub(in crate::state) fn set_replicas(&mut self, id: IndexId, replicas: u8) -> Change {
        check_range("replicas", u64::from(replicas), 0, u64::from(REPLICAS_MAX))?;
        let now = self.index_of_command(id)?.spec.replicas;
        if now == replicas {
            return nothing();
        }
        let indexers: Vec<_> = self.receiving_indexers().collect();
        if replicas > now {
            let kept = self.generations_of(id).into_iter().filter_map(|id| self.record(id));
            let kept = kept.filter(|record| record.info.state != IndexState::Retired);
            let slices: usize = kept.map(|record| usize::from(record.info.spec.slices)).sum();
            self.check_places(slices * usize::from(replicas - now))?;
            planner::check_enough(replicas, &indexers)?;
        }
        self.change_spec(id, |spec| spec.replicas = replicas);
        catalog_changed()
    }

    /// Changes a setting of an index, also in the generation that is to take its place.
    fn change_spec(&mut self, index: IndexId, change: impl Fn(&mut IndexSpec)) {
        for id in self.generations_of(index) {
            self.change_index(id, |info| {
                if info.state != IndexState::Retired {
                    change(Arc::make_mut(&mut info.spec));
                }
            });
        }
    }
}
