//! The invariants of the state after each command; debug builds check them
//! ([`StateContext::check`]).
//!
//! **Present**
//!
//! - Every index belongs to a known bucket. The owner of every vbucket, and the target of every
//!   vbucket that is handed over, is a registered projector.
//! - Every bucket that is loaded from files is that of a data set or of a version. A data set has
//!   at most one version that is loading, and at most one that is current.
//! - Every embedded bucket has copies, on registered projectors, and their leader owns all of its
//!   vbuckets.
//! - Every slice has at least one copy. The copies of a slice are on distinct registered
//!   indexers.
//! - The newest retained topology of an index is its current one, and the numbers of topologies
//!   grow.
//! - Epochs grow, and each epoch follows an older one. The horizon is never above the newest
//!   epoch.
//! - The moments of a bucket's epochs grow, and end with its newest epoch.
//! - A rollback has the data that its stage needs.
//! - A privilege names a bucket that exists and that is not a version.
//! - Indexes, nodes, moves, users and remembered drops are within the limits of the state.
//!
//! **Absent**
//!
//! - An id (of a bucket, an index, a move, a user or a token) above the last id that was given.
//! - A bucket that is also listed as dropped. Copies of a pushed bucket, or of a bucket that does
//!   not exist.
//! - Two buckets or indexes with the same name.
//! - A move of an unknown slice; two unfinished moves of one slice; a move of an index that is
//!   not read; an unfinished move in a bucket that is rolled back.
//! - An unfinished move whose source has no copy, whose target has one already, or whose target
//!   is not an indexer that may receive slices.
//! - A copy on a node that a finished move has just left.
//! - An older generation than the one that its index's name refers to, unless it is retired. A
//!   newer one, unless it is the only one and being built.
//! - A dead epoch among the retained epochs.
//! - A draining node that is not a registered indexer.

use std::collections::BTreeSet;

use proto::model::assignment::VbucketAssignment;
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::data_set::VersionStage;
use proto::model::ids::{BucketId, Epoch, NodeId, SliceNo};
use proto::model::index::{IndexInfo, IndexState};
use proto::model::moves::{MoveStage, SliceMove};
use proto::model::node::Role;
use proto::model::rollback::RollbackStage;
use proto::model::topology::TopologyProvider;

use super::bucket_view::BucketView;
use super::capacity::limits::{DROPPED_BUCKETS_MAX, INDEXES_MAX, MOVES_IN_ALL_MAX, NODES_MAX};
use super::context::StateContext;
use super::copies::MEMBERS_MAX;
use super::epochs::epoch_moments::EpochMoments;
use super::indexes::record::IndexRecord;

type CheckResult = Result<(), String>;

/// Returns the error `what` unless `holds`.
fn require(holds: bool, what: impl FnOnce() -> String) -> CheckResult {
    if holds { Ok(()) } else { Err(what()) }
}

impl StateContext {
    /// Checks all invariants. The error describes the first broken one.
    pub fn check(&self) -> CheckResult {
        self.records_are_bounded()?;
        self.numbers_were_given()?;
        self.names_are_unique()?;
        self.draining_nodes_are_indexers()?;
        self.users_fit()?;
        for (id, bucket) in self.buckets() {
            self.vbuckets_are_on_projectors(bucket)?;
            self.copies_fit(bucket.info)?;
            epochs_grow(bucket)?;
            self.moments_fit(id, bucket)?;
            no_dead_epoch_is_kept(bucket)?;
            rollback_is_prepared(bucket)?;
        }
        self.generations_fit()?;
        self.data_sets_fit()?;
        for record in self.indexes() {
            self.copies_are_on_distinct_indexers(&record.info)?;
            topologies_grow(record)?;
            self.moves_fit(&record.info)?;
        }
        Ok(())
    }

    fn records_are_bounded(&self) -> CheckResult {
        let moves = self.indexes.infos().map(|info| info.moves.len()).sum::<usize>();
        let counts = [
            (self.indexes.all().count(), INDEXES_MAX),
            (self.nodes.all().len(), NODES_MAX),
            (moves, MOVES_IN_ALL_MAX),
            (self.buckets.dropped().len(), DROPPED_BUCKETS_MAX),
        ];
        require(counts.iter().all(|(count, most)| count <= most), || {
            format!("indexes, nodes, moves and drops with their limits: {counts:?}")
        })
    }

