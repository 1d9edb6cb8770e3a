//! The generator of random cases: up to 6 shards and 24 partitions, chains of moves, partitions
//! that return, shards that join and leave, writes, lost answers.

use std::collections::{BTreeMap, BTreeSet};

use super::case::{Case, Entry, Event, Op, Point, Topology};

/// Returns the case of a seed.
pub fn generate(seed: u64) -> Case {
    let mut random = fastrand::Rng::with_seed(seed ^ 0x5ca9);
    let shards: Vec<u64> = (1..=random.u64(2..7)).collect();
    let partitions = random.u16(1..25);
    // Some shards may be empty at the beginning.
    let used = random.usize(1..=shards.len());
    let home: BTreeMap<u16, u64> =
        (1..=partitions).map(|pid| (pid, shards[random.usize(0..used)])).collect();
    let mut entries = BTreeSet::new();
    for _ in 0..random.usize(0..70) {
        let key = random.i64(0..30);
        entries.insert((key, random.i64(0..1_000), random.u16(1..=partitions)));
    }
    let low = random.i64(0..10);
    let range = (low, low + random.i64(5..35));
    let requests = random.usize(1..12);
    let limits = (0..requests).map(|_| random.u64(1..20)).collect();
    let mut story = Story {
        random,
        shards,
        home: home.clone(),
        entries: entries.clone(),
        partitions,
        copied: BTreeMap::new(),
        moved: Vec::new(),
    };
    let (events, touched) = story.events(requests);
    let inside = |entry: &&Entry| range.0 <= entry.0 && entry.0 <= range.1;
    let written: BTreeSet<Entry> = touched;
    let must = entries.iter().filter(inside).filter(|entry| !written.contains(entry));
    let must: Vec<Entry> = must.copied().collect();
    let may: Vec<Entry> = written.iter().filter(inside).copied().collect();
    let topology = Topology { shards: story.shards.clone(), home };
    Case {
        name: format!("generated-{seed}"),
        order: if story.random.bool() { "sorted" } else { "none" }.into(),
        topologies: vec![topology],
        base: 0,
        entries: entries.into_iter().collect(),
        range,
        limits,
        events,
        must,
        may,
        rows: Vec::new(),
    }
}

struct Story {
    random: fastrand::Rng,
    shards: Vec<u64>,
    home: BTreeMap<u16, u64>,
    entries: BTreeSet<Entry>,
    partitions: u16,
    /// The partitions with a second copy, each with the shard that has it.
    copied: BTreeMap<u16, u64>,
    /// The partitions that moved, each with its previous shard.
    moved: Vec<(u16, u64)>,
}

impl Story {
    /// Returns the events in the order of their points, and the entries that they write or remove.
    fn events(&mut self, requests: usize) -> (Vec<Event>, BTreeSet<Entry>) {
        let (mut events, mut touched) = (Vec::new(), BTreeSet::new());
        let mut removed = BTreeSet::new();
        for request in 0..requests {
            let (mut call, mut points, mut ops) = (0, Vec::new(), Vec::new());
            for _ in 0..self.random.usize(0..4) {
                call += self.random.usize(0..2);
                let point = match self.random.u8(0..3) {
                    0 => Point::Rows(self.random.u64(0..12)),
                    1 => Point::Named("end".into()),
                    _ => Point::Named("start".into()),
                };
                if let Some(op) = self.op(&mut touched, &mut removed) {
                    points.push((call, point));
                    ops.push(op);
                }
            }
            // An operation depends on the places made by earlier ones, so it must not precede them.
            points.sort_by_key(|(call, point)| (*call, point.place()));
            let placed = points.into_iter().zip(ops);
            events.extend(
                placed.map(|((call, point), op)| Event { at: (request, call, 0, point), op }),
            );
        }
        (events, touched)
    }

