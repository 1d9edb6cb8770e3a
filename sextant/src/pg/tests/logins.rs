//! Tests of log-ins with a password, over connections within this process.

use proto::model::ids::UserId;
use proto::model::users::{Grants, User, Users};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;

use super::raw::{Raw, bind, execute, flush, parse, sync};
use super::*;
use crate::auth::newest_users::NewestUsers;
use crate::auth::verifier::{ITERATIONS, derive};

/// Returns users "ada" and "bob" with the passwords "pencil" and "caf\u{e9}".
fn users(cas: u64, secret_no: u64) -> Arc<Users> {
    let user = |id, name: &str, password| {
        let user = User {
            id: UserId(id),
            name: name.into(),
            verifier: Some(derive(password, [id as u8; 16], ITERATIONS)),
            until_unix_ms: None,
            tokens: Vec::new(),
            grants: Grants::default(),
            limits: Default::default(),
            secret_no,
        };
        (name.to_owned(), Arc::new(user))
    };
    let by_name = [user(1, "ada", "pencil"), user(2, "bob", "caf\u{e9}")].into();
    Arc::new(Users { cas, by_name, ..Users::default() })
}

/// The result with which a connection has ended.
type Ended = Result<(), tokio_postgres::Error>;

struct Closed {
    cluster: Cluster,
    known: Arc<NewestUsers>,
}

impl Closed {
    fn new() -> Self {
        let (mut cluster, known) = (Cluster::new(), Arc::new(NewestUsers::new(users(1, 1))));
        let doors = LoginPolicy::for_users(Arc::clone(&known), None, 10, &cluster.env);
        let provider = MemoryAccess::default();
        cluster.principals = Arc::clone(&provider.principals);
        cluster.memory = Arc::clone(&provider.memory);
        cluster.server =
            PgServer::new(Arc::new(provider), doors, cluster.env.clone(), PgConfig::default());
        Self { cluster, known }
    }

    async fn log_in(
        &self,
        user: &str,
        password: &str,
    ) -> Result<(Client, Task), tokio_postgres::Error> {
        let mut config = tokio_postgres::Config::new();
        config.user(user).password(password).dbname("db");
        let (client, connection) = config.connect_raw(self.cluster.dial(), NoTls).await?;
        let task = self.cluster.env.spawn_request("client", async move {
            let _ended = connection.await;
        });
        Ok((client, task))
    }

    /// Returns a session of "ada", and a receiver of the end of its connection.
    async fn watched(&self) -> (Client, oneshot::Receiver<Ended>, Task) {
        let mut config = tokio_postgres::Config::new();
        config.user("ada").password("pencil").dbname("db");
        let (ada, connection) = config.connect_raw(self.cluster.dial(), NoTls).await.unwrap();
        let (ended, ends) = oneshot::channel();
        let task = self.cluster.env.spawn_request("client", async move {
            let _nobody_waits = ended.send(connection.await);
        });
        (ada, ends, task)
    }

    /// Returns a session of "ada" for raw messages, which a driver has logged in.
    async fn raw(&self) -> Raw {
        let mut server = self.cluster.dial();
        let (mut near, far) = tokio::io::duplex(8 << 10);
        let mut config = tokio_postgres::Config::new();
        config.user("ada").password("pencil").dbname("db");
        let driver = config.connect_raw(far, NoTls);
        tokio::select! {
            relayed = tokio::io::copy_bidirectional(&mut near, &mut server) => panic!("{relayed:?}"),
            logged_in = driver => drop(logged_in.expect("a session")),
        }
        Raw::over(server)
    }

    fn drop_ada(&self) {
        let mut left = Users { cas: 2, ..Users::default() };
        left.by_name = users(1, 1).by_name.clone();
        left.by_name.remove("ada");
        self.known.learn(Arc::new(left));
    }

    /// Sends a start-up packet, then `bytes`; returns all bytes of the server.
    async fn say(&self, bytes: &[&[u8]]) -> String {
        let mut socket = self.cluster.dial();
        let body = b"\0\x03\0\0user\0ada\0\0";
        socket.write_u32(body.len() as u32 + 4).await.unwrap();
        socket.write_all(body).await.unwrap();
        for bytes in bytes {
            // The server may have hung up.
            let _sent = socket.write_all(bytes).await;
        }
        let mut heard = Vec::new();
        let read = socket.read_to_end(&mut heard);
        tokio::time::timeout(Duration::from_secs(20), read).await.expect("an end").unwrap();
        String::from_utf8_lossy(&heard).into_owned()
    }
}

