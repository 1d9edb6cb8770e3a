//! The projector as a service: its buckets, its tasks, and the calls that others make (`calls.rs`).

mod calls;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_channel::Sender;
use proto::env::{Env, Random, Task};
use proto::flow::Budget;
use proto::model::bucket::SourceKind;
use proto::model::catalog::Catalog;
use proto::model::history::begin_branch;
use proto::model::ids::{BucketId, Seqno, Vbuuid};
use proto::plant::{self, Plant};
use proto::rpc::api::Directory;
use proto::rpc::routing::MutationRouter;
use proto::{Error, ErrorCode, Result};
use tokio::sync::{Notify, oneshot, watch};

use crate::config::Config;
use crate::follow;
use crate::hand_over;
use crate::purge;
use crate::source::bucket::Bucket;
use crate::source::writer::{Job, Work, Writer};
use crate::source::{BucketRecord, DocumentStore};
use crate::stream::StreamContext;

/// How long a call waits for a bucket or an index that the coordinator has made a moment ago.
const CATALOG_WAIT: Duration = Duration::from_secs(2);
/// Writers in the queue; what bounds it in practice is their bytes.
const WRITE_JOBS: usize = 4096;

/// A running projector; dropping it ends its tasks, and with them its streams.
pub struct Service {
    projector: Arc<Projector>,
    failed: Arc<Notify>,
    _tasks: Vec<Task>,
}

/// What the calls and the tasks of a projector work on.
pub struct Projector {
    pub(crate) config: Config,
    pub(crate) env: Env,
    pub(crate) directory: Arc<dyn Directory>,
    pub(crate) streams: Arc<StreamContext>,
    pub(crate) catalog: watch::Sender<Option<Arc<Catalog>>>,
    pub(crate) gate: Arc<Mutex<()>>,
    pub(crate) moved: Arc<Moved>,
    buckets: Mutex<BTreeMap<BucketId, Arc<Bucket>>>,
    jobs: Sender<Job>,
    write_budget: Budget,
}

/// The buckets that have moved on since they were last asked for.
#[derive(Default)]
pub(crate) struct Moved {
    buckets: Mutex<BTreeSet<BucketId>>,
    some: Notify,
}

impl Moved {
    fn add(&self, bucket: BucketId) {
        self.buckets.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).insert(bucket);
        self.some.notify_one();
    }

    pub(crate) async fn wait(&self) {
        self.some.notified().await;
    }

    pub(crate) fn take(&self) -> BTreeSet<BucketId> {
        std::mem::take(&mut *self.buckets.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }
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
        let (jobs, queue) = async_channel::bounded(WRITE_JOBS);
        let (catalog, _) = watch::channel(None);
        let gate = Arc::new(Mutex::new(()));
        let moved = Arc::new(Moved::default());
        let (opened, random) = (Arc::clone(&store), Arc::clone(&env.random));
        let found = env.blocking(move || begin_branches(&*opened, &*random)).await?;
        let buckets = found.into_iter().map(|(record, ends)| {
            let id = record.info.id;
            (id, Arc::new(Bucket::new(record, &ends, config.head_bytes_max)))
        });
        let projector = Arc::new(Projector {
            streams: Arc::new(StreamContext {
                env: env.clone(),
                store: Arc::clone(&store),
                router,
                frames_ahead_bytes_max: config.frames_ahead_bytes_max,
                left_out: AtomicU64::new(0),
            }),
            buckets: Mutex::new(buckets.collect()),
            write_budget: Budget::new(config.write_queue_bytes_max),
            config,
            env: env.clone(),
            directory,
            catalog,
            gate: Arc::clone(&gate),
            moved: Arc::clone(&moved),
            jobs,
        });
        let moved = Box::new(move |bucket| moved.add(bucket));
        let failed = Arc::new(Notify::new());
        let writer = Arc::new(Writer { store, gate, failed: Arc::clone(&failed), moved });
        let tasks = vec![
            env.spawn("projector writer", writer.run(env.clone(), queue)),
            env.spawn("projector registration", follow::stay_registered(Arc::clone(&projector))),
            env.spawn("projector catalog", follow::follow_catalog(Arc::clone(&projector))),
            env.spawn("projector sync", follow::sync_positions(Arc::clone(&projector))),
            env.spawn("projector hand-overs", hand_over::take_all(Arc::clone(&projector))),
            env.spawn("projector removals", hand_over::remove_gone(Arc::clone(&projector))),
            env.spawn("projector purge", purge::keep_bounded(Arc::clone(&projector))),
        ];
        Ok(Self { projector, failed, _tasks: tasks })
    }

    /// Waits until the store has failed: a disk that is full or broken. It takes no writes until the process is started
    /// again.
    pub async fn stopped(&self) {
        self.failed.notified().await;
    }

    /// What others call.
    pub fn projector(&self) -> Arc<Projector> {
        Arc::clone(&self.projector)
    }
}

