//! Tests of the statements about placement and versions, as a table of texts with the expected
//! statement or error.

use proto::expr::Expr;
use proto::model::data_set::Files;
use proto::model::ids::TransactionId;

use super::parse;
use super::tests::{one, refused};
use crate::sql::ast::{CreateDataSet, Partition, Show, Statement};

#[test]
fn statements_about_placement_are_parsed() {
    use crate::sql::ast::Admin;
    use proto::model::ids::{NodeId, SliceNo, VbucketId};
    use proto::rpc::api::CoordinatorChange;
    let name = |name: &str| Some(name.to_owned());
    let node = || "7".to_owned();
    for (sql, expected) in [
        ("rebalance", Admin::Rebalance { index: None }),
        ("REBALANCE INDEX By_Pop;", Admin::Rebalance { index: name("by_pop") }),
        ("CANCEL REBALANCE", Admin::CancelRebalance { index: None }),
        ("CANCEL REBALANCE INDEX i", Admin::CancelRebalance { index: name("i") }),
        ("DRAIN NODE 7", Admin::DrainNode { node: node(), drain: true }),
        ("DRAIN NODE '7'", Admin::DrainNode { node: node(), drain: true }),
        ("CANCEL DRAIN NODE 7", Admin::DrainNode { node: node(), drain: false }),
        (
            "REMOVE NODE 'host:1'",
            Admin::RemoveNode { node: "host:1".into(), wait: false, force: false },
        ),
        ("REMOVE NODE 7 WAIT", Admin::RemoveNode { node: node(), wait: true, force: false }),
        ("remove node 7 force", Admin::RemoveNode { node: node(), wait: false, force: true }),
        (
            "ADD COORDINATOR '4' AT 'host:1'",
            Admin::ChangeCoordinators(CoordinatorChange::Add {
                node: NodeId(4),
                address: "host:1".into(),
            }),
        ),
        (
            "remove coordinator 4",
            Admin::ChangeCoordinators(CoordinatorChange::Remove { node: NodeId(4) }),
        ),
        (
            "ALTER INDEX i MOVE SLICE 3 FROM 7 TO 'host:1'",
            Admin::MoveSlice {
                index: "i".into(),
                slice: SliceNo(3),
                from: Some(node()),
                to: "host:1".into(),
            },
        ),
        (
            "ALTER BUCKET b MOVE VBUCKET 3, 4 TO 7",
            Admin::MoveVbuckets {
                bucket: "b".into(),
                vbuckets: [3, 4].map(VbucketId).to_vec(),
                to: node(),
            },
        ),
        ("ALTER BUCKET b MOVE TO '7'", Admin::MoveBucket { bucket: "b".into(), to: node() }),
        (
            "ALTER BUCKET b MOVE TO 'host:1'",
            Admin::MoveBucket { bucket: "b".into(), to: "host:1".into() },
        ),
        ("alter bucket B move to 7", Admin::MoveBucket { bucket: "b".into(), to: node() }),
        ("ALTER BUCKET b SET (copies = 2)", Admin::SetCopies { bucket: "b".into(), copies: 2 }),
        (
            "ALTER BUCKET b SET (version_idle = '5 min')",
            Admin::SetVersionIdle { bucket: "b".into(), idle_ms: 300_000 },
        ),
        (
            "ALTER BUCKET b CANCEL VERSION 'v''1'",
            Admin::CancelVersion { bucket: "b".into(), version: "v'1".into() },
        ),
        ("ALTER BUCKET b CANCEL MOVES", Admin::CancelVbuckets { bucket: "b".into() }),
        (
            "ALTER INDEX i SET (slice_bytes_max = '10GB')",
            Admin::SetSliceBytesMax { index: "i".into(), bytes: 10 << 30 },
        ),
        ("ALTER INDEX i SET (replicas = 2)", Admin::SetReplicas { index: "i".into(), replicas: 2 }),
    ] {
        assert_eq!(one(sql), Statement::Admin(expected), "{sql}");
    }
    let apart = Admin::SeparateIncludedColumns { index: "i".into(), separate: false };
    assert_eq!(one("ALTER INDEX i SET (separate_included_columns = off)"), Statement::Admin(apart));
    assert_eq!(one("EXPLAIN REBALANCE"), Statement::ExplainRebalance(None));
    assert_eq!(one("EXPLAIN REBALANCE INDEX i"), Statement::ExplainRebalance(name("i")));
    assert_eq!(one("SHOW MOVES"), Statement::Show(Show::Moves));
    assert_eq!(one("SHOW COPIES"), Statement::Show(Show::Copies));
    assert_eq!(one("SHOW ROLLBACKS"), Statement::Show(Show::Rollbacks));
    assert_eq!(one("show versions"), Statement::Show(Show::Versions));
    assert_eq!(one("SHOW HOLDS"), Statement::Show(Show::Holds));
    assert_eq!(one("SHOW TRANSACTIONS"), Statement::Show(Show::Transactions));
    let shown = Statement::Show(Show::Transaction(TransactionId(77)));
    assert_eq!(one("SHOW TRANSACTION 77"), shown);
    let cancel = Admin::CancelTransaction(TransactionId(77));
    assert_eq!(one("CANCEL TRANSACTION 77"), Statement::Admin(cancel));
    assert_eq!(one("cancel build By_City;"), Statement::CancelBuild("by_city".into()));
    assert_eq!(one("CANCEL BUILD \"A b\""), Statement::CancelBuild("A b".into()));
    for (sql, position) in [
        ("ALTER TABLE t", 7),
        ("ALTER INDEX i MOVE SLICE 5000 TO 1", 26),
        ("ALTER INDEX i SET (slices = 0)", 20),
        ("ALTER INDEX i SET (defer_build)", 20),
        ("ALTER INDEX i SET (slices = 2, slices = 3)", 32),
        ("ALTER INDEX i SET KEYS", 23),
        ("ALTER INDEX i ADD (x)", 15),
        ("ALTER INDEX i SET WHERE a = $1", 25),
        ("REINDEX", 8),
        ("ALTER INDEX i SET (replicas = 99)", 20),
        ("ALTER BUCKET b SET (copies = 0)", 21),
        ("ALTER BUCKET b SET (copies = 4)", 21),
        ("ALTER BUCKET b SET (vbuckets = 4)", 21),
        ("ALTER BUCKET b MOVE 7", 16),
        ("CREATE BUCKET b WITH (copies = 4)", 23),
        ("DRAIN NODE", 11),
        ("REMOVE INDEX i", 8),
        ("ADD COORDINATOR 4", 18),
        ("ADD COORDINATOR 4 AT 5", 22),
        ("ADD COORDINATOR 'h:1' AT 'h:1'", 17),
        ("CANCEL", 7),
        ("CANCEL INDEX i", 8),
        ("CANCEL BUILD", 13),
        ("CANCEL BUILD i, j", 15),
    ] {
        assert_eq!(refused(sql).position, Some(position), "{sql}");
    }
}

