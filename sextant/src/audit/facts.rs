//! The nodes of the cluster and the places of its data as facts, and the facts that differ between two catalogs.
//!
//! A fact has an object and a value. A change of it has the value before and the one after: one of both is missing if the fact is new, or
//! holds no longer.
//!
//! | object | value |
//! |---|---|
//! | `node 204` | `indexer at 10.0.0.4:7500 in zone a, draining` |
//! | `index "by_city"`, or `generation 2 of index "by_city"`, when it comes or goes | `0 on 201, 202; 1 on 203, 204`: the copies of each slice; of more than 64, `256 slices on 201, 202` |
//! | `slice 3 of index "by_city"` | `201, 202` |
//! | `move 17: slice 3 of index "by_city"` | `from 201 to 203`; when it ends `done`, or `undone: …` |
//! | `bucket "b"`, when it comes or goes | `64 vbuckets on 101, 102` |
//! | `vbucket 5 of bucket "b"` | `101` |
//! | `hand-over of vbucket 5 of bucket "b"` | `from 101 to 102` |
//! | `copies of bucket "b"` | `101 leads, 102 in sync, 103 joining` |
//!
//! No value has a key or a document.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proto::model::bucket::BucketInfo;
use proto::model::catalog::Catalog;
use proto::model::copies::Copies;
use proto::model::ids::{BucketId, IndexId, LocalIndexId, MoveId, NodeId, VbucketId};
use proto::model::index::IndexInfo;
use proto::model::moves::{EndedMove, SliceMove};

use super::event::What;

/// An index with more slices is told by their number and its nodes: indexes that come and go shall not push other lines out of their file.
const SLICES_LISTED_MAX: usize = 64;

/// A fact that has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FactChange {
    pub(super) what: What,
    pub(super) of: String,
    pub(super) was: Option<String>,
    pub(super) is: Option<String>,
}

/// The facts that differ: nodes first, then slices, moves and buckets.
pub(super) fn changes(before: &Catalog, after: &Catalog) -> Vec<FactChange> {
    let mut found = Found::default();
    found.nodes(before, after);
    found.slices(before, after);
    found.moves(before, after);
    found.buckets(before, after);
    found.0
}

#[derive(Default)]
struct Found(Vec<FactChange>);

impl Found {
    fn add(&mut self, what: What, of: String, was: Option<String>, is: Option<String>) {
        if was != is {
            self.0.push(FactChange { what, of, was, is });
        }
    }

    fn nodes(&mut self, before: &Catalog, after: &Catalog) {
        for id in union(before.nodes.keys(), after.nodes.keys()) {
            let (was, is) = (node(before, id), node(after, id));
            self.add(What::Node, format!("node {id}"), was, is);
        }
    }

    fn slices(&mut self, before: &Catalog, after: &Catalog) {
        let (was, is) = (generations(before), generations(after));
        for id in union(was.keys(), is.keys()) {
            match (was.get(&id), is.get(&id)) {
                (Some(was), Some(is)) => self.slices_of(was, (after, is)),
                (Some(was), None) => {
                    self.add(What::Move, index(before, was), Some(slices(was)), None);
                }
                (None, Some(is)) => {
                    self.add(What::Move, index(after, is), None, Some(slices(is)));
                }
                (None, None) => {}
            }
        }
    }

    fn slices_of(&mut self, was: &Arc<IndexInfo>, (after, is): (&Catalog, &Arc<IndexInfo>)) {
        if Arc::ptr_eq(was, is) {
            return;
        }
        let (was, places) = (&was.topology.placement, &is.topology.placement);
        for slice in 0..was.len().max(places.len()) {
            let of = || format!("slice {slice} of {}", index(after, is));
            let (was, is) = (was.get(slice), places.get(slice));
            if was != is {
                self.add(What::Move, of(), was.map(|on| list(on)), is.map(|on| list(on)));
            }
        }
    }

    fn moves(&mut self, before: &Catalog, after: &Catalog) {
        let (was, is) = (moves(before), moves(after));
        let ended_before: BTreeSet<MoveId> =
            before.ended_moves.iter().map(|ended| ended.was.id).collect();
        let new = |ended: &&EndedMove| !ended_before.contains(&ended.was.id);
        let ended = after.ended_moves.iter().filter(new);
        let ended: BTreeMap<MoveId, &EndedMove> =
            ended.map(|ended| (ended.was.id, ended)).collect();
        let under_way = union(was.keys(), is.keys());
        for id in union(under_way.iter(), ended.keys()) {
            let ended = ended.get(&id);
            let (of, slice) = match (is.get(&id), was.get(&id), ended) {
                (Some((info, moved)), ..) => (index(after, info), moved.slice),
                (None, Some((info, moved)), _) => (index(before, info), moved.slice),
                (None, None, Some(ended)) => {
                    (index_of(before, after, ended.index), ended.was.slice)
                }
                (None, None, None) => continue,
            };
            let text = |(_, moved): &(&Arc<IndexInfo>, &SliceMove)| from_to(moved.from, moved.to);
            let is = is.get(&id).map(text).or_else(|| ended.map(|ended| end(ended)));
            let of = format!("move {id}: slice {slice} of {of}");
            self.add(What::Move, of, was.get(&id).map(text), is);
        }
    }

