//! The fuzzer of decoders: `fuzz --target T --inputs N --seed S`, or `--target all` for all
//! targets.
//!
//! The program prints a line for each target: its name, the number of inputs, the seconds, and the
//! inputs per second. Its exit status is 1 if an input was handled wrongly; the input is then
//! written to `--findings`, with the command that repeats it. `--make-corpus` writes the samples of
//! the encoders into `fuzz/corpus`.
#![allow(
    clippy::disallowed_methods,
    reason = "a tool that measures real time, uses all processors, and writes files"
)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use tests::fuzz::run::{Finding, Origin, Outcome, Reader};
use tests::fuzz::target::Target;
use tests::fuzz::{corpus, targets};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The number of inputs that a thread takes at once.
const PIECE: u64 = 1_000;
/// The time after which a thread counts as stuck in one input.
const STUCK: Duration = Duration::from_secs(60);
/// The stack size of a reading thread in bytes, which is that of tokio's threads.
const STACK_BYTES: usize = 2 << 20;

#[derive(Parser)]
struct Args {
    /// Target, or `all`
    #[arg(long, default_value = "all")]
    target: String,
    /// Inputs of each target
    #[arg(long, default_value_t = 100_000)]
    inputs: u64,
    /// Seed of the inputs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of the first input
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Number of threads
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Time limit of each target in seconds, for a look
    #[arg(long)]
    seconds: Option<u64>,
    /// Read this file only
    #[arg(long)]
    file: Option<PathBuf>,
    /// Folder for inputs that fail
    #[arg(long, default_value = "fuzz/findings")]
    findings: PathBuf,
    /// Print the names of the targets
    #[arg(long)]
    list: bool,
    /// Write the samples of the encoders into the corpus
    #[arg(long)]
    make_corpus: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let chosen: Vec<Target> = targets()
        .into_iter()
        .filter(|target| args.target == "all" || args.target.split(',').any(|it| it == target.name))
        .collect();
    if chosen.is_empty() {
        eprintln!("there is no target {}; --list prints all", args.target);
        return ExitCode::from(2);
    }
    let mut is_good = true;
    for target in &chosen {
        if args.list {
            println!("{}", target.name);
        } else if args.make_corpus {
            match corpus::write_samples(target) {
                Ok(written) => println!("{} {written}", target.name),
                Err(error) => {
                    eprintln!("{}: {error}", corpus::dir(target).display());
                    return ExitCode::from(2);
                }
            }
        } else {
            is_good &= fuzz(&args, target);
        }
    }
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Decodes the inputs of a target; true if all are handled as they must be.
fn fuzz(args: &Args, target: &Target) -> bool {
    let good = corpus::load(target);
    let reader = Reader { target, good: &good, allocated: None };
    let begun = Instant::now();
    let outcome = match &args.file {
        Some(path) => {
            let mut outcome = Outcome::default();
            let input =
                std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            reader.read(&mut outcome, &input, Origin::Corpus(0));
            outcome
        }
        None => {
            let mut outcome = reader.corpus();
            outcome.add(on_threads(args, &reader));
            outcome
        }
    };
    let seconds = begun.elapsed().as_secs_f64();
    let rate = outcome.inputs as f64 / seconds.max(1e-9);
    let slowest = outcome.slowest.as_secs_f64() * 1e3;
    println!("{} {} {seconds:.1} {rate:.0} slowest {slowest:.1} ms", target.name, outcome.inputs);
    outcome.findings.iter().for_each(|finding| tell(args, target, finding));
    outcome.findings.is_empty()
}

fn on_threads(args: &Args, reader: &Reader<'_>) -> Outcome {
    let (next, end) = (AtomicU64::new(args.from), args.from.saturating_add(args.inputs));
    let (total, is_over) = (Mutex::new(Outcome::default()), AtomicBool::new(false));
    let at: Vec<AtomicU64> = (0..args.threads.max(1)).map(|_| AtomicU64::new(args.from)).collect();
    let deadline = args.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    std::thread::scope(|scope| {
        let work = |at: &AtomicU64| {
            while deadline.is_none_or(|deadline| Instant::now() < deadline) {
                let first = next.fetch_add(PIECE, Ordering::Relaxed);
                if first >= end {
                    break;
                }
                let numbers = first..end.min(first + PIECE);
                let part = reader.drawn(args.seed, numbers, |n| at.store(n, Ordering::Relaxed));
                let has_failed = !part.findings.is_empty();
                total.lock().expect("no panic").add(part);
                if has_failed {
                    break;
                }
            }
            at.store(u64::MAX, Ordering::Relaxed);
        };
        let spawn = |at| {
            let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
            builder.spawn_scoped(scope, move || work(at)).expect("a thread")
        };
        let threads: Vec<_> = at.iter().map(spawn).collect();
        let (watched, is_over) = (&at, &is_over);
        scope.spawn(move || watch(args, reader.target, watched, is_over));
        threads.into_iter().for_each(|thread| thread.join().expect("findings are caught"));
        is_over.store(true, Ordering::Relaxed);
    });
    total.into_inner().expect("no panic")
}

/// Ends the process when a thread is stuck in an input, since a thread cannot be stopped.
fn watch(args: &Args, target: &Target, at: &[AtomicU64], is_over: &AtomicBool) {
    let mut known: Vec<(u64, Instant)> = vec![(u64::MAX, Instant::now()); at.len()];
    while !is_over.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(20));
        for (at, known) in at.iter().zip(&mut known) {
            let now = at.load(Ordering::Relaxed);
            if now != known.0 {
                *known = (now, Instant::now());
            } else if now != u64::MAX && known.1.elapsed() > STUCK {
                println!("{}: input {now} of seed {} is stuck", target.name, args.seed);
                std::process::exit(1);
            }
        }
    }
}

fn tell(args: &Args, target: &Target, finding: &Finding) {
    let number = match finding.origin {
        Origin::Corpus(n) => format!("corpus-{n}"),
        Origin::Drawn(n) => format!("{}-{n}", args.seed),
    };
    let path = args.findings.join(format!("{}-{number}", target.name));
    let written = std::fs::create_dir_all(&args.findings)
        .and_then(|()| std::fs::write(&path, &finding.input));
    let bytes = finding.input.len();
    println!("FOUND {}: an input of {bytes} bytes {}", target.name, finding.what);
    match written {
        Ok(()) => println!("  fuzz --target {} --file {}", target.name, path.display()),
        Err(error) => println!("  {}: {error}", path.display()),
    }
}
