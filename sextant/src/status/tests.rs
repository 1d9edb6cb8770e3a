//! Tests that all renderings of one status agree. `UPDATE=1` rewrites `testdata/status.txt`, which
//! contains them.
#![allow(clippy::disallowed_methods, reason = "a test that reads and writes its expectations")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use proto::flow::AdmissionStatus;
use proto::model::bucket::{BucketInfo, SourceKind};
use proto::model::catalog::Catalog;
use proto::model::copies::Copies;
use proto::model::data_set::{
    DataSet, FailedVersion, Files, Partition, PartitionContent, Version, VersionStage,
};
use proto::model::ids::{
    BucketId, Epoch, Generation, IndexId, LocalIndexId, MoveId, NodeId, SliceId, SliceNo,
    TransactionId,
};
use proto::model::index::{IndexInfo, IndexSpec, IndexState};
use proto::model::joint::PartlyLostCommit;
use proto::model::left_out::LeftOut;
use proto::model::moves::{EndedMove, MovePhase, MoveProgress, MoveStage, SliceMove};
use proto::model::node::{NodeInfo, Role};
use proto::model::rollback::DeadEpochs;
use proto::rpc::api::{
    BucketProgress, CoordinatorMembers, CoordinatorStatus, EpochWait, NodeStatus, SliceProgress,
};
use router::Knowledge;
use serde_json::{Map, Value as Json};

use super::render::exposition::MetricsFormat;
use super::render::{grpc, metrics, show};
use super::{ClusterStatus, CoordinatorAnswer, ProcessStatus, Status, WorkStatus};
use crate::rows::format::Format;
use crate::rows::value::Datum;
use crate::sql::ast::Show;
use crate::sql::plan::ColumnInfo;

/// The tables of SHOW, the names of their lists in JSON, and the fields that only JSON has, because
/// they are lists or numbers of named objects.
const TABLES: [(Show, &str, &[&str]); 9] = [
    (Show::Nodes, "nodes", &["buckets", "scans"]),
    (
        Show::Buckets,
        "buckets",
        &[
            "assignment",
            "copies_in_sync",
            "copies_wanted",
            "dead",
            "epochs_past_slow_indexers",
            "held_ms",
            "id",
            "rollback",
        ],
    ),
    (Show::Copies, "copies", &[]),
    (
        Show::Indexes,
        "indexes",
        &["entries", "generation", "id", "left_out_by_reason", "placement", "topology"],
    ),
    (Show::Slices, "slices", &[]),
    (Show::Moves, "moves", &[]),
    (Show::Rollbacks, "rollbacks", &[]),
    (Show::Versions, "versions", &[]),
    (Show::Holds, "holds", &[]),
];

