//! The generations of indexes.
//!
//! A generation is one complete set of slices, built for one definition. To nodes each is an index of its own: it has its place, its
//! build, its moves and its files. `indexes` has the generation that a name means: the one that serves, or the first one during its
//! build. `generations` has those beside it:
//!
//! - at most one for each index that is newer and being built. When it is complete, one command puts it in the place of the serving
//!   generation. A cancelled one is dropped without any effect on the serving one. An index whose first generation is not complete gets a
//!   newer one only over the next version of its data set. The first build continues beside it until the switch, and is then abandoned:
//!   over a version that has lost a partition for good it would wait for ever.
//! - retired generations, which were replaced. They still receive mutations, and answer the scans, transactions and tokens that began on
//!   them, until the leader finds that they have no reader any more (`leader/generations/retired.rs`). There is no way back from a newer
//!   generation to an older one.
//!
//! The generations of an index may be over different buckets: the versions of a data set. The switch to a version is the switch of all its
//! generations in one command (`versions::builds`).
//!
//! Numbers of generations only grow, and are not reused: a node that has files of one that the catalog does not list drops them when the
//! catalog has a newer one (`Catalog::is_gone`). A change of the set of generations is a change of the record that the name means, so
//! that nodes can tell an older catalog by the revision of that record.

pub mod derived;
pub mod growth;
pub mod records;

use std::sync::Arc;

use proto::model::identity::UniqueId;
use proto::model::ids::{BucketId, Generation, IndexId, LocalIndexId, NodeId, TopologyNo};
use proto::model::index::{GENERATIONS_MAX, IndexInfo, IndexSpec, IndexState};
use proto::model::moves::{MoveStage, SliceMove};
use proto::model::topology::IndexTopology;
use proto::plant::{self, Plant};
use proto::rpc::command::{
    BuildGeneration, CancelBuild, DropGeneration, GrowIndex, IndexReady, Outcome, SplitSlice,
};
use proto::{Error, ErrorCode, Result};

use crate::planner;
use crate::state::context::StateContext;
use crate::state::decisions::Decisions;
use crate::state::effect::{Apply, Change, Effect, catalog_changed, nothing};
use crate::state::indexes::checks::{check_name, check_spec};
use crate::state::indexes::record::IndexRecord;

impl Apply for BuildGeneration {
    fn apply(&self, state: &mut StateContext, decided: &Decisions) -> Change {
        state.build_generation(self.index, &self.spec, decided.unique, &decided.silent)
    }
}

impl Apply for IndexReady {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        state.index_ready(self.index, self.generation)
    }
}

impl Apply for CancelBuild {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        state.cancel_build(self.index)
    }
}

impl Apply for DropGeneration {
    fn apply(&self, state: &mut StateContext, _decided: &Decisions) -> Change {
        state.drop_generation(self.generation)
    }
}

impl Apply for GrowIndex {
    fn apply(&self, state: &mut StateContext, decided: &Decisions) -> Change {
        state.grow_index(self.from, self.slices, &decided.silent)
    }
}

impl Apply for SplitSlice {
    fn apply(&self, state: &mut StateContext, decided: &Decisions) -> Change {
        state.split_slice(self.from, (self.slice, &self.at), &decided.silent)
    }
}

impl StateContext {
    pub(in crate::state) fn build_generation(
        &mut self,
        index: IndexId,
        spec: &IndexSpec,
        unique: UniqueId,
        silent: &[NodeId],
    ) -> Change {
        let info = self.check_change(index, spec)?;
        check_spec(spec)?;
        self.begin_generation(&info, (spec, info.bucket), unique, silent)
    }

