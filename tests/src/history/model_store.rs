//! A tiny store with snapshot isolation, whose histories have no anomaly.

use std::collections::BTreeMap;

use super::{Key, List, Operation, Outcome, Present, Transaction, Value};

const KEYS: Key = 4;
const SESSIONS: usize = 4;

/// The committed versions, and all finished transactions.
struct Store {
    random: fastrand::Rng,
    versions: BTreeMap<Key, Vec<(u64, List)>>,
    commits: u64,
    clock: u64,
    values: Value,
    history: Vec<Transaction>,
}

/// A transaction in progress.
struct Active {
    begun: u64,
    snapshot: Option<u64>,
    own: BTreeMap<Key, List>,
    operations: Vec<Operation>,
    /// The number of operations and the own versions at each savepoint.
    saved: Vec<(usize, BTreeMap<Key, List>)>,
    /// The outcome that the client has not received yet; `None` before the commit.
    outcome: Option<Outcome>,
}

/// Returns a random history of concurrent transactions.
pub(super) fn history(seed: u64, transactions: usize) -> Vec<Transaction> {
    let mut store = Store {
        random: fastrand::Rng::with_seed(seed),
        versions: BTreeMap::new(),
        commits: 0,
        clock: 0,
        values: 0,
        history: Vec::new(),
    };
    let mut sessions: Vec<Option<Active>> = (0..SESSIONS).map(|_| None).collect();
    while store.history.len() < transactions {
        let session = store.random.usize(0..SESSIONS);
        let active = sessions[session].take();
        sessions[session] = store.step(active);
    }
    // Committed transactions are recorded; open ones have no effect.
    for active in sessions.into_iter().flatten().filter(|active| active.outcome.is_some()) {
        store.step(Some(active));
    }
    store.history
}

impl Store {
    /// Executes one step of a session; returns its transaction unless it has ended.
    fn step(&mut self, active: Option<Active>) -> Option<Active> {
        self.clock += 1;
        let Some(mut active) = active else {
            return Some(Active {
                begun: self.clock,
                snapshot: None,
                own: BTreeMap::new(),
                operations: Vec::new(),
                saved: Vec::new(),
                outcome: None,
            });
        };
        if let Some(outcome) = active.outcome {
            let Active { begun, operations, .. } = active;
            let (ended, present) = (self.clock, Present::OfAll);
            self.history.push(Transaction { begun, ended, present, operations, outcome });
            return None;
        }
        match self.random.u8(0..10) {
            0 => active.saved.push((active.operations.len(), active.own.clone())),
            1 if !active.saved.is_empty() => {
                let at = self.random.usize(0..active.saved.len());
                active.saved.truncate(at + 1);
                let (to, own) = active.saved[at].clone();
                active.own = own;
                active.operations.push(Operation::Back(to));
            }
            2..=4 => drop(self.read(&mut active)),
            5..=7 => {
                let (key, mut list) = self.read(&mut active);
                self.values += 1;
                list.push(self.values);
                active.own.insert(key, list.clone());
                active.operations.push(Operation::Write { key, list });
            }
            _ => active.outcome = Some(self.end(&active)),
        }
        Some(active)
    }

    fn read(&mut self, active: &mut Active) -> (Key, List) {
        let snapshot = *active.snapshot.get_or_insert(self.commits);
        let key = self.random.u32(0..KEYS);
        let committed = || {
            let versions = self.versions.get(&key).into_iter().flatten();
            let seen = versions.rev().find(|(at, _)| *at <= snapshot);
            seen.map(|(_, list)| list.clone()).unwrap_or_default()
        };
        let list = active.own.get(&key).cloned().unwrap_or_else(committed);
        active.operations.push(Operation::Read { key, list: list.clone() });
        (key, list)
    }

    fn end(&mut self, active: &Active) -> Outcome {
        let known = |known, is_told| if is_told { known } else { Outcome::Unknown };
        let is_told = self.random.u8(0..12) > 0;
        let newest = |key: &Key| self.versions.get(key).and_then(|versions| versions.last());
        let is_changed = |key: &Key| {
            newest(key).is_some_and(|(at, _)| active.snapshot.is_none_or(|snapshot| *at > snapshot))
        };
        if active.own.keys().any(is_changed) || self.random.u8(0..8) == 0 {
            return known(Outcome::Aborted, is_told);
        }
        self.commits += 1;
        for (key, list) in &active.own {
            self.versions.entry(*key).or_default().push((self.commits, list.clone()));
        }
        known(Outcome::Committed, is_told)
    }
}
