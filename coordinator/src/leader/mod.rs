//! What the leader keeps in its own memory, and what it decides from that and the StateContext.
//!
//! Current positions, heartbeats and leases change many times a second and are worth nothing after a
//! change of leader: they are never replicated. A [`Leader`] begins empty with each term and hears
//! everything again within a heartbeat. It does no I/O: [`Leader::plan`] says what to propose now and
//! when to look again, and the service does it.

mod admit;
pub mod bootstrap;
pub mod horizon;
pub mod moves;
mod repair;
pub mod rollback;
pub mod stability;

use std::collections::{BTreeMap, BTreeSet};

use proto::model::ids::{BucketId, Epoch, NodeId, SliceId, SliceNo};
use proto::model::index::{IndexInfo, IndexState};
use proto::rpc::api::{BucketProgress, Heartbeat, NodeStatus, SliceProgress};
use proto::rpc::command::{Command, Promotion};

use crate::state::epochs::advance;
use crate::state::{BucketState, StateContext};
use horizon::{LEASE_MS, Published};
use moves::{Check, MoveSettings, Moves};
use rollback::Sources;
use stability::{Choice, Stability};

/// A node that was not heard of for this long is not counted on.
const SILENT_MS_MAX: u64 = 5_000;
/// Epochs never come further apart than this while there is something new, however slow the log is.
const TICK_MS_MAX: u64 = 1_000;

/// The leader's memory. Times are milliseconds of any clock that only grows.
#[derive(Debug)]
pub struct Leader {
    term: u64,
    since_ms: u64,
    tick_ms: u64,
    nodes: BTreeMap<NodeId, Heard>,
    /// The cuts that SYNC has told, and those who wait for more.
    pub stability: Stability,
    sources: Sources,
    /// When the epochs of each bucket were seen first.
    published: BTreeMap<BucketId, Published>,
    promoted_ms: Option<u64>,
    promotion_took_ms: u64,
    heard_of_slices: bool,
    /// The term is past its bootstrap.
    active: bool,
    moves: Moves,
}

#[derive(Debug)]
struct Heard {
    at_ms: u64,
    heartbeat: Heartbeat,
}

/// What is to be done.
#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    /// To be proposed now.
    pub commands: Vec<Command>,
    /// Copies to be compared; what comes out is to be told to [`Leader::checked`].
    pub checks: Vec<Check>,
    /// When to look again, if nothing happens before.
    pub next_ms: Option<u64>,
}

impl Plan {
    /// Looks again at this time at the latest.
    fn look_at(&mut self, at_ms: u64) {
        self.next_ms = Some(self.next_ms.map_or(at_ms, |next_ms| next_ms.min(at_ms)));
    }
}

impl Leader {
    /// The memory of a leader whose term begins.
    pub fn new(term: u64, now_ms: u64, tick_ms: u64, settings: MoveSettings) -> Self {
        Self {
            term,
            since_ms: now_ms,
            tick_ms,
            nodes: BTreeMap::new(),
            stability: Stability::default(),
            sources: Sources::default(),
            published: BTreeMap::new(),
            promoted_ms: None,
            promotion_took_ms: 0,
            heard_of_slices: false,
            active: false,
            moves: Moves::new(settings),
        }
    }

    /// The term that it leads.
    pub fn term(&self) -> u64 {
        self.term
    }

    /// A node is alive. True if that may change what is to be done.
    pub fn hear(&mut self, heartbeat: Heartbeat, now_ms: u64) -> bool {
        let of_slices = !heartbeat.slices.is_empty();
        let news = of_slices || !heartbeat.moves.is_empty();
        self.heard_of_slices |= of_slices;
        self.nodes.insert(heartbeat.node, Heard { at_ms: now_ms, heartbeat });
        news
    }

    /// What it knows of the nodes.
    pub fn node_status(&self, now_ms: u64) -> Vec<NodeStatus> {
        let status = |(node, heard): (&NodeId, &Heard)| NodeStatus {
            node: *node,
            silent_ms: now_ms.saturating_sub(heard.at_ms),
            buckets: heard.heartbeat.buckets.clone(),
            slices: heard.heartbeat.slices.clone(),
            moves: heard.heartbeat.moves.clone(),
            scans: heard.heartbeat.scans,
        };
        self.nodes.iter().map(status).collect()
    }

    /// What to propose now. The service reports each promotion's end with [`Leader::promoted`].
    pub fn plan(&mut self, state: &StateContext, now_ms: u64) -> Plan {
        let mut plan = Plan::default();
        self.plan_rollbacks(state, now_ms, &mut plan);
        self.plan_promotions(state, now_ms, &mut plan);
        if std::mem::take(&mut self.heard_of_slices) {
            plan.commands.extend(self.ready_indexes(state, now_ms));
        }
        self.plan_moves(state, now_ms, &mut plan);
        self.plan_repairs(state, now_ms, &mut plan);
        plan
    }

    /// A promotion that was begun at `begun_ms` is committed, or failed: the tick stretches with the
    /// time that the log needs.
    pub fn promoted(&mut self, begun_ms: u64, now_ms: u64) {
        self.promoted_ms = Some(begun_ms);
        self.promotion_took_ms = now_ms.saturating_sub(begun_ms);
    }

