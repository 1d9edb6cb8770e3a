//! Tests single faults in the files of a stopped cluster: a flipped bit, a zeroed range, a cut, a
//! removed file, an old copy, in each kind of file of each role. After each fault the cluster
//! either refuses and names the file, or answers with exactly the right rows.
//!
//! A second cluster has a copy of each slice on another indexer. A fault strikes one indexer there,
//! and the queries wait until `SHOW SLICES` reports that all slices are ready: a damaged slice was
//! healed from its copy by then. Then the damaged indexer starts again without the other one, so
//! that its own copies must have the right rows.
//!
//! A third one has a bucket with copies on two projectors, of which one is damaged
//! (`tamper/copies.rs`).
//!
//! Some of the pairs of a file and a fault run here, and all of them with `SEXTANT_TAMPER=all`
//! (docs/testing.md).
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the test damages files of the product's processes"
)]

#[path = "tamper/copies.rs"]
mod copies;

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tests::harness::process::{Dev, dev};
use tests::harness::tamper::{FAULTS, Fault, Files, damaged, read_files, write_files};
use tests::harness::{connect, sql};
use tokio::runtime::Runtime;
use tokio_postgres::Client;

/// The time limit for a damaged cluster to answer or to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// A part of the error of a projector that waits for the coordinator.
const FIRST_CATALOG: &str = "waits for its first catalog";

type Rows = Vec<Vec<Option<String>>>;

/// The outcome of a start on a damaged directory.
enum Outcome {
    /// The process ended, or a statement failed, with this text.
    Refused(String),
    /// The answers to the queries.
    Answered(Vec<Rows>),
}

const QUESTIONS: [&str; 3] = [
    "SELECT n, id FROM by_n ORDER BY n",
    "SELECT city, n FROM by_city ORDER BY city, n",
    "SELECT count(*) FROM by_city",
];

/// The shape of a cluster.
#[derive(Clone, Copy)]
struct Shape {
    indexers: &'static str,
    /// The number of copies of each slice besides the first.
    replicas: u8,
    /// True if the queries wait until all slices are ready.
    waits: bool,
}

const ALONE: Shape = Shape { indexers: "1", replicas: 0, waits: true };
const WITH_COPIES: Shape = Shape { indexers: "2", replicas: 1, waits: true };
const WITHOUT_THE_OTHER: Shape = Shape { indexers: "1", replicas: 0, waits: false };

fn start(data: &Path, shape: Shape) -> Dev {
    Dev::start_by(dev(data).args(["--nodes", shape.indexers]))
}

fn insert(numbers: std::ops::Range<u64>, plus: u64) -> String {
    let row = |n: u64| {
        let number = n + plus;
        format!("('d{n:03}', '{{\"n\":{number},\"city\":\"c{}\"}}')", number % 7)
    };
    let rows: Vec<_> = numbers.map(row).collect();
    let rows = rows.join(", ");
    format!(
        "INSERT INTO b (id, doc) VALUES {rows} ON CONFLICT (id) DO UPDATE SET doc = excluded.doc"
    )
}

async fn ask(client: &Client, shape: Shape) -> Result<Vec<Rows>, tokio_postgres::Error> {
    if shape.waits {
        wait_ready(client).await?;
    }
    client.batch_execute("SET consistency = 'request_plus'").await?;
    let mut answers = Vec::new();
    for question in QUESTIONS {
        answers.push(sql::simple(client, question).await?);
    }
    Ok(answers)
}

