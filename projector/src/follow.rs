//! What a projector does with the coordinator: registers, says that it lives, follows catalog and
//! stability timestamps, and says how far its buckets are (SYNC).
//!
//! Each is a loop that tries again for ever, a little later each time; while no coordinator answers,
//! writes, reads and streams of known buckets go on.
//!
//! **Catalogs never go back.** A lagging coordinator may show an older catalog than one that was taken
//! over before, perhaps by this process's predecessor. The `cas` of the newest is kept with the documents,
//! and older ones are ignored: so a bucket that is missing was dropped (not "not made yet"), and a
//! stream never begins without an index that it carried before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::catalog::Catalog;
use proto::model::cut::EpochMark;
use proto::model::ids::{BucketId, Vbuuid};
use proto::rpc::api::{Heartbeat, SyncReport, WatchMessage};
use proto::rpc::command::{Command, CommandRequest, Outcome, RequestId};
use proto::{Error, ErrorCode, Result};

use crate::service::Projector;
use crate::source::BucketRecord;
use crate::source::bucket::Bucket;
use crate::source::keeping::Keeping;

/// Between two tries; doubled up to [`RETRY_MAX`].
const RETRY_MIN: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(1);
/// Between two heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// All positions are reported this often even if nothing changed: a new leader of the coordinators
/// knows none of them.
const SYNC_ALL: Duration = Duration::from_millis(500);
/// Between two SYNCs: well under the tick of promotions.
const SYNC_PAUSE: Duration = Duration::from_millis(2);

struct Retry(Duration);

impl Retry {
    fn new() -> Self {
        Self(RETRY_MIN)
    }

    async fn pause(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(RETRY_MAX);
    }
}

/// Registers, then sends heartbeats; registers again where it has been forgotten. Runs until cancelled,
/// at any await without harm.
pub async fn stay_registered(projector: Arc<Projector>) {
    let node = projector.config.node.clone();
    let client = projector.env.random.next_u64();
    let mut sequence = 0;
    let mut registered = false;
    let mut retry = Retry::new();
    loop {
        let coordinator = projector.directory.coordinator();
        let result = if registered {
            let heartbeat = Heartbeat {
                node: node.id,
                buckets: Vec::new(),
                slices: Vec::new(),
                moves: Vec::new(),
                leases: Vec::new(),
                scans: None,
            };
            coordinator.heartbeat(heartbeat).await
        } else {
            sequence += 1;
            let request = Some(RequestId { client, sequence });
            let command = Command::RegisterNode(node.clone());
            coordinator.propose(CommandRequest { request, command }).await.and_then(|outcome| {
                match outcome {
                    Outcome::Refused(error) => Err(error),
                    _ => Ok(()),
                }
            })
        };
        match result {
            Ok(()) => {
                if !registered {
                    tracing::info!(node = %node.id, "registered");
                }
                registered = true;
                retry = Retry::new();
                tokio::time::sleep(HEARTBEAT).await;
            }
            Err(error) => {
                let doing = if registered { "heartbeat" } else { "registering" };
                if error.code == ErrorCode::Unknown {
                    registered = false;
                }
                report(doing, &error);
                retry.pause().await;
            }
        }
    }
}

/// Follows catalog and stability timestamps. Runs until cancelled, at any await without harm.
pub async fn follow_catalog(projector: Arc<Projector>) {
    let mut retry = Retry::new();
    let mut early = EarlyEpochs::default();
    loop {
        match projector.directory.coordinator().watch().await {
            Ok(mut messages) => {
                early.clear();
                while let Some(message) = messages.next().await {
                    match apply(&projector, message, &mut early).await {
                        Ok(()) => retry = Retry::new(),
                        Err(error) => {
                            report("following the coordinator", &error);
                            break;
                        }
                    }
                }
            }
            Err(error) => report("watching the coordinator", &error),
        }
        retry.pause().await;
    }
}

/// Stability timestamps of buckets that no catalog has shown yet.
type EarlyEpochs = BTreeMap<BucketId, Vec<EpochMark>>;

async fn apply(
    projector: &Arc<Projector>,
    message: Result<WatchMessage>,
    early: &mut EarlyEpochs,
) -> Result<()> {
    match message? {
        WatchMessage::Catalog(catalog) => {
            take_over(projector, Arc::clone(&catalog)).await?;
            for bucket in catalog.buckets.keys() {
                add_epochs(projector, *bucket, early.remove(bucket).unwrap_or_default());
            }
        }
        WatchMessage::Epochs(marks) => {
            for mark in marks {
                let shown = projector.catalog.borrow().clone();
                if shown.is_some_and(|catalog| catalog.buckets.contains_key(&mark.bucket)) {
                    add_epochs(projector, mark.bucket, vec![mark]);
                } else {
                    early.entry(mark.bucket).or_default().push(mark);
                }
            }
        }
    }
    Ok(())
}

fn add_epochs(projector: &Projector, bucket: BucketId, marks: Vec<EpochMark>) {
    // Another projector's buckets are none of ours.
    let Some(bucket) = projector.find(bucket) else { return };
    for mark in marks {
        bucket.add_epoch(mark);
    }
}

