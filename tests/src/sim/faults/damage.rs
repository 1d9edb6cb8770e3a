//! Damage of a copy that the operator does not repair: if another copy in sync has all acknowledged
//! mutations, the flipped bit remains, and the projector restores its copy from the other one. The
//! process is down until the coordinators have confirmed this, as for a replaced disk.
//!
//! A seventh of the seeds with copies has additional flipped bits for this.

use std::time::Duration;

use super::driver::{Broken, Faults, is_projector, note};
use super::of_copies::{CONFIRMED, DECIDED, is_spare};
use crate::sim::cluster::disks::flip_found;
use crate::sim::cluster::hosts::{Hosts, has_copies};
use crate::sim::{CALM, Shared};

/// The maximum time for which a process runs with a flipped bit, in milliseconds.
const FLIPPED_MS_MAX: u64 = 300;

/// True if this seed has additional flipped bits.
pub(super) fn has_damage(seed: u64) -> bool {
    has_copies(seed) && seed % 7 == 3
}

impl Faults {
    /// Flips a bit of a projector's disk if one is due.
    pub(super) fn damage_copies(&mut self, now: Duration, hosts: &Hosts, summary: &Shared) {
        if now < self.next_damage.max(CALM) {
            return;
        }
        self.next_damage = now + Duration::from_millis(self.damages.u64(500..3_000));
        let end = now + Duration::from_millis(self.damages.u64(..FLIPPED_MS_MAX));
        let projectors: Vec<&String> = hosts.all.keys().filter(|name| is_projector(name)).collect();
        let name = projectors[self.damages.usize(..projectors.len())].clone();
        if self.is_down(&name) || self.is_damaged(&name) || hosts.all[&name].has_flipped_bits() {
            return;
        }
        if flip_found(&hosts.all[&name], &mut self.damages) {
            self.excused(&hosts.all[&name], Broken::Damaged(name), end);
            note(summary, "flipped_source_bit", now, end);
        }
    }

    /// Leaves the flipped bit of a stopped projector unrepaired for now; false if the operator
    /// flips it back.
    pub(super) fn leaves_damage(&mut self, name: &str, now: Duration, hosts: &Hosts) -> bool {
        if hosts.copied.is_none() || self.damages.u8(..4) == 0 {
            return false;
        }
        self.left_damaged.insert(name.to_owned(), now + DECIDED);
        self.broken.push((Broken::Down(name.to_owned()), now + DECIDED + CONFIRMED));
        true
    }

    /// Decides about the flipped bits of a process that starts: they remain if only the bucket with
    /// copies is damaged, and another copy in sync is complete.
    pub(super) fn decide_damage(
        &mut self,
        name: &str,
        now: Duration,
        hosts: &Hosts,
        summary: &Shared,
    ) {
        let Some(decided_at) = self.left_damaged.remove(name) else { return };
        let host = &hosts.all[name];
        host.fs.restart();
        let copied = hosts.copied.as_ref();
        let copies = copied.and_then(|copied| copied.confirmed_since(decided_at));
        let stays = copies.is_some_and(|(bucket, copies)| {
            host.damaged_buckets(None) == [bucket].into()
                && is_spare((bucket, &copies), host.info.id, hosts)
        });
        match stays {
            true => note(summary, "damaged_copy", now, now),
            false => host.fs.flip_back(),
        }
    }
}
