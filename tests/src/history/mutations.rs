//! Mutations that make a history wrong, each with the kind of anomaly that must then be found.

use std::collections::BTreeMap;

use super::walk::{Walk, walk};
use super::{Key, Kind, List, Operation, Outcome, Transaction, Value};

/// A function that makes a history wrong at a random place; false if the history has no suitable
/// place.
pub(super) type Mutation = fn(&mut Spoiled) -> bool;

/// All mutations, with their kinds of anomaly.
pub(super) const ALL: [(Kind, Mutation); 12] = [
    (Kind::G0, swap_writers),
    (Kind::G1a, roll_back),
    (Kind::G1a, show_taken_back),
    (Kind::G1b, show_intermediate),
    (Kind::G1c, read_each_other),
    (Kind::GSingle, skew),
    (Kind::LostUpdate, lose_update),
    (Kind::Internal, lose_own_write),
    (Kind::NonRepeatable, read_older_again),
    (Kind::Stale, read_stale),
    (Kind::Incompatible, swap_values),
    (Kind::Garbage, invent_value),
];

/// A history to which a mutation is applied.
pub(super) struct Spoiled {
    pub(super) history: Vec<Transaction>,
    walks: Vec<Walk>,
    writers: BTreeMap<(Key, Value), usize>,
    random: fastrand::Rng,
}

impl Spoiled {
    /// Returns an unchanged history.
    pub(super) fn new(history: Vec<Transaction>, seed: u64) -> Self {
        let walks: Vec<_> = history.iter().enumerate().map(|(n, one)| walk(n, one)).collect();
        let each = walks.iter().enumerate();
        let writers = each.flat_map(|(n, walk)| walk.values.iter().map(move |at| (*at, n)));
        let writers = writers.collect();
        Self { history, walks, writers, random: fastrand::Rng::with_seed(seed) }
    }

    fn is_committed(&self, number: usize) -> bool {
        self.history[number].outcome == Outcome::Committed
    }

    fn last_writer(&self, key: Key, list: &List) -> Option<usize> {
        self.writers.get(&(key, *list.last()?)).copied()
    }

    /// Returns the reads of other transactions' versions: reader, key, list, and the writer of the
    /// list's last value.
    fn reads(&self) -> Vec<(usize, Key, List, usize)> {
        let mut reads = Vec::new();
        for (reader, walk) in self.walks.iter().enumerate() {
            for (key, list) in &walk.external {
                if let Some(writer) = self.last_writer(*key, list) {
                    reads.push((reader, *key, list.clone(), writer));
                }
            }
        }
        reads
    }

    fn choose<T>(&mut self, mut from: Vec<T>) -> Option<T> {
        (!from.is_empty()).then(|| from.swap_remove(self.random.usize(0..from.len())))
    }

    /// Replaces a version in the reads of a transaction.
    fn replace_reads(&mut self, reader: usize, of: Key, old: &List, new: &List) {
        for operation in &mut self.history[reader].operations {
            match operation {
                Operation::Read { key, list } if *key == of && list == old => {
                    list.clone_from(new);
                }
                _ => {}
            }
        }
    }

    /// True if a transaction of unknown outcome has written a key.
    fn is_in_doubt(&self, key: Key) -> bool {
        let mut all = self.history.iter().zip(&self.walks);
        all.any(|(one, walk)| one.outcome == Outcome::Unknown && walk.finals.contains_key(&key))
    }

    /// Returns all committed values of a key, with those of the second writer before those of the
    /// first.
    fn swapped(&self, key: Key, first: usize, second: usize) -> List {
        let committed = (0..self.walks.len()).filter(|number| self.is_committed(*number));
        let finals = committed.filter_map(|number| self.walks[number].finals.get(&key));
        let chain = finals.max_by_key(|list| list.len()).cloned().unwrap_or_default();
        let by = |number, value: &Value| self.writers.get(&(key, *value)) == Some(&number);
        let from = chain.iter().position(|value| by(first, value)).unwrap_or(chain.len());
        let (before, behind) = chain.split_at(from);
        let of_second = behind.iter().filter(|value| by(second, value));
        let others = behind.iter().filter(|value| !by(second, value));
        before.iter().chain(of_second).chain(others).copied().collect()
    }

