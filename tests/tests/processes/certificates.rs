//! Tests processes that authenticate each other by certificates of `sextant cert`, and processes
//! without certificates.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests run the product as processes on real directories"
)]

use proto::rpc::command::RemoveNode;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::env::Env;
use proto::model::ids::NodeId;
use proto::rpc::api::Directory;
use sextant::tls::{Protocol, TlsFiles, TlsSettings, UserTls};
use sextant::wire::{PeerDirectory, Peers, tls_connect};
use tests::harness::process::{addresses, free_address, output, sextant, spawn_ready};
use tests::harness::{eventually, sql};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_postgres::config::SslMode;
use tokio_postgres::{Client, Config, NoTls};

const COORDINATOR: u64 = 1;

/// A process; killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ended_before = self.0.kill();
        let _ended_before = self.0.wait();
    }
}

/// A directory with an authority, and the processes of its cluster.
struct Place {
    dir: tempfile::TempDir,
    coordinator: String,
    /// The addresses of the other running processes.
    others: Mutex<BTreeMap<u64, String>>,
}

fn role(id: u64) -> &'static str {
    match id {
        0..100 => "coordinator",
        100..200 => "projector",
        200..300 => "indexer",
        _ => "router",
    }
}

fn ran(command: &mut Command) {
    let ran = output(command);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (coordinator, others) = (free_address().to_string(), Mutex::default());
        let place = Self { dir, coordinator, others };
        place.init("certs");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn init(&self, certs: &str) {
        ran(sextant().args(["cert", "init", "--dir"]).arg(self.path(certs)));
    }

    /// Issues the certificate of a node, or another one according to `arguments`; returns its
    /// files.
    fn cert(&self, certs: &str, name: &str, arguments: &[&str]) -> TlsFiles {
        let certs = self.path(certs);
        let file = |end: &str| certs.join(format!("{name}.{end}"));
        if !file("pem").exists() || arguments.contains(&"--renew") {
            ran(sextant().arg("cert").args(arguments).arg("--dir").arg(&certs));
        }
        TlsFiles { certificate: file("pem"), key: file("key"), ca: certs.join("ca.pem") }
    }

    fn node(&self, certs: &str, id: u64) -> TlsFiles {
        let (role, id) = (role(id), id.to_string());
        self.cert(certs, &format!("{role}-{id}"), &["node", "--role", role, "--id", &id])
    }

    /// Returns the command of a process with a given certificate.
    fn command(&self, id: u64, files: &TlsFiles) -> Command {
        let mut command = sextant();
        command.env_remove("SEXTANT_INSECURE");
        command.arg(role(id)).args(["--id", &id.to_string()]);
        let mut members = vec![format!("{COORDINATOR}={}", self.coordinator)];
        let others = self.others.lock().expect("no panic").clone();
        let added = others.iter().filter(|(other, _)| role(**other) == "coordinator");
        members.extend(added.map(|(other, address)| format!("{other}={address}")));
        command.args(["--coordinators", &members.join(",")]);
        command.arg("--tls-cert").arg(&files.certificate).arg("--tls-key").arg(&files.key);
        command.arg("--tls-ca").arg(&files.ca);
        match role(id) {
            "router" => {
                command.args(["--sql", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]);
                command.args(["--http", "127.0.0.1:0"]);
            }
            _ => {
                command.args(["--peer-listen", &self.address(id)]);
                command.arg("--data").arg(self.path(&id.to_string()));
            }
        }
        if role(id) == "projector" {
            command.arg("--files-dir").arg(self.path("files"));
        }
        command
    }

    /// Returns the address at which other processes call a process.
    fn address(&self, id: u64) -> String {
        if id == COORDINATOR {
            return self.coordinator.clone();
        }
        let mut others = self.others.lock().expect("no panic");
        others.entry(id).or_insert_with(|| free_address().to_string()).clone()
    }

    fn run(&self, id: u64) -> (Running, String) {
        let (child, ready) = spawn_ready(&mut self.command(id, &self.node("certs", id)));
        assert!(ready.starts_with("ready "), "{} {id} printed {ready:?}", role(id));
        (Running(child), ready)
    }

    /// Starts a coordinator that waits until it is added.
    fn run_waiting(&self, id: u64) -> Running {
        let mut command = self.command(id, &self.node("certs", id));
        Running(command.stdout(std::process::Stdio::null()).spawn().expect("it starts"))
    }

    /// Creates the first user, and opens a session with that user's certificate.
    async fn admin(&self, router: SocketAddr) -> Client {
        let operator = self.cert("certs", "operator", &["operator"]);
        let mut init = sextant();
        init.env_remove("SEXTANT_INSECURE").env("SEXTANT_PASSWORD", "pencil");
        init.args(["init", "--admin", "root", "--coordinators"]);
        init.arg(format!("{COORDINATOR}={}", self.coordinator)).arg("--ca").arg(&operator.ca);
        init.arg("--cert").arg(&operator.certificate).arg("--key").arg(&operator.key);
        ran(&mut init);
        let own = self.cert("certs", "user-root", &["client", "--user", "root"]);
        let read = |path: &Path| std::fs::read(path).expect("a file");
        let (ca, certificate, key) = (read(&own.ca), read(&own.certificate), read(&own.key));
        let tls = UserTls::new(&Env::real(), &ca, Some((&certificate, &key)), Protocol::Sql);
        let tls = &tls.expect("a configuration");
        eventually("the router knows the user", || async move {
            let stream = TcpStream::connect(router).await.ok()?;
            let (stream, _) = tls.connect("127.0.0.1", stream).await.ok()?;
            let mut config = Config::new();
            // The connection is encrypted before its first message.
            config.user("root").ssl_mode(SslMode::Disable);
            let (client, connection) = config.connect_raw(stream, NoTls).await.ok()?;
            tokio::spawn(connection);
            Some(client)
        })
        .await
    }

    /// Returns a directory that calls the coordinators with a given certificate.
    async fn seen_with(&self, files: TlsFiles) -> PeerDirectory {
        let env = Env::real();
        let tls = TlsSettings::of_files(&env, files).await.expect("a certificate");
        let members = vec![(NodeId(COORDINATOR), self.coordinator.clone())];
        PeerDirectory(Peers::new(members, tls_connect(tls), &env))
    }
}

