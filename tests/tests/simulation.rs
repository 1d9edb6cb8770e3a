//! Runs the simulation in every run of the tests: seeds with faults, each judged by the model, and
//! other seeds that are run twice. `simulate --seeds N` runs more.
#![allow(
    clippy::disallowed_methods,
    reason = "one seed is one process, so a test starts processes"
)]

use std::cmp::Reverse;
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tests::harness::on_all_processors;

/// The number of seeds of every run, from [`FIRST`] on, and the simulated seconds of faults of
/// each.
const SEEDS: u64 = 170;
const FIRST: u64 = 1001;
const SECONDS: &str = "6";
/// The number of seeds that are run twice, from 500 on. Seeds 504 to 511 run their blocking work in
/// steps.
const TWICE: u64 = 16;

/// Seeds that once found a bug, with their seconds. A change of the simulation gives a seed another history; then only the
/// test beside the cause proves that the bug is gone. 16: a slice that returned to a node which it had not left yet never
/// arrived. 35: a file that a disk had damaged was moved as it was, and its source was given up. 98: the report of one
/// projector was completed from the last epoch of a lost history, and no epoch followed. 1677: the source of a move
/// restarted with an empty disk, and its new files were taken for old ones with the same numbers. 1918: a slice without
/// a count before a crash counted only later entries. 194: an indexer waited in a dead epoch for mutations that the
/// projector of a pushed bucket had lost. 20934: a node that had rolled back to before its first applied epoch lost its
/// place in a crash, and continued at the present. 9073 and 9094: a copy that had joined and then led did not know the
/// timestamps of its bucket. 30079: a follower used a store that had failed. 30283: a copy with an empty disk took the lead
/// from the only complete one. 120187: the operator accepted the loss of a leader, though another copy in sync had everything.
/// 1795528376: the judge did not know that a projector with an older copy of its disk had lost a rewind. 1795516873: a damaged copy that
/// was not needed was queried for ever, since it had a write that was never acknowledged. 10294 and 10812: after a restart an epoch had a
/// commit over two buckets in the deciding one only, because the answer of a source names no such commits. 1795696171: the judge knew of
/// the damaged file of a copy that is kept for the operator, but not of what its directory lacks for that. 1795770190: the judge took a
/// commit that a new leader calls rolled back for one that no log has; the leader before had logged it, and had not shown it to a client.
/// 1795947416: the judge did not know that an epoch may have a plain mutation in place of a part until the leader has heard of the commit.
/// 1795973904: the directory of a dropped bucket was back after a crash, and the manifest had forgotten it: its removal was tried again
/// after an error, found nothing to remove, and was told as durable. 1795981744: a projector had lost its disk, and its operator had
/// accepted the loss; the judge expected what a copy that was down still had. 1795981994: the judge did not know that another task of the
/// producer had pushed a part of a commit as a plain mutation while the commit was on its way. 1795982257: a projector told the clients of
/// its bucket that the log of a coordinator could not be written. 1795982373: a coordinator whose disk had failed looked for a change of
/// its role for ever, without a pause, since its log had ended. 1796040138: the judge gave a deletion to the statement that
/// had begun first, and another one had made it.
const FOUND: &[(u64, &str)] = &[
    (16, "8"),
    (35, "8"),
    (98, "10"),
    (1677, "20"),
    (1918, "20"),
    (194, "8"),
    (20934, "10"),
    (9073, "8"),
    (9094, "8"),
    (30079, "10"),
    (30283, "10"),
    (120187, "30"),
    (10294, "10"),
    (10812, "10"),
    (1795516873, "10"),
    (1795528376, "10"),
    (1795696171, "6"),
    (1795770190, "8"),
    (1795947416, "6"),
    (1795973904, "8"),
    (1795981744, "30"),
    (1795981994, "30"),
    (1795982257, "30"),
    (1795982373, "30"),
    (1796040138, "6"),
];