    /// Returns a version without the values of a writer and all later values.
    fn before(&self, key: Key, list: &List, writer: usize) -> List {
        let is_other = |value: &&Value| self.writers.get(&(key, **value)) != Some(&writer);
        list.iter().take_while(is_other).copied().collect()
    }
}

fn roll_back(spoiled: &mut Spoiled) -> bool {
    let mut seen = spoiled.reads();
    seen.retain(|(reader, .., writer)| reader != writer && spoiled.is_committed(*writer));
    let Some((.., writer)) = spoiled.choose(seen) else { return false };
    spoiled.history[writer].outcome = Outcome::Aborted;
    true
}

fn show_taken_back(spoiled: &mut Spoiled) -> bool {
    let mut found = Vec::new();
    for (writer, walk) in spoiled.walks.iter().enumerate() {
        for (key, value) in &walk.undone {
            let readers = spoiled.walks.iter().enumerate().filter(|(reader, _)| *reader != writer);
            let reads =
                readers.filter_map(|(reader, walk)| Some((reader, walk.external.get(key)?)));
            found.extend(reads.map(|(reader, list)| (reader, *key, list.clone(), *value)));
        }
    }
    let Some((reader, key, list, value)) = spoiled.choose(found) else { return false };
    spoiled.replace_reads(reader, key, &list, &[&list[..], &[value]].concat());
    true
}

fn show_intermediate(spoiled: &mut Spoiled) -> bool {
    let mut reads = spoiled.reads();
    reads.retain(|(reader, key, list, writer)| {
        let before = list[..list.len() - 1].last();
        reader != writer
            && before.is_some_and(|value| spoiled.walks[*writer].is_intermediate(*key, *value))
    });
    let Some((reader, key, list, _)) = spoiled.choose(reads) else { return false };
    spoiled.replace_reads(reader, key, &list, &list[..list.len() - 1].to_vec());
    true
}

fn read_each_other(spoiled: &mut Spoiled) -> bool {
    let mut found = Vec::new();
    for (second, _, _, first) in spoiled.reads() {
        if first == second || !spoiled.is_committed(first) || !spoiled.is_committed(second) {
            continue;
        }
        for (key, list) in &spoiled.walks[second].finals {
            if let Some(read) = spoiled.walks[first].external.get(key)
                && read.len() < list.len()
            {
                found.push((first, *key, read.clone(), list.clone()));
            }
        }
    }
    let Some((first, key, read, list)) = spoiled.choose(found) else { return false };
    spoiled.replace_reads(first, key, &read, &list);
    true
}

fn skew(spoiled: &mut Spoiled) -> bool {
    let reads = spoiled.reads();
    let mut found = Vec::new();
    for (reader, key, list, writer) in &reads {
        let is_other = |other: &&(usize, Key, List, usize)| {
            other.0 == *reader && other.1 != *key && other.3 == *writer && writer != reader
        };
        if reads.iter().any(|other| is_other(&other)) {
            found.push((*reader, *key, list.clone(), *writer));
        }
    }
    let Some((reader, key, list, writer)) = spoiled.choose(found) else { return false };
    spoiled.replace_reads(reader, key, &list, &spoiled.before(key, &list, writer));
    true
}

fn lose_update(spoiled: &mut Spoiled) -> bool {
    let mut reads = spoiled.reads();
    reads.retain(|(second, key, _, first)| {
        let has_written = |number: usize| {
            spoiled.is_committed(number) && spoiled.walks[number].finals.contains_key(key)
        };
        first != second && has_written(*first) && has_written(*second)
    });
    let Some((second, of, _, first)) = spoiled.choose(reads) else { return false };
    let lost = spoiled.walks[first].values.clone();
    for operation in &mut spoiled.history[second].operations {
        if let Operation::Read { key, list } | Operation::Write { key, list } = operation
            && *key == of
        {
            list.retain(|value| !lost.contains(&(of, *value)));
        }
    }
    true
}

