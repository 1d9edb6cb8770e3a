//! Random cases: up to 6 shards and 24 partitions, chains of moves, partitions that return, shards that join and leave,
//! writes, lost answers.

use std::collections::{BTreeMap, BTreeSet};

use super::case::{Case, Entry, Event, Op, Point, Topology};

/// A case from a seed.
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
    /// The partitions that moved, each with its previous shard.
    moved: Vec<(u16, u64)>,
}

impl Story {
    /// The events in the order of their points, and the entries that they write or remove.
    fn events(&mut self, requests: usize) -> (Vec<Event>, BTreeSet<Entry>) {
        let (mut events, mut touched) = (Vec::new(), BTreeSet::new());
        let mut removed = BTreeSet::new();
        for request in 0..requests {
            let mut call = 0;
            for _ in 0..self.random.usize(0..4) {
                call += self.random.usize(0..2);
                let point = match self.random.u8(0..3) {
                    0 => Point::Rows(self.random.u64(0..12)),
                    1 => Point::Named("end".into()),
                    _ => Point::Named("start".into()),
                };
                if let Some(op) = self.op(&mut touched, &mut removed) {
                    events.push(Event { at: (request, call, 0, point), op });
                }
            }
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
                let to = if back { was } else { to };
                self.home.insert(pid, to);
                Op::Migrate { pid, to, linger: false }
            }
            0..=12 => {
                self.moved.extend(self.home.insert(pid, to).map(|was| (pid, was)));
                Op::Migrate { pid, to, linger: self.random.bool() }
            }
            13 => Op::Copy { pid, to: *self.home.get(&pid)? },
            14 => {
                // An empty shard leaves.
                let empty = |shard: &&u64| !self.home.values().any(|home| home == *shard);
                let sid = *open.iter().find(empty)?;
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
}
