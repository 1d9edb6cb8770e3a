//! The connections of the simulated client, and the facts that it has learned.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::model::bucket::BucketInfo;
use proto::model::cut::WritePosition;
use proto::model::ids::{Epoch, IndexId, TransactionId};
use proto::rpc::api::Directory;
use router::Router;
use sextant::access::BucketTransaction;

use crate::sim::Summary;
use crate::sim::cluster::client::{Client, ClientBackend, RouterMaker};
use crate::sim::data_sets::Versions;
use crate::sim::judge::marks::Marks;
use crate::sim::scans::ROLLBACK_REACHES_NODES;

/// The connections of the client, and the facts that it has learned.
#[derive(Clone)]
pub(in crate::sim) struct Session {
    pub backend: ClientBackend,
    pub directory: Arc<dyn Directory>,
    pub router: Arc<Router>,
    /// The second router, which serves the pages of a scan alternately with the first and is
    /// restarted at times.
    other_router: Arc<Mutex<OtherRouter>>,
    pub marks: Marks,
    pub bucket: Arc<BucketInfo>,
    /// The versions of data sets, for the judge.
    pub versions: Versions,
    last_write: Arc<Mutex<Option<WritePosition>>>,
    gone: Arc<Mutex<Vec<Gone>>>,
    /// The newest epoch that was read of each index.
    seen: Arc<Mutex<BTreeMap<IndexId, Epoch>>>,
}

/// A leased epoch that an error reported as no longer retained.
pub(in crate::sim) struct Gone {
    pub epoch: Epoch,
    /// The simulated time of the request.
    pub began: Duration,
    /// The text of the error.
    pub text: String,
}

struct OtherRouter {
    router: Arc<Router>,
    maker: RouterMaker,
    /// The number of resumed shard scans in earlier routers.
    resumed_before: u64,
}

impl Session {
    /// Begins a transaction in the bucket, under the number `id` or a new one.
    pub fn begin_transaction(&self, id: Option<TransactionId>) -> Arc<dyn BucketTransaction> {
        let writer = self.backend.writer(&self.bucket);
        let begun = writer.and_then(|writer| writer.begin("the client", id));
        begun.expect("a client that is trusted may begin one")
    }

    /// Returns a session over a client's connections.
    pub fn new(client: Client, marks: Marks, bucket: Arc<BucketInfo>) -> Self {
        let Client { directory, backend, routers: [router, other], maker, .. } = client;
        let other = OtherRouter { router: other, maker, resumed_before: 0 };
        Self {
            backend,
            directory,
            router,
            other_router: Arc::new(Mutex::new(other)),
            marks,
            bucket,
            versions: Versions::default(),
            last_write: Arc::default(),
            gone: Arc::default(),
            seen: Arc::default(),
        }
    }

    /// Returns a session for another bucket.
    pub fn of_bucket(&self, bucket: Arc<BucketInfo>) -> Self {
        Self { bucket, last_write: Arc::default(), gone: Arc::default(), ..self.clone() }
    }

    /// The second router.
    pub fn other_router(&self) -> Arc<Router> {
        Arc::clone(&self.other_router.lock().expect("not poisoned").router)
    }

    /// Replaces the second router by a new one, which does not know the scans of earlier pages.
    pub fn restart_router(&self) {
        let mut other = self.other_router.lock().expect("not poisoned");
        other.resumed_before += other.router.shard_scans_resumed();
        other.router = other.maker.start();
    }

    /// The number of shard scans that were resumed on another node after at least one row.
    pub fn shard_scans_resumed(&self) -> u64 {
        let other = self.other_router.lock().expect("not poisoned");
        let now = self.router.shard_scans_resumed() + other.router.shard_scans_resumed();
        now + other.resumed_before
    }

    /// Returns the positions of the acknowledged writes.
    pub fn last_write(&self) -> Option<WritePosition> {
        self.last_write.lock().expect("not poisoned").clone()
    }

    /// Records the positions of acknowledged writes.
    pub fn note_writes(&self, written: &[WritePosition]) {
        let mut last_write = self.last_write.lock().expect("not poisoned");
        for write in written {
            match &mut *last_write {
                Some(last) => last.merge(write),
                None => *last_write = Some(write.clone()),
            }
        }
    }

    /// Returns the newest epoch that was read of an index.
    pub fn seen(&self, index: IndexId) -> Option<Epoch> {
        self.seen.lock().expect("not poisoned").get(&index).copied()
    }

    /// Records an epoch that was read of an index.
    pub fn note_seen(&self, index: IndexId, epoch: Epoch) {
        let mut seen = self.seen.lock().expect("not poisoned");
        let seen = seen.entry(index).or_default();
        *seen = epoch.max(*seen);
    }

    /// Records an epoch that an error reported as no longer retained.
    pub fn note_gone(&self, gone: Gone) {
        self.gone.lock().expect("not poisoned").push(gone);
    }

    /// Returns a text about an epoch that was reported as no longer retained although no rollback
    /// has removed it. An epoch after a rollback may be removed soon afterwards, and the judge may
    /// learn of that rollback after the error.
    pub fn falsely_gone(&self, summary: &Summary) -> Option<String> {
        let catalog = self.router.catalog();
        let bucket = catalog.buckets.get(&self.bucket.id)?;
        let follows_rollback = |gone: &Gone| {
            summary.rolled_back.iter().any(|(of, first, heard)| {
                let is_later = *of == self.bucket.id && *first <= gone.epoch;
                is_later && gone.began < *heard + ROLLBACK_REACHES_NODES
            })
        };
        let is_false = |gone: &&Gone| !bucket.is_dead(gone.epoch) && !follows_rollback(gone);
        let all = self.gone.lock().expect("not poisoned");
        let Gone { epoch, text, .. } = all.iter().find(is_false)?;
        Some(format!("leased epoch {epoch} is gone without a rollback: {text}"))
    }
}
