//! Faults at special times: at a stage of a procedure, during a scan, while an indexer misses a
//! purge; and the copies of disks.

use std::sync::atomic::Ordering;
use std::time::Duration;

use turmoil::Sim;

use super::driver::{BROKEN_MS_MAX, Broken, Faults, RESTART, is_projector, note};
use crate::sim::cluster::disks::wipe;
use crate::sim::cluster::hosts::Hosts;
use crate::sim::operator::removals::LOST_FOR;
use crate::sim::{CALM, Shared};

/// The maximum time until an operator accepts a loss, in milliseconds.
const ACCEPTED_MS_MAX: u64 = 12_000;
/// The maximum time between two copies of a projector's disk, in milliseconds.
const COPY_MS_MAX: u64 = 1_200;

impl Faults {
    /// Starts a fault at a change of stage: mostly the source loses a part of its history, or a
    /// process crashes.
    pub(super) fn break_at_stage(
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
                let is_loss = is_loss && hosts.copied.is_none() && !self.keeps_history;
                if is_loss {
                    self.restore_older(&name, hosts, &mut random);
                }
                let kind = if is_loss { "loss_at_stage" } else { "crash_at_stage" };
                note(summary, kind, now, end);
            }
        }
        self.at_stages = Some(random);
    }

    /// Restarts indexers that were removed, half of them with an empty disk.
    pub(super) fn start_removed(
        &mut self,
        now: Duration,
        sim: &mut Sim<'_>,
        hosts: &Hosts,
        summary: &Shared,
    ) {
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

    /// Ends indexers for so long that the coordinators take them for dead.
    pub(super) fn lose_indexers(
        &mut self,
        now: Duration,
        sim: &mut Sim<'_>,
        hosts: &Hosts,
        summary: &Shared,
    ) {
        for node in hosts.removals.take_lost() {
            let (name, end) = (format!("indexer-{node}"), now + LOST_FOR);
            if now >= CALM && end <= self.until && !self.is_down(&name) {
                self.crash(&name, end, sim, hosts);
                note(summary, "lost_node", now, end);
            }
        }
    }

    /// Ends an indexer while a slow reader has received some of its rows.
    pub(super) fn break_in_scan(
        &mut self,
        now: Duration,
        sim: &mut Sim<'_>,
        hosts: &Hosts,
        summary: &Shared,
    ) {
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

    /// Lets an indexer miss mutations, and the source purge its log.
    pub(super) fn purge(
        &mut self,
        now: Duration,
        sim: &mut Sim<'_>,
        hosts: &Hosts,
        summary: &Shared,
    ) {
        let random = &mut self.purges;
        self.next_purge = now + Duration::from_millis(random.u64(1_000..5_000));
        let end = now + Duration::from_millis(random.u64(300..BROKEN_MS_MAX));
        let indexers: Vec<_> = hosts.all.keys().filter(|n| n.starts_with("indexer")).collect();
        let name = indexers[random.usize(..indexers.len())].clone();
        if self.is_down(&name) || self.is_damaged(&name) {
            return;
        }
        // The repairs run in this order: the log is purged, then the indexer restarts.
        self.broken.push((Broken::LongLog, end));
        if self.purges.bool() {
            self.crash(&name, end, sim, hosts);
        } else {
            sim.partition(name.clone(), "projector");
            self.broken.push((Broken::Cut(name, "projector".into()), end));
        }
        note(summary, "purge", now, end);
    }

    /// Copies the disks of the projectors, except damaged ones.
    pub(super) fn copy_disks(&mut self, now: Duration, hosts: &Hosts) {
        self.next_copy = now + Duration::from_millis(self.copying.u64(50..COPY_MS_MAX));
        for (name, host) in hosts.all.iter().filter(|(name, _)| is_projector(name)) {
            if !self.is_down(name) && !self.is_damaged(name) {
                let copies = self.copies.entry(name.clone()).or_default();
                copies.take(host, &mut self.copying);
            }
        }
    }

    /// Restores an older copy on the disk of a stopped projector; false if no copy lacks a
    /// mutation.
    pub(super) fn restore_older(
        &mut self,
        name: &str,
        hosts: &Hosts,
        random: &mut fastrand::Rng,
    ) -> bool {
        let copies = self.copies.get_mut(name).filter(|_| !self.keeps_history);
        let is_older =
            copies.is_some_and(|copies| copies.put_back(&hosts.all[name], hosts, random));
        if is_older && let Some(pair) = &hosts.pair {
            pair.lose();
        }
        is_older
    }

    /// Acts as the operator of each projector that has lost mutations: there is no newer copy, so
    /// the operator accepts the loss some seconds later.
    pub(super) fn notice_losses(&mut self, now: Duration, hosts: &Hosts) {
        for (name, host) in hosts.all.iter().filter(|(name, _)| is_projector(name)) {
            if host.documents.is_told_of_loss() && !self.is_lacking(name) {
                let later = now + Duration::from_millis(self.operator.u64(..ACCEPTED_MS_MAX));
                let end = later.min(self.until).max(now);
                self.broken.push((Broken::Lacking(name.clone()), end));
            }
        }
    }
}
