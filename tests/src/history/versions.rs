//! The order of the versions of each key.

use std::collections::{BTreeMap, BTreeSet};

use super::walk::Walk;
use super::{Anomaly, Key, Kind, List, Outcome, Transaction, Value};

/// The versions of all keys.
pub(super) struct Versions {
    /// The longest list of each key, of which each version must be a prefix.
    pub(super) chains: BTreeMap<Key, List>,
    /// The writer of each value.
    pub(super) writers: BTreeMap<(Key, Value), usize>,
    /// True for each transaction that counts as committed.
    pub(super) is_committed: Vec<bool>,
    pub(super) anomalies: Vec<Anomaly>,
}

impl Versions {
    /// Computes the order of versions from reads and committed writes.
    pub(super) fn new(history: &[Transaction], walks: &[Walk]) -> Self {
        let mut writers = BTreeMap::new();
        let mut anomalies = Vec::new();
        for (number, walk) in walks.iter().enumerate() {
            for written in &walk.values {
                if let Some(other) = writers.insert(*written, number) {
                    let text = format!("{written:?} was written twice");
                    let transactions = vec![other, number];
                    anomalies.push(Anomaly { kind: Kind::Garbage, transactions, text });
                }
            }
        }
        let is_committed = committed(history, walks, &writers);
        let mut versions = Self { chains: BTreeMap::new(), writers, is_committed, anomalies };
        versions.find_chains(walks);
        versions.check_values(history, walks);
        versions.check_prefixes(walks);
        versions
    }

    /// Returns the writer of a version; `None` for the empty version.
    pub(super) fn writer(&self, key: Key, list: &[Value]) -> Option<usize> {
        self.writers.get(&(key, *list.last()?)).copied()
    }

    /// Returns all versions of a transaction that belong to the chains: the versions read from
    /// others and those committed.
    fn of<'w>(&'w self, number: usize, walk: &'w Walk) -> impl Iterator<Item = (Key, &'w List)> {
        let committed = self.is_committed[number].then_some(&walk.finals).into_iter().flatten();
        walk.seen().chain(committed.map(|(key, list)| (*key, list)))
    }

    fn find_chains(&mut self, walks: &[Walk]) {
        let mut chains: BTreeMap<Key, List> = BTreeMap::new();
        for (number, walk) in walks.iter().enumerate() {
            for (key, list) in self.of(number, walk) {
                let longest = chains.entry(key).or_default();
                if list.len() > longest.len() {
                    *longest = list.clone();
                }
            }
        }
        self.chains = chains;
    }

    /// Records an anomaly for each value in a read whose writer is not known.
    fn check_values(&mut self, history: &[Transaction], walks: &[Walk]) {
        let mut found = Vec::new();
        for (number, walk) in walks.iter().enumerate() {
            for (key, list) in walk.seen() {
                let mut note = |kind, writer: Option<usize>, what: &str, value: Value| {
                    let transactions = std::iter::once(number).chain(writer).collect();
                    let text = format!("key {key}: it read {list:?}, and {value} {what}");
                    found.push(Anomaly { kind, transactions, text });
                };
                let mut distinct = BTreeSet::new();
                for value in list {
                    if !distinct.insert(value) {
                        note(Kind::Garbage, None, "is there twice", *value);
                    }
                    match self.writers.get(&(key, *value)) {
                        None => note(Kind::Garbage, None, "was written by nobody", *value),
                        Some(writer) if walks[*writer].undone.contains(&(key, *value)) => {
                            note(Kind::G1a, Some(*writer), "was taken back", *value);
                        }
                        Some(writer) if history[*writer].outcome == Outcome::Aborted => {
                            note(Kind::G1a, Some(*writer), "was rolled back", *value);
                        }
                        Some(writer) if *writer == number => {
                            note(Kind::Internal, None, "is its own, not written yet", *value);
                        }
                        Some(_) => {}
                    }
                }
                if let Some((writer, last)) = self.writer(key, list).zip(list.last())
                    && walks[writer].is_intermediate(key, *last)
                {
                    note(Kind::G1b, Some(writer), "was replaced by its writer", *last);
                }
            }
        }
        self.anomalies.extend(found);
    }

    /// Records an anomaly for each version that is not a prefix of the longest.
    fn check_prefixes(&mut self, walks: &[Walk]) {
        let mut found = Vec::new();
        for (number, walk) in walks.iter().enumerate() {
            for (key, list) in self.of(number, walk) {
                let chain = &self.chains[&key];
                if !chain.starts_with(list) {
                    let text = format!("key {key}: {list:?} is no beginning of {chain:?}");
                    let kind = Kind::Incompatible;
                    found.push(Anomaly { kind, transactions: vec![number], text });
                }
            }
        }
        self.anomalies.extend(found);
    }
}

/// Returns true for each transaction that counts as committed. A transaction of unknown outcome
/// does if another one has read its value.
fn committed(
    history: &[Transaction],
    walks: &[Walk],
    writers: &BTreeMap<(Key, Value), usize>,
) -> Vec<bool> {
    let mut is_committed: Vec<bool> =
        history.iter().map(|one| one.outcome == Outcome::Committed).collect();
    for (number, walk) in walks.iter().enumerate() {
        for (key, list) in walk.seen() {
            for value in list {
                if let Some(writer) = writers.get(&(key, *value))
                    && *writer != number
                    && history[*writer].outcome == Outcome::Unknown
                {
                    is_committed[*writer] = true;
                }
            }
        }
    }
    is_committed
}
