//! Tests of savepoints, portals and names. The expected answers are those of PostgreSQL 15.

use super::raw::{
    Raw, bind, bind_as, execute, execute_as, flush, message, parse, parse_as, query, sync,
};
use super::*;

/// A query with five rows, for portals.
const FIVE: &str = "SELECT id FROM b WHERE id IN ('1', '2', '3', '4', '5')";

/// Sends each group of messages, and returns the answers to each group.
async fn told(raw: &mut Raw, groups: &[Vec<Vec<u8>>]) -> Vec<String> {
    let mut all = Vec::new();
    for group in groups {
        raw.send(group).await;
        all.push(raw.told().await);
    }
    all
}

#[tokio::test]
async fn an_unnamed_statement_and_an_unnamed_portal_end_with_the_next_ones() {
    let cluster = Cluster::new();
    let (_client, _task) = cities(&cluster).await;
    let unnamed = || vec![bind(), execute(0), sync()];
    for (replacing, told_of) in [
        (vec![parse("SELEC"), sync()], "42601, I"),
        (vec![parse("SELECT x"), sync()], "42703, I"),
        (vec![query("SELECT 1")], "(1), SELECT 1, I"),
        (vec![query("SELEC")], "42601, I"),
        (vec![query("")], "I"),
    ] {
        let mut raw = Raw::open(&cluster).await;
        let groups = [vec![parse("SELECT 7"), sync()], replacing, unnamed()];
        assert_eq!(told(&mut raw, &groups).await, ["I", told_of, "26000, I"]);
    }
    let mut raw = Raw::open(&cluster).await;
    let open = |portal: &str| vec![bind_as(portal, "s"), sync()];
    let groups = [
        vec![query("BEGIN")],
        vec![parse_as("s", "SELECT 7"), bind_as("named", "s"), sync()],
        open(""),
        vec![query("")],
        vec![query("SELECT 1")],
        vec![execute_as("named", 0), sync()],
        vec![execute(0), sync()],
    ];
    let expected = ["BEGIN, T", "T", "T", "T", "(1), SELECT 1, T", "(7), SELECT 1, T", "34000, E"];
    assert_eq!(told(&mut raw, &groups).await, expected);
}

#[tokio::test]
async fn names_that_are_taken_have_their_own_errors() {
    let cluster = Cluster::new();
    let (_client, _task) = cities(&cluster).await;
    let mut raw = Raw::open(&cluster).await;
    let again = |sql: &str| vec![parse_as("s", sql), sync()];
    let portals = vec![bind_as("p", "s"), bind_as("p", "s"), sync()];
    let twice = vec![parse("BEGIN"), bind(), execute(0), execute(0), sync()];
    let ended = vec![parse("COMMIT"), bind(), execute(0), execute(0), sync()];
    let groups = [again("SELECT 7"), again("SELECT 7"), again("SELEC"), portals, twice, ended];
    let expected =
        ["I", "42P05, I", "42601, I", "42P03, I", "BEGIN, 55000, E", "ROLLBACK, 34000, I"];
    assert_eq!(told(&mut raw, &groups).await, expected);
}

#[tokio::test]
async fn a_portal_ends_with_the_savepoint_after_which_it_was_opened() {
    let cluster = Cluster::new();
    let (_client, _task) = cities(&cluster).await;
    let q = |sql: &str| vec![query(sql)];
    let open = || vec![bind_as("p", "s"), sync()];
    let piece = || vec![execute_as("p", 2), sync()];
    let (two, next) = ("(1), (2), more, T", "(3), (4), more, T");
    let gone = "34000, E";
    for (name, steps, last) in [
        ("before", vec![open(), piece(), q("SAVEPOINT a"), q("ROLLBACK TO a"), piece()], next),
        ("bound before", vec![open(), q("SAVEPOINT a"), q("ROLLBACK TO a"), piece()], two),
        ("begun after", vec![open(), q("SAVEPOINT a"), piece(), q("ROLLBACK TO a"), piece()], next),
        ("after", vec![q("SAVEPOINT a"), open(), piece(), q("ROLLBACK TO a"), piece()], gone),
        ("released", vec![q("SAVEPOINT a"), open(), piece(), q("RELEASE a"), piece()], next),
        (
            "an error after",
            vec![open(), piece(), q("SAVEPOINT a"), q("SELECT x"), q("ROLLBACK TO a"), piece()],
            next,
        ),
        (
            "released into one that is undone",
            vec![
                q("SAVEPOINT a; SAVEPOINT b"),
                open(),
                piece(),
                q("RELEASE b; ROLLBACK TO a"),
                piece(),
            ],
            gone,
        ),
        (
            "same names",
            vec![q("SAVEPOINT a"), open(), piece(), q("SAVEPOINT a; ROLLBACK TO a"), piece()],
            next,
        ),
        (
            "same names, released",
            vec![
                q("SAVEPOINT a"),
                open(),
                piece(),
                q("SAVEPOINT a; RELEASE a; ROLLBACK TO a"),
                piece(),
            ],
            gone,
        ),
        (
            "its rows have seen what is undone",
            vec![
                open(),
                q("SAVEPOINT a; DELETE FROM b WHERE id = '5'"),
                piece(),
                q("ROLLBACK TO a"),
                piece(),
            ],
            gone,
        ),
    ] {
        let mut raw = Raw::open(&cluster).await;
        let mut groups = vec![q("BEGIN"), vec![parse_as("s", FIVE), sync()]];
        groups.extend(steps);
        let all = told(&mut raw, &groups).await;
        assert_eq!(all.last().unwrap(), last, "{name}: {all:?}");
    }
}

