//! The checks of the versions in every catalog.

use std::collections::{BTreeMap, BTreeSet};

use proto::model::catalog::Catalog;
use proto::model::data_set::{DataSet, Version, VersionStage};
use proto::model::ids::{BucketId, LocalIndexId, NodeId};
use proto::model::index::IndexState;

use super::DataSets;
use crate::sim::client::session::Session;

/// The observations of a version in earlier catalogs.
struct Seen {
    nodes: Vec<NodeId>,
    stage: VersionStage,
}

impl DataSets {
    /// Checks the catalogs until the future is dropped.
    pub(super) async fn watch(self, session: Session) {
        let (mut seen, mut passed) = (BTreeMap::new(), BTreeSet::new());
        loop {
            let catalog = session.router.catalog();
            session.versions.learn(&catalog);
            let fresh = passing(&catalog).filter(|id| passed.insert(*id)).count() as u64;
            self.count(|summary| summary.first_builds_passed += fresh);
            if let Some(set) = catalog.data_sets.get(&session.bucket.id) {
                for (number, version) in &set.versions {
                    if let Some(what) = self.wrong(set, *number, version, &mut seen) {
                        self.violation(format!("version {}: {what}", version.name));
                    }
                }
            }
            let cas = catalog.cas;
            session.router.wait_catalog(|catalog| catalog.cas > cas).await;
        }
    }

    /// Returns a text about a wrong property of a version; `None` if there is none.
    fn wrong(
        &self,
        set: &DataSet,
        number: u64,
        version: &Version,
        seen: &mut BTreeMap<BucketId, Seen>,
    ) -> Option<String> {
        let fresh = || Seen { nodes: version.nodes.clone(), stage: version.stage };
        let before = seen.entry(version.bucket).or_insert_with(fresh);
        let was = std::mem::replace(&mut before.stage, version.stage);
        if was > version.stage {
            return Some(format!("it was {was:?}, and is {:?}", version.stage));
        }
        // A catalog from before the cancellation may still come.
        let serves = version.stage != VersionStage::Loading;
        if serves && self.cancelled.lock().expect("not poisoned").contains(&number) {
            return Some(format!("it was cancelled, and is {:?}", version.stage));
        }
        if before.nodes != version.nodes {
            let (now, before) = (&version.nodes, &before.nodes);
            return Some(format!("its projectors were {before:?}, and are {now:?}"));
        }
        for (at, partition) in version.partitions.iter().enumerate() {
            let mine = holders(at, usize::from(set.replication), &version.nodes);
            if let Some(other) = partition.holders.iter().find(|node| !mine.contains(node)) {
                return Some(format!("projector {other} has partition {at}, which is {mine:?}'s"));
            }
            if partition.content.is_none() && version.stage != VersionStage::Loading {
                return Some(format!("it is {:?} without partition {at}", version.stage));
            }
        }
        None
    }
}

/// Returns the generations over the next version that are built while their index is built for the
/// first time.
fn passing(catalog: &Catalog) -> impl Iterator<Item = LocalIndexId> {
    let beside = catalog.generations.iter().filter(|(id, next)| {
        let shown = catalog.indexes.get(&id.index);
        let is_first = shown.is_some_and(|shown| shown.state == IndexState::Backfill);
        is_first && next.state == IndexState::Backfill
    });
    beside.map(|(id, _)| *id)
}

/// Returns the projectors of a partition, which are assigned in turn, one for each replica.
fn holders(partition: usize, replication: usize, nodes: &[NodeId]) -> Vec<NodeId> {
    let copies = replication.min(nodes.len());
    (0..copies).map(|copy| nodes[(partition * copies + copy) % nodes.len()]).collect()
}
