//! The task that receives the catalog and the stability timestamps from the coordinators, and
//! applies them to the projector.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;

use proto::client::{CatalogFollower, CatalogSink};
use proto::lock::lock;
use proto::model::bucket::BucketInfo;
use proto::model::catalog::Catalog;
use proto::model::copies::CopyRole;
use proto::model::cut::EpochMark;
use proto::model::data_set::branch_of_partition;
use proto::model::history::Branches;
use proto::model::ids::{BucketId, NodeId, VbucketId};
use proto::rpc::api::WatchKind;
use proto::{Error, Result};

use super::bucket_ids::{compare_ids, dropped_buckets};
use super::retry::new_retry;
use crate::projector::Projector;
use crate::source::registry::source_of_kind;
use crate::source::view::bucket::Bucket;
use crate::source::{BucketRecord, StoredId};
use documents::ownership::Ownership;

/// Receives and applies catalogs and stability timestamps. Runs until cancelled; safe to cancel
/// at any await.
pub async fn follow_catalog(projector: Arc<Projector>) -> Infallible {
    let follower = CatalogFollower::new(Arc::clone(&projector.directory), new_retry())
        .with_identity(projector.config.identity.clone());
    follower.run(ProjectorCatalog { projector, early: EarlyEpochs::default() }).await
}

/// Stability timestamps that arrived before a catalog with their bucket.
type EarlyEpochs = BTreeMap<BucketId, Vec<EpochMark>>;

/// The receiver that applies each catalog and each stability timestamp to a projector.
struct ProjectorCatalog {
    projector: Arc<Projector>,
    early: EarlyEpochs,
}

impl ProjectorCatalog {
    /// Returns an error if a damaged bucket was recreated. The error restarts the watch, so that
    /// the bucket's stability timestamps are received again.
    fn check_epochs(&self) -> Result<()> {
        match self.projector.damaged.take_missed_epochs() {
            false => Ok(()),
            true => Err(missed_epochs_error()),
        }
    }
}

/// Returns the error that restarts the watch of the coordinators. A restart is needed if
/// stability timestamps of a bucket arrived before the bucket existed on this projector: the
/// bucket may lead soon, and its readers need the timestamps.
fn missed_epochs_error() -> Error {
    Error::unavailable("a copy was made of a bucket that has timestamps")
}

impl CatalogSink for ProjectorCatalog {
    fn watch_kind(&self) -> WatchKind {
        WatchKind::CatalogAndEpochs
    }

    fn begin_watch(&mut self) {
        self.early.clear();
    }

    async fn take_catalog(&mut self, catalog: Arc<Catalog>) -> Result<()> {
        let has_joined = apply_newest_catalog(&self.projector, Arc::clone(&catalog)).await?;
        for bucket in catalog.buckets.keys() {
            let early = self.early.remove(bucket).unwrap_or_default();
            add_epochs(&self.projector, *bucket, early);
        }
        match has_joined {
            false => self.check_epochs(),
            true => Err(missed_epochs_error()),
        }
    }

    async fn take_epochs(&mut self, marks: Vec<EpochMark>) -> Result<()> {
        self.check_epochs()?;
        for mark in marks {
            let shown = self.projector.catalog.borrow().clone();
            if shown.is_some_and(|catalog| catalog.buckets.contains_key(&mark.bucket)) {
                add_epochs(&self.projector, mark.bucket, vec![mark]);
            } else {
                self.early.entry(mark.bucket).or_default().push(mark);
            }
        }
        Ok(())
    }
}

/// Adds stability timestamps to a bucket, if this projector has the bucket.
fn add_epochs(projector: &Projector, bucket: BucketId, marks: Vec<EpochMark>) {
    for mark in marks {
        // The bucket may belong to other projectors. A retired bucket is replaced or removed.
        while let Some(bucket) = projector.find(bucket) {
            if bucket.add_epoch(mark.clone()) {
                break;
            }
        }
    }
}

/// Applies a catalog: creates and removes buckets, and then publishes the catalog to the streams.
/// Returns true if a created bucket has existed on other projectors before.
async fn apply_newest_catalog(projector: &Arc<Projector>, catalog: Arc<Catalog>) -> Result<bool> {
    let _turn = projector.catalog_turn.lock().await;
    let store = Arc::clone(&projector.streams.store);
    let known = projector.env.blocking(move || store.catalog_cas()).await?;
    let shown = projector.catalog.borrow().as_ref().map_or(0, |shown| shown.cas);
    projector.note_catalog(known.max(catalog.cas));
    let is_newest = catalog.cas >= known.max(shown);
    // Even an ignored catalog can show that a number means another bucket, which never happens in one history of the coordinator.
    compare_ids(projector, &catalog, is_newest).await?;
    if !is_newest {
        tracing::debug!(cas = catalog.cas, known, "an older catalog is ignored");
        return Ok(false);
    }
    record_copies(projector, &catalog);
    let mut has_joined = false;
    if catalog.cas > known {
        let stored: BTreeSet<_> = lock(&projector.stored).keys().copied().collect();
        let me = projector.node_id();
        let mine = |bucket: &BucketInfo| match catalog.copies.get(&bucket.id) {
            Some(copies) => copies.role(me) != CopyRole::None,
            None => {
                bucket.assignment.concerns(me) || !partitions_of(&catalog, bucket.id, me).is_empty()
            }
        };
        let made: Vec<_> = catalog
            .buckets
            .values()
            .filter(|bucket| mine(bucket) && !stored.contains(&bucket.id))
            .map(|bucket| new_record(&catalog, bucket, me))
            .collect();
        // A version is made with the first catalog that has it, and owns nothing before it is loaded.
        let is_joining = |record: &BucketRecord| {
            record.ownership.owned.is_empty() && record.info.source.reports_position()
        };
        has_joined = made.iter().any(is_joining);
        put_ids(projector, &catalog, &made).await?;
        store_catalog(projector, &catalog, made, dropped_buckets(projector, &catalog)).await?;
    }
    for bucket in catalog.buckets.values() {
        apply_catalog_to_bucket(projector, bucket).await?;
    }
    projector.catalog.send_replace(Some(catalog));
    Ok(has_joined)
}

