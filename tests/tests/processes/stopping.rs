//! Tests that a process drains its clients before it stops.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests run the product as processes: real clocks, sockets and tasks"
)]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tests::harness::process::Dev;
use tests::harness::sql;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls};

/// Opens a session; returns it with a task that yields the SQLSTATE of the session's end.
async fn session(address: SocketAddr) -> (Client, JoinHandle<String>) {
    let settings = format!("host={} port={} user=tester", address.ip(), address.port());
    let (client, connection) = tokio_postgres::connect(&settings, NoTls).await.expect("a session");
    let ended = async {
        let error = connection.await.expect_err("the process ends the session");
        sql::state_of(&error)
    };
    (client, tokio::spawn(ended))
}

/// Returns the answer of `/readyz`.
async fn readyz(address: SocketAddr) -> String {
    let mut socket = tokio::net::TcpStream::connect(address).await.expect("the port is open");
    let request = b"GET /readyz HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
    socket.write_all(request).await.expect("sent");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.expect("an answer");
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_of_grpc_health_says_not_serving_and_holds_up_no_stop() {
    use tonic_health::pb::health_check_response::ServingStatus::{NotServing, Serving};
    let data = tempfile::tempdir().expect("a temporary directory");
    let dev = Dev::start(data.path());
    let channel = tests::harness::grpc::channel(dev.grpc_address()).await;
    let mut health = tonic_health::pb::health_client::HealthClient::new(channel);
    let asked = tonic_health::pb::HealthCheckRequest { service: "sextant.v1.Query".to_owned() };
    let mut watch = health.watch(asked).await.expect("a watch").into_inner();
    let first = watch.message().await.expect("a status").expect("a status");
    assert_eq!(first.status(), Serving);
    let begun = Instant::now();
    dev.ask_to_stop();
    let last = watch.message().await.expect("a status").expect("another status");
    assert_eq!(last.status(), NotServing);
    assert!(watch.message().await.expect("an orderly end").is_none());
    assert!(dev.ended().success(), "a clean end");
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_sessions_end_at_once_and_transactions_have_five_seconds() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let dev = Dev::start(data.path());
    let (busy, busy_end) = session(dev.sql_address()).await;
    sql::run(&busy, "CREATE BUCKET b").await;
    let (stuck, stuck_end) = session(dev.sql_address()).await;
    let (_idle, idle_end) = session(dev.sql_address()).await;
    sql::run(&busy, "BEGIN; INSERT INTO b (id, doc) VALUES ('busy', '{}')").await;
    sql::run(&stuck, "BEGIN; INSERT INTO b (id, doc) VALUES ('stuck', '{}')").await;
    let begun = Instant::now();
    dev.ask_to_stop();
    assert_eq!(idle_end.await.expect("it ends"), "57P01");
    assert!(begun.elapsed() < Duration::from_secs(4), "an idle session ends at once");
    let ready = readyz(dev.http_address()).await;
    assert!(ready.starts_with("HTTP/1.1 503") && ready.ends_with("draining\n"), "{ready}");
    let settings = format!("host=127.0.0.1 port={} user=tester", dev.sql_address().port());
    let refused = tokio_postgres::connect(&settings, NoTls).await.err().expect("no new session");
    assert_eq!(sql::state_of(&refused), "57P03");
    sql::run(&busy, "INSERT INTO b (id, doc) VALUES ('more', '{}'); COMMIT").await;
    assert_eq!(busy_end.await.expect("it ends"), "57P01", "idle after its transaction");
    assert_eq!(stuck_end.await.expect("it ends"), "57P01", "cut");
    assert!(begun.elapsed() >= Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(dev.ended().success(), "a clean end");
    let dev = Dev::start(data.path());
    let (client, _) = session(dev.sql_address()).await;
    let ids = sql::simple(&client, "SELECT id FROM b WHERE id IN ('busy', 'more', 'stuck')").await;
    assert_eq!(ids.expect("rows").len(), 2, "what was committed, and nothing else");
}
