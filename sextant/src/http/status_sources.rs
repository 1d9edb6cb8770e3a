//! The sources of the values that the HTTP port for users shows.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use proto::Result;
use proto::model::node::Role;
use router::Router;
use tokio::time::timeout;

use crate::access::{AccessProvider, FigureKind};
use crate::auth::login_policy::LoginPolicy;
use crate::backend::Counters;
use crate::principal::Principal;
use crate::process_figures::OwnProcess;
use crate::status::render::metrics::{LoginFigures, OwnFigures};
use crate::status::{ProcessStatus, Status, WorkStatus, cluster_status};

/// The time limit for the answer of a coordinator.
const READY_WAIT: Duration = Duration::from_secs(2);

/// The sources of `/status` and `/metrics`.
#[derive(Clone)]
pub struct StatusSources {
    /// The source of the access of each principal, which shows what the principal may see of the
    /// cluster.
    pub provider: Arc<dyn AccessProvider>,
    /// The router of this process.
    pub router: Arc<Router>,
    /// The indexers of this process. The references are weak, so that a stopped indexer is freed.
    pub indexers: Vec<Weak<indexer::Indexer>>,
    /// The projectors of this process, by weak references for the same reason.
    pub projectors: Vec<Weak<projector::Projector>>,
    /// The counters of the SQL and gRPC ports.
    pub counters: Arc<Counters>,
    /// The source of the figures of the operating system about this process.
    pub process: OwnProcess,
}

impl StatusSources {
    /// Returns the reason why statements cannot succeed now; `None` if they can.
    pub(super) async fn not_ready(&self) -> Option<String> {
        let catalog = self.router.catalog();
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
        // The answer has no word about the contents of the cluster.
        let access = self.provider.access_of(Principal::Trusted);
        match timeout(READY_WAIT, access.status()).await {
            Err(_) => Some("no coordinator answers".into()),
            Ok(Err(error)) => Some(format!("no coordinator answers: {error}")),
            Ok(Ok(status)) if status.leader.is_none() => Some("no coordinator leads".into()),
            Ok(Ok(_)) => None,
        }
    }

    /// Returns the metrics of this process alone, without those of dropped indexes.
    pub(super) fn own_figures(&self, doors: &LoginPolicy) -> OwnFigures {
        let flow = doors.flow();
        let doors = LoginFigures {
            refusals: flow.refusals.by_setting().collect(),
            failed_logins: flow.failed_logins.load(Ordering::Relaxed),
            certificate_seconds_left: doors.certificate_seconds_left(),
        };
        let catalog = self.router.catalog();
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

    /// Returns the status of this process and of the cluster. Returns an error if the principal
    /// may not see it.
    pub(super) async fn status(&self, principal: Principal) -> Result<Status> {
        let access = self.provider.access_of(principal);
        let cluster = cluster_status(&access, Some(FigureKind::Cluster)).await?;
        let router = &self.router;
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
