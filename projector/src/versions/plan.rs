//! Determines the next step for each version of a data set: a pure function of the catalog and of
//! the stored partitions.

use proto::model::assignment::VbucketSet;
use proto::model::catalog::Catalog;
use proto::model::data_set::{Files, PartitionContent, Version, VersionStage};
use proto::model::ids::{BucketId, NodeId, VbucketId};

/// The part of a version that this projector has stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredPart {
    /// The bucket of the version is stored, and these of its partitions are complete.
    Whole(VbucketSet),
    /// The bucket is stored, but its files are damaged.
    Damaged,
    /// The bucket is not stored, or another bucket is stored under its number.
    Nothing,
}

/// The next step that this projector must take for a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// Report that partitions are lost: the catalog lists them as stored on this projector, but
    /// they are not.
    Lost(Vec<VbucketId>),
    /// Recreate the damaged bucket of the version, empty.
    MakeAnew,
    /// Load these partitions.
    Load(VbucketSet),
    /// Report that these partitions are completely stored; the catalog does not list them yet.
    Tell(VbucketSet),
}

/// A version for which this projector must take a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// The bucket of the version.
    pub bucket: BucketId,
    /// The next step.
    pub todo: NextStep,
}

/// Returns the versions for which this projector must take a step, with the step.
pub fn plan(catalog: &Catalog, me: NodeId, stored: impl Fn(BucketId) -> StoredPart) -> Vec<Work> {
    let mut work = Vec::new();
    for set in catalog.data_sets.values() {
        for version in set.versions.values() {
            let mine = version.partitions_of(me, set.replication);
            let todo = next_step(version, me, (&mine, stored(version.bucket)));
            work.extend(todo.map(|todo| Work { bucket: version.bucket, todo }));
        }
    }
    work
}

/// Returns the next step for a version. `mine` are the partitions that are assigned to this
/// projector, and `stored` is what it has. `None` if there is nothing to do.
fn next_step(
    version: &Version,
    me: NodeId,
    (mine, stored): (&[VbucketId], StoredPart),
) -> Option<NextStep> {
    let (whole, is_damaged) = match stored {
        StoredPart::Whole(whole) => (whole, false),
        StoredPart::Damaged => (VbucketSet::default(), true),
        StoredPart::Nothing => return None,
    };
    let is_listed = |partition: &VbucketId| version.holders(*partition).contains(&me);
    let is_whole = |partition: &VbucketId| whole.contains(*partition);
    // A version that is loading is loaded again, as it is not readable yet.
    if version.stage != VersionStage::Loading {
        let all = (0..version.partitions.len() as u16).map(VbucketId);
        let lost: Vec<_> = all.filter(|p| is_listed(p) && !is_whole(p)).collect();
        if !lost.is_empty() {
            return Some(NextStep::Lost(lost));
        }
    }
    // An old version will be dropped. A version that has become current may still need its other holders.
    if version.stage == VersionStage::Kept {
        return None;
    }
    let missing: VbucketSet = mine.iter().copied().filter(|p| !is_whole(p)).collect();
    if !missing.is_empty() {
        return Some(if is_damaged { NextStep::MakeAnew } else { NextStep::Load(missing) });
    }
    let untold: VbucketSet = mine.iter().copied().filter(|p| !is_listed(p)).collect();
    (!untold.is_empty()).then_some(NextStep::Tell(untold))
}

/// The catalog's record of a version that is still to be loaded, or is current.
#[derive(Clone, Debug)]
pub struct CatalogVersion {
    /// The stage of the version.
    pub stage: VersionStage,
    /// The source files of the version.
    pub files: Files,
    /// For each partition, the contents that another projector has reported, if any.
    pub contents: Vec<Option<PartitionContent>>,
}

impl CatalogVersion {
    /// Returns the contents that a projector has reported for a partition; `None` if no projector
    /// has.
    pub fn content(&self, partition: VbucketId) -> Option<PartitionContent> {
        self.contents.get(usize::from(partition.0)).copied().flatten()
    }
}

/// Returns the catalog's record of a version; `None` if the version was dropped or must not be
/// loaded any more.
pub fn version_to_load(catalog: &Catalog, bucket: BucketId) -> Option<CatalogVersion> {
    let (_, _, version) = catalog.version(bucket)?;
    let contents = version.partitions.iter().map(|partition| partition.content).collect();
    let known = CatalogVersion { stage: version.stage, files: version.files.clone(), contents };
    (version.stage != VersionStage::Kept).then_some(known)
}

#[cfg(test)]
mod tests {
    use proto::model::data_set::{DataSet, Partition};

    use super::*;

    const ME: NodeId = NodeId(1);
    const BUCKET: BucketId = BucketId(9);

    fn set(partitions: &[u16]) -> VbucketSet {
        partitions.iter().copied().map(VbucketId).collect()
    }

    /// Returns a catalog with a version of four partitions, with one or two holders each, of which
    /// 0 and 2 are assigned to this node; `listed` are the partitions that the catalog lists as
    /// loaded.
    fn catalog(stage: VersionStage, listed: &[u16]) -> Catalog {
        let holders = |p: u16| if listed.contains(&p) { vec![ME] } else { vec![] };
        let version = Version {
            name: "v1".into(),
            bucket: BUCKET,
            files: Files { pattern: "x.csv".into(), id: "id".into() },
            nodes: vec![ME, NodeId(2)],
            stage,
            partitions: (0..4).map(|p| Partition { holders: holders(p), content: None }).collect(),
        };
        let mut set = DataSet::new(4, 1, 0);
        set.versions.insert(1, version);
        Catalog { data_sets: [(BucketId(8), set)].into(), ..Catalog::default() }
    }

    #[test]
    fn next_step_of_each_stage() {
        use VersionStage::{Current, Kept, Loading};
        let whole = |partitions: &[u16]| StoredPart::Whole(set(partitions));
        let load = |partitions: &[u16]| Some(NextStep::Load(set(partitions)));
        let lost = |partitions: &[u16]| {
            Some(NextStep::Lost(partitions.iter().copied().map(VbucketId).collect()))
        };
        let tell = |partitions: &[u16]| Some(NextStep::Tell(set(partitions)));
        for (stage, listed, stored, expected) in [
            (Loading, &[][..], whole(&[]), load(&[0, 2])),
            (Loading, &[], whole(&[2]), load(&[0])),
            (Loading, &[0, 2], whole(&[2]), load(&[0])),
            (Loading, &[], whole(&[0, 2]), tell(&[0, 2])),
            (Loading, &[2], whole(&[0, 2]), tell(&[0])),
            (Loading, &[0, 2], whole(&[0, 2]), None),
            (Loading, &[], StoredPart::Nothing, None),
            (Loading, &[0], StoredPart::Damaged, Some(NextStep::MakeAnew)),
            (Current, &[0, 2], whole(&[2]), lost(&[0])),
            (Current, &[2], whole(&[2]), load(&[0])),
            (Current, &[0, 2], StoredPart::Damaged, lost(&[0, 2])),
            (Current, &[0, 2], StoredPart::Nothing, None),
            (Kept, &[0, 2], whole(&[]), lost(&[0, 2])),
            (Kept, &[], whole(&[]), None),
        ] {
            let catalog = catalog(stage, listed);
            let work = plan(&catalog, ME, |_| stored.clone());
            let todo = work.into_iter().next().map(|work| work.todo);
            assert_eq!(todo, expected, "{stage:?}, listed {listed:?}, {stored:?}");
        }
    }
}
