//! Tests processes at the limits of the machine, and before their cluster exists.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests run the product as a process"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tests::harness::connect;
use tests::harness::process::{Dev, binary, free_address, output, sextant, spawn_ready};
use tests::harness::sql;
use tokio::net::TcpStream;

/// The limit of open files of the process: low, so that a test reaches it soon.
const OPEN_FILES: u64 = 256;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_sessions_and_many_indexes_leave_room_for_writes_and_reads() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -n {OPEN_FILES} && exec \"$0\" \"$@\"")]).arg(binary());
    command.arg("dev").arg("--data").arg(data.path()).args(["--nodes", "1"]);
    command.args(["--sql-port", "0", "--grpc-port", "0", "--http-port", "0"]);
    let process = Dev::start_by(&mut command);
    let client = connect(process.sql_address()).await;
    sql::run(&client, "SET consistency = 'request_plus'; CREATE BUCKET b WITH (vbuckets = 4)")
        .await;
    for n in 0..100 {
        sql::run(&client, &format!("INSERT INTO b (id, doc) VALUES ('{n}', '{{\"n\":{n}}}')"))
            .await;
    }
    for n in 0..60 {
        let create = format!("CREATE INDEX i{n} ON b (n::int8) WITH (slices = 1)");
        sql::run(&client, &create).await;
    }
    // Sockets that send nothing, and idle sessions.
    let mut silent = Vec::new();
    for _ in 0..OPEN_FILES / 2 {
        silent.push(TcpStream::connect(process.sql_address()).await.expect("a socket"));
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    drop(silent);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut sessions = Vec::new();
    let mut refused = 0;
    for _ in 0..OPEN_FILES {
        match tokio_postgres::connect(
            &format!(
                "host={} port={} user=me",
                process.sql_address().ip(),
                process.sql_address().port()
            ),
            tokio_postgres::NoTls,
        )
        .await
        {
            Ok((client, connection)) => sessions.push((client, tokio::spawn(connection))),
            Err(error) => {
                let code = error.code().map(|code| code.code().to_owned());
                assert_eq!(code.as_deref(), Some("53300"), "{error:?}");
                refused += 1;
            }
        }
    }
    assert!(refused > 0 && sessions.len() > 50, "{refused} of {OPEN_FILES} were refused");
    sql::run(&client, "INSERT INTO b (id, doc) VALUES ('more', '{\"n\":1000}')").await;
    for n in 0..60 {
        let found = client.query_one(&format!("SELECT count(*) FROM i{n}"), &[]).await;
        assert_eq!(found.expect("a count").get::<_, i64>(0), 101, "index {n}");
    }
}

#[test]
fn a_router_that_reaches_no_coordinator_says_so_and_is_not_ready() {
    let mut command = sextant();
    command.args(["router", "--id", "300", "--coordinators", "1=127.0.0.1:9"]);
    command.args(["--sql", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    let (stdout, stderr) =
        (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    let began = Instant::now();
    let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
    let waits = lines.find(|line| line.starts_with("waiting for coordinators"));
    assert_eq!(waits.as_deref(), Some("waiting for coordinators 1=127.0.0.1:9"));
    assert!(began.elapsed() < Duration::from_secs(20));
    std::thread::sleep(Duration::from_secs(1));
    child.kill().expect("it runs still");
    let mut printed = BufReader::new(stdout).lines().map_while(Result::ok);
    assert_eq!(printed.next(), None, "it was not ready");
    child.wait().expect("a child");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_coordinator_has_an_http_port_if_it_is_asked_for() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let data = tempfile::tempdir().expect("a temporary directory");
    let (peer, http) = (free_address(), free_address());
    let mut command = sextant();
    command.args(["coordinator", "--id", "1", "--peer-listen", &peer.to_string()]);
    command.env("SEXTANT_COORDINATORS", format!("1={peer}"));
    command.arg("--data").arg(data.path()).args(["--http", &http.to_string()]);
    let (mut child, ready) = spawn_ready(&mut command);
    assert!(
        ready.starts_with("ready coordinator=") && ready.contains(&format!(" http={http}")),
        "{ready}"
    );
    let get = async |path: &str| {
        let mut socket = tokio::net::TcpStream::connect(http).await.expect("a connection");
        let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
        socket.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        answer
    };
    let metrics = get("/metrics").await;
    for line in ["sextant_raft_term ", "sextant_process_open_files ", "sextant_disk_free_bytes "] {
        assert!(metrics.lines().any(|found| found.starts_with(line)), "{line} in {metrics}");
    }
    assert!(get("/healthz").await.ends_with("ok\n"));
    assert!(get("/status").await.contains("\"role\":\"coordinator\""));
    child.kill().expect("it runs");
    child.wait().expect("a child");
    let refused = output(sextant().args(["router", "--memory-mb", "64", "--id", "1"]));
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(text.contains("a router has no setting memory_mb"), "{text}");
}

/// Returns all bytes that a port sends to a client until it closes the connection.
fn heard(address: &str) -> String {
    let mut stream = std::net::TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time limit");
    stream.write_all(b"GET /healthz HTTP/1.1\r\n\r\n").expect("sent");
    let mut heard = Vec::new();
    let _cut_off = stream.read_to_end(&mut heard);
    String::from_utf8_lossy(&heard).into_owned()
}

/// The limits are set in a file and by variables. The refusal of a connection beyond a limit names
/// the setting.
#[test]
fn a_connection_beyond_a_limit_that_was_set_is_told_the_setting() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let file = data.path().join("coordinator.toml");
    std::fs::write(&file, "id = 1\nhttp_connections_max = 1\n").expect("a file");
    let free = free_address();
    let mut command = sextant();
    command.arg("coordinator").arg("--config").arg(&file).env("SEXTANT_PEER_CONNECTIONS_MAX", "1");
    // It does not read the variables of other roles, even with a file.
    command.env("SEXTANT_MEMORY_MB", "7").env("SEXTANT_AUTH", "scram");
    command.args(["--peer-listen", &free.to_string(), "--coordinators", &format!("1={free}")]);
    command.args(["--http", "127.0.0.1:0"]).arg("--data").arg(data.path().join("data"));
    let (mut child, ready) = spawn_ready(&mut command);
    let http =
        ready.split_whitespace().find_map(|word| word.strip_prefix("http=")).map(str::to_owned);
    let http = http.unwrap_or_else(|| panic!("the coordinator printed {ready:?}"));
    for (address, setting) in
        [(http, "http_connections_max"), (free.to_string(), "peer_connections_max")]
    {
        let first = std::net::TcpStream::connect(&address).expect("the first connection");
        std::thread::sleep(Duration::from_millis(300));
        let told = heard(&address);
        assert!(
            told.contains("1 connections are open") && told.contains(setting),
            "{setting}: {told:?}"
        );
        drop(first);
    }
    child.kill().expect("a running process");
    child.wait().expect("a child");
    let ran = output(sextant().args(["router", "--id", "9", "--peer-connections-max", "1"]));
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(told.contains("a router has no setting peer_connections_max"), "{told}");
}
