//! The program that runs cases of virtual scans against the real services in the simulation, and
//! prints a JSON line for each case, with `name`, `rows`, `events_fired` and `error`. `error`
//! describes the failure, which may be that the rows differ from the case's expectation. Ends with
//! status 1 if there was any error.
//!
//! `vscan-cases FILE` reads a JSON document with `cases`, or JSON lines; `vscan-cases --generate N`
//! generates random cases from `--start-seed` on.
#![allow(clippy::disallowed_methods, reason = "a tool that reads a file and uses all processors")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Parser;
use tests::vscan::case::Case;
use tests::vscan::generate::generate;
use tests::vscan::play::play;

#[derive(Parser)]
struct Args {
    /// File with the cases; not read with --generate
    file: Option<PathBuf>,
    /// Generate this many cases instead
    #[arg(long)]
    generate: Option<u64>,
    /// First seed of the generator
    #[arg(long, default_value_t = 1)]
    start_seed: u64,
    /// Seed of the simulated network and processes
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print only failed cases, and a count
    #[arg(long)]
    quiet: bool,
}

fn cases(args: &Args) -> Result<Vec<Case>, String> {
    match (&args.file, args.generate) {
        (_, Some(count)) => Ok((args.start_seed..args.start_seed + count).map(generate).collect()),
        (Some(file), None) => {
            let text = std::fs::read_to_string(file)
                .map_err(|error| format!("{}: {error}", file.display()))?;
            Case::read_all(&text).map_err(|error| format!("{}: {error}", file.display()))
        }
        (None, None) => Err("name a file of cases, or ask for some with --generate N".into()),
    }
}

fn main() -> ExitCode {
    if let Ok(filter) = std::env::var("SEXTANT_LOG") {
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    }
    let args = Args::parse();
    let cases = match cases(&args) {
        Ok(cases) => cases,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let lines: Vec<Mutex<Option<String>>> = cases.iter().map(|_| Mutex::new(None)).collect();
    let (next, printed, failed) = (AtomicUsize::new(0), Mutex::new(0), AtomicUsize::new(0));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(at) else { return };
                    let mut outcome = play(case, args.seed);
                    outcome.error = case.judge(&outcome);
                    let wrong = outcome.error.is_some();
                    failed.fetch_add(usize::from(wrong), Ordering::Relaxed);
                    let line = serde_json::to_string(&outcome).expect("an outcome is JSON");
                    let line = if wrong || !args.quiet { line } else { String::new() };
                    *lines[at].lock().expect("not poisoned") = Some(line);
                    print_in_order(&lines, &printed);
                }
            });
        }
    });
    let failed = failed.into_inner();
    if args.quiet {
        println!("{} cases, {failed} failed", cases.len());
    }
    ExitCode::from(u8::from(failed > 0))
}

/// Prints the finished lines, in the order of the cases, as far as they are complete.
fn print_in_order(lines: &[Mutex<Option<String>>], printed: &Mutex<usize>) {
    let mut printed = printed.lock().expect("not poisoned");
    while let Some(line) = lines.get(*printed) {
        match line.lock().expect("not poisoned").take() {
            Some(line) if line.is_empty() => {}
            Some(line) => println!("{line}"),
            None => return,
        }
        *printed += 1;
    }
}
