//! The leader's memory as a whole.

use proto::Result;
use proto::model::cut::Cut;
use proto::model::history::SourceHistory;
use proto::model::homes::VbucketSet;
use proto::model::ids::{BucketId, NodeId};
use proto::model::moves::{RebalancePlan, RebalanceRequest};
use proto::rpc::api::{Heartbeat, NodeStatus};

use super::bootstrap;
use super::builds::ready_indexes;
use super::check::{Check, Checksum};
use super::heartbeats::Heartbeats;
use super::move_settings::MoveSettings;
use super::moves::Moves;
use super::plan::Plan;
use super::promotions::Promotions;
use super::repair::{self, Repairs};
use super::sources::{Asked, Sources};
use super::stability::Stability;
use crate::state::StateContext;

/// The leader's memory. Times are milliseconds of any clock that only grows.
#[derive(Debug)]
pub struct Leader {
    term: u64,
    pub(super) heartbeats: Heartbeats,
    heard_of_slices: bool,
    /// The cuts that SYNC has told, and those who wait for more.
    pub stability: Stability,
    sources: Sources,
    promotions: Promotions,
    /// The term is past its bootstrap.
    active: bool,
    pub(super) moves: Moves,
    pub(super) repairs: Repairs,
}

impl Leader {
    /// The memory of a leader whose term begins.
    pub fn new(term: u64, now_ms: u64, tick_ms: u64, settings: MoveSettings) -> Self {
        Self {
            term,
            heartbeats: Heartbeats::new(now_ms),
            heard_of_slices: false,
            stability: Stability::default(),
            sources: Sources::default(),
            promotions: Promotions::new(tick_ms),
            active: false,
            moves: Moves::new(settings),
            repairs: Repairs::default(),
        }
    }

    /// A node is alive. True if that may change what is to be done.
    pub fn hear(&mut self, heartbeat: Heartbeat, now_ms: u64) -> bool {
        let of_slices = !heartbeat.slices.is_empty();
        let news = of_slices || !heartbeat.moves.is_empty();
        self.heard_of_slices |= of_slices;
        self.heartbeats.add(heartbeat, now_ms);
        news
    }

    /// What it knows of the nodes.
    pub fn node_status(&self, now_ms: u64) -> Vec<NodeStatus> {
        self.heartbeats.status(now_ms)
    }

    /// What to propose now. The service reports each promotion's end with [`Leader::promoted`].
    pub fn plan(&mut self, state: &StateContext, now_ms: u64) -> Plan {
        let mut plan = Plan::default();
        let Self { heartbeats, stability, .. } = self;
        self.sources.plan(state, heartbeats, stability, now_ms, &mut plan);
        self.promotions.plan(state, heartbeats, stability, now_ms, &mut plan);
        if std::mem::take(&mut self.heard_of_slices) {
            plan.commands.extend(ready_indexes(state, heartbeats, now_ms));
        }
        self.moves.plan(state, heartbeats, now_ms, &mut plan);
        self.repairs.plan(state, heartbeats, &self.moves, now_ms, &mut plan);
        plan
    }

    /// A promotion that was begun at `begun_ms` is committed, or failed.
    pub fn promoted(&mut self, begun_ms: u64, now_ms: u64) {
        self.promotions.promoted(begun_ms, now_ms);
    }

    /// A source is about to be asked for its history.
    pub fn asking(&mut self) -> Asked {
        self.sources.asking(self.term)
    }

    /// SYNC: the durable history of a bucket reaches a cut in the vbuckets that the projector keeps. Dropped
    /// buckets are ignored: the projector will hear of it.
    pub fn sync(
        &mut self,
        state: &StateContext,
        projector: NodeId,
        told: (BucketId, VbucketSet, Cut),
        now_ms: u64,
    ) -> Result<()> {
        self.sources.sync(&mut self.stability, state, projector, told, now_ms)
    }

    /// A source was enquired and said this.
    pub fn enquired(
        &mut self,
        state: &StateContext,
        bucket: BucketId,
        asked: Asked,
        history: SourceHistory,
    ) -> Result<()> {
        if asked.term != self.term {
            return Ok(());
        }
        self.sources.enquired(&mut self.stability, state, bucket, asked, history)
    }

    /// Is there a source to be enquired at once?
    pub fn is_curious(&self) -> bool {
        self.sources.is_curious()
    }

    /// The buckets whose sources are to be enquired.
    pub fn enquiries_due(&mut self, state: &StateContext, now_ms: u64) -> Vec<BucketId> {
        self.sources.enquiries_due(state, now_ms)
    }

    /// What came out of a check.
    pub fn checked(&mut self, check: &Check, result: Result<(Checksum, Checksum)>, now_ms: u64) {
        self.moves.checked(check, result, now_ms);
    }

    /// Plans a rebalance; of one index, then only what that has on the nodes weighs.
    pub fn rebalance(
        &self,
        state: &StateContext,
        request: &RebalanceRequest,
        now_ms: u64,
    ) -> Result<RebalancePlan> {
        repair::rebalance(state, &self.heartbeats, &self.moves.settings, request, now_ms)
    }

    /// Has it heard of everybody whom it waits for? Once it has, the term stays active.
    pub fn is_active(&mut self, state: &StateContext, now_ms: u64) -> bool {
        if !self.active {
            self.active = bootstrap::is_over(state, &self.heartbeats, &self.sources, now_ms);
            if self.active {
                bootstrap::tell_what_it_found(state, &self.heartbeats);
            }
        }
        self.active
    }

    /// Where what the indexers have told of their slices is not what the topology has on them, in words.
    pub fn differences(&self, state: &StateContext) -> Vec<String> {
        bootstrap::differences(state, &self.heartbeats)
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
pub(in crate::leader) mod tests;
