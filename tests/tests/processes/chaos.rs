//! A short run of chaos over real processes; `chaos --help` describes it.
#![allow(clippy::disallowed_methods, reason = "a test that runs a process")]

use std::process::Command;

#[test]
fn no_entry_is_lost_doubled_or_invented_under_faults() {
    let seed = tests::harness::number_from_env("SEXTANT_CHAOS_SEED", 1).to_string();
    let mut chaos = Command::new(env!("CARGO_BIN_EXE_chaos"));
    let ran = chaos.args(["--minutes", "0.67", "--seed", &seed, "--verbose"]).output();
    let ran = ran.expect("chaos runs");
    let told = String::from_utf8_lossy(&ran.stdout).into_owned();
    println!("{told}");
    let trace = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(
        ran.status.success(),
        "chaos --minutes 0.67 --seed {seed}: {}\n{told}\n{trace}",
        ran.status
    );
}
