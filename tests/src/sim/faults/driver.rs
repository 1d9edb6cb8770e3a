//! The driver of the faults, which at each tick repairs expired faults and starts a new one if one
//! is due.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

use turmoil::Sim;

use super::damage::has_damage;
use super::growth::{Growing, has_growths};
use super::of_copies::Replacement;
use crate::sim::cluster::hosts::{Host, Hosts};
use crate::sim::cluster::purges::has_purges;
use crate::sim::data_sets;
use crate::sim::documents::copies::Copies;
use crate::sim::operator::stages::{self, Stage};
use crate::sim::transactions::pair;
use crate::sim::{CALM, Shared};

/// The maximum duration of a fault, in milliseconds.
pub(super) const BROKEN_MS_MAX: u64 = 4_000;
/// The downtime of a restarted process.
pub(super) const RESTART: Duration = Duration::from_millis(300);
/// The time after the beginning of the faults within which a new projector joins, in milliseconds.
const JOINS_MS_MAX: u64 = 5_000;
/// The interval at which clocks advance, in milliseconds.
const CLOCK_STEP_MS: u64 = 100;

/// A fault in effect.
#[derive(Debug, PartialEq)]
pub(super) enum Broken {
    /// A process is down.
    Down(String),
    /// Two processes do not receive each other's messages.
    Cut(String, String),
    /// The second process does not receive the first one's messages.
    CutOneWay(String, String),
    /// Messages between two processes are held back.
    Held(String, String),
    /// Messages between two processes are slow.
    Slow(String, String),
    /// A disk accepts no growth.
    FullDisk(String),
    /// A file operation has failed or will fail.
    FailedIo(String),
    /// A file operation has failed, and the process must be restarted later.
    Worn(String),
    /// A process that will crash at a file operation soon.
    CrashInIo(String),
    /// A bit of a disk was flipped; the disk must be replaced.
    Damaged(String),
    /// A projector has lost mutations, which its operator accepts soon.
    Lacking(String),
    /// The source's log is longer than its bound.
    LongLog,
}

/// The faults of a run.
pub struct Faults {
    pub(super) random: fastrand::Rng,
    pub(super) until: Duration,
    pub(super) next: Duration,
    pub(super) broken: Vec<(Broken, Duration)>,
    pub(super) clock_moved_ms: u64,
    /// The generator of purges.
    pub(super) purges: fastrand::Rng,
    pub(super) next_purge: Duration,
    /// The generator of faults at changes of stage and the last stages; `None` in seeds without
    /// such faults.
    pub(super) at_stages: Option<fastrand::Rng>,
    pub(super) stages: BTreeSet<Stage>,
    /// The generator of the times for which a process continues after a failed file operation.
    pub(super) after_failed_io: fastrand::Rng,
    /// The generator of faults during a scan, and the earliest time of the next one.
    pub(super) in_scans: fastrand::Rng,
    pub(super) next_in_scan: Duration,
    /// The number of batches that slow readers have received.
    pub(super) parts_read: u64,
    /// The generator of faults at stages of commits, the earliest time of the next one, and the
    /// number of stages so far.
    pub(super) at_commits: fastrand::Rng,
    pub(super) next_at_commit: Duration,
    pub(super) commit_stages: u64,
    /// True if no source loses any of its history.
    pub(super) keeps_history: bool,
    /// The generator of the times at which removed nodes are started again.
    pub(super) removals: fastrand::Rng,
    /// The copies of the projectors' disks, and the time of the next ones.
    pub(super) copies: BTreeMap<String, Copies>,
    pub(super) copying: fastrand::Rng,
    /// The generator of the times that an operator takes.
    pub(super) operator: fastrand::Rng,
    pub(super) next_copy: Duration,
    /// The generator of faults of a bucket's copies, and the time of the next one.
    pub(super) of_copies: fastrand::Rng,
    pub(super) next_of_copies: Duration,
    /// The stopped projectors whose disk will be replaced.
    pub(super) to_replace: BTreeMap<String, Replacement>,
    /// The projectors whose disks were replaced, and the latest time at which each starts.
    pub(super) replaced: BTreeMap<String, Duration>,
    /// The generator of damage that is not repaired, and the time of the next flipped bit for it.
    pub(super) damages: fastrand::Rng,
    pub(super) next_damage: Duration,
    /// The stopped projectors with a flipped bit, and the time after which the coordinators have
    /// decided all their proposals.
    pub(super) left_damaged: BTreeMap<String, Duration>,
    /// A leader that is cut off from the other copies, the time of its crash, and the end of its
    /// downtime.
    pub(super) cut_leader: Option<(String, Duration, Duration)>,
    /// The generator of faults at the growth of a copy, the time of the next one, and the copy that
    /// is joining for it.
    pub(super) growths: fastrand::Rng,
    pub(super) next_growth: Duration,
    pub(super) growing: Option<Growing>,
    /// The projector that will join later, if there is one.
    pub(super) joins_late: Option<&'static str>,
}

