//! The versions of data sets in the status.

use proto::model::catalog::Catalog;
use proto::model::data_set::{DataSet, Version, VersionStage};
use proto::model::ids::BucketId;
use proto::model::index::IndexState;
use proto::rpc::api::CoordinatorStatus;

use super::cluster_status::VersionStatus;
use crate::quoted_name::quoted_name;
use crate::sql::definitions::building::lost_partitions;

/// Returns the versions by data set and number. The last failed version of a data set comes after
/// its other versions.
pub(super) fn versions(
    catalog: &Catalog,
    reports: Option<&CoordinatorStatus>,
) -> Vec<VersionStatus> {
    let of_set = |(id, set): (&BucketId, &DataSet)| {
        let bucket =
            catalog.buckets.get(id).map_or_else(|| id.to_string(), |info| info.name.clone());
        let known = set.versions.iter().map(|(number, version)| VersionStatus {
            bucket: bucket.clone(),
            number: *number,
            version: version.name.clone(),
            state: state_of(version),
            documents: Some(version.documents()),
            duplicates: Some(version.duplicates()),
            bytes: Some(version.bytes()),
            partitions: Some(progress(version)),
            files: Some(version.files.pattern.clone()),
            note: note(catalog, reports, version),
        });
        let failed = set.failed.iter().map(|failed| VersionStatus {
            bucket: bucket.clone(),
            number: failed.number,
            version: failed.name.clone(),
            state: "failed",
            documents: None,
            duplicates: None,
            bytes: None,
            partitions: None,
            files: None,
            note: Some(failed.why.clone()),
        });
        known.chain(failed).collect::<Vec<_>>()
    };
    catalog.data_sets.iter().flat_map(of_set).collect()
}

/// Returns a word for the state of a version.
fn state_of(version: &Version) -> &'static str {
    match version.stage {
        VersionStage::Loading if version.is_complete() => "complete",
        VersionStage::Loading => "loading",
        VersionStage::Current => "current",
        VersionStage::Kept => "kept",
    }
}

/// Returns the number of partitions that some projector has and the number of all partitions, as
/// text.
fn progress(version: &Version) -> String {
    let held = version.partitions.iter().filter(|partition| !partition.holders.is_empty()).count();
    format!("{held} of {}", version.partitions.len())
}

/// Returns the missing partitions of a version, and the reasons why it waits.
fn note(
    catalog: &Catalog,
    reports: Option<&CoordinatorStatus>,
    version: &Version,
) -> Option<String> {
    let waits = reports.iter().flat_map(|reports| &reports.version_waits);
    let mut waits = waits.filter(|(bucket, _)| *bucket == version.bucket).map(|(_, why)| &**why);
    let lost = lost_note(catalog, version);
    let own = load_note(catalog, reports, version);
    let parts = lost.as_deref().into_iter().chain(own.as_deref());
    let parts: Vec<&str> = parts.chain(waits.by_ref()).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Returns a text about the lost partitions of a version, the indexes that wait for them, and
/// what to do.
fn lost_note(catalog: &Catalog, version: &Version) -> Option<String> {
    let what = lost_partitions(version)?;
    if version.stage == VersionStage::Loading {
        let data_set = catalog.user_bucket(version.bucket);
        let bucket = catalog.buckets.get(&data_set).map_or("", |bucket| &bucket.name);
        let (bucket, name) = (quoted_name(bucket), version.name.replace('\'', "''"));
        let todo = format!("ALTER BUCKET {bucket} CANCEL VERSION '{name}' ends it");
        return Some(format!("{what} any more; {todo}, then load it again"));
    }
    let built = catalog
        .local_indexes()
        .filter(|info| info.state == IndexState::Backfill && info.bucket == version.bucket);
    let built: Vec<String> = built.map(|info| quoted_name(&info.spec.name)).collect();
    let Some(first) = built.first() else { return Some(what) };
    let waits = format!("the builds of {} wait for them", built.join(", "));
    Some(format!("{what}; {waits} until another version is loaded; CANCEL BUILD {first} ends one"))
}

/// Returns a note about the load of a version and the builds of its indexes. The note does not
/// mention lost partitions.
fn load_note(
    catalog: &Catalog,
    reports: Option<&CoordinatorStatus>,
    version: &Version,
) -> Option<String> {
    if version.stage != VersionStage::Loading {
        return None;
    }
    if !version.is_complete() {
        return Some(format!("{} projectors load its files", version.nodes.len()));
    }
    let over = catalog.generations.values().filter(|info| info.bucket == version.bucket);
    let percent = |info| reports.and_then(|reports| reports.build_status(info)).map(|b| b.percent);
    let builds: Vec<String> = over
        .map(|info| match percent(info) {
            Some(percent) => format!("{} {percent} %", info.spec.name),
            None => info.spec.name.clone(),
        })
        .collect();
    (!builds.is_empty()).then(|| format!("indexes are built: {}", builds.join(", ")))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proto::model::bucket::{BucketInfo, SourceKind};
    use proto::model::data_set::{Files, Partition, PartitionContent};
    use proto::model::ids::{IndexId, NodeId};
    use proto::model::index::{IndexInfo, IndexSpec};

    use super::*;

    #[test]
    fn a_version_that_lost_a_partition_says_what_waits_for_it_and_what_to_do() {
        let lost = Partition { holders: Vec::new(), content: Some(PartitionContent::default()) };
        let held = Partition { holders: vec![NodeId(9)], ..lost.clone() };
        let version = |stage| Version {
            name: "o'clock".to_owned(),
            bucket: BucketId(2),
            files: Files { pattern: "x.csv".to_owned(), id: "id".to_owned() },
            nodes: vec![NodeId(9)],
            stage,
            partitions: vec![held.clone(), lost.clone()],
        };
        let mut catalog = Catalog::default();
        let mut set = DataSet::new(2, 1, 0);
        set.versions.insert(1, version(VersionStage::Current));
        catalog.data_sets.insert(BucketId(1), set);
        let bucket = BucketInfo::new(BucketId(1), "b", 2, SourceKind::Files, NodeId(9));
        catalog.buckets.insert(BucketId(1), Arc::new(bucket));
        let noted = |catalog: &Catalog, stage| note(catalog, None, &version(stage)).unwrap();
        let what = "no projector has the documents of partitions 1";
        assert_eq!(noted(&catalog, VersionStage::Current), what);
        for (n, name) in [(1, "i"), (2, "Two words")] {
            let info = IndexInfo::new(IndexId(n), BucketId(2), IndexSpec::new(name, "b"), vec![]);
            catalog.indexes.insert(info.id, Arc::new(info));
        }
        let waits = "the builds of i, \"Two words\" wait for them until another version is loaded; CANCEL BUILD i ends one";
        assert_eq!(noted(&catalog, VersionStage::Current), format!("{what}; {waits}"));
        let loading = noted(&catalog, VersionStage::Loading);
        let todo = "any more; ALTER BUCKET b CANCEL VERSION 'o''clock' ends it, then load it again";
        assert!(loading.starts_with(&format!("{what} {todo}")), "{loading}");
    }
}
