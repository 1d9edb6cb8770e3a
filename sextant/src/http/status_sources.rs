//! The sources of the values that the HTTP port shows.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use proto::Result;
use proto::model::node::Role;
use tokio::time::timeout;

use crate::auth::login_policy::LoginPolicy;
use crate::backend::{ClusterBackend, Counters};
use crate::principal::Principal;
use crate::process_figures::OwnProcess;
use crate::sql::backend::{Backend, Backends, FigureKind};
use crate::status::render::metrics::{DoorFigures, OwnFigures};
use crate::status::{ProcessStatus, Status, WorkStatus, cluster_status};

/// Time limit for the answer of a coordinator.
const READY_WAIT: Duration = Duration::from_secs(2);

/// The sources of `/status` and `/metrics`.
#[derive(Clone)]
pub struct StatusSources {
    /// The backends, which restrict the cluster to what each principal may see.
    pub backends: Arc<dyn Backends>,
    /// The router of this process and the other services.
    pub backend: Arc<ClusterBackend>,
    /// The indexers of this process. The references are weak, so that the port keeps no stopped indexer alive.
    pub indexers: Vec<Weak<indexer::Indexer>>,
    /// The projectors of this process, as weakly.
    pub projectors: Vec<Weak<projector::Projector>>,
    /// Counters of the SQL and gRPC ports.
    pub counters: Arc<Counters>,
    /// The process, with its data.
    pub process: OwnProcess,
}

impl StatusSources {
    /// The reason for which statements cannot succeed now, if there is one.
    pub(super) async fn not_ready(&self) -> Option<String> {
        let catalog = self.backend.router().catalog();
        if catalog.cas == 0 {
            return Some(
                "the router has no catalog yet, because no coordinator has answered".into(),
            );
        }
        for role in [Role::Projector, Role::Indexer] {
            if !catalog.nodes.values().any(|node| node.role == role) {
                return Some(format!("no {} is registered", role.name()));
            }
        }
        match timeout(READY_WAIT, self.backend.status()).await {
            Err(_) => Some("no coordinator answers".into()),
            Ok(Err(error)) => Some(format!("no coordinator answers: {error}")),
            Ok(Ok(status)) if status.leader.is_none() => Some("no coordinator leads".into()),
            Ok(Ok(_)) => None,
        }
    }

    /// The figures of this process alone. Dropped indexes are left out.
    pub(super) fn own(&self, doors: &LoginPolicy) -> OwnFigures {
        let flow = doors.flow();
        let doors = DoorFigures {
            refusals: flow.refusals.by_setting().collect(),
            failed_logins: flow.failed_logins.load(Ordering::Relaxed),
            certificate_seconds_left: doors.certificate_seconds_left(),
        };
        let catalog = self.backend.router().catalog();
        let counts = self.counters.index_scans(|index| catalog.indexes.contains_key(&index));
        let named = |(index, count)| Some((catalog.indexes.get(&index)?.spec.name.clone(), count));
        OwnFigures {
            process: self.process.figures(),
            doors: Some(doors),
            counters: Some(Arc::clone(&self.counters)),
            index_scans: counts.into_iter().filter_map(named).collect(),
            ..OwnFigures::default()
        }
    }

    /// The status of this process and of the cluster. An error unless the principal may see the figures of the cluster.
    pub(super) async fn status(&self, principal: Principal) -> Result<Status> {
        let backend = self.backends.for_principal(principal);
        let cluster = cluster_status(&*backend, Some(FigureKind::Cluster)).await?;
        let router = self.backend.router();
        let running = self.indexers.iter().filter_map(Weak::upgrade);
        let projectors = self.projectors.iter().filter_map(Weak::upgrade);
        let (counters, hedging) = (&self.counters, router.hedging());
        let knowledge = router.knowledge();
        let process = ProcessStatus {
            version: env!("CARGO_PKG_VERSION"),
            router: router.node(),
            catalog_age_ms: knowledge.age_ms,
            catalog_is_from_disk: knowledge.is_from_disk,
            scans: router.scans(),
            local_indexers: running.map(|indexer| indexer.status()).collect(),
            local_projectors: projectors.map(|projector| projector.status()).collect(),
            work: WorkStatus {
                scans: counters.scans.get(),
                scan_rows: counters.scan_rows.get(),
                hedges_begun: hedging.begun,
                hedges_won: hedging.won,
                hedges_refused: hedging.refused,
                documents_written: counters.documents.get(),
                commands: counters.commands.get(),
            },
        };
        Ok(Status { process, cluster })
    }
}
