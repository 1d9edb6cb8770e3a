//! Tests that a router with a data directory serves after a restart while no coordinator answers,
//! and follows the coordinators when they answer.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests run the product as processes on real directories"
)]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tests::harness::processes::Processes;
use tests::harness::{connect, eventually, http_get, sql};
use tokio_postgres::Client;

const COORDINATORS: [u64; 3] = [1, 2, 3];
const ROUTER: u64 = 301;
/// The promised time from the start of the router to its first answer. The best of [`STARTS`]
/// starts counts, since the machine has other work.
const SERVES_WITHIN: Duration = Duration::from_secs(1);
const STARTS: usize = 3;
/// The time after which the router has stored a catalog; half a second is usual.
const KEPT_AFTER: Duration = Duration::from_secs(2);
const ROWS: &str = "SELECT n, id FROM by_n ORDER BY n";

/// Returns the note about the router in `SHOW NODES`.
async fn note(client: &Client) -> Option<String> {
    let nodes = sql::simple(client, "SHOW NODES").await.expect("the nodes");
    let own = nodes.into_iter().find(|row| row[0] == Some(ROUTER.to_string()));
    own.expect("the router").pop().expect("a column")
}

/// Fills a bucket with an index, and waits until the router has stored the catalog.
async fn fill(client: &Client) {
    sql::run(client, "CREATE BUCKET b WITH (vbuckets = 8)").await;
    let rows: Vec<_> = (0..30).map(|n| format!("('d{n}', '{{\"n\":{n}}}')")).collect();
    sql::run(client, &format!("INSERT INTO b (id, doc) VALUES {}", rows.join(", "))).await;
    sql::run(client, "CREATE INDEX by_n ON b (n::int8) WITH (slices = 4)").await;
    sql::run(client, "SET consistency = 'request_plus'").await;
    assert_eq!(sql::value(client, "SELECT count(*) FROM by_n").await, "30");
    tokio::time::sleep(KEPT_AFTER).await;
}

/// Restarts the router. Returns its HTTP address, the rows of the index, and the time until these
/// were available.
async fn restart(processes: &mut Processes) -> (SocketAddr, sql::Rows, Duration) {
    let began = Instant::now();
    let http = processes.restart_router_with_data();
    let client = processes.sql().await;
    let rows = sql::simple(&client, ROWS).await.expect("rows without a coordinator");
    (http, rows, began.elapsed())
}

async fn figure(http: SocketAddr, name: &str) -> Option<f64> {
    let text = http_get(http, "/metrics").await;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.map(|value| value.trim().parse().expect("a number"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_router_serves_within_a_second_of_its_start_while_all_coordinators_are_dead() {
    let mut processes = Processes::start(&[201, 202]).await;
    processes.restart_router_with_data();
    let client = processes.sql().await;
    sql::run(&client, "CREATE USER ada PASSWORD 'pencil'; GRANT scan ON ALL TO ada").await;
    fill(&client).await;
    let before = sql::simple(&client, ROWS).await.expect("rows");
    let users = sql::simple(&client, "SHOW USERS").await.expect("users");
    // The coordinators accept the new process as the router once the one without a directory is silent. Then it has a moment.
    tokio::time::sleep(Duration::from_secs(7)).await;
    for id in COORDINATORS {
        processes.kill(id);
    }

    let mut times = Vec::new();
    for _ in 0..STARTS {
        let (_, rows, taken) = restart(&mut processes).await;
        assert_eq!(rows, before);
        times.push(taken);
    }
    println!("the router answered {times:?} after its start");
    assert!(times.iter().any(|taken| *taken <= SERVES_WITHIN), "{times:?}");

    let (http, _, _) = restart(&mut processes).await;
    let client = processes.sql().await;
    let told = note(&client).await.expect("a remark");
    assert!(told.contains("from its disk"), "{told}");
    assert_eq!(figure(http, "sextant_router_catalog_from_disk").await, Some(1.0));
    let age = figure(http, "sextant_router_catalog_age_seconds").await.expect("an age");
    assert!((0.5..60.0).contains(&age), "{age}");
    sql::run(&client, "BEGIN READ ONLY").await;
    assert_eq!(sql::value(&client, "SELECT count(*) FROM by_n").await, "30");
    sql::run(&client, "COMMIT").await;
    assert_eq!(sql::simple(&client, "SHOW USERS").await.expect("users"), users);
    assert_eq!(users[0][0].as_deref(), Some("ada"));
    let refused = sql::sqlstate(&client, "CREATE BUCKET other WITH (vbuckets = 8)").await;
    assert_eq!(refused, "57P03", "definitions need a coordinator");

    for id in COORDINATORS {
        processes.run(id);
    }
    eventually("a change of the users is known", || async {
        sql::simple(&client, "ALTER USER ada PASSWORD NULL").await.ok()
    })
    .await;
    let known = sql::simple(&client, "SHOW USERS").await.expect("users");
    assert_eq!(known[0][1], None, "no password any more");
    eventually("a definition succeeds", || async {
        let create = "CREATE BUCKET IF NOT EXISTS other WITH (vbuckets = 8)";
        sql::simple(&client, create).await.ok()
    })
    .await;
    assert_eq!(note(&client).await, None);
    assert_eq!(figure(http, "sextant_router_catalog_from_disk").await, Some(0.0));
    sql::run(&client, "SET consistency = 'request_plus'").await;
    assert_eq!(sql::simple(&client, ROWS).await.expect("rows"), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_router_forgets_the_catalog_of_a_cluster_that_its_coordinators_have_given_up() {
    let mut processes = Processes::start_with(&[1], &[201]).await;
    processes.restart_router_with_data();
    fill(&processes.sql().await).await;
    sql::run(&processes.sql().await, "CREATE USER ada").await;
    let files = ["CATALOG", "USERS"].map(|name| processes.data_of(ROUTER).join(name));
    let all_exist = || files.iter().all(|file| file.exists());
    eventually("both are kept", || async { all_exist().then_some(()) }).await;
    processes.kill(ROUTER);
    processes.kill(1);
    for id in [101, 201] {
        processes.kill(id);
        processes.remove_data(id);
    }
    std::fs::remove_file(processes.data_of(1).join("raft.redb")).expect("removed");
    processes.run_with(1, &["--force-new-cluster"]);
    processes.run(101);

    processes.restart_router_with_data();
    assert_eq!(processes.ended(ROUTER).await, Some(1));
    let any_exists = files.iter().any(|file| file.exists());
    assert!(!any_exists, "the next start knows nothing of the old cluster");
    processes.run(201);
    processes.restart_router_with_data();
    let client = connect(processes.sql_address()).await;
    eventually("the new cluster is followed", || async {
        sql::simple(&client, "CREATE BUCKET fresh WITH (vbuckets = 8)").await.ok()
    })
    .await;
    let buckets = sql::simple(&client, "SHOW BUCKETS").await.expect("the buckets");
    assert_eq!(buckets.len(), 1, "{buckets:?}");
    eventually("the new catalog is kept", || async { all_exist().then_some(()) }).await;
    let users = sql::simple(&client, "SHOW USERS").await.expect("users");
    assert!(users.is_empty(), "{users:?}");
}
