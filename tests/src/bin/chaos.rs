//! Breaks a cluster of real processes for minutes and compares every scan with a model.
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

/// As in the binary that users run.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Breaks a cluster of real processes on purpose and compares every scan with a model.
///
/// Three coordinators, two projectors, four indexers and two routers run as processes on loopback addresses.
/// Writers and scanners use them by SQL and gRPC, indexes are made and dropped, slices moved and vbuckets
/// handed over, while members are killed with kill -9, restarted, frozen with SIGSTOP, cut off, and their disks
/// filled (for that, three members have a small tmpfs, where this user may mount one; else the output says so).
/// Every 25 seconds all is mended, the cluster must be whole within a minute, everything is compared, and the
/// leading coordinator is killed alone to measure how long definitions wait.
///
/// The exit status is 0 when nothing was lost, doubled, torn or made up, and 1 otherwise; then the data
/// and the logs of all members are kept.
#[derive(Parser)]
#[command(name = "chaos")]
struct Args {
    /// For how many minutes members are broken; 0.5 is half a minute
    #[arg(long, default_value_t = 1.0, value_parser = minutes)]
    minutes: f64,
    /// Chooses what is broken and written; when it happens is real time
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Instead: load so many documents into one indexer, kill it some times, and measure until it answers
    #[arg(long, value_name = "ENTRIES", value_parser = clap::value_parser!(u64).range(1..))]
    restart: Option<u64>,
    /// Where the data goes, and is removed from; by default the system's place for such files
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Print one JSON object instead of a summary
    #[arg(long)]
    json: bool,
    /// Tell what is broken and what clients are refused, on standard error
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
            // What is dropped here ends the members and unmounts their disks.
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

/// Prints what came out.
fn print(json: bool, what: &(impl Serialize + Display), is_well: bool) -> ExitCode {
    match json {
        true => println!("{}", serde_json::to_string(what).expect("it is JSON")),
        false => print!("{what}"),
    }
    ExitCode::from(u8::from(!is_well))
}

/// Runs a command of the product in this process, which so has the code that it was built with.
fn product(arguments: impl Iterator<Item = String>) -> ExitCode {
    let filter = EnvFilter::try_from_env("SEXTANT_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let cli = sextant::cli::Cli::parse_from(arguments);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    match runtime.block_on(sextant::cli::run(cli)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!(
                "{}{}",
                error.message,
                error.hint.map(|h| format!("; {h}")).unwrap_or_default()
            );
            ExitCode::FAILURE
        }
    }
}

/// A member ends with the program that has started it, whatever ends that.
fn end_with_standard_input() {
    std::thread::spawn(|| {
        let _closed = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(0);
    });
}