/// Returns the reads (transaction and operation, by index) that are not the transaction's first
/// read of their key.
fn later_reads(spoiled: &Spoiled, is_own: bool) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (number, walk) in spoiled.walks.iter().enumerate() {
        let mut seen = Vec::new();
        for (at, operation) in spoiled.history[number].operations.iter().enumerate() {
            let Operation::Read { key, list } = operation else { continue };
            let external = walk.external.get(key);
            if seen.contains(key) && !list.is_empty() && (external != Some(list)) == is_own {
                found.push((number, at));
            }
            seen.push(*key);
        }
    }
    found
}

fn shorten(spoiled: &mut Spoiled, is_own: bool) -> bool {
    let found = later_reads(spoiled, is_own);
    let Some((number, at)) = spoiled.choose(found) else { return false };
    if let Operation::Read { list, .. } = &mut spoiled.history[number].operations[at] {
        list.pop();
    }
    true
}

fn lose_own_write(spoiled: &mut Spoiled) -> bool {
    shorten(spoiled, true)
}

fn read_older_again(spoiled: &mut Spoiled) -> bool {
    shorten(spoiled, false)
}

fn read_stale(spoiled: &mut Spoiled) -> bool {
    let mut reads = spoiled.reads();
    reads.retain(|(reader, .., writer)| {
        spoiled.is_committed(*writer)
            && spoiled.history[*writer].ended < spoiled.history[*reader].begun
    });
    let Some((reader, key, list, writer)) = spoiled.choose(reads) else { return false };
    spoiled.replace_reads(reader, key, &list, &spoiled.before(key, &list, writer));
    true
}

fn swap_values(spoiled: &mut Spoiled) -> bool {
    let mut reads = spoiled.reads();
    reads.retain(|(.., list, _)| list.len() > 1);
    let Some((reader, key, list, _)) = spoiled.choose(reads) else { return false };
    let mut swapped = list.clone();
    let last = swapped.len() - 1;
    swapped.swap(last, last - 1);
    spoiled.replace_reads(reader, key, &list, &swapped);
    true
}

fn invent_value(spoiled: &mut Spoiled) -> bool {
    let reads = spoiled.reads();
    let Some((reader, key, list, _)) = spoiled.choose(reads) else { return false };
    spoiled.replace_reads(reader, key, &list, &[&list[..], &[Value::MAX]].concat());
    true
}

/// Exchanges the order of two transactions in one of the keys that both have written.
fn swap_writers(spoiled: &mut Spoiled) -> bool {
    let mut found = Vec::new();
    for (second, walk) in spoiled.walks.iter().enumerate() {
        let follows = |key: &Key| {
            let list = walk.external.get(key)?;
            walk.finals.get(key)?;
            let first = spoiled.last_writer(*key, list)?;
            let are_committed = spoiled.is_committed(first) && spoiled.is_committed(second);
            (are_committed && first != second).then_some((first, *key))
        };
        let followed: Vec<_> = walk.finals.keys().filter_map(follows).collect();
        for (first, key) in &followed {
            if followed.iter().any(|(other, of)| other == first && of != key) {
                found.push((*first, second, *key));
            }
        }
    }
    let Some((first, second, of)) = spoiled.choose(found) else { return false };
    if spoiled.is_in_doubt(of) {
        return false;
    }
    let swapped = spoiled.swapped(of, first, second);
    for transaction in &mut spoiled.history {
        transaction
            .operations
            .retain(|operation| !matches!(operation, Operation::Read { key, .. } if *key == of));
        for operation in &mut transaction.operations {
            if let Operation::Write { key, list } = operation
                && *key == of
                && let Some(last) = list.last()
                && let Some(at) = swapped.iter().position(|value| value == last)
            {
                *list = swapped[..=at].to_vec();
            }
        }
    }
    true
}