    pub(in crate::state) fn begin_generation(
        &mut self,
        info: &IndexInfo,
        (spec, bucket): (&IndexSpec, BucketId),
        unique: UniqueId,
        silent: &[NodeId],
    ) -> Change {
        self.check_room_for_index(spec)?;
        let from = info.local_id();
        let newest = self.newest_generation(from.index).unwrap_or(from.generation);
        let behind = unique.generation_behind(newest);
        let generation = behind.ok_or_else(|| {
            Error::new(
                ErrorCode::OverLimit,
                format!("index \"{}\" has no number left for another generation", spec.name),
            )
            .with_hint("create it under another name, and drop it under this one")
        })?;
        let placement = match self.derived_placement(info, (spec, bucket), silent) {
            Some(placement) => placement,
            None => planner::place(spec.slices, spec.replicas, &self.indexer_loads(silent))?,
        };
        let state = match info.state {
            IndexState::Pending => IndexState::Pending,
            _ => IndexState::Backfill,
        };
        let info = IndexInfo {
            bucket,
            spec: Arc::new(spec.clone()),
            state,
            generation,
            topology: Arc::new(IndexTopology { number: TopologyNo(1), placement }),
            moves: Vec::new(),
            ..info.clone()
        };
        let id = info.local_id();
        let record = IndexRecord::new(info, self.revision(), self.unix_ms);
        self.newest_generations.insert(id.index, generation);
        if state == IndexState::Pending {
            // No part of it was built: the new declaration replaces the old one.
            self.indexes.insert(id.index, record);
        } else {
            self.generations.insert(id, record);
            self.note_generations(id.index);
        }
        Ok((Outcome::Generation(id), vec![Effect::CatalogChanged]))
    }

    /// Checks that an index may get another definition, and returns the generation that has the present one.
    fn check_change(&self, index: IndexId, spec: &IndexSpec) -> Result<Arc<IndexInfo>> {
        let info = self.index_of_command(index)?;
        let name = &info.spec.name;
        if (&spec.name, &spec.bucket) != (name, &info.spec.bucket) {
            return Err(Error::internal("a generation has the name and the bucket of its index"));
        }
        self.check_not_built(&info)?;
        if self.generations_of(index).len() >= GENERATIONS_MAX {
            let what = format!(
                "index \"{name}\" has {GENERATIONS_MAX} generations that scans or transactions may still read"
            );
            return Err(Error::new(ErrorCode::WrongState, what).with_hint(
                "SHOW SLICES shows them; each goes when the scans and transactions that began on it have ended",
            ));
        }
        Ok(info)
    }

    /// All slices of a generation can be read: it serves from now on, and the previous one retires.
    pub(in crate::state) fn index_ready(
        &mut self,
        index: IndexId,
        generation: Generation,
    ) -> Change {
        let id = LocalIndexId { index, generation };
        // The generation may have been cancelled, dropped or made ready since the leader looked.
        let is_built = |record: &IndexRecord| record.info.state == IndexState::Backfill;
        let Some(record) = self.record(id).filter(|record| is_built(record)) else {
            return nothing();
        };
        let is_next = self.generations.contains_key(&id);
        let bucket = self.buckets.get(&record.info.bucket);
        if is_next && bucket.is_some_and(|bucket| bucket.info.rollback.is_some()) {
            // Its slices may contain lost mutations, while the serving generation can be rolled back.
            return nothing();
        }
        if self.is_of_next_version(&record.info) {
            // All indexes of a data set are switched together.
            return nothing();
        }
        self.serve_next(id);
        Ok((Outcome::Done, vec![Effect::CatalogChanged]))
    }

    /// Puts a generation in the place of the one that serves.
    pub(in crate::state) fn serve_next(&mut self, id: LocalIndexId) {
        if let Some(next) = self.generations.remove(&id) {
            self.give_way(id.index);
            self.indexes.insert(id.index, next);
        }
        self.change_index(id, |info| info.state = IndexState::Maintenance);
    }