    fn buckets(&mut self, before: &Catalog, after: &Catalog) {
        for id in union(before.buckets.keys(), after.buckets.keys()) {
            let (was, is) = (before.buckets.get(&id), after.buckets.get(&id));
            let of = bucket(if is.is_some() { after } else { before }, id);
            match (was, is) {
                (Some(was), Some(is)) if Arc::ptr_eq(&was.assignment, &is.assignment) => {}
                // The leading copy owns all vbuckets.
                (Some(_), Some(_)) if after.copies.contains_key(&id) => {}
                (Some(was), Some(is)) => self.vbuckets(&of, was, is),
                (was, is) => {
                    let all = |info: &Arc<BucketInfo>| vbuckets(info);
                    self.add(What::Move, of.clone(), was.map(all), is.map(all));
                }
            }
            let (was, is) = (before.copies.get(&id), after.copies.get(&id));
            self.add(What::Move, format!("copies of {of}"), was.map(copies), is.map(copies));
        }
    }

    fn vbuckets(&mut self, bucket: &str, was: &BucketInfo, is: &BucketInfo) {
        for vbucket in (0..is.vbuckets).map(VbucketId) {
            let owner = |info: &BucketInfo| Some(info.assignment.owner(vbucket)?.to_string());
            let hand_over = |info: &BucketInfo| {
                let to = info.assignment.transfer_of(vbucket)?.to;
                Some(from_to(info.assignment.owner(vbucket), Some(to)))
            };
            let of = format!("vbucket {vbucket} of {bucket}");
            let handed = format!("hand-over of {of}");
            self.add(What::Move, of, owner(was), owner(is));
            self.add(What::Move, handed, hand_over(was), hand_over(is));
        }
    }
}

/// The keys of two maps, ascending.
fn union<'a, K: Copy + Ord + 'a>(
    before: impl Iterator<Item = &'a K>,
    after: impl Iterator<Item = &'a K>,
) -> BTreeSet<K> {
    before.chain(after).copied().collect()
}

fn node(catalog: &Catalog, id: NodeId) -> Option<String> {
    let node = catalog.nodes.get(&id)?;
    let zone = match &*node.zone {
        "" => String::new(),
        zone => format!(" in zone {zone}"),
    };
    let draining = if catalog.draining.contains(&id) { ", draining" } else { "" };
    Some(format!("{} at {}{zone}{draining}", node.role.name(), node.address))
}

fn generations(catalog: &Catalog) -> BTreeMap<LocalIndexId, &Arc<IndexInfo>> {
    catalog.local_indexes().map(|info| (info.local_id(), info)).collect()
}

fn moves(catalog: &Catalog) -> BTreeMap<MoveId, (&Arc<IndexInfo>, &SliceMove)> {
    let all = catalog.local_indexes();
    all.flat_map(|info| info.moves.iter().map(move |moved| (moved.id, (info, moved)))).collect()
}

/// An index, or a generation beside the one that serves.
fn index(catalog: &Catalog, info: &IndexInfo) -> String {
    let name = &info.spec.name;
    match catalog.generations.contains_key(&info.local_id()) {
        false => format!("index \"{name}\""),
        true => format!("generation {} of index \"{name}\"", info.generation),
    }
}

/// The index of a move whose generation is not known any more.
fn index_of(before: &Catalog, after: &Catalog, id: IndexId) -> String {
    let known = after.indexes.get(&id).or_else(|| before.indexes.get(&id));
    known.map_or_else(|| format!("index {id}"), |info| format!("index \"{}\"", info.spec.name))
}

fn slices(info: &IndexInfo) -> String {
    let placement = &info.topology.placement;
    if placement.len() > SLICES_LISTED_MAX {
        return format!("{} slices on {}", placement.len(), list(&info.topology.nodes()));
    }
    let all = placement.iter().enumerate();
    let texts: Vec<String> = all.map(|(slice, on)| format!("{slice} on {}", list(on))).collect();
    texts.join("; ")
}

fn list(nodes: &[NodeId]) -> String {
    let texts: Vec<String> = nodes.iter().map(NodeId::to_string).collect();
    texts.join(", ")
}

fn from_to(from: Option<NodeId>, to: Option<NodeId>) -> String {
    let ends = [("from", from), ("to", to)];
    let texts = ends.iter().filter_map(|(word, node)| Some(format!("{word} {}", (*node)?)));
    texts.collect::<Vec<_>>().join(" ")
}

fn end(ended: &EndedMove) -> String {
    ended.undone.as_ref().map_or_else(|| "done".to_owned(), |why| format!("undone: {why}"))
}

/// A bucket as its users know it.
fn bucket(catalog: &Catalog, id: BucketId) -> String {
    let name = |id| catalog.buckets.get(&id).map_or("", |info: &Arc<BucketInfo>| &*info.name);
    match catalog.version(id) {
        Some((set, _, version)) => {
            format!("version \"{}\" of bucket \"{}\"", version.name, name(set))
        }
        None => format!("bucket \"{}\"", name(id)),
    }
}

fn vbuckets(info: &BucketInfo) -> String {
    format!("{} vbuckets on {}", info.vbuckets, list(&info.assignment.projectors()))
}

fn copies(copies: &Copies) -> String {
    let followers = copies.in_sync.iter().filter(|node| **node != copies.leader);
    let followers = followers.map(|node| format!(", {node} in sync"));
    let joining = copies.joining.iter().map(|node| format!(", {node} joining"));
    let rest: String = followers.chain(joining).collect();
    format!("{} leads{rest}", copies.leader)
}

#[cfg(test)]
#[path = "facts_tests.rs"]
mod tests;
