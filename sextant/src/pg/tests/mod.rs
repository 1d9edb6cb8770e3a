//! Tests of the protocol with `tokio-postgres` and with raw messages, over a cluster in memory.

mod absent;
mod copies;
mod implicit;
mod limits;
mod logins;
mod named;
mod outcomes;
mod raw;
mod savepoints;
mod texts;
mod transactions;
mod turns;
mod users;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::{SinkExt, StreamExt, TryStreamExt};
use proto::env::{Env, Task};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use super::memory::{MemoryAccess, MemoryCluster};
use super::{PgConfig, PgServer};
use crate::access::Access;
use crate::auth::login_policy::LoginPolicy;
use crate::principal::Principal;

struct Cluster {
    memory: Arc<MemoryCluster>,
    principals: Arc<Mutex<Vec<Principal>>>,
    server: PgServer,
    env: Env,
}

impl Cluster {
    fn new() -> Self {
        let provider = MemoryAccess::default();
        let (memory, principals) = (Arc::clone(&provider.memory), Arc::clone(&provider.principals));
        let env = Env::real();
        let server = PgServer::new(
            Arc::new(provider),
            LoginPolicy::trust(&env),
            env.clone(),
            PgConfig::default(),
        );
        Self { memory, principals, server, env }
    }

    /// The cluster as a trusted principal may use it.
    fn access(&self) -> Access {
        Access::trusted(Arc::clone(&self.memory) as _)
    }

    fn users(&self) -> Arc<proto::model::users::Users> {
        self.access().users()
    }

    /// Returns the client's end of a new connection.
    fn dial(&self) -> tokio::io::DuplexStream {
        let (ours, theirs) = tokio::io::duplex(8 << 10);
        let server = self.server.clone();
        self.env.spawn_request("session", async move { server.connection(ours).await }).detach();
        theirs
    }

    async fn client(&self) -> (Client, Task) {
        self.client_with("").await
    }

    /// Returns a client whose start-up packet has these options.
    async fn client_with(&self, options: &str) -> (Client, Task) {
        let mut config = tokio_postgres::Config::new();
        config.user("me").dbname("db").options(options);
        let (client, connection) = config.connect_raw(self.dial(), NoTls).await.unwrap();
        let task = self.env.spawn_request("client", async move {
            let _ended = connection.await;
        });
        (client, task)
    }
}

