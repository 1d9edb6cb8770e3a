//! Copies of a projector's disk, which an operator makes now and then. An older copy that is put back lacks what came later: mostly
//! a few mutations, sometimes much.

use proto::env::sim::DiskCopy;

use super::mirror::Known;
use crate::sim::hosts::{Host, Hosts};

/// Copies that are kept.
const COPIES_MAX: usize = 24;

/// A copy, and what the store had at that moment.
struct Copy {
    disk: DiskCopy,
    known: Known,
}

/// The copies of one disk, oldest first.
#[derive(Default)]
pub struct Copies(Vec<Copy>);

impl Copies {
    /// Copies the disk of a running process, between two changes; false if it is in the midst of one.
    pub fn take(&mut self, host: &Host, random: &mut fastrand::Rng) -> bool {
        let Some(known) = host.documents.known() else { return false };
        if self.0.len() == COPIES_MAX {
            self.0.remove(random.usize(..COPIES_MAX / 2));
        }
        self.0.push(Copy { disk: host.fs.copy(), known });
        true
    }

    /// Puts an older copy on the disk of a process that is down; false if that loses nothing. Later copies are given up.
    pub fn put_back(&mut self, host: &Host, hosts: &Hosts, random: &mut fastrand::Rng) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let newest = self.0.len() - 1;
        let at = match random.u8(..6) {
            0 => random.usize(..=newest),
            _ => newest - random.usize(..3).min(newest),
        };
        self.0.truncate(at + 1);
        let Copy { disk, known } = &self.0[at];
        host.fs.put_back(disk);
        let lost = host.documents.go_back(known);
        if let Some(producer) = &hosts.producer {
            lost.iter().for_each(|(_, vbucket, end)| producer.lose_taken(*vbucket, *end));
        }
        !lost.is_empty()
    }
}
