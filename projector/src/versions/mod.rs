//! Loads the partitions of versions ([`proto::model::data_set`]) from files, and advertises them.
//!
//! A version that loads is read from its files once, row by row, in the order of their names. The rows of each partition are counted from 1 on,
//! and the count is the seqno of the row's document. So all projectors give a row the same seqno, and the last row with an id is the one
//! that counts. Rows of other projectors' partitions are passed over. The documents of a partition come first, and its branch with the last
//! of them (`crate::source::files`): a process that ends in between leaves partitions that are not whole, and the next one begins them anew.
//!
//! A partition that is whole is read once more before it is advertised, so its content is told as it is stored. The coordinators compare the
//! contents that its holders tell: if these have read different files, the version fails.
//!
//! | trouble | what follows |
//! |---|---|
//! | a file is missing, damaged, or has a bad row | the version fails, with the file and the place in it |
//! | this projector's own store or a coordinator does not answer | tried again |
//! | the version is cancelled or dropped | the work ends with the present chunk |
//! | a partition is advertised, and is not here any more | that is told, and other holders answer |

mod files;
mod loading;
mod reader;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use proto::model::assignment::VbucketSet;
use proto::model::catalog::Catalog;
use proto::model::data_set::{Files, PartitionContent, Version, VersionStage};
use proto::model::ids::{BucketId, VbucketId, vbucket_of};
use proto::rpc::command::{Command, CommandRequest, Outcome, RequestId};
use proto::{Error, Result};
use tokio::time::sleep;

use crate::projector::Projector;
use crate::source::DocumentStore;
use crate::source::bucket::Bucket;
use loading::{Trouble, load};

/// The pause after a failure.
const RETRY: Duration = Duration::from_millis(500);
/// About the bytes of documents that are read at once for the content of a partition.
const LOOK_BYTES: usize = 1 << 20;

/// The work for one version.
struct Task {
    bucket: Arc<Bucket>,
    files: Files,
    /// Partitions to load.
    load: VbucketSet,
    /// Partitions that are whole, and not advertised.
    advertise: VbucketSet,
    /// Partitions that are advertised, and not here.
    lost: VbucketSet,
}

/// Loads and advertises partitions as the catalogs say. Runs until cancelled; safe to cancel at any await.
pub async fn load_versions(projector: Arc<Projector>) -> Infallible {
    let mut catalogs = projector.catalog.subscribe();
    let mut requests = Requests { client: projector.env.random.next_u64(), sequence: 0 };
    // Versions that have failed here: the catalog shows that soon.
    let mut failed = BTreeSet::new();
    loop {
        let catalog = catalogs.borrow_and_update().clone();
        let tasks = catalog.map(|catalog| tasks(&projector, &catalog)).unwrap_or_default();
        failed.retain(|bucket| projector.find(*bucket).is_some());
        let mut is_pending = false;
        for task in tasks {
            let id = task.bucket.info.id;
            if failed.contains(&id) {
                continue;
            }
            match work(&projector, &task, &mut requests).await {
                Ok(()) | Err(Trouble::Ended) => {}
                Err(Trouble::Files(error)) => {
                    tracing::warn!(version = %task.bucket.info.name, %error, "a version cannot be loaded");
                    let node = projector.me();
                    let told = Command::VersionFailed { bucket: id, node, error };
                    match requests.propose(&projector, told).await {
                        Ok(()) => drop(failed.insert(id)),
                        Err(error) => is_pending |= is_tried_again(&error),
                    }
                }
                Err(Trouble::Here(error)) => is_pending |= is_tried_again(&error),
            }
        }
        if is_pending {
            sleep(RETRY).await;
        } else if catalogs.changed().await.is_err() {
            // The channel lives as long as the projector.
            std::future::pending::<()>().await;
        }
    }
}

fn is_tried_again(error: &Error) -> bool {
    tracing::debug!(%error, "the loading of a version failed; retrying");
    true
}