/// Waits until all copies of all slices are ready.
async fn wait_ready(client: &Client) -> Result<(), tokio_postgres::Error> {
    loop {
        let slices = sql::simple(client, "SHOW SLICES").await?;
        let is_ready =
            |slice: &Vec<Option<String>>| slice.iter().flatten().any(|cell| cell == "ready");
        if slices.iter().all(is_ready) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Returns an old copy of a directory, the newest directory, and the right answers.
fn filled(runtime: &Runtime, shape: Shape) -> (Files, Files, Vec<Rows>) {
    let data = tempfile::tempdir().expect("a temporary directory");
    let process = start(data.path(), shape);
    let with = format!("WITH (slices = 2, replicas = {})", shape.replicas);
    runtime.block_on(async {
        let client = connect(process.sql_address()).await;
        sql::run(&client, "CREATE BUCKET b WITH (vbuckets = 8)").await;
        sql::run(&client, &insert(0..200, 0)).await;
        sql::run(&client, &format!("CREATE INDEX by_n ON b (n::int8) {with}")).await;
        sql::run(&client, &format!("CREATE INDEX by_city ON b (city, n::int8) {with}")).await;
        sql::run(&client, &insert(0..50, 1_000)).await;
        ask(&client, shape).await.expect("answers");
    });
    process.terminate();
    let old = read_files(data.path());
    let process = start(data.path(), shape);
    let right = runtime.block_on(async {
        let client = connect(process.sql_address()).await;
        sql::run(&client, &insert(100..150, 2_000)).await;
        sql::run(&client, "DELETE FROM b WHERE id IN ('d001', 'd101', 'd199')").await;
        ask(&client, shape).await.expect("answers")
    });
    process.kill();
    (old, read_files(data.path()), right)
}

/// Starts the cluster on damaged files and queries it; returns the outcome.
fn outcome(runtime: &Runtime, data: &Path, shape: Shape) -> Outcome {
    let mut child = dev(data)
        .args(["--nodes", shape.indexers])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let stdout = child.stdout.take().expect("piped");
    let mut stderr = child.stderr.take().expect("piped");
    let log = std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ended = stderr.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let (said, lines) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let _ended = std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line);
        let _nobody = said.send(line);
    });
    let ready = lines.recv_timeout(PATIENCE).unwrap_or_default();
    let sql_address = ready
        .split_whitespace()
        .find_map(|word| word.strip_prefix("sql=")?.parse::<std::net::SocketAddr>().ok());
    let mut told = String::new();
    let mut answers = None;
    if let Some(address) = sql_address {
        let asked = runtime.block_on(async {
            let asking = async {
                loop {
                    let asked = ask(&connect(address).await, shape).await;
                    match &asked {
                        // The projector answers its clients with a retryable error until it has received the catalog.
                        Err(error) if format!("{error:?}").contains(FIRST_CATALOG) => {}
                        _ => return asked,
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            };
            tokio::time::timeout(PATIENCE, asking).await
        });
        match asked {
            Ok(Ok(rows)) => answers = Some(rows),
            Ok(Err(error)) => told = format!("{error:?}"),
            Err(_) => told = "no answer".to_owned(),
        }
    }
    stop(&mut child, shape);
    let log = log.join().expect("the log's reader");
    match answers {
        Some(answers) => Outcome::Answered(answers),
        None => Outcome::Refused(format!("{told}\n{log}")),
    }
}

/// Ends the process. With copies it is stopped cleanly, so that a repaired slice is durable.
fn stop(child: &mut Child, shape: Shape) {
    if shape.replicas > 0 {
        let id = child.id().to_string();
        let _sent = Command::new("sh").args(["-c", "kill -TERM \"$0\"", &id]).status();
        let deadline = Instant::now() + PATIENCE;
        while child.try_wait().is_ok_and(|ended| ended.is_none()) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    let _ended_before = child.kill();
    let _ended_before = child.wait();
}

/// Returns a description of a wrong outcome; `None` if it is right.
fn violation(outcome: &Outcome, right: &[Rows], (path, fault): (&Path, Fault)) -> Option<String> {
    match outcome {
        Outcome::Answered(answers) if answers == right => None,
        Outcome::Answered(answers) => {
            let counts: Vec<_> = answers.iter().map(Vec::len).collect();
            Some(format!("wrong rows: {counts:?}"))
        }
        Outcome::Refused(told) => {
            let name = path.file_name()?.to_str()?;
            let dir = path.parent()?.to_str()?;
            // A log that ends earlier than it did may be whole: the other processes know what it had. Redb repairs a damaged
            // end by going back; a projector's log is whole only in an older copy.
            let is_older = match fault {
                Fault::OldCopy if dir.starts_with("projector") => {
                    told.contains("the projector lacks")
                }
                _ => {
                    dir.starts_with("coordinator")
                        && told.contains("the coordinator was restored from an older copy")
                }
            };
            let named = told.contains(name) || told.contains(dir) || is_older;
            (!named).then(|| format!("the file is not named: {told}"))
        }
    }
}

#[test]
fn damage_of_any_file_is_named_or_healed_and_never_shows_wrong_rows() {
    judge(ALONE, "", 2, 30);
}

#[test]
fn damage_of_an_indexer_is_named_or_healed_from_a_copy() {
    judge(WITH_COPIES, "indexer-1/", 6, 10);
}

/// Damages the files below a directory one at a time, and judges each outcome: every n-th pair of a file and a fault, or
/// all pairs in a campaign.
fn judge(shape: Shape, below: &str, nth: usize, tried_min: usize) {
    let runtime = Runtime::new().expect("a runtime");
    let (old, files, right) = filled(&runtime, shape);
    let all = std::env::var_os("SEXTANT_TAMPER").is_some_and(|which| which == "all");
    let (mut tried, mut violations) = (0, Vec::new());
    let (mut healed, mut alone) = (0, 0);
    let mut kinds = BTreeSet::new();
    let is_below = |path: &&PathBuf| path.to_str().is_some_and(|path| path.starts_with(below));
    let paths = files.keys().filter(|path| !path.ends_with("LOCK") && !path.ends_with("lock"));
    let paths = paths.filter(is_below);
    let cases = paths.flat_map(|path| FAULTS.map(|fault| (path, fault)));
    for (n, (path, fault)) in cases.enumerate() {
        // Each fault is applied to every n-th file.
        if !all && !(n + n / FAULTS.len()).is_multiple_of(nth) {
            continue;
        }
        let Some(after) = damaged(&files, &old, path, fault) else { continue };
        let data = tempfile::tempdir().expect("a temporary directory");
        write_files(&after, data.path());
        tried += 1;
        kinds.insert(path.extension().map(|extension| extension.to_owned()));
        let first = outcome(&runtime, data.path(), shape);
        let mut found = violation(&first, &right, (path, fault));
        if matches!(first, Outcome::Answered(_)) {
            healed += 1;
            if shape.replicas > 0 {
                let again = outcome(&runtime, data.path(), WITHOUT_THE_OTHER);
                alone += usize::from(matches!(again, Outcome::Answered(_)));
                // Without the other copy it may be unable to answer, but not wrongly.
                let answered = Some(&again).filter(|again| matches!(again, Outcome::Answered(_)));
                found =
                    found.or(answered.and_then(|again| violation(again, &right, (path, fault))));
            }
        }
        if let Some(what) = found {
            violations.push(format!("{} {fault:?}: {what}", path.display()));
        }
    }
    println!(
        "{tried} faults in {} kinds of files; {healed} healed or without effect, {alone} of them \
         answered by the damaged node alone",
        kinds.len()
    );
    assert!(tried >= tried_min, "{tried} faults");
    assert!(healed > 0, "no fault was healed");
    assert_eq!(alone > 0, shape.replicas > 0, "answers of the damaged node alone");
    assert!(violations.is_empty(), "{}", violations.join("\n\n"));
}
