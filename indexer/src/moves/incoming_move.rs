//! One slice on its way to this node: what is known of it, and the questions that need no copying.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use proto::env::Task;
use proto::model::ids::{BucketId, MoveId, NodeId, SliceId};
use proto::model::moves::MovePhase;
use proto::model::node::NodeInfo;
use proto::model::topology::TopologyProvider;
use proto::{Error, ErrorCode, Result};
use storage::ReceivedFiles;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;

use crate::context::NodeContext;

/// Between two attempts.
pub(super) const PAUSE: Duration = Duration::from_millis(250);
/// A slice of which nothing has come for so long is given up: longer than a node is away that is started again.
const PATIENCE: Duration = Duration::from_secs(60);
/// So is one that could not be installed so often, because more came all the time than a last round brings.
const ATTEMPTS_MAX: u32 = 240;

/// One slice that comes to this node.
pub struct IncomingMove {
    /// The slice.
    pub slice: SliceId,
    /// The move that brings it; `None` where it was lost here.
    pub(super) id: Option<MoveId>,
    pub(super) bucket: BucketId,
    pub(super) state: Mutex<CopyState>,
    /// What has been copied; held while it is worked on.
    pub(super) received: tokio::sync::Mutex<Option<ReceivedFiles>>,
    pub(super) changed: watch::Sender<u64>,
    /// Limits concurrent restores; `None` for moves, whose number the leader limits.
    pub(super) turns: Option<Arc<Semaphore>>,
}

/// How far the copy of a slice is.
pub(super) struct CopyState {
    pub(super) phase: MovePhase,
    pub(super) bytes: u64,
    pub(super) bytes_total: u64,
    pub(super) bytes_per_s: u64,
    pub(super) trouble: Option<String>,
    pub(super) failures: u32,
    /// Who is asked.
    pub(super) source: Option<NodeId>,
    /// Who was asked and does not have it, or gave something else than it shows.
    pub(super) absent: BTreeSet<NodeId>,
    /// When bytes came last, or were first asked for.
    pub(super) progressed: Instant,
    /// The next attempt to install it is not before this.
    pub(super) not_before: Instant,
    /// Copies, unless it is done.
    pub(super) copying: Option<Task>,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl IncomingMove {
    /// The move that brings it; `None` where it was lost here.
    pub fn id(&self) -> Option<MoveId> {
        self.id
    }

    pub(super) fn is_here(&self, context: &NodeContext) -> bool {
        context.store.indexes().iter().any(|stored| {
            (stored.info.id, stored.info.generation) == (self.slice.index, self.slice.generation)
                && stored.floor.is_some()
                && stored.slices.iter().any(|(slice, _)| *slice == self.slice.slice)
        })
    }

    /// Waits until a lost slice may be copied; moves have been given their turn by the leader.
    pub(super) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        let turns = self.turns.as_ref()?;
        let asked = Instant::now();
        let turn = Arc::clone(turns).acquire_owned().await.ok();
        // What it waited for others is no failure of its own.
        lock(&self.state).progressed += asked.elapsed();
        turn
    }

    /// The nodes that have the slice, the one that gives it away first.
    pub(super) fn sources(&self, context: &NodeContext) -> Result<Vec<Arc<NodeInfo>>> {
        let catalog = context.catalog.load();
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

    /// Is it a lost slice that is not to be had?
    pub(super) fn is_hopeless(&self, context: &NodeContext) -> bool {
        if self.id.is_some() {
            return false;
        }
        let sources = self.sources(context).unwrap_or_default();
        let state = lock(&self.state);
        let absent = sources.iter().all(|source| state.absent.contains(&source.id));
        // A copy that is whole waits for the stream and for others.
        let copying = matches!(state.phase, MovePhase::Copying);
        let silent = copying && state.failures > 0 && state.progressed.elapsed() > PATIENCE;
        absent || silent || state.failures >= ATTEMPTS_MAX
    }

    pub(super) fn note_bytes(&self, more: u64, bytes_per_s: u64) {
        let mut state = lock(&self.state);
        state.bytes += more;
        state.progressed = Instant::now();
        state.bytes_per_s = bytes_per_s;
    }

    /// It is tried again; the coordinator hears why, and undoes the move when that goes on for long.
    pub(super) fn failed(&self, error: Error) {
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
    pub(super) fn tell(&self, context: &NodeContext) {
        context.slices_changed();
        self.changed.send_modify(|count| *count += 1);
    }
}
