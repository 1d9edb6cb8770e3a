//! Where an unordered scan is, while slices move: virtual scans (DESIGN section 7).
//!
//! A scan keeps the topology that it began under, its *base topology*. Each *base shard*, the slices that one
//! node held then, is one scan with one resume entry. A slice that is found to have left its base shard goes
//! into the *virtual-scan map*, with its new place and the resume entry of the shard; after the base shards
//! each entry of the map is one more scan, of that slice alone, from that entry on (entries with the same place
//! and position share one).
//!
//! Why each row comes once, whatever moves: each slice has exactly one cursor, its base shard's until it is
//! in the map and its own from then on, and a cursor advances only past entries that were delivered, or
//! rejected by the scan's own predicate. The epoch is the same everywhere, so a cursor means the same on any
//! node that has the slice. The place in the map is a hint: no row depends on it.
//!
//! The published text (`000_e6502bf9f51d4b02.txt`, section B) slips in four places, which are right here by
//! construction, and tests below: what is in the map is left out of base scans, but not of virtual ones; a
//! slice that comes back stays in the map, since its cursor stands elsewhere than its base shard's; the parts
//! still to be scanned are asked for anew after each, so that a move found at the last shard counts; and a
//! part is finished by a flag, not by the lack of a resume entry.
//!
//! Pure: no I/O, no clock.

use std::collections::BTreeMap;

use bytes::Bytes;
use proto::model::ids::{NodeId, SliceNo};
use proto::model::topology::{IndexTopology, TopologyProvider};
use proto::plant::{self, Plant};
use proto::token::VirtualScan;

/// Where an unordered scan is.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// The slices of each base shard.
    shards: Vec<Vec<SliceNo>>,
    /// The base shards before this one are finished.
    shard: usize,
    /// The last entry of this base shard that was delivered or rejected.
    resume_after: Option<Bytes>,
    /// The virtual-scan map, in the order of discovery.
    moved: Vec<VirtualScan>,
}

/// A piece of the scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What it is of.
    pub kind: PartKind,
    /// What is read, merged.
    pub slices: Vec<SliceNo>,
    /// The entry after which it is read.
    pub resume_after: Option<Bytes>,
    /// Where the slices were last seen.
    pub hint: Option<NodeId>,
}

/// Which piece of the scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// A base shard.
    Base(usize),
    /// Slices of the virtual-scan map.
    Virtual,
}

impl Progress {
    /// The beginning of a scan.
    pub fn new(base: &IndexTopology) -> Self {
        let mut shards: BTreeMap<Option<NodeId>, Vec<SliceNo>> = BTreeMap::new();
        for slice in (0..base.slices()).map(SliceNo) {
            shards.entry(base.replicas(slice).first().copied()).or_default().push(slice);
        }
        let shards = shards.into_values().collect();
        Self { shards, shard: 0, resume_after: None, moved: Vec::new() }
    }

    /// Where a token says that the scan stopped; what it says of slices that the base topology has not, or
    /// says twice, means nothing.
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

    /// What a token says: base shards that are finished, the resume entry of the next one, the map.
    pub fn for_token(&self) -> (u16, Option<Bytes>, Vec<VirtualScan>) {
        (self.shard as u16, self.resume_after.clone(), self.moved.clone())
    }

    /// The `n`th of the parts that are not finished, as far as is known now: the base shards, then the
    /// virtual scans.
    pub fn part(&self, n: usize) -> Option<Part> {
        let at = self.shard + n;
        if let Some(slices) = self.shards.get(at) {
            let here = |slice: &SliceNo| {
                self.find(*slice).is_none() || plant::is(Plant::ReturnedReadByShard)
            };
            return Some(Part {
                kind: PartKind::Base(at),
                slices: slices.iter().copied().filter(here).collect(),
                resume_after: if n == 0 { self.resume_after.clone() } else { None },
                hint: None,
            });
        }
        self.virtual_parts().into_iter().nth(at - self.shards.len().max(self.shard))
    }

    /// Those with the same place and position are one.
    fn virtual_parts(&self) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        if plant::is(Plant::MappedSkippedInVirtual) {
            return parts;
        }
        let done = |entry: &VirtualScan| {
            let no_resume = plant::is(Plant::DoneWithoutResume) && entry.resume_after.is_none();
            entry.done || no_resume
        };
        for entry in self.moved.iter().filter(|entry| !done(entry)) {
            let same = |part: &&mut Part| {
                part.hint == Some(entry.node) && part.resume_after == entry.resume_after
            };
            match parts.iter_mut().find(same) {
                Some(part) => part.slices.push(entry.slice),
                None => parts.push(Part {
                    kind: PartKind::Virtual,
                    slices: vec![entry.slice],
                    resume_after: entry.resume_after.clone(),
                    hint: Some(entry.node),
                }),
            }
        }
        parts
    }

    /// Entries of a part up to this one were delivered or rejected.
    pub fn advance(&mut self, part: &Part, entry: &[u8]) {
        let entry = Bytes::copy_from_slice(entry);
        match part.kind {
            PartKind::Base(_) => self.resume_after = Some(entry),
            PartKind::Virtual => {
                for moved in self.moved.iter_mut().filter(|m| part.slices.contains(&m.slice)) {
                    moved.resume_after = Some(entry.clone());
                }
            }
        }
    }

    /// Slices of a base shard were found elsewhere. Their cursors part from the shard's.
    pub fn found_moved(&mut self, slices: &[(SliceNo, NodeId)]) {
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

    /// A part has been read to its end.
    pub fn finish(&mut self, part: &Part) {
        match part.kind {
            PartKind::Base(shard) => {
                self.shard = shard + 1;
                self.resume_after = None;
            }
            PartKind::Virtual => {
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