impl Faults {
    /// Draws faults for this many simulated seconds.
    pub fn new(seed: u64, seconds: u64) -> Self {
        Self {
            random: fastrand::Rng::with_seed(seed ^ 0xfa17),
            until: CALM + Duration::from_secs(seconds),
            next: CALM,
            broken: Vec::new(),
            clock_moved_ms: 0,
            purges: fastrand::Rng::with_seed(seed ^ 0x9d6e),
            next_purge: if has_purges(seed) { CALM } else { Duration::MAX },
            at_stages: stages::are_chosen(seed).then(|| fastrand::Rng::with_seed(seed ^ 0x57a6)),
            stages: BTreeSet::new(),
            after_failed_io: fastrand::Rng::with_seed(seed ^ 0xd15c),
            in_scans: fastrand::Rng::with_seed(seed ^ 0x5ca2),
            next_in_scan: CALM,
            parts_read: 0,
            at_commits: fastrand::Rng::with_seed(seed ^ 0xc033),
            next_at_commit: CALM,
            commit_stages: 0,
            keeps_history: pair::keep_history(seed),
            removals: fastrand::Rng::with_seed(seed ^ 0x4e30),
            copies: BTreeMap::new(),
            copying: fastrand::Rng::with_seed(seed ^ 0xc0b1),
            operator: fastrand::Rng::with_seed(seed ^ 0x0be7),
            next_copy: CALM,
            of_copies: fastrand::Rng::with_seed(seed ^ 0xc0f1),
            next_of_copies: CALM,
            to_replace: BTreeMap::new(),
            replaced: BTreeMap::new(),
            damages: fastrand::Rng::with_seed(seed ^ 0xda3a),
            next_damage: if has_damage(seed) { CALM } else { Duration::MAX },
            left_damaged: BTreeMap::new(),
            cut_leader: None,
            growths: fastrand::Rng::with_seed(seed ^ 0x6407),
            next_growth: if has_growths(seed) { CALM } else { Duration::MAX },
            growing: None,
            joins_late: data_sets::joins_late(seed),
        }
    }

    /// Repairs expired faults, and starts a new one if one is due. Called at each tick.
    pub fn drive(&mut self, sim: &mut Sim<'_>, hosts: &Hosts, summary: &Shared) {
        let now = sim.elapsed();
        if let Some(name) = self.joins_late.take() {
            let end = CALM + Duration::from_millis(self.random.u64(..JOINS_MS_MAX));
            self.crash(name, end, sim, hosts);
        }
        self.move_clocks(now, hosts);
        self.notice_crashes(now, sim, hosts);
        self.mend(now, sim, hosts, summary);
        self.notice_losses(now, hosts);
        self.note_broken_disks(now, hosts);
        self.start_removed(now, sim, hosts, summary);
        self.lose_indexers(now, sim, hosts, summary);
        if now >= self.next_copy {
            self.copy_disks(now, hosts);
        }
        if now >= self.next_purge && now <= self.until {
            self.purge(now, sim, hosts, summary);
        }
        if now >= CALM && now <= self.until {
            self.break_at_stage(now, sim, hosts, summary);
            self.break_in_scan(now, sim, hosts, summary);
            self.break_at_commit(now, sim, hosts, summary);
            self.break_copies(now, sim, hosts, summary);
            self.damage_copies(now, hosts, summary);
            self.break_at_growth(now, sim, hosts, summary);
        }
        if now < self.next || now > self.until {
            return;
        }
        self.next = now + Duration::from_millis(self.random.u64(500..4_000));
        let end = now + Duration::from_millis(self.random.u64(100..BROKEN_MS_MAX));
        if let Some(kind) = self.inject_fault(end, sim, hosts) {
            note(summary, kind, now, end);
        }
    }

    /// Records that a disk is broken, which excuses errors until the next start of the process.
    pub(super) fn excused(&mut self, host: &Host, broken: Broken, end: Duration) {
        host.excused.store(true, Ordering::Relaxed);
        self.broken.push((broken, end));
    }

    /// Records the time of disk faults: statements that began before their end may fail because of
    /// them.
    pub(super) fn note_broken_disks(&self, now: Duration, hosts: &Hosts) {
        let is_disk = |(broken, _): &(Broken, Duration)| {
            match broken {
                Broken::CrashInIo(_) | Broken::FailedIo(_) => true,
                Broken::Worn(_) | Broken::Damaged(_) | Broken::Lacking(_) => true,
                // A projector that cannot write ends.
                Broken::FullDisk(name) => is_projector(name),
                _ => false,
            }
        };
        let excused = |host: &Host| host.excused.load(Ordering::Relaxed) || host.has_flipped_bits();
        if self.broken.iter().any(is_disk) || hosts.all.values().any(excused) {
            hosts.disks_broken_at_ms.store(now.as_millis() as u64, Ordering::Relaxed);
        }
    }

    pub(super) fn is_down(&self, name: &str) -> bool {
        self.broken.iter().any(|(broken, _)| matches!(broken, Broken::Down(down) if down == name))
    }

    pub(super) fn is_damaged(&self, name: &str) -> bool {
        self.broken
            .iter()
            .any(|(broken, _)| matches!(broken, Broken::Damaged(known) if known == name))
    }

    pub(super) fn is_lacking(&self, name: &str) -> bool {
        self.broken
            .iter()
            .any(|(broken, _)| matches!(broken, Broken::Lacking(known) if known == name))
    }

    pub(super) fn crash(&mut self, name: &str, end: Duration, sim: &mut Sim<'_>, hosts: &Hosts) {
        hosts.all[name].fs.crash();
        sim.crash(name.to_owned());
        self.broken.push((Broken::Down(name.to_owned()), end));
    }

    /// Advances the clocks, each at its own rate.
    fn move_clocks(&mut self, now: Duration, hosts: &Hosts) {
        let now_ms = now.as_millis() as u64;
        if now_ms < self.clock_moved_ms + CLOCK_STEP_MS {
            return;
        }
        self.clock_moved_ms = now_ms;
        for (n, host) in hosts.all.values().enumerate() {
            // Between nine and eleven tenths of the true rate.
            host.clock.advance(CLOCK_STEP_MS * (90 + (n as u64 * 7) % 21) / 100);
        }
    }
}

pub(super) fn note(summary: &Shared, kind: &'static str, now: Duration, end: Duration) {
    let mut summary = summary.lock().expect("not poisoned");
    summary.fault(kind);
    summary.note((kind, now, end));
}

pub(super) fn is_projector(name: &str) -> bool {
    name.starts_with("projector")
}
