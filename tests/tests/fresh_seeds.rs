//! Simulates fresh seeds, because code gets tuned to a fixed set of seeds. The first seed is the
//! time in seconds, so that each run of the tests has other seeds. A failure prints the command
//! that replays it.
#![allow(clippy::disallowed_methods, reason = "a test that runs a program and reads the clock")]

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// Runs seeds of a layer, with this many simulated seconds of faults each.
fn run(layer: &str, seeds: u64, seconds: u64) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let (seeds, start) = (seeds.to_string(), now.as_secs().to_string());
    let seconds = seconds.to_string();
    let arguments =
        ["--layer", layer, "--seeds", &seeds, "--start-seed", &start, "--seconds", &seconds];
    println!("simulate {}", arguments.join(" "));
    let ran = Command::new(env!("CARGO_BIN_EXE_simulate")).args(arguments).output();
    let ran = ran.expect("the simulation starts");
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    println!("{out}");
    assert!(ran.status.success(), "simulate {}\n{out}\n{err}", arguments.join(" "));
}

#[test]
fn fresh_seeds_of_the_cores() {
    run("cores", 2_000, 6);
}

#[test]
fn fresh_seeds_of_the_slice_store() {
    run("store", 20, 0);
}

#[test]
fn fresh_seeds_of_virtual_scans() {
    run("vscan", 200, 0);
}

#[test]
fn fresh_seeds_of_raft() {
    run("raft", 40, 0);
}

#[test]
fn fresh_seeds_of_the_full_stack() {
    run("full", 8, 6);
}