/// True for the error of a session whose user was dropped or has another password. The server may
/// send this error without waiting for a statement.
fn has_ended(error: &tokio_postgres::Error) -> bool {
    error.is_closed() || state(error) == "57P05"
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[kind][..], &length, body].concat()
}

#[tokio::test]
async fn a_session_begins_with_a_password() {
    let closed = Closed::new();
    for (user, password) in [("ada", "pencil"), ("bob", "caf\u{e9}"), ("bob", "cafe\u{301}")] {
        let (client, _task) = closed.log_in(user, password).await.expect(user);
        assert_eq!(simple(&client, "SELECT current_user").await, [user]);
        assert_eq!(simple(&client, "SHOW password_encryption").await, ["scram-sha-256"]);
    }
    let principals = closed.cluster.principals.lock().unwrap().clone();
    let names: Vec<_> = principals.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["user \"ada\"", "user \"bob\"", "user \"bob\""]);
}

#[tokio::test]
async fn log_ins_that_fail_are_told_apart_by_nothing() {
    let closed = Closed::new();
    let mut texts = Vec::new();
    for (user, password) in [("ada", "pen"), ("eve", "pencil"), ("bob", "pencil")] {
        let error = closed.log_in(user, password).await.map(drop).expect_err(user);
        assert_eq!(state(&error), "28P01");
        let error = error.as_db_error().expect("the server's").clone();
        assert_eq!(error.severity(), "FATAL");
        texts.push((error.message().replace(user, "…"), error.hint().map(str::to_owned)));
    }
    assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
    assert!(closed.cluster.principals.lock().unwrap().is_empty(), "no access was given");
}

