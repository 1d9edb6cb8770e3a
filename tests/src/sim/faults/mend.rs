//! Repairs of faults, and the handling of processes that have ended.

use std::sync::atomic::Ordering;
use std::time::Duration;

use turmoil::Sim;

use super::driver::{Broken, Faults, RESTART, is_projector};
use super::of_copies::leads_beside_a_spare;
use crate::sim::cluster::disks::{judge_flipped, wipe};
use crate::sim::cluster::hosts::Hosts;
use crate::sim::{LATENCY_MAX, Shared};

/// The maximum time for which a process continues after a failed file operation, in milliseconds.
const WORN_MS_MAX: u64 = 20_000;

impl Faults {
    /// Handles machines that crashed during a file operation, and processes that have ended with an
    /// error.
    pub(super) fn notice_crashes(&mut self, now: Duration, sim: &mut Sim<'_>, hosts: &Hosts) {
        for (name, host) in &hosts.all {
            let ended = host.ended.swap(false, Ordering::Relaxed) || host.fs.is_crashed();
            if ended && !self.is_down(name) {
                self.crash(name, now + RESTART, sim, hosts);
            }
        }
    }

    pub(super) fn mend(
        &mut self,
        now: Duration,
        sim: &mut Sim<'_>,
        hosts: &Hosts,
        summary: &Shared,
    ) {
        let (over, still): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.broken).into_iter().partition(|(_, end)| *end <= now);
        self.broken = still;
        for (broken, _) in over {
            match broken {
                // The process has just crashed again.
                Broken::Down(name) if self.is_down(&name) => {}
                Broken::Down(name) if self.stays_down(&name, now, hosts, summary) => {
                    self.broken.push((Broken::Down(name), now + RESTART));
                }
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
                    sim.set_link_max_message_latency(one, other, LATENCY_MAX);
                }
                Broken::LongLog => {
                    let projectors = hosts.all.values().filter(|host| is_projector(&host.name));
                    projectors.for_each(|host| host.purges.ask(self.purges.u64(..)));
                }
                Broken::FullDisk(name) => hosts.all[&name].fs.set_capacity(u64::MAX),
                Broken::FailedIo(name) if self.continues_after_fault(&name) => {
                    hosts.all[&name].fs.disarm_faults();
                    let more = Duration::from_millis(self.after_failed_io.u64(..WORN_MS_MAX));
                    self.broken.push((Broken::Worn(name), self.until.min(now + more)));
                }
                Broken::CrashInIo(name) | Broken::FailedIo(name) | Broken::Worn(name) => {
                    // Armed faults must not hit the next process.
                    hosts.all[&name].fs.disarm_faults();
                    if !self.is_down(&name) {
                        self.crash(&name, now + RESTART, sim, hosts);
                    }
                }
                // The projector is complete again, from another copy.
                Broken::Lacking(name) if !hosts.all[&name].documents.is_told_of_loss() => {}
                // The bits are flipped back first, and a copy that has everything takes over.
                Broken::Lacking(name)
                    if self.is_damaged(&name)
                        || hosts.all[&name].has_flipped_bits()
                        || leads_beside_a_spare(&name, hosts) =>
                {
                    self.broken.push((Broken::Lacking(name), now + RESTART));
                }
                Broken::Lacking(name) => {
                    if !self.is_down(&name) {
                        self.crash(&name, now + RESTART, sim, hosts);
                    }
                    if !hosts.all[&name].accept_loss() {
                        self.broken.push((Broken::Lacking(name), now + RESTART));
                    }
                }
                Broken::Damaged(name) => {
                    if !self.is_down(&name) {
                        self.crash(&name, now + RESTART, sim, hosts);
                    }
                    let host = &hosts.all[&name];
                    host.fs.restart();
                    // Armed faults must not hit the check.
                    host.fs.disarm_faults();
                    judge_flipped(host, summary);
                    match is_projector(&name) {
                        true if self.leaves_damage(&name, now, hosts) => {}
                        true => host.fs.flip_back(),
                        false => wipe(host),
                    }
                }
            }
        }
    }

    /// Decides about the disk of a process that is about to start; true if the process must remain
    /// stopped.
    fn stays_down(&mut self, name: &str, now: Duration, hosts: &Hosts, summary: &Shared) -> bool {
        self.decide_damage(name, now, hosts, summary);
        self.replaces_disk(name, now, hosts, summary) || self.waits_for_take_over(name, now, hosts)
    }

    /// True if a process continues after a failed file operation.
    pub(super) fn continues_after_fault(&mut self, name: &str) -> bool {
        !self.is_down(name) && self.after_failed_io.bool()
    }
}