const CITIES: [(&str, &str); 6] = [
    ("1", r#"{"country":"DE","name":"Ulm","population":120000,"tags":["a","b"]}"#),
    ("2", r#"{"country":"DE","name":"Berlin","population":3600000}"#),
    ("3", r#"{"country":"AT","name":"Wien","population":1900000}"#),
    ("4", r#"{"country":"AT","name":"Graz","population":"many"}"#),
    ("5", r#"{"country":null,"name":"Nowhere\tTab","population":0}"#),
    ("6", r#"{"name":"Missing"}"#),
];

/// Returns a client of a cluster with some indexed cities.
async fn cities(cluster: &Cluster) -> (Client, Task) {
    let (client, task) = cluster.client().await;
    client
        .batch_execute(
            "CREATE BUCKET b WITH (vbuckets = 4); \
             CREATE INDEX cities ON b (country, population::int8 DESC) INCLUDE (name)",
        )
        .await
        .unwrap();
    let insert = client.prepare("INSERT INTO b (id, doc) VALUES ($1, $2)").await.unwrap();
    assert_eq!(insert.params(), [Type::TEXT, Type::TEXT]);
    for (id, doc) in CITIES {
        assert_eq!(client.execute(&insert, &[&id, &doc]).await.unwrap(), 1);
    }
    (client, task)
}

/// Returns the rows of a simple query, with columns joined by `|` and NULL as `~`.
async fn simple(client: &Client, sql: &str) -> Vec<String> {
    let messages = client.simple_query(sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => {
            let cells: Vec<_> = (0..row.len()).map(|n| row.get(n).unwrap_or("~")).collect();
            Some(cells.join("|"))
        }
        _ => None,
    });
    rows.collect()
}

fn state(error: &tokio_postgres::Error) -> String {
    error.code().map(|code| code.code().to_owned()).unwrap_or_else(|| format!("{error:?}"))
}

#[tokio::test]
async fn a_session_has_the_access_of_its_principal() {
    let cluster = Cluster::new();
    for sessions in 1..=2 {
        let (client, _connection) = cluster.client().await;
        client.simple_query("SELECT 1").await.unwrap();
        let principals = cluster.principals.lock().unwrap();
        assert_eq!(*principals, vec![Principal::Trusted; sessions]);
    }
}

#[tokio::test]
async fn rows_have_the_order_and_the_types_of_the_index() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    for (sql, expected) in [
        (
            "SELECT * FROM cities ORDER BY country",
            "5|~|0|Nowhere\tTab;3|AT|1900000|Wien;4|AT|~|Graz;2|DE|3600000|Berlin;1|DE|120000|Ulm",
        ),
        ("SELECT name FROM cities WHERE country = 'DE' ORDER BY population LIMIT 1", "Ulm"),
        ("SELECT id FROM cities ORDER BY country DESC, population OFFSET 3", "3;5"),
        ("SELECT DISTINCT country FROM cities WHERE country IS NOT NULL", "AT;DE"),
        (
            "SELECT count(*), min(population), sum(population), avg(population), max(name) FROM cities",
            "5|0|5620000|1405000|Wien",
        ),
        ("SELECT count(*) FROM cities WHERE country = 'DE' LIMIT 0", ""),
        (
            "SELECT upper(name), population / 2, population > 500000 FROM cities WHERE country = 'AT'",
            "WIEN|950000|t;GRAZ|~|~",
        ),
        ("SELECT id, doc FROM b WHERE id IN ('9', '6', '6')", r#"6|{"name":"Missing"}"#),
        ("SELECT 1, 'x', NULL, true, 1.5, -3::int8 WHERE 1 < 2", "1|x|~|t|1.5|-3"),
        (
            "SELECT set_config('statement_timeout', '5s', false), current_setting('statement_timeout')",
            "5000|5000",
        ),
        ("SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL", "~"),
        ("SELECT current_schema(), current_user, pg_catalog.current_database()", "public|me|db"),
        ("SHOW BUCKETS", "b|4|embedded|1|1|0|1 of 1"),
        ("CREATE BUCKET c WITH (copies = 2); SHOW COPIES", "b|1|leader|1|1|~;c|1|leader|1|2|~"),
        (
            "EXPLAIN SELECT id FROM cities WHERE country = 'DE'",
            "Scan of index cities on b;  Ranges: 1, for country = 'DE';  Output: id;  Slices: 8, by hash of META().id",
        ),
    ] {
        assert_eq!(simple(&client, sql).await.join(";"), expected, "{sql}");
    }
    let statement = client
        .prepare("SELECT id, population, sum, 1 FROM cities".replace(", sum, 1", "").as_str())
        .await
        .unwrap();
    let types: Vec<_> = statement.columns().iter().map(|c| (c.name(), c.type_().clone())).collect();
    assert_eq!(types, [("id", Type::TEXT), ("population", Type::INT8)]);
}

#[tokio::test]
async fn parameters_and_results_are_typed_in_binary() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    let sql = "SELECT country, population, population::float8, population > $1, population::int4 \
               FROM cities WHERE country = $2 AND population >= $1 LIMIT $3";
    let rows = client.query(sql, &[&1_900_000i64, &"AT", &10i64]).await.unwrap();
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    assert_eq!(row.get::<_, String>(0), "AT");
    assert_eq!(row.get::<_, i64>(1), 1_900_000);
    assert_eq!(row.get::<_, f64>(2), 1_900_000.0);
    assert!(!row.get::<_, bool>(3));
    assert_eq!(row.get::<_, i32>(4), 1_900_000);
    let typed = client.prepare_typed("SELECT $1::int8 + 1, $2", &[Type::INT8]).await.unwrap();
    assert_eq!(typed.params(), [Type::INT8, Type::TEXT]);
    let row = client.query_one(&typed, &[&41i64, &"x"]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, &str>(1)), (42, "x"));
    let row = client.query_one("SELECT count(*), max(population) FROM cities", &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, Option<i64>>(1)), (5, Some(3_600_000)));
}

#[tokio::test]
async fn errors_have_their_sqlstate_and_leave_the_session_usable() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    for (sql, expected) in [
        ("SELEC 1", "42601"),
        ("SELECT id FROM nothing", "42P01"),
        ("CREATE BUCKET b", "42P07"),
        ("INSERT INTO b (id, doc) VALUES ('7', '{}'), ('1', '{}')", "23505"),
        ("INSERT INTO b (id, doc) VALUES ('7', '{')", "22P02"),
        ("INSERT INTO cities (id, doc) VALUES ('7', '{}')", "0A000"),
        ("SELECT id FROM cities GROUP BY id", "0A000"),
        ("EXPLAIN SELECT * FROM pg_catalog.pg_class", "0A000"),
        ("SET consistency = 'strong'", "22023"),
        ("SHOW colour", "42704"),
        ("SELECT colour FROM cities", "42703"),
        ("SELECT colour FROM b WHERE id = '1'", "42703"),
        ("SELECT colour", "42703"),
        ("DROP INDEX b", "42809"),
        ("DROP BUCKET cities", "42809"),
        ("DROP BUCKET b RESTRICT", "2BP01"),
    ] {
        let error = client.simple_query(sql).await.unwrap_err();
        assert_eq!(state(&error), expected, "{sql}");
        let error = client.query(sql, &[]).await.unwrap_err();
        assert_eq!(state(&error), expected, "{sql}, extended");
        assert_eq!(simple(&client, "SELECT 1").await, ["1"], "after {sql}");
    }
    let error = client.simple_query("SELECT 1, x FROM").await.unwrap_err();
    let position = error.as_db_error().and_then(|e| e.position().cloned());
    assert_eq!(position, Some(tokio_postgres::error::ErrorPosition::Original(17)));
    assert_eq!(simple(&client, "SELECT id FROM b WHERE id = '7'").await, [""; 0], "all or nothing");
    // The statements before the error are undone.
    assert!(
        client.batch_execute("DELETE FROM b WHERE id = '6'; SELECT 1 FROM nothing").await.is_err()
    );
    assert_eq!(simple(&client, "SELECT id FROM b WHERE id = '6'").await, ["6"]);
    assert_eq!(simple(&client, " ; -- nothing").await, [""; 0]);
}

#[tokio::test]
async fn a_read_only_transaction_reads_one_epoch() {
    let cluster = Cluster::new();
    let (mut client, _task) = cities(&cluster).await;
    let (other, _other_task) = cluster.client().await;
    let transaction = client.build_transaction().read_only(true).start().await.unwrap();
    let count = "SELECT count(*) FROM cities";
    assert_eq!(transaction.query_one(count, &[]).await.unwrap().get::<_, i64>(0), 5);
    other.batch_execute("DELETE FROM b WHERE id = '1'").await.unwrap();
    assert_eq!(transaction.query_one(count, &[]).await.unwrap().get::<_, i64>(0), 5);
    assert_eq!(cluster.memory.pins(), 1);
    transaction.commit().await.unwrap();
    assert_eq!(cluster.memory.pins(), 0, "the epoch is let go");
    assert_eq!(simple(&client, count).await, ["4"]);
}

#[tokio::test]
async fn consistency_follows_the_settings() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    let scanned = async |client: &Client| {
        simple(client, "SELECT count(*) FROM cities").await;
        format!("{:?}", cluster.memory.consistency.lock().unwrap())
    };
    let own_write = scanned(&client).await;
    assert!(own_write.starts_with("Some(AtLeast(Epoch("), "{own_write}");
    let position = simple(&client, "SHOW write_position").await.remove(0);
    let (other, _other_task) = cluster.client().await;
    other.batch_execute(&format!("SET at_plus = '{position}'")).await.unwrap();
    assert!(scanned(&other).await.contains("AtPlus([(VbucketId(0), Position"));
    other.batch_execute("SET consistency = 'request_plus'").await.unwrap();
    assert_eq!(scanned(&other).await, "Some(RequestPlus)");
    other.batch_execute("RESET ALL").await.unwrap();
    assert_eq!(scanned(&other).await, own_write, "nothing older than it has seen");
    other.batch_execute("SET consistency = 'stale'").await.unwrap();
    assert_eq!(scanned(&other).await, "Some(Any)");
    let (new, _new_task) = cluster.client().await;
    assert_eq!(scanned(&new).await, "Some(Any)", "it has seen nothing yet");
}