/// The buckets of a store, each vbucket of an embedded one on a new branch: nobody knows what the process that
/// had the store before has numbered and lost, or whether the store is an older copy. What a reader knows of
/// the branches before stays a place in the history, as far as the store has it.
fn begin_branches(
    store: &dyn DocumentStore,
    random: &dyn Random,
) -> Result<Vec<(BucketRecord, Vec<Seqno>)>> {
    let mut buckets = store.buckets()?;
    let embedded = |(record, _): &&mut (BucketRecord, Vec<Seqno>)| {
        record.info.source == SourceKind::Embedded && !plant::is(Plant::BranchKept)
    };
    let mut records = Vec::new();
    for (record, ends) in buckets.iter_mut().filter(embedded) {
        for (branches, end) in record.branches.iter_mut().zip(ends) {
            begin_branch(branches, Vbuuid(random.next_u64().max(1)), *end);
        }
        records.push(record.clone());
    }
    if !records.is_empty() {
        store.put_records(&records)?;
    }
    Ok(buckets)
}

impl Projector {
    fn buckets(&self) -> MutexGuard<'_, BTreeMap<BucketId, Arc<Bucket>>> {
        self.buckets.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn store(&self) -> Arc<dyn DocumentStore> {
        Arc::clone(&self.streams.store)
    }

    pub(crate) fn find(&self, bucket: BucketId) -> Option<Arc<Bucket>> {
        self.buckets().get(&bucket).cloned()
    }

    pub(crate) fn bucket_ids(&self) -> BTreeSet<BucketId> {
        self.buckets().keys().copied().collect()
    }

    pub(crate) fn add(&self, bucket: Bucket) {
        let id = bucket.info.id;
        self.buckets().insert(id, Arc::new(bucket));
        self.moved.add(id);
    }

    pub(crate) fn remove(&self, bucket: BucketId) {
        if let Some(removed) = self.buckets().remove(&bucket) {
            removed.remove();
        }
    }

    /// Documents that were left out of an index, because a key of theirs is over its limit, since the
    /// process began; counted once for each copy and each stream that met them.
    pub fn documents_left_out(&self) -> u64 {
        self.streams.left_out.load(Ordering::Relaxed)
    }

    /// Waits a little until the catalog shows something that its user has seen already.
    pub(crate) async fn wait_for<T>(
        &self,
        look: impl Fn(Option<&Catalog>) -> Option<T> + Send,
        missing: impl Fn() -> Error + Send,
    ) -> Result<T> {
        let mut catalog = self.catalog.subscribe();
        let found = async {
            loop {
                if let Some(found) = look(catalog.borrow_and_update().as_deref()) {
                    return found;
                }
                if catalog.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        tokio::time::timeout(CATALOG_WAIT, found).await.map_err(|_| missing())
    }

    pub(crate) async fn bucket(&self, bucket: BucketId) -> Result<Arc<Bucket>> {
        if let Some(found) = self.find(bucket) {
            return Ok(found);
        }
        let missing = || {
            Error::new(ErrorCode::Unknown, format!("this projector keeps no bucket {bucket}"))
                .with_hint("it was dropped, or another projector keeps it")
        };
        self.wait_for(|_| self.find(bucket), missing).await
    }

    /// Has the writer do something between two groups.
    pub(crate) async fn alone<T: Send + 'static>(
        &self,
        bucket: Arc<Bucket>,
        work: impl FnOnce(&Writer, &Bucket) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.queue(bucket, 0, |reply| {
            Work::Alone(Box::new(move |writer, bucket| {
                // Whoever asked may have gone; what was done stands all the same.
                let _gone = reply.send(work(writer, bucket));
            }))
        })
        .await
    }

    async fn queue<T>(
        &self,
        bucket: Arc<Bucket>,
        bytes: usize,
        work: impl FnOnce(oneshot::Sender<Result<T>>) -> Work,
    ) -> Result<T> {
        let room = self.write_budget.reserve(bytes).await;
        let (reply, answer) = oneshot::channel();
        let ending = || Error::unavailable("the projector is ending");
        let job = Job { bucket, bytes, work: work(reply), room };
        self.jobs.send(job).await.map_err(|_| ending())?;
        answer.await.map_err(|_| ending())?
    }
}
