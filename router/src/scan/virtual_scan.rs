//! The position of an unordered scan while slices move: virtual scans.
//!
//! A scan keeps the topology under which it began, its *base topology*. The slices that were on one
//! node at that time are a *base shard*: one scan with one resume entry. When the scan finds that a
//! slice has left its base shard, the slice is added to the *virtual-scan map*, with its new node
//! and the resume entry of the shard. After the base shards the scan reads each slice of the map
//! from its resume entry on. Slices with the same node and the same resume entry share one such
//! *virtual scan*.
//!
//! Each row is returned exactly once, whatever moves, because each slice has exactly one cursor:
//! the cursor of its base shard until the slice is in the map, and a separate cursor afterwards. A
//! cursor advances only past entries that were delivered, or rejected by the scan's predicate. The
//! scan reads one epoch on all nodes, so a cursor is valid on each node that has the slice. The
//! node in the map is a hint: no row depends on it.
//!
//! The published description (`000_e6502bf9f51d4b02.txt`, section B) is wrong in four places. This
//! module avoids these errors, and the tests cover each of them:
//!
//! - Slices in the map are excluded from base scans, but not from virtual scans.
//! - A slice that moves back stays in the map, since its cursor differs from that of its base
//!   shard.
//! - The remaining parts are determined again after each part, so that a move found at the last
//!   shard is respected.
//! - A flag says that a part is finished; the lack of a resume entry does not.
//!
//! This module does no I/O and reads no clock.

use std::collections::BTreeMap;

use bytes::Bytes;
use proto::model::ids::{NodeId, SliceNo};
use proto::model::topology::{IndexTopology, TopologyProvider};
use proto::plant::{self, Plant};

use super::token::VirtualScan;

/// The position of an unordered scan, with a separate position for each slice that has moved.
#[derive(Clone, Debug, PartialEq)]
pub struct UnorderedProgress {
    /// The slices of each base shard (slices that were on one node when the scan began).
    shards: Vec<Vec<SliceNo>>,
    /// The number of the current base shard. All base shards before it are finished.
    shard: usize,
    /// The last entry of the current base shard that was delivered, or rejected by the scan's
    /// predicate.
    resume_after: Option<Bytes>,
    /// The virtual-scan map, in the order in which the moves were found.
    moved: Vec<VirtualScan>,
}

/// One shard scan of an unordered scan: a base shard, or slices that have moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanPart {
    /// The kind: a base shard, or slices of the map.
    pub kind: ScanPartKind,
    /// The slices to read, merged.
    pub slices: Vec<SliceNo>,
    /// The entry after which the part begins.
    pub resume_after: Option<Bytes>,
    /// The node on which the slices were last found.
    pub hint: Option<NodeId>,
}

/// The kind of a part: a base shard, or slices that have moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanPartKind {
    /// A base shard, by its number.
    Base(usize),
    /// Slices of the virtual-scan map.
    Virtual,
}

impl UnorderedProgress {
    /// Creates the position at the beginning of a scan.
    pub fn new(base: &IndexTopology) -> Self {
        let mut shards: BTreeMap<Option<NodeId>, Vec<SliceNo>> = BTreeMap::new();
        for slice in (0..base.slices()).map(SliceNo) {
            shards.entry(base.replicas(slice).first().copied()).or_default().push(slice);
        }
        let shards = shards.into_values().collect();
        Self { shards, shard: 0, resume_after: None, moved: Vec::new() }
    }

    /// Creates the position that a token names. Ignores repeated entries of the virtual-scan map,
    /// and entries of slices that the base topology lacks.
    pub fn resume(
        base: &IndexTopology,
        shards_done: u16,
        resume_after: Option<Bytes>,
        moved: Vec<VirtualScan>,
    ) -> Self {
        let mut progress = Self::new(base);
        progress.shard = usize::from(shards_done).min(progress.shards.len());
        progress.resume_after = resume_after;
        for entry in moved {
            if entry.slice.0 < base.slices() && progress.find(entry.slice).is_none() {
                progress.moved.push(entry);
            }
        }
        progress
    }

