//! Indexers that an operator removes with REMOVE NODE, and starts again later: with their data,
//! which received no mutations in the meantime, or on an empty disk. Some are drained first, since
//! the removal of a slice's only copy is refused. In half of these seeds some indexers are down for
//! a long time and are removed with FORCE: others then rebuild the slices without another copy.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::model::ids::NodeId;
use proto::rpc::command::{Command, DrainNode, RemoveNode};
use tokio::time::{Instant, sleep, timeout};

use crate::sim::client::session::Session;
use crate::sim::client::workload::STATEMENT;
use crate::sim::cluster::hosts::INDEXERS;
use crate::sim::{Shared, violation};

/// The time limit for all indexers to be registered again.
const ALL_BACK: Duration = Duration::from_secs(30);

/// The time for which a lost indexer is down.
pub const LOST_FOR: Duration = Duration::from_secs(9);
/// The time after which the coordinators certainly take a crashed indexer for dead: they do so five
/// seconds after its last heartbeat, which is at most a second old at the crash.
const DEAD_BY_THEN: Duration = Duration::from_millis(4_500);

/// The removed indexers that will be started again.
#[derive(Default)]
pub struct Removals {
    waiting: Mutex<Vec<NodeId>>,
    /// The indexers that a fault must end for a long time.
    lost: Mutex<Vec<NodeId>>,
}

impl Removals {
    /// True if nodes are removed in the run of this seed.
    pub fn are_chosen(seed: u64) -> bool {
        seed % 8 == 4
    }

    /// Removes and returns the nodes that may be started again.
    pub fn take(&self) -> Vec<NodeId> {
        std::mem::take(&mut *self.waiting())
    }

    /// True if some of these nodes are down for a long time and then removed with FORCE.
    fn are_lost(seed: u64) -> bool {
        seed % 16 == 12
    }

    /// Removes and returns the nodes that a fault must end for a long time.
    pub fn take_lost(&self) -> Vec<NodeId> {
        std::mem::take(&mut *self.lost.lock().expect("not poisoned"))
    }

    /// Crashes a node, and removes it with FORCE while it is down. The removal of a node that has
    /// restarted is refused.
    async fn lose(&self, node: NodeId, session: &Session, summary: &Shared) {
        self.lost.lock().expect("not poisoned").push(node);
        let until = Instant::now() + LOST_FOR;
        sleep(DEAD_BY_THEN).await;
        while Instant::now() < until {
            if send(session, Command::RemoveNode(RemoveNode { node, force: true })).await {
                let mut summary = summary.lock().expect("not poisoned");
                summary.nodes_removed += 1;
                summary.nodes_forced += 1;
                drop(summary);
                return self.waiting().push(node);
            }
            sleep(Duration::from_millis(300)).await;
        }
    }

    /// Removes one node after another until the future is dropped.
    pub(in crate::sim) async fn run(
        self: Arc<Self>,
        (mut random, seed): (fastrand::Rng, u64),
        session: Session,
        summary: Shared,
    ) {
        loop {
            sleep(Duration::from_millis(random.u64(200..2_000))).await;
            let node = NodeId(INDEXERS[random.usize(..INDEXERS.len())]);
            if Self::are_lost(seed) && random.u8(..3) == 0 {
                self.lose(node, &session, &summary).await;
                self.add_missing(&session);
                continue;
            }
            // A removal leaves fewer nodes to place copies on, as a drain does.
            summary.lock().expect("not poisoned").drains_asked += 1;
            if random.bool() {
                let _ = send(&session, Command::DrainNode(DrainNode { node, drain: true })).await;
                sleep(Duration::from_millis(random.u64(500..3_000))).await;
            }
            if send(&session, Command::RemoveNode(RemoveNode { node, force: false })).await {
                summary.lock().expect("not poisoned").nodes_removed += 1;
                sleep(Duration::from_millis(random.u64(..4_000))).await;
                self.waiting().push(node);
            } else {
                let _ = send(&session, Command::DrainNode(DrainNode { node, drain: false })).await;
            }
            self.add_missing(&session);
        }
    }

    /// Waits after the faults until all indexers are in the catalog.
    pub(in crate::sim) async fn settle(&self, session: &Session, summary: &Shared) {
        let deadline = Instant::now() + ALL_BACK;
        while self.add_missing(session) {
            if Instant::now() > deadline {
                return violation(
                    summary,
                    "a removed node that was started again is missing".into(),
                );
            }
            // A start takes part of that time, and a node is started once for each time that it is found missing.
            sleep(Duration::from_secs(6)).await;
        }
    }

    /// Starts the nodes that are not in the catalog, for example because the answer to their
    /// removal was lost; true if there are any.
    fn add_missing(&self, session: &Session) -> bool {
        let catalog = session.router.catalog();
        let missing = INDEXERS.map(NodeId).into_iter().filter(|n| !catalog.nodes.contains_key(n));
        let missing: Vec<NodeId> = missing.collect();
        let mut waiting = self.waiting();
        let new = missing.iter().filter(|node| !waiting.contains(node)).copied();
        let new: Vec<NodeId> = new.collect();
        waiting.extend(new);
        !missing.is_empty()
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Vec<NodeId>> {
        self.waiting.lock().expect("not poisoned")
    }
}

/// Sends a command; false if it was refused or got no answer.
async fn send(session: &Session, command: Command) -> bool {
    matches!(timeout(STATEMENT, session.backend.command(command.into())).await, Ok(Ok(_)))
}