#[test]
fn the_old_name_of_an_option_is_refused_with_the_new_one() {
    for sql in [
        "CREATE INDEX i ON b (a) INCLUDE (c) WITH (include_apart = true)",
        "ALTER INDEX i SET (include_apart = off)",
    ] {
        let error = parse(sql).expect_err("the old name");
        assert!(error.error.message.contains("separate_included_columns"), "{}", error.error);
        assert_eq!(error.position, Some(sql.find("include_apart").unwrap() as u32 + 1), "{sql}");
    }
}

#[test]
fn statements_about_versions_are_parsed_and_refused_with_what_is_expected() {
    let create = |name: &str, partitions: Option<u16>, replication, idle_ms| {
        let if_not_exists = partitions.is_some();
        Statement::CreateDataSet(CreateDataSet {
            name: name.into(),
            if_not_exists,
            partitions,
            replication,
            idle_ms,
        })
    };
    let all = "CREATE BUCKET IF NOT EXISTS b FROM FILES WITH (partitions = 16, replication = 2, version_idle = '1h')";
    assert_eq!(one(all), create("b", Some(16), Some(2), Some(3_600_000)));
    assert_eq!(one("create bucket b from files"), create("b", None, None, None));
    let load = |id: &str| Statement::LoadVersion {
        bucket: "b".into(),
        version: "v42".into(),
        files: Files { pattern: "dir/*.csv".into(), id: id.into() },
        allow_empty: false,
    };
    assert_eq!(one("ALTER BUCKET B LOAD VERSION 'v42' FROM 'dir/*.csv'"), load("id"));
    let named = "ALTER BUCKET b LOAD VERSION 'v42' FROM 'dir/*.csv' WITH (id = 'Key')";
    assert_eq!(one(named), load("Key"));
    for (options, is_allowed) in [("allow_empty", true), ("allow_empty = off, id = 'id'", false)] {
        let sql = format!("ALTER BUCKET b LOAD VERSION 'v' FROM 'x.csv' WITH ({options})");
        let Statement::LoadVersion { allow_empty, .. } = one(&sql) else { panic!("{sql}") };
        assert_eq!(allow_empty, is_allowed, "{sql}");
    }
    for (sql, message) in [
        ("CREATE BUCKET b FROM SOMEWHERE", "PUSH or FILES"),
        ("CREATE BUCKET b FROM FILES WITH (copies = 2)", "there is no option copies"),
        ("CREATE BUCKET b FROM FILES WITH (partitions = 0)", "from 1 to 256"),
        ("CREATE BUCKET b FROM FILES WITH (version_idle = 'soon')", "must be a duration"),
        ("ALTER BUCKET b SET (version_idle = '9d')", "at most 168 h"),
        ("ALTER BUCKET b LOAD VERSION v42 FROM 'x.csv'", "in quotes"),
        ("ALTER BUCKET b LOAD VERSION 'v42' FROM x.csv", "the files"),
        ("ALTER BUCKET b LOAD VERSION 'v42' FROM 'x.csv' WITH (id = 7)", "name in quotes"),
    ] {
        let error = refused(sql).error.message;
        assert!(error.contains(message), "{sql}: {error}");
    }
}