#[tokio::test]
async fn a_session_ends_when_its_password_changes() {
    let closed = Closed::new();
    let (client, _task) = closed.log_in("ada", "pencil").await.unwrap();
    let prepared = client.prepare("SELECT 1").await.unwrap();
    client.query(&prepared, &[]).await.unwrap();
    closed.known.learn(users(2, 2));
    let error = client.query(&prepared, &[]).await.expect_err("the session has ended");
    assert!(has_ended(&error), "{error:?}");
    assert!(client.simple_query("SELECT 1").await.is_err(), "the connection is closed");
    let (client, _task) = closed.log_in("ada", "pencil").await.unwrap();
    closed.known.learn(Arc::new(Users { cas: 3, ..Users::default() }));
    let error = client.simple_query("SELECT 1").await.expect_err("the user is gone");
    assert!(has_ended(&error), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn an_idle_session_ends_with_its_user_and_its_transaction_with_it() {
    let closed = Closed::new();
    let others = closed.log_in("bob", "caf\u{e9}").await.unwrap();
    let (ada, ends, _task) = closed.watched().await;
    ada.batch_execute("BEGIN; SELECT 1").await.expect("a transaction");
    closed.drop_ada();
    let ended = tokio::time::timeout(Duration::from_secs(1), ends).await;
    let ended = ended.expect("the server ends the session by itself").expect("an end");
    assert_eq!(state(&ended.expect_err("the reason")), "57P05");
    assert_eq!(simple(&others.0, "SELECT 1").await, ["1"], "another user goes on");
}

#[tokio::test]
async fn what_a_user_has_not_ended_with_sync_is_undone_with_the_user() {
    let closed = Closed::new();
    let (bob, _task) = closed.log_in("bob", "caf\u{e9}").await.unwrap();
    bob.batch_execute("CREATE BUCKET b WITH (vbuckets = 4)").await.unwrap();
    let insert = |id: &str| parse(&format!("INSERT INTO b (id, doc) VALUES ('{id}', '{{}}')"));
    let found = "SELECT id FROM b WHERE id IN ('a', 'b')";
    let mut ada = closed.raw().await;
    ada.send(&[insert("a"), bind(), execute(0), sync()]).await;
    assert_eq!(ada.until_ready().await, "12CZI");
    ada.send(&[insert("b"), bind(), execute(0), flush()]).await;
    assert_eq!(ada.until(b'C').await, "12C");
    closed.drop_ada();
    ada.send(&[sync()]).await;
    let told = ada.until_ready().await;
    assert!(told.contains("E(57P05)") && !told.contains('Z'), "{told}");
    assert_eq!(closed.cluster.memory.uncommitted(), 0);
    assert_eq!(simple(&bob, found).await, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn an_idle_copy_ends_with_its_user() {
    let closed = Closed::new();
    let (ada, ends, _task) = closed.watched().await;
    ada.batch_execute("CREATE BUCKET b WITH (vbuckets = 4)").await.unwrap();
    let copy = ada.copy_in::<_, Bytes>("COPY b FROM STDIN (FORMAT jsonl)").await.unwrap();
    let mut copy = std::pin::pin!(copy);
    closed.drop_ada();
    let ended = tokio::time::timeout(Duration::from_secs(1), ends).await;
    ended.expect("the server ends the session by itself").expect("an end").ok();
    assert!(has_ended(&copy.as_mut().finish().await.expect_err("the user is gone")));
}

#[tokio::test]
async fn a_session_stays_that_of_its_user() {
    let closed = Closed::new();
    let (client, _task) = closed.log_in("ada", "pencil").await.unwrap();
    for sql in [
        "SET session_authorization = 'bob'",
        "SELECT set_config('session_authorization', 'bob', false)",
        "SELECT set_config('session_authorization', 'bob', true)",
        "BEGIN; SET LOCAL session_authorization = 'bob'",
    ] {
        let error = client.simple_query(sql).await.expect_err(sql);
        assert_eq!(state(&error), "42501", "{sql}");
        client.simple_query("ROLLBACK").await.unwrap();
        assert_eq!(simple(&client, "SHOW session_authorization").await, ["ada"], "{sql}");
    }
    for sql in [
        "SET session_authorization = 'ada'",
        "RESET session_authorization",
        "SET session_authorization = DEFAULT",
        "RESET ALL",
        "DISCARD ALL",
    ] {
        client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        assert_eq!(simple(&client, "SHOW session_authorization").await, ["ada"], "{sql}");
    }
    let mut config = tokio_postgres::Config::new();
    config.user("ada").password("pencil").options("-c session_authorization=bob");
    let refused = config.connect_raw(closed.cluster.dial(), NoTls).await.err().expect("refused");
    assert_eq!(state(&refused), "42501");
}

#[tokio::test]
async fn hostile_messages_of_a_log_in_end_it_with_an_error() {
    let closed = Closed::new();
    let first = |name: &str, length: i32, data: &[u8]| {
        message(b'p', &[name.as_bytes(), b"\0", &length.to_be_bytes(), data].concat())
    };
    let good = b"n,,n=,r=abcdef";
    for (what, bytes) in [
        ("a password in clear", message(b'p', b"pencil\0")),
        ("a query", message(b'Q', b"SELECT 1\0")),
        ("no body", message(b'p', b"")),
        ("another mechanism", first("PLAIN", 3, b"abc")),
        ("channel binding without encryption", first("SCRAM-SHA-256-PLUS", 14, good)),
        ("a negative length", first("SCRAM-SHA-256", -1, b"")),
        ("a huge length inside", first("SCRAM-SHA-256", i32::MAX, good)),
        ("a short length inside", first("SCRAM-SHA-256", 3, good)),
        ("a huge message", [&b"p\x00\x10\x00\x00"[..], &[b'x'; 100]].concat()),
        ("an enormous message", [&b"p\x7f\xff\xff\xff"[..], &[b'x'; 100]].concat()),
        ("a length below four", b"p\0\0\0\x03abc".to_vec()),
        ("no text", first("SCRAM-SHA-256", 2, b"\xff\xfe")),
    ] {
        let heard = closed.say(&[&bytes]).await;
        assert!(heard.contains("SCRAM-SHA-256\0\0"), "{what}: {heard:?}");
        assert!(heard.contains("C08P01\0") && heard.contains("FATAL"), "{what}: {heard:?}");
        assert!(!heard.contains("ReadyForQuery") && !heard.contains("server_version"), "{what}");
    }
    let begun = first("SCRAM-SHA-256", good.len() as i32, good);
    for last in [message(b'p', b""), message(b'p', b"c=biws,r=abc,p=AAAA"), message(b'X', b"")] {
        let heard = closed.say(&[&begun, &last]).await;
        assert!(heard.contains("C08P01\0") && heard.contains("r=abcdef"), "{heard:?}");
    }
    assert!(closed.cluster.principals.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn silent_clients_do_not_keep_others_from_logging_in() {
    let closed = Closed::new();
    let places = PgConfig::default().starting_max;
    let mut silent: Vec<_> = (0..places).map(|_| closed.cluster.dial()).collect();
    for socket in &mut silent {
        let body = b"\0\x03\0\0user\0ada\0\0";
        socket.write_u32(body.len() as u32 + 4).await.unwrap();
        socket.write_all(body).await.unwrap();
        assert_eq!(socket.read_u8().await.unwrap(), b'R');
    }
    let refused = closed.log_in("ada", "pencil").await.map(drop).expect_err("no place");
    assert_eq!(state(&refused), "53300");
    tokio::time::sleep(Duration::from_secs(2)).await;
    let _session = closed.log_in("ada", "pencil").await.expect("the place of the oldest");
}