fn catalog() -> Catalog {
    let node = |id, role, zone: &str| {
        let address = format!("host-{id}:7500");
        let info = NodeInfo { id: NodeId(id), role, address, zone: zone.to_owned() };
        (NodeId(id), Arc::new(info))
    };
    let nodes = [
        node(1, Role::Coordinator, ""),
        node(101, Role::Projector, ""),
        node(102, Role::Projector, ""),
        node(103, Role::Projector, ""),
        node(201, Role::Indexer, "zone-1"),
        node(202, Role::Indexer, "zone-2"),
        node(301, Role::Router, ""),
    ];
    let mut people = BucketInfo::new(BucketId(1), "people", 4, SourceKind::Embedded, NodeId(101));
    people.dead = Arc::new(vec![DeadEpochs { point: None, to: Epoch(9) }]);
    let pushed = BucketInfo::new(BucketId(2), "readings", 2, SourceKind::Push, NodeId(101));
    let orders = BucketInfo::new(BucketId(4), "orders", 4, SourceKind::Embedded, NodeId(102));
    let files = |id, name, partitions| {
        BucketInfo::new(BucketId(id), name, partitions, SourceKind::Files, NodeId(101))
    };
    let cities = files(5, "cities", 1);
    let (current, loading) = (files(6, "cities@2026-10", 2), files(7, "cities@2026-11", 2));
    let mut copies = Copies::single(NodeId(101));
    (copies.wanted, copies.term, copies.move_to) = (2, 3, Some(NodeId(103)));
    (copies.in_sync, copies.joining) = (vec![NodeId(101), NodeId(102)], vec![NodeId(103)]);
    let mv = |id, slice, stage| SliceMove {
        id: MoveId(id),
        slice: SliceNo(slice),
        from: Some(NodeId(201)),
        to: Some(NodeId(202)),
        stage,
        epoch: Epoch(30),
    };
    let mut spec = IndexSpec::new("by_city", "people");
    (spec.slices, spec.sql) = (2, "CREATE INDEX by_city ON people (city)".to_owned());
    let index = IndexInfo::new(
        IndexId(3),
        BucketId(1),
        spec,
        vec![vec![NodeId(201), NodeId(202)], vec![NodeId(201)]],
    );
    let moves = vec![mv(8, 1, MoveStage::Pending)];
    let index = IndexInfo { state: IndexState::Maintenance, moves, ..index };
    let was = mv(7, 0, MoveStage::Catchup);
    let undone = Some("node 202 was removed".to_owned());
    Catalog {
        cluster: None,
        cas: 77,
        newest_index: IndexId(3),
        bucket_ids: Default::default(),
        dropped_buckets: Vec::new(),
        buckets: [people, pushed, orders, cities, current, loading]
            .map(|bucket| (bucket.id, Arc::new(bucket)))
            .into(),
        indexes: [(index.id, Arc::new(index))].into(),
        nodes: nodes.into(),
        draining: [NodeId(201)].into(),
        removed: vec![node(203, Role::Indexer, "zone-3").1],
        ended_moves: vec![EndedMove { index: IndexId(3), was, undone }],
        copies: [(BucketId(1), copies)].into(),
        generations: Default::default(),
        newest_generations: Default::default(),
        data_sets: [(BucketId(5), data_set())].into(),
        slice_bytes_max: Default::default(),
    }
}

/// Returns a data set with a current version 1, a loading version 2 and a failed version 3.
fn data_set() -> DataSet {
    let version = |name: &str, bucket, stage, known| {
        let content = PartitionContent { rows: 12, documents: 10, bytes: 900, digest: 7 };
        let held = Partition { holders: vec![NodeId(101)], content: Some(content) };
        let partitions = [vec![held; known], vec![Partition::default(); 2 - known]].concat();
        let files = Files { pattern: "cities/*.parquet".to_owned(), id: "id".to_owned() };
        let nodes = vec![NodeId(101), NodeId(102)];
        Version { name: name.to_owned(), bucket: BucketId(bucket), files, nodes, stage, partitions }
    };
    let current = version("2026-10", 6, VersionStage::Current, 2);
    let loading = version("2026-11", 7, VersionStage::Loading, 1);
    let why = "projector 102: cities/7.parquet row 12: no field \"id\"".to_owned();
    let failed = FailedVersion { number: 3, name: "2026-12".to_owned(), why };
    DataSet {
        newest: 3,
        versions: [(1, current), (2, loading)].into(),
        failed: Some(failed),
        ..DataSet::new(2, 1, 600_000)
    }
}

fn scans(running: u64) -> AdmissionStatus {
    let (admitted, refused, bytes) = (10 * running, 2, 4096 * running);
    let (running_max, bytes_max) = (64, 1 << 20);
    AdmissionStatus { running, running_max, waiting: 1, admitted, refused, bytes, bytes_max }
}

fn report(node: u64, silent_ms: u64) -> NodeStatus {
    let (buckets, slices, moves) = (Vec::new(), Vec::new(), Vec::new());
    NodeStatus { node: NodeId(node), silent_ms, buckets, slices, moves, scans: None }
}

