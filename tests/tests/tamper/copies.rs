//! Tests faults in the files of one of two projectors that have a bucket with copies. The damaged
//! directory has a fragment and a change log after it, and its process leads when it is killed.
//! After each fault the start is refused by name, or the copies are in sync again in time. Then the
//! other projector is killed, and the damaged one leads alone: it must have every document, and the
//! index every entry. A damaged block of a fragment is found by the first read of it alone: then
//! the answer names the file.

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
/// The number of pairs of a file and a fault in every run, in an order in which the two files are
/// far apart.
const EVERY_RUN: usize = 2;

/// The answers of the struck projector when it leads alone.
enum Answer {
    /// All expected rows, and no others.
    Right,
    /// An error that names the damaged file.
    Named,
    /// Other rows than expected.
    Wrong(String),
}

/// The outcome of a fault.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Fate {
    /// The damage was healed, or had no effect.
    Healed,
    /// The start was refused by name.
    Refused,
    /// A read names the file.
    FoundByRead,
}

/// A cluster with two copies of a bucket. The struck one leads.
struct Pair {
    cluster: Processes,
    client: Client,
    /// The number in each document, by id.
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
        // Each statement is a group of the log, so that damage in its middle leaves some.
        for from in (0..DOCUMENTS).step_by(20) {
            pair.write(from..from + 20).await;
        }
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

    /// Waits until both copies are in sync, and makes the struck projector lead.
    async fn led_by_struck(&self) {
        let (leader, _) = in_sync(&self.client).await;
        if leader != STRUCK {
            sql::run(&self.client, &format!("ALTER BUCKET b MOVE TO '{STRUCK}'")).await;
        }
        until(&self.client, "the struck copy leads", is_led_by(STRUCK)).await;
        in_sync(&self.client).await;
    }

    /// Compares documents and index with the acknowledged writes.
    async fn answer(&self, file: &str) -> Answer {
        let deadline = Instant::now() + PATIENCE;
        sql::run(&self.client, "SET consistency = 'request_plus'").await;
        let ids: Vec<_> = self.documents.keys().map(|id| format!("'{id}'")).collect();
        let select = format!("SELECT id, doc FROM b WHERE id IN ({})", ids.join(", "));
        let (index, stored) = loop {
            let index = sql::simple(&self.client, "SELECT id, n FROM i").await;
            let stored = sql::simple(&self.client, &select).await;
            match (index, stored) {
                (Ok(index), Ok(stored)) => break (index, stored),
                (index, stored) => {
                    let errors = format!("{:?} {:?}", index.err(), stored.err());
                    if errors.contains(file) {
                        return Answer::Named;
                    }
                    if Instant::now() > deadline {
                        return Answer::Wrong(format!("no answer: {errors}"));
                    }
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
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
                let what = format!("the {what} has {count} rows, not the {expected} right ones");
                return Answer::Wrong(what);
            }
        }
        Answer::Right
    }

    /// Gives the struck copy a fragment: its log is damaged, and an operator recreates the bucket
    /// from the undamaged rest.
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

    /// Returns the files of the struck projector, which is restarted and leads again.
    async fn files(&mut self) -> Files {
        self.cluster.kill(STRUCK);
        let mut files = read_files(&self.cluster.data_of(STRUCK));
        files.retain(|path, _| !path.ends_with("LOCK"));
        self.cluster.run(STRUCK);
        self.led_by_struck().await;
        files
    }

    /// Starts the struck projector on these files. The error contains what it printed before it
    /// ended.
    fn start_on(&mut self, files: &Files) -> Result<(), String> {
        let data = self.cluster.data_of(STRUCK);
        std::fs::remove_dir_all(&data).expect("removed");
        write_files(files, &data);
        self.cluster.try_run(STRUCK)
    }

    /// Damages a file and tests the outcome. Returns the fate of the fault, or a description of
    /// what is wrong.
    async fn strike(&mut self, whole: &Files, after: &Files, path: &Path) -> Result<Fate, String> {
        let id = self.next % DOCUMENTS;
        self.write(id..id + 1).await;
        self.cluster.kill(STRUCK);
        // A leader that is back at once is in sync by name until another copy leads.
        until(&self.client, "the other copy leads", is_led_by(OTHER)).await;
        let refused = self.start_on(after).err();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let mut wrong = None;
        if let Some(told) = &refused {
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
        let answer = self.answer(name).await;
        self.cluster.run(OTHER);
        self.led_by_struck().await;
        match (wrong, answer) {
            (Some(wrong), _) | (None, Answer::Wrong(wrong)) => Err(wrong),
            (None, Answer::Named) if name.ends_with(".frag") => Ok(Fate::FoundByRead),
            (None, Answer::Named) => Err("it leads with a damaged file".into()),
            (None, Answer::Right) if refused.is_some() => Ok(Fate::Refused),
            (None, Answer::Right) => Ok(Fate::Healed),
        }
    }
}

/// Returns the pairs of a file and a fault that change something.
fn cases(whole: &Files, old: &Files) -> Vec<(Files, String, std::path::PathBuf)> {
    let pairs = whole.keys().flat_map(|path| FAULTS.map(|fault| (path, fault)));
    let case = |(path, fault): (&std::path::PathBuf, Fault)| {
        let after = damaged(whole, old, path, fault)?;
        Some((after, format!("{} {fault:?}", path.display()), path.clone()))
    };
    pairs.filter_map(case).collect()
}

/// Selects the cases of every run: a damaged log and a damaged fragment.
fn of_every_run(cases: &mut Vec<(Files, String, std::path::PathBuf)>) {
    let is_log = |what: &String| what.contains(".log ") && what.contains("FlippedBit");
    let log = cases.iter().position(|(_, what, _)| is_log(what)).expect("a log");
    let first = cases.swap_remove(log);
    let is_cut = |what: &String| what.contains(".frag Cut");
    let fragment = cases.iter().position(|(_, what, _)| is_cut(what)).expect("a fragment");
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
        let (mut fates, mut violations) = (BTreeMap::<Fate, usize>::new(), Vec::new());
        for (after, what, path) in &cases {
            let began = Instant::now();
            match pair.strike(&whole, after, path).await {
                Ok(fate) => *fates.entry(fate).or_default() += 1,
                Err(wrong) => violations.push(format!("{what}: {wrong}")),
            }
            println!("{what}: {:?}", began.elapsed());
        }
        println!("{} faults: {fates:?}", cases.len());
        assert!(violations.is_empty(), "{}", violations.join("\n\n"));
        assert!(fates.get(&Fate::Healed) >= Some(&EVERY_RUN), "{fates:?}");
    });
}
