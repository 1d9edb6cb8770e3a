//! Tests that the next statement shows the effect of a definition: immediately at the router that
//! ran the definition, and within a second at another router.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test is a client of the product: real clocks, sockets and tasks"
)]

use std::sync::Arc;
use std::time::Duration;

use proto::env::Env;
use proto::model::ids::NodeId;
use proto::model::node::{NodeInfo, Role};
use router::Router;
use sextant::auth::login_policy::LoginPolicy;
use sextant::backend::ClusterBackend;
use sextant::pg::{PgConfig, PgServer};
use tests::harness::{TestCluster, sql};
use tokio::time::Instant;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// The time limit for another router to show a change.
const ELSEWHERE: Duration = Duration::from_secs(1);

/// A column and its value in the row of a name; `None` if there is no such row.
type Shown = Option<(&'static str, &'static str)>;

/// Definitions, each with the listing that shows its effect, the name of the row, and the expected
/// value. `INDEXER` is the node id of an indexer.
const DEFINITIONS: &[(&str, &str, &str, Shown)] = &[
    ("CREATE BUCKET b WITH (vbuckets = 4)", "SHOW BUCKETS", "b", Some(("vbuckets", "4"))),
    ("CREATE BUCKET d FROM FILES", "SHOW BUCKETS", "d", Some(("source", "files"))),
    ("ALTER BUCKET b SET (copies = 2)", "SHOW COPIES", "b", Some(("wanted_copies", "2"))),
    ("ALTER BUCKET b SET (copies = 1)", "SHOW COPIES", "b", Some(("wanted_copies", "1"))),
    (
        "CREATE INDEX i ON b (name) WITH (slices = 2, defer_build = true)",
        "SHOW INDEXES",
        "i",
        Some(("state", "pending")),
    ),
    ("BUILD INDEX ON b (i)", "SHOW INDEXES", "i", Some(("state", "online"))),
    ("ALTER INDEX i SET (replicas = 1)", "SHOW INDEXES", "i", Some(("replicas", "1"))),
    ("ALTER INDEX i SET (replicas = 0)", "SHOW INDEXES", "i", Some(("replicas", "0"))),
    ("ALTER INDEX i RENAME TO j", "SHOW INDEXES", "j", Some(("slices", "2"))),
    ("ALTER INDEX j RENAME TO i", "SHOW INDEXES", "j", None),
    ("ALTER INDEX i SET (slices = 4)", "SHOW INDEXES", "i", Some(("slices", "4"))),
    ("DROP INDEX i", "SHOW INDEXES", "i", None),
    ("DRAIN NODE 'INDEXER'", "SHOW NODES", "INDEXER", Some(("state", "drained"))),
    ("REMOVE NODE 'INDEXER'", "SHOW NODES", "INDEXER", Some(("state", "removed"))),
    ("DROP BUCKET b", "SHOW BUCKETS", "b", None),
    ("CREATE USER ada", "SHOW USERS", "ada", Some(("user", "ada"))),
    ("DROP USER ada", "SHOW USERS", "ada", None),
];

/// Opens a session at a second router of a cluster.
async fn at_another_router(cluster: &TestCluster) -> (Client, Arc<Router>) {
    let env = Env::real();
    let node = NodeInfo {
        id: NodeId(901),
        role: Role::Router,
        address: "another:1".to_owned(),
        zone: String::new(),
    };
    let directory = cluster.cluster().directory();
    let config = router::Config::new(node);
    let router = Arc::new(Router::start(config, env.clone(), Arc::clone(&directory)));
    let backend = ClusterBackend::new(Arc::clone(&router), directory, env.clone(), Arc::default());
    let doors = LoginPolicy::trust(&env);
    let access = Arc::new(Arc::new(backend).authorization(doors.flow()));
    let server = PgServer::new(access, doors, env, PgConfig::default());
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    tokio::spawn(async move { server.connection(theirs).await });
    let mut config = tokio_postgres::Config::new();
    config.user("me").dbname("db");
    let (client, connection) = config.connect_raw(ours, NoTls).await.expect("a session");
    tokio::spawn(connection);
    (client, router)
}

/// Returns true if a listing has this value in the row of a name.
async fn shows(client: &Client, listing: &str, name: &str, shown: Shown) -> bool {
    let answer = client.simple_query(listing).await.expect(listing);
    let row = answer.into_iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) if row.get(0) == Some(name) => Some(row),
        _ => None,
    });
    match (row, shown) {
        (Some(row), Some((column, value))) => row.get(column) == Some(value),
        (row, _) => row.is_none() && shown.is_none(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_definition_is_in_the_next_answer_here_and_within_a_second_elsewhere() {
    let cluster = TestCluster::start(3, 3).await;
    let client = cluster.sql().await;
    let (other, router) = at_another_router(&cluster).await;
    let nodes = sql::simple(&client, "SHOW NODES").await.expect("nodes");
    let is_indexer = |row: &&Vec<Option<String>>| row[1].as_deref() == Some("indexer");
    let indexer = nodes.iter().find(is_indexer).and_then(|row| row[0].clone()).expect("one");
    for (statement, listing, name, shown) in DEFINITIONS {
        let statement = statement.replace("INDEXER", &indexer);
        let name = name.replace("INDEXER", &indexer);
        sql::run(&client, &statement).await;
        assert!(shows(&client, listing, &name, *shown).await, "{statement}");
        // The users are watched by a task of the process, which the second router does not have.
        let began = Instant::now();
        while *listing != "SHOW USERS" && !shows(&other, listing, &name, *shown).await {
            assert!(began.elapsed() < ELSEWHERE, "{statement}, at another router");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    // A router that is down delays no statement.
    drop((other, router));
    let made = sql::run(&client, "CREATE BUCKET c");
    tokio::time::timeout(ELSEWHERE, made).await.expect("at once");
}