#[tokio::test]
async fn a_session_asks_once_for_the_epoch_of_its_writes_and_hears_once_that_they_are_lost() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    let asked = || cluster.memory.covered.lock().unwrap().len();
    let count = "SELECT count(*) FROM cities";
    let before = asked();
    simple(&client, count).await;
    simple(&client, count).await;
    assert_eq!(asked(), before + 1);
    client.batch_execute("DELETE FROM b WHERE id = '1'").await.unwrap();
    assert_eq!(simple(&client, count).await, ["4"]);
    assert_eq!(asked(), before + 2);
    client.batch_execute("DELETE FROM b WHERE id = '2'").await.unwrap();
    cluster.memory.is_lost.store(true, Ordering::Relaxed);
    let lost = client.simple_query(count).await.unwrap_err();
    let lost = lost.as_db_error().unwrap();
    assert!(lost.message().contains("a write of this session is lost"), "{lost}");
    assert_eq!(simple(&client, count).await, ["3"], "it is said once");
}

#[tokio::test]
async fn the_documents_of_a_statement_are_read_in_one_call_if_they_fit() {
    let cluster = Cluster::new();
    let (client, _task) = cluster.client().await;
    client.batch_execute("CREATE BUCKET b").await.unwrap();
    for (prefix, reads) in [("short", vec![300]), ("long", vec![300, 150, 75, 75, 75, 75])] {
        let ids: Vec<_> = (0..300).map(|n| format!("{prefix}{n:03}")).collect();
        let rows: Vec<_> = ids.iter().map(|id| format!("('{id}', '{{}}')")).collect();
        let insert = format!("INSERT INTO b (id, doc) VALUES {}", rows.join(", "));
        client.batch_execute(&insert).await.unwrap();
        let sql = format!("SELECT id FROM b WHERE id IN ('{}')", ids.join("', '"));
        assert_eq!(simple(&client, &sql).await, ids, "each once, in order");
        let found = std::mem::take(&mut *cluster.memory.reads.lock().unwrap());
        assert_eq!(found, reads, "{prefix}");
    }
}

