//! The versions of data sets.

use proto::model::catalog::Catalog;
use proto::model::data_set::{DataSet, Version, VersionStage};
use proto::model::ids::BucketId;
use proto::rpc::api::CoordinatorStatus;

use super::cluster_status::VersionStatus;

/// The versions by data set and number; the one that failed last behind them.
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

fn state_of(version: &Version) -> &'static str {
    match version.stage {
        VersionStage::Loading if version.is_complete() => "complete",
        VersionStage::Loading => "loading",
        VersionStage::Current => "current",
        VersionStage::Kept => "kept",
    }
}

/// The partitions that some projector has, of all.
fn progress(version: &Version) -> String {
    let held = version.partitions.iter().filter(|partition| !partition.holders.is_empty()).count();
    format!("{held} of {}", version.partitions.len())
}

/// What a version lacks, and the reasons why it waits.
fn note(
    catalog: &Catalog,
    reports: Option<&CoordinatorStatus>,
    version: &Version,
) -> Option<String> {
    let waits = reports.iter().flat_map(|reports| &reports.version_waits);
    let mut waits = waits.filter(|(bucket, _)| *bucket == version.bucket).map(|(_, why)| &**why);
    let own = own_note(catalog, reports, version);
    let parts: Vec<&str> = own.as_deref().into_iter().chain(waits.by_ref()).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// What the catalog and the builds tell of a version.
fn own_note(
    catalog: &Catalog,
    reports: Option<&CoordinatorStatus>,
    version: &Version,
) -> Option<String> {
    let lost = (0..).zip(&version.partitions).filter(|(_, partition)| partition.holders.is_empty());
    let lost: Vec<String> = lost.map(|(n, _): (u16, _)| n.to_string()).collect();
    if version.stage != VersionStage::Loading {
        let what = || format!("no projector has the documents of partitions {}", lost.join(", "));
        return (!lost.is_empty()).then(what);
    }
    if !version.is_complete() {
        return Some(format!("{} projectors load its files", version.nodes.len()));
    }
    let over = catalog.generations.values().filter(|info| info.bucket == version.bucket);
    let percent = |info| reports.and_then(|reports| reports.build_of(info)).map(|b| b.percent);
    let builds: Vec<String> = over
        .map(|info| match percent(info) {
            Some(percent) => format!("{} {percent} %", info.spec.name),
            None => info.spec.name.clone(),
        })
        .collect();
    (!builds.is_empty()).then(|| format!("indexes are built: {}", builds.join(", ")))
}
