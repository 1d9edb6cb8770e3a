//! Faults at random times.

use std::time::Duration;

use turmoil::Sim;

use super::driver::{Broken, Faults, is_projector};
use crate::sim::cluster::disks::{flip, wipe};
use crate::sim::cluster::hosts::Hosts;

/// The maximum jump of a clock, in milliseconds.
const JUMP_MS_MAX: u64 = 3_600_000;

impl Faults {
    /// Starts a random fault; returns its kind.
    pub(super) fn inject_fault(
        &mut self,
        end: Duration,
        sim: &mut Sim<'_>,
        hosts: &Hosts,
    ) -> Option<&'static str> {
        let names: Vec<&String> = hosts.all.keys().collect();
        let kind = self.random.u8(..30);
        let fits = |name: &&&String| match kind {
            19 => !name.starts_with("coordinator"),
            22 | 23 => name.starts_with("indexer"),
            21 | 24 | 25 | 27.. => is_projector(name),
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
            9..16 if name == other => None,
            kind @ 9..16 => self.break_link(kind, name, other, end, sim),
            16 => Some(self.pause(&name, end, sim, hosts)),
            17 | 18 => {
                let jump_ms = self.random.u64(1_000..JUMP_MS_MAX);
                let shown = host.clock_ms();
                let jump = if self.random.bool() { shown + jump_ms } else { shown - jump_ms };
                host.clock.set(jump);
                Some("clock_jump")
            }
            24 | 25 => self.fail_over(kind == 24, &name, end, sim, hosts),
            26 => {
                for member in names.iter().filter(|name| name.starts_with("coordinator")) {
                    if !self.is_down(member) {
                        self.crash(member, end, sim, hosts);
                    }
                }
                Some("members_crash")
            }
            kind => self.break_disk(kind, &name, end, sim, hosts),
        }
    }

    /// Breaks the disk of a process.
    fn break_disk(
        &mut self,
        kind: u8,
        name: &str,
        end: Duration,
        sim: &mut Sim<'_>,
        hosts: &Hosts,
    ) -> Option<&'static str> {
        let host = &hosts.all[name];
        let name = name.to_owned();
        match kind {
            7 | 8 | 27 => {
                let soon = if is_projector(&name) { 30 } else { 200 };
                host.fs.crash_at(host.fs.operations() + self.random.u64(1..soon));
                self.excused(host, Broken::CrashInIo(name), end);
                Some("crash_in_io")
            }
            19 => {
                // A capacity of zero fails every growth.
                host.fs.set_capacity(0);
                self.broken.push((Broken::FullDisk(name), end));
                Some("full_disk")
            }
            20 | 28 => {
                host.fs.fail_at(host.fs.operations() + self.random.u64(1..50));
                self.excused(host, Broken::FailedIo(name), end);
                Some("failed_io")
            }
            21 => {
                host.fs.fail_next_sync();
                self.excused(host, Broken::FailedIo(name), end);
                Some("failed_sync")
            }
            22 | 29 if flip(host, &mut self.random) => {
                let of_source = is_projector(&name);
                self.excused(host, Broken::Damaged(name), end);
                Some(if of_source { "flipped_source_bit" } else { "flipped_bit" })
            }
            23 => {
                self.crash(&name, end, sim, hosts);
                host.fs.restart();
                wipe(host);
                Some("empty_disk")
            }
            _ => None,
        }
    }

    /// Removes the end of the source's history: at the producer of a pushed bucket, or on the disk
    /// of a projector.
    fn fail_over(
        &mut self,
        of_producer: bool,
        name: &str,
        end: Duration,
        sim: &mut Sim<'_>,
        hosts: &Hosts,
    ) -> Option<&'static str> {
        let has_lost = match &hosts.producer {
            Some(producer) if of_producer => producer.fail_over() > 0,
            _ if hosts.copied.is_some() => {
                self.crash_and_replace(name, false, end, sim, hosts);
                return Some("crash");
            }
            _ => {
                self.crash(name, end, sim, hosts);
                let mut random = self.random.fork();
                self.restore_older(name, hosts, &mut random)
            }
        };
        has_lost.then_some("source_failover")
    }

    /// Holds back all messages of a process.
    pub(super) fn pause(
        &mut self,
        name: &str,
        end: Duration,
        sim: &mut Sim<'_>,
        hosts: &Hosts,
    ) -> &'static str {
        for other in hosts.all.keys().map(String::as_str).chain(["client"]) {
            sim.hold(name, other);
            self.broken.push((Broken::Held(name.to_owned(), other.to_owned()), end));
        }
        "pause"
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
}
