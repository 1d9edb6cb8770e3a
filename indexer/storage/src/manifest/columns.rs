//! Column groups, and how a change of them keeps the order of versions.
//!
//! A slice's columns (the entry itself, the included values, the back index) are divided into groups;
//! each group has its own list of fragments. When columns move between groups, the lists are made
//! anew:
//!
//! 1. All lists are merged into one order of the slice's fragments, in which each list keeps its own.
//!    So each *column* keeps its chain: the fragments that count for it, in the order of its versions.
//! 2. Each new group takes, in that order, the fragments that counted for one of its columns, restricted
//!    to these.
//!
//! The restriction is what makes it right. A fragment may hold values of a column that moved away and
//! were merged elsewhere since: they are older than they look, or erased, and must never count again,
//! whatever group the column comes to. Two traces that go wrong without it are tests.
//!
//! **The merge never meets a cycle**: all lists of a slice are parts of one common order of its
//! fragments. A new fragment goes to the end of that order; a bulk-built one to its beginning. A merge
//! puts its output where its last input is: its inputs are neighbours in one list, so what precedes
//! them there precedes the output, and what follows, follows; no other list has it. Dropping items
//! changes no order. And a change of groups takes all its lists from one order. (That is why it merges
//! the lists of *all* groups, and not for each new group those that it takes columns from: two groups
//! might then order the same fragments differently, merges would weld these orders into new fragments,
//! and a later change could find a circle.) A circle in a file is damage, and told.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use proto::Result;
use serde::{Deserialize, Serialize};

use super::list::{GroupList, ListItem, SliceLists, damaged};

/// A set of columns.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Columns(pub u64);

impl Columns {
    /// No column.
    pub const NONE: Self = Self(0);
    /// Every column.
    pub const ALL: Self = Self(u64::MAX);
    /// The entry: key, document id, epoch, erased or not.
    pub const ENTRY: Self = Self(1);
    /// The back index: which entries a document has.
    pub const BACK: Self = Self(1 << 63);
    /// All included columns.
    pub const INCLUDE: Self = Self(!(1 | 1 << 63));
    /// The entry with all included columns.
    pub const FORWARD: Self = Self(!(1 << 63));

    /// The included column of a number, counted from 0; those from 61 on share one.
    pub fn include(number: usize) -> Self {
        Self(1 << (1 + number.min(61)))
    }

    /// Those of either.
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those of both.
    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Has it all of the other's?
    pub fn contains(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    /// Has it one of the other's?
    pub fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Is it none?
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Each column by itself.
    pub fn each(self) -> impl Iterator<Item = Self> {
        (0..64).map(|bit| Self(1 << bit)).filter(move |column| self.contains(*column))
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::ALL {
            return f.write_str("all");
        }
        // All included columns together, as they mostly are, have one name.
        let whole = self.contains(Self::INCLUDE);
        let named = if whole { Self(self.0 & !Self::INCLUDE.0) } else { *self };
        let mut separator = "";
        for column in named.each() {
            f.write_str(separator)?;
            match column {
                Self::ENTRY => f.write_str("entry")?,
                Self::BACK => f.write_str("back")?,
                included => write!(f, "include {}", included.0.trailing_zeros() - 1)?,
            }
            separator = ",";
        }
        if whole {
            write!(f, "{separator}include")?;
        }
        Ok(())
    }
}

/// How an index divides its columns into groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    /// The included values stand with their entries: what reads them finds both at one place.
    #[default]
    Together,
    /// The included values have fragments of their own: who does not ask for them never reads past them.
    Apart,
}

impl Grouping {
    /// The groups that entries and included values are written to.
    pub fn forward(self) -> &'static [Columns] {
        match self {
            Self::Together => &[Columns::FORWARD],
            Self::Apart => &[Columns::ENTRY, Columns::INCLUDE],
        }
    }

    /// All groups.
    pub fn groups(self) -> &'static [Columns] {
        match self {
            Self::Together => &[Columns::FORWARD, Columns::BACK],
            Self::Apart => &[Columns::ENTRY, Columns::INCLUDE, Columns::BACK],
        }
    }
}

/// The lists of a slice for another division of its columns. What counted for a column that no new
/// group has is gone. `Corrupt` if the lists have no common order.
pub fn regroup(lists: &SliceLists, new_groups: &[Columns]) -> Result<SliceLists> {
    let order = common_order(lists)?;
    let mut new_lists = SliceLists::new(new_groups);
    for node in order {
        for group in &mut new_lists.groups {
            let columns = node.columns.intersection(group.columns);
            if !columns.is_empty() {
                group.items.push(ListItem { columns, ..node.item.clone() });
            }
        }
    }
    new_lists.check()?;
    Ok(new_lists)
}

/// A fragment, as all lists of a slice together name it.
pub(super) struct Node<'a> {
    /// Some item that names it.
    item: &'a ListItem,
    /// The columns of all items that name it.
    columns: Columns,
}

/// All fragments of a slice, so that each list keeps its order; an error if there is no such order.
pub(super) fn common_order(lists: &SliceLists) -> Result<Vec<Node<'_>>> {
    let mut nodes = Nodes::default();
    for group in &lists.groups {
        let named: Vec<usize> = group.items.iter().map(|item| nodes.add(item)).collect();
        nodes.chain(named.into_iter());
    }
    nodes.sorted()
}

/// Fragments and which must come before which.
#[derive(Default)]
struct Nodes<'a> {
    nodes: Vec<Node<'a>>,
    /// The nodes of each file: as many as restrictions it is named with, one as a rule.
    by_file: BTreeMap<u64, Vec<usize>>,
    /// Pairs of a node and one that comes after it.
    edges: BTreeSet<(usize, usize)>,
}

impl<'a> Nodes<'a> {
    /// The node of an item. A file that is named with different keys or epochs is several fragments.
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
        self.nodes.push(Node { item, columns: item.columns });
        self.nodes.len() - 1
    }

    /// These come one after another.
    fn chain(&mut self, chain: impl Iterator<Item = usize>) {
        let mut before = None;
        for node in chain {
            if let Some(before) = before {
                self.edges.insert((before, node));
            }
            before = Some(node);
        }
    }

    /// All in order; among those that may come next, the oldest file first.
    fn sorted(self) -> Result<Vec<Node<'a>>> {
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
        let mut nodes: Vec<Option<Node<'a>>> = self.nodes.into_iter().map(Some).collect();
        Ok(order.into_iter().filter_map(|n| nodes[n].take()).collect())
    }
}

impl GroupList {
    /// Where a contiguous piece of items begins in the list.
    pub(super) fn find_piece(&self, piece: &[ListItem]) -> Option<usize> {
        if piece.is_empty() {
            return None;
        }
        self.items.windows(piece.len()).position(|window| window == piece)
    }
}