/// Returns the error of a command that must fail.
fn refused(command: &mut Command) -> String {
    let ran = output(command);
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(1), "{told}");
    told
}

fn sql_address(ready: &str) -> SocketAddr {
    addresses(ready).unwrap_or_else(|| panic!("the router printed {ready:?}"))[0]
}

/// Returns the error of a call to the coordinator.
async fn refusal(directory: &PeerDirectory) -> String {
    let member = directory.coordinator_member(NodeId(COORDINATOR)).expect("a member");
    member.status().await.expect_err("a refusal").message
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_with_certificates_serves_and_refuses_all_others_by_name() {
    let place = Place::new();
    let _coordinator = place.run(COORDINATOR);
    let _projector = place.run(101);
    let _indexer = place.run(201);
    let (_router, ready) = place.run(301);
    let client = place.admin(sql_address(&ready)).await;
    eventually("all nodes join", || async {
        sql::simple(&client, "SHOW NODES").await.ok().filter(|nodes| nodes.len() >= 4)
    })
    .await;
    sql::run(&client, "CREATE BUCKET b WITH (vbuckets = 8)").await;
    let rows: Vec<_> = (0..100).map(|n| format!("('d{n}', '{{\"n\":{n}}}')")).collect();
    sql::run(&client, &format!("INSERT INTO b (id, doc) VALUES {}", rows.join(", "))).await;
    sql::run(&client, "CREATE INDEX i ON b (n::int8)").await;
    let count = async || {
        let row = client.query_one("SELECT count(*) FROM i", &[]).await.expect("a count");
        assert_eq!(row.get::<_, i64>(0), 100);
    };
    count().await;

    // The cluster is the one of the certificates.
    let cluster = std::fs::read_to_string(place.path("certs").join("cluster")).expect("its id");
    let identity = std::fs::read_to_string(place.path("201").join("IDENTITY")).expect("a file");
    assert!(identity.contains(&format!("cluster {}", cluster.trim())), "{identity}");

    // A node may call for itself, but not for others.
    let indexer = place.seen_with(place.node("certs", 202)).await;
    let member = indexer.coordinator_member(NodeId(COORDINATOR)).expect("a member");
    member.status().await.expect("a node may ask for the status");
    let moved =
        proto::rpc::command::Command::RemoveNode(RemoveNode { node: NodeId(201), force: false });
    let error = member.propose(moved.into()).await.expect_err("no business of an indexer").message;
    assert!(error.contains("indexer 202") && error.contains("may not propose"), "{error}");
    let raft = member.raft(Vec::new()).await.expect_err("no coordinator").message;
    assert!(raft.contains("indexer 202") && raft.contains("may not call raft"), "{raft}");

    // Another authority, and another number than the one that is called.
    place.init("others");
    let stranger = refusal(&place.seen_with(place.node("others", 202)).await).await;
    assert!(stranger.contains("not signed by the authority of this cluster"), "{stranger}");
    let env = Env::real();
    let tls = TlsSettings::of_files(&env, place.node("certs", 202)).await.expect("a certificate");
    let members = vec![(NodeId(2), place.coordinator.clone())];
    let wrong = PeerDirectory(Peers::new(members, tls_connect(tls), &env));
    let wrong = wrong.coordinator_member(NodeId(2)).expect("a member").status().await;
    let wrong = wrong.expect_err("another node answers").message;
    assert!(wrong.contains("coordinator 2") && wrong.contains("coordinator 1 of"), "{wrong}");

    // A user's certificate, and none.
    let user = place.cert("certs", "user-ada", &["client", "--user", "ada"]);
    let read = |path: &Path| std::fs::read(path).expect("a file");
    let (ca, certificate, key) = (read(&user.ca), read(&user.certificate), read(&user.key));
    for own in [None, Some((&*certificate, &*key))] {
        let caller = UserTls::new(&env, &ca, own, Protocol::Grpc).expect("a configuration");
        let stream = TcpStream::connect(&place.coordinator).await.expect("a connection");
        let closed = async {
            let (mut stream, _) = caller.connect("localhost", stream).await?;
            stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await?;
            stream.read_u8().await
        };
        closed.await.expect_err("the port closes the connection");
    }
    let mut plain = TcpStream::connect(&place.coordinator).await.expect("a connection");
    plain.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.expect("sent");
    let mut answer = Vec::new();
    let _reset = plain.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(&[0, 0]), "no HTTP/2 without TLS");
    count().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_process_of_a_number_is_refused_by_name_and_the_first_goes_on() {
    let place = Place::new();
    let _coordinator = place.run(COORDINATOR);
    let _projector = place.run(101);
    let _indexer = place.run(201);
    let (_router, ready) = place.run(301);
    let client = place.admin(sql_address(&ready)).await;
    eventually("all nodes join", || async {
        sql::simple(&client, "SHOW NODES").await.ok().filter(|nodes| nodes.len() >= 4)
    })
    .await;
    sql::run(&client, "CREATE BUCKET b WITH (vbuckets = 8)").await;
    sql::run(&client, "INSERT INTO b (id, doc) VALUES ('d', '{\"n\":1}')").await;
    sql::run(&client, "CREATE INDEX i ON b (n::int8)").await;
    // The second process has the same certificate and no data directory.
    let second = tokio::task::spawn_blocking({
        let mut command = place.command(301, &place.node("certs", 301));
        move || refused(&mut command)
    });
    let mut scans = 0;
    while !second.is_finished() {
        let row = client.query_one("SELECT count(*) FROM i", &[]).await.expect("a count");
        assert_eq!(row.get::<_, i64>(0), 1);
        scans += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let told = second.await.expect("it ended");
    assert!(told.contains("node 301 is another process"), "{told}");
    assert!(scans > 100, "{scans} scans");
    sql::run(&client, "INSERT INTO b (id, doc) VALUES ('e', '{\"n\":2}')").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_http_port_of_a_node_needs_a_certificate_of_a_node_or_an_operator() {
    let place = Place::new();
    let mut command = place.command(COORDINATOR, &place.node("certs", COORDINATOR));
    let (child, ready) = spawn_ready(command.args(["--http", "127.0.0.1:0"]));
    let _coordinator = Running(child);
    let address = ready.trim().rsplit_once("http=").expect("an HTTP port").1;
    let env = Env::real();
    let get = async |files: &TlsFiles| {
        let read = |path: &Path| std::fs::read(path).expect("a file");
        let (ca, certificate, key) = (read(&files.ca), read(&files.certificate), read(&files.key));
        let caller = UserTls::new(&env, &ca, Some((&certificate, &key)), Protocol::Http);
        let stream = TcpStream::connect(address).await.expect("a connection");
        let shaken = caller.expect("a configuration").connect("localhost", stream).await;
        let (mut stream, _) = shaken?;
        stream.write_all(b"GET /status HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    };
    let operator = place.cert("certs", "operator", &["operator"]);
    let user = place.cert("certs", "user-ada", &["client", "--user", "ada"]);
    for files in [&operator, &place.node("certs", 201)] {
        let answer = get(files).await.expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    get(&user).await.expect_err("no user");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_certificate_is_taken_over_without_a_restart() {
    let place = Place::new();
    let _coordinator = place.run(COORDINATOR);
    let shown = async || {
        let env = Env::real();
        let ca = std::fs::read(place.path("certs").join("ca.pem")).expect("a file");
        let operator = place.cert("certs", "operator", &["operator"]);
        let read = |path: &Path| std::fs::read(path).expect("a file");
        let (certificate, key) = (read(&operator.certificate), read(&operator.key));
        let caller = UserTls::new(&env, &ca, Some((&certificate, &key)), Protocol::Grpc);
        let stream = TcpStream::connect(&place.coordinator).await.expect("a connection");
        let shaken = caller.expect("a configuration").connect("localhost", stream).await;
        shaken.expect("a handshake").1
    };
    let first = shown().await;
    let renew = ["node", "--role", "coordinator", "--id", "1", "--renew"];
    place.cert("certs", "coordinator-1", &renew);
    let (first, shown) = (Arc::new(first), &shown);
    eventually("the new certificate is shown", || {
        let first = Arc::clone(&first);
        async move { (shown().await != *first).then_some(()) }
    })
    .await;
}

#[test]
fn a_certificate_of_another_node_or_another_cluster_and_a_key_for_all_are_refused_at_the_start() {
    let place = Place::new();
    let other = refused(&mut place.command(201, &place.node("certs", 202)));
    assert!(other.contains("indexer 202") && other.contains("indexer 201"), "{other}");
    let files = place.node("certs", 201);
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&files.key, std::fs::Permissions::from_mode(0o644)).expect("a mode");
    let wide = refused(&mut place.command(201, &files));
    assert!(wide.contains("indexer-201.key") && wide.contains("chmod 600"), "{wide}");
    let mut without = sextant();
    without.env_remove("SEXTANT_INSECURE").args(["indexer", "--id", "201", "--data"]);
    without.arg(place.path("201")).args(["--peer-listen", "127.0.0.1:0"]);
    without.args(["--coordinators", "1=127.0.0.1:9"]);
    let none = refused(&mut without);
    assert!(none.contains("--tls-cert") && none.contains("--insecure"), "{none}");
    let everywhere = refused(without.args(["--insecure", "--bind", "0.0.0.0:0"]));
    assert!(everywhere.contains("--bind 0.0.0.0:"), "{everywhere}");
}

/// The test covers each kind of work between nodes: a method that its caller may not call would
/// stop the work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_with_certificates_do_all_their_work_between_each_other() {
    let place = Place::new();
    let files = place.path("files").join("v1");
    std::fs::create_dir_all(&files).expect("a directory");
    let lines: String = (0..50).map(|n| format!("{{\"id\":\"f{n}\",\"n\":{n}}}\n")).collect();
    std::fs::write(files.join("a.jsonl"), lines).expect("a file");
    let mut running: Vec<_> =
        [COORDINATOR, 101, 102, 201, 202].map(|id| place.run(id).0).into_iter().collect();
    let (_router, ready) = place.run(301);
    let client = place.admin(sql_address(&ready)).await;
    let done = async |statement: &str| {
        eventually(statement, || async {
            match client.batch_execute(statement).await {
                Ok(()) => Some(()),
                Err(error) => {
                    let code = error.code().map_or_else(String::new, |code| code.code().to_owned());
                    // The cluster is not ready yet.
                    assert!(
                        ["57P03", "55000", "55P03"].contains(&&*code),
                        "{statement}: {error:?}"
                    );
                    None
                }
            }
        })
        .await;
    };
    let quiet = async |what: &str| {
        eventually(what, || async {
            let moves = sql::simple(&client, "SHOW MOVES").await.ok()?;
            moves
                .iter()
                .all(|row| row.iter().flatten().any(|cell| cell == "ended" || cell == "done"))
                .then_some(())
        })
        .await;
    };
    eventually("all nodes join", || async {
        sql::simple(&client, "SHOW NODES").await.ok().filter(|nodes| nodes.len() >= 6)
    })
    .await;
    let counts = async |wanted: &str, from: &str| {
        sql::run(&client, "SET consistency = 'request_plus'").await;
        let statement = format!("SELECT count(*) FROM {from}");
        assert_eq!(sql::value(&client, &statement).await, wanted, "{from}");
    };

    // Copies of buckets and of slices, builds, moves.
    done("CREATE BUCKET b WITH (vbuckets = 8, copies = 2)").await;
    done("CREATE BUCKET c WITH (vbuckets = 4)").await;
    let rows: Vec<_> = (0..100).map(|n| format!("('d{n}', '{{\"n\":{n}}}')")).collect();
    done(&format!("INSERT INTO b (id, doc) VALUES {}", rows.join(", "))).await;
    done("CREATE INDEX i ON b (n::int8) PARTITION BY HASH (n) WITH (slices = 4)").await;
    done("CREATE INDEX j ON c (n::int8)").await;
    done("ALTER INDEX i SET (replicas = 1)").await;
    quiet("copies of slices").await;
    done("ALTER INDEX i SET (replicas = 0)").await;
    quiet("copies that go").await;
    done("REBALANCE").await;
    quiet("a rebalance").await;
    counts("100", "i").await;
    for to in [101, 102] {
        done(&format!("ALTER BUCKET c MOVE TO '{to}'")).await;
        done("INSERT INTO c (id, doc) VALUES ('x', '{\"n\":1}') ON CONFLICT (id) DO UPDATE SET doc = excluded.doc").await;
    }
    // A commit over two buckets, whose projectors agree.
    done("BEGIN; INSERT INTO b (id, doc) VALUES ('t', '{\"n\":1000}'); INSERT INTO c (id, doc) VALUES ('t', '{\"n\":1000}'); COMMIT").await;
    counts("101", "i").await;
    counts("2", "j").await;
    // A pushed bucket, whose vbuckets move from one projector to the other.
    done("CREATE BUCKET p FROM PUSH WITH (vbuckets = 8, projectors = 2)").await;
    done("ALTER BUCKET p MOVE VBUCKET 0, 1, 2, 3, 4, 5, 6, 7 TO '102'").await;
    // A data set, which all projectors load.
    done("CREATE BUCKET f FROM FILES WITH (partitions = 2, replication = 2)").await;
    done("CREATE INDEX k ON f (n::int8)").await;
    done("ALTER BUCKET f LOAD VERSION 'v1' FROM 'v1/*.jsonl'").await;
    counts("50", "k").await;
    // A generation of an index in addition to the serving one.
    done("REINDEX i").await;
    counts("101", "i").await;

    // Coordinators that vote, and the loss of the first one.
    for id in [2, 3] {
        running.push(place.run_waiting(id));
        done(&format!("ADD COORDINATOR '{id}' AT '{}'", place.address(id))).await;
    }
    eventually("three coordinators vote", || async {
        let nodes = sql::simple(&client, "SHOW NODES").await.ok()?;
        let coordinators =
            nodes.iter().filter(|row| row.iter().flatten().any(|cell| cell == "coordinator"));
        (coordinators.count() == 3).then_some(())
    })
    .await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    drop(running.remove(0));
    done("CREATE BUCKET d WITH (vbuckets = 2)").await;
    done("INSERT INTO b (id, doc) VALUES ('late', '{\"n\":1001}')").await;
    counts("102", "i").await;
    // A projector and an indexer come back, and catch up with the others.
    for id in [201, 102] {
        let place_of = [COORDINATOR, 101, 102, 201, 202].iter().position(|known| *known == id);
        drop(running.remove(place_of.expect("a process") - 1));
        running.insert(place_of.expect("a process") - 1, place.run(id).0);
    }
    done("INSERT INTO b (id, doc) VALUES ('later', '{\"n\":1002}')").await;
    eventually("all slices serve again", || async {
        let count = client.simple_query("SELECT count(*) FROM i").await;
        count.is_ok().then_some(())
    })
    .await;
    counts("103", "i").await;
}
