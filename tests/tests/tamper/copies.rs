//! Faults of one of two projectors that have a bucket with copies. The damaged directory has a fragment and a change log behind it, and
//! its process leads when it is killed. After each fault the start is refused by name, or the copies are in sync again in time.
//! Then the other projector is killed, and the damaged one leads alone: it must have every document, and the index every entry.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use tests::harness::copies::{PROJECTORS, in_sync, is_led_by, until};
use tests::harness::process::{output, sextant};
use tests::harness::processes::Processes;
use tests::harness::sql;
use tests::harness::tamper::{FAULTS, Fault, Files, damaged, read_files, write_files};
use tokio::runtime::Runtime;
use tokio_postgres::Client;

const STRUCK: u64 = PROJECTORS[0];
const OTHER: u64 = PROJECTORS[1];
const DOCUMENTS: u64 = 300;
const PATIENCE: Duration = Duration::from_secs(60);
/// The pairs of a file and a fault of every run, in an order in which one file comes far behind the other.
const EVERY_RUN: usize = 2;

/// A cluster with two copies of a bucket. The struck one leads.
struct Pair {
    cluster: Processes,
    client: Client,
    /// The number in each document.
    documents: BTreeMap<String, u64>,
    next: u64,
}

impl Pair {
    async fn new() -> Self {
        let mut cluster = Processes::start_with(&[1], &[201]).await;
        let client = cluster.sql().await;
        cluster.run(OTHER);
        cluster.joined(&client, OTHER).await;
        sql::run(&client, "CREATE BUCKET b WITH (vbuckets = 8, copies = 2)").await;
        sql::run(&client, "CREATE INDEX i ON b (n::int8) WITH (slices = 2)").await;
        let mut pair = Self { cluster, client, documents: BTreeMap::new(), next: 0 };
        pair.write(0..DOCUMENTS).await;
        pair.led_by_struck().await;
        pair
    }