fn slice(number: u16, floor: Option<u64>) -> SliceProgress {
    SliceProgress {
        slice: SliceId { index: IndexId(3), generation: Generation(0), slice: SliceNo(number) },
        floor: floor.map(Epoch),
        entries: 500 + u64::from(number),
        bytes: 65_536,
        live_bytes: Some(65_536),
        built_percent: None,
        seconds_left: None,
        copied_from: None,
        trouble: None,
    }
}

fn reports() -> CoordinatorStatus {
    let indexer = NodeStatus {
        buckets: vec![BucketProgress {
            bucket: BucketId(1),
            high_watermark: Default::default(),
            applied: Epoch(31),
            durable: Epoch(30),
            queue_bytes: 1234,
            queue_bytes_max: 1 << 20,
        }],
        slices: vec![slice(0, Some(10)), slice(1, None)],
        scans: Some(scans(3)),
        ..report(201, 250)
    };
    let target = NodeStatus {
        moves: vec![MoveProgress {
            index: LocalIndexId { index: IndexId(3), generation: Generation(0) },
            id: MoveId(8),
            phase: MovePhase::Copying,
            bytes: 500,
            bytes_total: 1000,
            bytes_per_s: 100,
            trouble: Some("node 201 did not answer in time".to_owned()),
        }],
        ..report(202, 6500)
    };
    CoordinatorStatus {
        node: NodeId(1),
        leader: Some(NodeId(1)),
        term: 4,
        committed: 120,
        applied: 119,
        catalog_cas: 77,
        active: true,
        differences: Vec::new(),
        nodes: vec![report(1, 100), report(101, 900), report(102, 7_000), indexer, target],
        left_out: vec![(
            LocalIndexId { index: IndexId(3), generation: Generation(0) },
            LeftOut { too_costly: 2, key_too_long: 3, ..LeftOut::default() },
        )],
        halved: vec![PartlyLostCommit {
            transaction: TransactionId(54),
            bucket: BucketId(1),
            lost_in: BucketId(4),
        }],
        holds: vec![EpochWait {
            bucket: BucketId(1),
            transaction: TransactionId(55),
            waits_for: BucketId(4),
            held_ms: 2_500,
        }],
        version_waits: Vec::new(),
        past_slow: vec![(BucketId(1), 3)],
        members: Box::new(CoordinatorMembers {
            voters: vec![NodeId(1)],
            learners: vec![NodeId(2)],
            ..CoordinatorMembers::default()
        }),
    }
}

fn status(coordinator: CoordinatorAnswer) -> Status {
    let work = WorkStatus {
        scans: 11,
        scan_rows: 222,
        hedges_begun: 5,
        hedges_won: 6,
        hedges_refused: 7,
        documents_written: 3333,
        commands: 4,
    };
    let process = ProcessStatus {
        version: "1.2.3",
        router: NodeId(301),
        catalog_age_ms: Some(7_250),
        catalog_is_from_disk: true,
        scans: scans(5),
        local_indexers: Vec::new(),
        local_projectors: Vec::new(),
        work,
    };
    let knowledge =
        Knowledge { age_ms: process.catalog_age_ms, is_from_disk: process.catalog_is_from_disk };
    let cluster = ClusterStatus::new(&catalog(), coordinator);
    Status { cluster: cluster.with_catalog_age(Some((process.router, knowledge))), process }
}

/// Returns a value as psql shows it; `None` for NULL.
fn shown(column: &ColumnInfo, value: &Datum) -> Option<String> {
    let mut text = Vec::new();
    let is_there = value.write(column.column_type, Format::Text, &mut text).expect("it fits");
    is_there.then(|| String::from_utf8(text).expect("text"))
}

/// Returns a value of the JSON output as SHOW prints it.
fn worded(value: &Json) -> Option<String> {
    match value {
        Json::Null => None,
        Json::String(text) => Some(text.clone()),
        Json::Array(parts) => {
            let parts: Vec<_> = parts.iter().filter_map(worded).collect();
            Some(parts.join(", "))
        }
        Json::Object(share) => worded(&share["node"]),
        value => Some(value.to_string()),
    }
}

