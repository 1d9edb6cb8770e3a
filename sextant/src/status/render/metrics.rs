//! The metrics of `/metrics`. The module `exposition` contains their text formats.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use proto::flow::AdmissionStatus;
use proto::model::ids::NodeId;
use proto::model::left_out::LeftOut;
use proto::rpc::api::CoordinatorStatus;

use super::exposition::MetricsFormat;
use super::labels::{ByNode, ByNodeCounter, ByNodeGauge};
use super::transactions;
use crate::backend::Counters;
use crate::process_figures::ProcessFigures;
use crate::status::{ClusterStatus, ProcessStatus, Status, WorkStatus};

/// The figures of this process alone, from which its metrics are made.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnFigures {
    /// The figures of the operating system about the process.
    pub process: ProcessFigures,
    /// The counters of the ports for users; `None` without such ports.
    pub counters: Option<Arc<Counters>>,
    /// The number of scans of each index, by the index's name.
    pub index_scans: BTreeMap<String, u64>,
    /// The status of the coordinator in this process; `None` if there is none.
    pub coordinator: Option<CoordinatorStatus>,
    /// The status of the indexer in this process; `None` if there is none.
    pub indexer: Option<indexer::Status>,
    /// The status of the projector in this process; `None` if there is none.
    pub projector: Option<projector::Status>,
    /// The counts of the login policy; `None` if the process has no ports for users.
    pub doors: Option<LoginFigures>,
}

/// The counts of a process's login policy and limits of clients.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoginFigures {
    /// The number of refusals by each limit, with the name of its setting.
    pub refusals: Vec<(&'static str, u64)>,
    /// The number of failed log-ins.
    pub failed_logins: u64,
    /// The seconds until the certificate of the ports expires, negative if it has expired; `None`
    /// without a certificate.
    pub certificate_seconds_left: Option<i64>,
}

/// Returns the metrics of the cluster's status and of this process, as text.
pub(crate) fn text(
    form: MetricsFormat,
    status: &Status,
    own: Option<&OwnFigures>,
) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("sextant");
    register_status(&mut registry, status);
    if let Some(own) = own {
        register_process(&mut registry, own);
    }
    form.text(&registry)
}

/// Returns the metrics of a process without ports for users, as text.
pub(crate) fn own_text(form: MetricsFormat, own: &OwnFigures) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("sextant");
    register_process(&mut registry, own);
    if let Some(status) = &own.coordinator {
        register_raft(&mut registry, status);
    }
    if let Some(indexer) = &own.indexer {
        register_memory(&mut registry, std::slice::from_ref(indexer));
        transactions::register_late_commit(&mut registry, std::slice::from_ref(indexer));
        register_admission(&mut registry, [(indexer.node, indexer.scans)].into());
    }
    if let Some(projector) = &own.projector {
        transactions::register(&mut registry, std::slice::from_ref(projector));
    }
    form.text(&registry)
}

/// Registers the metrics of the Raft group of a coordinator.
fn register_raft(registry: &mut Registry, status: &CoordinatorStatus) {
    register_gauge(registry, "raft_term", "Raft's term", status.term);
    register_gauge(registry, "raft_committed", "Last committed log position", status.committed);
    register_gauge(registry, "raft_applied", "Last applied log position", status.applied);
}

/// Registers the metrics of the memory of indexers.
fn register_memory(registry: &mut Registry, indexers: &[indexer::Status]) {
    let memory = ByNodeGauge::default();
    for indexer in indexers {
        memory.get_or_create(&ByNode { node: indexer.node.0 }).set(indexer.memory_bytes as i64);
    }
    registry.register_with_unit("indexer_memory", "Memory of the slices", Unit::Bytes, memory);
}

/// Registers the figures of this process alone.
fn register_process(registry: &mut Registry, own: &OwnFigures) {
    let figures = &own.process;
    let mut known = |name: &str, help: &str, value: Option<u64>| {
        if let Some(value) = value {
            register_gauge(registry, name, help, value);
        }
    };
    known("process_memory_bytes", "Memory of the process", figures.memory_bytes);
    known("process_cpu_ms", "Processor time of the process in milliseconds", figures.cpu_ms);
    known("process_open_files", "Open files and sockets of the process", figures.open_files);
    known("process_open_files_max", "Limit of open files", figures.open_files_max);
    known("disk_free_bytes", "Free bytes of the disk with the data", figures.disk_free_bytes);
    known("disk_size_bytes", "Size of the disk with the data", figures.disk_size_bytes);
    if let Some(doors) = &own.doors {
        register_login(registry, doors);
    }
    let Some(counters) = &own.counters else { return };
    for (name, help, latency) in [
        ("scan_start", "Time until a scan has begun", &counters.scan_start),
        ("scan_whole", "Time of SQL scans until the client has all rows", &counters.scan_whole),
        ("write", "Time of writes of documents", &counters.write),
        ("command", "Time of replicated commands", &counters.command),
    ] {
        registry.register_with_unit(name, help, Unit::Seconds, latency.clone());
    }
    let errors = Family::<BySqlstate, Counter<u64, AtomicU64>>::default();
    for (sqlstate, count) in counters.errors() {
        errors.get_or_create(&BySqlstate { sqlstate }).inc_by(count);
    }
    registry.register("errors", "Errors that clients got", errors);
    let scans = Family::<ByIndex, Counter<u64, AtomicU64>>::default();
    for (index, count) in &own.index_scans {
        scans.get_or_create(&ByIndex { index: index.clone() }).inc_by(*count);
    }
    registry.register("index_scans", "Scans of an index by this process", scans);
}

