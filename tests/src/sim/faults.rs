//! The faults of a run, drawn from the seed. Each fault lasts for a while and is then repaired; the summary counts them
//! by kind.
//!
//! | kind | effect |
//! |---|---|
//! | `crash`, `crash_in_io` | a process ends, at any await or in the middle of a file operation, and restarts |
//! | `members_crash` | all coordinators restart at once |
//! | `cut`, `cut_one_way`, `held`, `slow` | a connection loses all messages, loses one direction, stalls, or is slow |
//! | `pause` | a process neither sends nor receives for a while, and then receives everything at once |
//! | `clock_jump` | a clock jumps by up to an hour, back or forth; all of them drift all the time |
//! | `full_disk`, `failed_io` | a disk accepts no growth; one file operation fails, and the process is restarted soon or long after |
//! | `failed_sync` | a projector's disk fails at a sync, and its process ends soon after |
//! | `flipped_bit` | a bit of an indexer's files flips; the operator notices it and replaces the disk |
//! | `flipped_source_bit` | a bit of a projector's files flips; the operator notices it and flips it back, and all documents must be there |
//! | `empty_disk` | an indexer restarts with an empty disk |
//! | `source_failover` | a source restarts from an older copy that lacks the end of some vbuckets (the producer of a pushed bucket is not told), or that producer begins new branches at earlier places |
//! | `purge` | an indexer is down or cut off, and the source's log is purged before it returns: in half of the seeds, in some of them during hand-overs |
//! | `loss_at_stage`, `crash_at_stage` | a source restarts from an older copy, or another process dies, at the moment when an index build begins, or a move, a rollback or a hand-over enters another stage ([`super::stages`]): in a seventh of the seeds |
//! | `crash_in_scan` | an indexer dies while a slow reader has a part of its rows |
//! | `removed_node` | an operator removes an indexer and starts it again, with its data or on an empty disk ([`super::removals`]): in an eighth of the seeds |

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

use turmoil::Sim;

use super::disks::{flip, judge_flipped, wipe};
use super::documents::copies::Copies;
use super::hosts::{Host, Hosts};
use super::stages::{self, Stage};
use super::{CALM, Shared};

/// Maximum duration of a fault.
const BROKEN_MS_MAX: u64 = 4_000;
/// Downtime of a restarted process.
const RESTART: Duration = Duration::from_millis(300);
/// Interval at which clocks advance.
const CLOCK_STEP_MS: u64 = 100;
/// Maximum jump of a clock.
const JUMP_MS_MAX: u64 = 3_600_000;
/// Maximum time that a process continues after a failed file operation.
const WORN_MS_MAX: u64 = 20_000;
/// Maximum time between two copies of a projector's disk.
const COPY_MS_MAX: u64 = 1_200;

/// A fault in effect.
#[derive(Debug, PartialEq)]
enum Broken {
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
    /// A file operation has failed and all others work; the process must be restarted.
    Worn(String),
    /// A process that goes down at a file operation soon.
    CrashInIo(String),
    /// A bit of a disk is wrong; the disk must be replaced.
    Damaged(String),
    /// The source's log is longer than its bound.
    LongLog,
}

