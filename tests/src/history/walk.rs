//! The analysis of one transaction: its reads of other transactions' versions, and its own writes.

use std::collections::{BTreeMap, BTreeSet};

use super::{Anomaly, Key, Kind, List, Operation, Transaction, Value};

/// The effects of one transaction.
#[derive(Clone, Debug, Default)]
pub(super) struct Walk {
    /// The version of each key that the transaction read from others.
    pub(super) external: BTreeMap<Key, List>,
    /// Other versions that the transaction read from others, each of which is an anomaly.
    pub(super) others: Vec<(Key, List)>,
    /// The last version of each key that the transaction wrote and did not undo.
    pub(super) finals: BTreeMap<Key, List>,
    /// All values that the transaction wrote.
    pub(super) values: BTreeSet<(Key, Value)>,
    /// The values that the transaction has rolled back.
    pub(super) undone: BTreeSet<(Key, Value)>,
    pub(super) anomalies: Vec<Anomaly>,
}

impl Walk {
    /// Returns all versions that the transaction read from others.
    pub(super) fn seen(&self) -> impl Iterator<Item = (Key, &List)> {
        let external = self.external.iter().map(|(key, list)| (*key, list));
        external.chain(self.others.iter().map(|(key, list)| (*key, list)))
    }

    /// True if the transaction itself has replaced a value that it wrote.
    pub(super) fn is_intermediate(&self, key: Key, value: Value) -> bool {
        let is_final = self.finals.get(&key).and_then(|list| list.last()) == Some(&value);
        self.values.contains(&(key, value)) && !self.undone.contains(&(key, value)) && !is_final
    }
}

/// Analyses the operations of a transaction.
pub(super) fn walk(number: usize, transaction: &Transaction) -> Walk {
    let mut walk = Walk::default();
    // The writes that are not undone, each with the index of its operation.
    let mut own: Vec<(usize, Key, List)> = Vec::new();
    for (at, operation) in transaction.operations.iter().enumerate() {
        match operation {
            Operation::Read { key, list } => read(&mut walk, number, &own, *key, list),
            Operation::Write { key, list } => {
                write(&mut walk, number, &own, *key, list);
                own.push((at, *key, list.clone()));
            }
            Operation::Back(to) => {
                for (_, key, list) in own.extract_if(.., |(at, ..)| *at >= *to) {
                    walk.undone.extend(list.last().map(|value| (key, *value)));
                }
            }
        }
    }
    for (_, key, list) in own {
        walk.finals.insert(key, list);
    }
    walk
}

fn newest(own: &[(usize, Key, List)], key: Key) -> Option<&List> {
    own.iter().rev().find(|(_, of, _)| *of == key).map(|(_, _, list)| list)
}

fn read(walk: &mut Walk, number: usize, own: &[(usize, Key, List)], key: Key, list: &List) {
    let mut note = |kind, text| {
        walk.anomalies.push(Anomaly { kind, transactions: vec![number], text });
    };
    if let Some(own) = newest(own, key) {
        if own != list {
            note(Kind::Internal, format!("key {key}: it wrote {own:?} and read {list:?}"));
        }
        return;
    }
    match walk.external.get(&key) {
        None => {
            walk.external.insert(key, list.clone());
        }
        Some(first) if first == list => {}
        Some(first) => {
            note(Kind::NonRepeatable, format!("key {key}: it read {first:?}, then {list:?}"));
            walk.others.push((key, list.clone()));
        }
    }
}

fn write(walk: &mut Walk, number: usize, own: &[(usize, Key, List)], key: Key, list: &List) {
    let base = newest(own, key).or_else(|| walk.external.get(&key));
    let Some((value, before)) = list.split_last() else {
        let text = format!("key {key}: it wrote an empty list");
        walk.anomalies.push(Anomaly { kind: Kind::Garbage, transactions: vec![number], text });
        return;
    };
    if let Some(base) = base.filter(|base| *base != before) {
        let text = format!("key {key}: it saw {base:?} and wrote {list:?}");
        walk.anomalies.push(Anomaly { kind: Kind::Internal, transactions: vec![number], text });
    }
    walk.values.insert((key, *value));
}
