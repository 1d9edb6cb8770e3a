//! Tests features of drivers beyond single statements, with `tokio-postgres` against a whole
//! cluster.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test is a client of the product: real clocks, sockets and tasks"
)]

use std::time::{Duration, Instant};

use futures::{SinkExt, StreamExt, TryStreamExt};
use serde_json::json;
use tests::harness::TestCluster;
use tests::harness::sql::{self, Numeric};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// Starts a cluster with a bucket `b` of numbered documents and an index `i` over the numbers, and
/// opens a session.
async fn numbered(documents: usize) -> (TestCluster, Client) {
    let cluster = TestCluster::start(1, 2).await;
    let client = cluster.sql().await;
    sql::run(&client, "CREATE BUCKET b; SET consistency = 'request_plus'").await;
    let lines: String = (0..documents)
        .map(|n| format!("{{\"id\":{n},\"n\":{n},\"kind\":\"k{}\"}}\n", n % 3))
        .collect();
    let copied =
        sql::copy_in(&client, "COPY b FROM STDIN (FORMAT jsonl)", lines.as_bytes(), 70_000).await;
    assert_eq!(copied.expect("COPY"), documents as u64);
    sql::run(&client, "CREATE INDEX i ON b (n::int8) INCLUDE (kind)").await;
    (cluster, client)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prepared_statement_is_described_and_runs_repeatedly() {
    let (_cluster, client) = numbered(100).await;
    let text = "SELECT n, kind FROM i WHERE n BETWEEN $1 AND $2 AND kind <> $3 ORDER BY n LIMIT $4";
    let statement = client.prepare(text).await.expect("prepared");
    assert_eq!(statement.params(), [Type::INT8, Type::INT8, Type::TEXT, Type::INT8]);
    let columns: Vec<_> =
        statement.columns().iter().map(|c| (c.name(), c.type_().clone())).collect();
    assert_eq!(columns, [("n", Type::INT8), ("kind", Type::TEXT)]);
    for (low, high, expected) in [(0i64, 5i64, &[1i64, 2, 4][..]), (98, 200, &[98]), (7, 3, &[])] {
        let rows = client.query(&statement, &[&low, &high, &"k0", &3i64]).await.expect("rows");
        let found: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(found, expected, "{low} to {high}");
    }
    let insert = client
        .prepare("INSERT INTO b (id, doc) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET doc = excluded.doc")
        .await
        .expect("prepared");
    assert!(insert.columns().is_empty());
    for n in 0..3 {
        let doc = json!({ "n": 1000 + n }).to_string();
        assert_eq!(client.execute(&insert, &[&"same", &doc]).await.expect("a write"), 1);
    }
    let rows = client.query(&statement, &[&1000i64, &2000i64, &"", &9i64]).await.expect("rows");
    assert!(rows.is_empty(), "kind is MISSING, so that nothing is known of it");
    assert_eq!(sql::value(&client, "SELECT max(n) FROM i").await, "1002");
    // Declared parameter types take precedence over those inferred from the statement.
    let typed = client.prepare_typed("SELECT count(*) FROM i WHERE n > $1", &[Type::INT4]).await;
    let typed = typed.expect("prepared");
    assert_eq!(typed.params(), [Type::INT4]);
    let row = client.query_one(&typed, &[&90i32]).await.expect("a row");
    assert_eq!(row.get::<_, i64>(0), 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_portal_returns_its_rows_in_pages() {
    let (cluster, mut client) = numbered(1000).await;
    let other = cluster.sql().await;
    let transaction = client.transaction().await.expect("BEGIN");
    let portal = transaction.bind("SELECT n FROM i ORDER BY n", &[]).await.expect("a portal");
    let (mut found, mut pieces) = (Vec::new(), 0);
    loop {
        let rows = transaction.query_portal(&portal, 300).await.expect("rows");
        found.extend(rows.iter().map(|row| row.get::<_, i64>(0)));
        if rows.len() < 300 {
            break;
        }
        pieces += 1;
        // Another statement in between, and a concurrent write, have no effect on the portal.
        let count = transaction.query_one("SELECT count(*) FROM i", &[]).await.expect("a row");
        assert_eq!(count.get::<_, i64>(0), 1000, "a transaction sees one moment");
        let insert =
            format!("INSERT INTO b (id, doc) VALUES ('new{pieces}', '{{\"n\":{pieces}}}')");
        sql::run(&other, &insert).await;
    }
    assert_eq!(pieces, 3);
    assert_eq!(found, (0..1000).collect::<Vec<_>>());
    transaction.commit().await.expect("COMMIT");
    assert_eq!(sql::value(&client, "SELECT count(*) FROM i").await, "1003");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_are_binary_for_each_type() {
    let cluster = TestCluster::start(1, 1).await;
    let client = cluster.sql().await;
    sql::run(
        &client,
        r#"CREATE BUCKET b; SET consistency = 'request_plus';
        CREATE INDEX t ON b (k::int4) INCLUDE (i::int8, f::float8, t::bool, d::numeric, s, j);
        INSERT INTO b (id, doc) VALUES
          ('1', '{"k":1,"i":-9223372036854775808,"f":0.1,"t":true,"d":12345.678,"s":"é\n","j":[1,{"a":null}]}'),
          ('2', '{"k":2,"i":3.0,"f":7,"t":"f","d":18446744073709551615,"s":"","j":1e300}'),
          ('3', '{"k":3,"i":3.7,"f":"x","t":1,"d":-0.00001,"s":null}'),
          ('4', '{"k":4,"d":1e20}')"#,
    )
    .await;
    let rows = client.query("SELECT * FROM t ORDER BY k", &[]).await.expect("rows");
    type Typed =
        (Option<i64>, Option<f64>, Option<bool>, Option<Numeric>, Option<String>, Option<String>);
    let typed: Vec<Typed> = rows
        .iter()
        .map(|row| {
            (row.get("i"), row.get("f"), row.get("t"), row.get("d"), row.get("s"), row.get("j"))
        })
        .collect();
    let numeric = |text: &str| Some(Numeric(text.to_owned()));
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(rows.iter().map(|row| row.get::<_, i32>("k")).collect::<Vec<_>>(), [1, 2, 3, 4]);
    let (json, big) = (text(r#"[1,{"a":null}]"#), numeric("18446744073709551615"));
    assert_eq!(
        typed[0],
        (Some(i64::MIN), Some(0.1), Some(true), numeric("12345.678"), text("é\n"), json)
    );
    assert_eq!(typed[1], (Some(3), Some(7.0), Some(false), big, text(""), text("1e300")));
    assert_eq!(typed[2], (Some(4), None, Some(true), numeric("-0.00001"), None, None));
    assert_eq!(typed[3], (None, None, None, numeric("100000000000000000000"), None, None));
    let row = client
        .query_one("SELECT sum(f), avg(f), min(i), count(f) FROM t", &[])
        .await
        .expect("a row");
    assert_eq!(row.get::<_, Numeric>(0).0, "7.1");
    assert_eq!(row.get::<_, Numeric>(1).0, "3.55");
    assert_eq!((row.get::<_, i64>(2), row.get::<_, i64>(3)), (i64::MIN, 2));
}

/// Fills a bucket with about 20 MB of rows, more than the socket buffers hold, so that the server
/// waits for the reader; returns a session.
async fn wide(cluster: &TestCluster) -> Client {
    let client = cluster.sql().await;
    sql::run(
        &client,
        "CREATE BUCKET wide; CREATE PRIMARY INDEX w ON wide INCLUDE (pad); SET consistency = 'request_plus'",
    )
    .await;
    let pad = "x".repeat(40_000);
    let lines: String = (0..500).map(|n| format!("{{\"id\":{n},\"pad\":\"{pad}\"}}\n")).collect();
    let copied = sql::copy_in(&client, "COPY wide FROM STDIN", lines.as_bytes(), 1 << 20).await;
    assert_eq!(copied.expect("COPY"), 500);
    client
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_ends_a_running_stream() {
    let cluster = TestCluster::start(1, 2).await;
    let client = wide(&cluster).await;
    let stream = client.query_raw("SELECT * FROM w", Vec::<String>::new()).await.expect("a stream");
    futures::pin_mut!(stream);
    stream.next().await.expect("a row").expect("a row");
    client.cancel_token().cancel_query(NoTls).await.expect("the request is taken");
    let mut rows = 1;
    let error = loop {
        match stream.next().await {
            Some(Ok(_)) => rows += 1,
            Some(Err(error)) => break error,
            None => panic!("the stream ended by itself after {rows} rows"),
        }
    };
    assert_eq!(sql::state_of(&error), "57014");
    assert!(rows < 500, "{rows} rows");
    assert_eq!(sql::value(&client, "SELECT count(*) FROM w").await, "500", "the session goes on");
    // COPY … TO STDOUT behaves in the same way.
    let stream = client.copy_out("COPY (SELECT * FROM w) TO STDOUT").await.expect("a stream");
    futures::pin_mut!(stream);
    stream.next().await.expect("data").expect("data");
    client.cancel_token().cancel_query(NoTls).await.expect("the request is taken");
    let error = loop {
        match stream.next().await {
            Some(Ok(_)) => {}
            Some(Err(error)) => break error,
            None => panic!("the COPY ended by itself"),
        }
    };
    assert_eq!(sql::state_of(&error), "57014");
    // A cancel request for an idle session has no effect; it may arrive late.
    client.cancel_token().cancel_query(NoTls).await.expect("the request is taken");
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(sql::value(&client, "SELECT count(*) FROM w").await, "500");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_go_in_and_out() {
    let (_cluster, client) = numbered(10).await;
    let data = "{\"key\":\"a\\tb\",\"n\":77}\r\n\n{\"key\":5,\"n\":78}";
    let copied =
        sql::copy_in(&client, "COPY b FROM STDIN (FORMAT jsonl, id 'key')", data.as_bytes(), 1)
            .await;
    assert_eq!(copied.expect("COPY"), 2);
    let rows = sql::copy_out(&client, "SELECT id, n, kind FROM i WHERE n >= 9 ORDER BY n")
        .await
        .expect("rows");
    let row = |id: &str, n: &str, kind: Option<&str>| -> Vec<Option<String>> {
        vec![Some(id.to_owned()), Some(n.to_owned()), kind.map(str::to_owned)]
    };
    assert_eq!(rows, [row("9", "9", Some("k0")), row("a\tb", "77", None), row("5", "78", None)]);
    // An aborted COPY stores nothing of its open batch.
    let sink = client.copy_in("COPY b FROM STDIN").await.expect("a COPY");
    {
        futures::pin_mut!(sink);
        sink.send(bytes::Bytes::from_static(b"{\"id\":\"never\"}\n")).await.expect("taken");
    }
    let rows = sql::simple(&client, "SELECT id FROM b WHERE id = 'never'").await.expect("rows");
    assert!(rows.is_empty());
    // A bad line ends the COPY; the error has its number and the stored part.
    let bad = sql::copy_in(&client, "COPY b FROM STDIN", b"{\"id\":\"x\"}\n{\"id\":}\n", 5).await;
    let bad = bad.expect_err("bad JSON");
    let message = bad.as_db_error().expect("from the server").message();
    assert_eq!(sql::state_of(&bad), "22P02");
    assert!(message.contains("line 2") && message.contains("nothing is stored"), "{message}");
    let found = sql::simple(&client, "SELECT id FROM b WHERE id = 'x'").await.expect("rows");
    assert!(found.is_empty(), "a COPY is all or nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_sqlstate_is_reached_and_the_session_survives() {
    let (cluster, client) = numbered(20).await;
    sql::run(&client, "CREATE INDEX later ON b (kind) WITH (defer_build = true)").await;
    let id = "i".repeat(300);
    let deep = format!("{}1{}", "[".repeat(40), "]".repeat(40));
    for (state, statement) in [
        ("42601", "SELECT FROM WHERE".to_owned()),
        ("42601", "SELECT 1 1 1".to_owned()),
        ("42P01", "SELECT * FROM nowhere".to_owned()),
        ("42P01", "DROP INDEX nowhere".to_owned()),
        ("42704", "SET colour = 'red'".to_owned()),
        ("42P07", "CREATE BUCKET b".to_owned()),
        ("42P07", "CREATE INDEX b ON b (x)".to_owned()),
        ("42P07", "CREATE BUCKET i".to_owned()),
        ("23505", "INSERT INTO b (id, doc) VALUES ('fresh', '{}'), ('7', '{}')".to_owned()),
        ("22P02", "INSERT INTO b (id, doc) VALUES ('x', '{')".to_owned()),
        ("22P02", "INSERT INTO b (id, doc) VALUES ('x', NULL)".to_owned()),
        ("54000", format!("INSERT INTO b (id, doc) VALUES ('{id}', '{{}}')")),
        ("54000", format!("INSERT INTO b (id, doc) VALUES ('x', '{deep}')")),
        ("57P03", "SELECT * FROM later".to_owned()),
        ("0A000", "SELECT kind, count(*) FROM i GROUP BY kind".to_owned()),
        ("0A000", "SELECT * FROM i ORDER BY kind".to_owned()),
        ("0A000", "SELECT * FROM i JOIN later ON true".to_owned()),
        ("0A000", "CREATE TABLE t (a int)".to_owned()),
    ] {
        assert_eq!(sql::sqlstate(&client, &statement).await, state, "{statement}");
    }
    let fresh = sql::simple(&client, "SELECT id FROM b WHERE id IN ('fresh', 'x')").await;
    assert!(fresh.expect("rows").is_empty(), "a statement is all or nothing");
    times_out(&client).await;
    snapshot_too_old(&cluster).await;
    assert_eq!(sql::value(&client, "SELECT count(*) FROM i").await, "20");
}

/// Tests SQLSTATE 57014: the statement timed out.
async fn times_out(client: &Client) {
    sql::run(client, "INSERT INTO b (id, doc) VALUES ('t', '{}')").await;
    let position = sql::value(client, "SHOW write_position").await;
    sql::run(client, &format!("SET at_plus = '{position}99'; SET consistency = DEFAULT")).await;
    sql::run(client, "SET statement_timeout = '200ms'").await;
    let began = Instant::now();
    let state = sql::sqlstate(client, "SELECT count(*) FROM i").await;
    assert_eq!(state, "57014");
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    sql::run(client, "RESET statement_timeout; RESET at_plus; SET consistency = 'request_plus'")
        .await;
    sql::run(client, "DELETE FROM b WHERE id = 't'").await;
}

/// Tests SQLSTATE 72000: an index that was built after the transaction's epoch cannot answer at it.
async fn snapshot_too_old(cluster: &TestCluster) {
    let (reader, other) = (cluster.sql().await, cluster.sql().await);
    sql::run(&reader, "BEGIN READ ONLY").await;
    assert_eq!(sql::value(&reader, "SELECT count(*) FROM i").await, "20");
    for statement in [
        "INSERT INTO b (id, doc) VALUES ('after', '{\"n\":-1}')",
        "CREATE INDEX young ON b (kind)",
        "DELETE FROM b WHERE id = 'after'",
    ] {
        sql::run(&other, statement).await;
    }
    assert_eq!(sql::sqlstate(&reader, "SELECT count(*) FROM young").await, "72000");
    assert_eq!(sql::sqlstate(&reader, "SELECT 1").await, "25P02", "the transaction has failed");
    sql::run(&reader, "ROLLBACK").await;
    assert_eq!(sql::value(&reader, "SELECT count(*) FROM young").await, "20");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_over_a_limit_are_refused_and_the_session_survives() {
    let (_cluster, client) = numbered(5).await;
    let terms = |count: usize| vec!["n = 1"; count].join(" OR ");
    // 250 equalities and 249 ORs are 499 operators.
    let fits = format!("SELECT count(*) FROM i WHERE {}", terms(250));
    assert_eq!(sql::value(&client, &fits).await, "1");
    let too_many = format!("SELECT count(*) FROM i WHERE {}", terms(251));
    assert_eq!(sql::sqlstate(&client, &too_many).await, "54001", "501 operators");
    let nested = format!("SELECT {}1{}", "(".repeat(10_000), ")".repeat(10_000));
    assert_eq!(sql::sqlstate(&client, &nested).await, "54001", "10,000 parentheses");
    let long_list = format!("SELECT count(*) FROM i WHERE n IN ({})", vec!["1"; 20_000].join(","));
    assert_eq!(sql::value(&client, &long_list).await, "1", "a list is no depth");
    let long_text = format!("SELECT '{}'", "x".repeat(5 << 20));
    assert_eq!(sql::sqlstate(&client, &long_text).await, "54000", "a long query text");
    let message = format!("SELECT '{}'", "x".repeat(17 << 20));
    assert_eq!(sql::sqlstate(&client, &message).await, "54000", "a message over its size");
    let error = client
        .execute("INSERT INTO b (id, doc) VALUES ($1, $2)", &[&"big", &"x".repeat(17 << 20)])
        .await
        .expect_err("a message over its size");
    assert_eq!(sql::state_of(&error), "54000");
    assert_eq!(sql::value(&client, "SELECT count(*) FROM i").await, "5");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_session_and_earlier_rows_survive_an_error() {
    let (_cluster, client) = numbered(5).await;
    // An error skips the remaining statements of its message.
    let several = "SELECT n FROM i WHERE n = 1; SELECT * FROM nowhere; SELECT n FROM i WHERE n = 2";
    let error = client.simple_query(several).await.expect_err("an unknown index");
    assert_eq!(sql::state_of(&error), "42P01");
    let error = client.prepare("SELECT $1::date").await.expect_err("no such type");
    assert_eq!(sql::state_of(&error), "0A000");
    let statement =
        client.prepare("SELECT n FROM i WHERE n = $1::text::int8").await.expect("prepared");
    let error = client.query(&statement, &[&"no number"]).await.expect_err("a failed cast");
    assert_eq!(sql::state_of(&error), "22P02");
    sql::run(&client, "DROP INDEX i").await;
    let error = client.query(&statement, &[&"1"]).await.expect_err("the index is gone");
    assert_eq!(sql::state_of(&error), "42P01");
    let messages = client.simple_query("SELECT 1; SELECT 2").await.expect("two statements");
    let rows = messages.iter().filter(|message| matches!(message, SimpleQueryMessage::Row(_)));
    assert_eq!(rows.count(), 2);
    let rows = client.query_raw("SELECT 'a'", Vec::<String>::new()).await.expect("a stream");
    let rows: Vec<_> = rows.try_collect().await.expect("rows");
    assert_eq!(rows[0].get::<_, String>(0), "a");
}
