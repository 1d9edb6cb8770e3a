//! The true history of a bucket: for each vbucket a tree of all mutations ever made, including lost
//! ones. Each mutation has checksums of the documents after it, so that the content of an index at
//! a cut is judged without a replay. This module shares no code with the product.

use std::collections::{BTreeMap, BTreeSet};

use proto::model::cut::{Cut, Position};
use proto::model::ids::{Seqno, VbucketId, Vbuuid};

/// The number of vbuckets of the bucket.
pub const VBUCKETS: u16 = 4;
/// Maximum number of documents.
pub const DOCS: u16 = 64;
/// The number of document classes, which is the maximum number of slices of an index: each slice has some classes.
pub const CLASSES: usize = 4;

/// Returns the vbucket of a document.
pub fn vbucket_of(doc: u16) -> usize {
    usize::from(doc % VBUCKETS)
}

/// Returns the slice of a document in an index with this many slices.
pub fn slice_of(doc: u16, slices: usize) -> usize {
    class_of(doc) % slices
}

fn class_of(doc: u16) -> usize {
    usize::from(doc / VBUCKETS) % CLASSES
}

/// Returns the contribution of an entry to the checksum of its slice.
pub fn weight(doc: u16, value: u32) -> u64 {
    let mut mixed = u64::from(doc) << 32 | u64::from(value);
    for factor in [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb_u64] {
        mixed = (mixed ^ (mixed >> 29)).wrapping_mul(factor);
    }
    if value == 0 { 0 } else { mixed }
}

/// A mutation, with checksums of its vbucket's documents after it.
#[derive(Clone, Debug)]
pub struct Mutation {
    /// The place of the mutation in the history.
    pub position: Position,
    /// The index of the previous mutation in the tree.
    pub parent: usize,
    /// The number of the document.
    pub doc: u16,
    /// The document's new value; zero means that it does not exist.
    pub value: u32,
    /// The number of the statement that has made the mutation.
    pub statement: usize,
    /// True if the source has lost the mutation.
    pub lost: bool,
    sums: [u64; CLASSES],
}

struct Tree {
    /// All mutations ever made; the first one represents the beginning.
    mutations: Vec<Mutation>,
    by_position: BTreeMap<Position, usize>,
    tip: usize,
    documents: BTreeMap<u16, u32>,
}

/// The whole history.
pub struct History {
    vbuckets: Vec<Tree>,
    /// The mutations of each statement, as vbucket and index in its tree.
    pub statements: Vec<Vec<(usize, usize)>>,
}

impl Default for History {
    fn default() -> Self {
        let beginning = Mutation {
            position: Position::default(),
            parent: 0,
            doc: 0,
            value: 0,
            statement: usize::MAX,
            lost: false,
            sums: [0; CLASSES],
        };
        let tree = || Tree {
            mutations: vec![beginning.clone()],
            by_position: BTreeMap::from([(Position::default(), 0)]),
            tip: 0,
            documents: BTreeMap::new(),
        };
        Self { vbuckets: (0..VBUCKETS).map(|_| tree()).collect(), statements: Vec::new() }
    }
}

impl History {
    /// Appends a mutation by the newest statement, on a branch.
    pub fn append(&mut self, vbuuid: Vbuuid, doc: u16, value: u32) {
        let vbucket = vbucket_of(doc);
        let tree = &mut self.vbuckets[vbucket];
        let before = &tree.mutations[tree.tip];
        let mut sums = before.sums;
        let old = tree.documents.insert(doc, value).unwrap_or(0);
        let sum = &mut sums[class_of(doc)];
        *sum = sum.wrapping_sub(weight(doc, old)).wrapping_add(weight(doc, value));
        let position = Position { vbuuid, seqno: Seqno(before.position.seqno.0 + 1) };
        let statement = self.statements.len() - 1;
        let parent = tree.tip;
        tree.tip = tree.mutations.len();
        tree.by_position.insert(position, tree.tip);
        tree.mutations.push(Mutation {
            position,
            parent,
            doc,
            value,
            statement,
            lost: false,
            sums,
        });
        self.statements[statement].push((vbucket, tree.tip));
    }

