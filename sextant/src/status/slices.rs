//! The copies of slices in the topology, each with its node's report.

use proto::model::catalog::Catalog;
use proto::model::ids::{NodeId, SliceId, SliceNo};
use proto::rpc::api::{CoordinatorStatus, SliceProgress};

use super::cluster_status::SliceStatus;

pub(super) fn slices(catalog: &Catalog, reports: Option<&CoordinatorStatus>) -> Vec<SliceStatus> {
    let mut slices = Vec::new();
    for index in catalog.indexes.values() {
        for (number, nodes) in (0..).map(SliceNo).zip(&index.topology.placement) {
            let id = SliceId { index: index.id, generation: index.generation, slice: number };
            for (replica, node) in nodes.iter().enumerate() {
                let progress = progress(reports, *node, id);
                slices.push(SliceStatus {
                    index: index.spec.name.clone(),
                    slice: number,
                    replica,
                    node: *node,
                    state: state(progress),
                    entries: progress.map(|progress| progress.entries),
                    bytes: progress.map(|progress| progress.bytes),
                    floor_epoch: progress.and_then(|progress| progress.floor),
                    note: progress.and_then(note),
                });
            }
        }
    }
    slices
}

fn progress(
    reports: Option<&CoordinatorStatus>,
    node: NodeId,
    slice: SliceId,
) -> Option<&SliceProgress> {
    let report = reports?.nodes.iter().find(|report| report.node == node)?;
    report.slices.iter().find(|progress| progress.slice == slice)
}

fn state(progress: Option<&SliceProgress>) -> &'static str {
    match progress {
        None => "unknown",
        Some(SliceProgress { floor: None, copied_from: Some(_), .. }) => "copying",
        Some(SliceProgress { trouble: Some(_), .. }) => "troubled",
        Some(SliceProgress { floor: None, .. }) => "building",
        Some(_) => "ready",
    }
}

/// The origin of a slice that is being built, and the reason why it waits.
fn note(progress: &SliceProgress) -> Option<String> {
    match (&progress.trouble, progress.floor, progress.copied_from) {
        (Some(trouble), None, Some(node)) => Some(format!("from node {node}: {trouble}")),
        (Some(trouble), ..) => Some(trouble.clone()),
        (None, None, Some(node)) => Some(format!("from node {node}")),
        (None, None, None) => Some("from the source".to_owned()),
        (None, Some(_), _) => None,
    }
}
