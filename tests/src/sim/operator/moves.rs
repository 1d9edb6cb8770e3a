//! Moves in the simulation: slices move between nodes under faults, and at the end all copies of a slice must be equal.

use std::time::Duration;

use proto::model::ids::{Epoch, LocalIndexId, NodeId, SliceNo};
use proto::model::index::{IndexInfo, IndexState};
use proto::model::moves::{MoveStage, PlannedMove};
use proto::model::node::Role;
use proto::model::topology::TopologyProvider;
use proto::rpc::command::{CancelMoves, Command, DrainNode, SetReplicas, StartMoves};
use tokio::time::{Instant, sleep, timeout};

use crate::sim::client::session::Session;
use crate::sim::client::workload::STATEMENT;
use crate::sim::{Shared, violation};

/// The time limit after the faults until all moves must end.
const SETTLE: Duration = Duration::from_secs(90);

/// Starts a move, or requests one from the coordinator.
pub(in crate::sim) async fn step(random: &mut fastrand::Rng, session: &Session, summary: &Shared) {
    let catalog = session.router.catalog();
    let indexers: Vec<NodeId> = catalog
        .nodes
        .values()
        .filter(|node| node.role == Role::Indexer)
        .map(|node| node.id)
        .collect();
    let serving = |index: &&std::sync::Arc<IndexInfo>| index.state == IndexState::Maintenance;
    let indexes: Vec<_> = catalog.indexes.values().filter(serving).collect();
    if indexers.is_empty() || indexes.is_empty() {
        return;
    }
    let node = indexers[random.usize(..indexers.len())];
    let index = indexes[random.usize(..indexes.len())];
    let command = match random.u8(..12) {
        0 => {
            let _ = match random.bool() {
                true => timeout(STATEMENT, session.backend.plan_rebalance(None)).await,
                false => timeout(STATEMENT, session.backend.rebalance(None)).await,
            };
            return;
        }
        1 => Command::CancelMoves(CancelMoves { index: random.bool().then_some(index.id) }),
        2 => Command::DrainNode(DrainNode { node, drain: true }),
        3 => Command::DrainNode(DrainNode { node, drain: false }),
        4 => Command::SetReplicas(SetReplicas { index: index.id, replicas: random.u8(0..2) }),
        _ => {
            let slice = SliceNo(random.u16(..index.topology.slices()));
            Command::StartMoves(StartMoves {
                moves: vec![PlannedMove {
                    index: index.id,
                    generation: index.generation,
                    slice,
                    from: index.topology.replicas(slice).first().copied(),
                    to: Some(node),
                    reason: "by chance".into(),
                }],
            })
        }
    };
    if matches!(command, Command::DrainNode(DrainNode { drain: true, .. })) {
        summary.lock().expect("not poisoned").drains_asked += 1;
    }
    // Many of these requests are invalid and refused.
    if let Ok(Ok(_)) = timeout(STATEMENT, session.backend.command(command.into())).await {
        summary.lock().expect("not poisoned").moves_asked += 1;
    }
}

/// Stops all drains, since a cluster with all indexers drained has no room for an index.
pub(in crate::sim) async fn stop_draining(session: &Session) {
    loop {
        let draining = session.router.catalog().draining.clone();
        if draining.is_empty() {
            return;
        }
        for node in draining {
            let _ = session.backend.command(DrainNode { node, drain: false }.into()).await;
        }
        sleep(Duration::from_millis(200)).await;
    }
}

/// Checks after the faults: the moves end, and the copies agree.
pub(in crate::sim) async fn settle(session: &Session, summary: &Shared) {
    let deadline = Instant::now() + SETTLE;
    loop {
        let catalog = session.router.catalog();
        let under_way: Vec<_> = catalog
            .indexes
            .values()
            .flat_map(|index| index.moves.iter().filter(|m| m.stage < MoveStage::Done))
            .collect();
        if under_way.is_empty() {
            break;
        }
        if Instant::now() > deadline {
            let told = session.backend.status().await.map(|status| {
                let of_node =
                    |node: proto::rpc::api::NodeStatus| (node.node, node.silent_ms, node.moves);
                status.nodes.into_iter().map(of_node).collect::<Vec<_>>()
            });
            violation(summary, format!("moves do not end: {under_way:?}; {told:?}"));
            break;
        }
        sleep(Duration::from_millis(200)).await;
    }
    let catalog = session.router.catalog();
    for ended in &catalog.ended_moves {
        match &ended.undone {
            None => summary.lock().expect("not poisoned").moves_ended += 1,
            Some(why) if why.contains("checksum") => {
                violation(summary, format!("the ends of {:?} differ: {why}", ended.was));
            }
            Some(_) => summary.lock().expect("not poisoned").moves_undone += 1,
        }
    }
    for index in catalog.indexes.values().filter(|i| i.state == IndexState::Maintenance) {
        for slice in (0..index.topology.slices()).map(SliceNo) {
            compare_copies(session, summary, index.local_id(), slice, deadline).await;
        }
    }
}

/// Checks that all copies of a slice are equal at one epoch (I3). The leader may move the slice
/// meanwhile, so each attempt queries the nodes that have the slice in the present catalog.
async fn compare_copies(
    session: &Session,
    summary: &Shared,
    index: LocalIndexId,
    slice: SliceNo,
    deadline: Instant,
) {
    let mut last = String::new();
    while Instant::now() < deadline {
        let catalog = session.router.catalog();
        let Some(info) = catalog.local_index(index) else {
            last = format!("the catalog has no index {index}");
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (id, epoch) = (index.slice(slice), newest_epoch(session, info));
        let mut sums = Vec::new();
        for node in info.topology.replicas(slice) {
            let Some(node_info) = catalog.nodes.get(node) else { continue };
            let indexer = session.directory.indexer(node_info);
            match timeout(Duration::from_secs(2), indexer.checksum(id, epoch)).await {
                Ok(Ok(sum)) => sums.push((*node, sum)),
                Ok(Err(error)) => last = format!("node {node}: {error}"),
                Err(_) => last = format!("node {node} does not answer"),
            }
        }
        if sums.len() == info.topology.replicas(slice).len() {
            if sums.windows(2).any(|two| two[0].1 != two[1].1) {
                let what = format!("the copies of slice {id} differ at epoch {epoch}: {sums:?}");
                violation(summary, what);
            }
            summary.lock().expect("not poisoned").copies_compared += sums.len() as u64;
            return;
        }
        sleep(Duration::from_millis(100)).await;
    }
    let slice = index.slice(slice);
    violation(summary, format!("the copies of slice {slice} cannot be compared: {last}"));
}

fn newest_epoch(session: &Session, index: &IndexInfo) -> Epoch {
    let marks = session.marks.lock().expect("not poisoned");
    let of_bucket = marks.keys().filter(|(bucket, _)| *bucket == index.bucket);
    of_bucket.map(|(_, epoch)| *epoch).max().unwrap_or_default()
}
