//! Tests `sextant dev` as users run it: after `kill -9` under load it restarts with every
//! acknowledged write, and a failed start explains its reason.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests run the product as a process"
)]

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tests::harness::connect;
use tests::harness::process::{Dev, dev, output, sextant};
use tests::harness::sql;
use tokio::runtime::Runtime;

const ROUNDS: u64 = 3;
/// The time for which a round writes before the process is killed.
const LOAD: Duration = Duration::from_millis(1500);

/// The known state of a writer's documents: each id with its last acknowledged number, and the ids
/// that must be absent. Ids of unanswered statements are in neither.
#[derive(Clone, Debug, Default)]
struct Acknowledged {
    documents: BTreeMap<String, Option<u64>>,
    unknown: BTreeMap<String, ()>,
    statements: u64,
}

#[test]
fn nothing_acknowledged_is_lost_by_kill_9() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let runtime = Runtime::new().expect("a runtime");
    let mut known = [Acknowledged::default(), Acknowledged::default()];
    for round in 0..ROUNDS {
        let process = Dev::start(data.path());
        let address = process.sql_address();
        runtime.block_on(async {
            let client = connect(address).await;
            sql::run(
                &client,
                "CREATE BUCKET IF NOT EXISTS b WITH (vbuckets = 16);
                 CREATE INDEX IF NOT EXISTS by_n ON b (n::int8) WITH (slices = 4);
                 CREATE INDEX IF NOT EXISTS by_writer ON b (writer, n::int8 DESC)
                    PARTITION BY HASH (writer) WITH (slices = 3, replicas = 1)",
            )
            .await;
            check(address, &known).await;
        });
        let stop = Arc::new(AtomicBool::new(false));
        let writers: Vec<_> = known
            .iter()
            .enumerate()
            .map(|(writer, known)| {
                let (known, stop) = (known.clone(), Arc::clone(&stop));
                runtime.spawn(write(address, writer, round, known, stop))
            })
            .collect();
        std::thread::sleep(LOAD);
        process.kill();
        stop.store(true, Ordering::Relaxed);
        for (writer, task) in writers.into_iter().enumerate() {
            known[writer] = runtime.block_on(task).expect("a writer");
        }
    }
    let process = Dev::start(data.path());
    runtime.block_on(check(process.sql_address(), &known));
    let statements: u64 = known.iter().map(|known| known.statements).sum();
    assert!(statements > 50 * ROUNDS, "{statements} acknowledged statements are no load");
    assert_eq!(process.terminate().code(), Some(0), "SIGTERM is a clean end");
}

/// Writes until the process has ended; returns the acknowledged state.
async fn write(
    address: SocketAddr,
    writer: usize,
    round: u64,
    mut known: Acknowledged,
    stop: Arc<AtomicBool>,
) -> Acknowledged {
    let client = connect(address).await;
    for n in 0u64.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        // Most documents are new, some are replaced and some deleted; every fourth statement writes several.
        let number = round * 1_000_000 + n;
        let ids: Vec<String> = match n % 8 {
            5 => vec![format!("w{writer}-{round}-{}", n / 2)],
            3 | 7 => (0..5).map(|part| format!("w{writer}-{round}-{n}-{part}")).collect(),
            6 => vec![format!("w{writer}-{round}-{}", n.saturating_sub(4))],
            _ => vec![format!("w{writer}-{round}-{n}")],
        };
        let delete = n % 8 == 6;
        let statement = match delete {
            true => format!("DELETE FROM b WHERE id = '{}'", ids[0]),
            false => {
                let doc = format!("{{\"n\":{number},\"writer\":\"w{writer}\"}}");
                let rows: Vec<_> = ids.iter().map(|id| format!("('{id}', '{doc}')")).collect();
                format!(
                    "INSERT INTO b (id, doc) VALUES {} \
                     ON CONFLICT (id) DO UPDATE SET doc = excluded.doc",
                    rows.join(", ")
                )
            }
        };
        match client.batch_execute(&statement).await {
            Ok(()) => {
                known.statements += 1;
                for id in ids {
                    known.unknown.remove(&id);
                    known.documents.insert(id, (!delete).then_some(number));
                }
            }
            Err(error) if error.as_db_error().is_none() => {
                known.unknown.extend(ids.into_iter().map(|id| (id, ())));
                break;
            }
            Err(error) => panic!("{statement}: {error:?}"),
        }
    }
    known
}

