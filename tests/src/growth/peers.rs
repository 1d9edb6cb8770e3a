//! The access of a process to the other processes.

use std::sync::Arc;

use proto::Error;
use proto::env::Env;
use proto::model::ids::NodeId;
use proto::model::node::NodeInfo;
use sextant::wire::Peers;

use super::coordinators::RemoteCoordinator;
use super::network::{End, Network};

/// Returns the real access to other services, over the counting network. The process calls the
/// first coordinator first, as real processes do.
pub fn peers_of(
    network: &Arc<Network>,
    node: &NodeInfo,
    coordinators: &[(NodeId, String)],
    env: &Env,
) -> Arc<Peers> {
    let connect = |target: &sextant::wire::PeerTarget| {
        let address = &target.address;
        Err(Error::internal(format!("{address} is outside of the simulated network")))
    };
    let peers = Peers::new(coordinators.to_vec(), Arc::new(connect), env);
    let from = End { node: node.id, role: node.role };
    for (id, _) in coordinators.iter().filter(|(id, _)| *id != node.id) {
        peers.add_coordinator(*id, Arc::new(RemoteCoordinator::new(network, from, *id)));
    }
    peers
}
