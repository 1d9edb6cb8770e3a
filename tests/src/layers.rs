//! One function that runs any layer of the simulation with a seed and returns a summary.
//!
//! | layer | what runs |
//! |---|---|
//! | `full` | the whole cluster with its real transport ([`crate::sim`]) |
//! | `cores` | all decisions, without I/O, thousands of times faster than real time ([`crate::cores`]) |
//! | `vscan` | a case of virtual scans ([`crate::vscan`]) |
//! | `store` | the slice store: histories, crashes at their file operations, moves and rollbacks ([`crate::slice_store`]) |
//! | `raft` | the coordinators' Raft core ([`crate::raft`]) |

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::sim::Summary;
use crate::slice_store::chain;
use crate::slice_store::crash::{self, Fault};
use crate::slice_store::plan::Plan;
use crate::slice_store::simulated_time;
use crate::slice_store::transfer::MoveRun;
use crate::{cores, raft, sim, vscan};

/// The number of file operations in a storage engine's history at which the machine crashes.
const CRASHES: u64 = 30;
/// The number of crashes in a history whose blocking work is interrupted.
const INTERLEAVED_CRASHES: u64 = 10;
/// The number of steps of the Raft core during which faults occur.
const RAFT_STEPS: usize = 4_000;

/// A layer of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Layer {
    /// The whole cluster
    Full,
    /// All decisions, without I/O
    Cores,
    /// A case of virtual scans
    Vscan,
    /// The slice store
    Store,
    /// The Raft core
    Raft,
}

/// Runs a seed in a layer; `seconds` are the simulated seconds of faults in layers with time. A
/// panic counts as a violation: services and checkers report broken assumptions by panics.
pub fn run(layer: Layer, seed: u64, seconds: u64) -> Summary {
    let mut summary = Summary { seed, ..Summary::default() };
    let ran = catch_unwind(AssertUnwindSafe(|| match layer {
        Layer::Full => Ok(sim::run(seed, seconds)),
        Layer::Cores => Ok(cores::run(seed, seconds).summary),
        Layer::Vscan => run_vscan(seed),
        Layer::Store => run_store(seed),
        Layer::Raft => Ok(run_raft(seed)),
    }));
    match ran {
        Ok(Ok(ran)) => summary = ran,
        Ok(Err(violation)) => summary.violations.push(violation),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            summary.violations.push(format!("a panic: {}", text.unwrap_or_default()));
        }
    }
    summary
}

fn run_vscan(seed: u64) -> Result<Summary, String> {
    let case = vscan::generate::generate(seed);
    let outcome = vscan::play::play(&case, seed);
    match case.judge(&outcome) {
        Some(violation) => Err(violation),
        None => {
            let entries = outcome.rows.len() as u64;
            Ok(Summary { seed, scans: 1, entries, ..Summary::default() })
        }
    }
}

fn run_store(seed: u64) -> Result<Summary, String> {
    crash::run(&Plan::of(seed))?;
    let interleaved = crash::run(&Plan::of(seed).interleaved())?;
    let workload = Plan::workload(seed);
    let crashes = crash::sweep(&workload, Fault::Crash, CRASHES)?.runs
        + crash::sweep(&workload.interleaved(), Fault::Crash, INTERLEAVED_CRASHES)?.runs;
    let moved = simulated_time()?.block_on(async {
        let mut story = MoveRun::new(seed).await;
        story.run().await?;
        let compared = story.compared;
        drop(story);
        let mut story = MoveRun::interleaved(seed).await;
        story.run().await.map_err(|error| format!("interleaved: {error}"))?;
        Ok::<_, String>(compared + story.compared)
    })?;
    let mut chained = chain::run(seed, false)?;
    chained += chain::run(seed, true)?;
    let mut summary = Summary { seed, scans: moved + chained.compared, ..Summary::default() };
    summary.faults.insert("crash".into(), crashes + chained.crashes);
    for (effect, count) in [
        ("interrupted", interleaved.interrupted),
        ("moved", chained.moves),
        ("moved on", chained.moves_on),
        ("rolled back", chained.rollbacks),
        ("dead epoch refused", chained.refused),
    ] {
        summary.faults.insert(effect.into(), count);
    }
    Ok(summary)
}

fn run_raft(seed: u64) -> Summary {
    let world = raft::run(seed, RAFT_STEPS);
    Summary { seed, ddl: world.acknowledged.len() as u64, ..Summary::default() }
}
