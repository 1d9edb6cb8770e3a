//! A data set, which some seeds have in addition to the client's bucket: versions are loaded from
//! files one after another, or cancelled, and some files have an unreadable row; meanwhile
//! projectors end, and slices of old and new versions move.
//!
//! Checked: a scan or a transaction reads exactly one version, completely (`scans` judges this by
//! the model in `contents`); documents by id are those of the version that the catalog names; no
//! router returns to an older version; a cancelled version never serves, and a failed one names its
//! file and line; no version gets other projectors than it began with (`watch`). After the faults a
//! new version becomes current within a bounded time, and old ones are dropped.

pub mod contents;
mod loads;
mod reading;
mod settle;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::model::catalog::Catalog;
use proto::model::ids::BucketId;
use proto::rpc::command::{Command, CreateDataSet, Outcome};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::client::session::Session;
use super::client::workload::{STATEMENT, create, drop_index};
use super::cluster::hosts::has_copies;
use super::scans::Reader;
use contents::INDEXES;

/// The name of the data set.
const NAME: &str = "d";
/// The idle time of the data set's versions, in milliseconds. The coordinators keep each version
/// for at least some seconds.
const IDLE_MS: u64 = 1_000;
/// The maximum time until the first index is created, in milliseconds; one of the two is drawn. A
/// version that needs no build serves when it is loaded.
const FIRST_INDEX_MS_MAX: [u64; 2] = [1_500, 6_000];
/// The range of times between two drops of an index, in milliseconds.
const KEEP_INDEXES_MS: std::ops::Range<u64> = 4_000..12_000;
/// The number of readers of versions.
const READERS: usize = 2;

/// True if the run of this seed has a data set. The modulus has no factor in common with those of
/// other choices.
pub fn are_chosen(seed: u64) -> bool {
    seed % 11 == 7
}

/// Returns the projector that joins the cluster during the run; `None` in two thirds of these
/// seeds.
pub fn joins_late(seed: u64) -> Option<&'static str> {
    (are_chosen(seed) && has_copies(seed)).then_some("projector-102")
}

/// True if no page of a scan has a token, in half of these seeds. A token holds the versions that
/// it reads for two minutes, so many versions can be loaded and dropped only without tokens.
pub fn has_no_tokens(seed: u64) -> bool {
    are_chosen(seed) && (seed / 11).is_multiple_of(2)
}

/// The versions that the judge knows: the number in the name of each version by its bucket; `None`
/// for the data set's own bucket. Clones share it.
#[derive(Clone, Default)]
pub struct Versions(Arc<Mutex<BTreeMap<BucketId, Option<u64>>>>);

impl Versions {
    /// Adds the versions of a catalog.
    pub fn learn(&self, catalog: &Catalog) {
        let mut known = self.0.lock().expect("not poisoned");
        for (id, set) in &catalog.data_sets {
            known.insert(*id, None);
            let versions = set.versions.values();
            known.extend(versions.map(|v| (v.bucket, contents::count_of(&v.name))));
        }
    }

    /// Returns the documents of a version's bucket; none for a data set without versions.
    pub fn documents(&self, bucket: BucketId) -> Option<BTreeMap<String, Value>> {
        let count = self.0.lock().expect("not poisoned").get(&bucket).copied()?;
        Some(count.and_then(contents::documents).unwrap_or_default())
    }
}

/// The state of the data set of a run.
#[derive(Clone)]
pub(super) struct DataSets {
    random: fastrand::Rng,
    seed: u64,
    /// A reader, which knows the faults.
    reader: Reader,
    /// The number of versions that were requested.
    loads: Arc<AtomicU64>,
    /// The versions whose cancellation was acknowledged.
    cancelled: Arc<Mutex<BTreeSet<u64>>>,
}

impl DataSets {
    /// The data set of this seed, if it has one.
    pub fn of(seed: u64, reader: Reader) -> Option<Self> {
        let random = fastrand::Rng::with_seed(seed ^ 0xda7a);
        let (loads, cancelled) = (Arc::default(), Arc::default());
        are_chosen(seed).then_some(Self { random, seed, reader, loads, cancelled })
    }

    /// Creates the data set, and uses it until the future is dropped.
    pub async fn run(mut self, session: Session) {
        let session = self.create(session).await;
        let readers = (0..READERS).map(|_| {
            let of_one = Self { random: self.random.fork(), ..self.clone() };
            of_one.read(session.clone())
        });
        let readers: Vec<_> = readers.collect();
        let watching = self.clone().watch(session.clone());
        let indexes = Self { random: self.random.fork(), ..self.clone() };
        let indexes = indexes.keep_indexes(session.clone());
        let readers = futures::future::join_all(readers);
        futures::join!(self.load(session), watching, indexes, readers);
    }

    /// Creates the data set; returns a session with its bucket.
    async fn create(&mut self, session: Session) -> Session {
        let (partitions, replication) = (self.random.u16(2..7), self.random.u16(1..3));
        loop {
            let command = Command::CreateDataSet(CreateDataSet {
                name: NAME.into(),
                partitions,
                replication,
                idle_ms: IDLE_MS,
                if_not_exists: true,
            });
            let made = timeout(STATEMENT, session.backend.command(command.into())).await;
            if let Ok(Ok(Outcome::Bucket(id))) = made
                && let Some(bucket) = session.router.catalog().buckets.get(&id).cloned()
            {
                return session.of_bucket(bucket);
            }
            sleep(Duration::from_millis(200)).await;
        }
    }

    /// Creates the indexes, mostly during the first version, and drops one at times, until the
    /// future is dropped.
    async fn keep_indexes(mut self, session: Session) {
        loop {
            let most = FIRST_INDEX_MS_MAX[self.random.usize(..2)];
            sleep(Duration::from_millis(self.random.u64(..most))).await;
            while !self.declare(&session).await {
                sleep(Duration::from_millis(200)).await;
            }
            sleep(Duration::from_millis(self.random.u64(KEEP_INDEXES_MS))).await;
            let name = INDEXES[self.random.usize(..INDEXES.len())].name;
            let _ = timeout(STATEMENT, drop_index(&session, name)).await;
        }
    }

    /// Creates the missing indexes; false if one is still missing.
    async fn declare(&self, session: &Session) -> bool {
        for index in &INDEXES {
            let made = timeout(STATEMENT, create(session, index, true)).await;
            if !matches!(made, Ok(Ok(_))) {
                return false;
            }
        }
        true
    }

    /// The number of the next version.
    fn next(&self) -> u64 {
        self.loads.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn count(&self, count: impl FnOnce(&mut super::Summary)) {
        count(&mut self.reader.summary.lock().expect("not poisoned"));
    }

    fn violation(&self, what: String) {
        super::violation(&self.reader.summary, what);
    }

    /// True if a disk was broken at or after a time, so that a file may have been unreadable.
    fn is_broken_since(&self, began: Duration) -> bool {
        let broken_at = self.reader.disks_broken_at_ms.load(Ordering::Relaxed);
        began <= Duration::from_millis(broken_at)
    }
}
