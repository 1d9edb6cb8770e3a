//! The generations of indexes.
//!
//! A generation is one complete set of slices, built for one definition. To nodes each is an index of its own: it has its place, its
//! build, its moves and its files. `indexes` has the generation that a name means: the one that serves, or the first one during its
//! build. `generations` has those beside it:
//!
//! - at most one for each index that is newer and being built. When it is complete, one command puts it in the place of the one that
//!   serves. Cancelled, it goes without a trace: what serves was never touched.
//!   An index whose first generation is not complete gets a newer one only over the next version of its data set. The first build goes on
//!   beside it until the switch, and is given up then: a version that has lost a partition for good lets it wait for ever.
//! - retired ones, which have given way. They are fed, and answer the scans, transactions and tokens that began on them, until the leader
//!   finds that nobody reads them any more (`leader/retired.rs`). There is no way back from a newer generation to an older one.
//!
//! The generations of an index may be over different buckets: the versions of a data set. The switch to a version is the switch of all its
//! generations in one command (`version_builds`).
//!
//! Numbers of generations only grow, and are not reused: a node that has files of one that the catalog does not list drops them when the
//! catalog has a newer one (`Catalog::is_gone`). A change of the set of generations is a change of the record that the name means, so
//! that nodes can tell an older catalog by the revision of that record.

use std::sync::Arc;

use proto::model::identity::UniqueId;
use proto::model::ids::{BucketId, Generation, IndexId, LocalIndexId, NodeId, TopologyNo};
use proto::model::index::{GENERATIONS_MAX, IndexInfo, IndexSpec, IndexState};
use proto::model::moves::{MoveStage, SliceMove};
use proto::model::topology::IndexTopology;
use proto::plant::{self, Plant};
use proto::rpc::command::Outcome;
use proto::{Error, ErrorCode, Result};

use super::checks::{check_name, check_spec};
use super::context::StateContext;
use super::effect::{Change, Effect, catalog_changed, nothing};
use super::index_record::IndexRecord;
use super::lookup::no_index;
use crate::planner;

impl StateContext {
    /// The record of a generation.
    pub(super) fn record(&self, id: LocalIndexId) -> Option<&IndexRecord> {
        let shown = self.indexes.get(&id.index).filter(|record| record.info.local_id() == id);
        shown.or_else(|| self.generations.get(&id))
    }

    pub(super) fn record_mut(&mut self, id: LocalIndexId) -> Option<&mut IndexRecord> {
        match self.indexes.get_mut(&id.index).filter(|record| record.info.local_id() == id) {
            Some(record) => Some(record),
            None => self.generations.get_mut(&id),
        }
    }

    /// All generations, in the order of [`Self::indexes`].
    pub(super) fn local_ids(&self) -> Vec<LocalIndexId> {
        self.indexes().map(|record| record.info.local_id()).collect()
    }

    /// All generations of an index, the one that its name means first.
    pub(super) fn generations_of(&self, index: IndexId) -> Vec<LocalIndexId> {
        let shown = self.indexes.get(&index).map(|record| record.info.local_id());
        let beside = self.generations.range(LocalIndexId::all_of(index)).map(|(id, _)| *id);
        shown.into_iter().chain(beside).collect()
    }

    /// The newest generation that was ever begun of an index.
    pub(crate) fn newest_generation(&self, index: IndexId) -> Option<Generation> {
        let shown = self.indexes.get(&index)?.info.generation;
        Some(self.newest_generations.get(&index).copied().unwrap_or(shown))
    }

    /// The generation that is being built to take the place of an index.
    pub(super) fn next_generation(&self, index: IndexId) -> Option<LocalIndexId> {
        let mut beside = self.generations.range(LocalIndexId::all_of(index));
        let is_built = |record: &IndexRecord| record.info.state == IndexState::Backfill;
        beside.find(|(_, record)| is_built(record)).map(|(id, _)| *id)
    }

