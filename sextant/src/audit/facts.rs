//! Describes the nodes of the cluster and the places of its data as facts, and finds the facts that
//! differ between two catalogs.
//!
//! A fact has an object and a value. A change of a fact has the value before and the value after.
//! The value before is absent for a new fact; the value after is absent if the fact is no longer
//! true. An object has the name by which users know it at that time.
//!
//! | object | value |
//! |---|---|
//! | `node 204` | `indexer at 10.0.0.4:7500 in zone a, draining` |
//! | `index "by_city"`, or `generation 9 of index "by_city"`, when it is created or dropped | the nodes of its slices: `0 on 201, 202; 1 on
//! 203`; of more than 64, `256 slices on 201, 202, 203` |
//! | `slice 3 of index "by_city"` | the nodes with a copy: `201, 202` |
//! | `serving generation of index "by_city"` | `9` |
//! | `move 17` | `slice 3 of index "by_city" from 201 to 203`; then `done`, `undone: …`, or `ended` if the catalog does not record how |
//! | `bucket "b"`, when it is created or dropped | the projectors of its vbuckets; of a version of a data set, the holders of its
//! partitions |
//! | `vbucket 5 of bucket "b"` | `101` |
//! | `hand-over of vbucket 5 of bucket "b"` | `from 101 to 102` |
//! | `copies of bucket "b"` | `101 leads, 102 in sync, 103 joining`: an embedded bucket has no facts about vbuckets |
//!
//! No value has a key or a document.

use std::collections::{BTreeMap, BTreeSet};

use proto::model::bucket::BucketInfo;
use proto::model::catalog::Catalog;
use proto::model::copies::Copies;
use proto::model::identity::ClusterId;
use proto::model::ids::{MoveId, NodeId, VbucketId};
use proto::model::index::IndexInfo;
use serde::{Deserialize, Serialize};

use super::event::EventKind;

/// The maximum number of slices or vbuckets that are listed when an object is created or dropped.
/// For an object with more, only their number and the nodes are logged, since a long line would
/// displace many other lines of the file.
const PARTS_LISTED_MAX: usize = 64;

/// The facts that a catalog contains, by the name of the object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Facts {
    /// See [`Catalog::cas`].
    pub(super) cas: u64,
    pub(super) cluster: Option<ClusterId>,
    nodes: BTreeMap<String, String>,
    /// The nodes of each slice.
    indexes: BTreeMap<String, Vec<Vec<NodeId>>>,
    /// The nodes of each vbucket.
    buckets: BTreeMap<String, Vec<Vec<NodeId>>>,
    moves: BTreeMap<MoveId, String>,
    others: BTreeMap<String, String>,
}

/// The outcomes of ended moves, by the number of the move.
pub(super) type Ends = BTreeMap<MoveId, String>;

/// A fact whose value has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FactChange {
    pub(super) what: EventKind,
    pub(super) of: String,
    pub(super) was: Option<String>,
    pub(super) is: Option<String>,
}

impl Facts {
    /// Returns the facts of a catalog. The duration is proportional to the size of the catalog.
    pub(super) fn of(catalog: &Catalog) -> Self {
        let mut facts = Self { cas: catalog.cas, cluster: catalog.cluster, ..Self::default() };
        facts.nodes = catalog
            .nodes
            .keys()
            .map(|id| (format!("node {id}"), node_text(catalog, *id)))
            .collect();
        for info in catalog.indexes.values() {
            let name = index_object(info);
            facts
                .others
                .insert(format!("serving generation of {name}"), info.generation.to_string());
            facts.add_index(name, info);
        }
        for info in catalog.generations.values() {
            facts.add_index(
                format!("generation {} of {}", info.generation, index_object(info)),
                info,
            );
        }
        for info in catalog.buckets.values() {
            facts.add_bucket(catalog, info);
        }
        facts
    }

    fn add_index(&mut self, name: String, info: &IndexInfo) {
        for moved in &info.moves {
            let ends = from_to(moved.from, moved.to);
            self.moves.insert(moved.id, format!("slice {} of {name} {ends}", moved.slice));
        }
        self.indexes.insert(name, info.topology.placement.clone());
    }

    fn add_bucket(&mut self, catalog: &Catalog, info: &BucketInfo) {
        let name = format!("bucket \"{}\"", info.name);
        if let Some(of) = catalog.copies.get(&info.id) {
            // The leading copy owns all vbuckets.
            self.others.insert(format!("copies of {name}"), copies_text(of));
        } else if let Some((_, _, version)) = catalog.version(info.id) {
            let holders = version.partitions.iter().map(|partition| partition.holders.clone());
            self.buckets.insert(name, holders.collect());
        } else if !catalog.data_sets.contains_key(&info.id) {
            let assignment = &info.assignment;
            for transfer in assignment.transfers() {
                let ends = from_to(assignment.owner(transfer.vbucket), Some(transfer.to));
                let of = format!("hand-over of vbucket {} of {name}", transfer.vbucket);
                self.others.insert(of, ends);
            }
            let owners = (0..info.vbuckets).map(|n| assignment.owner(VbucketId(n)));
            self.buckets.insert(name, owners.map(Vec::from_iter).collect());
        }
    }
}

/// Returns the outcomes of those ended moves that the catalog still contains.
pub(super) fn ends(catalog: &Catalog) -> Ends {
    let end = |undone: Option<&String>| match undone {
        None => "done".to_owned(),
        Some(why) => format!("undone: {why}"),
    };
    catalog.ended_moves.iter().map(|ended| (ended.was.id, end(ended.undone.as_ref()))).collect()
}

