//! Single faults in the files of a stopped cluster: a flipped bit, a zeroed range, a cut, a removed file, an old copy, in each
//! kind of file of each role. After each fault the cluster either refuses by name, or answers with exactly the right rows.
//! Faults in the files of the document store are only counted ([`EXPECTED_FAILURES`]).
//!
//! Every other pair of a file and a fault runs here, and all of them with `SEXTANT_TAMPER=all` (docs/testing.md).
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the test damages files of the product's processes"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tests::harness::process::{Dev, dev};
use tests::harness::{connect, sql};
use tokio::runtime::Runtime;
use tokio_postgres::Client;

/// Files whose damage is not always noticed yet: the documents' store keeps no checksum of some of its blocks, and takes a lost
/// journal for an empty one. A log of its own for documents will.
const EXPECTED_FAILURES: &str = "projector-1/fjall/";

/// Time for a damaged cluster to answer or to end.
const PATIENCE: Duration = Duration::from_secs(20);

type Rows = Vec<Vec<Option<String>>>;
type Files = BTreeMap<PathBuf, Vec<u8>>;

#[derive(Clone, Copy, Debug)]
enum Fault {
    FlippedBit,
    Zeroed,
    Cut,
    CutToNothing,
    Removed,
    OldCopy,
}

const FAULTS: [Fault; 6] = [
    Fault::FlippedBit,
    Fault::Zeroed,
    Fault::Cut,
    Fault::CutToNothing,
    Fault::Removed,
    Fault::OldCopy,
];

/// The outcome of a start on a damaged directory.
enum Outcome {
    /// The process ended, or a statement failed, with this text.
    Refused(String),
    /// The answers.
    Answered(Vec<Rows>),
}

const QUESTIONS: [&str; 3] = [
    "SELECT n, id FROM by_n ORDER BY n",
    "SELECT city, n FROM by_city ORDER BY city, n",
    "SELECT count(*) FROM by_city",
];

fn start(data: &Path) -> Dev {
    Dev::start_by(dev(data).args(["--nodes", "1"]))
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

async fn ask(client: &Client) -> Result<Vec<Rows>, tokio_postgres::Error> {
    client.batch_execute("SET consistency = 'request_plus'").await?;
    let mut answers = Vec::new();
    for question in QUESTIONS {
        answers.push(sql::simple(client, question).await?);
    }
    Ok(answers)
}

/// An old copy of a directory, the directory, and the right answers.
fn filled(runtime: &Runtime) -> (Files, Files, Vec<Rows>) {
    let data = tempfile::tempdir().expect("a temporary directory");
    let process = start(data.path());
    runtime.block_on(async {
        let client = connect(process.sql_address()).await;
        sql::run(&client, "CREATE BUCKET b WITH (vbuckets = 8)").await;
        sql::run(&client, &insert(0..200, 0)).await;
        sql::run(&client, "CREATE INDEX by_n ON b (n::int8) WITH (slices = 2)").await;
        sql::run(&client, "CREATE INDEX by_city ON b (city, n::int8) WITH (slices = 2)").await;
        sql::run(&client, &insert(0..50, 1_000)).await;
        ask(&client).await.expect("answers");
    });
    process.terminate();
    let old = read_files(data.path());
    let process = start(data.path());
    let right = runtime.block_on(async {
        let client = connect(process.sql_address()).await;
        sql::run(&client, &insert(100..150, 2_000)).await;
        sql::run(&client, "DELETE FROM b WHERE id IN ('d001', 'd101', 'd199')").await;
        ask(&client).await.expect("answers")
    });
    process.kill();
    (old, read_files(data.path()), right)
}

fn read_files(dir: &Path) -> Files {
    let mut found = Files::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(next) = dirs.pop() {
        for entry in std::fs::read_dir(next).expect("a directory") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => dirs.push(path),
                false => {
                    let bytes = std::fs::read(&path).expect("a file");
                    found.insert(path.strip_prefix(dir).expect("below").to_owned(), bytes);
                }
            }
        }
    }
    found
}