    /// Returns the position for a token: the number of finished base shards, the last entry of the
    /// current one, and the virtual-scan map.
    pub fn for_token(&self) -> (u16, Option<Bytes>, Vec<VirtualScan>) {
        (self.shard as u16, self.resume_after.clone(), self.moved.clone())
    }

    /// Returns the `n`th unfinished part, as far as moves are known now: base shards first, then
    /// virtual scans (slices that have moved).
    pub fn part(&self, n: usize) -> Option<ScanPart> {
        let at = self.shard + n;
        if let Some(slices) = self.shards.get(at) {
            let here = |slice: &SliceNo| {
                self.find(*slice).is_none() || plant::is(Plant::ReturnedReadByShard)
            };
            return Some(ScanPart {
                kind: ScanPartKind::Base(at),
                slices: slices.iter().copied().filter(here).collect(),
                resume_after: if n == 0 { self.resume_after.clone() } else { None },
                hint: None,
            });
        }
        self.virtual_parts().into_iter().nth(at - self.shards.len().max(self.shard))
    }

    /// Returns the unfinished virtual scans. Slices with the same node and the same position share
    /// one.
    fn virtual_parts(&self) -> Vec<ScanPart> {
        let mut parts: Vec<ScanPart> = Vec::new();
        if plant::is(Plant::MappedSkippedInVirtual) {
            return parts;
        }
        let done = |entry: &VirtualScan| {
            let no_resume = plant::is(Plant::DoneWithoutResume) && entry.resume_after.is_none();
            entry.done || no_resume
        };
        for entry in self.moved.iter().filter(|entry| !done(entry)) {
            let same = |part: &&mut ScanPart| {
                part.hint == Some(entry.node) && part.resume_after == entry.resume_after
            };
            match parts.iter_mut().find(same) {
                Some(part) => part.slices.push(entry.slice),
                None => parts.push(ScanPart {
                    kind: ScanPartKind::Virtual,
                    slices: vec![entry.slice],
                    resume_after: entry.resume_after.clone(),
                    hint: Some(entry.node),
                }),
            }
        }
        parts
    }

    /// Records that the entries of a part up to this one were delivered, or rejected by the scan's
    /// predicate.
    pub fn advance(&mut self, part: &ScanPart, entry: &[u8]) {
        let entry = Bytes::copy_from_slice(entry);
        match part.kind {
            ScanPartKind::Base(_) => self.resume_after = Some(entry),
            ScanPartKind::Virtual => {
                for moved in self.moved.iter_mut().filter(|m| part.slices.contains(&m.slice)) {
                    moved.resume_after = Some(entry.clone());
                }
            }
        }
    }

    /// Records that slices have left the current base shard. From now on each has a separate
    /// position.
    pub fn note_moved(&mut self, slices: &[(SliceNo, NodeId)]) {
        if plant::is(Plant::PartsTakenOnce) && self.shard + 1 == self.shards.len() {
            return;
        }
        for (slice, node) in slices {
            match self.find(*slice) {
                Some(at) => self.moved[at].node = *node,
                None => self.moved.push(VirtualScan {
                    slice: *slice,
                    node: *node,
                    resume_after: self.resume_after.clone(),
                    done: false,
                }),
            }
        }
    }

    /// Records that a part was read to its end.
    pub fn finish(&mut self, part: &ScanPart) {
        match part.kind {
            ScanPartKind::Base(shard) => {
                self.shard = shard + 1;
                self.resume_after = None;
            }
            ScanPartKind::Virtual => {
                for moved in self.moved.iter_mut().filter(|m| part.slices.contains(&m.slice)) {
                    (moved.done, moved.resume_after) = (true, None);
                }
            }
        }
    }

    fn find(&self, slice: SliceNo) -> Option<usize> {
        self.moved.iter().position(|entry| entry.slice == slice)
    }
}

#[cfg(test)]
#[path = "virtual_scan_tests.rs"]
mod tests;