#[tokio::test]
async fn a_driver_may_set_a_savepoint_before_each_statement() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    client.batch_execute("BEGIN").await.unwrap();
    for n in 0..3_000 {
        let delete = if n % 2 == 0 { "DELETE FROM b WHERE id = '6'" } else { "SELECT 1" };
        client.batch_execute(&format!("SAVEPOINT p; {delete}")).await.unwrap();
    }
    client.batch_execute("INSERT INTO b (id, doc) VALUES ('6', '{}')").await.unwrap();
    client.batch_execute("ROLLBACK TO p; RELEASE p; ROLLBACK TO p; COMMIT").await.unwrap();
    assert!(simple(&client, "SELECT id FROM b WHERE id = '6'").await.is_empty());
    // The memory of savepoints is bounded.
    client.batch_execute("BEGIN").await.unwrap();
    let mut set = 0;
    let error = loop {
        let name = "x".repeat(1 << 10);
        match client.batch_execute(&format!("SAVEPOINT {name}{set}")).await {
            Ok(()) => set += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(state(&error), "54000");
    assert!((3_000..5_000).contains(&set), "{set} savepoints");
    client.batch_execute("ROLLBACK").await.unwrap();
}

/// A definition in a query text remains after the rollback of the text's other statements.
#[tokio::test]
async fn definitions_run_at_once_before_writes_and_a_rollback_names_those_that_stay() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    let mut raw = Raw::open(&cluster).await;
    let insert = "INSERT INTO b (id, doc) VALUES ('a', '{}')";
    let stays = |what: &str| format!("WARNING: {what} stays: definitions are not rolled back");
    let none = "WARNING: there is no transaction in progress";
    for (sql, expected) in [
        (
            "BEGIN; SELECT id FROM b WHERE id = '1'; CREATE INDEX i1 ON b (name); COMMIT".into(),
            "BEGIN, (1), SELECT 1, CREATE INDEX, COMMIT, I".to_owned(),
        ),
        (
            "BEGIN; CREATE INDEX i2 ON b (name); DROP INDEX i1; ROLLBACK".into(),
            format!(
                "BEGIN, CREATE INDEX, DROP INDEX, {}, {}, ROLLBACK, I",
                stays("index \"i2\""),
                stays("the removal of index \"i1\"")
            ),
        ),
        (
            format!("BEGIN; CREATE BUCKET c; {insert}; SELECT x"),
            "BEGIN, CREATE BUCKET, INSERT 0 1, 42703, E".to_owned(),
        ),
        ("COMMIT".into(), format!("{}, ROLLBACK, I", stays("bucket \"c\""))),
        (
            format!("BEGIN; {insert}; CREATE INDEX i3 ON b (name)"),
            "BEGIN, INSERT 0 1, 25001, E".to_owned(),
        ),
        ("ROLLBACK".into(), "ROLLBACK, I".to_owned()),
        (
            "BEGIN; CREATE INDEX i4 ON b (name); SAVEPOINT s; DROP INDEX i4; ROLLBACK TO s".into(),
            format!(
                "BEGIN, CREATE INDEX, SAVEPOINT, DROP INDEX, {}, ROLLBACK, T",
                stays("the removal of index \"i4\"")
            ),
        ),
        ("ROLLBACK".into(), format!("{}, ROLLBACK, I", stays("index \"i4\""))),
        (format!("{insert}; CREATE INDEX i5 ON b (name)"), "INSERT 0 1, 25001, I".to_owned()),
        (
            format!("CREATE INDEX i6 ON b (name); {insert}; SELECT x"),
            format!("CREATE INDEX, INSERT 0 1, {}, 42703, I", stays("index \"i6\"")),
        ),
        (
            "CREATE INDEX i7 ON b (name); BEGIN; ROLLBACK".into(),
            format!("CREATE INDEX, BEGIN, {}, ROLLBACK, I", stays("index \"i7\"")),
        ),
        (
            "CREATE INDEX i8 ON b (name); ROLLBACK".into(),
            format!("CREATE INDEX, {none}, {}, ROLLBACK, I", stays("index \"i8\"")),
        ),
        (
            "CREATE INDEX i9 ON b (name); SHOW jit; CREATE INDEX i9 ON b (name)".into(),
            "CREATE INDEX, (off), SHOW, 42P07, I".to_owned(),
        ),
    ] {
        raw.send(&[query(&sql)]).await;
        assert_eq!(raw.told().await, expected, "{sql}");
    }
    let found = simple(&client, "SELECT id FROM b WHERE id = 'a'").await;
    assert!(found.is_empty(), "nothing of those transactions is stored");
    // The statements are sent in a pipeline.
    let run = |sql: &str| [parse(sql), bind(), execute(0)];
    raw.send(&run(insert)).await;
    raw.send(&run("CREATE INDEX j ON b (name)")).await;
    raw.send(&[sync()]).await;
    assert_eq!(raw.told().await, "INSERT 0 1, 25001, I");
    raw.send(&run("CREATE INDEX j ON b (name)")).await;
    raw.send(&run(insert)).await;
    raw.send(&[flush(), parse("SELEC"), message(b'S', b"")]).await;
    let expected = format!("CREATE INDEX, INSERT 0 1, {}, 42601, I", stays("index \"j\""));
    assert_eq!(raw.told().await, expected);
}
