//! A slice that is being copied to this node: its state, and the operations other than the
//! copying itself. The slice belongs to a move, or it is a restore of a slice that the node
//! lacks.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::env::Task;
use proto::lock::lock;
use proto::model::ids::{BucketId, MoveId, NodeId, SliceId};
use proto::model::moves::MovePhase;
use proto::model::node::NodeInfo;
use proto::model::topology::TopologyProvider;
use proto::{Error, ErrorCode, Result};
use storage::{ReceivedFiles, SliceStore};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;

use crate::context::NodeContext;

/// Pause between two attempts to copy or to install a slice.
pub(super) const PAUSE: Duration = Duration::from_millis(250);
/// The time without data after which a restore counts as hopeless, so that the slice is rebuilt.
/// A node that restarts returns earlier.
const PATIENCE: Duration = Duration::from_secs(60);
/// The number of failures after which a restore counts as hopeless, for example because too many
/// mutations arrive for a last round.
const ATTEMPTS_MAX: u32 = 240;

/// A slice that is being copied to this node.
pub struct IncomingMove {
    /// The slice that is being copied.
    pub slice: SliceId,
    /// The id of the move; `None` for the restore of a lost slice.
    pub(super) id: Option<MoveId>,
    pub(super) bucket: BucketId,
    pub(super) state: Mutex<CopyState>,
    /// The files received so far; locked during a round.
    pub(super) received: tokio::sync::Mutex<Option<ReceivedFiles>>,
    pub(super) changed: watch::Sender<u64>,
    /// Limits the number of concurrent restores. `None` for moves, whose number the leader
    /// limits.
    pub(super) turns: Option<Arc<Semaphore>>,
}

/// The progress of the copy of a slice.
pub(super) struct CopyState {
    pub(super) phase: MovePhase,
    pub(super) bytes: u64,
    pub(super) bytes_total: u64,
    pub(super) bytes_per_s: u64,
    pub(super) trouble: Option<String>,
    pub(super) failures: u32,
    /// The node from which the slice is requested; `None` until one is chosen.
    pub(super) source: Option<NodeId>,
    /// Nodes from which the slice cannot be copied: they do not have it, or sent files that
    /// differ from their copy.
    pub(super) absent: BTreeSet<NodeId>,
    /// The time at which data was received last; the time of the start if there was none.
    pub(super) progressed: Instant,
    /// The earliest time of the next attempt to install the slice.
    pub(super) not_before: Instant,
    /// The copying task, while it runs.
    pub(super) copying: Option<Task>,
}

impl IncomingMove {
    /// The id of the move; `None` for the restore of a lost slice.
    pub fn id(&self) -> Option<MoveId> {
        self.id
    }

    /// Returns true if the slice is readable on this node.
    pub(super) fn is_slice_readable(&self, context: &NodeContext) -> bool {
        context.store.indexes().iter().any(|stored| {
            stored.id() == self.slice.local_index()
                && stored.floor.is_some()
                && stored.slices.iter().any(|(slice, _)| *slice == self.slice.slice)
        })
    }

    /// Waits until a restore may run, because their concurrent number is limited. Returns at once
    /// for a move, whose number the leader limits.
    pub(super) async fn wait_for_turn(&self) -> Option<OwnedSemaphorePermit> {
        let turns = self.turns.as_ref()?;
        let asked = Instant::now();
        let turn = Arc::clone(turns).acquire_owned().await.ok();
        // The wait for a turn does not count as silence of the source.
        lock(&self.state).progressed += asked.elapsed();
        turn
    }

    /// Returns the nodes that have the slice, in the order in which they are tried; the move's
    /// source is first.
    pub(super) fn sources(&self, context: &NodeContext) -> Result<Vec<Arc<NodeInfo>>> {
        let catalog = context.catalog.load();
        let gone = || Error::unavailable("the move is no longer in the catalog");
        let index = catalog.local_index(self.slice.local_index()).ok_or_else(gone)?;
        let first = match self.id {
            Some(id) => index.moves.iter().find(|mv| mv.id == id).ok_or_else(gone)?.from,
            None => None,
        };
        let copies = index.topology.replicas(self.slice.slice).iter().copied();
        let mut nodes: Vec<NodeId> = first.into_iter().chain(copies).collect();
        let mut seen = Vec::new();
        nodes.retain(|node| {
            *node != context.config.node.id && !seen.contains(node) && {
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

    /// Returns true for a restore that no copy on another node can serve, so that the slice must
    /// be rebuilt.
    pub(super) fn is_hopeless(&self, context: &NodeContext) -> bool {
        if self.id.is_some() {
            return false;
        }
        let sources = self.sources(context).unwrap_or_default();
        let state = lock(&self.state);
        let absent = sources.iter().all(|source| state.absent.contains(&source.id));
        // A complete copy waits for the stream; that is not silence.
        let copying = matches!(state.phase, MovePhase::Copying);
        let silent = copying && state.failures > 0 && state.progressed.elapsed() > PATIENCE;
        absent || silent || state.failures >= ATTEMPTS_MAX
    }

    /// Records received bytes, and the rate.
    pub(super) fn note_bytes(&self, more: u64, bytes_per_s: u64) {
        let mut state = lock(&self.state);
        state.bytes += more;
        state.progressed = Instant::now();
        state.bytes_per_s = bytes_per_s;
    }

    /// Records a failed attempt. Heartbeats report the reason, and the coordinator undoes a move
    /// that fails for long.
    pub(super) fn record_failure(&self, error: Error) {
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

    /// Signals a change of the phase to the follower, and to the coordinator by an immediate
    /// heartbeat.
    pub(super) fn signal_change(&self, context: &NodeContext) {
        context.slices_changed();
        self.changed.send_modify(|count| *count += 1);
    }
}