/// Checks that every acknowledged write is visible: by id, and in both indexes at one epoch.
async fn check(address: SocketAddr, known: &[Acknowledged; 2]) {
    let client = connect(address).await;
    sql::run(&client, "SET consistency = 'request_plus'; BEGIN READ ONLY").await;
    let by_n = numbers(&client, "SELECT id, n FROM by_n").await;
    let by_writer = numbers(&client, "SELECT id, n FROM by_writer").await;
    let count: usize =
        sql::value(&client, "SELECT count(*) FROM by_n").await.parse().expect("a number");
    sql::run(&client, "COMMIT").await;
    assert_eq!(by_n, by_writer, "two indexes at one moment");
    assert_eq!(count, by_n.len(), "each document has one entry");
    let mut certain = 0;
    for known in known {
        let ids: Vec<_> = known.documents.keys().collect();
        for ids in ids.chunks(500) {
            let list: Vec<_> = ids.iter().map(|id| format!("'{id}'")).collect();
            let select = format!("SELECT id, doc FROM b WHERE id IN ({})", list.join(", "));
            let documents = documents(&client, &select).await;
            for id in ids {
                assert_eq!(documents.get(*id), by_n.get(*id), "the document and the index: {id}");
            }
        }
        for (id, number) in &known.documents {
            if !known.unknown.contains_key(id) {
                assert_eq!(by_n.get(id), number.as_ref(), "{id} as it was acknowledged");
                certain += usize::from(number.is_some());
            }
        }
    }
    // All other documents belong to statements that were sent and not answered.
    let unknown = |id: &String| known.iter().any(|known| known.unknown.contains_key(id));
    let others = by_n.keys().filter(|id| unknown(id)).count();
    assert_eq!(by_n.len(), certain + others, "nothing is there that was never written");
}

async fn numbers(client: &tokio_postgres::Client, select: &str) -> BTreeMap<String, u64> {
    let rows = sql::simple(client, select).await.expect("rows");
    let text = |cell: &Option<String>| cell.clone().expect("no NULL");
    rows.iter().map(|row| (text(&row[0]), text(&row[1]).parse().expect("a number"))).collect()
}

async fn documents(client: &tokio_postgres::Client, select: &str) -> BTreeMap<String, u64> {
    let rows = sql::simple(client, select).await.expect("rows");
    let number = |doc: &str| {
        let doc: serde_json::Value = serde_json::from_str(doc).expect("JSON");
        doc["n"].as_u64().expect("a number")
    };
    rows.iter()
        .map(|row| {
            let cell = |n: usize| row[n].as_deref().expect("no NULL");
            (cell(0).to_owned(), number(cell(1)))
        })
        .collect()
}

/// Runs a command that must fail at once with a message that contains all these words.
fn refused(command: &mut Command, words: &[&str]) {
    let began = Instant::now();
    let ran = output(command);
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(1), "{command:?}: {told}");
    assert!(ran.stdout.is_empty(), "it never says that it is ready");
    for word in words {
        assert!(told.contains(word), "{command:?} must say {word:?}: {told}");
    }
    assert!(!told.contains("panicked"), "{told}");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[test]
