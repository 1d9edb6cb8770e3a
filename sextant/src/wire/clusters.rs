//! The cluster id in the headers of calls between processes, by which a process refuses calls of
//! other clusters.
//!
//! Numbers of nodes, buckets and indexes are unique only within one cluster, and a process of
//! another cluster may reuse an address. A request therefore contains the cluster id of its
//! caller, if the caller knows it. A process of another cluster refuses the request before
//! executing it. The refusal contains the cluster id of the refusing process. Both sides log the
//! refusal.

use std::sync::Mutex;
use std::time::Duration;

use proto::lock::lock;
use proto::model::identity::ClusterId;
use tokio::time::Instant;
use tonic::Status;
use tonic::metadata::{MetadataMap, MetadataValue};

/// The header with the cluster id of the sender.
const HEADER: &str = "sextant-cluster";
/// The minimum interval between two log lines about refusals, because callers repeat their calls.
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// A function of a service that returns its cluster, if it knows it.
type KnownCluster = Box<dyn Fn() -> Option<ClusterId> + Send + Sync>;

/// The cluster of this process. It is unknown until one of the services learns it.
#[derive(Default)]
pub(super) struct OwnCluster {
    services: Mutex<Vec<KnownCluster>>,
    reported: Mutex<Option<Instant>>,
}

impl OwnCluster {
    /// Adds a service of this process, which may know the cluster.
    pub fn add(&self, service: KnownCluster) {
        lock(&self.services).push(service);
    }

    /// Returns the cluster; `None` if no service knows it yet.
    pub fn get(&self) -> Option<ClusterId> {
        lock(&self.services).iter().find_map(|cluster| cluster())
    }

    /// Adds the cluster id to the headers of a message.
    pub fn write_to(&self, metadata: &mut MetadataMap) {
        // Hexadecimal digits are a valid header.
        let value = self.get().and_then(|own| MetadataValue::try_from(own.to_string()).ok());
        if let Some(value) = value {
            metadata.insert(HEADER, value);
        }
    }

    /// Returns an error if the caller belongs to another cluster.
    pub fn accept(&self, caller: &MetadataMap) -> Result<(), Status> {
        self.accept_cluster(cluster_of(caller))
    }

    /// Returns an error if `theirs`, the cluster id in a caller's headers, is not that of this
    /// process.
    pub fn accept_cluster(&self, theirs: Option<ClusterId>) -> Result<(), Status> {
        let (Some(own), Some(theirs)) = (self.get(), theirs) else { return Ok(()) };
        if own == theirs {
            return Ok(());
        }
        let text = format!("the caller belongs to cluster {theirs}, this process to cluster {own}");
        self.report(&text, "a call was refused");
        let mut refusal = Status::failed_precondition(text);
        self.write_to(refusal.metadata_mut());
        Err(refusal)
    }

    /// Returns true if a status is the refusal by a process of another cluster. Logs such a
    /// refusal.
    pub fn is_refusal(&self, status: &Status) -> bool {
        let is_refusal =
            cluster_of(status.metadata()).is_some_and(|theirs| Some(theirs) != self.get());
        if is_refusal {
            self.report(status.message(), "another process refused a call");
        }
        is_refusal
    }

    /// Logs a refusal, unless one was logged a short time ago.
    fn report(&self, text: &str, what: &'static str) {
        let mut reported = lock(&self.reported);
        if reported.is_none_or(|at| at.elapsed() >= REPORT_EVERY) {
            *reported = Some(Instant::now());
            tracing::warn!("{what}: {text}; check the addresses of both clusters");
        }
    }
}

/// Returns the cluster id in the headers of a message.
pub(super) fn cluster_of(metadata: &MetadataMap) -> Option<ClusterId> {
    metadata.get(HEADER)?.to_str().ok()?.parse().ok()
}