/// The faults of a run.
pub struct Faults {
    random: fastrand::Rng,
    until: Duration,
    next: Duration,
    broken: Vec<(Broken, Duration)>,
    clock_moved_ms: u64,
    /// Purges have a generator of their own.
    purges: fastrand::Rng,
    next_purge: Duration,
    /// The generator of faults at changes of stage, if this seed has such faults, and the last stages.
    at_stages: Option<fastrand::Rng>,
    stages: BTreeSet<Stage>,
    /// The generator of the time that a process continues after a failed file operation.
    after_failed_io: fastrand::Rng,
    /// The generator of faults in the midst of a scan, and the earliest time of the next one.
    in_scans: fastrand::Rng,
    next_in_scan: Duration,
    /// The number of parts that slow readers have had.
    parts_read: u64,
    /// The generator of the next starts of removed nodes.
    removals: fastrand::Rng,
    /// The copies of the projectors' disks, and the time of the next ones.
    copies: BTreeMap<String, Copies>,
    copying: fastrand::Rng,
    next_copy: Duration,
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
            next_purge: if seed.is_multiple_of(3) || seed % 6 == 5 { CALM } else { Duration::MAX },
            at_stages: stages::are_chosen(seed).then(|| fastrand::Rng::with_seed(seed ^ 0x57a6)),
            stages: BTreeSet::new(),
            after_failed_io: fastrand::Rng::with_seed(seed ^ 0xd15c),
            in_scans: fastrand::Rng::with_seed(seed ^ 0x5ca2),
            next_in_scan: CALM,
            parts_read: 0,
            removals: fastrand::Rng::with_seed(seed ^ 0x4e30),
            copies: BTreeMap::new(),
            copying: fastrand::Rng::with_seed(seed ^ 0xc0b1),
            next_copy: CALM,
        }
    }

    /// Repairs expired faults, and starts a new one if it is time. Called at each tick.
    pub fn drive(&mut self, sim: &mut Sim<'_>, hosts: &Hosts, summary: &Shared) {
        let now = sim.elapsed();
        self.move_clocks(now, hosts);
        self.notice_crashes(now, sim, hosts);
        self.mend(now, sim, hosts, summary);
        self.note_broken_disks(now, hosts);
        self.start_removed(now, sim, hosts, summary);
        if now >= self.next_copy {
            self.copy_disks(now, hosts);
        }
        if now >= self.next_purge && now <= self.until {
            self.purge(now, sim, hosts, summary);
        }
        if now >= CALM && now <= self.until {
            self.break_at_stage(now, sim, hosts, summary);
            self.break_in_scan(now, sim, hosts, summary);
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

    /// Injects a fault at a change of stage: mostly the source loses a part of its history, or a process dies.
    fn break_at_stage(
        &mut self,
        now: Duration,
        sim: &mut Sim<'_>,
        hosts: &Hosts,
        summary: &Shared,
    ) {
        let Some(mut random) = self.at_stages.take() else { return };
        let present = hosts.stages.lock().expect("not poisoned").clone();
        let is_new = present.iter().any(|stage| !self.stages.contains(stage));
        self.stages = present;
        if is_new && random.u8(..6) == 0 {
            let end = now + Duration::from_millis(random.u64(100..BROKEN_MS_MAX));
            let is_loss = random.u8(..3) > 0;
            let fits = |name: &&String| is_projector(name) == is_loss;
            let names: Vec<&String> = hosts.all.keys().filter(fits).collect();
            let name = names[random.usize(..names.len())].clone();
            if !self.is_down(&name) {
                self.crash(&name, end, sim, hosts);
                if is_loss {
                    self.restore_older(&name, hosts, &mut random);
                }
                note(summary, if is_loss { "loss_at_stage" } else { "crash_at_stage" }, now, end);
            }
        }
        self.at_stages = Some(random);
    }

    /// Restarts indexers that were removed, half of them with an empty disk.
    fn start_removed(&mut self, now: Duration, sim: &mut Sim<'_>, hosts: &Hosts, summary: &Shared) {
        for node in hosts.removals.take() {
            let name = format!("indexer-{node}");
            let end = now + RESTART;
            // A process that is down starts again anyway.
            if !self.is_down(&name) {
                self.crash(&name, end, sim, hosts);
            }
            if self.removals.bool() {
                hosts.all[&name].fs.restart();
                wipe(&hosts.all[&name]);
            }
            note(summary, "removed_node", now, end);
        }
    }

    /// Ends an indexer while a slow reader has a part of its rows.
    fn break_in_scan(&mut self, now: Duration, sim: &mut Sim<'_>, hosts: &Hosts, summary: &Shared) {
        let before = self.parts_read;
        self.parts_read = hosts.parts_read.load(Ordering::Relaxed);
        if self.parts_read == before || now < self.next_in_scan {
            return;
        }
        let random = &mut self.in_scans;
        self.next_in_scan = now + Duration::from_millis(random.u64(500..4_000));
        let end = now + Duration::from_millis(random.u64(100..BROKEN_MS_MAX));
        let indexers: Vec<_> = hosts.all.keys().filter(|n| n.starts_with("indexer")).collect();
        let name = indexers[random.usize(..indexers.len())].clone();
        if !self.is_down(&name) {
            self.crash(&name, end, sim, hosts);
            note(summary, "crash_in_scan", now, end);
        }
    }

    /// Makes an indexer miss mutations, and the source purge its log.
    fn purge(&mut self, now: Duration, sim: &mut Sim<'_>, hosts: &Hosts, summary: &Shared) {
        let random = &mut self.purges;
        self.next_purge = now + Duration::from_millis(random.u64(1_000..5_000));
        let end = now + Duration::from_millis(random.u64(300..BROKEN_MS_MAX));
        let indexers: Vec<_> = hosts.all.keys().filter(|n| n.starts_with("indexer")).collect();
        let name = indexers[random.usize(..indexers.len())].clone();
        if self.is_down(&name) || self.is_damaged(&name) {
            return;
        }
        // The repairs run in this order: the log is purged, then the indexer comes back.
        self.broken.push((Broken::LongLog, end));
        if self.purges.bool() {
            self.crash(&name, end, sim, hosts);
        } else {
            sim.partition(name.clone(), "projector");
            self.broken.push((Broken::Cut(name, "projector".into()), end));
        }
        note(summary, "purge", now, end);
    }

    /// Copies the disks of the projectors, as far as they are whole.
    fn copy_disks(&mut self, now: Duration, hosts: &Hosts) {
        self.next_copy = now + Duration::from_millis(self.copying.u64(50..COPY_MS_MAX));
        for (name, host) in hosts.all.iter().filter(|(name, _)| is_projector(name)) {
            if !self.is_down(name) && !self.is_damaged(name) {
                let copies = self.copies.entry(name.clone()).or_default();
                copies.take(host, &mut self.copying);
            }
        }
    }

    /// Puts an older copy on the disk of a projector that is down; false if that loses nothing.
    fn restore_older(&mut self, name: &str, hosts: &Hosts, random: &mut fastrand::Rng) -> bool {
        let copies = self.copies.get_mut(name);
        copies.is_some_and(|copies| copies.put_back(&hosts.all[name], hosts, random))
    }

    fn inject_fault(
        &mut self,
        end: Duration,
        sim: &mut Sim<'_>,
        hosts: &Hosts,
    ) -> Option<&'static str> {
        let names: Vec<&String> = hosts.all.keys().collect();
        let kind = self.random.u8(..27);
        let fits = |name: &&&String| match kind {
            19 | 22 => name.starts_with("indexer") || is_projector(name),
            23 => name.starts_with("indexer"),
            21 | 24 | 25 => is_projector(name),
            _ => true,
        };
        let fit: Vec<&String> = names.iter().filter(fits).copied().collect();
        let name = fit[self.random.usize(..fit.len())].clone();
        // The client's process has the routers, so its links break as well.
        let other = match self.random.usize(..names.len() + 2) {
            n if n < names.len() => names[n].clone(),
            _ => "client".to_owned(),
        };
        let host = &hosts.all[&name];
        if self.is_down(&name) {
            return None;
        }
        match kind {
            0..7 => {
                self.crash(&name, end, sim, hosts);
                Some("crash")
            }
            7 | 8 => {
                host.fs.crash_at(host.fs.operations() + self.random.u64(1..200));
                self.excused(host, Broken::CrashInIo(name.clone()), end);
                Some("crash_in_io")
            }
            9..16 if name == other => None,
            kind @ 9..16 => self.break_link(kind, name, other, end, sim),
            16 => {
                names.iter().for_each(|other| sim.hold(name.clone(), (*other).clone()));
                sim.hold(name.clone(), "client");
                let held = names.iter().map(|other| Broken::Held(name.clone(), (*other).clone()));
                self.broken.extend(held.map(|held| (held, end)));
                self.broken.push((Broken::Held(name.clone(), "client".into()), end));
                Some("pause")
            }
            17 | 18 => {
                let jump_ms = self.random.u64(1_000..JUMP_MS_MAX);
                let shown = host.clock_ms();
                let jump = if self.random.bool() { shown + jump_ms } else { shown - jump_ms };
                host.clock.set(jump);
                Some("clock_jump")
            }
            19 => {
                // A capacity of zero fails every growth.
                host.fs.set_capacity(0);
                self.broken.push((Broken::FullDisk(name), end));
                Some("full_disk")
            }
            20 => {
                host.fs.fail_at(host.fs.operations() + self.random.u64(1..50));
                self.excused(host, Broken::FailedIo(name.clone()), end);
                Some("failed_io")
            }
            21 if self.random.bool() => {
                host.fs.crash_at(host.fs.operations() + self.random.u64(1..30));
                self.excused(host, Broken::CrashInIo(name.clone()), end);
                Some("crash_in_io")
            }
            21 => {
                host.fs.fail_next_sync();
                self.excused(host, Broken::FailedIo(name.clone()), end);
                Some("failed_sync")
            }
            22 if flip(host, &mut self.random) => {
                self.excused(host, Broken::Damaged(name.clone()), end);
                Some(if is_projector(&name) { "flipped_source_bit" } else { "flipped_bit" })
            }
            23 => {
                self.crash(&name, end, sim, hosts);
                host.fs.restart();
                wipe(host);
                Some("empty_disk")
            }
            26 => {
                for member in names.iter().filter(|name| name.starts_with("coordinator")) {
                    if !self.is_down(member) {
                        self.crash(member, end, sim, hosts);
                    }
                }
                Some("members_crash")
            }
            24 if let Some(producer) = &hosts.producer => {
                (producer.fail_over() > 0).then_some("source_failover")
            }
            24 | 25 => {
                self.crash(&name, end, sim, hosts);
                let mut random = self.random.fork();
                self.restore_older(&name, hosts, &mut random).then_some("source_failover")
            }
            _ => None,
        }
    }

    fn break_link(
        &mut self,
        kind: u8,
        name: String,
        other: String,
        end: Duration,
        sim: &mut Sim<'_>,
    ) -> Option<&'static str> {
        let (broken, kind) = match kind {
            9..12 => {
                sim.partition(name.clone(), other.clone());
                (Broken::Cut(name, other), "cut")
            }
            12 | 13 => {
                sim.partition_oneway(name.clone(), other.clone());
                (Broken::CutOneWay(name, other), "cut_one_way")
            }
            14 => {
                sim.hold(name.clone(), other.clone());
                (Broken::Held(name, other), "held")
            }
            _ => {
                let slow = Duration::from_millis(self.random.u64(50..800));
                sim.set_link_max_message_latency(name.clone(), other.clone(), slow);
                (Broken::Slow(name, other), "slow")
            }
        };
        self.broken.push((broken, end));
        Some(kind)
    }

    /// Marks a disk as broken: until the next start, its errors are excused.
    fn excused(&mut self, host: &Host, broken: Broken, end: Duration) {
        host.excused.store(true, Ordering::Relaxed);
        self.broken.push((broken, end));
    }

    /// Notes the time of disk faults: statements that began before it may fail with their errors.
    fn note_broken_disks(&self, now: Duration, hosts: &Hosts) {
        let is_disk = |(broken, _): &(Broken, Duration)| {
            match broken {
                Broken::CrashInIo(_) | Broken::FailedIo(_) => true,
                Broken::Worn(_) | Broken::Damaged(_) => true,
                // A projector that cannot write ends.
                Broken::FullDisk(name) => is_projector(name),
                _ => false,
            }
        };
        let excused = |host: &Host| host.excused.load(Ordering::Relaxed);
        if self.broken.iter().any(is_disk) || hosts.all.values().any(excused) {
            hosts.disks_broken_at_ms.store(now.as_millis() as u64, Ordering::Relaxed);
        }
    }

    fn is_down(&self, name: &str) -> bool {
        self.broken.iter().any(|(broken, _)| matches!(broken, Broken::Down(down) if down == name))
    }

    fn is_damaged(&self, name: &str) -> bool {
        self.broken
            .iter()
            .any(|(broken, _)| matches!(broken, Broken::Damaged(known) if known == name))
    }

    fn crash(&mut self, name: &str, end: Duration, sim: &mut Sim<'_>, hosts: &Hosts) {
        hosts.all[name].fs.crash();
        sim.crash(name.to_owned());
        self.broken.push((Broken::Down(name.to_owned()), end));
    }

    /// Handles machines that crashed in a file operation, and processes that have ended by themselves.
    fn notice_crashes(&mut self, now: Duration, sim: &mut Sim<'_>, hosts: &Hosts) {
        for (name, host) in &hosts.all {
            let ended = host.ended.swap(false, Ordering::Relaxed) || host.fs.is_crashed();
            if ended && !self.is_down(name) {
                self.crash(name, now + RESTART, sim, hosts);
            }
        }
    }

    fn mend(&mut self, now: Duration, sim: &mut Sim<'_>, hosts: &Hosts, summary: &Shared) {
        let (over, still): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.broken).into_iter().partition(|(_, end)| *end <= now);
        self.broken = still;
        for (broken, _) in over {
            match broken {
                // The process has just crashed again.
                Broken::Down(name) if self.is_down(&name) => {}
                Broken::Down(name) => {
                    let host = &hosts.all[&name];
                    host.fs.restart();
                    // A fault of the disk outlasts a restart.
                    let damaged = self.is_damaged(&name);
                    host.excused.store(damaged, Ordering::Relaxed);
                    sim.bounce(name);
                }
                Broken::Cut(one, other) => sim.repair(one, other),
                Broken::CutOneWay(one, other) => sim.repair_oneway(one, other),
                Broken::Held(one, other) => sim.release(one, other),
                Broken::Slow(one, other) => {
                    sim.set_link_max_message_latency(one, other, super::LATENCY_MAX);
                }
                Broken::LongLog => {
                    let projectors = hosts.all.values().filter(|host| is_projector(&host.name));
                    projectors.for_each(|host| host.purges.ask(self.purges.u64(..)));
                }
                Broken::FullDisk(name) => hosts.all[&name].fs.set_capacity(u64::MAX),
                Broken::FailedIo(name) if self.continues_after_fault(&name) => {
                    hosts.all[&name].fs.forget_faults();
                    let more = Duration::from_millis(self.after_failed_io.u64(..WORN_MS_MAX));
                    self.broken.push((Broken::Worn(name), self.until.min(now + more)));
                }
                Broken::CrashInIo(name) | Broken::FailedIo(name) | Broken::Worn(name) => {
                    // Armed faults must not hit the next process.
                    hosts.all[&name].fs.forget_faults();
                    if !self.is_down(&name) {
                        self.crash(&name, now + RESTART, sim, hosts);
                    }
                }
                Broken::Damaged(name) => {
                    if !self.is_down(&name) {
                        self.crash(&name, now + RESTART, sim, hosts);
                    }
                    let host = &hosts.all[&name];
                    host.fs.restart();
                    // Armed faults must not hit the check.
                    host.fs.forget_faults();
                    judge_flipped(host, summary);
                    match is_projector(&name) {
                        true => host.fs.flip_back(),
                        false => wipe(host),
                    }
                }
            }
        }
    }

    /// True if a process continues after a failed file operation.
    fn continues_after_fault(&mut self, name: &str) -> bool {
        !self.is_down(name) && self.after_failed_io.bool()
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

fn note(summary: &Shared, kind: &'static str, now: Duration, end: Duration) {
    let mut summary = summary.lock().expect("not poisoned");
    summary.fault(kind);
    summary.note((kind, now, end));
}

fn is_projector(name: &str) -> bool {
    name.starts_with("projector")
}
