//! Tests of implicit transactions: several statements before one Sync or in one query text. The
//! expected answers are those of PostgreSQL 15.

use super::raw::{Raw, bind, bind_as, execute, execute_as, flush, message, parse, query, sync};
use super::*;

fn insert(id: &str) -> String {
    format!("INSERT INTO b (id, doc) VALUES ('{id}', '{{}}')")
}

/// Returns the messages Parse, Bind and Execute for each statement.
fn run(statements: &[&str]) -> Vec<Vec<u8>> {
    statements.iter().flat_map(|sql| [parse(sql), bind(), execute(0)]).collect()
}

fn text(statements: &[&str]) -> Vec<u8> {
    query(&statements.join("; "))
}

/// The messages up to one ReadyForQuery, and the expected answers.
type Step<'a> = (Vec<Vec<u8>>, &'a str);

/// Runs steps in a new session, and compares the answers, and the documents that are then stored.
async fn check(name: &str, steps: &[Step<'_>], stored: &str) {
    let cluster = Cluster::new();
    let (other, _task) = cluster.client().await;
    other.batch_execute("CREATE BUCKET b WITH (vbuckets = 4)").await.unwrap();
    let mut raw = Raw::open(&cluster).await;
    for (messages, told) in steps {
        raw.send(messages).await;
        let answers = tokio::time::timeout(Duration::from_secs(10), raw.told()).await;
        assert_eq!(answers.expect("an answer"), *told, "{name}");
    }
    drop(raw);
    let all = "SELECT id FROM b WHERE id IN ('a', 'b', 'c', 'd')";
    assert_eq!(simple(&other, all).await.join(""), stored, "{name}");
    rolled_back(&cluster, name).await;
}

/// Waits until no transaction is open, because a session ends shortly after its connection.
async fn rolled_back(cluster: &Cluster, name: &str) {
    for _ in 0..500 {
        if cluster.memory.uncommitted() == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{name}: a transaction is open");
}

const NO_TRANSACTION: &str = "WARNING: there is no transaction in progress";

#[tokio::test]
async fn the_statements_of_a_text_are_one_transaction() {
    let [a, b, c] = ["a", "b", "c"].map(insert);
    let (a, b, c) = (&*a, &*b, &*c);
    let one = "INSERT 0 1";
    let q = |statements: &[&str]| vec![text(statements)];
    let none = NO_TRANSACTION;
    for (name, text, told, stored) in [
        (
            "a BEGIN that fails",
            q(&[a, "BEGIN ISOLATION LEVEL SERIALIZABLE", b]),
            format!("{one}, 0A000, I"),
            "",
        ),
        ("a duplicate", q(&[a, b, a]), format!("{one}, {one}, 23505, I"), ""),
        ("all", q(&[a, "SELECT 1", b]), format!("{one}, (1), SELECT 1, {one}, I"), "ab"),
        ("an error before a write", q(&["SELECT x", a]), "42703, I".into(), ""),
        ("a write that is the last", q(&["SELECT 1", a]), format!("(1), SELECT 1, {one}, I"), "a"),
        (
            "ROLLBACK",
            q(&[a, "SELECT 1", "ROLLBACK"]),
            format!("{one}, (1), SELECT 1, {none}, ROLLBACK, I"),
            "",
        ),
        (
            "what follows ROLLBACK",
            q(&[a, "ROLLBACK", b, "SELECT 1"]),
            format!("{one}, {none}, ROLLBACK, {one}, (1), SELECT 1, I"),
            "b",
        ),
        (
            "COMMIT",
            q(&[a, "COMMIT", b, "SELECT x"]),
            format!("{one}, {none}, COMMIT, {one}, 42703, I"),
            "a",
        ),
        (
            "BEGIN and COMMIT",
            q(&[a, "BEGIN", b, "COMMIT", c, "SELECT x"]),
            format!("{one}, BEGIN, {one}, COMMIT, {one}, 42703, I"),
            "ab",
        ),
        ("SAVEPOINT", q(&[a, "SAVEPOINT s"]), format!("{one}, 25P01, I"), ""),
        ("SAVEPOINT at first", q(&["SAVEPOINT s", a]), "25P01, I".into(), ""),
        ("ROLLBACK TO", q(&[a, "ROLLBACK TO s"]), format!("{one}, 25P01, I"), ""),
        ("RELEASE", q(&[a, "RELEASE s"]), format!("{one}, 25P01, I"), ""),
        ("read only", q(&["SET TRANSACTION READ ONLY", a]), "SET, 25006, I".into(), ""),
        (
            "its own writes",
            q(&[a, "SELECT id FROM b WHERE id = 'a'", "ROLLBACK"]),
            format!("{one}, (a), SELECT 1, {none}, ROLLBACK, I"),
            "",
        ),
    ] {
        check(name, &[(text, &told)], stored).await;
    }
    let open = format!("{one}, BEGIN, {one}, T");
    let begin = || q(&[a, "BEGIN", b]);
    check("BEGIN", &[(begin(), &open), (q(&["ROLLBACK"]), "ROLLBACK, I")], "").await;
    check("BEGIN", &[(begin(), &open), (q(&["COMMIT"]), "COMMIT, I")], "ab").await;
    let failed = format!("{one}, BEGIN, {one}, 42703, E");
    let error = q(&[a, "BEGIN", b, "SELECT x"]);
    check("an error after BEGIN", &[(error, &failed), (q(&["COMMIT"]), "ROLLBACK, I")], "").await;
}

#[tokio::test]
async fn the_messages_up_to_sync_are_one_transaction() {
    let [a, b] = ["a", "b"].map(insert);
    let (a, b) = (&*a, &*b);
    let one = "INSERT 0 1";
    let none = NO_TRANSACTION;
    for (name, statements, told, stored) in [
        ("a duplicate", &[a, b, a][..], format!("{one}, {one}, 23505, I"), ""),
        ("all", &[a, b], format!("{one}, {one}, I"), "ab"),
        ("an error in Parse", &[a, "SELEC"], format!("{one}, 42601, I"), ""),
        ("BEGIN", &[a, "BEGIN", b, "ROLLBACK"], format!("{one}, BEGIN, {one}, ROLLBACK, I"), ""),
        (
            "COMMIT",
            &[a, "COMMIT", b, "SELECT x"],
            format!("{one}, {none}, COMMIT, {one}, 42703, I"),
            "a",
        ),
        (
            "COMMIT of BEGIN",
            &["BEGIN", a, "COMMIT", b, "SELECT x"],
            format!("BEGIN, {one}, COMMIT, {one}, 42703, I"),
            "a",
        ),
        ("ROLLBACK", &[a, "ROLLBACK", b], format!("{one}, {none}, ROLLBACK, {one}, I"), "b"),
        ("SAVEPOINT", &[a, "SAVEPOINT s"], format!("{one}, 25P01, I"), ""),
        (
            "a mode",
            &["SET TRANSACTION READ ONLY", a],
            "WARNING: SET TRANSACTION can only be used in a transaction, SET, 25006, I".into(),
            "",
        ),
    ] {
        let mut messages = run(statements);
        messages.push(sync());
        check(name, &[(messages, &told)], stored).await;
    }
    let with = |statements: &[&str], more: Vec<Vec<u8>>| [run(statements), more].concat();
    for (name, messages, told, stored) in [
        (
            "a query goes on",
            with(&[a], vec![query("SELECT 1")]),
            format!("{one}, (1), SELECT 1, I"),
            "a",
        ),
        ("a query fails", with(&[a], vec![query("SELECT x")]), format!("{one}, 42703, I"), ""),
        ("an empty query", with(&[a], vec![query("")]), format!("{one}, I"), "a"),
        (
            "a query rolls back",
            with(&[a], vec![query("ROLLBACK")]),
            format!("{one}, {none}, ROLLBACK, I"),
            "",
        ),
        (
            "a portal that ended its transaction",
            with(&["BEGIN", a, "ROLLBACK"], vec![execute(0), sync()]),
            format!("BEGIN, {one}, ROLLBACK, 34000, I"),
            "",
        ),
        (
            "a portal is closed",
            with(&[a], vec![message(b'C', b"P\0"), sync()]),
            format!("{one}, I"),
            "a",
        ),
    ] {
        check(name, &[(messages, &told)], stored).await;
    }
}

#[tokio::test]
async fn an_answer_comes_before_sync_if_its_client_flushes() {
    let cluster = Cluster::new();
    let (other, _task) = cluster.client().await;
    other.batch_execute("CREATE BUCKET b WITH (vbuckets = 4)").await.unwrap();
    let mut raw = Raw::open(&cluster).await;
    raw.send(&[run(&[&insert("a")]), vec![flush()]].concat()).await;
    let told = tokio::time::timeout(Duration::from_secs(5), raw.until(b'C')).await;
    assert_eq!(told.expect("an answer"), "12C");
    let found = "SELECT id FROM b WHERE id IN ('a', 'b')";
    assert!(simple(&other, found).await.is_empty(), "it is not committed");
    raw.send(&[run(&[&insert("b")]), vec![sync()]].concat()).await;
    assert_eq!(raw.until_ready().await, "12CZI");
    assert_eq!(simple(&other, found).await, ["a", "b"]);
}

#[tokio::test]
async fn a_client_that_goes_away_before_sync_has_stored_nothing() {
    let (a, b) = (insert("a"), insert("b"));
    for messages in [
        run(&[&a]),
        run(&[&a, &b]),
        [run(&[&a]), vec![flush()]].concat(),
        [run(&[&a]), vec![message(b'X', b"")]].concat(),
        [run(&[&a, &b]), vec![message(b'X', b"")]].concat(),
    ] {
        let cluster = Cluster::new();
        let (other, _task) = cluster.client().await;
        other.batch_execute("CREATE BUCKET b WITH (vbuckets = 4)").await.unwrap();
        let mut raw = Raw::open(&cluster).await;
        raw.send(&messages).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        drop(raw);
        rolled_back(&cluster, "no Sync").await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(simple(&other, "SELECT id FROM b WHERE id IN ('a', 'b')").await.is_empty());
    }
}

#[tokio::test]
async fn a_lone_write_begins_no_transaction_and_reads_before_the_first_write_take_no_moment() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    let begun = || cluster.memory.transactions_begun();
    let before = begun();
    let mut raw = Raw::open(&cluster).await;
    raw.send(&[run(&[&insert("a")]), vec![sync()]].concat()).await;
    assert_eq!(raw.until_ready().await, "12CZI");
    raw.send(&[run(&["SELECT count(*) FROM cities", &insert("b")]), vec![sync()]].concat()).await;
    raw.until_ready().await;
    let text = format!("SET consistency = 'any'; SELECT count(*) FROM cities; {}", insert("c"));
    raw.send(&[query(&text), query(&insert("d"))]).await;
    assert_eq!(
        (raw.until_ready().await, raw.until_ready().await),
        ("CTDCCZI".into(), "CZI".into())
    );
    assert_eq!(begun(), before, "each is alone");
    let text = format!("SELECT count(*) FROM cities; {}; SELECT 1", insert("e"));
    raw.send(&[query(&text)]).await;
    raw.until_ready().await;
    assert_eq!((begun(), cluster.memory.pins()), (before + 1, 0));
    drop(client);
}

#[tokio::test]
async fn writes_that_have_read_nothing_meet_no_conflict() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    let upsert =
        |id: &str| format!("{} ON CONFLICT (id) DO UPDATE SET doc = excluded.doc", insert(id));
    let mut raw = Raw::open(&cluster).await;
    raw.send(&[run(&[&upsert("1"), &upsert("2")]), vec![flush()]].concat()).await;
    assert_eq!((raw.until(b'C').await, raw.until(b'C').await), ("12C".into(), "12C".into()));
    client.batch_execute(&upsert("1")).await.unwrap();
    raw.send(&[sync()]).await;
    assert_eq!(raw.until_ready().await, "ZI");
    let read = "SELECT id FROM b WHERE id = '1'";
    raw.send(&[run(&[&upsert("2"), read, &upsert("1")]), vec![flush()]].concat()).await;
    assert_eq!(raw.until(b'D').await, "12C12D");
    assert_eq!(raw.until(b'C').await, "C");
    assert_eq!(raw.until(b'C').await, "12C");
    client.batch_execute(&upsert("1")).await.unwrap();
    raw.send(&[sync()]).await;
    assert_eq!(raw.until_ready().await, "E(40001)ZI", "it has read what another one has changed");
}

