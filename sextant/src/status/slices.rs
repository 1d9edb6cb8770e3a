//! The copies of slices in the topology (the present placement), each with the report of its
//! node.

use proto::model::catalog::Catalog;
use proto::model::ids::{NodeId, SliceId, SliceNo};
use proto::model::index::{IndexInfo, IndexState};
use proto::rpc::api::{CoordinatorStatus, NodeStatus, SILENT_MS_MAX, SliceProgress};

use super::cluster_status::SliceStatus;

/// Returns the copies of the slices of all indexes.
pub(super) fn slices(catalog: &Catalog, reports: Option<&CoordinatorStatus>) -> Vec<SliceStatus> {
    let mut slices = Vec::new();
    for index in catalog.local_indexes() {
        for (number, nodes) in (0..).map(SliceNo).zip(&index.topology.placement) {
            let id = SliceId { index: index.id, generation: index.generation, slice: number };
            for (replica, node) in nodes.iter().enumerate() {
                let report = report(reports, *node);
                let progress = report.and_then(|report| progress(report, id));
                let silent = report.and_then(silence_note);
                slices.push(SliceStatus {
                    index: index.spec.name.clone(),
                    slice: number,
                    replica,
                    node: *node,
                    state: if silent.is_some() { "silent" } else { state(progress) },
                    entries: progress.map(|progress| progress.entries),
                    bytes: progress.map(|progress| progress.bytes),
                    floor_epoch: progress.and_then(|progress| progress.floor),
                    note: silent
                        .or_else(|| progress.and_then(note))
                        .or_else(|| other_generation_note(catalog, index)),
                });
            }
        }
    }
    slices
}

/// Returns a note for a slice of a generation that is not the serving one of its index; otherwise
/// `None`.
fn other_generation_note(catalog: &Catalog, index: &IndexInfo) -> Option<String> {
    let is_beside = catalog.generations.contains_key(&index.local_id());
    is_beside.then(|| match index.state {
        IndexState::Retired => "of an older generation, which scans may still read".to_owned(),
        _ => "of the next generation of the index".to_owned(),
    })
}

/// Returns the report of a node.
pub(super) fn report(reports: Option<&CoordinatorStatus>, node: NodeId) -> Option<&NodeStatus> {
    reports?.nodes.iter().find(|report| report.node == node)
}

/// Returns the progress of a slice in the report of its node.
fn progress(report: &NodeStatus, slice: SliceId) -> Option<&SliceProgress> {
    report.slices.iter().find(|progress| progress.slice == slice)
}

/// Returns a note that a node is silent and its last report therefore outdated; `None` if it is
/// not silent.
pub(super) fn silence_note(report: &NodeStatus) -> Option<String> {
    let (node, silent_ms) = (report.node, report.silent_ms);
    let text = || format!("node {node} has been silent for {} s", silent_ms / 1_000);
    (silent_ms >= SILENT_MS_MAX).then(text)
}

/// Returns a word for the state of a copy.
fn state(progress: Option<&SliceProgress>) -> &'static str {
    match progress {
        None => "unknown",
        Some(SliceProgress { floor: None, copied_from: Some(_), .. }) => "copying",
        Some(SliceProgress { trouble: Some(_), .. }) => "troubled",
        Some(SliceProgress { floor: None, .. }) => "building",
        Some(_) => "ready",
    }
}

/// Returns a note with the source from which a slice is being built, and the reason why the build
/// waits.
fn note(progress: &SliceProgress) -> Option<String> {
    match (&progress.trouble, progress.floor, progress.copied_from) {
        (Some(trouble), None, Some(node)) => Some(format!("from node {node}: {trouble}")),
        (Some(trouble), ..) => Some(trouble.clone()),
        (None, None, Some(node)) => Some(format!("from node {node}")),
        (None, None, None) => Some("from the source".to_owned()),
        (None, Some(_), _) => None,
    }
}
