//! Tests of the limits of clients: each limit is reached, and the error names the setting.

use std::future::pending;

use proto::model::ids::UserId;
use proto::model::users::{Grants, User, Users};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::audit::Audit;
use crate::auth::newest_users::NewestUsers;
use crate::auth::verifier::{ITERATIONS, derive};
use crate::flow::{ClientCapacity, ClientLimits};
use crate::pg::message::conn::{Conn, Input};

/// A cluster with limits of clients.
struct Limited {
    cluster: Cluster,
    flow: Arc<ClientCapacity>,
}

impl Limited {
    fn with(doors: Arc<LoginPolicy>) -> Self {
        let (mut cluster, provider) = (Cluster::new(), MemoryAccess::default());
        cluster.memory = Arc::clone(&provider.memory);
        let flow = Arc::clone(doors.flow());
        let env = cluster.env.clone();
        cluster.server = PgServer::new(Arc::new(provider), doors, env, PgConfig::default());
        Self { cluster, flow }
    }

    /// Returns a cluster that trusts its clients.
    fn new(limits: ClientLimits) -> Self {
        Self::with(LoginPolicy::trust_within(limits, Audit::off(), &Env::real()))
    }

    /// Returns a cluster with users "ada" and "bob", whose passwords are their names.
    fn of_users(limits: ClientLimits) -> Self {
        let user = |id, name: &str| {
            let user = User {
                id: UserId(id),
                name: name.into(),
                verifier: Some(derive(name, [id as u8; 16], ITERATIONS)),
                until_unix_ms: None,
                tokens: Vec::new(),
                grants: Grants::default(),
                limits: Default::default(),
                secret_no: 1,
            };
            (name.to_owned(), Arc::new(user))
        };
        let by_name = [user(1, "ada"), user(2, "bob")].into();
        let users = Arc::new(Users { cas: 1, by_name, ..Users::default() });
        let known = Arc::new(NewestUsers::new(users));
        Self::with(LoginPolicy::for_users_within(known, None, (limits, Audit::off()), &Env::real()))
    }

    async fn log_in(&self, user: &str) -> Result<(Client, Task), tokio_postgres::Error> {
        let mut config = tokio_postgres::Config::new();
        config.user(user).password(user).dbname("db");
        let (client, connection) = config.connect_raw(self.cluster.dial(), NoTls).await?;
        let task = self.cluster.env.spawn_request("client", async move {
            let _ended = connection.await;
        });
        Ok((client, task))
    }

    fn refused(&self, setting: &str) -> u64 {
        let counted = self.flow.refusals.by_setting().find(|(name, _)| *name == setting);
        counted.expect("a limit").1
    }
}

/// Returns the SQLSTATE of an error, and checks that its hint names a setting.
fn refusal<T>(refused: Result<T, tokio_postgres::Error>, setting: &str) -> String {
    let error = refused.err().expect("a refusal");
    let hint = error.as_db_error().and_then(|error| error.hint()).unwrap_or_default();
    assert!(hint.contains(setting), "{error:?}");
    state(&error)
}

