//! Runs a cluster of real processes under faults for minutes and compares every scan with a model.
#![allow(clippy::disallowed_methods, reason = "a tool that runs processes in real time")]

use std::fmt::Display;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use serde::Serialize;
use sextant::cli::stop_signal;
use tests::chaos::cluster::{INDEXERS, TOOL};
use tests::chaos::member::MEMBER;
use tests::chaos::restart::measure;
use tests::chaos::{Options, run};
use tracing_subscriber::EnvFilter;

/// The allocator of the product's binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Run a cluster of real processes under faults and compare every scan with a model.
///
/// Three coordinators, two projectors, four indexers and two routers run as processes on loopback addresses. Writers
/// and scanners use them over SQL and gRPC, and an operator creates and drops indexes, moves slices and hands vbuckets
/// over. Meanwhile members are killed with kill -9, restarted, frozen with SIGSTOP and cut off, and their disks are
/// filled (three members have a small tmpfs if this user may mount one; otherwise the output says so). Every 25 seconds
/// all faults end, the cluster must be whole within a minute, everything is compared, and the leading coordinator alone
/// is killed to measure how long DDL waits.
///
/// The exit status is 0 if no entry was lost, doubled, torn or invented, and 1 otherwise; then the data and the logs of
/// all members are kept.
#[derive(Parser)]
#[command(name = "chaos")]
struct Args {
    /// Minutes of faults; 0.5 is half a minute
    #[arg(long, default_value_t = 1.0, value_parser = minutes)]
    minutes: f64,
    /// Seed of the faults and the workload; the timing is real
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Instead, load this many documents into one indexer, kill it several times, and measure the time until it answers
    #[arg(long, value_name = "ENTRIES", value_parser = clap::value_parser!(u64).range(1..))]
    restart: Option<u64>,
    /// Parent of the data directory, which is removed at the end; by default the system's temporary directory
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Print one JSON object instead of a summary
    #[arg(long)]
    json: bool,
    /// Print faults and refused requests on standard error
    #[arg(long, short)]
    verbose: bool,
}

fn minutes(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(minutes) if (0.0..=100_000.0).contains(&minutes) => Ok(minutes),
        _ => Err("a number of minutes, such as 10 or 0.5".into()),
    }
}

fn main() -> ExitCode {
    let mut arguments = std::env::args();
    let program = arguments.next().unwrap_or_default();
    match arguments.next().as_deref() {
        Some(MEMBER) => {
            end_with_standard_input();
            return product(std::iter::once(program).chain(arguments));
        }
        Some(TOOL) => return product(std::iter::once(program).chain(arguments)),
        _ => {}
    }
    let args = Args::parse();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let faults_for = Duration::from_secs_f64(args.minutes * 60.0);
    let Args { seed, dir, verbose, .. } = args;
    let options =
        Options { faults_for, seed, indexers: INDEXERS.to_vec(), small_disks: true, dir, verbose };
    runtime.block_on(async {
        tokio::select! {
            ended = work(options, args.restart, args.json) => ended,
            // Dropping the run ends the members and unmounts their disks.
            () = stop_signal() => ExitCode::FAILURE,
        }
    })
}

async fn work(options: Options, restart: Option<u64>, json: bool) -> ExitCode {
    match restart {
        None => {
            let report = run(options).await;
            print(json, &report, report.is_clean())
        }
        Some(entries) => match measure(entries, options).await {
            Ok(measured) => print(json, &measured, true),
            Err(error) => {
                eprintln!("chaos: {error}");
                ExitCode::FAILURE
            }
        },
    }
}

/// Prints the result.
fn print(json: bool, what: &(impl Serialize + Display), is_well: bool) -> ExitCode {
    match json {
        true => println!("{}", serde_json::to_string(what).expect("the report is JSON")),
        false => print!("{what}"),
    }
    ExitCode::from(u8::from(!is_well))
}

/// Runs a client command of the product in this process, so that it has the code of this build.
fn product(arguments: impl Iterator<Item = String>) -> ExitCode {
    let filter = EnvFilter::try_from_env("SEXTANT_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    sextant::cli::run(sextant::cli::Cli::parse_from(arguments))
}

/// Ends the process when its standard input closes, as happens when the program that started it
/// ends.
fn end_with_standard_input() {
    std::thread::spawn(|| {
        let _closed = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(0);
    });
}
