//! The stages of builds, moves, rollbacks and hand-overs as a client sees them. A fault can occur
//! at a change of stage: the source loses a part of its history, or a process crashes. Random times
//! rarely coincide with a change of stage.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use proto::model::catalog::Catalog;
use proto::model::data_set::DataSet;
use proto::model::ids::{BucketId, IndexId, LocalIndexId, MoveId, VbucketId};
use proto::model::index::{IndexInfo, IndexState};
use proto::model::moves::MoveStage;
use proto::model::rollback::RollbackStage;
use router::Router;

/// A stage of a procedure in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// An index is being built.
    Build(IndexId),
    /// A move is in this stage.
    Move(MoveId, MoveStage),
    /// A rollback is in this stage.
    Rollback(RollbackStage),
    /// A vbucket is handed over.
    HandOver(VbucketId),
    /// A version of a data set is being loaded, with this number of loaded partitions.
    Load(BucketId, usize),
    /// This generation is being built over a version.
    BuildVersion(LocalIndexId),
}

/// The stages in progress.
pub type Stages = Arc<Mutex<BTreeSet<Stage>>>;

/// True if this seed has faults at changes of stage.
pub fn are_chosen(seed: u64) -> bool {
    seed % 7 == 5
}

/// Records the stages until the future is dropped.
pub async fn watch(router: Arc<Router>, stages: Stages) {
    loop {
        let now = of(&router.catalog());
        stages.lock().expect("not poisoned").clone_from(&now);
        router.wait_catalog(|catalog| of(catalog) != now).await;
    }
}

fn of(catalog: &Catalog) -> BTreeSet<Stage> {
    let indexes = || catalog.indexes.values();
    let builds = indexes().filter(|index| index.state == IndexState::Backfill);
    let builds = builds.map(|index| Stage::Build(index.id));
    let moves = indexes().flat_map(|index| index.moves.iter());
    let moves = moves.map(|mv| Stage::Move(mv.id, mv.stage));
    let buckets = || catalog.buckets.values();
    let rollbacks = buckets().filter_map(|bucket| bucket.rollback.as_ref());
    let rollbacks = rollbacks.map(|rollback| Stage::Rollback(rollback.stage));
    let transfer = buckets().flat_map(|bucket| bucket.assignment.transfers());
    let transfer = transfer.map(|hand_over| Stage::HandOver(hand_over.vbucket));
    let loading = catalog.data_sets.values().filter_map(DataSet::loading);
    let loads = loading.map(|(_, version)| {
        let there = version.partitions.iter().filter(|partition| partition.content.is_some());
        Stage::Load(version.bucket, there.count())
    });
    let over_version = |info: &&Arc<IndexInfo>| {
        info.state == IndexState::Backfill && catalog.version(info.bucket).is_some()
    };
    let of_versions = catalog.generations.values().filter(over_version);
    let of_versions = of_versions.map(|info| Stage::BuildVersion(info.local_id()));
    let all = builds.chain(moves).chain(rollbacks).chain(transfer);
    all.chain(loads).chain(of_versions).collect()
}