    fn numbers_were_given(&self) -> CheckResult {
        let (buckets, clock) = (self.buckets.all(), &self.clock);
        require(clock.catalog_cas() <= clock.cas(), || {
            "the catalog is newer than the state".into()
        })?;
        let of_none = self.copies.all().keys().find(|id| !buckets.contains_key(id));
        require(of_none.is_none(), || format!("copies of {of_none:?}, which is no bucket"))?;
        let mut dropped = self.buckets.dropped().iter();
        let is_there = dropped.any(|(id, _)| buckets.contains_key(id));
        require(!is_there, || "a dropped bucket is there".into())?;
        let bucket = buckets.keys().next_back().copied().unwrap_or_default();
        require(bucket <= self.buckets.last(), || format!("bucket {bucket} was never made"))?;
        let index = self.indexes.named().keys().next_back().copied().unwrap_or_default();
        require(index <= self.indexes.last(), || format!("index {index} was never made"))?;
        for info in self.indexes.infos() {
            let has_bucket = buckets.contains_key(&info.bucket);
            require(has_bucket, || {
                format!("index {} belongs to an unknown bucket", info.local_id())
            })?;
            let newest = info.moves.iter().map(|m| m.id).max().unwrap_or_default();
            require(newest <= self.moves.last(), || format!("move {newest} was never started"))?;
        }
        self.buckets_have_epochs()
    }

    /// Checks that each bucket has a record and epochs.
    pub(super) fn buckets_have_epochs(&self) -> CheckResult {
        require(self.epochs.all().keys().eq(self.buckets.all().keys()), || {
            "epochs of no bucket, or a bucket without epochs".into()
        })
    }

    /// Checks the generations of each index. Those older than the one that its name refers to are
    /// retired. At most one is newer, and it is being built.
    fn generations_fit(&self) -> CheckResult {
        for (id, record) in self.indexes.others() {
            let info = &record.info;
            require(info.local_id() == *id, || format!("generation {id} is kept as another"))?;
            let Some(shown) = self.indexes.get(id.index) else {
                return require(false, || format!("generation {id} is of no index"));
            };
            let expected = match id.generation < shown.generation {
                true => IndexState::Retired,
                false => IndexState::Backfill,
            };
            let is_other = id.generation != shown.generation;
            require(is_other && info.state == expected, || {
                format!("generation {id} is {:?} beside {}", info.state, shown.generation)
            })?;
            let of_users = [info.bucket, shown.bucket]
                .map(|bucket| self.version_of(bucket).map_or(bucket, |(set, _)| set));
            let same = info.spec.name == shown.spec.name && of_users[0] == of_users[1];
            require(same, || format!("generation {id} has another name or bucket than its index"))?;
        }
        for (id, newest) in self.indexes.newest() {
            let of_index = || self.indexes.generations_of(*id);
            let fit = self.indexes.get(*id).is_some_and(|shown| {
                let others = of_index().filter(|info| info.generation != shown.generation);
                others.filter(|info| info.state == IndexState::Backfill).count() <= 1
            });
            require(fit && of_index().all(|info| info.generation <= *newest), || {
                let of_index: Vec<_> = of_index().map(|info| info.generation).collect();
                format!("generations {of_index:?} of index {id}, the newest is {newest}")
            })?;
        }
        Ok(())
    }

    /// Checks that each bucket that is loaded from files is that of a data set or of one of its
    /// versions.
    fn data_sets_fit(&self) -> CheckResult {
        for (id, set) in self.versions.sets() {
            let of_set = set.versions.values().map(|version| version.bucket).chain([*id]);
            for bucket in of_set {
                let known = self.buckets.get(bucket).map(|info| info.source);
                let is_loaded = known == Some(SourceKind::Files);
                require(is_loaded, || format!("bucket {bucket} of data set {id} is {known:?}"))?;
            }
            let count =
                |stage| set.versions.values().filter(|version| version.stage == stage).count();
            let is_single = count(VersionStage::Loading) <= 1 && count(VersionStage::Current) <= 1;
            require(is_single, || {
                format!("data set {id} has two versions that load or are current")
            })?;
            let newest = set.versions.keys().next_back().copied().unwrap_or_default();
            require(newest <= set.newest, || {
                format!("version {newest} of data set {id} was never begun")
            })?;
        }
        let loaded = self.buckets.all().values().filter(|info| info.source == SourceKind::Files);
        let mut strangers = loaded
            .map(|info| info.id)
            .filter(|id| self.versions.get(*id).is_none() && self.version_of(*id).is_none());
        let stranger = strangers.next();
        require(stranger.is_none(), || format!("bucket {stranger:?} is of no data set"))
    }

    fn names_are_unique(&self) -> CheckResult {
        let buckets = self.buckets.all().values().map(|info| &*info.name);
        let indexes = self.named_indexes().map(|record| &*record.info.spec.name);
        let mut names = BTreeSet::new();
        for name in buckets.chain(indexes) {
            require(names.insert(name), || format!("two buckets or indexes are named {name:?}"))?;
        }
        Ok(())
    }

    fn draining_nodes_are_indexers(&self) -> CheckResult {
        let mut draining = self.draining().iter();
        let stranger = draining.find(|node| !self.nodes.has_role(**node, Role::Indexer));
        require(stranger.is_none(), || format!("node {stranger:?} drains and is no indexer"))
    }

