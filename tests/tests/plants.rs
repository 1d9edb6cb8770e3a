//! Tests that each known bug that can be switched on is found by a seed, and that the seed finds
//! nothing without the bug.
//!
//! Almost every change of the product changes the course of seeds. So the table has the seed that
//! last found a bug, and the bug must be found by this seed or by one of the next [`SEEDS`]
//! suitable ones. The remainder of a seed determines whether its run has copies, transactions,
//! commits over two buckets and other features; so the table also has the step to the next suitable
//! seed. Seeds that have moved are printed, for the table.
//! `cargo test -p tests --features plants --test plants`.
#![allow(
    clippy::disallowed_methods,
    reason = "one seed is one process, so a test starts processes"
)]

use std::process::{Command, Output};
use std::sync::Mutex;

use proto::plant::PLANTS;
use tests::harness::on_all_processors;

/// The number of seeds among which one must find a known bug; each takes some seconds.
const SEEDS: u64 = 40;
/// The number of such seeds for the coordinators' log alone, where a seed takes some milliseconds.
const RAFT_SEEDS: u64 = 400;

/// The plants: name, layer, seed, step to the next seed, and simulated seconds of faults.
const FOUND: [(&str, &str, u64, u64, u64); 80] = [
    ("hand-over-uncovered", "full", 17, 1, 10),
    ("build-skips-back-index", "store", 1, 1, 0),
    ("install-skips-back-index", "store", 1, 1, 0),
    ("stale-owner-answers", "full", 9, 1, 10),
    ("epoch-uncovered", "cores", 37, 1, 10),
    ("gap-ignored", "store", 2, 1, 0),
    ("torn-record-replayed", "store", 19, 1, 0),
    ("log-released-early", "store", 5, 1, 0),
    ("fragments-not-synced", "store", 1, 1, 0),
    ("durable-early", "store", 2, 1, 0),
    ("floor-not-raised", "store", 27, 1, 0),
    ("tombstones-dropped-above", "store", 10, 1, 0),
    ("filter-misses", "store", 1, 1, 0),
    ("rollback-forgets", "store", 32, 1, 0),
    ("mapped-skipped-in-virtual", "vscan", 1, 1, 0),
    ("returned-read-by-shard", "vscan", 93, 1, 0),
    ("parts-taken-once", "vscan", 1, 1, 0),
    ("done-without-resume", "vscan", 2, 1, 0),
    ("page-cut-short", "vscan", 1, 1, 0),
    ("statement-split", "cores", 1, 1, 10),
    ("acknowledged-early", "full", 8, 1, 10),
    ("two-member-changes", "raft", 182, 2, 0),
    ("removal-not-settled", "raft", 18, 8, 0),
    ("vote-not-persisted", "raft", 3, 1, 0),
    ("applied-early", "raft", 1, 1, 0),
    ("done-twice", "cores", 56, 1, 10),
    ("dead-epoch-sent", "cores", 40, 1, 10),
    ("point-too-new", "cores", 4, 1, 10),
    ("rollback-missed", "cores", 5, 1, 10),
    ("survivors-unshown", "cores", 2, 1, 10),
    ("lost-snapshot-kept", "cores", 1516, 1, 10),
    ("branch-kept", "full", 21, 1, 10),
    ("points-forgotten", "store", 50, 1, 0),
    ("resync-keeps-ghosts", "full", 6, 1, 10),
    ("not-released", "full", 14, 1, 10),
    ("descending-ignored", "full", 1, 1, 10),
    ("branch-off-by-one", "full", 1, 1, 10),
    ("checksum-blind", "store", 1, 1, 0),
    ("flush-releases-newer", "full", 8, 1, 8),
    ("rollback-beside-flush", "store", 28, 1, 0),
    ("change-log-not-synced", "full", 1, 1, 10),
    ("checkpoint-ahead", "full", 1, 1, 10),
    ("segment-released-early", "full", 1, 1, 10),
    ("rewind-keeps-documents", "full", 20, 1, 10),
    ("copies-not-awaited", "full", 34, 3, 10),
    ("silent-copy-ignored", "full", 34, 3, 10),
    ("lease-unchecked", "full", 298, 3, 10),
    ("copy-keeps-tail", "full", 5047, 3, 20),
    ("replaced-shown", "full", 3, 5, 10),
    ("conflict-missed", "full", 3, 5, 10),
    ("documents-at-present", "full", 33, 5, 10),
    ("own-view-leaks", "full", 28, 5, 10),
    ("savepoint-kept", "full", 108, 5, 10),
    ("own-view-behind", "full", 3, 5, 10),
    ("copy-purge-unnoticed", "full", 1, 3, 10),
    ("copy-grows-early", "full", 901, 21, 30),
    ("participant-left-out", "full", 32, 7, 10),
    ("prepared-not-held", "full", 3091, 7, 30),
    ("finished-twice", "full", 4, 7, 10),
    ("rolled-back-decided", "full", 46, 7, 10),
    ("prepared-forgotten", "full", 39, 7, 10),
    ("half-spilled-shown", "full", 11, 1, 10),
    ("body-lost-at-join", "full", 4, 1, 10),
    ("commit-applied-twice", "full", 3, 1, 10),
    ("pushed-part-left-out", "full", 5, 3, 10),
    ("pushed-settled-early", "full", 5, 3, 10),
    ("pushed-forgotten", "full", 3059, 3, 30),
    ("pushed-not-handed-over", "full", 80, 3, 30),
    ("floor-ignored", "full", 15, 1, 10),
    ("rebuilt-below-floor", "full", 412, 8, 18),
    ("generations-mixed", "full", 11, 3, 10),
    ("hedge-counted-twice", "full", 147, 4, 10),
    ("retired-dropped", "full", 8, 3, 20),
    ("build-uncovered", "full", 149, 3, 10),
    ("version-in-part", "full", 51, 11, 10),
    ("partitions-moved", "full", 7, 11, 10),
    ("cancelled-serves", "full", 84, 11, 10),
    ("split-loses-boundary", "full", 18, 11, 10),
    ("superseded-counted", "full", 7, 11, 10),
    ("ready-in-part", "full", 1, 1, 10),
];