    fn op(&mut self, touched: &mut BTreeSet<Entry>, removed: &mut BTreeSet<u64>) -> Option<Op> {
        let pid = self.random.u16(1..=self.partitions);
        let open: Vec<u64> =
            self.shards.iter().copied().filter(|shard| !removed.contains(shard)).collect();
        let to = open[self.random.usize(0..open.len())];
        Some(match self.random.u8(0..20) {
            // A slice that moved moves again, back and forth, so that its cursor differs from its shard's.
            9..=12 if !self.moved.is_empty() => {
                let (pid, was) = self.moved[self.random.usize(0..self.moved.len())];
                let back = self.home[&pid] != was && !removed.contains(&was);
                self.migrate(pid, if back { was } else { to }, false)
            }
            0..=12 => {
                let was = self.home[&pid];
                let linger = self.random.bool();
                self.moved.push((pid, was));
                self.migrate(pid, to, linger)
            }
            13 => {
                // The next move of the partition ends at the copy.
                let to = *self.copied.entry(pid).or_insert(to);
                Op::Copy { pid, to }
            }
            14 => {
                // An empty shard leaves.
                let used: BTreeSet<u64> =
                    self.home.values().chain(self.copied.values()).copied().collect();
                let sid = *open.iter().find(|shard| !used.contains(*shard))?;
                if open.len() < 3 {
                    return None;
                }
                removed.insert(sid);
                Op::RemoveShard { sid }
            }
            15 | 16 => {
                let entry = (self.random.i64(0..30), self.random.i64(1_000..2_000), pid);
                touched.insert(entry);
                Op::Insert { entry }
            }
            17 => {
                let at = self.random.usize(0..self.entries.len().max(1));
                let entry = *self.entries.iter().nth(at)?;
                touched.insert(entry);
                Op::Delete { entry }
            }
            18 => Op::Lag { sid: to, n: self.random.u64(1..10) },
            _ => Op::Lose,
        })
    }

    fn migrate(&mut self, pid: u16, to: u64, linger: bool) -> Op {
        let to = self.copied.remove(&pid).unwrap_or(to);
        self.home.insert(pid, to);
        Op::Migrate { pid, to, linger }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places of the partitions at an event depend on the events before it, which
    /// [`super::super::play`] executes in the order of the list.
    #[test]
    fn a_shard_that_leaves_is_empty_and_nothing_goes_to_it() {
        let regressions = [1_795_379_002, 1_795_387_361];
        let (mut left, mut copied) = (0, 0);
        for seed in (1..=2_000).chain(regressions) {
            let case = generate(seed);
            let place = |event: &Event| (event.at.0, event.at.1, event.at.3.place());
            assert!(case.events.is_sorted_by_key(place), "seed {seed}: {:?}", case.events);
            let mut home = case.topologies[0].home.clone();
            let (mut copies, mut gone) = (BTreeMap::new(), BTreeSet::new());
            for event in &case.events {
                match &event.op {
                    Op::Migrate { pid, to, .. } => {
                        assert!(!gone.contains(to), "seed {seed}: {event:?}");
                        let was = home.insert(*pid, *to);
                        let copy: Option<u64> = copies.remove(pid);
                        let one_is_left = copy.is_none_or(|copy| copy == *to || was == Some(*to));
                        assert!(one_is_left, "seed {seed}: {event:?}");
                    }
                    Op::Copy { pid, to } => {
                        assert!(!gone.contains(to), "seed {seed}: {event:?}");
                        copied += u32::from(home[pid] != *to);
                        copies.insert(*pid, *to);
                    }
                    Op::RemoveShard { sid } => {
                        let mut here = home.values().chain(copies.values());
                        assert!(here.all(|here| here != sid), "seed {seed}: {event:?}");
                        gone.insert(*sid);
                        left += 1;
                    }
                    _ => {}
                }
            }
        }
        assert!(left > 200 && copied > 200, "{left} shards left, {copied} partitions were copied");
    }
}