fn rows<'a>(json: &'a Json, list: &str) -> Vec<&'a Map<String, Json>> {
    let rows = json[list].as_array().expect("a list");
    assert!(!rows.is_empty(), "{list} would show nothing");
    rows.iter().map(|row| row.as_object().expect("an object")).collect()
}

#[test]
fn a_table_of_show_has_the_fields_of_json_with_their_names_and_values() {
    let status = status(CoordinatorAnswer::Status(reports()));
    let json = serde_json::to_value(&status).expect("JSON");
    for (what, list, only_json) in &TABLES {
        let columns = show::columns(what).expect("a table");
        let table = show::rows(what, &status.cluster);
        let objects = rows(&json, list);
        assert_eq!(table.len(), objects.len(), "{list}");
        let names = columns.iter().map(|column| &*column.name);
        let expected: BTreeSet<&str> = names.chain(only_json.iter().copied()).collect();
        for (row, object) in table.iter().zip(objects) {
            assert_eq!(object.keys().map(String::as_str).collect::<BTreeSet<_>>(), expected);
            for (column, value) in columns.iter().zip(row) {
                let name = &column.name;
                assert_eq!(shown(column, value), worded(&object[name]), "{name} of {list}");
            }
        }
    }
}

#[test]
fn grpc_has_the_values_of_json() {
    let status = status(CoordinatorAnswer::NotAsked);
    let json = serde_json::to_value(&status).expect("JSON");
    for (bucket, object) in status.cluster.buckets.iter().zip(rows(&json, "buckets")) {
        let proto::grpc::Bucket { name, vbuckets, source, copies_in_sync, copies_wanted } =
            grpc::bucket(bucket);
        let counts = [("copies_in_sync", copies_in_sync), ("copies_wanted", copies_wanted)];
        for (field, count) in counts {
            assert_eq!(object[field], Json::from(count), "{field}");
        }
        assert_eq!((&object["name"], &object["vbuckets"]), (&name.into(), &vbuckets.into()));
        assert_eq!(object["source"], source);
    }
    for (index, object) in status.cluster.indexes.iter().zip(rows(&json, "indexes")) {
        let proto::grpc::Index { name, bucket, state, slices, replicas, definition } =
            grpc::index(index);
        assert_eq!((&object["name"], &object["bucket"]), (&name.into(), &bucket.into()));
        assert_eq!((&object["slices"], &object["replicas"]), (&slices.into(), &replicas.into()));
        assert_eq!((&object["state"], &object["definition"]), (&state.into(), &definition.into()));
    }
}

/// Returns the values of `/metrics` by their names with labels.
fn figures(status: &Status) -> BTreeMap<String, Json> {
    let text = metrics::text(MetricsFormat::OpenMetrics, status, None).expect("text");
    let figure = |line: &str| {
        let (name, value) = line.rsplit_once(' ').expect("a name and a value");
        (name.to_owned(), serde_json::from_str::<Json>(value).expect("a number"))
    };
    text.lines().filter(|line| !line.starts_with('#')).map(figure).collect()
}

