//! The simulation: the whole cluster (three coordinators, three indexers, one to three projectors,
//! a router) with its real transport, in one thread, from one seed, under crashes, restarts from
//! synced data, and cut connections. A model that shares no code with the product judges every
//! scan.
//!
//! Checked for each seed: each scan shows exactly the entries of its epoch, in order (I1, I3, I4);
//! the source's log has exactly the client's writes, and keeps acknowledged ones (`statements`,
//! I7); a bucket with copies shows everything acknowledged whichever copy leads (`copied`,
//! `bucket_copies`); the store of each projector has at each opening what it must have
//! (`documents`); reads by id return the documents; no epoch splits a statement (I1); transactions
//! see one epoch and their own changes (`transactions`), and commits over two buckets are whole
//! (`transactions::pair`); versions of a data set are shown whole, and no reader returns to an
//! older one (`data_sets`); an index serves when all of its slices can be read (`checks`);
//! cancelled builds leave nothing (`ranges`); texts of several SQL statements are executed
//! completely or not at all, and sessions do not read older data again (`sql_sessions`); the number
//! of slices does not exceed what the live bytes need (`outgrown`); DDL is linearizable (`ddl`);
//! each term of the coordinators has one leader, and their logs agree; the files of indexers and
//! projectors are intact; and after the faults the cluster serves again within a bounded time.
//!
//! In half of the seeds blocking work runs in steps, between which simulated time passes
//! ([`proto::env::sim::Interleaving`]).
//!
//! One seed is one process, because thread-locals and the address space influence a run.

mod checks;
pub mod client;
pub mod cluster;
mod data_sets;
mod documents;
pub mod effects;
mod faults;
pub mod judge;
mod operator;
mod outgrown;
mod producer;
mod ranges;
mod scans;
mod sql_sessions;
mod summary;
mod tenant;
mod transactions;

use std::sync::{Arc, Mutex};
use std::time::Duration;

pub use summary::{Summary, Total};

use proto::env::sim::{Interleaving, PaceOdds};

use client::workload::Workload;
use cluster::hosts::Hosts;
use faults::Faults;

/// The simulated time before the faults begin, and after they end.
const CALM: Duration = Duration::from_secs(5);

/// The interruptions of blocking work. A slow flush takes several epochs with writes, of which
/// there are a few per second.
const PACES: PaceOdds = PaceOdds { whole_one_in: 2, slow_one_in: 4, slow_ms_max: 400 };

/// The simulated time for everything except the faults. It exceeds the sum of the time limits of
/// all later checks, because a failed check reports what is missing.
const CHECKS_MAX: Duration = Duration::from_secs(300);

/// The interval at which processes are polled and messages delivered, which dominates the cost of a
/// run.
const TICK: Duration = Duration::from_millis(2);
/// The maximum latency of a message without faults.
const LATENCY_MAX: Duration = Duration::from_millis(5);

/// True if blocking work is interleaved in this seed; otherwise it runs without interruption.
fn is_interleaved(seed: u64) -> bool {
    seed % 16 >= 8
}

/// The summary, shared by the workload and the driver.
pub type Shared = Arc<Mutex<Summary>>;

/// Runs one seed.
pub fn run(seed: u64, seconds: u64) -> Summary {
    let mut hosts = Hosts::new(seed);
    if seed % 2 == 1 {
        hosts = hosts.without_moved_sources();
    }
    let interleaving = is_interleaved(seed).then(|| Interleaving::new(seed, PACES));
    if let Some(interleaving) = &interleaving {
        hosts = hosts.interleaved(interleaving);
    }
    let summary: Shared = Arc::new(Mutex::new(Summary { seed, ..Summary::default() }));
    let mut sim = turmoil::Builder::new()
        .rng_seed(seed)
        .simulation_duration(Duration::from_secs(seconds) + CHECKS_MAX)
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
        let step = sim.step();
        if let Some(panic) = interleaving.as_ref().and_then(Interleaving::take_panic) {
            violation(&summary, format!("blocking work {panic}"));
        }
        take_violations(&hosts, &summary);
        match step {
            Ok(true) => break,
            // Later events prove nothing after a violation.
            Ok(false) if is_violated(&summary) => break,
            Ok(false) => faults.drive(&mut sim, &hosts, &summary),
            Err(error) => {
                violation(&summary, format!("the run ended with: {error}"));
                break;
            }
        }
    }
    let simulated_ms = sim.elapsed().as_millis() as u64;
    count_struck(&hosts, &summary);
    // The machines go down first, because the end of a process writes nothing.
    hosts.all.values().for_each(|host| host.fs.crash());
    drop(sim);
    if let Some(interleaving) = interleaving {
        if let Some(panic) = interleaving.take_panic() {
            violation(&summary, format!("the end of a process: blocking work {panic}"));
        }
        summary.lock().expect("not poisoned").interleaved(interleaving.counts());
    }
    if !is_violated(&summary) {
        checks::check_disks(&hosts, &summary);
        ranges::check_cancelled(&hosts, &summary);
        take_violations(&hosts, &summary);
    }
    count_compared(&hosts, &summary);
    let mut summary = summary.lock().expect("not poisoned").clone();
    summary.simulated_ms = simulated_ms;
    summary
}

/// Counts the disk faults that had an effect; an armed fault may meet no operation.
fn count_struck(hosts: &Hosts, summary: &Shared) {
    let mut summary = summary.lock().expect("not poisoned");
    for host in hosts.all.values() {
        let struck = host.fs.occurred_faults();
        let kinds = [
            ("failed operation", struck.failed),
            ("full disk", struck.full),
            ("crash in an operation", struck.crashed),
        ];
        for (kind, count) in kinds {
            *summary.struck.entry(kind.to_owned()).or_default() += count;
        }
    }
}

/// Moves the violations of the projectors' mirrors into the summary.
fn take_violations(hosts: &Hosts, summary: &Shared) {
    for host in hosts.all.values() {
        for what in host.documents.take_violations() {
            violation(summary, format!("{}: {what}", host.name));
        }
    }
}

/// Adds the counts of the comparisons of documents to the summary.
fn count_compared(hosts: &Hosts, summary: &Shared) {
    let mut summary = summary.lock().expect("not poisoned");
    for (name, count) in hosts.all.values().flat_map(|host| host.documents.counts()) {
        *summary.documents.entry(name.to_owned()).or_default() += count;
    }
}

fn is_violated(summary: &Shared) -> bool {
    !summary.lock().expect("not poisoned").violations.is_empty()
}

/// Records a violation.
pub fn violation(summary: &Shared, what: String) {
    summary.lock().expect("not poisoned").violations.push(what);
}