#[tokio::test]
async fn a_user_has_no_more_sessions_than_it_may() {
    let limits = ClientLimits { user_sessions_max: 2, ..ClientLimits::default() };
    let limited = Limited::of_users(limits);
    let first = limited.log_in("ada").await.expect("a session");
    let _second = limited.log_in("ada").await.expect("a session");
    let third = limited.log_in("ada").await;
    assert_eq!(refusal(third, "user_sessions_max = 2"), "53300");
    assert_eq!(simple(&first.0, "SELECT 1").await, ["1"], "the first goes on");
    let (bob, _task) = limited.log_in("bob").await.expect("another user");
    assert_eq!(simple(&bob, "SELECT current_user").await, ["bob"]);
    assert_eq!(limited.refused("user_sessions_max"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_user_runs_no_more_statements_at_once_than_it_may() {
    for (limits, setting, bob_runs) in [
        (
            ClientLimits { user_statements_max: 1, ..ClientLimits::default() },
            "user_statements_max",
            true,
        ),
        (ClientLimits { statements_max: 1, ..ClientLimits::default() }, "statements_max", false),
    ] {
        let limited = Limited::of_users(limits);
        let (ada, _ada) = limited.log_in("ada").await.expect("a session");
        let (again, _again) = limited.log_in("ada").await.expect("a session");
        let (bob, _bob) = limited.log_in("bob").await.expect("a session");
        simple(&ada, "CREATE BUCKET b WITH (vbuckets = 4)").await;
        simple(&again, "BEGIN").await;
        let insert = ada.prepare("INSERT INTO b (id, doc) VALUES ($1, '{}')").await.unwrap();
        let begun = tokio::select! {
            biased;
            // The statement takes long, and continues.
            done = ada.execute(&insert, &[&"slow"]) => done.map(drop),
            () = async {
                while limited.flow.users.running() == 0 {
                    tokio::task::yield_now().await;
                }
                let second = again.simple_query("SELECT 2").await;
                assert_eq!(refusal(second, setting), "53300");
                again.simple_query("ROLLBACK").await.expect("the end of a transaction");
                assert_eq!(refusal(again.prepare("SELECT 2").await, setting), "53300");
                let behind = again.simple_query("ROLLBACK; SELECT 2").await;
                assert_eq!(refusal(behind, setting), "53300", "the place of an end is for ends");
                let other = bob.simple_query("SELECT 3").await;
                assert_eq!(other.is_ok(), bob_runs, "{setting}");
                pending::<()>().await;
            } => Ok(()),
        };
        begun.expect("the statement that was first");
        assert_eq!(simple(&again, "SELECT 2").await, ["2"], "the place is free again");
        assert!(limited.refused(setting) >= 1);
        assert_eq!(limited.flow.users.running(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn the_texts_of_all_sessions_have_memory_together() {
    let limits = ClientLimits { session_memory_bytes: 1 << 20, ..ClientLimits::default() };
    let limited = Limited::new(limits);
    let (first, _first) = limited.cluster.client().await;
    let (second, _second) = limited.cluster.client().await;
    let long = format!("SELECT '{}'", "x".repeat(60_000));
    let kept = first.prepare(&long).await.expect("it is alone");
    assert_eq!(limited.flow.session_memory.free_bytes() >> 10, 1024 - 587);
    simple(&second, "SET statement_timeout = 50").await;
    assert_eq!(refusal(second.prepare(&long).await, "session_memory_total_mb"), "53200");
    let message = format!("SELECT 1 -- {}", "x".repeat(700_000));
    let refused = second.simple_query(&message).await;
    assert_eq!(refusal(refused, "session_memory_total_mb"), "53200");
    assert_eq!(simple(&second, "SELECT 1").await, ["1"], "short texts go on");
    assert_eq!(limited.refused("session_memory_total_mb"), 2);
    drop(kept);
    simple(&first, "DEALLOCATE ALL").await;
    assert_eq!(simple(&second, &message).await, ["1"]);
    assert_eq!(limited.flow.session_memory.free_bytes(), 1 << 20);
}

#[tokio::test(start_paused = true)]
async fn rows_that_nobody_asks_for_are_given_up() {
    let idle = Duration::from_secs(20);
    let limits = ClientLimits { cursor_idle: Some(idle), ..ClientLimits::default() };
    let limited = Limited::new(limits);
    let (mut client, _task) = cities(&limited.cluster).await;
    let transaction = client.transaction().await.unwrap();
    let portal = transaction.bind("SELECT id FROM cities ORDER BY country", &[]).await.unwrap();
    for _ in 0..2 {
        assert_eq!(transaction.query_portal(&portal, 1).await.unwrap().len(), 1);
        tokio::time::sleep(idle / 2).await;
    }
    tokio::time::sleep(idle).await;
    let gone = transaction.query_portal(&portal, 1).await;
    assert_eq!(refusal(gone, "cursor_idle_s"), "34000");
    assert_eq!(limited.refused("cursor_idle_s"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_session_without_a_statement_ends() {
    let idle = Duration::from_secs(5);
    let limits = ClientLimits { session_idle: Some(idle), ..ClientLimits::default() };
    let limited = Limited::new(limits);
    let (client, _task) = limited.cluster.client().await;
    let (kept, _kept) = limited.cluster.client().await;
    assert_eq!(simple(&kept, "SHOW idle_session_timeout").await, ["5000"]);
    simple(&kept, "SET idle_session_timeout = 0").await;
    tokio::time::sleep(idle / 2).await;
    assert_eq!(simple(&client, "SELECT 1").await, ["1"]);
    tokio::time::sleep(2 * idle).await;
    let error = client.simple_query("SELECT 1").await.expect_err("the session has ended");
    assert!(error.is_closed() || state(&error) == "57P05", "{error:?}");
    assert_eq!(simple(&kept, "SELECT 1").await, ["1"], "it has a setting of its own");
    assert_eq!(limited.refused("idle_session_s"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_no_rows_is_disconnected() {
    let stall = Duration::from_secs(30);
    let limits = ClientLimits { write_stall: Some(stall), ..ClientLimits::default() };
    let limited = Limited::new(limits);
    let mut socket = limited.cluster.dial();
    let body = b"\0\x03\0\0user\0ada\0\0";
    socket.write_u32(body.len() as u32 + 4).await.unwrap();
    socket.write_all(body).await.unwrap();
    let query = format!("SELECT '{}'\0", "x".repeat(15_000));
    let began = tokio::time::Instant::now();
    // The answers fill the pipe, and then the server reads no further statement.
    let sends = async {
        loop {
            socket.write_u8(b'Q').await?;
            socket.write_u32(query.len() as u32 + 4).await?;
            socket.write_all(query.as_bytes()).await?;
        }
    };
    let ended: std::io::Result<()> = sends.await;
    ended.expect_err("the server has hung up");
    assert!((stall..2 * stall).contains(&began.elapsed()), "{:?}", began.elapsed());
    assert_eq!(limited.refused("write_stall_s"), 1);
    let mut rest = Vec::new();
    socket.read_to_end(&mut rest).await.expect("the end");
}

#[tokio::test]
async fn a_full_address_may_still_cancel_a_statement() {
    let limits = ClientLimits { address_connections_max: Some(1), ..ClientLimits::default() };
    let limited = Limited::new(limits);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = tokio_postgres::Config::new();
    config.host("127.0.0.1").port(listener.local_addr().unwrap().port()).user("me").dbname("db");
    let (server, env) = (limited.cluster.server.clone(), limited.cluster.env.clone());
    let _serving = env.spawn_request("sql", async move { drop(server.serve(listener).await) });
    let (client, connection) = config.connect(NoTls).await.unwrap();
    let _task = env.spawn_request("client", async move { drop(connection.await) });
    let refused = config.connect(NoTls).await;
    assert_eq!(refusal(refused, "address_connections_max"), "53300");
    client.batch_execute("CREATE BUCKET b WITH (vbuckets = 4)").await.unwrap();
    client.batch_execute("CREATE INDEX stuck ON b (n)").await.unwrap();
    let cancel = client.cancel_token();
    let cancels = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let _the_server_hangs_up = cancel.cancel_query(NoTls).await;
    };
    let runs =
        tokio::time::timeout(Duration::from_secs(20), client.simple_query("SELECT n FROM stuck"));
    let (stopped, ()) = tokio::join!(runs, cancels);
    assert_eq!(state(&stopped.expect("it is cancelled").unwrap_err()), "57014");
}

#[tokio::test(start_paused = true)]
async fn a_skipped_message_keeps_no_memory() {
    let limited = Limited::new(ClientLimits::default());
    let all = limited.flow.session_memory.free_bytes();
    let mut socket = limited.cluster.dial();
    let start = b"\0\x03\0\0user\0ada\0\0";
    socket.write_u32(start.len() as u32 + 4).await.unwrap();
    socket.write_all(start).await.unwrap();
    // An error, and a message up to the Sync, which does not come.
    for text in ["SELEC".to_owned(), "x".repeat(100 << 10)] {
        let body = format!("\0{text}\0\0\0");
        socket.write_u8(b'P').await.unwrap();
        socket.write_u32(body.len() as u32 + 4).await.unwrap();
        socket.write_all(body.as_bytes()).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(limited.flow.session_memory.free_bytes(), all);
}

#[tokio::test]
async fn a_large_message_has_memory_until_the_next_one_is_read() {
    let limits = ClientLimits { session_memory_bytes: 1 << 20, ..ClientLimits::default() };
    let flow = ClientCapacity::new(limits);
    let (ours, mut theirs) = tokio::io::duplex(1 << 20);
    let mut conn = Conn::new(ours);
    conn.apply_limits(&flow, &Principal::Trusted);
    // COPY reads many messages as one statement.
    for (kib, held_kib) in [(100, 101), (100, 101), (300, 301), (70, 71), (1, 0)] {
        theirs.write_u8(b'd').await.unwrap();
        theirs.write_u32((kib << 10) + 4).await.unwrap();
        theirs.write_all(&vec![b'x'; (kib << 10) as usize]).await.unwrap();
        let read = conn.read().await;
        assert!(matches!(read, Ok(Input::Message(_))), "{kib} KiB");
        let held = (1 << 20) - flow.session_memory.free_bytes();
        assert_eq!(held >> 10, held_kib, "{kib} KiB");
    }
}