    /// Writes documents with new numbers.
    async fn write(&mut self, ids: std::ops::Range<u64>) {
        let mut rows = Vec::new();
        for id in ids {
            self.next += 1;
            let (id, n) = (format!("d{id}"), self.next);
            rows.push(format!("('{id}', '{{\"n\":{n},\"text\":\"the text of {n}\"}}')"));
            self.documents.insert(id, n);
        }
        let rows = rows.join(", ");
        let statement = format!(
            "INSERT INTO b (id, doc) VALUES {rows} ON CONFLICT (id) DO UPDATE SET doc = excluded.doc"
        );
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = self.client.batch_execute(&statement).await {
            assert!(Instant::now() < deadline, "the write: {error:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until both copies are in sync, and lets the struck one lead.
    async fn led_by_struck(&self) {
        let (leader, _) = in_sync(&self.client).await;
        if leader != STRUCK {
            sql::run(&self.client, &format!("ALTER BUCKET b MOVE TO '{STRUCK}'")).await;
        }
        until(&self.client, "the struck copy leads", is_led_by(STRUCK)).await;
        in_sync(&self.client).await;
    }

    /// Compares documents and index with what was acknowledged; the difference, if there is one.
    async fn differs(&self) -> Option<String> {
        let deadline = Instant::now() + PATIENCE;
        sql::run(&self.client, "SET consistency = 'request_plus'").await;
        let ids: Vec<_> = self.documents.keys().map(|id| format!("'{id}'")).collect();
        let select = format!("SELECT id, doc FROM b WHERE id IN ({})", ids.join(", "));
        let (index, stored) = loop {
            let index = sql::simple(&self.client, "SELECT id, n FROM i").await;
            let stored = sql::simple(&self.client, &select).await;
            match (index, stored) {
                (Ok(index), Ok(stored)) => break (index, stored),
                (index, stored) if Instant::now() > deadline => {
                    return Some(format!("no answer: {:?} {:?}", index.err(), stored.err()));
                }
                _ => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        };
        let number = |text: &str| -> Option<u64> {
            match text.parse() {
                Ok(number) => Some(number),
                Err(_) => serde_json::from_str::<serde_json::Value>(text).ok()?["n"].as_u64(),
            }
        };
        for (what, rows) in [("index", index), ("documents", stored)] {
            let count = rows.len();
            let found: BTreeMap<String, u64> = rows
                .iter()
                .filter_map(|row| Some((row[0].clone()?, number(row[1].as_deref()?)?)))
                .collect();
            if found != self.documents || count != found.len() {
                let expected = self.documents.len();
                return Some(format!("the {what} has {count} rows, not the {expected} right ones"));
            }
        }
        None
    }

    /// Gives the struck copy a fragment: its log is damaged, and an operator makes the bucket again from what is whole.
    async fn with_fragment(&mut self) {
        self.cluster.kill(STRUCK);
        let data = self.cluster.data_of(STRUCK);
        let files = read_files(&data);
        let log = files.keys().find(|path| path.extension().is_some_and(|kind| kind == "log"));
        let log = log.expect("a segment").clone();
        let after = damaged(&files, &files, &log, Fault::FlippedBit).expect("damaged");
        write_files(&after, &data);
        let mut command = sextant();
        let recovered =
            output(command.args(["source", "recover", "--accept-loss", "--data"]).arg(&data));
        assert!(recovered.status.success(), "{recovered:?}");
        // The operator needs the old files no more.
        std::fs::remove_dir_all(data.join("buckets/00000000")).expect("removed");
        self.cluster.run(STRUCK);
        self.led_by_struck().await;
        self.write(0..20).await;
    }

    /// The files of the struck projector, which runs again and leads.
    async fn files(&mut self) -> Files {
        self.cluster.kill(STRUCK);
        let mut files = read_files(&self.cluster.data_of(STRUCK));
        files.retain(|path, _| !path.ends_with("LOCK"));
        self.cluster.run(STRUCK);
        self.led_by_struck().await;
        files
    }

    /// Starts the struck projector on these files. The error is what it printed before it ended.
    fn start_on(&mut self, files: &Files) -> Result<(), String> {
        let data = self.cluster.data_of(STRUCK);
        std::fs::remove_dir_all(&data).expect("removed");
        write_files(files, &data);
        self.cluster.try_run(STRUCK)
    }

    /// Strikes; returns whether it was healed, or what is wrong.
    async fn strike(&mut self, whole: &Files, after: &Files, path: &Path) -> Result<bool, String> {
        let id = self.next % DOCUMENTS;
        self.write(id..id + 1).await;
        self.cluster.kill(STRUCK);
        let refused = self.start_on(after).err();
        let mut wrong = None;
        if let Some(told) = &refused {
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
            if path.starts_with("buckets") {
                wrong = Some(format!("the whole projector does not start: {told}"));
            } else if !told.contains(name) {
                wrong = Some(format!("the file is not named: {told}"));
            }
            self.start_on(whole).map_err(|told| format!("whole files: {told}"))?;
        }
        in_sync(&self.client).await;
        self.cluster.kill(OTHER);
        until(&self.client, "the struck copy leads", is_led_by(STRUCK)).await;
        let differs = self.differs().await;
        self.cluster.run(OTHER);
        self.led_by_struck().await;
        wrong.or(differs).map_or(Ok(refused.is_none()), Err)
    }
}

/// The pairs of a file and a fault that change something.
fn cases(whole: &Files, old: &Files) -> Vec<(Files, String, std::path::PathBuf)> {
    let pairs = whole.keys().flat_map(|path| FAULTS.map(|fault| (path, fault)));
    let case = |(path, fault): (&std::path::PathBuf, Fault)| {
        let after = damaged(whole, old, path, fault)?;
        Some((after, format!("{} {fault:?}", path.display()), path.clone()))
    };
    pairs.filter_map(case).collect()
}

/// The cases of every run: a damaged log, which no other file of the projector has, and one that differs from build to build.
fn of_every_run(cases: &mut Vec<(Files, String, std::path::PathBuf)>) {
    let is_log = |what: &String| what.contains(".log ") && what.contains("FlippedBit");
    let log = cases.iter().position(|(_, what, _)| is_log(what)).expect("a log");
    let first = cases.swap_remove(log);
    let fragment = cases.iter().position(|(_, what, _)| what.contains(".frag ")).expect("one");
    let second = cases.swap_remove(fragment);
    *cases = vec![first, second];
}

#[test]
fn damage_of_a_projector_is_named_or_healed_from_another_copy() {
    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let mut pair = Pair::new().await;
        let old = pair.files().await;
        pair.with_fragment().await;
        let whole = pair.files().await;
        let mut cases = cases(&whole, &old);
        let all = std::env::var_os("SEXTANT_TAMPER").is_some_and(|which| which == "all");
        if !all {
            of_every_run(&mut cases);
        }
        let (mut healed, mut refused, mut violations) = (0, 0, Vec::new());
        for (after, what, path) in &cases {
            let began = Instant::now();
            match pair.strike(&whole, after, path).await {
                Ok(true) => healed += 1,
                Ok(false) => refused += 1,
                Err(wrong) => violations.push(format!("{what}: {wrong}")),
            }
            println!("{what}: {:?}", began.elapsed());
        }
        println!("{} faults; {healed} healed or without effect, {refused} refused", cases.len());
        assert!(cases.len() >= EVERY_RUN && healed >= EVERY_RUN, "{healed} healed");
        assert!(violations.is_empty(), "{}", violations.join("\n\n"));
    });
}
