//! The measurement of the control plane's growth: the traffic of the coordinators by the size of
//! the cluster, without documents and entries.
//!
//! Real: three coordinators with their Raft log on simulated disks; the services' side of them,
//! which is the way to any member, the memberships, the followers of the catalog and the loop of
//! SYNC; a router. Models replace storage and streams: an indexer applies an epoch at once, a
//! projector makes up mutations and sends epochs to the indexers that follow its buckets.
//!
//! All processes run in one thread in simulated time, and call each other through a network
//! (`network`) that counts each message with its encoded size and delays it. The sizes leave out
//! HTTP/2 and gRPC, about 100 bytes for a message. A real transport below
//! (`crate::sim::cluster::net`) would copy some hundred megabytes in each simulated second of a
//! thousand indexers. The disks of the coordinators take no time.
//!
//! All processes call the leader first, since it is first in their list; this is the worst case for
//! the leader.
//!
//! | file | contents |
//! |---|---|
//! | `cluster` | the cluster, and the phases of a run |
//! | `coordinators`, `indexer`, `projector` | the processes |
//! | `process`, `peers` | what all processes have, and their way to the others |
//! | `network`, `counts`, `size` | the messages |
//! | `observer` | the times of epochs |
//! | `meter` | the processor time of the coordinators |
//! | `scale`, `figures`, `command` | settings, results, and `simulate control-plane` |

mod cluster;
pub mod command;
mod coordinators;
pub mod counts;
pub mod figures;
mod indexer;
mod meter;
mod network;
pub mod observer;
mod peers;
mod process;
mod projector;
pub mod scale;
mod size;

use figures::Figures;
use scale::Scale;

/// Starts and measures a cluster of this size.
///
/// # Errors
/// If the runtime cannot be started, a step of the cluster fails or does not end, or the leader
/// changes meanwhile.
pub fn run(scale: Scale) -> Result<Figures, String> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(cluster::measure(scale)).map_err(|error| error.to_string())
}
