//! `/metrics`: the OpenMetrics text format.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use proto::flow::AdmissionStatus;
use proto::model::catalog::Catalog;
use proto::model::ids::NodeId;
use proto::rpc::api::CoordinatorStatus;

use super::observed::Observed;
use crate::principal::Principal;

pub(super) async fn metrics(principal: Principal, State(observed): State<Observed>) -> Response {
    let status = observed.backend.with_principal(principal).member_status().await.ok();
    let mut text = String::new();
    match encode(&mut text, &registry(&observed, status.as_ref())) {
        Ok(()) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, kind)], text).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByNode {
    node: u64,
}

type ByNodeGauge = Family<ByNode, Gauge>;
type ByNodeCounter = Family<ByNode, Counter<u64, AtomicU64>>;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByNodeAndBucket {
    node: u64,
    bucket: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByIndex {
    index: String,
}

fn registry(observed: &Observed, status: Option<&CoordinatorStatus>) -> Registry {
    let mut registry = Registry::with_prefix("sextant");
    let counters = &observed.counters;
    registry.register("scans", "Scans started", counters.scans.clone());
    registry.register("scan_rows", "Rows returned by scans", counters.scan_rows.clone());
    registry.register(
        "documents_written",
        "Documents written or deleted",
        counters.documents.clone(),
    );
    registry.register("commands", "Replicated commands", counters.commands.clone());
    let memory = Family::<ByNode, Gauge>::default();
    for indexer in observed.running() {
        let status = indexer.status();
        memory.get_or_create(&ByNode { node: status.node.0 }).set(status.memory_bytes as i64);
    }
    registry.register_with_unit("indexer_memory", "Memory of the slices", Unit::Bytes, memory);
    register_scans(&mut registry, observed, status);
    let catalog = observed.backend.router().catalog();
    gauge(&mut registry, "catalog_cas", "Version of this router's catalog", catalog.cas);
    if let Some(status) = status {
        register_coordinator(&mut registry, status, &catalog);
    }
    registry
}

/// Registers the admission figures: of this router, of the indexers in this process, and of the other nodes as the
/// coordinator knows them from heartbeats.
fn register_scans(
    registry: &mut Registry,
    observed: &Observed,
    status: Option<&CoordinatorStatus>,
) {
    let heard = status.iter().flat_map(|status| &status.nodes);
    let heard = heard.filter_map(|node| Some((node.node, node.scans?)));
    let mut scans: BTreeMap<NodeId, AdmissionStatus> = heard.collect();
    scans.insert(observed.backend.router().node(), observed.backend.router().scans());
    scans.extend(observed.running().map(|indexer| indexer.status()).map(|s| (s.node, s.scans)));
    let (running, waiting, bytes): (ByNodeGauge, ByNodeGauge, ByNodeGauge) = Default::default();
    let (admitted, refused): (ByNodeCounter, ByNodeCounter) = Default::default();
    for (node, scans) in scans {
        let label = ByNode { node: node.0 };
        running.get_or_create(&label).set(scans.running as i64);
        waiting.get_or_create(&label).set(scans.waiting as i64);
        bytes.get_or_create(&label).set(scans.bytes as i64);
        admitted.get_or_create(&label).inc_by(scans.admitted);
        refused.get_or_create(&label).inc_by(scans.refused);
    }
    registry.register("scans_running", "Scans that run on a node", running);
    registry.register("scans_waiting", "Scans that wait to be admitted", waiting);
    registry.register_with_unit("scans_memory", "Memory reserved for scans", Unit::Bytes, bytes);
    registry.register("scans_admitted", "Scans admitted", admitted);
    registry.register("scans_refused", "Scans refused as too many or too large", refused);
}

fn gauge(registry: &mut Registry, name: &str, help: &str, value: u64) {
    let gauge: Gauge = Gauge::default();
    gauge.set(value as i64);
    registry.register(name, help, gauge);
}

fn register_coordinator(registry: &mut Registry, status: &CoordinatorStatus, catalog: &Catalog) {
    gauge(registry, "raft_term", "Raft's term", status.term);
    gauge(registry, "raft_committed", "Last committed log position", status.committed);
    gauge(registry, "raft_applied", "Last applied log position", status.applied);
    let silent = Family::<ByNode, Gauge>::default();
    let applied = Family::<ByNodeAndBucket, Gauge>::default();
    let queued = Family::<ByNodeAndBucket, Gauge>::default();
    let entries = Family::<ByIndex, Gauge>::default();
    for node in &status.nodes {
        silent.get_or_create(&ByNode { node: node.node.0 }).set(node.silent_ms as i64);
        for progress in &node.buckets {
            let name = catalog.buckets.get(&progress.bucket).map(|bucket| bucket.name.clone());
            let label = ByNodeAndBucket { node: node.node.0, bucket: name.unwrap_or_default() };
            applied.get_or_create(&label).set(progress.applied.0 as i64);
            queued.get_or_create(&label).set(progress.queue_bytes as i64);
        }
        for slice in &node.slices {
            if let Some(index) = catalog.indexes.get(&slice.slice.index) {
                let label = ByIndex { index: index.spec.name.clone() };
                entries.get_or_create(&label).inc_by(slice.entries as i64);
            }
        }
    }
    registry.register("node_silent_ms", "Milliseconds since a node's last heartbeat", silent);
    registry.register("applied_epoch", "Newest epoch applied", applied);
    registry.register_with_unit(
        "queue",
        "Mutations that wait for their epoch",
        Unit::Bytes,
        queued,
    );
    registry.register("index_entries", "Entries of all copies of an index", entries);
}