/// Seeds of the layer of all decisions without I/O that once found a bug. 1795749783: the model of an indexer did not build a further slice
/// that the leader gave it during a build, because another node had been silent for long.
const FOUND_IN_CORES: &[(u64, &str)] = &[(1795749783, "30")];

/// A lock for one test at a time, because each uses all processors.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn simulate(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_simulate"));
    command.args(arguments).output().expect("the simulation can be started")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// In these seeds indexers fail for a long time, are removed with FORCE, and restart later. The
/// other indexers rebuild their slices in the meantime.
#[test]
fn slices_of_lost_indexers_are_rebuilt_under_faults() {
    let _alone = alone();
    let wrong = Mutex::new(Vec::new());
    on_all_processors(&[44, 236, 300], |seed| {
        let output = simulate(&["--seed", &seed.to_string(), "--seconds", "25"]);
        let printed = text(&output.stdout);
        let summary: serde_json::Value = serde_json::from_str(&printed).unwrap_or_default();
        let forced = summary["nodes_forced"].as_u64().unwrap_or_default();
        let lost = summary["faults"]["lost_node"].as_u64().unwrap_or_default();
        if !output.status.success() || forced == 0 || lost == 0 {
            wrong.lock().expect("not poisoned").push(printed);
        }
    });
    let wrong = wrong.into_inner().expect("not poisoned");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_scan_shows_its_epoch_under_faults() {
    let _alone = alone();
    let (first, seeds) = (FIRST.to_string(), SEEDS.to_string());
    let arguments = ["--start-seed", &first, "--seeds", &seeds, "--seconds", SECONDS, "--json"];
    let output = simulate(&arguments);
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{printed}{}", text(&output.stderr));
    let total: serde_json::Value = serde_json::from_str(&printed).expect("a line of JSON");
    let count = |name: &str| total[name].as_u64().unwrap_or_default();
    for (name, least) in [
        ("scans", 20 * SEEDS),
        ("entries", 600 * SEEDS),
        ("operations", 100 * SEEDS),
        ("moves", 2 * SEEDS),
        ("hand_overs", SEEDS),
        ("rollbacks", SEEDS / 10),
        ("copies_compared", 4 * SEEDS),
        ("directories_verified", 4 * SEEDS),
    ] {
        assert!(count(name) >= least, "{name}: {} is too little: {printed}", count(name));
    }
    let kinds = total["faults"].as_object().expect("faults by kind");
    assert_eq!(kinds.len(), 34, "all kinds of faults: {kinds:?}");
    let seen = |event: &str| total["seen"][event].as_u64().unwrap_or_default();
    for (event, least) in [
        ("documents read", 5 * SEEDS),
        // Few: slices of a slow node are placed elsewhere before it fails a scan.
        ("shard scans that went on elsewhere", SEEDS / 30),
        ("scans at a pinned epoch", SEEDS),
        ("scans by text", 5 * SEEDS),
        ("transactions committed", SEEDS / 4),
        ("steps of transactions", 2 * SEEDS),
        ("commits refused by a conflict", SEEDS / 20),
        ("commits over two buckets", SEEDS / 5),
        ("sessions lost in a commit", SEEDS / 10),
        ("moments of two buckets", SEEDS / 4),
        ("prepared transactions that end by themselves", SEEDS / 20),
        ("spilled parts of transactions", SEEDS / 20),
        ("large commits entered", SEEDS / 20),
        ("inserts refused in transactions", SEEDS / 20),
        ("texts of SQL carried out", SEEDS / 4),
        ("texts of SQL undone", SEEDS / 20),
        ("reads of sessions of SQL", SEEDS / 2),
        ("rollbacks to savepoints", SEEDS / 20),
        ("own views passed by their transaction", SEEDS / 20),
        ("nodes removed", SEEDS / 20),
        ("generations that began to serve", SEEDS / 4),
        ("scans of retired generations", SEEDS / 20),
        ("versions that became current", SEEDS / 20),
        ("versions cancelled", 2),
        ("versions with a broken row", SEEDS / 40),
        ("documents of versions read", SEEDS),
        // Few: a division is refused while a slice is being split.
        ("indexes divided anew", SEEDS / 20),
        ("builds cancelled", 2),
        ("splits in place", SEEDS / 10),
        ("buckets dropped", SEEDS),
        ("changes of copies asked for", SEEDS / 2),
        ("answers of single copies", 10 * SEEDS),
        ("buckets moved", SEEDS / 5),
        ("take-overs", SEEDS / 20),
        ("copies given up", SEEDS / 20),
        ("copies in sync again", SEEDS / 2),
        ("groups in pieces", SEEDS / 20),
        ("changes of part", SEEDS / 2),
        ("copies filled by log", SEEDS),
        // A few seeds have most of them.
        ("copies filled by documents", SEEDS / 20),
        ("copies rewound", 1),
        ("damaged buckets kept aside", 1),
        ("damaged copies made anew", 1),
        ("damaged copies healed", 1),
        ("resyncs", SEEDS / 10),
        ("slices fetched from another copy", SEEDS),
        ("rollbacks of a node", SEEDS / 5),
        ("replays", SEEDS),
        ("torn tails", 1),
        ("choices bounded by slow indexers", SEEDS / 20),
        ("flushes", 10 * SEEDS),
        ("compactions", 5 * SEEDS),
        ("stores compared with their mirror", 2 * SEEDS),
        ("flushes of documents", 10 * SEEDS),
        ("merges of documents", SEEDS / 2),
        ("releases of change logs", SEEDS / 2),
        ("replays of change logs", SEEDS),
        ("torn tails of change logs", 1),
        ("purges", SEEDS / 20),
        ("doubtful commits: kept", 2),
        ("doubtful commits: lost", SEEDS / 50),
        ("scans judged up to an error", SEEDS / 10),
        ("works in steps", 200 * SEEDS),
        ("pauses of works", 200 * SEEDS),
        ("vain tries of locks", SEEDS),
        ("works cut short by a crash", SEEDS / 50),
        ("logs that begin with a snapshot", SEEDS),
        ("struck: failed operation", SEEDS / 20),
        ("struck: full disk", SEEDS / 20),
        ("struck: crash in an operation", SEEDS / 20),
        ("flipped bits: found", 2),
        ("flipped bits: read and found", 1),
        ("flipped bits: replaced", 2),
    ] {
        assert!(seen(event) >= least, "{event}: {} is too little: {printed}", seen(event));
    }
    let faults: u64 = kinds.values().filter_map(serde_json::Value::as_u64).sum();
    assert!(faults > 3 * SEEDS, "{faults} faults are too few: {printed}");
}

#[test]
fn seeds_of_fixed_bugs_find_no_violation() {
    let _alone = alone();
    let mut found = FOUND.to_vec();
    // The long ones first, so that no processor is idle at the end.
    found.sort_by_key(|(_, seconds)| Reverse(seconds.parse::<u64>().expect("a number")));
    on_all_processors(&found, |(seed, seconds)| {
        let output = simulate(&["--seed", &seed.to_string(), "--seconds", seconds]);
        let line = text(&output.stdout);
        assert!(output.status.success(), "seed {seed}, {seconds} s: {line}");
    });
    for (seed, seconds) in FOUND_IN_CORES {
        let seed = seed.to_string();
        let output = simulate(&["--layer", "cores", "--seed", &seed, "--seconds", seconds]);
        assert!(output.status.success(), "seed {seed} of the cores: {}", text(&output.stdout));
    }
}

#[test]
fn a_seed_always_gives_the_same_run() {
    let _alone = alone();
    let run = |seed: u64| simulate(&["--seed", &seed.to_string(), "--seconds", "4"]);
    let seeds: Vec<u64> = (500..500 + TWICE).collect();
    on_all_processors(&seeds, |seed| {
        let (first, second) = (run(*seed), run(*seed));
        let (first, second) = (text(&first.stdout), text(&second.stdout));
        assert_eq!(first, second, "seed {seed}, twice, in two processes");
        assert!(first.contains("\"trace\":"), "all that happened is in it: {first}");
    });
}
