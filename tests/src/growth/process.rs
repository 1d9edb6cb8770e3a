//! The parts of a simulated process.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use proto::Result;
use proto::client::NodeIdentity;
use proto::env::sim::{InlineSpawner, SimFs};
use proto::env::{Clock, Env, real::SeededRandom};
use proto::model::ids::NodeId;
use proto::model::node::{NodeInfo, Role};
use tokio::time::Instant;

/// The time at which processes start, in milliseconds since 1970.
const START_UNIX_MS: u64 = 1_704_067_200_000;

/// A clock that follows the paused time of the runtime.
struct RuntimeClock(Instant);

impl Clock for RuntimeClock {
    fn unix_ms(&self) -> u64 {
        START_UNIX_MS + self.0.elapsed().as_millis() as u64
    }
}

/// Returns the environment of a process on an empty disk.
pub fn env_of(seed: u64, node: NodeId) -> Env {
    let seed = seed ^ node.0 << 32;
    Env {
        clock: Arc::new(RuntimeClock(Instant::now())),
        random: Arc::new(SeededRandom::new(seed)),
        fs: Arc::new(SimFs::new(seed)),
        spawner: Arc::new(InlineSpawner),
    }
}

/// Returns a node without an address, since the network finds processes by number.
pub fn node_of(id: u64, role: Role) -> NodeInfo {
    NodeInfo {
        id: NodeId(id),
        role,
        // The address is as long as a real one.
        address: format!("{}-{id}.sextant.internal:7{:03}", role.name(), id % 1_000),
        zone: format!("zone-{}", id % 3),
    }
}

/// Returns the identity of a new data directory.
pub fn identity_of(env: &Env, node: &NodeInfo) -> Result<Arc<NodeIdentity>> {
    let dir = PathBuf::from("/data");
    proto::env::create_dir_durably(&*env.fs, &dir)?;
    Ok(Arc::new(NodeIdentity::open(env, dir, node, false)?))
}

/// The processes of one role, by number.
pub type Processes<T> = BTreeMap<NodeId, Arc<T>>;