#[test]
fn metrics_have_the_values_of_json() {
    let status = status(CoordinatorAnswer::Status(reports()));
    let json = serde_json::to_value(&status).expect("JSON");
    let mut figures = figures(&status);
    let mut check = |name: String, value: &Json| match (figures.remove(&name), value) {
        (None, Json::Null) => {}
        (figure, value) => assert_eq!(figure.as_ref(), Some(value), "{name}"),
    };
    for node in rows(&json, "nodes") {
        let label = format!("node=\"{}\"", node["node"]);
        check(format!("sextant_node_silent_ms{{{label}}}"), &node["silent_ms"]);
        for bucket in node["buckets"].as_array().expect("a list") {
            let label = format!("{label},bucket={}", bucket["bucket"]);
            check(format!("sextant_applied_epoch{{{label}}}"), &bucket["applied_epoch"]);
            check(format!("sextant_queue_bytes{{{label}}}"), &bucket["queue_bytes"]);
        }
        let own = json["router"] == node["node"];
        let scans = if own { &json["scans"] } else { &node["scans"] };
        for (name, field) in [
            ("running", "running"),
            ("waiting", "waiting"),
            ("memory_bytes", "bytes"),
            ("admitted_total", "admitted"),
            ("refused_total", "refused"),
        ] {
            check(format!("sextant_scans_{name}{{{label}}}"), &scans[field]);
        }
    }
    for bucket in rows(&json, "buckets") {
        for field in ["copies_in_sync", "copies_wanted"] {
            check(format!("sextant_bucket_{field}{{bucket={}}}", bucket["name"]), &bucket[field]);
        }
        let name =
            format!("sextant_bucket_epochs_past_slow_indexers_total{{bucket={}}}", bucket["name"]);
        check(name, &bucket["epochs_past_slow_indexers"]);
        let held_s = bucket["held_ms"].as_f64().map(|held_ms| held_ms / 1000.0);
        let name = format!("sextant_bucket_epochs_held_seconds{{bucket={}}}", bucket["name"]);
        check(name, &Json::from(held_s));
    }
    for index in rows(&json, "indexes") {
        check(format!("sextant_index_entries{{index={}}}", index["name"]), &index["entries"]);
        for (reason, count) in index["left_out_by_reason"].as_object().expect("an object") {
            let label = format!("index={},reason=\"{reason}\"", index["name"]);
            check(format!("sextant_index_left_out_total{{{label}}}"), count);
        }
    }
    check("sextant_catalog_cas".to_owned(), &json["cas"]);
    let age_s = json["catalog_age_ms"].as_f64().map(|age_ms| age_ms / 1000.0);
    check("sextant_router_catalog_age_seconds".to_owned(), &Json::from(age_s));
    let is_from_disk = json["catalog_is_from_disk"].as_bool().map(u64::from);
    check("sextant_router_catalog_from_disk".to_owned(), &Json::from(is_from_disk));
    for field in ["term", "committed", "applied"] {
        check(format!("sextant_raft_{field}"), &json["coordinator"][field]);
    }
    for (name, count) in json["work"].as_object().expect("an object") {
        check(format!("sextant_{name}_total"), count);
    }
    assert!(figures.is_empty(), "JSON lacks {figures:?}");
}

#[test]
fn a_build_shows_its_entries_and_its_percentage() {
    let mut catalog = catalog();
    let index = Arc::make_mut(catalog.indexes.get_mut(&IndexId(3)).expect("an index"));
    index.state = IndexState::Backfill;
    let mut reports = reports();
    let shown = |reports: &CoordinatorStatus| {
        let status = ClusterStatus::new(&catalog, CoordinatorAnswer::Status(reports.clone()));
        let index = &status.indexes[0];
        (index.built_entries, index.built_percent, index.seconds_left)
    };
    assert_eq!(shown(&reports), (Some(1001), Some(33), None), "one of three copies is whole");
    let of_201 =
        &mut reports.nodes.iter_mut().find(|node| node.node == NodeId(201)).expect("it").slices;
    of_201[1].built_percent = Some(50);
    of_201[1].seconds_left = Some(70);
    let known = (Some(1001), Some(50), None);
    assert_eq!(
        shown(&reports),
        known,
        "half of another one is read, and the third is not heard of"
    );
    let third = &mut reports.nodes.iter_mut().find(|node| node.node == NodeId(202)).expect("it");
    third.slices = vec![SliceProgress { entries: 0, seconds_left: Some(90), ..slice(0, None) }];
    assert_eq!(shown(&reports), (Some(1001), Some(50), Some(90)), "the last copy counts");
    reports.nodes.clear();
    assert_eq!(shown(&reports), (None, None, None), "nothing is known");
}