fn a_failed_start_names_its_reason() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let process = Dev::start(data.path());
    let path = data.path().display().to_string();
    refused(&mut dev(data.path()), &[&path, "another process", "hint:"]);
    let other = tempfile::tempdir().expect("a temporary directory");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let elsewhere = listener.local_addr().expect("an address").port();
    for (option, port) in [
        ("--sql-port", process.sql_address().port()),
        ("--grpc-port", process.grpc_address().port()),
        ("--http-port", elsewhere),
    ] {
        let port = port.to_string();
        let mut taken = sextant();
        taken.arg("dev").arg("--data").arg(other.path());
        for name in ["--sql-port", "--grpc-port", "--http-port"] {
            taken.args([name, if name == option { &port } else { "0" }]);
        }
        refused(&mut taken, &[&port, "in use", option]);
    }
    assert_eq!(process.terminate().code(), Some(0));

    let file = other.path().join("file");
    std::fs::write(&file, "in its place").expect("a file");
    refused(&mut dev(&file), &[&file.display().to_string()]);
    refused(&mut dev(&file.join("below")), &[&file.display().to_string()]);
}

#[test]
fn the_error_of_a_port_in_use_names_the_option_of_the_router() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = listener.local_addr().expect("an address").to_string();
    for option in ["--sql", "--grpc", "--http"] {
        let mut router = sextant();
        router.args(["router", "--id", "1", "--coordinators", "1=127.0.0.1:1"]);
        for name in ["--sql", "--grpc", "--http"] {
            router.args([name, if name == option { &taken } else { "127.0.0.1:0" }]);
        }
        refused(&mut router, &[&taken, "in use", &format!("with {option};")]);
    }
}

#[test]
fn data_of_another_version_is_refused() {
    let data = tempfile::tempdir().expect("a temporary directory");
    assert_eq!(Dev::start(data.path()).terminate().code(), Some(0));
    for part in ["projector-1", "indexer-2"] {
        let version = data.path().join(part).join("VERSION");
        let now = std::fs::read_to_string(&version).expect("a file that says the version");
        for other in ["sextant data 999\n", "something else"] {
            std::fs::write(&version, other).expect("written");
            let directory = data.path().join(part).display().to_string();
            refused(&mut dev(data.path()), &[&directory, "version"]);
        }
        std::fs::write(&version, now).expect("written");
    }
    assert_eq!(Dev::start(data.path()).terminate().code(), Some(0), "nothing was changed");
}

#[test]
fn client_commands_work_against_a_running_process() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let process = Dev::start(data.path());
    let at = process.sql_address().to_string();
    let run = |arguments: &[&str]| {
        let ran = output(sextant().args(arguments));
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        (ran.status.code(), text(ran.stdout), text(ran.stderr))
    };
    let (code, out, err) = run(&[
        "sql",
        "--at",
        &at,
        "-c",
        "CREATE BUCKET b; CREATE INDEX i ON b (a)",
        "-c",
        "INSERT INTO b (id, doc) VALUES ('k1', '{\"a\": \"value of a\"}')",
        "-c",
        "SET consistency = 'request_plus'; SELECT * FROM i",
    ]);
    assert_eq!((code, &*err), (Some(0), ""));
    assert!(out.contains("k1") && out.contains("value of a") && out.contains("(1 row)"), "{out}");
    let began = Instant::now();
    let (code, out, err) = run(&["sql", "--at", &at, "-c", "SELECT * FROM nowhere"]);
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "an unknown name is known to be: {:?}",
        began.elapsed()
    );
    assert_eq!((code, &*out), (Some(1), ""));
    assert!(err.contains("42P01") && err.contains("nowhere"), "{err}");
    let (code, out, err) = run(&["status", "--at", &at]);
    assert_eq!((code, &*err), (Some(0), ""));
    for word in ["coordinator", "projector", "indexer", "router", "online", "SLICES"] {
        assert!(out.contains(word), "status tells of {word}: {out}");
    }
    let (code, out, _) = run(&["--help"]);
    assert_eq!(code, Some(0));
    for word in ["demo", "dev", "coordinator", "projector", "indexer", "router", "sql", "status"] {
        assert!(out.contains(word), "--help tells of {word}: {out}");
    }
    assert_eq!(process.terminate().code(), Some(0));
    let (code, _, err) = run(&["sql", "--at", &at, "-c", "SELECT 1"]);
    assert_eq!(code, Some(1));
    assert!(err.contains(&at) && err.contains("hint:"), "{err}");
    assert_eq!(run(&["--no-such-option"]).0, Some(2));
}