/// The versions that need anything of this projector.
fn tasks(projector: &Projector, catalog: &Catalog) -> Vec<Task> {
    let me = projector.me();
    let versions = catalog.data_sets.values().flat_map(|set| {
        set.versions.values().map(|version| (version, version.partitions_of(me, set.replication)))
    });
    let task = |(version, mine): (&Version, Vec<VbucketId>)| {
        let bucket = projector.find(version.bucket)?;
        let (whole, loads) = (bucket.whole(), version.stage == VersionStage::Loading);
        let told = |partition: &VbucketId| version.holders(*partition).contains(&me);
        let here = |partition: &VbucketId| whole.contains(*partition);
        let of = |wanted: &dyn Fn(&VbucketId) -> bool| {
            mine.iter().copied().filter(|partition| wanted(partition)).collect::<VbucketSet>()
        };
        Some(Task {
            load: of(&|partition| loads && !here(partition)),
            advertise: of(&|partition| here(partition) && !told(partition)),
            lost: of(&|partition| !loads && told(partition) && !here(partition)),
            files: version.files.clone(),
            bucket,
        })
    };
    let needs =
        |task: &Task| !(task.load.is_empty() && task.advertise.is_empty() && task.lost.is_empty());
    versions.filter_map(task).filter(needs).collect()
}

async fn work(
    projector: &Arc<Projector>,
    task: &Task,
    requests: &mut Requests,
) -> std::result::Result<(), Trouble> {
    let (bucket, node) = (task.bucket.info.id, projector.me());
    if !task.lost.is_empty() {
        tracing::warn!(version = %task.bucket.info.name, "partitions of a version are lost here");
        let partitions = task.lost.iter().collect();
        let told = Command::PartitionsLost { bucket, node, partitions };
        requests.propose(projector, told).await.map_err(Trouble::Here)?;
    }
    if !task.load.is_empty() {
        load(projector, &task.bucket, &task.files, &task.load).await?;
    }
    let ready: VbucketSet = task.load.iter().chain(task.advertise.iter()).collect();
    if ready.is_empty() {
        return Ok(());
    }
    let contents = contents(projector, &task.bucket, ready).await.map_err(Trouble::Here)?;
    let documents: u64 = contents.iter().map(|(_, content)| content.documents).sum();
    tracing::info!(version = %task.bucket.info.name, partitions = contents.len(), documents, "partitions of a version are complete");
    let told = Command::PartitionsLoaded { bucket, node, partitions: contents };
    requests.propose(projector, told).await.map_err(Trouble::Here)
}

/// The stored contents of some partitions, which are whole.
async fn contents(
    projector: &Projector,
    bucket: &Arc<Bucket>,
    partitions: VbucketSet,
) -> Result<Vec<(VbucketId, PartitionContent)>> {
    let store = projector.store();
    let bucket = Arc::clone(bucket);
    let ends = bucket.durable();
    projector
        .env
        .blocking(move || {
            let rows = |partition| PartitionContent {
                rows: ends.get(partition).seqno.0,
                ..PartitionContent::default()
            };
            let mut contents: Vec<_> =
                partitions.iter().map(|partition| (partition, rows(partition))).collect();
            add_documents(&*store, bucket.info.id, bucket.info.vbuckets, &mut contents)?;
            Ok(contents)
        })
        .await
}

fn add_documents(
    store: &dyn DocumentStore,
    bucket: BucketId,
    vbuckets: u16,
    contents: &mut [(VbucketId, PartitionContent)],
) -> Result<()> {
    let mut documents = store.snapshot(bucket)?;
    loop {
        let chunk = documents.next_chunk(LOOK_BYTES)?;
        if chunk.is_empty() {
            return Ok(());
        }
        for stored in chunk {
            let partition = vbucket_of(&stored.id, vbuckets);
            if let Ok(at) = contents.binary_search_by_key(&partition, |(known, _)| *known) {
                contents[at].1.add(&stored.id, stored.seqno, &stored.document);
            }
        }
    }
}

/// Commands to the coordinators.
struct Requests {
    client: u64,
    sequence: u64,
}

impl Requests {
    /// Proposes a command. A refusal is logged: the catalog has the reason.
    async fn propose(&mut self, projector: &Projector, command: Command) -> Result<()> {
        self.sequence += 1;
        let request = Some(RequestId { client: self.client, sequence: self.sequence });
        let proposed = CommandRequest { request, command };
        if let Outcome::Refused(error) = projector.directory.coordinator().propose(proposed).await?
        {
            tracing::warn!(%error, "the coordinators refuse partitions of a version");
        }
        Ok(())
    }
}