/// Registers the counts of the login policy.
fn register_login(registry: &mut Registry, doors: &LoginFigures) {
    let refused = Family::<ByLimit, Counter<u64, AtomicU64>>::default();
    for (limit, count) in &doors.refusals {
        refused.get_or_create(&ByLimit { limit }).inc_by(*count);
    }
    let help = "Clients that a limit has refused or disconnected, by its setting";
    registry.register("refused", help, refused);
    let failed = Counter::<u64, AtomicU64>::default();
    failed.inc_by(doors.failed_logins);
    registry.register("failed_logins", "Log-ins that have failed", failed);
    if let Some(seconds) = doors.certificate_seconds_left {
        let left = Gauge::<i64>::default();
        left.set(seconds);
        let help = "Time until the certificate of the ports for users ends";
        registry.register_with_unit("certificate_expires", help, Unit::Seconds, left);
    }
}

/// The label of metrics with a value for each limit of clients.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByLimit {
    limit: &'static str,
}

/// The label of metrics with a value for each SQLSTATE.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct BySqlstate {
    sqlstate: &'static str,
}

/// Registers the metrics of the cluster's status and of the process's work.
fn register_status(registry: &mut Registry, status: &Status) {
    let Status { process, cluster } = status;
    register_work(registry, &process.work);
    register_memory(registry, &process.local_indexers);
    transactions::register_late_commit(registry, &process.local_indexers);
    transactions::register(registry, &process.local_projectors);
    register_scans(registry, process, cluster);
    register_gauge(registry, "catalog_cas", "Version of this router's catalog", cluster.cas);
    register_knowledge(registry, process);
    register_copies(registry, cluster);
    if let Some(status) = cluster.coordinator.status() {
        register_raft(registry, status);
        register_reports(registry, cluster);
        register_holds(registry, cluster);
    }
}

/// The labels of metrics with a value for each node and bucket.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByNodeAndBucket {
    node: u64,
    bucket: String,
}

/// The label of metrics with a value for each bucket.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByBucket {
    bucket: String,
}

/// The label of metrics with a value for each index.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByIndex {
    index: String,
}

/// The labels of metrics with a value for each index and reason.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByIndexAndReason {
    index: String,
    reason: &'static str,
}

/// Registers the counts of the work of this process.
fn register_work(registry: &mut Registry, work: &WorkStatus) {
    let mut counter = |name: &str, help: &str, count: u64| {
        let counter: Counter<u64, AtomicU64> = Counter::default();
        counter.inc_by(count);
        registry.register(name, help, counter);
    };
    counter("scans", "Scans started", work.scans);
    counter("scan_rows", "Rows returned by scans", work.scan_rows);
    counter("hedges_begun", "Requests to another copy beside a slow node", work.hedges_begun);
    counter("hedges_won", "Those that answered first", work.hedges_won);
    counter(
        "hedges_refused",
        "Those that were not begun: the budget was used up",
        work.hedges_refused,
    );
    counter("documents_written", "Documents written or deleted", work.documents_written);
    counter("commands", "Replicated commands", work.commands);
}

/// Registers the metrics of running and waiting scans. Other nodes report them in their
/// heartbeats; the values of this router and of the indexers in this process are more recent.
fn register_scans(registry: &mut Registry, process: &ProcessStatus, cluster: &ClusterStatus) {
    let reported = cluster.nodes.iter().filter_map(|node| Some((node.node, node.scans?)));
    let mut scans: BTreeMap<NodeId, AdmissionStatus> = reported.collect();
    scans.insert(process.router, process.scans);
    scans.extend(process.local_indexers.iter().map(|indexer| (indexer.node, indexer.scans)));
    register_admission(registry, scans);
}