/// Records the configurations of copies in a catalog: which projectors have a copy of each
/// bucket, and in which role.
fn record_copies(projector: &Projector, catalog: &Catalog) {
    projector.roles.retain_buckets(|bucket| catalog.buckets.contains_key(&bucket));
    for (bucket, copies) in &catalog.copies {
        projector.record_copies(*bucket, copies);
    }
}

/// Applies to a bucket what a catalog says about it: the epochs that a rollback has undone, and
/// the owners of its vbuckets.
async fn apply_catalog_to_bucket(projector: &Projector, info: &BucketInfo) -> Result<()> {
    let Some(bucket) = projector.find(info.id) else { return Ok(()) };
    bucket.drop_dead_epochs(info);
    // The part in an embedded bucket follows from its copies (`crate::copies`).
    if !info.source.can_span_projectors() || bucket.assignment() == info.assignment {
        return Ok(());
    }
    let (assignment, node) = (Arc::clone(&info.assignment), projector.config.node.id);
    projector
        .run_exclusively(bucket, move |writer, bucket| {
            writer.change_ownership(bucket, &assignment, node)
        })
        .await
}

/// Stores the random ids of new buckets before the buckets are created. After a crash in between,
/// an id without a bucket remains, which the next catalog replaces.
async fn put_ids(
    projector: &Arc<Projector>,
    catalog: &Catalog,
    made: &[BucketRecord],
) -> Result<()> {
    let id = |record: &BucketRecord| Some((record.info.id, stored_id_of(catalog, record.info.id)?));
    let ids: Vec<_> = made.iter().filter_map(id).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let store = projector.store();
    projector.env.blocking(move || store.put_unique_ids(&ids)).await
}

/// Returns the random id of a bucket in the form in which it is stored when the bucket is created
/// from a catalog.
fn stored_id_of(catalog: &Catalog, bucket: BucketId) -> Option<StoredId> {
    catalog.bucket_ids.get(&bucket).map(|unique| StoredId { unique: *unique, is_foreign: false })
}

/// Stores a catalog's changes: creates and removes buckets, and stores the `cas` of the catalog.
async fn store_catalog(
    projector: &Arc<Projector>,
    catalog: &Catalog,
    made: Vec<BucketRecord>,
    removed: Vec<BucketId>,
) -> Result<()> {
    // Readers of a removed bucket end before its data is removed.
    let gone: Vec<_> = removed.iter().filter_map(|bucket| projector.remove(*bucket)).collect();
    let store = Arc::clone(&projector.streams.store);
    let cas = catalog.cas;
    let (made, removed, stored) = projector
        .env
        .blocking(move || {
            // A group in progress ends first, and no further one begins.
            let _gates: Vec<_> = gone.iter().map(|bucket| bucket.gate.abandon()).collect();
            let stored = store.apply_catalog(cas, &made, &removed);
            (made, removed, stored)
        })
        .await;
    stored?;
    {
        let mut stored = lock(&projector.stored);
        stored.retain(|bucket, _| !removed.contains(bucket));
        let new = |record: &BucketRecord| (record.info.id, stored_id_of(catalog, record.info.id));
        stored.extend(made.iter().map(new));
    }
    removed.iter().for_each(|bucket| projector.damaged.record_files_removed(*bucket));
    for record in made {
        tracing::info!(bucket = %record.info.name, "a new bucket was created");
        let ends = vec![Default::default(); usize::from(record.info.vbuckets)];
        projector.add(Bucket::new(record, &ends, projector.config.head_bytes_max));
    }
    Ok(())
}

/// Returns the partitions that a projector loads if the bucket is a version of a data set; empty
/// for any other bucket.
fn partitions_of(catalog: &Catalog, bucket: BucketId, projector: NodeId) -> Vec<VbucketId> {
    let Some((set, _, version)) = catalog.version(bucket) else { return Vec::new() };
    let replication = catalog.data_sets.get(&set).map_or(0, |set| set.replication);
    version.partitions_of(projector, replication)
}

/// Returns the record of a new bucket. It has no branches: the producer, or the leading copy,
/// begins them later.
fn new_record(catalog: &Catalog, info: &BucketInfo, projector: NodeId) -> BucketRecord {
    let branches = |vbucket| match catalog.data_sets.contains_key(&info.id) {
        // A data set itself has no documents: it is whole from the beginning on.
        true => vec![(branch_of_partition(info.id, vbucket), 0)],
        false => Branches::new(),
    };
    let branches: Vec<_> = (0..info.vbuckets).map(VbucketId).map(branches).collect();
    let mut ownership = Ownership::default().with_assignment(&info.assignment, projector);
    let source = source_of_kind(info.source);
    let can_serve = |v: &VbucketId| source.can_serve(&branches[usize::from(v.0)]);
    ownership.owned = ownership.owned.iter().filter(can_serve).collect();
    BucketRecord {
        info: info.clone(),
        branches,
        ownership,
        given_up: BTreeMap::new(),
        commits: Default::default(),
    }
}