#[tokio::test]
async fn copy_out_is_postgres_text() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    let sql = "COPY (SELECT name, country, population FROM cities ORDER BY country) TO STDOUT";
    let chunks: Vec<Bytes> = client.copy_out(sql).await.unwrap().try_collect().await.unwrap();
    assert_eq!(chunks.len(), 5, "one message a row");
    assert_eq!(chunks[0], "Nowhere\\tTab\t\\N\t0\n");
    assert_eq!(chunks[2], "Graz\tAT\t\\N\n");
}

#[tokio::test]
async fn portals_return_rows_in_pieces() {
    let cluster = Cluster::new();
    let (mut client, _task) = cities(&cluster).await;
    let transaction = client.transaction().await.unwrap();
    let portal = transaction.bind("SELECT id FROM cities ORDER BY country", &[]).await.unwrap();
    let mut got = Vec::new();
    loop {
        let rows = transaction.query_portal(&portal, 2).await.unwrap();
        got.push(rows.iter().map(|row| row.get::<_, String>(0)).collect::<String>());
        if rows.len() < 2 {
            break;
        }
    }
    assert_eq!(got, ["53", "42", "1"]);
    assert!(transaction.query_portal(&portal, 0).await.unwrap().is_empty(), "nothing is left");
}

#[tokio::test]
async fn the_scan_of_a_suspended_portal_is_parked_and_continues_later() {
    let cluster = Cluster::new();
    let (mut client, _task) = cities(&cluster).await;
    let transaction = client.transaction().await.unwrap();
    let portal = transaction.bind("SELECT id FROM cities ORDER BY country", &[]).await.unwrap();
    let ids = async |rows| {
        let rows = transaction.query_portal(&portal, rows).await.unwrap();
        rows.iter().map(|row| row.get::<_, String>(0)).collect::<String>()
    };
    let parked = || cluster.memory.parked.load(Ordering::Relaxed);
    assert_eq!(ids(2).await, "53");
    assert_eq!(ids(1).await, "4");
    assert_eq!(parked(), 0, "a client that reads on is not held up");
    tokio::time::sleep(crate::rows::suspended_result::SUSPENDED_RUNS + Duration::from_millis(500))
        .await;
    assert_eq!(parked(), 1, "once, for the piece that nobody read on from");
    assert_eq!(ids(0).await, "21");
}

