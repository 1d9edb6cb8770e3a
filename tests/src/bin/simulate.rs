//! Runs seeds of the simulation, one process each.
//!
//! `simulate --seed N` runs one seed and prints its summary as a JSON line; without `--seed` it runs
//! `--seeds` of them in child processes, from `--start-seed` on, and ends with 1 if any found a
//! violation, with the command that replays it.
#![allow(clippy::disallowed_methods, reason = "a tool that runs processes and measures real time")]

use std::process::{Command, ExitCode};
use std::time::Instant;

use clap::Parser;
use tests::sim::run;

#[derive(Parser)]
struct Args {
    /// Run this seed, in this process
    #[arg(long)]
    seed: Option<u64>,
    /// How many seeds to run
    #[arg(long, default_value_t = 20)]
    seeds: u64,
    /// The first of them
    #[arg(long, default_value_t = 1)]
    start_seed: u64,
    /// Simulated seconds of faults in each
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Print JSON lines only
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match args.seed {
        Some(seed) => one(seed, args.seconds),
        None => many(&args),
    }
}

fn one(seed: u64, seconds: u64) -> ExitCode {
    if let Ok(filter) = std::env::var("SEXTANT_LOG") {
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    }
    let summary = run(seed, seconds);
    println!("{}", serde_json::to_string(&summary).expect("a summary is JSON"));
    ExitCode::from(u8::from(!summary.violations.is_empty()))
}

fn many(args: &Args) -> ExitCode {
    let begun = Instant::now();
    let (mut failed, mut simulated_ms, mut scans, mut entries) = (0, 0, 0, 0u64);
    for seed in args.start_seed..args.start_seed + args.seeds {
        let program = std::env::current_exe().expect("the path of this program");
        let output = Command::new(program)
            .args(["--seed", &seed.to_string(), "--seconds", &args.seconds.to_string()])
            .output()
            .expect("running a seed");
        let line = String::from_utf8_lossy(&output.stdout);
        if let Ok(summary) = serde_json::from_str::<serde_json::Value>(&line) {
            let field = |name: &str| summary[name].as_u64().unwrap_or_default();
            simulated_ms += field("simulated_ms");
            scans += field("scans");
            entries += field("entries");
        }
        if !output.status.success() {
            failed += 1;
            println!("{}{}", line, String::from_utf8_lossy(&output.stderr));
            println!(
                "seed {seed} failed; replay: simulate --seed {seed} --seconds {}",
                args.seconds
            );
        }
    }
    let real_s = begun.elapsed().as_secs_f64();
    let simulated_s = simulated_ms as f64 / 1000.0;
    let seeds = args.seeds;
    if args.json {
        let line = serde_json::json!({ "seeds": seeds, "failed": failed, "simulated_s": simulated_s,
            "real_s": real_s, "scans": scans, "entries": entries });
        println!("{line}");
    } else {
        println!(
            "{seeds} seeds, {failed} failed; {simulated_s:.0} s simulated in {real_s:.0} s \
             ({:.0} ×); {scans} scans judged, {entries} entries compared",
            simulated_s / real_s
        );
    }
    ExitCode::from(u8::from(failed > 0))
}