    fn users_fit(&self) -> CheckResult {
        let is_named =
            |id: BucketId| self.buckets.get(id).is_some() && self.version_of(id).is_none();
        self.users.check(self.clock.cas(), is_named)
    }

    fn vbuckets_are_on_projectors(&self, bucket: BucketView<'_>) -> CheckResult {
        let assignment = &bucket.info.assignment;
        let targets = assignment.transfers().iter().map(|transfer| transfer.to);
        let all_are = assignment
            .projectors()
            .into_iter()
            .chain(targets)
            .all(|node| self.nodes.has_role(node, Role::Projector));
        let name = &bucket.info.name;
        require(all_are, || format!("a vbucket of bucket {name:?} is not on a projector"))
    }

    fn moments_fit(&self, id: BucketId, bucket: BucketView<'_>) -> CheckResult {
        let newest = bucket.epochs.last().epoch;
        let fits = |moments: &EpochMoments| moments.is_valid(newest, self.position());
        require(self.moments(id).is_some_and(fits), || {
            format!("bucket {id}: its moments do not grow up to epoch {newest}")
        })
    }

    fn copies_fit(&self, info: &BucketInfo) -> CheckResult {
        let name = &info.name;
        let Some(copies) = self.copies.get(info.id) else {
            return require(!info.source.is_only_copy(), || format!("bucket {name:?} has no copy"));
        };
        require(info.source.is_only_copy(), || format!("bucket {name:?} has copies"))?;
        copies.check().map_err(|broken| format!("bucket {name:?}: {broken}"))?;
        require(copies.members().count() <= MEMBERS_MAX, || {
            format!("bucket {name:?} has more than {MEMBERS_MAX} copies")
        })?;
        let stranger = copies
            .members()
            .chain(copies.move_to)
            .find(|node| !self.nodes.has_role(*node, Role::Projector));
        require(stranger.is_none(), || {
            format!("bucket {name:?}: node {stranger:?} has a copy and is no projector")
        })?;
        let owned = VbucketAssignment::single(info.vbuckets, copies.leader);
        require(*info.assignment == owned, || {
            format!("bucket {name:?}: its leader {} does not own all vbuckets", copies.leader)
        })
    }

    fn copies_are_on_distinct_indexers(&self, info: &IndexInfo) -> CheckResult {
        let name = &info.spec.name;
        let slices = info.topology.placement.len();
        require(slices == usize::from(info.spec.slices), || {
            format!("index {name:?} has {slices} slices, {} were declared", info.spec.slices)
        })?;
        for (slice, copies) in info.topology.placement.iter().enumerate() {
            require(!copies.is_empty(), || format!("slice {slice} of index {name:?} has no copy"))?;
            let distinct = (1..copies.len()).all(|n| !copies[..n].contains(&copies[n]));
            require(distinct, || {
                format!("slice {slice} of index {name:?}: a node has two copies")
            })?;
            let stranger = copies.iter().find(|node| !self.nodes.has_role(**node, Role::Indexer));
            require(stranger.is_none(), || {
                format!("slice {slice} of index {name:?}: node {stranger:?} is no indexer")
            })?;
        }
        Ok(())
    }

    fn moves_fit(&self, info: &IndexInfo) -> CheckResult {
        if info.moves.is_empty() {
            return Ok(());
        }
        let name = &info.spec.name;
        require(info.state.is_readable(), || {
            format!("index {name:?} has moves and is not in maintenance")
        })?;
        let rolls_back = self.buckets.is_rolling_back(info.bucket);
        let mut moving: BTreeSet<SliceNo> = BTreeSet::new();
        for m in &info.moves {
            let what = || format!("move {} of index {name:?} does not fit the state", m.id);
            require(m.slice.0 < info.topology.slices(), what)?;
            if m.stage == MoveStage::Done {
                let has_left = m.from.is_none_or(|from| !info.topology.hosts(from, m.slice));
                require(has_left, what)?;
                continue;
            }
            require(!rolls_back && moving.insert(m.slice), what)?;
            require(self.move_ends_are_valid(info, m), what)?;
        }
        Ok(())
    }

    /// Returns true if the source of an unfinished move has a copy and its target may receive one.
    fn move_ends_are_valid(&self, info: &IndexInfo, m: &SliceMove) -> bool {
        let has_source = m.from.is_none_or(|from| info.topology.hosts(from, m.slice));
        let may_receive = |to: NodeId| self.nodes.receives(to) && !info.topology.hosts(to, m.slice);
        has_source && m.to.is_some_and(may_receive)
    }
}

