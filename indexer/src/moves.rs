//! The moves of which this node is the target: one task each copies the slice's files from a copy of it, round
//! after round, until little is missing; then the bucket's follower *installs* it between two epochs
//! ([`IncomingMove::install`]), with a last round that brings what is missing up to the epoch at hand.
//!
//! Which moves there are is what the catalog says. A move that vanishes from it was undone, or has nothing
//! left to do here: what was received goes. After a restart the copy begins anew. Whoever fails is asked
//! again, or another copy is; what is in the way is told with the heartbeats, and the coordinator undoes a
//! move that gets nowhere.
//!
//! A slice that this node has lost comes in the same way, without a move in the catalog ([`restore`]).

mod incoming;
pub mod restore;

pub use incoming::Incoming;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::StreamExt;
use proto::cut::EpochMark;
use proto::env::Task;
use proto::ids::{BucketId, Epoch, MoveId, NodeId, SliceId};
use proto::index::{IndexInfo, NodeInfo};
use proto::moves::{ExportMessage, ExportRequest, MovePhase};
use proto::topology::TopologyProvider;
use proto::{Error, ErrorCode, Result};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::follower::Shared;
use storage::ReceivedFiles;

/// After a round that brought less than this the next one is the last, between two epochs.
const SMALL_ROUND_BYTES: u64 = 4 << 20;
/// Rounds at most before that, however much comes.
const ROUNDS_MAX: usize = 6;
/// A source that sends nothing for this long is given up for now.
const SILENCE: Duration = Duration::from_secs(10);
/// The last round may hold up the bucket's epochs for this long.
const LAST_ROUND: Duration = Duration::from_secs(3);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(250);
/// The same where nothing is expected any more, and another rebuild of the index has to end first.
const PAUSE_HOPELESS: Duration = Duration::from_secs(2);

/// One slice that comes to this node.
pub struct IncomingMove {
    /// The slice.
    pub slice: SliceId,
    /// The move that brings it; `None` where it was lost here.
    id: Option<MoveId>,
    bucket: BucketId,
    state: Mutex<State>,
    /// What has been copied; held while it is worked on.
    received: tokio::sync::Mutex<Option<ReceivedFiles>>,
    changed: watch::Sender<u64>,
}