/// Makes and removes buckets as a catalog says, then shows it to the streams.
async fn take_over(projector: &Arc<Projector>, catalog: Arc<Catalog>) -> Result<()> {
    let store = Arc::clone(&projector.streams.store);
    let known = projector.env.blocking(move || store.catalog_cas()).await?;
    let shown = projector.catalog.borrow().as_ref().map_or(0, |shown| shown.cas);
    if catalog.cas < known.max(shown) {
        tracing::debug!(cas = catalog.cas, known, "an older catalog is ignored");
        return Ok(());
    }
    if catalog.cas > known {
        let here = projector.bucket_ids();
        let mine = |bucket: &BucketInfo| bucket.homes.concerns(projector.config.node.id);
        let made: Vec<_> = catalog
            .buckets
            .values()
            .filter(|bucket| mine(bucket) && !here.contains(&bucket.id))
            .map(|bucket| new_record(projector, bucket))
            .collect();
        let removed: Vec<_> =
            here.into_iter().filter(|bucket| !catalog.buckets.contains_key(bucket)).collect();
        store_catalog(projector, catalog.cas, made, removed).await?;
    }
    for bucket in catalog.buckets.values() {
        keep(projector, bucket).await?;
    }
    projector.catalog.send_replace(Some(catalog));
    Ok(())
}

/// What is kept of a bucket is what the catalog says.
async fn keep(projector: &Projector, info: &BucketInfo) -> Result<()> {
    let Some(bucket) = projector.find(info.id) else { return Ok(()) };
    if bucket.homes() == info.homes {
        return Ok(());
    }
    let (homes, node) = (Arc::clone(&info.homes), projector.config.node.id);
    projector.alone(bucket, move |writer, bucket| writer.keep(bucket, &homes, node)).await
}

async fn store_catalog(
    projector: &Arc<Projector>,
    cas: u64,
    made: Vec<BucketRecord>,
    removed: Vec<BucketId>,
) -> Result<()> {
    // Readers of a removed bucket hear of it before its data goes.
    for bucket in &removed {
        projector.remove(*bucket);
    }
    let store = Arc::clone(&projector.streams.store);
    let gate = Arc::clone(&projector.gate);
    let (made, stored) = projector
        .env
        .blocking(move || {
            let _agree = gate.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            let stored = store.apply_catalog(cas, &made, &removed);
            (made, stored)
        })
        .await;
    stored?;
    for record in made {
        tracing::info!(bucket = %record.info.name, "keeping a new bucket");
        let ends = vec![Default::default(); usize::from(record.info.vbuckets)];
        projector.add(Bucket::new(record, &ends, projector.config.head_bytes_max));
    }
    Ok(())
}

/// An embedded bucket begins with a branch of its own in each vbucket; a pushed one learns its branches
/// from the producer.
fn new_record(projector: &Projector, info: &BucketInfo) -> BucketRecord {
    let branches = (0..info.vbuckets).map(|_| match info.source {
        SourceKind::Embedded => vec![(Vbuuid(projector.env.random.next_u64().max(1)), 0)],
        SourceKind::Push => Vec::new(),
    });
    let keeping = Keeping::default().with_homes(&info.homes, projector.config.node.id);
    let (info, branches) = (info.clone(), branches.collect());
    BucketRecord { info, branches, keeping, given_up: BTreeMap::new() }
}

/// Sends SYNC for each bucket that has moved, and for all of them now and then. Runs until cancelled, at
/// any await without harm.
pub async fn sync_positions(projector: Arc<Projector>) {
    let mut retry = Retry::new();
    let mut all_at = tokio::time::Instant::now();
    let mut due: BTreeSet<BucketId> = BTreeSet::new();
    loop {
        tokio::select! {
            biased;
            () = projector.moved.wait() => {}
            () = tokio::time::sleep_until(all_at) => {
                all_at = tokio::time::Instant::now() + SYNC_ALL;
                due.extend(projector.bucket_ids());
            }
        }
        due.append(&mut projector.moved.take());
        let buckets: Vec<_> = due
            .iter()
            .filter_map(|id| projector.find(*id))
            .map(|bucket| (bucket.info.id, bucket.history()))
            .filter(|(_, history)| !history.kept.is_empty())
            .map(|(id, history)| (id, history.kept, history.durable))
            .collect();
        if buckets.is_empty() {
            due.clear();
            continue;
        }
        let report_of = SyncReport { projector: projector.config.node.id, buckets };
        match projector.directory.coordinator().sync(report_of).await {
            Ok(()) => {
                due.clear();
                retry = Retry::new();
                tokio::time::sleep(SYNC_PAUSE).await;
            }
            Err(error) => {
                report("SYNC", &error);
                retry.pause().await;
                // What could not be said is said again without waiting for a change.
                all_at = tokio::time::Instant::now();
            }
        }
    }
}

fn report(doing: &str, error: &Error) {
    if error.is_retry() {
        tracing::debug!(%error, "{doing}; trying again");
    } else {
        tracing::warn!(%error, "{doing}; trying again");
    }
}
