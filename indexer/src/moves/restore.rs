//! Slices that this node should have and has not: one that could not go back with its bucket was dropped
//! (`follower/rollback.rs`). Another copy of it, which could, gives its files as it would for a move, and its
//! reach with them; the stream feeds the slice here all the while, since the topology names this node.
//!
//! A copy that stands in dead epochs does no harm: what is installed are its files up to the epoch that is applied
//! here, and it is asked for that epoch, which it has only when it has gone back itself.
//!
//! What has come is compared with what the copy shows, by checksum and at one epoch, before it is installed.
//!
//! Where no copy has the slice, or none gives it for long, the restore is *hopeless*: then the node builds it from the
//! source (`follower/builds.rs`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proto::model::catalog::Catalog;
use proto::model::ids::{BucketId, Generation, IndexId, NodeId, SliceId, SliceNo};
use proto::model::index::IndexInfo;
use proto::model::moves::MovePhase;
use proto::model::node::NodeInfo;
use proto::model::topology::TopologyProvider;
use proto::rpc::api::SliceProgress;
use proto::rpc::export::checksum_patience;
use proto::{Error, ErrorCode, Result};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout};

use super::{Incoming, IncomingMove, lock};
use crate::follower::Shared;

/// Lost slices that are copied at a time: of moves, too, the leader begins a few only.
pub(super) const AT_ONCE: usize = 4;
/// A slice of which nothing has come for so long is given up: longer than a node is away that is started again.
const PATIENCE: Duration = Duration::from_secs(60);
/// So is one that could not be installed so often, because more came all the time than a last round brings.
const ATTEMPTS_MAX: u32 = 240;

impl Incoming {
    /// Fetches slices that are not here from their other copies.
    pub fn restore(&self, shared: &Shared, index: &IndexInfo, slices: &[SliceNo]) {
        let mut restores = lock(&self.restores);
        for slice in slices {
            let slice = SliceId { index: index.id, generation: index.generation, slice: *slice };
            restores.entry(slice).or_insert_with(|| {
                tracing::info!(%slice, "fetching a slice from another copy");
                let restore = IncomingMove::begin(shared, slice, index.bucket, None);
                let mut copies = index.topology.replicas(slice.slice).iter();
                let first = copies.find(|node| **node != shared.config.node.id);
                lock(&restore.state).source = first.copied();
                restore
            });
        }
    }

    /// Is a slice of an index fetched?
    pub fn is_restoring(&self, index: IndexId, generation: Generation) -> bool {
        let of_index = |slice: &SliceId| (slice.index, slice.generation) == (index, generation);
        lock(&self.restores).keys().any(of_index)
    }

    /// A slice is here again.
    pub fn restored(&self, slice: SliceId) {
        self.end_restores(|other| *other == slice);
    }

    /// Fetches some slices of an index no more.
    pub fn end_restores_of(&self, index: IndexId, slices: &[SliceNo]) {
        self.end_restores(|slice| slice.index == index && slices.contains(&slice.slice));
    }

    /// The slices of a bucket that are not to be had, by index.
    pub fn hopeless(&self, shared: &Shared, bucket: BucketId) -> BTreeMap<IndexId, Vec<SliceNo>> {
        let mut hopeless = BTreeMap::<_, Vec<_>>::new();
        let restores = lock(&self.restores);
        let of_bucket = restores.values().filter(|restore| restore.bucket == bucket);
        for restore in of_bucket.filter(|restore| restore.is_hopeless(shared)) {
            hopeless.entry(restore.slice.index).or_default().push(restore.slice.slice);
        }
        hopeless
    }

    /// What is told of them in heartbeats.
    pub fn restoring(&self) -> Vec<SliceProgress> {
        let progress = |restore: &Arc<IncomingMove>| {
            let state = lock(&restore.state);
            SliceProgress {
                slice: restore.slice,
                floor: None,
                entries: 0,
                bytes: state.bytes,
                copied_from: state.source,
                trouble: state.trouble.clone(),
            }
        };
        lock(&self.restores).values().map(progress).collect()
    }

    /// The catalog has them elsewhere, or no more.
    pub(super) fn end_restores_elsewhere(&self, node: NodeId, catalog: &Catalog) {
        self.end_restores(|slice| {
            let index = catalog.indexes.get(&slice.index);
            !index.is_some_and(|index| {
                index.generation == slice.generation && index.topology.hosts(node, slice.slice)
            })
        });
    }

    fn end_restores(&self, ends: impl Fn(&SliceId) -> bool) {
        lock(&self.restores).retain(|slice, restore| {
            let goes_on = !ends(slice);
            if !goes_on {
                drop(lock(&restore.state).copying.take());
            }
            goes_on
        });
    }
}

impl IncomingMove {
    /// Waits until a lost slice may be copied; moves have been given their turn by the leader.
    pub(super) async fn turn(&self, shared: &Shared) -> Option<OwnedSemaphorePermit> {
        if self.id.is_some() {
            return None;
        }
        let asked = Instant::now();
        let turn = Arc::clone(&shared.incoming.turns).acquire_owned().await.ok();
        // What it waited for others is no failure of its own.
        lock(&self.state).progressed += asked.elapsed();
        turn
    }

    /// Compares what has come of a lost slice with what its copy shows, at the newest epoch that has come: damage on its
    /// way must not be shown. The two ends of a move are compared by the coordinator, which knows of it.
    pub(super) async fn compare(&self, shared: &Shared, source: &NodeInfo) -> Result<()> {
        if self.id.is_some() {
            return Ok(());
        }
        let mut received = self.received.lock().await;
        let Some((mine, head)) = received.as_ref().and_then(|mine| Some((mine, mine.head()?)))
        else {
            return Ok(());
        };
        let bytes: u64 = head.files.iter().map(|(_, len)| len).sum();
        let patience = checksum_patience(bytes);
        // No bytes come meanwhile, and that is no silence.
        let until = Instant::now() + patience;
        let before = std::mem::replace(&mut lock(&self.state).progressed, until);
        let indexer = shared.directory.indexer(source);
        let theirs = timeout(patience, indexer.checksum(self.slice, head.epoch));
        let (theirs, ours) = tokio::join!(theirs, mine.checksum(self.slice.slice));
        let answered = matches!(theirs, Ok(Ok(_)));
        lock(&self.state).progressed = if answered { Instant::now() } else { before };
        let late = |_| Error::unavailable(format!("node {} did not answer in time", source.id));
        let (theirs, ours) = (theirs.map_err(late)??, ours?);
        if ours == theirs {
            return Ok(());
        }
        let (slice, node, epoch) = (self.slice, source.id, head.epoch);
        tracing::warn!(%slice, %node, %epoch, ?ours, ?theirs, "what was copied is not the copy");
        *received = None;
        lock(&self.state).absent.insert(node);
        let what = format!("what node {node} gave is not what it shows at epoch {epoch}");
        Err(Error::new(ErrorCode::Corrupt, what))
    }

    /// Is it a lost slice that is not to be had?
    pub(super) fn is_hopeless(&self, shared: &Shared) -> bool {
        if self.id.is_some() {
            return false;
        }
        let sources = self.sources(shared).unwrap_or_default();
        let state = lock(&self.state);
        let absent = sources.iter().all(|source| state.absent.contains(&source.id));
        // A copy that is whole waits for the stream and for others.
        let copying = matches!(state.phase, MovePhase::Copying);
        let silent = copying && state.failures > 0 && state.progressed.elapsed() > PATIENCE;
        absent || silent || state.failures >= ATTEMPTS_MAX
    }
}
