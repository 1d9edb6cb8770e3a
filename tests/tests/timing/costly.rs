//! Tests costly statements and index expressions: a process serves its other clients meanwhile, and
//! a cancellation or a time-out takes effect soon.
//!
//! The figures of a run are printed; `cargo test --release … --test timing costly:: -- --nocapture`
//! shows those of a release build.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tests::harness::process::{Dev, dev};
use tests::harness::sql::sqlstate;
use tests::harness::{connect, eventually, sql};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls};

use super::idle::{self, Idle};

/// The time limit of another client's connect and `SELECT 1`, and of a statement after its
/// cancellation, on a machine that is not overloaded ([`idle::allowed`]). A quiet machine needs a
/// twentieth of it.
const ANSWERED_WITHIN: Duration = Duration::from_secs(1);
/// The number of documents that the long `IN` reads, and of its values.
const NUMBERS: u64 = 60_000;
const IN_VALUES: u64 = 50_000;
/// The number of documents that the long `LIKE` reads, the length of their text, and the number of
/// letters in the pattern.
const TEXTS: u64 = 60;
const TEXT_BYTES: usize = 50_000;
const PATTERN_LETTERS: usize = 20_000;
/// The number of documents under a costly index. Each takes all steps of an evaluation: a second on
/// a slow machine, in a debug build.
const LEFT_OUT: u64 = 4;

fn start(data: &Path) -> Dev {
    Dev::start_by(dev(data).args(["--nodes", "1"]))
}

/// Measures connects with `SELECT 1` of a client until it is stopped. Returns their number and the
/// longest time.
async fn longest_answer(address: SocketAddr, stopped: Arc<AtomicBool>) -> (usize, Duration) {
    let (mut answers, mut longest) = (0, Duration::ZERO);
    while !stopped.load(Ordering::Relaxed) {
        let begun = Instant::now();
        let client = connect(address).await;
        assert_eq!(sql::value(&client, "SELECT 1").await, "1");
        longest = longest.max(begun.elapsed());
        answers += 1;
    }
    (answers, longest)
}

/// Another client of the tested process, and one of the idle process.
struct Bystanders {
    stop: Arc<AtomicBool>,
    task: JoinHandle<((usize, Duration), (usize, Duration))>,
    interrupted: Duration,
}

impl Bystanders {
    fn start(tested: SocketAddr, idle: &Idle) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let clients = [tested, idle.process.sql_address()]
            .map(|address| longest_answer(address, Arc::clone(&stop)));
        let task = tokio::spawn(async move {
            let [tested, idle] = clients;
            tokio::join!(tested, idle)
        });
        Self { stop, task, interrupted: Duration::ZERO }
    }

    /// Interrupts a statement, and records the longest delay of the interrupt.
    async fn interrupt(&mut self, client: &Client, statement: &str, what: &str) {
        let delay = delay_of_interrupts(client, statement, what).await;
        self.interrupted = self.interrupted.max(delay);
    }

    /// Stops the clients, and checks the longest time of the tested process's client and the
    /// longest delay of an interrupt.
    async fn check(self, during: &str) {
        self.stop.store(true, Ordering::Relaxed);
        let ((answers, longest), (_, idle)) = self.task.await.expect("the other clients");
        println!(
            "{during}: {answers} other clients, the longest waited {longest:?}, and one of an idle process {idle:?}"
        );
        let allowed = idle::allowed(ANSWERED_WITHIN, idle);
        assert!(longest < allowed, "{during}: a client waited {longest:?} of {allowed:?}");
        let delay = self.interrupted;
        assert!(delay < allowed, "{during}: ended {delay:?} after its interrupt, of {allowed:?}");
    }
}