#[tokio::test]
async fn settings_end_with_the_statements_around_them() {
    let cluster = Cluster::new();
    let (_client, _task) = cities(&cluster).await;
    let mut raw = Raw::open(&cluster).await;
    let shown = "SHOW hedge_after";
    for (messages, told, timeout) in [
        (vec![query("SET hedge_after = '7ms'; SELECT x")], "SET, 42703, I", "auto"),
        (
            [run(&["SET hedge_after = '7ms'", "SELECT x"]), vec![sync()]].concat(),
            "SET, 42703, I",
            "auto",
        ),
        (
            vec![query("SET LOCAL hedge_after = '7ms'; SHOW hedge_after")],
            "SET, (7), SHOW, I",
            "auto",
        ),
        (
            [run(&["SET LOCAL hedge_after = '7ms'", shown]), vec![sync()]].concat(),
            "WARNING: SET LOCAL can only be used in a transaction, SET, (7), SHOW, I",
            "auto",
        ),
        (
            vec![query("SET hedge_after = '8ms'; BEGIN; ROLLBACK")],
            "SET, BEGIN, ROLLBACK, I",
            "auto",
        ),
        (
            [run(&["SET hedge_after = '7ms'"]), vec![parse("SELEC 1"), sync()]].concat(),
            "SET, 42601, I",
            "auto",
        ),
        (
            [run(&["SET hedge_after = '7ms'"]), vec![bind_as("", "nothing"), sync()]].concat(),
            "SET, 26000, I",
            "auto",
        ),
        (
            vec![query("SET hedge_after = '7ms'; SELECT x FROM b WHERE id = $1")],
            "SET, 42601, I",
            "auto",
        ),
        (
            [run(&["SET hedge_after = '7ms'"]), vec![execute_as("none", 0), sync()]].concat(),
            "SET, 34000, I",
            "auto",
        ),
        (
            [run(&["SET hedge_after = '7ms'"]), vec![execute(0), sync()]].concat(),
            "SET, 55000, I",
            "auto",
        ),
        (
            [run(&["SET hedge_after = '7ms'"]), vec![message(b'D', b"Snone\0"), sync()]].concat(),
            "SET, 26000, I",
            "auto",
        ),
        (
            [run(&["SET hedge_after = '7ms'"]), vec![query("SELEC 1")]].concat(),
            "SET, 42601, I",
            "auto",
        ),
        (vec![query("SET hedge_after = '9ms'; SHOW colour")], "SET, 42704, I", "9"),
        (vec![query("SET hedge_after = 'auto'; SELECT 1")], "SET, (1), SELECT 1, I", "auto"),
    ] {
        raw.send(&messages).await;
        assert_eq!(raw.told().await, told);
        raw.send(&[query(shown)]).await;
        assert_eq!(raw.told().await, format!("({timeout}), SHOW, I"), "after {told}");
    }
}