fn write_files(files: &Files) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for (path, bytes) in files {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("it is created");
        std::fs::write(path, bytes).expect("it is written");
    }
    dir
}

/// The files with a fault in one of them; `None` if the fault changes nothing.
fn damaged(files: &Files, old: &Files, path: &Path, fault: Fault) -> Option<Files> {
    let mut after = files.clone();
    let whole = files[path].clone();
    let content = whole.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let mut bytes = whole.clone();
    match fault {
        Fault::FlippedBit => *bytes.get_mut(content / 2)? ^= 4,
        Fault::Zeroed => bytes[content / 3..content / 2].fill(0),
        Fault::Cut => bytes.truncate(content / 2),
        Fault::CutToNothing => bytes.clear(),
        Fault::Removed => {
            after.remove(path);
            return Some(after);
        }
        Fault::OldCopy => bytes = old.get(path)?.clone(),
    }
    let changes = bytes != whole;
    after.insert(path.to_owned(), bytes);
    changes.then_some(after)
}

/// Starts the cluster on damaged files and asks it.
fn outcome(runtime: &Runtime, data: &Path) -> Outcome {
    let mut child = dev(data)
        .args(["--nodes", "1"])
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
            let asking = async { ask(&connect(address).await).await };
            tokio::time::timeout(PATIENCE, asking).await
        });
        match asked {
            Ok(Ok(rows)) => answers = Some(rows),
            Ok(Err(error)) => told = format!("{error:?}"),
            Err(_) => told = "no answer".to_owned(),
        }
    }
    let _ended_before = child.kill();
    let _ended_before = child.wait();
    let log = log.join().expect("the log's reader");
    match answers {
        Some(answers) => Outcome::Answered(answers),
        None => Outcome::Refused(format!("{told}\n{log}")),
    }
}

/// The fault of an outcome; `None` if it is right.
fn violation(outcome: &Outcome, right: &[Rows], path: &Path) -> Option<String> {
    match outcome {
        Outcome::Answered(answers) if answers == right => None,
        Outcome::Answered(answers) => {
            let counts: Vec<_> = answers.iter().map(Vec::len).collect();
            Some(format!("wrong rows: {counts:?}"))
        }
        Outcome::Refused(told) => {
            let name = path.file_name()?.to_str()?;
            let dir = path.parent()?.to_str()?;
            let named = told.contains(name) || told.contains(dir);
            (!named).then(|| format!("the file is not named: {told}"))
        }
    }
}

#[test]
fn damage_of_any_file_is_named_or_healed_and_never_shows_wrong_rows() {
    let runtime = Runtime::new().expect("a runtime");
    let (old, files, right) = filled(&runtime);
    let all = std::env::var_os("SEXTANT_TAMPER").is_some_and(|which| which == "all");
    let (mut tried, mut violations, mut known) = (0, Vec::new(), 0);
    let mut kinds = BTreeSet::new();
    let paths = files.keys().filter(|path| !path.ends_with("LOCK") && !path.ends_with("lock"));
    let cases = paths.flat_map(|path| FAULTS.map(|fault| (path, fault)));
    for (n, (path, fault)) in cases.enumerate() {
        // Each file sees every other fault, and each fault every other file.
        if !all && (n + n / FAULTS.len()) % 2 == 1 {
            continue;
        }
        let Some(after) = damaged(&files, &old, path, fault) else { continue };
        let data = write_files(&after);
        tried += 1;
        kinds.insert(path.extension().map(|extension| extension.to_owned()));
        if let Some(what) = violation(&outcome(&runtime, data.path()), &right, path) {
            match path.to_str().is_some_and(|path| path.starts_with(EXPECTED_FAILURES)) {
                true => known += 1,
                false => violations.push(format!("{} {fault:?}: {what}", path.display())),
            }
        }
    }
    println!("{tried} faults in {} kinds of files; {known} known failures", kinds.len());
    assert!(tried >= 30, "{tried} faults");
    assert!(violations.is_empty(), "{}", violations.join("\n\n"));
}
