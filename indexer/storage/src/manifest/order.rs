//! The common order of a slice's fragments, from which lists for other column groups are made.

use std::collections::{BTreeMap, BTreeSet};

use proto::Result;

use crate::manifest::damage::damaged;
use crate::manifest::lists::{ListItem, SliceLists};
use crate::rows::columns::Columns;

/// A fragment, with the union of all list items of a slice that name it.
pub(super) struct FragmentNode<'a> {
    /// One of the list items with this file and restriction.
    pub(super) item: &'a ListItem,
    /// The union of the columns of all these items.
    pub(super) columns: Columns,
}

/// Returns all fragments of a slice in an order that agrees with each of its lists. An error if
/// there is no such order.
pub(super) fn common_order(lists: &SliceLists) -> Result<Vec<FragmentNode<'_>>> {
    let mut nodes = FragmentOrder::default();
    for group in &lists.groups {
        let named: Vec<usize> = group.items.iter().map(|item| nodes.add(item)).collect();
        nodes.chain(named.into_iter());
    }
    nodes.sorted()
}

/// A graph of a slice's fragments. Its edges say which fragment must come before which.
#[derive(Default)]
struct FragmentOrder<'a> {
    nodes: Vec<FragmentNode<'a>>,
    /// The nodes of each file. A file has one node for each different restriction, so usually one.
    by_file: BTreeMap<u64, Vec<usize>>,
    /// Pairs of nodes; in each pair the second node must come after the first.
    edges: BTreeSet<(usize, usize)>,
}

impl<'a> FragmentOrder<'a> {
    /// Returns the node of an item, and adds it if necessary. A file with several restrictions by
    /// keys or epochs counts as several fragments.
    fn add(&mut self, item: &'a ListItem) -> usize {
        let same_file = self.by_file.entry(item.file.0).or_default();
        let is_same = |n: &&usize| {
            let other = self.nodes[**n].item;
            (other.rows_of, other.epochs, &other.range) == (item.rows_of, item.epochs, &item.range)
        };
        if let Some(&n) = same_file.iter().find(is_same) {
            self.nodes[n].columns = self.nodes[n].columns.union(item.columns);
            return n;
        }
        same_file.push(self.nodes.len());
        self.nodes.push(FragmentNode { item, columns: item.columns });
        self.nodes.len() - 1
    }

    /// Adds edges between consecutive nodes of `chain`.
    fn chain(&mut self, chain: impl Iterator<Item = usize>) {
        let mut before = None;
        for node in chain {
            if let Some(before) = before {
                self.edges.insert((before, node));
            }
            before = Some(node);
        }
    }

    /// Sorts the nodes topologically. If several nodes may be next, chooses the one with the
    /// oldest file.
    fn sorted(self) -> Result<Vec<FragmentNode<'a>>> {
        let mut waits_for = vec![0usize; self.nodes.len()];
        self.edges.iter().for_each(|(_, after)| waits_for[*after] += 1);
        let key = |n: usize| (self.nodes[n].item.file, n);
        let mut free: BTreeSet<_> =
            (0..self.nodes.len()).filter(|n| waits_for[*n] == 0).map(key).collect();
        let mut order = Vec::with_capacity(self.nodes.len());
        while let Some((_, node)) = free.pop_first() {
            order.push(node);
            for (_, after) in self.edges.range((node, 0)..=(node, usize::MAX)) {
                waits_for[*after] -= 1;
                if waits_for[*after] == 0 {
                    free.insert(key(*after));
                }
            }
        }
        if order.len() < self.nodes.len() {
            let stuck = (0..self.nodes.len()).find(|n| waits_for[*n] > 0);
            let file = stuck.map_or(0, |n| self.nodes[n].item.file.0);
            return Err(damaged(format!(
                "the column groups disagree about the order of fragment {file}"
            )));
        }
        let mut nodes: Vec<Option<FragmentNode<'a>>> = self.nodes.into_iter().map(Some).collect();
        Ok(order.into_iter().filter_map(|n| nodes[n].take()).collect())
    }
}
