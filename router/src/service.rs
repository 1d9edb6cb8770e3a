//! The service of a router: its background tasks, and the entry points for scans.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use proto::client::{CatalogFollower, ForgottenPolicy, Membership, MembershipConfig, Retry};
use proto::env::{Env, Task};
use proto::flow::AdmissionStatus;
use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, Epoch, LocalIndexId, NodeId};
use proto::model::index::{IndexInfo, IndexState};
use proto::rpc::api::{Directory, Heartbeat, RouterReport};
use proto::rpc::scan::{Consistency, ScanRequest};
use proto::{Error, ErrorCode, Result};
use tokio::time::Instant;

use crate::catalog_watch::CatalogWatch;
use crate::config::Config;
use crate::context::RouterContext;
use crate::epochs::choose::{EpochChooser, catalog_to_keep};
use crate::epochs::pinned::PinnedEpoch;
use crate::hedging::HedgingStatus;
use crate::knowledge::Knowledge;
use crate::offline::{RouterData, keep_file_current};
use crate::scan::open::open_scan;
use crate::scan::stream::ScanStream;

/// A router; it runs until it is dropped.
pub struct Router {
    context: Arc<RouterContext>,
    data: Option<Arc<RouterData>>,
    _tasks: Vec<Task>,
}

impl Router {
    /// Starts a router without a data directory.
    pub fn start(config: Config, env: Env, directory: Arc<dyn Directory>) -> Self {
        Self::start_with(config, env, directory, None)
    }

    /// Starts a router. With a data directory, the router begins with the catalog stored there,
    /// and stores newer ones.
    pub fn start_with(
        config: Config,
        env: Env,
        directory: Arc<dyn Directory>,
        data: Option<RouterData>,
    ) -> Self {
        let context = RouterContext::new(config, env.clone(), directory);
        let reporting = context.clone();
        let mut watch = CatalogWatch::new(context.clone());
        let data = data.map(Arc::new);
        if let Some(data) = &data {
            watch.use_stored_catalog(data);
        }
        let mut tasks = vec![
            // The catalog and what follows from it may be half taken over.
            env.spawn_service("catalog", follow_catalog(context.clone(), watch)),
            // The leases are elsewhere; this only reports them.
            env.spawn_restarted("leases", move || report_leases(reporting.clone())),
        ];
        if let Some(data) = &data {
            let (context, data) = (context.clone(), Arc::clone(data));
            let begin = move || keep_file_current(context.clone(), Arc::clone(&data));
            tasks.push(env.spawn_restarted("kept catalog", begin));
        }
        Self { context: Arc::new(context), data, _tasks: tasks }
    }

    /// Returns the age of this router's information about the cluster.
    pub fn knowledge(&self) -> Knowledge {
        self.context.heard.knowledge(&*self.context.env.clock)
    }

    /// Waits until the coordinators have refused this process for `for_at_least`, because another
    /// process has its node id, and returns the refusal. Never returns if the coordinators have
    /// accepted the process before.
    pub async fn wait_until_refused(&self, for_at_least: Duration) -> Error {
        let mut taken = self.context.taken.subscribe();
        loop {
            let begun = taken.wait_for(Option::is_some).await.is_ok();
            // The answer to a heartbeat names a moment.
            if !begun || self.context.moment.load(Ordering::Relaxed) != 0 {
                return std::future::pending().await;
            }
            let goes = tokio::time::timeout(for_at_least, taken.wait_for(Option::is_none));
            let stays = goes.await.is_err();
            if stays && let Some(error) = taken.borrow().clone() {
                return error;
            }
        }
    }

    /// Removes the router's stored files, because the cluster no longer exists, so that the next
    /// start does not use them.
    pub async fn forget_cluster(&self) {
        let Some(data) = self.data.clone() else { return };
        if let Err(error) = self.context.env.blocking(move || data.remove_file()).await {
            tracing::error!(%error, "the kept catalog is not removed; remove it before the next start");
        }
    }