/// Returns the facts that differ between `before` and `after`. Facts about nodes come first.
pub(super) fn changes(before: &Facts, after: &Facts, ends: &Ends) -> Vec<FactChange> {
    let mut found = FactChanges::default();
    found.add_value_changes(EventKind::Node, &before.nodes, &after.nodes);
    found.add_place_changes("slice", &before.indexes, &after.indexes);
    found.add_place_changes("vbucket", &before.buckets, &after.buckets);
    found.add_value_changes(EventKind::Move, &before.others, &after.others);
    let is_same = |id: &&MoveId| before.moves.get(id) == after.moves.get(id);
    for id in union(&before.moves, &after.moves).into_iter().filter(|id| !is_same(id)) {
        let end = || ends.get(id).cloned().unwrap_or_else(|| "ended".to_owned());
        let is = after.moves.get(id).cloned().unwrap_or_else(end);
        found.add(EventKind::Move, format!("move {id}"), before.moves.get(id).cloned(), Some(is));
    }
    found.0
}

/// A list of changed facts, to which comparisons add.
#[derive(Default)]
struct FactChanges(Vec<FactChange>);

impl FactChanges {
    fn add(&mut self, what: EventKind, of: String, was: Option<String>, is: Option<String>) {
        self.0.push(FactChange { what, of, was, is });
    }

    /// Adds the facts with one text as value that differ between two maps.
    fn add_value_changes(
        &mut self,
        what: EventKind,
        before: &BTreeMap<String, String>,
        after: &BTreeMap<String, String>,
    ) {
        for of in union(before, after) {
            let (was, is) = (before.get(of), after.get(of));
            if was != is {
                self.add(what, of.clone(), was.cloned(), is.cloned());
            }
        }
    }

    /// Adds the slices or vbuckets (`part`) whose nodes differ between two maps.
    fn add_place_changes(
        &mut self,
        part: &str,
        before: &BTreeMap<String, Vec<Vec<NodeId>>>,
        after: &BTreeMap<String, Vec<Vec<NodeId>>>,
    ) {
        for of in union(before, after) {
            let (was, is) = (before.get(of), after.get(of));
            match (was, is) {
                (Some(was), Some(is)) if was.len() == is.len() => {
                    let parts = was.iter().zip(is).enumerate().filter(|(_, (was, is))| was != is);
                    for (n, (was, is)) in parts {
                        let of = format!("{part} {n} of {of}");
                        self.add(EventKind::Move, of, Some(node_list(was)), Some(node_list(is)));
                    }
                }
                (was, is) => {
                    let all = |on: &Vec<Vec<NodeId>>| places_text(part, on);
                    self.add(EventKind::Move, of.clone(), was.map(all), is.map(all));
                }
            }
        }
    }
}

/// Returns the keys that either map has, ascending.
fn union<'a, K: Ord, V>(before: &'a BTreeMap<K, V>, after: &'a BTreeMap<K, V>) -> BTreeSet<&'a K> {
    before.keys().chain(after.keys()).collect()
}

/// Returns the text of a fact about a node: its role, address, zone, and whether it is being
/// drained.
fn node_text(catalog: &Catalog, id: NodeId) -> String {
    let node = &catalog.nodes[&id];
    let zone = match &*node.zone {
        "" => String::new(),
        zone => format!(" in zone {zone}"),
    };
    let draining = if catalog.draining.contains(&id) { ", draining" } else { "" };
    format!("{} at {}{zone}{draining}", node.role.name(), node.address)
}

/// Returns the name of an index as the object of a fact.
fn index_object(info: &IndexInfo) -> String {
    format!("index \"{}\"", info.spec.name)
}

/// Returns a text with the nodes of each slice or vbucket.
fn places_text(part: &str, on: &[Vec<NodeId>]) -> String {
    if on.len() > PARTS_LISTED_MAX {
        let nodes: BTreeSet<NodeId> = on.iter().flatten().copied().collect();
        return format!("{} {part}s on {}", on.len(), node_list(nodes.iter()));
    }
    let all = on.iter().enumerate();
    let texts: Vec<String> = all.map(|(n, nodes)| format!("{n} on {}", node_list(nodes))).collect();
    texts.join("; ")
}

/// Returns the numbers of nodes as text, separated by commas.
fn node_list<'a>(nodes: impl IntoIterator<Item = &'a NodeId>) -> String {
    let texts: Vec<String> = nodes.into_iter().map(NodeId::to_string).collect();
    if texts.is_empty() { "no node".to_owned() } else { texts.join(", ") }
}

/// Returns the text `from A to B` for two nodes; an absent node is left out.
fn from_to(from: Option<NodeId>, to: Option<NodeId>) -> String {
    let ends = [("from", from), ("to", to)];
    let texts = ends.iter().filter_map(|(word, node)| Some(format!("{word} {}", (*node)?)));
    texts.collect::<Vec<_>>().join(" ")
}

/// Returns a text about the copies of an embedded bucket: which node leads, which are in sync,
/// which join.
fn copies_text(copies: &Copies) -> String {
    let followers = copies.in_sync.iter().filter(|node| **node != copies.leader);
    let followers = followers.map(|node| format!(", {node} in sync"));
    let joining = copies.joining.iter().map(|node| format!(", {node} joining"));
    let rest: String = followers.chain(joining).collect();
    format!("{} leads{rest}", copies.leader)
}

#[cfg(test)]
#[path = "facts_tests.rs"]
mod tests;