#[tokio::test]
async fn a_time_out_or_a_cancellation_undoes_what_came_before_it() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    client.batch_execute("CREATE INDEX stuck ON b (n)").await.unwrap();
    let text = format!("{}; SELECT n FROM stuck", insert("a"));
    let undone = async || {
        assert_eq!(cluster.memory.uncommitted(), 0);
        assert!(simple(&client, "SELECT id FROM b WHERE id = 'a'").await.is_empty());
    };
    let cancel = client.cancel_token();
    let (cancelled, ()) = tokio::join!(client.batch_execute(&text), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        cancel.cancel_query_raw(cluster.dial(), NoTls).await.unwrap();
    });
    assert_eq!(state(&cancelled.unwrap_err()), "57014");
    undone().await;
    client.batch_execute("SET statement_timeout = '50ms'").await.unwrap();
    assert_eq!(state(&client.batch_execute(&text).await.unwrap_err()), "57014");
    undone().await;
}

#[tokio::test]
async fn more_than_a_transaction_holds_is_refused_and_nothing_is_stored() {
    /// One more than the maximum number of buckets that a transaction may write.
    const BUCKETS: usize = 65;
    let cluster = Cluster::new();
    let (client, _task) = cluster.client().await;
    let names: Vec<String> = (0..BUCKETS).map(|n| format!("b{n}")).collect();
    for name in &names {
        client.batch_execute(&format!("CREATE BUCKET {name} WITH (vbuckets = 4)")).await.unwrap();
    }
    let inserts: Vec<String> = names
        .iter()
        .map(|name| format!("INSERT INTO {name} (id, doc) VALUES ('a', '{{}}')"))
        .collect();
    let inserts: Vec<&str> = inserts.iter().map(String::as_str).collect();
    let mut raw = Raw::open(&cluster).await;
    for messages in [vec![text(&inserts)], [run(&inserts), vec![sync()]].concat()] {
        raw.send(&messages).await;
        let told = raw.told().await;
        assert!(told.ends_with(", INSERT 0 1, 54000, I"), "{told}");
        rolled_back(&cluster, "too much").await;
        for name in &names {
            let found = simple(&client, &format!("SELECT id FROM {name} WHERE id = 'a'")).await;
            assert!(found.is_empty(), "{name}");
        }
    }
    raw.send(&[text(&inserts[1..])]).await;
    assert!(raw.told().await.ends_with(", INSERT 0 1, I"), "one bucket less fits");
}
