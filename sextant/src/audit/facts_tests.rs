use proto::model::assignment::{HandOver, VbucketAssignment};
use proto::model::bucket::SourceKind;
use proto::model::copies::CopiesChange;
use proto::model::data_set::{DataSet, Files, Partition, Version, VersionStage};
use proto::model::ids::{BucketId, Epoch, Generation, IndexId, SliceNo};
use proto::model::index::{IndexSpec, IndexState};
use proto::model::moves::{EndedMove, MoveStage, SliceMove};
use proto::model::node::{NodeInfo, Role};
use proto::model::topology::IndexTopology;

use std::sync::Arc;

use super::*;

const BUCKET: BucketId = BucketId(1);
const INDEX: IndexId = IndexId(7);

/// Returns a catalog with a bucket on a projector, and an index with two slices on two indexers.
fn catalog() -> Catalog {
    let mut catalog = Catalog { cas: 1, ..Catalog::default() };
    for (id, role) in [(101, Role::Projector), (201, Role::Indexer), (202, Role::Indexer)] {
        let (id, address, zone) = (NodeId(id), format!("10.0.0.{id}:7500"), String::new());
        catalog.nodes.insert(id, Arc::new(NodeInfo { id, role, address, zone }));
    }
    let bucket = BucketInfo::new(BUCKET, "docs", 2, SourceKind::Push, NodeId(101));
    catalog.buckets.insert(BUCKET, Arc::new(bucket));
    let placement = vec![vec![NodeId(201)], vec![NodeId(202)]];
    let index = IndexInfo::new(INDEX, BUCKET, IndexSpec::new("by_n", "docs"), placement);
    catalog.indexes.insert(INDEX, Arc::new(index));
    catalog
}

fn change_index(catalog: &mut Catalog, change: impl FnOnce(&mut IndexInfo)) {
    change(Arc::make_mut(catalog.indexes.get_mut(&INDEX).expect("the index")));
}

fn place(catalog: &mut Catalog, slice: usize, nodes: &[u64]) {
    change_index(catalog, |info| {
        let topology: &mut IndexTopology = Arc::make_mut(&mut info.topology);
        topology.placement[slice] = nodes.iter().copied().map(NodeId).collect();
    });
}

fn assign(catalog: &mut Catalog, change: impl FnOnce(&mut VbucketAssignment)) {
    let bucket = Arc::make_mut(catalog.buckets.get_mut(&BUCKET).expect("the bucket"));
    change(Arc::make_mut(&mut bucket.assignment));
}

/// Returns the changed facts as `what object: before -> after`.
fn told(before: &Catalog, after: &Catalog) -> Vec<String> {
    let text = |FactChange { what, of, was, is }: FactChange| {
        let [was, is] = [was, is].map(|value| value.unwrap_or_else(|| "-".to_owned()));
        format!("{} {of}: {was} -> {is}", what.name())
    };
    let changes = changes(&Facts::of(before), &Facts::of(after), &ends(after));
    changes.into_iter().map(text).collect()
}

#[test]
fn the_first_catalog_is_told_whole_and_the_same_one_not_at_all() {
    let catalog = catalog();
    let whole = [
        "node node 101: - -> projector at 10.0.0.101:7500",
        "node node 201: - -> indexer at 10.0.0.201:7500",
        "node node 202: - -> indexer at 10.0.0.202:7500",
        "move index \"by_n\": - -> 0 on 201; 1 on 202",
        "move bucket \"docs\": - -> 0 on 101; 1 on 101",
        "move serving generation of index \"by_n\": - -> 0",
    ];
    assert_eq!(told(&Catalog::default(), &catalog), whole);
    assert_eq!(told(&catalog, &catalog.clone()), [""; 0]);
}

#[test]
fn nodes_come_change_and_go() {
    let before = catalog();
    let mut after = before.clone();
    after.nodes.remove(&NodeId(101));
    after.draining.insert(NodeId(201));
    let moved = Arc::make_mut(after.nodes.get_mut(&NodeId(202)).expect("a node"));
    (moved.address, moved.zone) = ("10.0.1.1:7500".to_owned(), "b".to_owned());
    let wanted = [
        "node node 101: projector at 10.0.0.101:7500 -> -",
        "node node 201: indexer at 10.0.0.201:7500 -> indexer at 10.0.0.201:7500, draining",
        "node node 202: indexer at 10.0.0.202:7500 -> indexer at 10.0.1.1:7500 in zone b",
    ];
    assert_eq!(told(&before, &after), wanted);
}

