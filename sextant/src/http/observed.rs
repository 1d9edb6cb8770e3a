//! The sources of the values that the HTTP port shows.

use std::sync::{Arc, Weak};

use crate::backend::{ClusterBackend, Counters};
use crate::principal::Principal;
use crate::status::{ProcessStatus, Status, WorkStatus, cluster_status};

/// The sources of `/status` and `/metrics`.
#[derive(Clone)]
pub struct Observed {
    /// The router of this process and the other services.
    pub backend: Arc<ClusterBackend>,
    /// The indexers of this process. The references are weak, so that the port keeps no stopped indexer alive.
    pub indexers: Vec<Weak<indexer::Indexer>>,
    /// Counters of the SQL and gRPC ports.
    pub counters: Arc<Counters>,
}

impl Observed {
    /// The status of this process and of the cluster, for a principal.
    pub(super) async fn status(&self, principal: Principal) -> Status {
        let cluster = cluster_status(&self.backend.with_principal(principal)).await;
        let router = self.backend.router();
        let running = self.indexers.iter().filter_map(Weak::upgrade);
        let counters = &self.counters;
        let process = ProcessStatus {
            version: env!("CARGO_PKG_VERSION"),
            router: router.node(),
            scans: router.scans(),
            local_indexers: running.map(|indexer| indexer.status()).collect(),
            work: WorkStatus {
                scans: counters.scans.get(),
                scan_rows: counters.scan_rows.get(),
                documents_written: counters.documents.get(),
                commands: counters.commands.get(),
            },
        };
        Status { process, cluster }
    }
}