#[test]
fn ranges_are_parsed_with_and_without_their_split_points() {
    let partition = |sql: &str| match one(&format!("CREATE INDEX i ON b (k) {sql}")) {
        Statement::CreateIndex(index) => index.partition,
        _ => panic!("an index"),
    };
    let Some(Partition::Range { points, .. }) =
        partition("PARTITION BY RANGE (k) SPLIT AT (-5, 10, 'm')")
    else {
        panic!("ranges")
    };
    assert_eq!(points.iter().map(Expr::to_string).collect::<Vec<_>>(), ["-5", "10", "'m'"]);
    let sampled = partition("PARTITION BY RANGE (lower(k)) WITH (slices = 4)");
    assert!(matches!(sampled, Some(Partition::Range { points, .. }) if points.is_empty()));
    assert_eq!(partition("PARTITION BY HASH (META().id)"), None);
    for (sql, message) in [
        ("PARTITION BY LIST (k)", "HASH or RANGE"),
        ("PARTITION BY RANGE (k, j)", "several expressions"),
        ("PARTITION BY RANGE (k) SPLIT AT (j)", "a number, a text"),
        ("PARTITION BY RANGE (k) SPLIT AT ($1)", "no parameters"),
    ] {
        let error = refused(&format!("CREATE INDEX i ON b (k) {sql}")).error.message;
        assert!(error.contains(message), "{sql}: {error}");
    }
}
