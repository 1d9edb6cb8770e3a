//! Dependencies between transactions, and their cycles.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::versions::Versions;
use super::walk::Walk;
use super::{Anomaly, Kind};

/// The maximum number of reported cycles of each kind: the history of a store without isolation has
/// as many cycles as dependencies.
const TOLD_MAX: usize = 20;

/// A kind of dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Edge {
    Ww,
    Wr,
}

/// The dependencies between the transactions of a history.
pub(super) struct Graph {
    /// The transactions that depend on each transaction by ww or wr.
    forward: Vec<BTreeMap<usize, BTreeSet<Edge>>>,
    /// The pairs (reader, writer) with an rw dependency.
    anti: BTreeSet<(usize, usize)>,
}

impl Graph {
    /// Returns the dependencies of a history.
    pub(super) fn new(walks: &[Walk], versions: &Versions) -> Self {
        let mut graph = Self { forward: vec![BTreeMap::new(); walks.len()], anti: BTreeSet::new() };
        for (key, chain) in &versions.chains {
            for n in 1..chain.len() {
                let writers =
                    (versions.writer(*key, &chain[..n]), versions.writer(*key, &chain[..=n]));
                if let (Some(first), Some(second)) = writers {
                    graph.add(first, second, Edge::Ww);
                }
            }
        }
        for (reader, walk) in walks.iter().enumerate() {
            for (key, list) in walk.seen() {
                if let Some(writer) = versions.writer(key, list) {
                    graph.add(writer, reader, Edge::Wr);
                }
                let chain = &versions.chains[&key];
                let next = chain.get(..=list.len()).and_then(|next| versions.writer(key, next));
                if let Some(next) = next.filter(|next| *next != reader) {
                    graph.anti.insert((reader, next));
                }
            }
        }
        graph
    }

    fn add(&mut self, from: usize, to: usize, edge: Edge) {
        if from != to {
            self.forward[from].entry(to).or_default().insert(edge);
        }
    }

    /// Returns cycles that no history with snapshot isolation has: at most [`TOLD_MAX`] of each
    /// kind, each with the dependency that closes it.
    pub(super) fn anomalies(&self) -> Vec<Anomaly> {
        let order = self.order();
        let all = |kind, takes: fn(&BTreeSet<Edge>) -> bool, closes: Edge| {
            let edges = self.forward.iter().enumerate().flat_map(|(from, nexts)| {
                let nexts = nexts.iter().filter(|(_, edges)| edges.contains(&closes));
                nexts.map(move |(to, _)| (from, *to))
            });
            let paths = edges.filter_map(|(from, to)| self.path(to, from, None, takes));
            paths.take(TOLD_MAX).map(|path| cycle(kind, path)).collect::<Vec<_>>()
        };
        let mut found = Vec::new();
        if order.is_none() {
            found = all(Kind::G0, |edges| edges.contains(&Edge::Ww), Edge::Ww);
            found.extend(all(Kind::G1c, |_| true, Edge::Wr));
        }
        let anti = self.anti.iter();
        let paths = anti
            .filter_map(|(reader, writer)| self.path(*writer, *reader, order.as_deref(), |_| true));
        found.extend(paths.take(TOLD_MAX).map(|path| cycle(Kind::GSingle, path)));
        found
    }

    /// Returns the position of each transaction in an order in which each comes after those on
    /// which it depends by ww and wr; `None` if there is no such order. Among several orders,
    /// earlier transactions come first, so that futile searches end early.
    fn order(&self) -> Option<Vec<usize>> {
        let mut waits_for = vec![0; self.forward.len()];
        self.forward.iter().flat_map(BTreeMap::keys).for_each(|to| waits_for[*to] += 1);
        let free = |(number, count): (usize, &usize)| (*count == 0).then_some(number);
        let mut free: BTreeSet<usize> = waits_for.iter().enumerate().filter_map(free).collect();
        let mut places = vec![0; self.forward.len()];
        let mut place = 0;
        while let Some(next) = free.pop_first() {
            places[next] = place;
            place += 1;
            for to in self.forward[next].keys() {
                waits_for[*to] -= 1;
                if waits_for[*to] == 0 {
                    free.insert(*to);
                }
            }
        }
        (place == self.forward.len()).then_some(places)
    }

    /// Returns a shortest path of ww and wr dependencies that `takes` accepts; `None` if there is
    /// none.
    fn path(
        &self,
        from: usize,
        to: usize,
        order: Option<&[usize]>,
        takes: fn(&BTreeSet<Edge>) -> bool,
    ) -> Option<Vec<usize>> {
        let is_before = |one: usize| order.is_none_or(|order| order[one] <= order[to]);
        let mut came_from = BTreeMap::from([(from, from)]);
        let mut next = VecDeque::from([from]);
        while let Some(at) = next.pop_front() {
            if at == to {
                let back = std::iter::successors(Some(to), |at| {
                    came_from.get(at).copied().filter(|before| before != at)
                });
                let mut path: Vec<usize> = back.collect();
                path.reverse();
                return Some(path);
            }
            for (to, edges) in &self.forward[at] {
                if takes(edges) && is_before(*to) && !came_from.contains_key(to) {
                    came_from.insert(*to, at);
                    next.push_back(*to);
                }
            }
        }
        None
    }
}

fn cycle(kind: Kind, path: Vec<usize>) -> Anomaly {
    let text = format!("{path:?}, and the last one comes before the first one");
    Anomaly { kind, transactions: path, text }
}
