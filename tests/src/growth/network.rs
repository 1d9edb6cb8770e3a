//! The network: calls between the processes, counted by kind, with the sizes that they have between real processes.
//!
//! A call takes [`Network::delay`] in each direction. The messages of a watch follow each other, one at a time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use coordinator::Coordinator;
use proto::model::ids::NodeId;
use proto::model::node::Role;
use proto::{Error, Result};
use serde::Serialize;

use super::counts::{Counts, Kind, LogCount, Party};
use super::meter::Meter;
use super::observer::Observer;
use super::size::{WatchSizes, size};

/// A process at one end of a message.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// The node id of the process.
    pub node: NodeId,
    /// A place for a coordinator in the network.
    pub role: Role,
}

/// A coordinator in its place.
#[derive(Default)]
pub struct Place {
    pub(super) service: OnceLock<Arc<Coordinator>>,
    pub(super) meter: Meter,
}

/// The network between the processes.
pub struct Network {
    seed: u64,
    /// The messages.
    pub counts: Counts,
    /// The sizes of the messages of watches.
    pub sizes: WatchSizes,
    /// The entries of the log.
    pub log: LogCount,
    /// The times of stability timestamps.
    pub observer: Observer,
    /// The number of the leader.
    leader: AtomicU64,
    places: BTreeMap<NodeId, Place>,
}

impl Network {
    /// A network with places for the coordinators.
    pub fn new(seed: u64, coordinators: impl Iterator<Item = NodeId>) -> Arc<Self> {
        Arc::new(Self {
            seed,
            counts: Counts::default(),
            sizes: WatchSizes::default(),
            log: LogCount::default(),
            observer: Observer::default(),
            leader: AtomicU64::new(0),
            places: coordinators.map(|id| (id, Place::default())).collect(),
        })
    }

    /// Returns the place of a coordinator.
    pub(super) fn place(&self, node: NodeId) -> &Place {
        &self.places[&node]
    }

    /// Returns a running coordinator; an error if it does not run.
    pub(super) fn coordinator(&self, node: NodeId) -> Result<Arc<Coordinator>> {
        let service = self.place(node).service.get().cloned();
        service.ok_or_else(|| Error::unavailable(format!("coordinator {node} does not run yet")))
    }

    /// Sets the leader, by its node id.
    pub fn set_leader(&self, leader: NodeId) {
        self.leader.store(leader.0, Ordering::Relaxed);
    }

    /// True if the process leads.
    pub fn leads(&self, node: NodeId) -> bool {
        self.leader.load(Ordering::Relaxed) == node.0
    }

    fn party(&self, end: End) -> Party {
        match end.role {
            Role::Coordinator if self.leads(end.node) => Party::Leader,
            Role::Coordinator => Party::Follower,
            Role::Projector => Party::Projector,
            Role::Indexer => Party::Indexer,
            Role::Router => Party::Router,
        }
    }

    /// Returns the time that a message takes between two processes: 1 or 2 ms, since the simulated
    /// clock counts whole milliseconds.
    pub fn delay(&self, one: NodeId, other: NodeId) -> Duration {
        let link = (one.0.min(other.0), one.0.max(other.0));
        let drawn = fastrand::Rng::with_seed(self.seed ^ link.0 << 32 ^ link.1).u64(1..=2);
        Duration::from_millis(drawn)
    }

    /// Counts a message.
    pub fn count(&self, from: End, to: End, kind: Kind, bytes: u64) {
        self.counts.add(self.party(from), self.party(to), kind, bytes);
    }

    /// Counts a message and waits until it arrives.
    pub async fn send(&self, from: End, to: End, kind: Kind, bytes: u64) {
        self.count(from, to, kind, bytes);
        tokio::time::sleep(self.delay(from.node, to.node)).await;
    }

    /// Sends a request of a known size, runs `run` at the receiver, and sends the answer.
    pub async fn call<T: Serialize>(
        &self,
        (from, to): (End, End),
        (asks, answers): (Kind, Kind),
        request_bytes: u64,
        run: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        self.send(from, to, asks, request_bytes).await;
        let answer = run.await;
        self.send(to, from, answers, size(&answer)).await;
        answer
    }
}