struct State {
    phase: MovePhase,
    bytes: u64,
    bytes_total: u64,
    bytes_per_s: u64,
    trouble: Option<String>,
    failures: u32,
    /// Who is asked.
    source: Option<NodeId>,
    /// Who was asked and does not have it, or gave something else than it shows.
    absent: BTreeSet<NodeId>,
    /// When bytes came last, or were first asked for.
    progressed: Instant,
    /// The next attempt to install it is not before this.
    not_before: Instant,
    /// Copies, unless it is done.
    copying: Option<Task>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl IncomingMove {
    fn begin(shared: &Shared, slice: SliceId, bucket: BucketId, id: Option<MoveId>) -> Arc<Self> {
        let state = State {
            phase: MovePhase::Copying,
            bytes: 0,
            bytes_total: 0,
            bytes_per_s: 0,
            trouble: None,
            failures: 0,
            source: None,
            absent: BTreeSet::new(),
            progressed: Instant::now(),
            not_before: Instant::now(),
            copying: None,
        };
        let mv = Arc::new(Self {
            slice,
            id,
            bucket,
            state: Mutex::new(state),
            received: tokio::sync::Mutex::new(None),
            changed: shared.incoming.changed.clone(),
        });
        // Whether it stays is known when the stream has come to the move.
        if mv.is_here(shared) {
            lock(&mv.state).phase = MovePhase::Copied;
        } else {
            mv.start_copying(shared);
        }
        mv
    }

    /// The move that brings it; `None` where it was lost here.
    pub fn id(&self) -> Option<MoveId> {
        self.id
    }

    fn is_here(&self, shared: &Shared) -> bool {
        shared.store.indexes().iter().any(|stored| {
            (stored.info.id, stored.info.generation) == (self.slice.index, self.slice.generation)
                && stored.floor.is_some()
                && stored.slices.iter().any(|(slice, _)| *slice == self.slice.slice)
        })
    }

    fn start_copying(self: &Arc<Self>, shared: &Shared) {
        // The task must not keep alive what ends it.
        let (mv, shared_too) = (Arc::downgrade(self), shared.clone());
        let task = shared.env.spawn("copy-slice", async move {
            while let Some(mv) = mv.upgrade() {
                if mv.copy(&shared_too).await {
                    return;
                }
                let hopeless = mv.is_hopeless(&shared_too);
                drop(mv);
                tokio::time::sleep(if hopeless { PAUSE_HOPELESS } else { PAUSE }).await;
            }
        });
        let mut state = lock(&self.state);
        (state.phase, state.copying) = (MovePhase::Copying, Some(task));
    }

    /// Copies until little is missing; false if that has to be tried again.
    async fn copy(&self, shared: &Shared) -> bool {
        match self.copy_rounds(shared).await {
            Ok(()) => {
                let mut state = lock(&self.state);
                (state.phase, state.trouble) = (MovePhase::Copied, None);
                if self.id.is_some() {
                    state.failures = 0;
                }
                drop(state);
                self.tell(shared);
                true
            }
            Err(error) => {
                self.failed(error);
                if self.is_hopeless(shared) {
                    self.tell(shared);
                }
                false
            }
        }
    }

    async fn copy_rounds(&self, shared: &Shared) -> Result<()> {
        let _turn = self.turn(shared).await;
        let failures = lock(&self.state).failures as usize;
        let sources = self.sources(shared)?;
        let source = &sources[failures % sources.len()];
        lock(&self.state).source = Some(source.id);
        for _ in 0..ROUNDS_MAX {
            let mut received = self.received.lock().await;
            if received.as_ref().is_none_or(|received| received.source() != source.id) {
                *received = Some(shared.fragments.receive(source.id));
            }
            let Some(received) = received.as_mut() else { return Ok(()) };
            let bytes = self.round(shared, source, received, Epoch(0), SILENCE).await?;
            if bytes < SMALL_ROUND_BYTES {
                break;
            }
        }
        self.compare(shared, source).await
    }

    /// The nodes that have the slice, the one that gives it away first.
    fn sources(&self, shared: &Shared) -> Result<Vec<Arc<NodeInfo>>> {
        let catalog = shared.catalog.load();
        let gone = || Error::unavailable("the move is no longer in the catalog");
        let index = catalog.indexes.get(&self.slice.index).ok_or_else(gone)?;
        let first = match self.id {
            Some(id) => index.moves.iter().find(|mv| mv.id == id).ok_or_else(gone)?.from,
            None => None,
        };
        let copies = index.topology.replicas(self.slice.slice).iter().copied();
        let mut nodes: Vec<NodeId> = first.into_iter().chain(copies).collect();
        let mut seen = Vec::new();
        nodes.retain(|node| {
            *node != shared.config.node.id && !seen.contains(node) && {
                seen.push(*node);
                true
            }
        });
        let nodes: Vec<_> =
            nodes.iter().filter_map(|node| catalog.nodes.get(node)).cloned().collect();
        if nodes.is_empty() {
            return Err(Error::unavailable(format!("no node has slice {}", self.slice)));
        }
        Ok(nodes)
    }

    /// Asks for what is not here; says how many bytes came.
    async fn round(
        &self,
        shared: &Shared,
        source: &NodeInfo,
        received: &mut ReceivedFiles,
        epoch: Epoch,
        patience: Duration,
    ) -> Result<u64> {
        let request = ExportRequest {
            slice: self.slice,
            id: self.id,
            epoch,
            have: received.have(),
            opening: received.head().map(|head| head.opening),
            timeout_ms: patience.as_millis() as u64,
        };
        let late = |_| Error::unavailable(format!("node {} did not answer in time", source.id));
        let indexer = shared.directory.indexer(source);
        let mut messages = timeout(patience, indexer.export(request)).await.map_err(late)??;
        let (mut bytes, began) = (0, Instant::now());
        loop {
            let message = timeout(patience, messages.next()).await.map_err(late)?;
            match message.ok_or_else(|| Error::unavailable("the source went away"))?? {
                ExportMessage::Head(head) => {
                    received.begin(head).await?;
                    lock(&self.state).bytes_total += received.missing_bytes();
                }
                ExportMessage::Piece(piece) => {
                    bytes += piece.bytes.len() as u64;
                    let ms = began.elapsed().as_millis().max(1) as u64;
                    self.note_bytes(piece.bytes.len() as u64, bytes.saturating_mul(1_000) / ms);
                    received.piece(piece).await?;
                }
                ExportMessage::End if received.is_whole() => return Ok(bytes),
                ExportMessage::End => return Err(Error::unavailable("files are missing")),
            }
        }
    }

    fn note_bytes(&self, more: u64, bytes_per_s: u64) {
        let mut state = lock(&self.state);
        state.bytes += more;
        state.progressed = Instant::now();
        state.bytes_per_s = bytes_per_s;
    }

    /// Shows the slice from the epoch on that was applied last; no other is applied meanwhile. True if it
    /// is shown now and was not before.
    pub async fn install(
        self: &Arc<Self>,
        shared: &Shared,
        info: &Arc<IndexInfo>,
        mark: &EpochMark,
    ) -> bool {
        {
            let state = lock(&self.state);
            if state.phase != MovePhase::Copied || Instant::now() < state.not_before {
                return false;
            }
        }
        let mut received = self.received.lock().await;
        // A follower that was ended here may have left it installed, or have lost what was copied.
        if self.is_here(shared) {
            self.is_installed(shared);
            return true;
        }
        let Some(mut mine) = received.take() else {
            self.start_copying(shared);
            return false;
        };
        let round = timeout(LAST_ROUND, self.last_round(shared, &mut mine, mark)).await;
        let late = |_| Err(Error::unavailable("the last round took too long"));
        if let Err(error) = round.unwrap_or_else(late) {
            // The bucket's epochs must not wait for this source again: off their way it is asked, or another
            // one is, until little is missing.
            *received = Some(mine);
            self.failed(error);
            self.start_copying(shared);
            return false;
        }
        let told = mine.head().map_or(0, |head| head.entries);
        match shared.fragments.install(mine, self.slice, Arc::clone(info), mark).await {
            Ok(()) => {
                tracing::info!(slice = %self.slice, epoch = %mark.epoch, "a slice has arrived");
                self.count(shared, mark.epoch, told);
                self.is_installed(shared);
                true
            }
            Err(refused) => {
                *received = Some(refused.received);
                self.failed(refused.error);
                false
            }
        }
    }

    async fn last_round(
        &self,
        shared: &Shared,
        received: &mut ReceivedFiles,
        mark: &EpochMark,
    ) -> Result<()> {
        let sources = self.sources(shared)?;
        let mine = sources.iter().find(|source| source.id == received.source());
        let source =
            mine.ok_or_else(|| Error::unavailable("the source no longer has the slice"))?;
        self.round(shared, source, received, mark.epoch, LAST_ROUND).await.map(drop)
    }

    fn is_installed(&self, shared: &Shared) {
        let mut state = lock(&self.state);
        (state.phase, state.trouble) = (MovePhase::Installed, None);
        drop(state);
        self.tell(shared);
    }

    /// Counts behind the epochs what the slice shows.
    fn count(&self, shared: &Shared, epoch: Epoch, told: u64) {
        let (shared_too, slice) = (shared.clone(), self.slice);
        let counting = shared.env.spawn("count-slice", async move {
            if let Err(error) = shared_too.fragments.count_installed(slice, epoch, told).await {
                tracing::debug!(%slice, %error, "counting a slice that has arrived");
            }
        });
        counting.detach();
    }

    /// It is tried again; the coordinator hears why, and undoes the move when that goes on for long.
    fn failed(&self, error: Error) {
        tracing::debug!(slice = %self.slice, %error, "a move has to wait");
        let mut state = lock(&self.state);
        state.failures += 1;
        if error.code == ErrorCode::SliceMoved {
            let source = state.source;
            state.absent.extend(source);
        }
        state.not_before = Instant::now() + PAUSE;
        state.trouble = Some(error.to_string());
    }

    /// Another phase: the coordinator hears of it at once, and the follower looks.
    fn tell(&self, shared: &Shared) {
        shared.slices_changed();
        self.changed.send_modify(|count| *count += 1);
    }
}