    /// Puts the generation that serves beside the next one. An unfinished first build is dropped: it was never
    /// readable.
    fn give_way(&mut self, index: IndexId) {
        let Some(info) = self.indexes.get(&index).map(|record| &record.info) else { return };
        if info.state == IndexState::Backfill {
            self.indexes.remove(&index);
            return;
        }
        let before = info.local_id();
        let unfinished = |m: &SliceMove| m.stage < MoveStage::Done;
        self.end_moves(before, Some("a newer generation serves the index"), unfinished);
        self.change_index(before, |info| info.state = IndexState::Retired);
        if let Some(record) = self.indexes.remove(&index) {
            self.generations.insert(before, record);
        }
    }

    /// Removes a retired generation. The nodes drop what they have of it.
    pub(in crate::state) fn drop_generation(&mut self, id: LocalIndexId) -> Change {
        let is_retired = |record: &IndexRecord| record.info.state == IndexState::Retired;
        if !self.generations.get(&id).is_some_and(is_retired) {
            return nothing();
        }
        self.generations.remove(&id);
        self.note_generations(id.index);
        catalog_changed()
    }

    /// Removes what is being built: a whole index, or the generation that was to take its place. The nodes drop what they have of it.
    pub(in crate::state) fn cancel_build(&mut self, index: IndexId) -> Change {
        let info = self.index_of_command(index)?;
        let is_first = info.state == IndexState::Backfill;
        if let Some(next) = self.next_generation(index).filter(|_| !is_first) {
            self.check_not_of_version(next)?;
            if !plant::is(Plant::CancelledServes) {
                self.generations.remove(&next);
            }
            self.note_generations(index);
            return catalog_changed();
        }
        let (what, hint) = match info.state {
            IndexState::Backfill => return self.drop_index(index),
            IndexState::Pending => ("its build was not begun", "BUILD INDEX begins it"),
            IndexState::Maintenance | IndexState::Retired => {
                ("it is complete and serves scans", "SHOW INDEXES shows the builds under way")
            }
        };
        let message = format!("no build of index \"{}\" is running: {what}", info.spec.name);
        Err(Error::new(ErrorCode::WrongState, message)
            .with_hint(format!("{hint}; DROP INDEX removes the index")))
    }

    /// Checks that a build is not part of the loading of a version.
    fn check_not_of_version(&self, next: LocalIndexId) -> Result<()> {
        let info = &self.generations[&next].info;
        let Some((set, number)) = self.version_of(info.bucket) else { return Ok(()) };
        if !self.is_of_next_version(info) {
            return Ok(());
        }
        let (name, bucket) = (&info.spec.name, &info.spec.bucket);
        let version = &self.data_sets[&set].versions[&number].name;
        let what =
            format!("index \"{name}\" is built for version '{version}' of bucket \"{bucket}\"");
        let hint = format!("ALTER BUCKET {bucket} CANCEL VERSION '{version}' ends all of it");
        Err(Error::new(ErrorCode::WrongState, what).with_hint(hint))
    }

    pub(in crate::state) fn rename_index(&mut self, index: IndexId, to: &str, sql: &str) -> Change {
        let info = self.index_of_command(index)?;
        check_name(to)?;
        self.check_free(to)?;
        self.check_not_built(&info)?;
        let renamed = |spec: &IndexSpec| IndexSpec {
            name: to.to_owned(),
            sql: sql.to_owned(),
            ..spec.clone()
        };
        check_spec(&renamed(&info.spec))?;
        for id in self.generations_of(index) {
            self.change_index(id, |info| info.spec = Arc::new(renamed(&info.spec)));
        }
        catalog_changed()
    }

    /// Checks that no generation of an index is being built.
    fn check_not_built(&self, info: &IndexInfo) -> Result<()> {
        let is_first = info.state == IndexState::Backfill;
        if !is_first && self.next_generation(info.id).is_none() {
            return Ok(());
        }
        let what = format!("index \"{}\" is being built", info.spec.name);
        Err(Error::new(ErrorCode::WrongState, what)
            .with_hint("wait until SHOW INDEXES shows it as complete, or use CANCEL BUILD"))
    }
}

#[cfg(test)]
mod tests;
