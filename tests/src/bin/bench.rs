//! Benchmarks of Sextant's parts beside the engines that a user would embed instead, in one run on one machine.
//!
//! `bench slice-store --entries 5000000 --peers fjall,redb --json` prints a JSON line for each engine and figure;
//! without `--json`, a table. Each engine runs in its own process.
//!
//! `bench rebalance --json` measures the cost of moves of slices for concurrent scans, and their speed beside `cp`.
//!
//! `bench end-to-end --peers postgres --json figures.json` measures the real binary over SQL beside PostgreSQL, and
//! `bench report --json figures.json --out docs/performance.md` writes the figures down with plots.
//!
//! `bench transactions` measures what transactions cost; `--other` compares single statements with those of another binary.
#![allow(clippy::disallowed_methods, reason = "a tool that runs processes on the real machine")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use clap::{Args, Parser, Subcommand};
use tests::bench::phases::{Line, Run};
use tests::bench::{ENGINES, Outcome, end_to_end, rebalance, transactions};

/// The allocator of the product's binary; the other engines get it too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// The slice store beside embedded engines
    SliceStore {
        #[command(flatten)]
        workload: Workload,
        /// Other engines to run: fjall, redb
        #[arg(long, value_delimiter = ',')]
        peers: Vec<String>,
        /// Print JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Moves of slices while scans and writes run: one process, in which each service (a coordinator, a
    /// projector, three indexers, a router) has a gRPC port of its own, so that files and rows go through TCP
    Rebalance {
        /// Documents, with an entry of about 130 bytes each
        #[arg(long, default_value_t = 2_000_000, value_parser = clap::value_parser!(u64).range(10_000..))]
        entries: u64,
        /// Seconds for which each phase measures scans
        #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u64).range(1..))]
        seconds: u64,
        /// Memory of each indexer, in MiB
        #[arg(long, default_value_t = 512)]
        memory_mb: u64,
        /// Parent of the data directory, which is removed at the end; by default the system's temporary directory
        #[arg(long)]
        dir: Option<PathBuf>,
        /// Print JSON lines
        #[arg(long)]
        json: bool,
    },
    /// The binary `sextant` over SQL, beside PostgreSQL: ranges, scans, loads, writes, freshness. Their answers are
    /// compared, and a difference is an error
    EndToEnd {
        #[command(flatten)]
        settings: end_to_end::settings::Settings,
    },
    /// Transactions over SQL: small ones beside single statements, large ones until they are visible, and scans beside open ones
    Transactions {
        #[command(flatten)]
        settings: transactions::Settings,
    },
    /// Writes the figures of `end-to-end` down as a Markdown file with plots
    Report {
        /// The file that `end-to-end --json` has written
        #[arg(long)]
        json: PathBuf,
        /// The Markdown file; the plots go into the folder of its name without `.md`
        #[arg(long)]
        out: PathBuf,
    },
    /// One engine, in this process
    #[command(hide = true)]
    SliceStoreEngine {
        #[command(flatten)]
        workload: Workload,
        #[arg(long)]
        engine: String,
        /// The bulk build alone
        #[arg(long)]
        bulk: bool,
    },
}

#[derive(Args, Clone)]
struct Workload {
    /// Documents, with an entry each
    #[arg(long, default_value_t = 5_000_000, value_parser = clap::value_parser!(u64).range(1000..))]
    entries: u64,
    /// Memory of each engine, in MiB
    #[arg(long, default_value_t = 512)]
    memory_mb: u64,
    /// Parent of the data directory, which is removed at the end; by default the system's temporary directory
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Run only these figures
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

fn main() -> ExitCode {
    let done = match Cli::parse().bench {
        Bench::Rebalance { entries, seconds, memory_mb, dir, json } => {
            let run = rebalance::Run { entries, seconds, memory_bytes: memory_mb << 20, json };
            in_a_directory(dir).and_then(|data| run.run(data.path()))
        }
        Bench::EndToEnd { settings } => end_to_end::run::run(&settings),
        Bench::Transactions { settings } => transactions::measure(&settings),
        Bench::Report { json, out } => end_to_end::report::markdown::write(&json, &out),
        Bench::SliceStore { workload, peers, json } => slice_store(&workload, &peers, json),
        Bench::SliceStoreEngine { workload, engine, bulk } => one_engine(workload, engine, bulk),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            // A client's error is only "db error"; the message of the server is in its source.
            if let Some(source) = error.source() {
                eprintln!("bench: {source}");
            }
            ExitCode::FAILURE
        }
    }
}

/// Creates a temporary directory.
fn in_a_directory(parent: Option<PathBuf>) -> Outcome<tempfile::TempDir> {
    let parent = parent.unwrap_or_else(std::env::temp_dir);
    Ok(tempfile::Builder::new().prefix("bench-").tempdir_in(parent)?)
}

