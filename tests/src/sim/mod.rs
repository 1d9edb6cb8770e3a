//! The simulation: the whole cluster (three coordinators, three indexers, a projector, a router) with
//! its real transport, in one thread, from one seed; with crashes, restarts from what was synced, and
//! cut connections; every scan judged by a model that shares no code with the product.
//!
//! What it proves, for the seeds that ran: each scan shows exactly the entries of its epoch, in order
//! (I1, I3, I4); what was acknowledged is in the source's history, and stays (I7); a DDL statement
//! takes effect once; and after the faults stop, the cluster serves again within a bounded time.
//!
//! One seed is one process: thread-locals and address space are part of what a seed decides.

pub mod hosts;
mod moves;
pub mod net;
pub mod oracle;
pub mod workload;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Serialize;

use hosts::Hosts;
use workload::Workload;

/// Simulated time before the faults begin and after they end.
const CALM: Duration = Duration::from_secs(10);
/// How long a crashed process stays down, at most.
const DOWN_MS_MAX: u64 = 4_000;

/// What a run did and found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    /// The seed.
    pub seed: u64,
    /// Simulated milliseconds.
    pub simulated_ms: u64,
    /// Statements that wrote and were acknowledged.
    pub writes: u64,
    /// Statements whose outcome is not known.
    pub writes_unknown: u64,
    /// Scans judged.
    pub scans: u64,
    /// Entries compared.
    pub entries: u64,
    /// Scans that were refused or timed out while faults went on.
    pub scans_refused: u64,
    /// Indexes created or dropped.
    pub ddl: u64,
    /// Crashes.
    pub crashes: u64,
    /// Connections cut.
    pub partitions: u64,
    /// Statements about the places of slices that were accepted.
    pub moves_asked: u64,
    /// Moves that were carried out, of the last ones.
    pub moves_ended: u64,
    /// Moves that were undone, of the last ones.
    pub moves_undone: u64,
    /// Copies of slices that were compared with each other at the end.
    pub copies_compared: u64,
    /// What must not be.
    pub violations: Vec<String>,
}

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
        .tick_duration(Duration::from_millis(1))
        .min_message_latency(Duration::from_micros(200))
        .max_message_latency(Duration::from_millis(5))
        .tcp_capacity(4096)
        .build();
    for host in hosts.all.values() {
        let host = host.clone();
        sim.host(host.name.clone(), move || host.clone().run());
    }
    let work =
        Workload::new(seed, Duration::from_secs(seconds), hosts.store.clone(), summary.clone());
    sim.client("client", work.run());
    let mut faults = Faults::new(seed, seconds);
    loop {
        match sim.step() {
            Ok(true) => break,
            Ok(false) => faults.drive(&mut sim, &hosts, &summary),
            Err(error) => {
                violation(&summary, format!("the run ended with: {error}"));
                break;
            }
        }
    }
    let mut summary = summary.lock().expect("not poisoned").clone();
    summary.simulated_ms = sim.elapsed().as_millis() as u64;
    summary
}

/// Something that must not be.
pub fn violation(summary: &Shared, what: String) {
    summary.lock().expect("not poisoned").violations.push(what);
}

/// What breaks, and when: decided by the seed alone.
struct Faults {
    random: fastrand::Rng,
    until: Duration,
    next: Duration,
    /// Processes that are down, until when.
    down: Vec<(String, Duration)>,
    /// Pairs that are cut, until when.
    cut: Vec<(String, String, Duration)>,
}

impl Faults {
    fn new(seed: u64, seconds: u64) -> Self {
        Self {
            random: fastrand::Rng::with_seed(seed ^ 0xfa17),
            until: CALM + Duration::from_secs(seconds),
            next: CALM,
            down: Vec::new(),
            cut: Vec::new(),
        }
    }

    fn drive(&mut self, sim: &mut turmoil::Sim<'_>, hosts: &Hosts, summary: &Shared) {
        let now = sim.elapsed();
        self.mend(now, sim, hosts);
        if now < self.next || now > self.until {
            return;
        }
        self.next = now + Duration::from_millis(self.random.u64(500..4_000));
        let names: Vec<&String> = hosts.all.keys().collect();
        let name = names[self.random.usize(..names.len())].clone();
        let end = now + Duration::from_millis(self.random.u64(100..DOWN_MS_MAX));
        if self.random.bool() {
            if self.down.iter().any(|(down, _)| *down == name) {
                return;
            }
            let host = &hosts.all[&name];
            host.fs.crash();
            sim.crash(name.clone());
            if name == "projector" {
                hosts.store.lose_unsynced(self.random.bool());
            }
            self.down.push((name, end));
            summary.lock().expect("not poisoned").crashes += 1;
        } else {
            let other = names[self.random.usize(..names.len())].clone();
            if other == name || self.cut.iter().any(|(a, b, _)| (a, b) == (&name, &other)) {
                return;
            }
            sim.partition(name.clone(), other.clone());
            self.cut.push((name, other, end));
            summary.lock().expect("not poisoned").partitions += 1;
        }
    }

    fn mend(&mut self, now: Duration, sim: &mut turmoil::Sim<'_>, hosts: &Hosts) {
        self.down.retain(|(name, end)| {
            if *end > now {
                return true;
            }
            hosts.all[name].fs.restart();
            sim.bounce(name.clone());
            false
        });
        self.cut.retain(|(left, right, end)| {
            if *end > now {
                return true;
            }
            sim.repair(left.clone(), right.clone());
            false
        });
    }
}