/// Runs a statement twice and interrupts it while it runs, if it runs for long enough: by a cancel
/// request, and by a time-out. Returns the longer time from an interrupt to the end of the
/// statement.
async fn delay_of_interrupts(client: &Client, statement: &str, what: &str) -> Duration {
    // By a cancel request after 30 ms.
    let cancel = client.cancel_token();
    let after = Duration::from_millis(30);
    let begun = Instant::now();
    let cancelling = async {
        tokio::time::sleep(after).await;
        cancel.cancel_query(NoTls).await.expect("a cancel request");
    };
    let (ran, ()) = tokio::join!(sql::simple(client, statement), cancelling);
    let cancelled = begun.elapsed().saturating_sub(after);
    let is_cancelled = ran.is_err_and(|error| sql::state_of(&error) == "57014");
    // By a time-out.
    sql::run(client, "SET statement_timeout = 30").await;
    let begun = Instant::now();
    let ran = sql::simple(client, statement).await;
    let timed_out = begun.elapsed().saturating_sub(after);
    let is_timed_out = ran.is_err_and(|error| sql::state_of(&error) == "57014");
    sql::run(client, "SET statement_timeout = 0").await;
    println!(
        "{what}: ended {cancelled:?} after a cancel request (cancelled: {is_cancelled}), \
         {timed_out:?} after its time-out (timed out: {is_timed_out})"
    );
    cancelled.max(timed_out)
}