/// Registers the metrics of the scans of each node: running, waiting, admitted and refused ones.
fn register_admission(registry: &mut Registry, scans: BTreeMap<NodeId, AdmissionStatus>) {
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

/// Registers a gauge with one value.
fn register_gauge(registry: &mut Registry, name: &str, help: &str, value: u64) {
    let gauge: Gauge = Gauge::default();
    gauge.set(value as i64);
    registry.register(name, help, gauge);
}

/// Registers the metrics of the router's catalog: its age, and whether it comes from the disk.
fn register_knowledge(registry: &mut Registry, process: &ProcessStatus) {
    if let Some(age_ms) = process.catalog_age_ms {
        let age = Gauge::<f64, AtomicU64>::default();
        age.set(age_ms as f64 / 1000.0);
        let help = "Time since a coordinator has answered this router";
        registry.register_with_unit("router_catalog_age", help, Unit::Seconds, age);
    }
    let help = "1 while the catalog of this router comes from its disk";
    let is_from_disk = u64::from(process.catalog_is_from_disk);
    register_gauge(registry, "router_catalog_from_disk", help, is_from_disk);
}

/// Registers the metrics of the copies of embedded buckets.
fn register_copies(registry: &mut Registry, cluster: &ClusterStatus) {
    let in_sync = Family::<ByBucket, Gauge>::default();
    let wanted = Family::<ByBucket, Gauge>::default();
    let figures = |gauge: &Family<ByBucket, Gauge>, bucket: &str, count: Option<u64>| {
        if let Some(count) = count {
            gauge.get_or_create(&ByBucket { bucket: bucket.to_owned() }).set(count as i64);
        }
    };
    for bucket in &cluster.buckets {
        figures(&in_sync, &bucket.name, bucket.copies_in_sync);
        figures(&wanted, &bucket.name, bucket.copies_wanted);
    }
    registry.register("bucket_copies_in_sync", "Copies with everything acknowledged", in_sync);
    registry.register("bucket_copies_wanted", "Copies that a bucket should have", wanted);
}

/// Registers two metrics of each bucket: how long its epochs have waited for commits over several
/// buckets, and how many epochs did not wait for slow indexers.
fn register_holds(registry: &mut Registry, cluster: &ClusterStatus) {
    let held = Family::<ByBucket, Gauge<f64, AtomicU64>>::default();
    let past_slow = Family::<ByBucket, Counter<u64, AtomicU64>>::default();
    for bucket in &cluster.buckets {
        if let Some(count) = bucket.epochs_past_slow_indexers {
            let label = ByBucket { bucket: bucket.name.clone() };
            past_slow.get_or_create(&label).inc_by(count);
        }
        if let Some(held_ms) = bucket.held_ms {
            let label = ByBucket { bucket: bucket.name.clone() };
            held.get_or_create(&label).set(held_ms as f64 / 1000.0);
        }
    }
    let help = "Time for which a commit over several buckets holds epochs; 0 below a second";
    registry.register_with_unit("bucket_epochs_held", help, Unit::Seconds, held);
    let help = "Epochs that did not wait any longer for slow indexers";
    registry.register("bucket_epochs_past_slow_indexers", help, past_slow);
}

/// Registers metrics from the reports that nodes send to the coordinator.
fn register_reports(registry: &mut Registry, cluster: &ClusterStatus) {
    let silent = ByNodeGauge::default();
    let applied = Family::<ByNodeAndBucket, Gauge>::default();
    let queued = Family::<ByNodeAndBucket, Gauge>::default();
    let entries = Family::<ByIndex, Gauge>::default();
    for node in &cluster.nodes {
        if let Some(silent_ms) = node.silent_ms {
            silent.get_or_create(&ByNode { node: node.node.0 }).set(silent_ms as i64);
        }
        for progress in &node.buckets {
            let label = ByNodeAndBucket { node: node.node.0, bucket: progress.bucket.clone() };
            applied.get_or_create(&label).set(progress.applied_epoch.0 as i64);
            queued.get_or_create(&label).set(progress.queue_bytes as i64);
        }
    }
    let left_out = Family::<ByIndexAndReason, Counter<u64, AtomicU64>>::default();
    for index in &cluster.indexes {
        for (reason, count) in index.left_out_by_reason.iter().flat_map(LeftOut::by_reason) {
            let label = ByIndexAndReason { index: index.name.clone(), reason };
            left_out.get_or_create(&label).inc_by(count);
        }
        if let Some(count) = index.entries {
            entries.get_or_create(&ByIndex { index: index.name.clone() }).set(count as i64);
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
    registry.register("index_left_out", "Documents over a limit of an index", left_out);
    registry.register("index_entries", "Entries of all copies of an index", entries);
}
