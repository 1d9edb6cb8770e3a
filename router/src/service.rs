//! The service of a router: its background tasks, and the entry points for scans.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use proto::client::{CatalogFollower, Membership, MembershipConfig, Retry, WhenForgotten};
use proto::env::{Env, Task};
use proto::flow::{Admission, AdmissionLimits, AdmissionStatus};
use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, Epoch, IndexId, NodeId};
use proto::model::index::{IndexInfo, IndexState};
use proto::rpc::api::{Directory, Heartbeat};
use proto::rpc::scan::{Consistency, ScanRequest};
use proto::{Error, ErrorCode, Result};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::catalog_watch::CatalogWatch;
use crate::config::Config;
use crate::context::RouterContext;
use crate::epochs::applied::AppliedEpochs;
use crate::epochs::choose::EpochChooser;
use crate::epochs::leases::Leases;
use crate::epochs::pinned::PinnedEpoch;
use crate::epochs::read_view::ReadViews;
use crate::epochs::topologies::Topologies;
use crate::hedging::HedgingStatus;
use crate::scan::open::open_scan;
use crate::scan::stream::ScanStream;

/// A router; it runs until it is dropped.
pub struct Router {
    context: Arc<RouterContext>,
    _tasks: Vec<Task>,
}

impl Router {
    /// Starts a router.
    pub fn start(config: Config, env: Env, directory: Arc<dyn Directory>) -> Self {
        let admission = Admission::new(AdmissionLimits {
            what: format!("scans on router {}", config.node.id),
            count_max: config.scans_max,
            bytes_max: config.scan_memory_total_bytes,
            bytes_each_max: config.scan_memory_each_bytes,
        });
        let context = RouterContext {
            admission,
            config,
            env: env.clone(),
            directory,
            catalog: Arc::default(),
            catalog_changed: watch::Sender::new(0),
            applied: AppliedEpochs::default(),
            silent: watch::Sender::default(),
            leases: Leases::default(),
            moment: Arc::default(),
            topologies: Topologies::default(),
            views: ReadViews::default(),
            resumed: Arc::default(),
            hedging: Arc::default(),
            busy: Arc::default(),
        };
        let reporting = context.clone();
        let tasks = vec![
            // The catalog and what follows from it may be half taken over.
            env.spawn_service("catalog", follow_catalog(context.clone())),
            // The leases are elsewhere; this only reports them.
            env.spawn_restarted("leases", move || report_leases(reporting.clone())),
        ];
        Self { context: Arc::new(context), _tasks: tasks }
    }

    /// The newest catalog that this router has.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.context.catalog.load_full()
    }

    /// The node number of this router.
    pub fn node(&self) -> NodeId {
        self.context.config.node.id
    }

    /// The numbers of running, waiting and refused scans.
    pub fn scans(&self) -> AdmissionStatus {
        self.context.admission.status()
    }

    /// The number of shard scans that failed after at least one row, and went on behind it.
    pub fn shard_scans_resumed(&self) -> u64 {
        self.context.resumed.load(Ordering::Relaxed)
    }

    /// The newest epoch of a bucket that an indexer has told this router: it is published.
    pub fn newest_published(&self, bucket: BucketId) -> Epoch {
        self.context.applied.newest_published().get(&bucket).copied().unwrap_or_default()
    }

    /// The numbers of parallel requests to other copies.
    pub fn hedging(&self) -> HedgingStatus {
        self.context.hedging.status()
    }

    /// Waits until the catalog of this router meets a condition, and returns it.
    pub async fn wait_catalog(&self, found: impl Fn(&Catalog) -> bool) -> Arc<Catalog> {
        let mut changed = self.context.catalog_changed.subscribe();
        loop {
            let catalog = self.context.catalog.load_full();
            if found(&catalog) || changed.changed().await.is_err() {
                return catalog;
            }
        }
    }

    /// Chooses and leases the epoch that the scans of a transaction read in an index's bucket, and the moment at which it reads other
    /// buckets.
    pub async fn pin(
        &self,
        index: IndexId,
        consistency: &Consistency,
        timeout_ms: u64,
    ) -> Result<PinnedEpoch> {
        let deadline = Instant::now() + Duration::from_millis(timeout_ms);
        let index = self.index(index)?;
        if self.context.moment.load(Ordering::Relaxed) == 0 {
            // Before the first answer to a heartbeat the router can name no moment.
            return PinnedEpoch::of_now(&self.context, index.bucket, deadline).await;
        }
        let chooser = EpochChooser::new(&self.context, &index, deadline);
        Ok(PinnedEpoch::of_lease(&self.context, chooser.choose(consistency).await?))
    }

    /// Fixes a moment that covers everything acknowledged before in all buckets, and leases the epoch of one at it.
    pub async fn pin_bucket(&self, bucket: BucketId, timeout_ms: u64) -> Result<PinnedEpoch> {
        let deadline = Instant::now() + Duration::from_millis(timeout_ms);
        PinnedEpoch::of_now(&self.context, bucket, deadline).await
    }

    /// Begins a scan, or continues the scan that a token names.
    pub async fn scan(&self, request: ScanRequest, token: Option<&str>) -> Result<ScanStream> {
        let index = self.index(request.index)?;
        open_scan(Arc::clone(&self.context), index, request, token).await
    }

    fn index(&self, index: IndexId) -> Result<Arc<IndexInfo>> {
        let catalog = self.context.catalog.load();
        let index = catalog.indexes.get(&index).ok_or_else(|| {
            Error::new(ErrorCode::Unknown, format!("index {index} does not exist"))
        })?;
        match index.state {
            IndexState::Maintenance => Ok(Arc::clone(index)),
            IndexState::Pending => {
                Err(Error::unavailable(format!("index {} is not built", index.spec.name))
                    .with_hint(format!(
                        "BUILD INDEX ON {} ({})",
                        index.spec.bucket, index.spec.name
                    )))
            }
            IndexState::Backfill => {
                Err(Error::unavailable(format!("index {} is being built", index.spec.name))
                    .with_hint("the index serves scans when SHOW INDEXES shows it as online"))
            }
        }
    }
}

async fn follow_catalog(context: RouterContext) -> Infallible {
    let retry = Retry::constant(context.config.retry);
    let follower = CatalogFollower::new(Arc::clone(&context.directory), retry);
    follower.run(CatalogWatch::new(context)).await
}

/// Keeps the router registered. The heartbeats renew the leases of scans and tokens.
async fn report_leases(context: RouterContext) -> Infallible {
    let config = MembershipConfig {
        node: context.config.node.clone(),
        heartbeat: context.config.heartbeat,
        retry: Retry::constant(context.config.retry),
        client: None,
        has_news_at_once: true,
        identity: None,
        when_forgotten: WhenForgotten::RegisterAtOnce,
    };
    let membership = Membership::new(Arc::clone(&context.directory), config)
        .with_silent(context.silent.clone())
        .with_moment(Arc::clone(&context.moment));
    let report = move || {
        let now = Instant::now();
        context.leases.note_published(context.applied.newest_published(), now);
        Heartbeat {
            node: context.config.node.id,
            buckets: Vec::new(),
            slices: Vec::new(),
            moves: Vec::new(),
            leases: context.leases.for_heartbeat(now),
            moments: context.leases.moments_for_heartbeat(now),
            scans: Some(context.admission.status()),
            proof: None,
            catalog_cas: context.catalog.load().cas,
            owned: Vec::new(),
        }
    };
    membership.run(report, None).await
}
