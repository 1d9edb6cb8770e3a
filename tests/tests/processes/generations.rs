//! Tests clients of real processes that scan without a pause while an index gets one generation
//! after another.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests run the product as processes: real clocks, sockets and tasks"
)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tests::harness::processes::Processes;
use tests::harness::{connect, sql};

/// The number of clients that scan.
const CLIENTS: usize = 8;
/// The number of documents before the first change.
const DOCUMENTS: u64 = 4_000;
/// The changes of the index, made one after another.
const CHANGES: [&str; 10] = [
    "REINDEX i",
    "ALTER INDEX i SET (slices = 5)",
    "ALTER INDEX i ADD INCLUDE (t)",
    "ALTER INDEX i PARTITION BY HASH (k)",
    "ALTER INDEX i SET (slices = 2, replicas = 1)",
    "ALTER INDEX i SET KEYS (k DESC, n::int8)",
    "ALTER INDEX i DROP INCLUDE (t)",
    "ALTER INDEX i SET WHERE n IS NOT NULL",
    "ALTER INDEX i SET (compression = 'lz4')",
    "REINDEX i",
];

/// The counts of a client's scans.
#[derive(Default)]
struct Seen {
    scans: u64,
    longest: Duration,
}

/// Scans until `stop` is set. Each statement of the writer inserts a number and its opposite, and
/// nothing is deleted. So at each epoch the sum is zero, and the count is even and not smaller than
/// before.
async fn scan(address: SocketAddr, stop: Arc<AtomicBool>) -> Seen {
    let client = connect(address).await;
    let (mut seen, mut before) = (Seen::default(), 0);
    // At `any`, the first scan of a session may show an epoch before the documents; later scans never show an older epoch.
    sql::run(&client, "SET consistency = 'request_plus'").await;
    sql::run(&client, "SELECT count(*) FROM i").await;
    sql::run(&client, "SET consistency = 'any'").await;
    while !stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        let rows = sql::simple(&client, "SELECT count(*), sum(n) FROM i").await;
        let rows = rows.unwrap_or_else(|error| panic!("scan {} failed: {error:?}", seen.scans));
        let number = |cell: &Option<String>| -> i64 {
            let cell = cell.as_deref();
            let text = cell.unwrap_or_else(|| panic!("scan {} read nothing", seen.scans));
            text.parse().expect("a number")
        };
        let (count, sum) = (number(&rows[0][0]), number(&rows[0][1]));
        assert!(sum == 0 && count % 2 == 0, "{count} entries with the sum {sum}");
        assert!(count >= before, "{count} entries after {before}");
        before = count;
        seen.scans += 1;
        seen.longest = seen.longest.max(began.elapsed());
    }
    seen
}

/// Writes pairs until `stop` is set; returns the number of documents.
async fn write(address: SocketAddr, stop: Arc<AtomicBool>) -> u64 {
    let client = connect(address).await;
    let mut written = 0;
    while !stop.load(Ordering::Relaxed) {
        let (one, other) = (written + 1, written + 2);
        let insert = format!(
            "INSERT INTO b (id, doc) VALUES ('w{one}', '{{\"n\":{one},\"k\":\"x\"}}'), \
             ('w{other}', '{{\"n\":-{one},\"k\":\"y\"}}')"
        );
        sql::run(&client, &insert).await;
        written += 2;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    written
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_scan_fails_or_goes_back_while_an_index_changes_ten_times() {
    let mut cluster = Processes::start_with(&[1], &[201]).await;
    let client = cluster.sql().await;
    cluster.run(202);
    cluster.joined(&client, 202).await;
    sql::run(&client, "CREATE BUCKET b").await;
    sql::run(&client, "CREATE INDEX i ON b (n::int8) WITH (slices = 3)").await;
    let line = |n: u64| {
        let signed = if n.is_multiple_of(2) { n as i64 } else { -(n as i64 - 1) };
        format!("{{\"id\":\"d{n}\",\"n\":{signed},\"k\":\"k{}\",\"t\":\"text {n}\"}}\n", n % 7)
    };
    let lines: String = (0..DOCUMENTS).map(line).collect();
    let stored = sql::copy_in(&client, "COPY b FROM STDIN", lines.as_bytes(), 64 << 10).await;
    assert_eq!(stored.expect("COPY"), DOCUMENTS);
    sql::run(&client, "SET consistency = 'request_plus'").await;
    sql::run(&client, "SELECT count(*) FROM i").await;

    let (stop, address) = (Arc::new(AtomicBool::new(false)), cluster.sql_address());
    let scans: Vec<_> =
        (0..CLIENTS).map(|_| tokio::spawn(scan(address, Arc::clone(&stop)))).collect();
    let writes = tokio::spawn(write(address, Arc::clone(&stop)));
    for change in CHANGES {
        let began = Instant::now();
        sql::run(&client, change).await;
        println!("{change}: {:?}", began.elapsed());
    }
    stop.store(true, Ordering::Relaxed);
    let written = writes.await.expect("the writer");
    let (mut scanned, mut longest) = (0, Duration::ZERO);
    for scan in scans {
        let seen = scan.await.expect("a client whose scans were all right");
        assert!(seen.scans > 10, "each client scans during all changes");
        (scanned, longest) = (scanned + seen.scans, longest.max(seen.longest));
    }
    println!("{scanned} scans, the longest {longest:?}; {written} documents written meanwhile");
    let rows = sql::simple(&client, "SELECT count(*) FROM i").await.expect("a count");
    assert_eq!(rows[0][0].as_deref(), Some(&*(DOCUMENTS + written).to_string()));
    let shown = sql::simple(&client, "SHOW INDEXES").await.expect("a list");
    let definition = shown[0].last().cloned().flatten().expect("a definition");
    assert_eq!(
        definition,
        "CREATE INDEX i ON b (k DESC, n::int8) WHERE n IS NOT NULL PARTITION BY HASH (k) \
         WITH (slices = 2, replicas = 1, compression = 'lz4')"
    );
}
