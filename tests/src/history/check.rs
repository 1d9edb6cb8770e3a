//! The judgement of a history.

use std::collections::BTreeMap;

use super::graph::Graph;
use super::versions::Versions;
use super::walk::{Walk, walk};
use super::{Anomaly, Key, Kind, Outcome, Transaction, Value};

/// Returns the violations of snapshot isolation in a history.
pub fn check(history: &[Transaction]) -> Vec<Anomaly> {
    let walks: Vec<Walk> =
        history.iter().enumerate().map(|(number, one)| walk(number, one)).collect();
    let mut versions = Versions::new(history, &walks);
    let mut found: Vec<_> = walks.iter().flat_map(|walk| walk.anomalies.clone()).collect();
    found.append(&mut versions.anomalies);
    found.extend(lost_updates(&walks, &versions));
    found.extend(stale_reads(history, &walks, &versions));
    found.extend(Graph::new(&walks, &versions).anomalies());
    found
}

/// Returns the anomalies of committed transactions that have replaced one and the same version.
fn lost_updates(walks: &[Walk], versions: &Versions) -> Vec<Anomaly> {
    let mut replaced: BTreeMap<(Key, Option<Value>), Vec<usize>> = BTreeMap::new();
    for (number, walk) in walks.iter().enumerate() {
        if versions.is_committed[number] {
            for key in walk.finals.keys() {
                if let Some(list) = walk.external.get(key) {
                    replaced.entry((*key, list.last().copied())).or_default().push(number);
                }
            }
        }
    }
    let twice = replaced.into_iter().filter(|(_, writers)| writers.len() > 1);
    let lost = |((key, version), transactions): ((Key, Option<Value>), Vec<usize>)| Anomaly {
        kind: Kind::LostUpdate,
        text: format!("key {key}: {transactions:?} have replaced version {version:?}"),
        transactions,
    };
    twice.map(lost).collect()
}

/// Returns the anomalies of reads that lack writes acknowledged before their transaction began.
fn stale_reads(history: &[Transaction], walks: &[Walk], versions: &Versions) -> Vec<Anomaly> {
    let mut found = Vec::new();
    // For each version of a key, the earliest acknowledgement of it or of a later one.
    let mut acknowledged: BTreeMap<Key, Vec<u64>> = BTreeMap::new();
    for (key, chain) in &versions.chains {
        let at = |value: &Value| match versions.writers.get(&(*key, *value)) {
            Some(writer) if history[*writer].outcome == Outcome::Committed => {
                history[*writer].ended
            }
            _ => u64::MAX,
        };
        let mut earliest: Vec<u64> = chain.iter().map(at).collect();
        for n in (1..earliest.len()).rev() {
            earliest[n - 1] = earliest[n - 1].min(earliest[n]);
        }
        acknowledged.insert(*key, earliest);
    }
    for (number, walk) in walks.iter().enumerate() {
        let begun = history[number].begun;
        for (key, list) in walk.seen().filter(|(key, _)| history[number].present.has(*key)) {
            let missed = acknowledged[&key].get(list.len());
            if missed.is_some_and(|ended| *ended < begun) {
                let chain = &versions.chains[&key];
                let text = format!("key {key}: it read {list:?} of {chain:?}");
                found.push(Anomaly { kind: Kind::Stale, transactions: vec![number], text });
            }
        }
    }
    found
}