    fn plan_promotions(&mut self, state: &StateContext, now_ms: u64, plan: &mut Plan) {
        self.stability.retain(|bucket| state.bucket(bucket).is_some());
        self.published.retain(|bucket, _| state.bucket(*bucket).is_some());
        let tick_ms = self.tick_ms.max(2 * self.promotion_took_ms).min(TICK_MS_MAX);
        let due_ms = self.promoted_ms.map_or(now_ms, |at_ms| at_ms + tick_ms);
        let mut promotions = Vec::new();
        let mut now = due_ms <= now_ms;
        for (id, bucket) in state.buckets() {
            self.published.entry(id).or_default().see(&bucket.epochs, now_ms);
            if bucket.info.readable_from().is_none() {
                continue;
            }
            let published = &bucket.epochs.last().cut;
            let indexers = progress(&self.nodes, id, now_ms);
            let cut = match self.stability.choose(id, published, &indexers, now_ms) {
                Choice::Nothing => continue,
                Choice::Hold => {
                    plan.next_ms = Some(now_ms + self.tick_ms);
                    continue;
                }
                Choice::Promote(cut) => cut,
                Choice::PromoteNow(cut) => {
                    now = true;
                    cut
                }
            };
            let horizon = self.horizon(state, bucket, now_ms);
            promotions.push(Promotion { bucket: id, changes: advance(published, &cut), horizon });
        }
        if promotions.is_empty() {
            return;
        }
        if now {
            plan.commands.push(Command::PromoteEpochs(promotions));
        } else {
            plan.next_ms = Some(due_ms);
        }
    }

    fn horizon(&self, state: &StateContext, bucket: &BucketState, now_ms: u64) -> Epoch {
        let id = bucket.info.id;
        // The routers have not had the time to tell of their leases yet.
        let leads_ms = now_ms.saturating_sub(self.since_ms);
        let Some(published) = self.published.get(&id).filter(|_| leads_ms >= LEASE_MS) else {
            return bucket.epochs.last().horizon;
        };
        let leases = self.leases(id, now_ms);
        let servable = state
            .indexes()
            .map(|record| &record.info)
            .filter(|index| index.bucket == id && index.state == IndexState::Maintenance)
            .map(|index| self.servable(index));
        horizon::horizon(&bucket.epochs, published, now_ms, leases, servable)
    }

    /// The epochs of a bucket that running scans read.
    fn leases(&self, bucket: BucketId, now_ms: u64) -> impl Iterator<Item = Epoch> {
        self.nodes
            .values()
            .filter(move |heard| now_ms.saturating_sub(heard.at_ms) <= LEASE_MS)
            .flat_map(|heard| &heard.heartbeat.leases)
            .filter(move |(leased, _)| *leased == bucket)
            .map(|(_, epoch)| *epoch)
    }

    /// The newest epoch that an index can serve as a whole: of each slice the best copy counts.
    fn servable(&self, index: &IndexInfo) -> Epoch {
        let applied = |node: &NodeId| {
            let buckets = self.nodes.get(node).map_or(&[][..], |heard| &heard.heartbeat.buckets);
            let of_bucket = buckets.iter().find(|progress| progress.bucket == index.bucket);
            of_bucket.map_or(Epoch(0), |progress| progress.applied)
        };
        let best = |nodes: &Vec<NodeId>| nodes.iter().map(applied).max().unwrap_or_default();
        index.topology.placement.iter().map(best).min().unwrap_or_default()
    }

    /// The indexes whose build is done: each slice can be read somewhere, and no living copy is behind.
    fn ready_indexes(&self, state: &StateContext, now_ms: u64) -> Vec<Command> {
        let readable: BTreeSet<(NodeId, SliceId)> =
            self.nodes.values().flat_map(|heard| readable(&heard.heartbeat)).collect();
        // A node that the new leader has not heard of yet may be alive.
        let lives = |node: &NodeId| {
            let heard_ms = self.nodes.get(node).map_or(0, |heard| heard.at_ms);
            now_ms.saturating_sub(heard_ms.max(self.since_ms)) < SILENT_MS_MAX
        };
        let is_ready = |index: &IndexInfo| {
            index.topology.placement.iter().enumerate().all(|(n, nodes)| {
                let slice = SliceId {
                    index: index.id,
                    generation: index.generation,
                    slice: SliceNo(n as u16),
                };
                let reads = |node: &&NodeId| readable.contains(&(**node, slice));
                nodes.iter().any(|node| reads(&node))
                    && nodes.iter().filter(|node| lives(node)).all(|node| reads(&node))
            })
        };
        state
            .indexes()
            .map(|record| &record.info)
            .filter(|index| index.state == IndexState::Backfill && is_ready(index))
            .map(|index| Command::IndexReady { index: index.id, generation: index.generation })
            .collect()
    }
}

/// What the living indexers say of a bucket.
fn progress(
    nodes: &BTreeMap<NodeId, Heard>,
    bucket: BucketId,
    now_ms: u64,
) -> Vec<&BucketProgress> {
    nodes
        .values()
        .filter(|heard| now_ms.saturating_sub(heard.at_ms) < SILENT_MS_MAX)
        .flat_map(|heard| &heard.heartbeat.buckets)
        .filter(|progress| progress.bucket == bucket)
        .collect()
}

/// The slices that a node can answer scans of.
fn readable(heartbeat: &Heartbeat) -> impl Iterator<Item = (NodeId, SliceId)> {
    let served = |slice: &&SliceProgress| slice.floor.is_some();
    heartbeat.slices.iter().filter(served).map(|slice| (heartbeat.node, slice.slice))
}

#[cfg(test)]
mod fault_tests;
#[cfg(test)]
#[path = "leader_tests.rs"]
mod tests;