async fn fill(client: &Client, bucket: &str, count: u64, document: impl Fn(u64) -> String) {
    let mut lines = String::new();
    for n in 0..count {
        lines.push_str(&document(n));
        lines.push('\n');
    }
    let copy = format!("COPY {bucket} FROM STDIN (FORMAT jsonl)");
    sql::copy_in(client, &copy, lines.as_bytes(), 64 << 10)
        .await
        .expect("the documents are stored");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_in_and_a_long_insert_hold_up_no_other_client() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let (process, idle) = (start(data.path()), Idle::start());
    let client = connect(process.sql_address()).await;
    sql::run(&client, "CREATE BUCKET b WITH (vbuckets = 8); SET consistency = 'request_plus'")
        .await;
    let others = Bystanders::start(process.sql_address(), &idle);
    fill(&client, "b", NUMBERS, |n| format!("{{\"id\":\"d{n}\",\"n\":{n},\"s\":{n}}}")).await;
    others.check("COPY").await;
    sql::run(&client, "CREATE INDEX i ON b (n::int8) INCLUDE (s)").await;

    let values: Vec<String> = (0..IN_VALUES).map(|n| (2 * n).to_string()).collect();
    let statement = format!("SELECT count(*) FROM i WHERE s IN ({})", values.join(","));
    let mut others = Bystanders::start(process.sql_address(), &idle);
    let begun = Instant::now();
    assert_eq!(sql::value(&client, &statement).await, (NUMBERS / 2).to_string());
    println!("IN with {IN_VALUES} values over {NUMBERS} entries: {:?}", begun.elapsed());
    others.interrupt(&client, &statement, "IN").await;
    others.check("IN").await;

    // A statement of 4 MiB: its documents are checked as JSON.
    let text = "x".repeat(1_000);
    let rows: Vec<String> =
        (0..3_500).map(|n| format!("('l{n}', '{{\"t\":[1,2,3,\"{text}\"]}}')")).collect();
    let insert = format!("INSERT INTO b (id, doc) VALUES {}", rows.join(","));
    let others = Bystanders::start(process.sql_address(), &idle);
    sql::run(&client, &insert).await;
    others.check("INSERT of 4 MB").await;
    let others = Bystanders::start(process.sql_address(), &idle);
    let rows = sql::simple(&client, "SELECT n, s, id FROM i").await.expect("all rows");
    assert_eq!(rows.len() as u64, NUMBERS);
    others.check("SELECT of all rows").await;
    let many = "SELECT 1;".repeat(100_000);
    let mut others = Bystanders::start(process.sql_address(), &idle);
    others.interrupt(&client, &many, "100,000 statements in one text").await;
    others.check("100,000 statements in one text").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_like_holds_up_no_other_client_and_its_index_can_be_dropped() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let (process, idle) = (start(data.path()), Idle::start());
    let client = connect(process.sql_address()).await;
    sql::run(&client, "CREATE BUCKET t WITH (vbuckets = 8); SET consistency = 'request_plus'")
        .await;
    let text = "a".repeat(TEXT_BYTES);
    let document = |n: u64| format!("{{\"id\":\"d{n}\",\"n\":{n},\"t\":\"{text}\"}}");
    fill(&client, "t", TEXTS, document).await;
    sql::run(&client, "CREATE INDEX i ON t (n::int8) INCLUDE (t)").await;

    sql::run(&client, "CREATE INDEX narrow ON t (n::int8) INCLUDE (t) WITH (included_kb_max = 16)")
        .await;
    assert_eq!(sql::value(&client, "SELECT count(*) FROM narrow").await, "0", "texts of 50 KB");
    sql::run(&client, "DROP INDEX narrow").await;

    // Linear: the pattern has no `_`.
    let linear = format!("%{}b%", "a".repeat(PATTERN_LETTERS));
    let statement = format!("SELECT count(*) FROM i WHERE t LIKE '{linear}'");
    let mut others = Bystanders::start(process.sql_address(), &idle);
    let begun = Instant::now();
    assert_eq!(sql::value(&client, &statement).await, "0");
    println!("LIKE over {TEXTS} texts: {:?}", begun.elapsed());
    others.interrupt(&client, &statement, "LIKE").await;
    // Quadratic: it ends at the limit of an evaluation.
    let quadratic = format!("%{}b%", "_a".repeat(PATTERN_LETTERS / 2));
    let statement = format!("SELECT count(*) FROM i WHERE t LIKE '{quadratic}'");
    assert_eq!(sqlstate(&client, &statement).await, "54001");
    others.interrupt(&client, &statement, "LIKE with _").await;
    others.check("LIKE").await;

    // In the WHERE of an index: the documents are left out, and the bucket continues to be served.
    sql::run(&client, "CREATE BUCKET c WITH (vbuckets = 8)").await;
    sql::run(&client, "CREATE INDEX i_c ON c (n::int8) INCLUDE (t)").await;
    let others = Bystanders::start(process.sql_address(), &idle);
    sql::run(&client, &format!("CREATE INDEX costly ON c (n::int8) WHERE t LIKE '{quadratic}'"))
        .await;
    fill(&client, "c", LEFT_OUT, document).await;
    counts(&client, "costly", 0).await;
    left_out(&client).await;
    others.check("an index with LIKE").await;
    process.kill();

    let process = start(data.path());
    let client = connect(process.sql_address()).await;
    sql::run(&client, "SET consistency = 'request_plus'").await;
    let others = Bystanders::start(process.sql_address(), &idle);
    fill(&client, "c", LEFT_OUT, document).await;
    counts(&client, "i_c", LEFT_OUT).await;
    left_out(&client).await;
    let begun = Instant::now();
    sql::run(&client, "DROP INDEX costly").await;
    println!("DROP INDEX: {:?}", begun.elapsed());
    fill(&client, "c", LEFT_OUT, document).await;
    counts(&client, "i_c", LEFT_OUT).await;
    counts(&client, "i", TEXTS).await;
    others.check("DROP INDEX after a restart").await;
}

/// Waits until an index covers everything acknowledged, and compares the number of its entries.
/// Beside a costly index that may take longer than a statement waits.
async fn counts(client: &Client, index: &str, expected: u64) {
    let count = eventually("the index has what was acknowledged", || async {
        match sql::simple(client, &format!("SELECT count(*) FROM {index}")).await {
            Err(error) if sql::state_of(&error) == "57014" => None,
            rows => rows.expect("a number")[0][0].clone(),
        }
    });
    assert_eq!(count.await, expected.to_string(), "{index}");
}

/// Waits until the index reports that all documents are left out.
async fn left_out(client: &Client) {
    eventually("the documents that are left out are counted", || async {
        let rows = sql::simple(client, "SHOW INDEXES").await.ok()?;
        let row = rows.into_iter().find(|row| row[0].as_deref() == Some("costly"))?;
        let counts = row.into_iter().flatten().filter_map(|cell| cell.parse::<u64>().ok());
        counts.max().filter(|most| *most >= LEFT_OUT)
    })
    .await;
}