    /// Marks a vbucket's mutations from `first` on as lost.
    pub fn lose_from(&mut self, vbucket: usize, first: usize) {
        let tree = &mut self.vbuckets[vbucket];
        let end = tree.mutations[first].parent;
        while tree.tip != end {
            tree.mutations[tree.tip].lost = true;
            tree.tip = tree.mutations[tree.tip].parent;
        }
        tree.documents.clear();
        let mut at = tree.tip;
        while at != 0 {
            let mutation = &tree.mutations[at];
            tree.documents.entry(mutation.doc).or_insert(mutation.value);
            at = mutation.parent;
        }
    }

    /// Returns the index of the last mutation in the present history of a vbucket.
    pub fn tip(&self, vbucket: usize) -> usize {
        self.vbuckets[vbucket].tip
    }

    /// Returns the mutation of a vbucket at an index of the tree.
    pub fn mutation(&self, vbucket: usize, at: usize) -> &Mutation {
        &self.vbuckets[vbucket].mutations[at]
    }

    /// Returns the index of the mutation at a position, lost or not; `None` if it never existed.
    pub fn find(&self, vbucket: usize, position: Position) -> Option<usize> {
        // The beginning is the same on all branches.
        let position = if position.seqno.0 == 0 { Position::default() } else { position };
        self.vbuckets[vbucket].by_position.get(&position).copied()
    }

    /// True if the history of a vbucket up to `at` contains a mutation.
    pub fn has(&self, vbucket: usize, at: usize, mutation: usize) -> bool {
        self.last_common(vbucket, at, mutation) == mutation
    }

    /// Returns the last mutation that the histories up to two mutations have in common.
    pub fn last_common(&self, vbucket: usize, one: usize, other: usize) -> usize {
        let of = |at: usize| self.mutation(vbucket, at);
        let (mut one, mut other) = (one, other);
        while one != other {
            match of(one).position.seqno > of(other).position.seqno {
                true => one = of(one).parent,
                false if of(one).position.seqno < of(other).position.seqno => {
                    other = of(other).parent;
                }
                false => (one, other) = (of(one).parent, of(other).parent),
            }
        }
        one
    }

    /// True if a position is a place in the source's present history.
    pub fn is_alive(&self, vbucket: usize, position: Position) -> bool {
        let found = self.find(vbucket, position);
        found.is_some_and(|at| !self.mutation(vbucket, at).lost)
    }

    /// Returns the mutations of a vbucket after a seqno in the present history.
    pub fn after(&self, vbucket: usize, seqno: Seqno) -> Vec<&Mutation> {
        let tree = &self.vbuckets[vbucket];
        let mut found = Vec::new();
        let mut at = tree.tip;
        while tree.mutations[at].position.seqno > seqno {
            found.push(&tree.mutations[at]);
            at = tree.mutations[at].parent;
        }
        found.reverse();
        found
    }

    /// Returns the checksum of a slice at a cut; `None` if the cut contains a position that never
    /// existed.
    pub fn sum(&self, cut: &Cut, slice: usize, slices: usize) -> Option<u64> {
        let mut sum = 0_u64;
        for vbucket in 0..usize::from(VBUCKETS) {
            let at = self.find(vbucket, cut.get(VbucketId(vbucket as u16)))?;
            let sums = &self.mutation(vbucket, at).sums;
            for class in (slice..CLASSES).step_by(slices) {
                sum = sum.wrapping_add(sums[class]);
            }
        }
        Some(sum)
    }

    /// Returns the content of an index at a cut: every document with its value.
    pub fn entries(&self, cut: &Cut) -> BTreeMap<u16, u32> {
        let mut entries = BTreeMap::new();
        for (vbucket, tree) in self.vbuckets.iter().enumerate() {
            let mut seen = BTreeSet::new();
            let mut at = self.find(vbucket, cut.get(VbucketId(vbucket as u16))).unwrap_or(0);
            while at != 0 {
                let mutation = &tree.mutations[at];
                if seen.insert(mutation.doc) && mutation.value != 0 {
                    entries.insert(mutation.doc, mutation.value);
                }
                at = mutation.parent;
            }
        }
        entries
    }

    /// Returns the documents at the end of the source's present history, with their values.
    pub fn documents(&self) -> impl Iterator<Item = (u16, u32)> {
        let all = self.vbuckets.iter().flat_map(|tree| &tree.documents);
        all.map(|(doc, value)| (*doc, *value)).filter(|(_, value)| *value != 0)
    }
}
