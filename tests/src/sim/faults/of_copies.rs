//! Faults of the copies of an embedded bucket. The leader is known from the client's catalog.
//!
//! A copy's disk is replaced by an empty or older one only if another copy in sync has all
//! acknowledged mutations, so that no fault here loses data of the bucket. The coordinators are
//! asked for the copies in sync when the process is down, since a catalog may be older than the
//! last proposals of the process. A leader whose disk is replaced remains down until another copy
//! leads, since no operator replaces a disk within the second of a take-over.

use std::time::Duration;

use proto::model::copies::Copies;
use proto::model::ids::{BucketId, NodeId};
use turmoil::Sim;

use super::driver::{Broken, Faults, note};
use crate::sim::cluster::disks::wipe;
use crate::sim::cluster::hosts::Hosts;
use crate::sim::{CALM, Shared};

/// The maximum duration of a fault of copies in milliseconds, which is longer than a take-over.
const BROKEN_MS_MAX: u64 = 5_000;
/// The time after which a change of the copies that a process has proposed before its end is
/// decided.
pub(super) const DECIDED: Duration = Duration::from_secs(1);
/// The time limit until the coordinators answer about the copies after [`DECIDED`].
pub(super) const CONFIRMED: Duration = Duration::from_secs(1);
/// The maximum time for which a leader whose disk was replaced remains down. A copy that was not
/// compared with a leader since its own start takes over after half a minute.
const TAKE_OVER_WAIT: Duration = Duration::from_secs(45);

pub(super) fn name_of(hosts: &Hosts, node: NodeId) -> String {
    let host = hosts.all.values().find(|host| host.info.id == node);
    host.expect("a projector").name.clone()
}

/// The replacement of a stopped process's disk.
pub(super) struct Replacement {
    /// True for an empty disk, false for an older copy of the disk.
    is_lost: bool,
    /// The time after which the coordinators have decided all proposals of the process.
    decided_at: Duration,
}

impl Faults {
    /// Starts a fault of the copies of the client's bucket if one is due.
    pub(super) fn break_copies(
        &mut self,
        now: Duration,
        sim: &mut Sim<'_>,
        hosts: &Hosts,
        summary: &Shared,
    ) {
        let copies = hosts.copied.as_ref().and_then(|copied| copied.copies_of_client());
        let Some((_, copies)) = copies else { return };
        self.crash_cut_leader(now, sim, hosts, summary);
        if now < self.next_of_copies.max(CALM) {
            return;
        }
        self.next_of_copies = now + Duration::from_millis(self.of_copies.u64(300..2_500));
        let end = now + Duration::from_millis(self.of_copies.u64(200..BROKEN_MS_MAX));
        if let Some(kind) = self.break_copy(&copies, end, sim, hosts) {
            note(summary, kind, now, end);
        }
    }

