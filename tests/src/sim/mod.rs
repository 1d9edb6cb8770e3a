//! The simulation: the whole cluster (three coordinators, three indexers, one projector or two, a router) with
//! its real transport, in one thread, from one seed; with crashes, restarts from what was synced, and
//! cut connections; every scan judged by a model that shares no code with the product.
//!
//! What it proves, for the seeds that ran: each scan shows exactly the entries of its epoch, in order
//! (I1, I3, I4); what was acknowledged is in the source's history, and stays (I7); no epoch splits a
//! statement (I1); DDL is linearizable (`ddl`); a term of the coordinators has one leader and their logs
//! agree; what indexers have on disk is whole; and after the faults stop, the cluster serves again within a
//! bounded time.
//!
//! One seed is one process: thread-locals and address space are part of what a seed decides.

mod checks;
pub mod client;
mod ddl;
mod disks;
mod faults;
mod hand_overs;
pub mod hosts;
mod marks;
mod moves;
pub mod net;
pub mod oracle;
mod producer;
mod scans;
mod stages;
mod summary;
pub mod truth;
pub mod workload;
mod writes;

use std::sync::{Arc, Mutex};
use std::time::Duration;

pub use summary::{Summary, Total};

use faults::Faults;
use hosts::Hosts;
use workload::Workload;

/// Simulated time before the faults begin and after they end.
const CALM: Duration = Duration::from_secs(5);

/// Processes are polled, and messages delivered, this often: most of what a run costs.
const TICK: Duration = Duration::from_millis(2);
/// The longest that a message takes while nothing is slow.
const LATENCY_MAX: Duration = Duration::from_millis(5);

/// What the workload and the driver share.
pub type Shared = Arc<Mutex<Summary>>;

/// Runs one seed.
pub fn run(seed: u64, seconds: u64) -> Summary {
    let mut hosts = Hosts::new(seed);
    if seed % 2 == 1 {
        hosts = hosts.without_moved_sources();
    }
    let summary: Shared = Arc::new(Mutex::new(Summary { seed, ..Summary::default() }));
    let mut sim = turmoil::Builder::new()
        .rng_seed(seed)
        .simulation_duration(CALM * 20 + Duration::from_secs(seconds))
        .tick_duration(TICK)
        .min_message_latency(Duration::from_micros(200))
        .max_message_latency(LATENCY_MAX)
        .tcp_capacity(4096)
        .build();
    for host in hosts.all.values() {
        let host = host.clone();
        sim.host(host.name.clone(), move || host.clone().run());
    }
    let work = Workload::new(seed, Duration::from_secs(seconds), &hosts, summary.clone());
    sim.client("client", work.run());
    let mut faults = Faults::new(seed, seconds);
    loop {
        match sim.step() {
            Ok(true) => break,
            // What comes after a violation proves nothing.
            Ok(false) if is_violated(&summary) => break,
            Ok(false) => faults.drive(&mut sim, &hosts, &summary),
            Err(error) => {
                violation(&summary, format!("the run ended with: {error}"));
                break;
            }
        }
    }
    let simulated_ms = sim.elapsed().as_millis() as u64;
    drop(sim);
    if !is_violated(&summary) {
        checks::check_disks(&hosts, &summary);
    }
    let mut summary = summary.lock().expect("not poisoned").clone();
    summary.simulated_ms = simulated_ms;
    summary
}

fn is_violated(summary: &Shared) -> bool {
    !summary.lock().expect("not poisoned").violations.is_empty()
}

/// Something that must not be.
pub fn violation(summary: &Shared, what: String) {
    summary.lock().expect("not poisoned").violations.push(what);
}