#[test]
fn a_move_is_told_from_its_beginning_to_its_end() {
    let moved = SliceMove {
        id: MoveId(17),
        slice: SliceNo(1),
        from: Some(NodeId(202)),
        to: Some(NodeId(201)),
        stage: MoveStage::Start,
        epoch: Epoch(3),
    };
    let mut catalogs = vec![catalog()];
    let mut next = |change: &dyn Fn(&mut Catalog)| {
        let mut catalog = catalogs.last().expect("one").clone();
        change(&mut catalog);
        let lines = told(catalogs.last().expect("one"), &catalog);
        catalogs.push(catalog);
        lines
    };
    let begun = next(&|catalog| change_index(catalog, |info| info.moves.push(moved.clone())));
    assert_eq!(begun, ["move move 17: - -> slice 1 of index \"by_n\" from 202 to 201"]);
    let copies = next(&|catalog| {
        change_index(catalog, |info| info.moves[0].stage = MoveStage::Catchup);
    });
    assert_eq!(copies, [""; 0], "SHOW MOVES has the stages");
    let placed = next(&|catalog| place(catalog, 1, &[201]));
    assert_eq!(placed, ["move slice 1 of index \"by_n\": 202 -> 201"]);
    let ended = |undone: Option<&str>| EndedMove {
        index: INDEX,
        was: moved.clone(),
        undone: undone.map(ToOwned::to_owned),
    };
    let done = next(&|catalog| {
        change_index(catalog, |info| info.moves.clear());
        catalog.ended_moves.push(ended(None));
    });
    assert_eq!(done, ["move move 17: slice 1 of index \"by_n\" from 202 to 201 -> done"]);
    assert_eq!(next(&|catalog| catalog.cas += 1), [""; 0], "an end is told once");
    let mut other = moved.clone();
    other.id = MoveId(18);
    next(&|catalog| change_index(catalog, |info| info.moves.push(other.clone())));
    let undone = next(&|catalog| {
        change_index(catalog, |info| info.moves.clear());
        let mut ended = ended(Some("cancelled"));
        ended.was.id = MoveId(18);
        catalog.ended_moves.push(ended);
    });
    let from = "slice 1 of index \"by_n\" from 202 to 201";
    assert_eq!(undone, [format!("move move 18: {from} -> undone: cancelled")]);
    // The catalog contains the outcomes of the last moves only.
    other.id = MoveId(19);
    next(&|catalog| change_index(catalog, |info| info.moves.push(other.clone())));
    let gone = next(&|catalog| change_index(catalog, |info| info.moves.clear()));
    assert_eq!(gone, [format!("move move 19: {from} -> ended")]);
}

#[test]
fn slices_that_go_elsewhere_without_a_move_are_told() {
    let before = catalog();
    let mut after = before.clone();
    place(&mut after, 0, &[202, 201]);
    assert_eq!(told(&before, &after), ["move slice 0 of index \"by_n\": 201 -> 202, 201"]);
}

#[test]
fn a_generation_that_takes_a_place_is_told() {
    let before = catalog();
    let mut grown = IndexInfo::clone(&before.indexes[&INDEX]);
    grown.generation = Generation(9);
    let topology: &mut IndexTopology = Arc::make_mut(&mut grown.topology);
    topology.placement = vec![vec![NodeId(202)]; 3];
    let mut built = before.clone();
    built.generations.insert(grown.local_id(), Arc::new(grown));
    let comes = "move generation 9 of index \"by_n\": - -> 0 on 202; 1 on 202; 2 on 202";
    assert_eq!(told(&before, &built), [comes]);
    // The previous generation stays for its readers.
    let mut serves = before.clone();
    let mut retired = IndexInfo::clone(&before.indexes[&INDEX]);
    retired.state = IndexState::Retired;
    serves.generations.insert(retired.local_id(), Arc::new(retired));
    let (_, grown) = built.generations.first_key_value().expect("it is built");
    serves.indexes.insert(INDEX, Arc::clone(grown));
    let wanted = [
        "move generation 0 of index \"by_n\": - -> 0 on 201; 1 on 202",
        "move generation 9 of index \"by_n\": 0 on 202; 1 on 202; 2 on 202 -> -",
        "move index \"by_n\": 0 on 201; 1 on 202 -> 0 on 202; 1 on 202; 2 on 202",
        "move serving generation of index \"by_n\": 0 -> 9",
    ];
    assert_eq!(told(&built, &serves), wanted);
    // All of these facts are also written for catalogs in quick succession.
    let mut gone = serves.clone();
    gone.generations.clear();
    assert_eq!(told(&before, &gone), wanted[2..]);
}

#[test]
fn an_index_of_another_name_is_told_under_both() {
    let before = catalog();
    let mut after = before.clone();
    change_index(&mut after, |info| Arc::make_mut(&mut info.spec).name = "by_m".to_owned());
    let wanted = [
        "move index \"by_m\": - -> 0 on 201; 1 on 202",
        "move index \"by_n\": 0 on 201; 1 on 202 -> -",
        "move serving generation of index \"by_m\": - -> 0",
        "move serving generation of index \"by_n\": 0 -> -",
    ];
    assert_eq!(told(&before, &after), wanted);
}

