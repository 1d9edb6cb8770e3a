//! The data that the calls and the tasks of a projector share: the served buckets with their
//! writers, the catalog, and the store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_channel::Sender;
use proto::env::{Env, Task};
use proto::flow::Budget;
use proto::lock::lock;
use proto::model::assignment::VbucketSet;
use proto::model::catalog::Catalog;
use proto::model::copies::{Copies, CopyRole};
use proto::model::identity::ClusterId;
use proto::model::ids::{BucketId, Epoch, NodeId};
use proto::rpc::api::Directory;
use proto::{Error, ErrorCode, Result};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::config::Config;
use crate::damaged::DamagedBuckets;
use crate::feed::{Readings, StreamContext};
use crate::load_reports::LoadReports;
use crate::roles::Roles;
use crate::source::view::bucket::Bucket;
use crate::source::writer::{Job, Writer};
use crate::source::{DocumentStore, StoredId};
use crate::transactions::counts::{Counts, TransactionFigures};
use crate::transactions::limits::Limits;

/// The longest time that a call waits for a bucket or an index that was just created, and is not
/// in this projector's catalog yet.
const CATALOG_WAIT: Duration = Duration::from_secs(2);

/// The longest time that a call waits for a bucket that is not served because the coordinators
/// have not compared its copy yet: enough for an election, and for a lone coordinator that waits
/// for the reports of all nodes.
const OPEN_WAIT: Duration = Duration::from_secs(10);

/// The maximum number of jobs in the queue of a bucket's writer. It limits small jobs; large jobs
/// are limited by their bytes.
const WRITE_JOBS: usize = 4096;

/// The limit of all waiting writes, divided by this number, is the limit of the waiting writes of
/// one bucket. It still allows several groups, which keep the bucket's log busy.
const BUCKET_SHARE: usize = 4;

/// A served bucket, with the queue and the task of its writer.
pub(crate) struct BucketWriter {
    bucket: Arc<Bucket>,
    jobs: Sender<Job>,
    /// The memory that the bucket's waiting writes may use.
    room: Budget,
    /// The writer's task; `None` while the service stops.
    writer: Option<Task>,
}

/// A projector: the data that its calls and tasks share.
pub struct Projector {
    pub(crate) config: Config,
    pub(crate) env: Env,
    pub(crate) directory: Arc<dyn Directory>,
    pub(crate) streams: Arc<StreamContext>,
    pub(crate) catalog: watch::Sender<Option<Arc<Catalog>>>,
    /// The version number (`Catalog::cas`) of the newest catalog that this process, or an earlier
    /// one, has received.
    pub(crate) catalog_cas: AtomicU64,
    /// All stored buckets, including those that are not served, with their random ids; `None` for
    /// a bucket without a stored id.
    pub(crate) stored: Mutex<BTreeMap<BucketId, Option<StoredId>>>,
    pub(crate) changed_buckets: Arc<ChangedBuckets>,
    pub(crate) buckets: Mutex<BTreeMap<BucketId, BucketWriter>>,
    pub(crate) writer: Arc<Writer>,
    pub(crate) write_budget: Budget,
    pub(crate) transaction_limits: Limits,
    pub(crate) transaction_counts: Counts,
    pub(crate) roles: Roles,
    pub(crate) damaged: DamagedBuckets,
    pub(crate) loads: LoadReports,
    /// The lock that orders catalogs: held while buckets are created and removed.
    pub(crate) catalog_turn: tokio::sync::Mutex<()>,
    /// The readings of buckets that new backfills may still join.
    pub(crate) readings: Arc<Readings>,
}

/// The status of a projector.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Status {
    /// The node id of the projector.
    pub node: NodeId,
    /// The numbers of its transactions, by outcome.
    pub transactions: TransactionFigures,
}

/// The set of buckets that have changed since the last SYNC report.
#[derive(Default)]
pub(crate) struct ChangedBuckets {
    buckets: Mutex<BTreeSet<BucketId>>,
    some: Notify,
}

impl ChangedBuckets {
    pub(crate) fn add(&self, bucket: BucketId) {
        lock(&self.buckets).insert(bucket);
        self.some.notify_one();
    }

    pub(crate) async fn wait(&self) {
        self.some.notified().await;
    }

    pub(crate) fn take(&self) -> BTreeSet<BucketId> {
        std::mem::take(&mut *lock(&self.buckets))
    }
}

impl Projector {
    /// The cluster that the data directory belongs to.
    pub fn cluster(&self) -> Option<ClusterId> {
        self.config.identity.as_ref()?.cluster()
    }

    /// Returns the present status of the projector.
    pub fn status(&self) -> Status {
        let now = Instant::now();
        let open = self.buckets();
        let figures = |written: &BucketWriter| {
            let bucket = &written.bucket;
            bucket.with_joint_figures(bucket.transactions.figures(now), now)
        };
        let open = TransactionFigures::sum(open.values().map(figures));
        let transactions = self.transaction_counts.with_open(open);
        Status { node: self.config.node.id, transactions }
    }

