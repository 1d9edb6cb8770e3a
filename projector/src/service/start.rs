//! Starts a projector: opens its buckets and spawns its tasks.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use proto::env::{Env, Task};
use proto::flow::Budget;
use proto::rpc::api::Directory;
use proto::rpc::routing::MutationRouter;
use proto::{Error, Result};
use tokio::sync::{Notify, watch};

use crate::config::Config;
use crate::damaged::DamagedBuckets;
use crate::feed::StreamContext;
use crate::projector::{ChangedBuckets, Projector};
use crate::resolve::{LateKind, resolve_late};
use crate::roles::Roles;
use crate::source::DocumentStore;
use crate::source::view::bucket::Bucket;
use crate::source::writer::Writer;
use crate::transactions::counts::Counts;
use crate::transactions::limits::Limits;
use crate::transactions::room::TransactionBudget;
use crate::{copies, follow, hand_over, maintenance, purge, versions};

/// A running projector. Dropping it ends its tasks and streams.
pub struct Service {
    projector: Arc<Projector>,
    failed: Arc<Notify>,
    _tasks: Vec<Task>,
}

impl Service {
    /// Starts a projector over an open store.
    pub async fn start(
        config: Config,
        env: Env,
        store: Arc<dyn DocumentStore>,
        directory: Arc<dyn Directory>,
        router: Arc<dyn MutationRouter>,
    ) -> Result<Self> {
        let (catalog, _) = watch::channel(None);
        let changed_buckets = Arc::new(ChangedBuckets::default());
        let opened = Arc::clone(&store);
        let open = move || {
            let damaged = DamagedBuckets::new(opened.damaged()?, opened.recreated()?);
            let (ids, known) = (opened.unique_ids()?, opened.catalog_cas()?);
            Ok::<_, Error>((opened.buckets()?, damaged, ids, known))
        };
        let (mut found, damaged, unique_ids, known) = env.blocking(open).await?;
        let whole = found.iter().map(|(record, _)| record.info.id);
        let stored: BTreeMap<_, _> = whole
            .chain(damaged.ids())
            .map(|bucket| (bucket, unique_ids.get(&bucket).copied()))
            .collect();
        // A foreign bucket is not served, from the first moment on.
        found.retain(|(record, _)| !stored[&record.info.id].is_some_and(|id| id.is_foreign));
        let on_change = {
            let changed_buckets = Arc::clone(&changed_buckets);
            Box::new(move |bucket| changed_buckets.add(bucket))
        };
        let failed = Arc::new(Notify::new());
        let writer = Writer {
            store: Arc::clone(&store),
            failed: Arc::clone(&failed),
            showing: Mutex::default(),
            large_commit_changes: config.large_commit_changes,
            on_change,
        };
        let projector = Arc::new(Projector {
            streams: Arc::new(StreamContext {
                env: env.clone(),
                store: Arc::clone(&store),
                router,
                frames_ahead_bytes_max: config.frames_ahead_bytes_max,
                left_out: Default::default(),
            }),
            buckets: Mutex::default(),
            stored: Mutex::new(stored),
            write_budget: Budget::new(config.write_queue_bytes_max),
            transaction_limits: Limits {
                bytes_max: config.transaction_bytes_max,
                open_max: config.transactions_max,
                room: TransactionBudget::new(config.transactions_bytes_max),
            },
            transaction_counts: Counts::default(),
            config,
            env: env.clone(),
            directory,
            catalog,
            catalog_cas: AtomicU64::new(known),
            changed_buckets,
            writer: Arc::new(writer),
            roles: Roles::new(),
            damaged,
            loads: Default::default(),
            catalog_turn: Default::default(),
            readings: Default::default(),
        });
        for (record, ends) in found {
            projector.add(Bucket::new(record, &ends, projector.config.head_bytes_max));
        }
        let tasks = spawn_tasks(&env, &projector, Arc::clone(&failed));
        Ok(Self { projector, failed, _tasks: tasks })
    }

    /// Waits until the store has failed, for example because the disk is full or broken. The
    /// store then accepts no writes until the process is restarted.
    pub async fn wait_until_failed(&self) {
        self.failed.notified().await;
    }

    /// Returns the projector that answers the calls.
    pub fn projector(&self) -> Arc<Projector> {
        Arc::clone(&self.projector)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.projector.end_writers();
        self.projector.store().stop();
    }
}

/// Starts the tasks of a projector. The writers of its buckets are started separately.
fn spawn_tasks(env: &Env, projector: &Arc<Projector>, failed: Arc<Notify>) -> Vec<Task> {
    let own = || Arc::clone(projector);
    let [registration, openings, sync, purge, maintained, versions] =
        [own(), own(), own(), own(), own(), own()];
    let late = |name, kind| {
        let projector = own();
        env.spawn_restarted(name, move || resolve_late(Arc::clone(&projector), kind))
    };
    vec![
        // These tasks change buckets step by step, and a partly changed bucket must not be served.
        env.spawn_service("projector catalog", follow::follow_catalog(own())),
        env.spawn_service("projector hand-overs", hand_over::take_over_all(own())),
        env.spawn_service("projector removals", hand_over::remove_unneeded(own())),
        env.spawn_service("projector copies", copies::maintain_roles(own())),
        env.spawn_service("projector healing", copies::heal_damaged(own())),
        // These tasks can restart at any time: registrations, reports and purges are kept.
        env.spawn_restarted("projector registration", move || {
            follow::stay_registered(Arc::clone(&registration))
        }),
        env.spawn_restarted("projector openings", move || {
            follow::open_sources(Arc::clone(&openings))
        }),
        env.spawn_restarted("projector sync", move || follow::sync_positions(Arc::clone(&sync))),
        env.spawn_restarted("projector maintenance", move || {
            maintenance::maintain(Arc::clone(&maintained), Arc::clone(&failed))
        }),
        late("projector prepared transactions", LateKind::Prepared),
        late("projector joint commits", LateKind::Joint),
        late("projector commits of producers", LateKind::Pushed),
        env.spawn_restarted("projector versions", move || {
            versions::load_versions(Arc::clone(&versions))
        }),
        env.spawn_restarted("projector purge", move || purge::purge_logs(Arc::clone(&purge))),
    ]
}
