//! Copies of a projector's disk, which an operator makes at times. A restored copy lacks later
//! mutations: mostly few, sometimes many.

use proto::env::sim::DiskCopy;

use super::mirror::Known;
use crate::sim::cluster::hosts::{Host, Hosts};

/// The maximum number of copies that are kept.
const COPIES_MAX: usize = 24;

/// A copy, and the contents of the store at that time.
struct Copy {
    disk: DiskCopy,
    known: Known,
}

/// The copies of one disk, oldest first.
#[derive(Default)]
pub struct Copies(Vec<Copy>);

impl Copies {
    /// Copies the disk of a running process between two changes; false if a change is in progress.
    pub fn take(&mut self, host: &Host, random: &mut fastrand::Rng) -> bool {
        let Some(known) = host.documents.known() else { return false };
        if self.0.len() == COPIES_MAX {
            self.0.remove(random.usize(..COPIES_MAX / 2));
        }
        self.0.push(Copy { disk: host.fs.copy(), known });
        true
    }

    /// Restores an older copy on the disk of a stopped process, and removes later copies; false if
    /// no copy lacks a mutation.
    ///
    /// The next process opens the copy like any other disk, and the cluster rolls back to what it
    /// has.
    pub fn put_back(&mut self, host: &Host, hosts: &Hosts, random: &mut fastrand::Rng) -> bool {
        let upto = match random.u8(..6) {
            0 => random.usize(..=self.0.len()),
            _ => self.0.len().saturating_sub(random.usize(..3)),
        };
        let lacks = |copy: &Copy| !host.documents.lost_since(&copy.known).is_empty();
        let Some(at) = self.0[..upto].iter().rposition(lacks) else { return false };
        self.0.truncate(at + 1);
        let Copy { disk, known } = &self.0[at];
        if let Some(producer) = &hosts.producer {
            let changed = host.documents.changed_since(known);
            let pushed = changed.iter().filter(|at| at.is_pushed);
            pushed.for_each(|at| producer.lose_taken(at.vbucket, at.kept));
        }
        host.fs.restore_disk(disk);
        host.documents.go_back(known);
        true
    }
}