#[test]
fn without_the_coordinator_definitions_are_shown_and_reports_are_null() {
    let error = proto::Error::unavailable("no coordinator answers");
    let status = status(CoordinatorAnswer::Unavailable { error });
    let json = serde_json::to_value(&status).expect("JSON");
    assert_eq!(json["coordinator"]["error"], "no coordinator answers");
    assert!(rows(&json, "nodes").iter().all(|node| node["silent_ms"].is_null()));
    assert!(rows(&json, "slices").iter().all(|slice| slice["state"] == "unknown"));
    assert_eq!(rows(&json, "moves")[0]["bytes"], Json::Null);
    assert!(figures(&status).keys().all(|name| !name.contains("raft")));
    assert!(status.cluster.coordinator.check().is_err());
}

#[test]
fn a_router_tells_the_age_of_its_catalog_while_no_coordinator_answers() {
    let note = |age_ms, is_from_disk| {
        let knowledge = Some((NodeId(301), Knowledge { age_ms, is_from_disk }));
        let status = ClusterStatus::new(&catalog(), CoordinatorAnswer::NotAsked);
        let nodes = status.with_catalog_age(knowledge).nodes;
        assert!(nodes.iter().all(|node| node.node == NodeId(301) || node.note.is_none()));
        nodes.into_iter().find_map(|node| node.note)
    };
    assert_eq!(note(None, false), None);
    assert_eq!(note(Some(4_999), false), None, "heartbeats come twice a second");
    let silent = "no coordinator has answered it for 5 s";
    assert_eq!(note(Some(5_000), false).as_deref(), Some(silent));
    let kept = note(Some(1_900), true).expect("a remark");
    assert!(kept.contains("from its disk and 1 s old"), "{kept}");
}

#[test]
fn the_renderings_are_those_on_file() {
    let status = status(CoordinatorAnswer::Status(reports()));
    let mut all = String::new();
    for (what, list, _) in &TABLES {
        let columns = show::columns(what).expect("a table");
        let names: Vec<_> = columns.iter().map(|column| &*column.name).collect();
        all += &format!("SHOW {}\n{}\n", list.to_uppercase(), names.join(" | "));
        for row in show::rows(what, &status.cluster) {
            let cells = columns.iter().zip(&row);
            let cells = cells.map(|(column, value)| shown(column, value).unwrap_or_default());
            all += &format!("{}\n", cells.collect::<Vec<_>>().join(" | "));
        }
        all.push('\n');
    }
    all += &format!(
        "/metrics\n{}\n",
        metrics::text(MetricsFormat::OpenMetrics, &status, None).expect("text")
    );
    let json = serde_json::to_string_pretty(&status).expect("JSON");
    all += &format!("/status\n{json}\n");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/status/testdata/status.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        std::fs::write(&path, all).expect("written");
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == all, "run the test with UPDATE=1 and look at the difference; it is\n{all}");
}

#[test]
fn the_port_of_a_projector_shows_its_transactions() {
    let transactions = projector::TransactionFigures {
        open: 2,
        oldest_age_ms: 1500,
        bytes: 300,
        prepared: 8,
        joint_open: 9,
        joint_oldest_age_ms: 2_500,
        committed: 4,
        conflicts: 5,
        aborted: 6,
        forgotten: 7,
    };
    let projector = Some(projector::Status { node: NodeId(101), transactions });
    let own = metrics::OwnFigures { projector, ..metrics::OwnFigures::default() };
    let text = metrics::own_text(MetricsFormat::OpenMetrics, &own).expect("text");
    for line in [
        "sextant_transactions_open{node=\"101\"} 2",
        "sextant_transactions_oldest_age_seconds{node=\"101\"} 1.5",
        "sextant_transactions_changes_bytes{node=\"101\"} 300",
        "sextant_transactions_prepared{node=\"101\"} 8",
        "sextant_joint_commits_open{node=\"101\"} 9",
        "sextant_joint_commits_oldest_age_seconds{node=\"101\"} 2.5",
        "sextant_transactions_committed_total{node=\"101\"} 4",
        "sextant_transactions_conflicts_total{node=\"101\"} 5",
        "sextant_transactions_rolled_back_total{node=\"101\",reason=\"abort\"} 6",
        "sextant_transactions_rolled_back_total{node=\"101\",reason=\"forgotten\"} 7",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
}