#[test]
fn holders_of_partitions_are_told() {
    let mut before = catalog();
    let mut set = DataSet::new(2, 2, 0);
    let partition = |holders: &[u64]| Partition {
        holders: holders.iter().copied().map(NodeId).collect(),
        content: None,
    };
    let bucket = BucketInfo::new(BucketId(2), "docs@v1", 2, SourceKind::Files, NodeId(101));
    before.buckets.insert(BucketId(2), Arc::new(bucket));
    let version = Version {
        name: "v1".to_owned(),
        bucket: BucketId(2),
        files: Files { pattern: "*.jsonl".to_owned(), id: "id".to_owned() },
        nodes: vec![NodeId(101), NodeId(102)],
        stage: VersionStage::Loading,
        partitions: vec![partition(&[]), partition(&[101])],
    };
    set.versions.insert(1, version);
    before.data_sets.insert(BUCKET, set.clone());
    let mut after = before.clone();
    let version = after.data_sets.get_mut(&BUCKET).expect("the set").versions.get_mut(&1);
    version.expect("the version").partitions[0] = partition(&[101, 102]);
    let wanted = ["move vbucket 0 of bucket \"docs@v1\": no node -> 101, 102"];
    assert_eq!(told(&before, &after), wanted);
    // A data set has no documents itself.
    let whole = told(&Catalog::default(), &before);
    assert!(!whole.iter().any(|line| line.contains("\"docs\"")), "{whole:?}");
}

#[test]
fn vbuckets_and_copies_are_told() {
    let before = catalog();
    let mut after = before.clone();
    let hand_over = HandOver { number: 5, vbucket: VbucketId(1), to: NodeId(102) };
    assign(&mut after, |assignment| assignment.begin_transfer(hand_over));
    let begun = "move hand-over of vbucket 1 of bucket \"docs\": - -> from 101 to 102";
    assert_eq!(told(&before, &after), [begun]);
    let mut ended = after.clone();
    assign(&mut ended, |assignment| assignment.finish_transfer(hand_over));
    let wanted = [
        "move vbucket 1 of bucket \"docs\": 101 -> 102",
        "move hand-over of vbucket 1 of bucket \"docs\": from 101 to 102 -> -",
    ];
    assert_eq!(told(&after, &ended), wanted);

    let mut copied = before.clone();
    copied.copies.insert(BUCKET, Copies::single(NodeId(101)));
    let first = "move copies of bucket \"docs\": - -> 101 leads".to_owned();
    assert!(told(&before, &copied).contains(&first));
    let mut joined = copied.clone();
    let copies = joined.copies.get_mut(&BUCKET).expect("copies");
    for change in [CopiesChange::Join(NodeId(102)), CopiesChange::Grow(NodeId(102))] {
        copies.change(copies.revision, change).expect("a change");
    }
    copies.change(copies.revision, CopiesChange::Join(NodeId(103))).expect("a change");
    let wanted = "move copies of bucket \"docs\": 101 leads -> 101 leads, 102 in sync, 103 joining";
    assert_eq!(told(&copied, &joined), [wanted]);
    // A promotion changes the owner of all vbuckets: the facts of the copies show it.
    let mut promoted = joined.clone();
    let copies = promoted.copies.get_mut(&BUCKET).expect("copies");
    copies.change(copies.revision, CopiesChange::Promote(NodeId(102))).expect("a change");
    assign(&mut promoted, |owners| *owners = VbucketAssignment::single(2, NodeId(102)));
    let lines = told(&joined, &promoted);
    assert!(lines.len() == 1 && lines[0].contains("-> 102 leads"), "{lines:?}");
}

#[test]
fn an_index_of_many_slices_has_a_short_line() {
    let mut after = catalog();
    change_index(&mut after, |info| {
        Arc::make_mut(&mut info.topology).placement = vec![vec![NodeId(201), NodeId(202)]; 1024];
    });
    let wanted = "move index \"by_n\": - -> 1024 slices on 201, 202".to_owned();
    assert!(told(&Catalog::default(), &after).contains(&wanted));
}

#[test]
fn what_is_dropped_is_told_by_its_name() {
    let before = catalog();
    let mut after = before.clone();
    after.indexes.clear();
    after.buckets.clear();
    let wanted = [
        "move index \"by_n\": 0 on 201; 1 on 202 -> -",
        "move bucket \"docs\": 0 on 101; 1 on 101 -> -",
        "move serving generation of index \"by_n\": 0 -> -",
    ];
    assert_eq!(told(&before, &after), wanted);
}