/// Runs an engine in this process; its data is removed at the end.
fn one_engine(workload: Workload, engine: String, bulk: bool) -> Outcome<()> {
    let data = in_a_directory(workload.dir)?;
    let run = Run {
        engine,
        entries: workload.entries,
        memory_bytes: workload.memory_mb << 20,
        dir: data.path().to_path_buf(),
        only: workload.only,
    };
    if bulk { run.run_bulk_build() } else { run.run() }
}

/// Runs all engines, one after another.
fn slice_store(workload: &Workload, peers: &[String], json: bool) -> Outcome<()> {
    let engines: Vec<&str> =
        std::iter::once("sextant").chain(peers.iter().map(String::as_str)).collect();
    for engine in &engines {
        if !ENGINES.contains(engine) {
            return Err(format!("no engine {engine:?}: there are {}", ENGINES.join(", ")).into());
        }
    }
    let wants = |bench: &str| workload.only.is_empty() || workload.only.iter().any(|o| o == bench);
    let mut lines = Vec::new();
    for engine in &engines {
        let bulk_only = workload.only == ["bulk_build"];
        if !bulk_only {
            lines.extend(in_a_process(workload, engine, false, json)?);
        }
        if *engine == "sextant" && wants("bulk_build") {
            lines.extend(in_a_process(workload, engine, true, json)?);
        }
    }
    if !json {
        print_table(&engines, &lines);
    }
    Ok(())
}

/// Runs an engine in its own process, prints its lines with `json`, and returns them.
fn in_a_process(workload: &Workload, engine: &str, bulk: bool, json: bool) -> Outcome<Vec<Line>> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["slice-store-engine", "--engine", engine]);
    command.args(["--entries", &workload.entries.to_string()]);
    command.args(["--memory-mb", &workload.memory_mb.to_string()]);
    if let Some(dir) = &workload.dir {
        command.arg("--dir").arg(dir);
    }
    if !workload.only.is_empty() {
        command.args(["--only", &workload.only.join(",")]);
    }
    if bulk {
        command.arg("--bulk");
    }
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let out = child.stdout.take().ok_or("no output of the engine's process")?;
    let mut lines = Vec::new();
    for text in BufReader::new(out).lines() {
        let mut line: Line = serde_json::from_str(&text?)?;
        if bulk && line.bench == "peak_mb" {
            line.bench = "bulk_build_peak_mb".into();
        }
        if json {
            println!("{}", serde_json::to_string(&line)?);
        } else {
            eprintln!("{} {}: {}", line.engine, line.bench, figure(&line));
        }
        lines.push(line);
    }
    let status = child.wait()?;
    if !status.success() {
        return Err(format!("{engine} ended with {status}").into());
    }
    Ok(lines)
}

/// Returns a figure as text for people.
fn figure(line: &Line) -> String {
    match (line.per_s, line.value) {
        (Some(rate), _) if rate >= 10e6 => format!("{:.1} M/s", rate / 1e6),
        (Some(rate), _) if rate >= 1e6 => format!("{:.2} M/s", rate / 1e6),
        (Some(rate), _) if rate >= 1e3 => format!("{:.1} k/s", rate / 1e3),
        (Some(rate), _) => format!("{rate}/s"),
        (None, Some(value)) => value.to_string(),
        (None, None) => String::new(),
    }
}

/// Prints a table with a row for each figure and a column for each engine, with the ratio of
/// Sextant's rate to the engine's.
fn print_table(engines: &[&str], lines: &[Line]) {
    let mut rows: Vec<&str> = Vec::new();
    let mut cells: BTreeMap<(&str, &str), &Line> = BTreeMap::new();
    for line in lines {
        if !rows.contains(&line.bench.as_str()) {
            rows.push(&line.bench);
        }
        cells.insert((&line.bench, &line.engine), line);
    }
    let head: String = engines.iter().map(|engine| format!("{engine:>24}")).collect();
    println!("{:<26}{head}", "");
    for row in rows {
        let ours = cells.get(&(row, "sextant")).and_then(|line| line.per_s);
        let cell = |engine: &&str| match cells.get(&(row, *engine)) {
            Some(line) => match (ours, line.per_s) {
                (Some(ours), Some(theirs)) if *engine != "sextant" => {
                    format!("{:>24}", format!("{} ({:.1}x)", figure(line), ours / theirs))
                }
                _ => format!("{:>24}", figure(line)),
            },
            None => format!("{:>24}", "-"),
        };
        println!("{row:<26}{}", engines.iter().map(cell).collect::<String>());
    }
}