fn simulate(plant: Option<&str>, layer: &str, seed: u64, seconds: u64) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_simulate"));
    command.args(["--layer", layer, "--seed", &seed.to_string()]);
    command.args(["--seconds", &seconds.to_string()]);
    command.args(plant.iter().flat_map(|name| ["--plant", name]));
    command.output().expect("the simulation can be started")
}

/// Returns true if a seed finds a plant. A run that ends in any other way finds nothing.
fn finds((plant, layer, seed, seconds): (&str, &str, u64, u64)) -> bool {
    let with = simulate(Some(plant), layer, seed, seconds);
    let text = String::from_utf8_lossy(&with.stdout);
    let violated = serde_json::from_str(&text).is_ok_and(|summary: serde_json::Value| {
        summary["violations"].as_array().is_some_and(|violations| !violations.is_empty())
    });
    with.status.code() == Some(1) && violated
}

/// Searches the seeds for a plant; returns a description if its detection has failed.
fn replay((plant, layer, first, step, seconds): (&str, &str, u64, u64, u64)) -> Option<String> {
    let count = if layer == "raft" { RAFT_SEEDS } else { SEEDS };
    let mut seeds = (0..count).map(|n| first + n * step);
    let Some(seed) = seeds.find(|seed| finds((plant, layer, *seed, seconds))) else {
        return Some(format!(
            "{plant} is not found by {count} seeds of {layer} from {first} on, each {step} behind the one before"
        ));
    };
    if seed != first {
        println!("{plant} has moved from seed {first} to {seed} of {layer}");
    }
    // The tests of the simulation run these seeds of the whole cluster without plants.
    if layer != "full" && !simulate(None, layer, seed, seconds).status.success() {
        return Some(format!("seed {seed} of {layer} finds something without {plant}"));
    }
    None
}

#[test]
fn every_plant_is_found_by_its_seed() {
    let wrong = Mutex::new(Vec::new());
    on_all_processors(&FOUND, |found| {
        let told = replay(*found);
        wrong.lock().expect("not poisoned").extend(told);
    });
    let wrong = wrong.into_inner().expect("not poisoned");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Seed 8 runs its blocking work in steps. Seed 6 runs it at once, so no epoch is published between
/// the steps of a flush.
#[test]
fn a_race_of_a_flush_is_found_only_by_work_in_steps() {
    let ran = simulate(Some("flush-releases-newer"), "full", 6, 8);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
}

#[test]
fn every_plant_has_a_seed() {
    for (_, name, _) in PLANTS.iter().copied() {
        assert!(FOUND.iter().any(|(plant, ..)| *plant == name), "{name} has no seed");
    }
}