fn topologies_grow(record: &IndexRecord) -> CheckResult {
    let (info, remembered) = (&record.info, &record.topologies);
    let name = &info.spec.name;
    let newest = remembered.last().map(|newest| newest.topology.number);
    require(newest == Some(info.topology.number), || {
        format!("index {name:?} does not remember the topology that holds")
    })?;
    // Earlier topologies were compared when they were the newest.
    let grows = match &remembered[..] {
        [.., before, last] => before.topology.number < last.topology.number,
        _ => true,
    };
    require(grows, || format!("a topology of index {name:?} is older than the one before it"))
}

fn epochs_grow(bucket: BucketView<'_>) -> CheckResult {
    let (name, last) = (&bucket.info.name, bucket.epochs.last());
    require(last.parent < last.epoch && last.horizon <= last.epoch, || {
        format!("bucket {name:?}: epoch {} follows {}", last.epoch, last.parent)
    })?;
    let vbuckets = bucket.info.vbuckets;
    require(last.cut.vbuckets() == vbuckets, || {
        format!("bucket {name:?}: the cut of epoch {} has other vbuckets", last.epoch)
    })?;
    let before = bucket.epochs.before_last();
    require(before.is_none_or(|before| before < last.epoch), || {
        format!("bucket {name:?}: epoch {} is not above the one before it", last.epoch)
    })
}

fn no_dead_epoch_is_kept(bucket: BucketView<'_>) -> CheckResult {
    let (name, last) = (&bucket.info.name, bucket.epochs.last().epoch);
    for dead in &*bucket.info.dead {
        let next = bucket.epochs.after(dead.below_range()).next().map(|mark| mark.epoch);
        let is_kept = |epoch: Option<Epoch>| epoch.is_some_and(|epoch| dead.contains(epoch));
        require(dead.to < last && !is_kept(next), || {
            format!("bucket {name:?}: dead epoch {next:?} is among the epochs that are kept")
        })?;
    }
    Ok(())
}

fn rollback_is_prepared(bucket: BucketView<'_>) -> CheckResult {
    let Some(rollback) = &bucket.info.rollback else { return Ok(()) };
    let (stage, name) = (rollback.stage, &bucket.info.name);
    let fits = (rollback.failover.is_some() || stage < RollbackStage::Prepare)
        && rollback.restart.is_some() == (stage >= RollbackStage::Restart)
        && rollback.resumes.is_some() == (stage >= RollbackStage::Rollback)
        && rollback.resumes.is_none_or(|resumes| resumes <= bucket.epochs.last().epoch);
    require(fits, || format!("bucket {name:?}: the rollback lacks what {} needs", stage.name()))
}

#[cfg(test)]
mod tests {
    use proto::model::moves::MoveStage;

    use super::*;
    use crate::state::indexes::record::IndexRecord;
    use crate::state::tests::{planned, serving, start};

    fn change(state: &mut StateContext, change: impl FnOnce(&mut IndexInfo)) {
        let record: &mut IndexRecord = state.indexes.named_mut().values_mut().next().unwrap();
        change(std::sync::Arc::make_mut(&mut record.info));
    }

    /// Returns the error of [`StateContext::check`] after a change that no command makes.
    fn broken(break_it: impl FnOnce(&mut StateContext)) -> String {
        let mut state = serving(1);
        start(&mut state, &[planned(0, 20, 22)]);
        state.check().unwrap();
        break_it(&mut state);
        state.check().unwrap_err()
    }

    #[test]
    fn each_broken_invariant_is_named() {
        let no_bucket = broken(|state| {
            state.buckets.all_mut().clear();
            state.copies = Default::default();
        });
        assert!(no_bucket.contains("unknown bucket"), "{no_bucket}");
        let unregistered = broken(|state| drop(state.nodes.edit().0.remove(&NodeId(21))));
        assert!(unregistered.contains("is no indexer"), "{unregistered}");
        let projector = broken(|state| drop(state.nodes.edit().0.remove(&NodeId(10))));
        assert!(projector.contains("not on a projector"), "{projector}");
        let target_drains = broken(|state| state.nodes.edit().1.extend([NodeId(22)]));
        assert!(target_drains.contains("does not fit"), "{target_drains}");
        let done = broken(|state| change(state, |info| info.moves[0].stage = MoveStage::Done));
        assert!(done.contains("does not fit"), "its source still has its copy: {done}");
        let pending = broken(|state| change(state, |info| info.state = IndexState::Backfill));
        assert!(pending.contains("not in maintenance"), "{pending}");
        let number = broken(|state| state.moves = Default::default());
        assert!(number.contains("never started"), "{number}");
        let moments = broken(|state| {
            let known = state.epochs.all_mut().values_mut().next().unwrap();
            known.moments = EpochMoments::new(Epoch(9), 1);
        });
        assert!(moments.contains("do not grow up to epoch 1"), "{moments}");
    }
}
