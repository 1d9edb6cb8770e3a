//! The crash of a leader at the moment when another copy becomes in sync.
//!
//! A copy in sync may lead, so it must have every mutation that was ever visible when its growth is
//! proposed. On a fast network a joining copy always has them. Here the messages between leader and
//! copy are slow while the copy joins; when the catalog shows it in sync, the leader crashes, and
//! messages in flight are lost. A seventh of the seeds with copies has this fault.

use std::time::Duration;

use proto::model::ids::NodeId;
use turmoil::Sim;

use super::driver::{Broken, Faults, note};
use super::of_copies::name_of;
use crate::sim::cluster::hosts::{Hosts, has_copies};
use crate::sim::{CALM, Shared};

/// The maximum duration of a join over a slow connection, in milliseconds.
const JOIN_MS_MAX: u64 = 4_000;
/// The range of the downtime of the leader in milliseconds, during which a take-over begins.
const DOWN_MS: std::ops::Range<u64> = 1_500..5_000;
/// The range from which the maximum latency of each slow connection is drawn, in milliseconds.
const SLOW_MS: std::ops::Range<u64> = 50..500;

/// True if the seed has this fault.
pub(super) fn has_growths(seed: u64) -> bool {
    has_copies(seed) && seed % 7 == 5
}

/// A copy that is joining over a slow connection.
pub(super) struct Growing {
    leader: NodeId,
    copy: NodeId,
    /// The time at which the slow connection ends.
    until: Duration,
}

impl Faults {
    /// Slows down the connection of a joining copy, or crashes its leader when the copy has grown
    /// into the set.
    pub(super) fn break_at_growth(
        &mut self,
        now: Duration,
        sim: &mut Sim<'_>,
        hosts: &Hosts,
        summary: &Shared,
    ) {
        if now < self.next_growth.max(CALM) {
            return;
        }
        let copies = hosts.copied.as_ref().and_then(|copied| copied.copies_of_client());
        let Some((_, copies)) = copies else { return };
        let Some(growing) = self.growing.take() else {
            let joining = copies.joining.first().copied();
            self.growing = joining.and_then(|copy| self.slow_down(copies.leader, copy, sim, hosts));
            return;
        };
        let leader = name_of(hosts, growing.leader);
        if copies.leader != growing.leader || now >= growing.until || self.is_down(&leader) {
            return;
        }
        if !copies.in_sync.contains(&growing.copy) {
            self.growing = Some(growing);
            return;
        }
        let end = now + Duration::from_millis(self.growths.u64(DOWN_MS));
        let copy = name_of(hosts, growing.copy);
        sim.hold(leader.clone(), copy.clone());
        self.broken.push((Broken::Held(leader.clone(), copy), end));
        self.crash(&leader, end, sim, hosts);
        note(summary, "crash_at_growth", now, end);
        self.next_growth = end + Duration::from_millis(self.growths.u64(500..2_000));
    }

    fn slow_down(
        &mut self,
        leader: NodeId,
        copy: NodeId,
        sim: &mut Sim<'_>,
        hosts: &Hosts,
    ) -> Option<Growing> {
        let (leader_name, copy_name) = (name_of(hosts, leader), name_of(hosts, copy));
        if self.is_down(&leader_name) || self.is_down(&copy_name) {
            return None;
        }
        let slow = Duration::from_millis(self.growths.u64(SLOW_MS));
        let until = sim.elapsed() + Duration::from_millis(JOIN_MS_MAX);
        sim.set_link_max_message_latency(leader_name.clone(), copy_name.clone(), slow);
        self.broken.push((Broken::Slow(leader_name, copy_name), until));
        Some(Growing { leader, copy, until })
    }
}
