//! Crashes in every operation of a log that rolls and releases, and in its recovery: durable
//! records are replayed, in order, and no record that was not appended.

use std::path::PathBuf;

use proto::env::real::SeededRandom;
use proto::env::{Env, Random as _, sim};

use super::*;

/// The expected contents of the log: the records of all runs, by the LSNs of their ends.
#[derive(Default)]
struct Model {
    appended: Vec<(Lsn, Vec<u8>)>,
    /// All records that end at or before this LSN must be replayed.
    durable: Lsn,
    /// Records that end at or before this LSN may be missing.
    released: Lsn,
}

impl Model {
    /// Compares the model with the replayed records, and removes the records that the crash lost
    /// from the model.
    fn check(&mut self, replayed: &[(Lsn, Vec<u8>)], seen: &str) {
        let first = replayed.first().map_or(Lsn::MAX, |(lsn, _)| *lsn);
        let from = self.appended.partition_point(|(lsn, _)| *lsn < first);
        let expected = &self.appended[from..];
        assert!(replayed.len() <= expected.len(), "{seen}: more than was appended");
        assert_eq!(replayed, &expected[..replayed.len()], "{seen}: a part of what was appended");
        let gone = self.appended[..from].last().map_or(0, |(lsn, _)| *lsn);
        assert!(gone <= self.released || replayed.is_empty(), "{seen}: {gone} was not released");
        let end = replayed.last().map_or(self.released, |(lsn, _)| *lsn);
        let newest = self.appended.iter().rfind(|(lsn, _)| *lsn <= self.durable);
        let durable = newest.map_or(0, |(lsn, _)| *lsn);
        assert!(end >= durable, "{seen}: durable up to {durable}, back up to {end}");
        self.appended.retain(|(lsn, _)| *lsn <= end);
    }
}

struct Run {
    env: Env,
    fs: sim::SimFs,
    /// Random numbers of the workload; crashes draw from another generator.
    random: SeededRandom,
    options: LogOptions,
    model: Model,
}

impl Run {
    fn new(seed: u64) -> Self {
        let (env, _, fs) = sim::world(seed);
        let sync =
            if seed.is_multiple_of(3) { SyncPolicy::OnDemand } else { SyncPolicy::EachGroup };
        let options =
            LogOptions { segment_bytes: 200 + 400 * (seed % 4), sync, ..LogOptions::default() };
        let random = SeededRandom::new(!seed);
        Self { env, fs, random, options, model: Model::default() }
    }

    fn below(&self, n: u64) -> u64 {
        self.random.next_u64() % n
    }

    /// Opens the log and compares its contents; `None` if the machine crashed.
    fn open(&mut self, seen: &str) -> Option<CommitLog> {
        let mut replayed = Vec::new();
        let dir = PathBuf::from("/data/log");
        let opened = CommitLog::open(&self.env, &dir, self.options.clone(), &mut |lsn, record| {
            replayed.push((lsn, record.to_vec()));
            Ok(())
        });
        match opened {
            Ok(log) => {
                self.model.check(&replayed, seen);
                // Replayed records are synced.
                self.model.durable = self.model.durable.max(log.end());
                Some(log)
            }
            Err(error) if self.fs.is_crashed() => {
                drop(error);
                None
            }
            Err(error) => panic!("{seen}: refused without damage: {error}"),
        }
    }

    /// Appends, waits and releases until the machine crashes, or for `steps` steps.
    async fn work(&mut self, log: &CommitLog, steps: u64) {
        for _ in 0..steps {
            let len = match self.below(4) {
                0 => 0,
                1 => self.below(1500),
                _ => self.below(100),
            };
            let payload: Vec<u8> = (0..len).map(|_| self.below(256) as u8).collect();
            let Ok(lsn) = log.append(&payload).await else { return };
            self.model.appended.push((lsn, payload));
            if self.below(3) == 0 {
                if log.wait_durable(lsn).await.is_err() {
                    return;
                }
                self.model.durable = lsn;
            }
            if self.below(3) == 0 {
                tokio::task::yield_now().await;
            }
            if self.below(6) == 0 {
                let n = self.below(self.model.appended.len() as u64) as usize;
                let place = self.model.appended[n].0.min(self.model.durable);
                self.model.released = self.model.released.max(place);
                if log.release(place).is_err() {
                    return;
                }
            }
        }
        tokio::task::yield_now().await;
    }
}

/// Runs a log twice. The machine crashes at operation `at` in the first run, and then during each recovery until one
/// completes. Returns the number of operations of the first run.
async fn lives(seed: u64, at: Option<u64>) -> u64 {
    let mut run = Run::new(seed);
    if let Some(at) = at {
        run.fs.crash_at(at);
    }
    let seen = format!("seed {seed}, crash at {at:?}");
    if let Some(log) = run.open(&seen) {
        run.work(&log, 40).await;
        drop(log);
    }
    let operations = run.fs.operations();
    if !run.fs.is_crashed() {
        run.fs.crash();
    }
    for recovery in 1.. {
        run.fs.restart();
        // Each recovery crashes later than the previous one, until one completes.
        run.fs.crash_at(run.fs.operations() + recovery);
        let Some(log) = run.open(&seen) else { continue };
        run.work(&log, 5).await;
        drop(log);
        if !run.fs.is_crashed() {
            break;
        }
    }
    run.fs.restart();
    let log = run.open(&seen).expect("nothing hits the last recovery");
    run.work(&log, 5).await;
    drop(log);
    assert!(run.open(&seen).is_some());
    operations
}

#[tokio::test]
async fn a_crash_in_any_operation_loses_nothing_durable_and_invents_nothing() {
    for seed in 1..=16 {
        let operations = lives(seed, None).await;
        assert!(operations > 60, "the workload writes, rolls and releases");
        for at in 1..=operations {
            lives(seed, Some(at)).await;
        }
    }
}