    fn break_copy(
        &mut self,
        copies: &Copies,
        end: Duration,
        sim: &mut Sim<'_>,
        hosts: &Hosts,
    ) -> Option<&'static str> {
        let leader = name_of(hosts, copies.leader);
        let followers: Vec<NodeId> = copies.followers().chain(copies.joining.clone()).collect();
        let follower = match followers[..] {
            [] => None,
            _ => Some(name_of(hosts, followers[self.of_copies.usize(..followers.len())])),
        };
        let kind = self.of_copies.u8(..10);
        let name = if matches!(kind, 0 | 3 | 6 | 7) { leader.clone() } else { follower? };
        if self.is_down(&name) || self.is_damaged(&name) || self.is_down(&leader) {
            return None;
        }
        match kind {
            0 => self.crash(&name, end, sim, hosts),
            1 => self.crash(&name, end, sim, hosts),
            2 => self.cut_all(&leader, |other| other.starts_with("projector"), end, sim, hosts),
            9 => {
                // The leader writes for a moment and then crashes: another copy leads without these writes, and the old leader restarts
                // with them.
                self.cut_all(&leader, |other| other.starts_with("projector"), end, sim, hosts);
                let after = Duration::from_millis(self.of_copies.u64(50..500));
                self.cut_leader = Some((leader, sim.elapsed() + after, end));
            }
            3 => self.cut_all(&leader, |other| other != "client", end, sim, hosts),
            4 => {
                // The repairs run in this order: the logs are purged, then the copy restarts.
                self.broken.push((Broken::LongLog, end));
                self.crash(&name, end, sim, hosts);
            }
            5 => {
                self.crash(&name, end, sim, hosts);
                self.crash(&leader, end, sim, hosts);
            }
            6 => drop(self.pause(&name, end, sim, hosts)),
            _ => self.crash_and_replace(&name, kind == 8, end, sim, hosts),
        }
        let kinds = [
            "leader_crash",
            "follower_crash",
            "copies_cut",
            "leader_isolated",
            "purge_while_away",
            "copies_crash",
            "leader_pause",
            "leader_crash",
            "follower_crash",
            "copies_cut",
        ];
        Some(kinds[usize::from(kind)])
    }

    /// Crashes a leader that was cut off from the other copies shortly before.
    fn crash_cut_leader(
        &mut self,
        now: Duration,
        sim: &mut Sim<'_>,
        hosts: &Hosts,
        summary: &Shared,
    ) {
        let Some((leader, _, end)) = self.cut_leader.take_if(|(_, at, _)| now >= *at) else {
            return;
        };
        if !self.is_down(&leader) && !self.is_damaged(&leader) {
            self.crash(&leader, end, sim, hosts);
            note(summary, "cut_leader_crash", now, end);
        }
    }

    /// Crashes a process whose disk is replaced before it restarts, by an empty disk or an older
    /// copy of the disk.
    pub(super) fn crash_and_replace(
        &mut self,
        name: &str,
        is_lost: bool,
        end: Duration,
        sim: &mut Sim<'_>,
        hosts: &Hosts,
    ) {
        let decided_at = sim.elapsed() + DECIDED;
        self.to_replace.insert(name.to_owned(), Replacement { is_lost, decided_at });
        self.crash(name, end.max(decided_at + CONFIRMED), sim, hosts);
    }

    /// Cuts a process off from the others for which `is_other` is true.
    fn cut_all(
        &mut self,
        name: &str,
        is_other: impl Fn(&str) -> bool,
        end: Duration,
        sim: &mut Sim<'_>,
        hosts: &Hosts,
    ) {
        for other in hosts.all.keys().filter(|other| *other != name && is_other(other)) {
            sim.partition(name.to_owned(), other.clone());
            self.broken.push((Broken::Cut(name.to_owned(), other.clone()), end));
        }
    }

    /// Replaces the disk of a stopped process if that was drawn and another copy in sync has all
    /// acknowledged mutations. True if the process must remain down until another copy leads.
    pub(super) fn replaces_disk(
        &mut self,
        name: &str,
        now: Duration,
        hosts: &Hosts,
        summary: &Shared,
    ) -> bool {
        let Some(Replacement { is_lost, decided_at }) = self.to_replace.remove(name) else {
            return false;
        };
        if self.keeps_history {
            return false;
        }
        let copied = hosts.copied.as_ref();
        let copies = copied.and_then(|copied| copied.confirmed_since(decided_at));
        let node = hosts.all[name].info.id;
        if !copies.is_some_and(|(bucket, copies)| is_spare((bucket, &copies), node, hosts)) {
            return false;
        }
        self.replaced.insert(name.to_owned(), now + TAKE_OVER_WAIT);
        if is_lost {
            hosts.all[name].fs.restart();
            wipe(&hosts.all[name]);
            hosts.all[name].documents.lose_all();
            hosts.pair.iter().for_each(|pair| pair.lose());
            note(summary, "lost_disk", now, now);
            return true;
        }
        let mut random = self.of_copies.fork();
        if self.restore_older(name, hosts, &mut random) {
            note(summary, "older_copy", now, now);
        }
        true
    }

    /// True if a projector whose disk was replaced must remain down, because no other copy leads
    /// yet.
    pub(super) fn waits_for_take_over(&mut self, name: &str, now: Duration, hosts: &Hosts) -> bool {
        let Some(until) = self.replaced.get(name).copied() else { return false };
        let copied = hosts.copied.as_ref();
        let copies = copied.and_then(|copied| copied.copies_of_client());
        let leads = copies.is_some_and(|(_, copies)| copies.leader == hosts.all[name].info.id);
        if leads && now < until {
            return true;
        }
        self.replaced.remove(name);
        false
    }
}

/// True if a projector leads and another copy in sync has all acknowledged mutations; the operator
/// then accepts no loss.
pub(super) fn leads_beside_a_spare(name: &str, hosts: &Hosts) -> bool {
    let node = hosts.all[name].info.id;
    let copies = hosts.copied.as_ref().and_then(|copied| copied.copies_of_client());
    copies.is_some_and(|(bucket, copies)| {
        copies.leader == node && is_spare((bucket, &copies), node, hosts)
    })
}

/// True if another copy in sync has all acknowledged mutations, on a disk without a flipped bit.
pub(super) fn is_spare((bucket, copies): (BucketId, &Copies), node: NodeId, hosts: &Hosts) -> bool {
    let Some(copied) = &hosts.copied else { return false };
    let is_whole = |other: NodeId| !hosts.all[&name_of(hosts, other)].has_flipped_bits();
    let others = copies.in_sync.iter().filter(|other| **other != node);
    others.into_iter().any(|other| is_whole(*other) && copied.has_all(*other, bucket))
}
