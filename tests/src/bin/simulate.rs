//! The program that runs seeds of the simulation, each in its own process; seeds of the cores share
//! one process.
//!
//! `simulate --seed N` runs one seed and prints its summary as a JSON line. Without `--seed` it
//! runs `--seeds` seeds from `--start-seed` on in child processes, prints the command that replays
//! each violation, and ends with status 1 if there was any. `--layer` chooses the layer. `--plant`
//! switches on a known bug, to prove that it is found (`--list-plants` names them; needs a build
//! with `--features plants`).
//!
//! `simulate control-plane` measures the traffic of the coordinators as a cluster grows
//! ([`tests::growth`]).
#![allow(clippy::disallowed_methods, reason = "a tool that runs processes and measures real time")]

use std::process::{Command, ExitCode, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clap::{Parser, Subcommand, ValueEnum};
use proto::plant::PLANTS;
use tests::growth::command::ControlPlane;
use tests::layers::{self, Layer};
use tests::sim::effects::Effects;
use tests::sim::{Summary, Total};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer as _};

#[derive(Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Args {
    #[command(subcommand)]
    measure: Option<Measure>,
    /// Run this seed, in this process
    #[arg(long)]
    seed: Option<u64>,
    /// Number of seeds to run
    #[arg(long, default_value_t = 20)]
    seeds: u64,
    /// First seed
    #[arg(long, default_value_t = 1)]
    start_seed: u64,
    /// Simulated seconds of faults in each
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Layer to run
    #[arg(long, value_enum, default_value_t = Layer::Full)]
    layer: Layer,
    /// Switch on a known bug
    #[arg(long)]
    plant: Option<String>,
    /// List the known bugs
    #[arg(long)]
    list_plants: bool,
    /// Stop after the first seed that finds a violation
    #[arg(long)]
    first: bool,
    /// Number of concurrent processes; by default the number of processors
    #[arg(long)]
    jobs: Option<usize>,
    /// Print JSON lines only
    #[arg(long)]
    json: bool,
}

/// The allocator of the product's binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Subcommand)]
enum Measure {
    ControlPlane(ControlPlane),
}

fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(Measure::ControlPlane(command)) = &args.measure {
        return command.run();
    }
    if args.list_plants {
        PLANTS.iter().for_each(|(_, name, what)| println!("{name:26} {what}"));
        return ExitCode::SUCCESS;
    }
    if let Err(error) = args.plant.as_deref().map_or(Ok(()), switch_in) {
        eprintln!("{error}");
        return ExitCode::from(2);
    }
    match args.seed {
        Some(seed) => one(&args, seed),
        None => many(&args),
    }
}

#[cfg(feature = "plants")]
fn switch_in(name: &str) -> Result<(), String> {
    let plant = proto::plant::named(name);
    let plant = plant.ok_or(format!("there is no plant {name:?}; --list-plants names them"))?;
    proto::plant::switch_in(plant);
    Ok(())
}

#[cfg(not(feature = "plants"))]
fn switch_in(name: &str) -> Result<(), String> {
    Err(format!("{name}: this program has no plants; build it with `--features plants`"))
}

fn one(args: &Args, seed: u64) -> ExitCode {
    let effects = Effects::of_process();
    let registry = tracing_subscriber::registry();
    match std::env::var("SEXTANT_LOG") {
        Ok(filter) => {
            let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
            let lines = lines.with_filter(EnvFilter::new(filter));
            registry.with(lines).with(effects.clone().with_filter(Effects::filter())).init();
        }
        // A layer that is absent enables the spans of all crates.
        Err(_) => registry.with(effects.clone().with_filter(Effects::filter())).init(),
    }
    let mut summary = layers::run(args.layer, seed, args.seconds);
    summary.effects = effects.counts();
    println!("{}", serde_json::to_string(&summary).expect("a summary is JSON"));
    ExitCode::from(u8::from(!summary.violations.is_empty()))
}

fn many(args: &Args) -> ExitCode {
    let begun = Instant::now();
    let (next, end) = (AtomicU64::new(args.start_seed), args.start_seed + args.seeds);
    let total = Mutex::new(Total::default());
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..args.jobs.unwrap_or(processors).max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    let (summary, failure) = run_seed(args, seed);
                    let mut total = total.lock().expect("not poisoned");
                    total.add(&summary);
                    if let Some(failure) = failure {
                        total.failed += 1;
                        println!("{failure}");
                        println!(
                            "seed {seed} failed; replay: simulate {}",
                            arguments(args, seed).join(" ")
                        );
                        if args.first {
                            next.store(end, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    let mut total = total.into_inner().expect("not poisoned");
    total.real_s = begun.elapsed().as_secs_f64();
    match args.json {
        true => println!("{}", serde_json::to_string(&total).expect("a summary is JSON")),
        false => print!("{total}"),
    }
    ExitCode::from(u8::from(total.failed > 0))
}

/// Runs a seed; returns its summary, and its output if it found a violation. A seed of the cores
/// takes less time than the start of a process and shares no state with other seeds, so it runs in
/// this process.
fn run_seed(args: &Args, seed: u64) -> (Summary, Option<String>) {
    if args.layer == Layer::Cores {
        let summary = layers::run(args.layer, seed, args.seconds);
        let failed = !summary.violations.is_empty();
        let line = serde_json::to_string(&summary).expect("a summary is JSON");
        return (summary, failed.then_some(line));
    }
    let output = child(args, seed);
    let line = String::from_utf8_lossy(&output.stdout);
    let summary = serde_json::from_str(&line).unwrap_or_default();
    let errors = String::from_utf8_lossy(&output.stderr);
    (summary, (!output.status.success()).then(|| format!("{line}{errors}")))
}

fn arguments(args: &Args, seed: u64) -> Vec<String> {
    let layer = args.layer.to_possible_value().expect("all layers have names");
    let mut arguments = vec!["--layer".to_owned(), layer.get_name().to_owned()];
    arguments.extend(["--seed".to_owned(), seed.to_string()]);
    arguments.extend(["--seconds".to_owned(), args.seconds.to_string()]);
    if let Some(plant) = &args.plant {
        arguments.extend(["--plant".to_owned(), plant.clone()]);
    }
    arguments
}

fn child(args: &Args, seed: u64) -> Output {
    let program = std::env::current_exe().expect("the path of this program");
    Command::new(program).args(arguments(args, seed)).output().expect("running a seed")
}