#[tokio::test]
async fn a_stream_starts_at_once_and_keeps_the_pace_of_its_reader() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    client.batch_execute("CREATE INDEX endless ON b (n::int8)").await.unwrap();
    let rows = client.query_raw("SELECT n FROM endless", Vec::<i64>::new()).await.unwrap();
    let mut rows = std::pin::pin!(rows);
    for n in 0..1000 {
        let row = rows.next().await.unwrap().unwrap();
        assert_eq!(row.get::<_, i64>(0), n);
    }
    // The client stops reading. The server has fetched few batches by then, and fetches no more.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let fetched = cluster.memory.batches.load(Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(
        cluster.memory.batches.load(Ordering::Relaxed) <= fetched + 1,
        "the client does not read"
    );
    assert!(fetched < 2000, "{fetched} batches were fetched for 1000 rows");

    let cancel = client.cancel_token();
    cancel.cancel_query_raw(cluster.dial(), NoTls).await.unwrap();
    let ended = loop {
        match rows.next().await {
            Some(Ok(_)) => {}
            Some(Err(error)) => break error,
            None => panic!("the stream must end with an error"),
        }
    };
    assert_eq!(state(&ended), "57014");
    assert_eq!(simple(&client, "SELECT 1").await, ["1"], "the session goes on");
}

#[tokio::test]
async fn a_scan_is_parked_while_its_client_does_not_read() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    client.batch_execute("CREATE INDEX endless ON b (n::int8)").await.unwrap();
    let rows = client.query_raw("SELECT n FROM endless", Vec::<i64>::new()).await.unwrap();
    let mut rows = std::pin::pin!(rows);
    let parked = || cluster.memory.parked.load(Ordering::Relaxed);
    for n in 0..100_000 {
        if n == 1000 {
            assert_eq!(parked(), 0, "the scan is read");
            tokio::time::sleep(
                crate::rows::suspended_result::SUSPENDED_RUNS + Duration::from_millis(500),
            )
            .await;
            assert_eq!(parked(), 1, "once");
        }
        let row = rows.next().await.unwrap().unwrap();
        assert_eq!(row.get::<_, i64>(0), n);
    }
}

#[tokio::test]
async fn a_statement_without_an_answer_can_be_cancelled_or_times_out() {
    let cluster = Cluster::new();
    let (client, _task) = cities(&cluster).await;
    client.batch_execute("CREATE INDEX stuck ON b (n)").await.unwrap();
    client.batch_execute("SET statement_timeout = '20ms'").await.unwrap();
    let error = client.simple_query("SELECT n FROM stuck").await.unwrap_err();
    assert_eq!(state(&error), "57014");
    client.batch_execute("SET statement_timeout = 0").await.unwrap();
    let cancel = client.cancel_token();
    let (error, _) = tokio::join!(client.simple_query("SELECT n FROM stuck"), async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        cancel.cancel_query_raw(cluster.dial(), NoTls).await.unwrap();
    });
    assert_eq!(state(&error.unwrap_err()), "57014");
}
