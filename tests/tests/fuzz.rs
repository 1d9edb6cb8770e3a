//! Tests that each decoder reads its corpus and fresh random changes of it. `fuzz` runs more (see
//! [`tests::fuzz`]).
//!
//! `SEXTANT_FUZZ_INPUTS` sets the inputs of each target, and `SEXTANT_FUZZ_SEED` their seed.
//! Allocations are counted, so the targets run one after another in one thread.
#![allow(clippy::disallowed_methods, reason = "a test that draws a seed and says how fast it was")]

use std::alloc::System;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use coordinator::testing::{Machine, Replica, StateMachine};
use proto::rpc::command::{AppliedCommand, Outcome};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tests::fuzz::run::{Finding, Origin, Reader};
use tests::fuzz::{corpus, targets, world};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The number of fresh inputs of each target.
const INPUTS: u64 = 10_000;

/// A lock for one test at a time, because allocations are counted in the whole process.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

fn allocated() -> usize {
    ALLOCATOR.stats().bytes_allocated
}

fn told(target: &str, seed: u64, finding: &Finding) -> String {
    let shown: String = finding.input.iter().take(200).map(|byte| format!("{byte:02x}")).collect();
    let again = match finding.origin {
        Origin::Corpus(n) => format!("input {n} of the corpus"),
        Origin::Drawn(n) => format!("fuzz --target {target} --seed {seed} --from {n} --inputs 1"),
    };
    format!(
        "{target}: an input of {} bytes {}\n  {again}\n  {shown}",
        finding.input.len(),
        finding.what
    )
}

#[test]
fn each_decoder_reads_or_refuses_its_corpus_and_changes_of_it() {
    let _alone = alone();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970").as_secs();
    let seed = setting("SEXTANT_FUZZ_SEED").unwrap_or(now);
    let inputs = setting("SEXTANT_FUZZ_INPUTS").unwrap_or(INPUTS);
    let mut found = Vec::new();
    for target in &targets() {
        let (begun, good) = (Instant::now(), corpus::load(target));
        // The first input must not pay for what a target makes only once.
        good.iter().take(1).for_each(|input| (target.read)(input));
        let reader = Reader { target, good: &good, allocated: Some(allocated) };
        let mut outcome = reader.corpus();
        let drawn = (inputs as f64 * target.share) as u64;
        outcome.add(reader.drawn(seed, 0..drawn, |_| ()));
        println!(
            "{} {} inputs, {:.1} s, slowest {:.1} ms, {} bytes allocated at most",
            target.name,
            outcome.inputs,
            begun.elapsed().as_secs_f64(),
            outcome.slowest.as_secs_f64() * 1e3,
            outcome.allocated_most,
        );
        found.extend(outcome.findings.iter().map(|finding| told(target.name, seed, finding)));
    }
    assert!(found.is_empty(), "{} findings with seed {seed}:\n{}", found.len(), found.join("\n"));
}

/// A sample must be accepted: changes of a refused sample would be refused immediately as well.
#[test]
fn the_samples_are_good() {
    let _alone = alone();
    let samples = |name: &str| {
        let target = targets().into_iter().find(|target| target.name == name).expect("a target");
        (target.samples)()
    };
    let mut bad = Vec::new();
    for sql in samples("sql") {
        let sql = String::from_utf8(sql).expect("text");
        if let Err(error) = sextant::sql::parse(&sql) {
            bad.push(format!("{sql}: {}", error.error));
        }
    }
    let mut machine = Machine(Replica::new());
    for ((record, command), n) in world::records().iter().zip(world::commands()).zip(1..) {
        match machine.apply(n, record) {
            Ok(AppliedCommand { outcome: Outcome::Refused(error), .. }) => {
                bad.push(format!("{command:?}: {error}"))
            }
            Ok(_) => {}
            Err(error) => panic!("{command:?}: {error}"),
        }
    }
    assert!(bad.is_empty(), "{} are refused:\n{}", bad.len(), bad.join("\n"));
}

#[test]
fn the_corpus_is_small_and_belongs_to_targets() {
    let _alone = alone();
    let targets = targets();
    for target in &targets {
        assert!(!(target.samples)().is_empty(), "{} has samples", target.name);
        let files = corpus::files(&corpus::dir(target));
        let size = |path: &std::path::PathBuf| path.metadata().map_or(0, |known| known.len());
        let bytes: u64 = files.iter().map(size).sum();
        assert!(!files.is_empty(), "{} has no corpus: fuzz --make-corpus", target.name);
        assert!(files.len() <= corpus::FILES_MAX, "{}: {} files", target.name, files.len());
        assert!(bytes <= corpus::BYTES_MAX, "{}: {bytes} bytes", target.name);
        let others = targets.iter().filter(|other| other.name == target.name).count();
        assert_eq!(others, 1, "{} is named once", target.name);
    }
}