    /// Returns the newest catalog that this router has.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.context.catalog.load_full()
    }

    /// Returns the node number of this router.
    pub fn node(&self) -> NodeId {
        self.context.config.node.id
    }

    /// Returns the numbers of running, waiting and refused scans.
    pub fn scans(&self) -> AdmissionStatus {
        self.context.admission.status()
    }

    /// Returns the number of shard scans that failed after at least one row, and were continued
    /// after that row by another attempt.
    pub fn shard_scans_resumed(&self) -> u64 {
        self.context.resumed.load(Ordering::Relaxed)
    }

    /// Returns the newest epoch of a bucket that an indexer has reported to this router as
    /// applied. An applied epoch is always a published one.
    pub fn newest_published(&self, bucket: BucketId) -> Epoch {
        self.context.applied.newest_published().get(&bucket).copied().unwrap_or_default()
    }

    /// Returns the counters of parallel requests to other copies.
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

    /// Chooses and leases the epoch that a transaction reads in the bucket of an index, and its
    /// moment, which determines the epochs that it reads in other buckets.
    pub async fn pin(
        &self,
        index: LocalIndexId,
        consistency: &Consistency,
        timeout_ms: u64,
    ) -> Result<PinnedEpoch> {
        let deadline = Instant::now() + Duration::from_millis(timeout_ms);
        let catalog = self.catalog();
        let index = index_of(&catalog, index)?;
        let _held = self.context.leases.lease_catalog(catalog_to_keep(&catalog, &index));
        if self.context.moment.load(Ordering::Relaxed) == 0 {
            // Before the first answer to a heartbeat the router can name no moment.
            return PinnedEpoch::at_present(&self.context, index.bucket, deadline).await;
        }
        let chooser = EpochChooser::new(&self.context, &index, &catalog, deadline);
        let lease = chooser.choose(consistency).await?;
        Ok(PinnedEpoch::from_lease(&self.context, lease, catalog))
    }

    /// Gets a moment that covers all earlier acknowledged writes in all buckets, and leases the
    /// epoch of one bucket at that moment.
    pub async fn pin_bucket(&self, bucket: BucketId, timeout_ms: u64) -> Result<PinnedEpoch> {
        let deadline = Instant::now() + Duration::from_millis(timeout_ms);
        PinnedEpoch::at_present(&self.context, bucket, deadline).await
    }

    /// Begins a scan, or continues the scan that a token names.
    pub async fn scan(&self, request: ScanRequest, token: Option<&str>) -> Result<ScanStream> {
        let catalog = self.catalog();
        let index = index_of(&catalog, request.index)?;
        // Until the scan has its lease: it may wait for its permit and for an epoch before.
        let _held = self.context.leases.lease_catalog(catalog_to_keep(&catalog, &index));
        open_scan(Arc::clone(&self.context), index, request, token).await
    }
}

/// Returns a generation of an index from the catalog; an error if the catalog lacks it or it
/// cannot be read.
fn index_of(catalog: &Catalog, id: LocalIndexId) -> Result<Arc<IndexInfo>> {
    let Some(index) = catalog.local_index(id) else {
        return Err(match catalog.indexes.get(&id.index) {
            Some(index) => too_old(index),
            None => Error::new(ErrorCode::Unknown, format!("index {} does not exist", id.index)),
        });
    };
    match index.state {
        IndexState::Maintenance | IndexState::Retired => Ok(Arc::clone(index)),
        IndexState::Pending => {
            Err(Error::unavailable(format!("index {} is not built", index.spec.name))
                .with_hint(format!("BUILD INDEX ON {} ({})", index.spec.bucket, index.spec.name)))
        }
        IndexState::Backfill => {
            Err(Error::unavailable(format!("index {} is being built", index.spec.name))
                .with_hint("the index serves scans when SHOW INDEXES shows it as online"))
        }
    }
}

/// Returns the error of a scan or a transaction whose generation of the index was dropped.
fn too_old(index: &IndexInfo) -> Error {
    let what = format!(
        "index \"{}\" has a newer generation, and the one in which this began is gone",
        index.spec.name
    );
    Error::new(ErrorCode::SnapshotTooOld, what).with_hint("begin the scan or the transaction anew")
}

/// Receives catalogs from the coordinators and makes them the router's current one.
async fn follow_catalog(context: RouterContext, watch: CatalogWatch) -> Infallible {
    let retry = Retry::constant(context.config.retry);
    let follower = CatalogFollower::new(Arc::clone(&context.directory), retry);
    follower.run(watch).await
}

/// Sends heartbeats to the coordinators, which keep the router registered and renew the leases of
/// scans and tokens.
async fn report_leases(context: RouterContext) -> Infallible {
    let config = MembershipConfig {
        node: context.config.node.clone(),
        heartbeat: context.config.heartbeat,
        retry: Retry::constant(context.config.retry),
        client: None,
        has_news_at_once: true,
        identity: None,
        when_forgotten: ForgottenPolicy::RegisterAtOnce,
    };
    let membership = Membership::new(Arc::clone(&context.directory), config)
        .with_silent_nodes(context.silent.clone())
        .with_answer_times(context.heard.answered())
        .with_moment(Arc::clone(&context.moment))
        .with_process_number(context.config.mark, context.taken.clone());
    let report = move || {
        let now = Instant::now();
        // A kept catalog is no evidence of what the coordinators have known.
        let catalog_cas = match context.heard.is_from_disk() {
            true => 0,
            false => context.catalog.load().cas,
        };
        context.leases.note_published(context.applied.newest_published(), now);
        let report = RouterReport {
            leases: context.leases.for_heartbeat(now),
            moments: context.leases.moments_for_heartbeat(now),
            reads_since: context.leases.oldest_catalog(now).unwrap_or(catalog_cas).min(catalog_cas),
            scans: context.admission.status(),
        };
        Heartbeat::new(context.config.node.id, catalog_cas, report)
    };
    membership.run(report, None).await
}