    /// Returns the version number (`Catalog::cas`) of the newest catalog that this projector has
    /// received.
    pub(crate) fn newest_catalog(&self) -> u64 {
        self.catalog_cas.load(Ordering::Relaxed)
    }

    /// Records the version number of a received catalog.
    pub(crate) fn note_catalog(&self, cas: u64) {
        self.catalog_cas.fetch_max(cas, Ordering::Relaxed);
    }

    fn buckets(&self) -> MutexGuard<'_, BTreeMap<BucketId, BucketWriter>> {
        lock(&self.buckets)
    }

    pub(crate) fn store(&self) -> Arc<dyn DocumentStore> {
        Arc::clone(&self.streams.store)
    }

    /// Returns the queue of a bucket's writer, and the memory budget for waiting writes. `None`
    /// if the bucket object was replaced.
    pub(crate) fn queue_of(&self, bucket: &Arc<Bucket>) -> Option<(Sender<Job>, Budget)> {
        let buckets = self.buckets();
        let same = |found: &&BucketWriter| Arc::ptr_eq(&found.bucket, bucket);
        let found = buckets.get(&bucket.info.id).filter(same);
        found.map(|found| (found.jobs.clone(), found.room.clone()))
    }

    /// Returns a served bucket; `None` if there is none with this number.
    pub(crate) fn find(&self, bucket: BucketId) -> Option<Arc<Bucket>> {
        self.buckets().get(&bucket).map(|found| Arc::clone(&found.bucket))
    }

    pub(crate) fn bucket_ids(&self) -> BTreeSet<BucketId> {
        self.buckets().keys().copied().collect()
    }

    /// Returns true if the bucket that is stored under this number has another random id than the
    /// catalog's bucket of the same number.
    pub(crate) fn is_foreign(&self, bucket: BucketId) -> bool {
        lock(&self.stored).get(&bucket).is_some_and(|id| id.is_some_and(|id| id.is_foreign))
    }

    /// Serves a bucket from now on, and starts its writer.
    pub(crate) fn add(&self, bucket: Bucket) {
        self.add_to(&mut self.buckets(), bucket);
    }

    fn add_to(&self, buckets: &mut BTreeMap<BucketId, BucketWriter>, bucket: Bucket) {
        let id = bucket.info.id;
        let room = Budget::new(self.config.write_queue_bytes_max / BUCKET_SHARE);
        bucket.count_in_budget(&self.transaction_limits.room);
        let (bucket, (jobs, queue)) = (Arc::new(bucket), async_channel::bounded(WRITE_JOBS));
        // The writer numbers mutations and publishes them: a panic may leave half of a group shown.
        let run = Arc::clone(&self.writer).run(Arc::clone(&bucket), self.env.clone(), queue);
        let task = self.env.spawn_service("projector writer", run);
        buckets.insert(id, BucketWriter { bucket, jobs, room, writer: Some(task) });
        self.changed_buckets.add(id);
        self.roles.wake_watchers();
    }

    /// The node id of this projector.
    pub(crate) fn node_id(&self) -> NodeId {
        self.config.node.id
    }

    /// Returns the newest known configuration of the copies of an embedded bucket; `None` before
    /// the first catalog.
    pub(crate) fn copies_of(&self, bucket: BucketId) -> Option<Copies> {
        self.roles.newest(bucket)
    }

    /// Stores a configuration of a bucket's copies, unless a newer one is stored. If this
    /// projector led the bucket and does not lead it in the configuration, it accepts no more
    /// writes.
    pub(crate) fn record_copies(&self, bucket: BucketId, copies: &Copies) {
        if !self.roles.store_if_newer(bucket, copies) {
            return;
        }
        if let Some(found) = self.find(bucket)
            && let Some(led) = found.links.copies()
            && !found.links.set_configuration(copies, self.node_id(), Instant::now())
            && led.term < copies.term
        {
            found.end_leading(found.led_elsewhere_error(copies.leader));
        }
        self.roles.wake_watchers();
    }

    /// Returns true if this projector leads the bucket in the newest configuration, and the
    /// bucket object was opened for that role.
    pub(crate) fn leads(&self, bucket: &Bucket) -> bool {
        let leader = self.copies_of(bucket.info.id).map(|copies| copies.leader);
        bucket.is_leader() && leader.is_none_or(|leader| leader == self.node_id())
    }

    /// Replaces a bucket object by a new one. The streams of the old object end with the error
    /// `why`. A stability timestamp that arrives meanwhile reaches one of the two objects.
    pub(crate) fn replace(&self, old: &Bucket, why: Error, new: Bucket) {
        let mut buckets = self.buckets();
        old.retire(why);
        // The bucket may have been dropped meanwhile.
        if buckets.get(&new.info.id).is_none_or(|found| !std::ptr::eq(&*found.bucket, old)) {
            return;
        }
        old.epochs_after(Epoch(0)).into_iter().for_each(|mark| {
            new.add_epoch(mark);
        });
        buckets.remove(&new.info.id);
        self.add_to(&mut buckets, new);
    }

    /// Stops serving a bucket: ends its streams, and its writer after the group in progress.
    /// Returns the bucket.
    pub(crate) fn remove(&self, bucket: BucketId) -> Option<Arc<Bucket>> {
        let written = self.buckets().remove(&bucket)?;
        self.roles.forget_compared(bucket);
        // Callers whose jobs end with the writer get the reason, so the mark is set before the writer ends.
        written.bucket.remove();
        Some(written.bucket)
    }

    /// Ends the writers of all buckets.
    pub(crate) fn end_writers(&self) {
        self.buckets().values_mut().for_each(|written| written.writer = None);
    }

    /// Waits until `look` finds what it needs in the catalog, and returns that. After a short
    /// time limit returns the error `missing`.
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

    /// Waits, with a time limit, for the first catalog of this process. Until it arrives, it is
    /// not certain that a stored bucket is the catalog's bucket of the same number.
    async fn wait_for_catalog(&self) -> Result<()> {
        if self.catalog.borrow().is_some() {
            return Ok(());
        }
        let missing = || {
            Error::unavailable("this projector waits for its first catalog since its start")
                .with_hint("the catalog must be as new as the last one before the start; try again")
        };
        self.wait_for(|catalog| catalog.map(|_| ()), missing).await
    }

    /// Returns a bucket, after waiting until it is served.
    pub(crate) async fn bucket(&self, bucket: BucketId) -> Result<Arc<Bucket>> {
        let found = self.bucket_of_catalog(bucket).await?;
        if found.check_open().is_ok() {
            return Ok(found);
        }
        let mut changes = found.watch();
        // Another projector may lead already, so callers should go there at once.
        let may_open = |why: Error| why.is_retry() && why.code != ErrorCode::NotOwner;
        let is_open = async {
            while found.check_open().is_err_and(may_open) && !found.is_removed() {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        // The state is read from the bucket, however the wait ended.
        let _in_time = tokio::time::timeout(OPEN_WAIT, is_open).await;
        match found.is_removed() {
            true => Err(found.removed_error()),
            false => found.check_open().map(|()| found),
        }
    }

    /// Returns the error for callers of a damaged bucket; `None` if it is not damaged.
    fn refusal_of_damaged(&self, bucket: BucketId) -> Option<Error> {
        self.damaged.refusal_error(bucket, self.copies_of(bucket).as_ref())
    }

    /// Returns the text that names a bucket in messages.
    fn bucket_text(&self, bucket: BucketId) -> String {
        match &*self.catalog.borrow() {
            Some(catalog) => catalog.bucket_text(bucket),
            None => format!("bucket {bucket}"),
        }
    }

    /// Returns a bucket that the catalog has, whether or not it is served at present.
    async fn bucket_of_catalog(&self, bucket: BucketId) -> Result<Arc<Bucket>> {
        self.wait_for_catalog().await?;
        if let Some(found) = self.find(bucket) {
            return Ok(found);
        }
        let (copies, refusal) = (self.copies_of(bucket), self.refusal_of_damaged(bucket));
        if let Some(copies) = copies
            && (copies.role(self.node_id()) == CopyRole::None
                || refusal.is_some() && copies.leader != self.node_id())
        {
            // The bucket was here until it moved: callers with an older catalog continue at the leader.
            let bucket = self.bucket_text(bucket);
            let what = format!("{bucket}: projector {} leads it", copies.leader);
            return Err(Error::new(ErrorCode::NotOwner, what).with_hint("try again"));
        }
        if self.is_foreign(bucket) {
            let known = self.bucket_text(bucket);
            let what = format!(
                "this projector has the documents of another bucket than {known} under its number {bucket}"
            );
            return Err(Error::new(ErrorCode::Corrupt, what).with_hint(
                "the coordinator was restored from an older copy and gave the number again; drop the bucket and create it again",
            ));
        }
        if let Some(refusal) = refusal {
            return Err(refusal);
        }
        let missing = || {
            let what = format!("this projector does not have {}", self.bucket_text(bucket));
            match self.may_be_new(bucket) {
                true => Error::new(ErrorCode::NotOwner, format!("{what} yet"))
                    .with_hint("the bucket was created a moment ago; try again"),
                false => Error::new(ErrorCode::Unknown, what)
                    .with_hint("the bucket was dropped, or another projector owns it"),
            }
        };
        self.wait_for(|_| self.find(bucket), missing).await
    }

    /// Returns the vbuckets that this projector owns in each bucket.
    pub(crate) fn owned_vbuckets(&self) -> Vec<(BucketId, VbucketSet)> {
        let buckets = self.bucket_ids().into_iter().filter_map(|id| self.find(id));
        let owned = buckets.map(|bucket| (bucket.info.id, bucket.ownership().owned.clone()));
        owned.filter(|(_, owned)| !owned.is_empty()).collect()
    }

    /// Returns true if the bucket may be newer than the catalog that this projector has applied.
    /// New buckets always get higher numbers.
    pub(crate) fn may_be_new(&self, bucket: BucketId) -> bool {
        let catalog = self.catalog.borrow();
        let newest = catalog.as_ref().and_then(|catalog| catalog.buckets.keys().next_back());
        newest.is_none_or(|newest| bucket > *newest)
    }
}
