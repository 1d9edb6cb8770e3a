//! Random histories of a change log with crashes and faults at any file operation. After each
//! recovery the log has all synced groups completely, no partial group, and possibly some later
//! groups in order; reads agree with a naive model.

use super::history::History;
use crate::change_log::verify;

/// Runs a history in which an operation crashes the machine (`crashes`) or fails. Returns the
/// number of operations before the first restart.
fn lives(seed: u64, at: Option<u64>, crashes: bool) -> u64 {
    let mut history = History::new(seed);
    history.name = format!("seed {seed}, broken at {at:?}");
    match at {
        Some(at) if crashes => history.fs.crash_at(at),
        Some(at) => history.fs.fail_at(at),
        None => {}
    }
    if let Ok(log) = history.open() {
        let _broken = history.work(&log, 30);
    }
    let operations = history.fs.operations();
    for recovery in 1.. {
        history.fs.disarm_faults();
        if crashes && !history.fs.is_crashed() {
            history.fs.crash();
        }
        history.fs.restart();
        // Each recovery fails later than the previous one, until one completes.
        if crashes {
            history.fs.crash_at(history.fs.operations() + 3 * recovery);
        }
        match history.open() {
            Ok(log) => {
                let _broken = history.work(&log, 4);
                if !history.fs.is_crashed() {
                    break;
                }
            }
            Err(error) => assert!(
                history.fs.is_crashed(),
                "{}: refused without damage: {error}",
                history.name
            ),
        }
    }
    history.fs.disarm_faults();
    let log = history.open().unwrap();
    history.work(&log, 6).unwrap();
    log.sync().unwrap();
    history.synced = history.groups.len();
    history.check_reads(&log);
    drop(log);
    let survey = verify(&history.fs, &history.dir, Some(&history.checkpoint.0)).unwrap();
    assert!(survey.findings.is_empty() && survey.gaps.is_empty(), "{survey:?}");
    operations
}

#[test]
fn a_crash_at_any_operation_loses_nothing_synced_and_tears_no_group() {
    for seed in 1..=3 {
        let operations = lives(seed, None, true);
        assert!(operations > 200, "the workload writes, rolls and releases");
        for at in (1..=operations).step_by(2) {
            lives(seed, Some(at), true);
        }
    }
}

#[test]
fn a_failed_operation_stops_the_log_and_loses_nothing() {
    for seed in 11..=11 {
        let operations = lives(seed, None, false);
        for at in 1..=operations {
            lives(seed, Some(at), false);
        }
    }
}

#[test]
fn long_histories_agree_with_the_model() {
    for seed in 100..140 {
        let mut history = History::new(seed);
        let mut log = history.open().unwrap();
        for _ in 0..12 {
            history.work(&log, 25).unwrap();
            if history.below(3) == 0 {
                drop(log);
                history.fs.crash();
                history.fs.restart();
            } else {
                drop(log);
            }
            log = history.open().unwrap();
        }
        let survey = verify(&history.fs, &history.dir, Some(&history.checkpoint.0)).unwrap();
        assert!(survey.findings.is_empty(), "{survey:?}");
        assert!(history.groups.len() > 200, "most groups survive");
    }
}