    /// Changes a generation, if it is there.
    pub(super) fn change_index(&mut self, id: LocalIndexId, change: impl FnOnce(&mut IndexInfo)) {
        let (revision, unix_ms) = (self.revision(), self.unix_ms);
        if let Some(record) = self.record_mut(id) {
            record.change(revision, unix_ms, change);
        }
    }

    /// Notes a change of the set of an index's generations in the record that the name means.
    pub(super) fn note_generations(&mut self, index: IndexId) {
        let (revision, unix_ms) = (self.revision(), self.unix_ms);
        if let Some(record) = self.indexes.get_mut(&index) {
            record.change(revision, unix_ms, |_| {});
        }
    }

    pub(super) fn build_generation(
        &mut self,
        from: LocalIndexId,
        (before, spec): (&IndexSpec, &IndexSpec),
        unique: Option<UniqueId>,
        silent: &[NodeId],
    ) -> Change {
        let info = self.check_change(from, before, spec)?;
        check_spec(spec)?;
        self.begin_generation(&info, (spec, info.bucket), unique, silent)
    }

    pub(super) fn begin_generation(
        &mut self,
        info: &IndexInfo,
        (spec, bucket): (&IndexSpec, BucketId),
        unique: Option<UniqueId>,
        silent: &[NodeId],
    ) -> Change {
        self.check_room_for_index(spec)?;
        let from = info.local_id();
        let newest = self.newest_generation(from.index).unwrap_or(from.generation);
        let behind = unique.unwrap_or(UniqueId(0)).generation_behind(newest);
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
            // Nothing of it was built: the new declaration replaces the old one.
            self.indexes.insert(id.index, record);
        } else {
            self.generations.insert(id, record);
            self.note_generations(id.index);
        }
        Ok((Outcome::Generation(id), vec![Effect::CatalogChanged]))
    }

    /// Checks that an index may get another definition, and returns the generation that has the present one.
    fn check_change(
        &self,
        from: LocalIndexId,
        before: &IndexSpec,
        spec: &IndexSpec,
    ) -> Result<Arc<IndexInfo>> {
        let name = &before.name;
        let wrong =
            |what: String, hint: &str| Err(Error::new(ErrorCode::WrongState, what).with_hint(hint));
        let record = self.indexes.get(&from.index).ok_or_else(|| no_index(name))?;
        let info = &record.info;
        if info.local_id() != from || *info.spec != *before {
            let what = format!("index \"{name}\" was changed by another statement meanwhile");
            return wrong(
                what,
                "SHOW INDEXES shows its definition; repeat the statement if it still fits",
            );
        }
        if (&spec.name, &spec.bucket) != (&before.name, &before.bucket) {
            return Err(Error::internal("a generation has the name and the bucket of its index"));
        }
        self.check_not_built(from.index, name)?;
        if self.generations_of(from.index).len() >= GENERATIONS_MAX {
            let what = format!(
                "index \"{name}\" has {GENERATIONS_MAX} generations that scans or transactions may still read"
            );
            return Err(Error::new(ErrorCode::WrongState, what).with_hint(
                "SHOW SLICES shows them; each goes when the scans and transactions that began on it have ended",
            ));
        }
        Ok(Arc::clone(info))
    }

    /// All slices of a generation can be read: it serves from here on, and the one before it retires.
    pub(super) fn index_ready(&mut self, index: IndexId, generation: Generation) -> Change {
        let id = LocalIndexId { index, generation };
        // The generation may have been cancelled, dropped or made ready since the leader looked.
        let is_built = |record: &IndexRecord| record.info.state == IndexState::Backfill;
        let Some(record) = self.record(id).filter(|record| is_built(record)) else {
            return nothing();
        };
        let is_next = self.generations.contains_key(&id);
        let bucket = self.buckets.get(&record.info.bucket);
        if is_next && bucket.is_some_and(|bucket| bucket.info.rollback.is_some()) {
            // Its slices may have what is lost, and what serves can go back.
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
    pub(super) fn serve_next(&mut self, id: LocalIndexId) {
        if let Some(next) = self.generations.remove(&id) {
            self.give_way(id.index);
            self.indexes.insert(id.index, next);
        }
        self.change_index(id, |info| info.state = IndexState::Maintenance);
    }

    /// Puts the generation that serves beside the next one. A first build goes: nothing could read it.
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
    pub(super) fn drop_generation(&mut self, id: LocalIndexId) -> Change {
        let is_retired = |record: &IndexRecord| record.info.state == IndexState::Retired;
        if !self.generations.get(&id).is_some_and(is_retired) {
            return nothing();
        }
        self.generations.remove(&id);
        self.note_generations(id.index);
        catalog_changed()
    }

    /// Removes what is being built: a whole index, or the generation that was to take its place. The nodes drop what they have of it.
    pub(super) fn cancel_build(&mut self, name: &str) -> Change {
        let index = self.index_named(name).ok_or_else(|| no_index(name))?;
        let is_first = self.indexes[&index].info.state == IndexState::Backfill;
        if let Some(next) = self.next_generation(index).filter(|_| !is_first) {
            self.check_not_of_version(next)?;
            if !plant::is(Plant::CancelledServes) {
                self.generations.remove(&next);
            }
            self.note_generations(index);
            return catalog_changed();
        }
        let (what, hint) = match self.indexes[&index].info.state {
            IndexState::Backfill => return self.drop_index(name, false),
            IndexState::Pending => ("its build was not begun", "BUILD INDEX begins it"),
            IndexState::Maintenance | IndexState::Retired => {
                ("it is complete and serves scans", "SHOW INDEXES shows the builds under way")
            }
        };
        let message = format!("no build of index \"{name}\" is running: {what}");
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

    /// Removes all generations of an index.
    pub(super) fn remove_index(&mut self, index: IndexId) {
        self.indexes.remove(&index);
        self.generations.retain(|id, _| id.index != index);
        self.newest_generations.remove(&index);
        self.slice_bytes_max.remove(&index);
    }

    pub(super) fn rename_index(
        &mut self,
        from: LocalIndexId,
        before: &IndexSpec,
        (to, sql): (&str, &str),
    ) -> Change {
        let index = from.index;
        self.check_present(from, before)?;
        check_name(to)?;
        self.check_free(to)?;
        self.check_not_built(index, &before.name)?;
        let renamed = |spec: &IndexSpec| IndexSpec {
            name: to.to_owned(),
            sql: sql.to_owned(),
            ..spec.clone()
        };
        check_spec(&renamed(&self.indexes[&index].info.spec))?;
        for id in self.generations_of(index) {
            self.change_index(id, |info| info.spec = Arc::new(renamed(&info.spec)));
        }
        catalog_changed()
    }

    /// Checks that an index has the generation and the definition that a statement knows, and returns it.
    fn check_present(&self, from: LocalIndexId, before: &IndexSpec) -> Result<&Arc<IndexInfo>> {
        let name = &before.name;
        let record = self.indexes.get(&from.index).ok_or_else(|| no_index(name))?;
        if record.info.local_id() == from && *record.info.spec == *before {
            return Ok(&record.info);
        }
        let what = format!("index \"{name}\" was changed by another statement meanwhile");
        Err(Error::new(ErrorCode::WrongState, what)
            .with_hint("SHOW INDEXES shows its definition; repeat the statement if it still fits"))
    }

    /// Checks that no generation of an index is being built.
    fn check_not_built(&self, index: IndexId, name: &str) -> Result<()> {
        let is_first = self.indexes[&index].info.state == IndexState::Backfill;
        match is_first || self.next_generation(index).is_some() {
            true => {
                Err(Error::new(ErrorCode::WrongState, format!("index \"{name}\" is being built"))
                    .with_hint("wait until SHOW INDEXES shows it as complete, or use CANCEL BUILD"))
            }
            false => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "generations_tests.rs"]
mod tests;
