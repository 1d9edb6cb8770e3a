//! Tests more scans than the router admits: a further scan is refused, and deletions still succeed.
//! A scan that its client does not read releases its permit, and so does a suspended portal.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test is a client of the product: real clocks, sockets and tasks"
)]

use std::time::Duration;

use futures::future::join_all;
use proto::grpc::{ScanReply, ScanRequest};
use tests::harness::grpc::{self, all, open, refused, scan};
use tests::harness::{TestCluster, eventually, sql};
use tonic::Code;

/// The number of scans: a few more than the limit of the router.
const SCANS: usize = 4;
const MORE: usize = 8;
const DOCUMENTS: usize = 3000;

/// Returns a scan of all rows at present. Without this consistency it might read an epoch from
/// before the COPY.
fn present() -> ScanRequest {
    ScanRequest { consistency: "request_plus".into(), ..all("i") }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deletions_pass_while_scans_wait_and_a_scan_over_the_limit_is_refused() {
    const ROUTER: &str = "node=\"300\"";
    let cluster = TestCluster::start_with(1, 2, Some(SCANS)).await;
    let client = cluster.sql().await;
    let define = "CREATE BUCKET b; CREATE INDEX i ON b (n::int8) INCLUDE (pad) WITH (slices = 4);
                  SET consistency = 'request_plus'";
    sql::run(&client, define).await;
    // 18 MB: a client's HTTP/2 window takes 2 MB, and 50 replies are read in the 10 s until the others are refused, 3 MB.
    let pad = "p".repeat(6000);
    let line = |n: usize| format!("{{\"id\":\"d{n}\",\"n\":{n},\"pad\":\"{pad}\"}}\n");
    let lines: String = (0..DOCUMENTS).map(line).collect();
    sql::copy_in(&client, "COPY b FROM STDIN", lines.as_bytes(), 99_999).await.expect("COPY");
    assert_eq!(sql::value(&client, "SELECT count(*) FROM i").await, DOCUMENTS.to_string());

    let channel = grpc::channel(cluster.grpc_address()).await;
    let mut slow = Vec::new();
    for _ in 0..SCANS {
        // On one connection the scans would share its window, and some would get nothing for a long time.
        let own = grpc::channel(cluster.grpc_address()).await;
        slow.push(open(&own, present()).await.expect("a stream"));
    }
    let more = async {
        eventually("all have begun", async || {
            (cluster.figure("scans_running", ROUTER).await == SCANS as f64).then_some(())
        })
        .await;
        let many = join_all((0..MORE).map(|_| open(&channel, present()))).await;
        let told = |scan| refused(scan, Code::Unavailable, "53300", "scans on router");
        many.into_iter().for_each(told);
        assert_eq!(cluster.figure("scans_refused_total", ROUTER).await, MORE as f64);
    };
    // Scans that are read from time to time keep their permits while the others wait. A scan whose next reply is late does
    // not delay the reads of the others.
    let read = async |scan: &mut tonic::Streaming<_>| loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let reply: Option<ScanReply> = scan.message().await.expect("no error");
        reply.expect("this scan has more replies than are read");
    };
    let reads = join_all(slow.iter_mut().map(read));
    tokio::select! {
        () = more => {}
        _ = reads => unreachable!("they go on for ever"),
    }

    let ids: Vec<String> = (0..DOCUMENTS).map(|n| format!("'d{n}'")).collect();
    let limit = Duration::from_secs(20);
    for ids in ids.chunks(250) {
        let delete = format!("DELETE FROM b WHERE id IN ({})", ids.join(", "));
        tokio::time::timeout(limit, sql::run(&client, &delete)).await.expect("deleted");
    }
    eventually("the indexers have applied all deletions", async || {
        (cluster.figure("index_entries", "index=\"i\"").await == 0.0).then_some(())
    })
    .await;
    // No scan has been read since.
    let served = scan(&channel, present()).await.expect("served").rows;
    assert!(served.is_empty(), "places were given back");
    drop(slow);
    let count = tokio::time::timeout(limit, sql::value(&client, "SELECT count(*) FROM i"));
    assert_eq!(count.await.expect("served"), "0");
    assert!(scan(&channel, present()).await.expect("served").rows.is_empty());
    eventually("all places are free again", async || {
        (cluster.figure("scans_running", ROUTER).await == 0.0).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspended_portal_releases_its_permit_and_continues_at_its_position() {
    let cluster = TestCluster::start(1, 2).await;
    let mut client = cluster.sql().await;
    let define = "CREATE BUCKET b; CREATE INDEX i ON b (n::int8) WITH (slices = 4);
                  SET consistency = 'request_plus'";
    sql::run(&client, define).await;
    let lines: String =
        (0..DOCUMENTS).map(|n| format!("{{\"id\":\"d{n}\",\"n\":{n}}}\n")).collect();
    sql::copy_in(&client, "COPY b FROM STDIN", lines.as_bytes(), 99_999).await.expect("COPY");
    for order in ["ORDER BY n", ""] {
        let transaction = client.transaction().await.expect("BEGIN");
        let portal =
            transaction.bind(&format!("SELECT n FROM i {order}"), &[]).await.expect("bound");
        let mut found = Vec::new();
        for rows in [10, 990, 0] {
            eventually("no scan has a permit", async || {
                (cluster.figure("scans_running", "node=\"300\"").await == 0.0).then_some(())
            })
            .await;
            let rows = transaction.query_portal(&portal, rows).await.expect("rows");
            found.extend(rows.iter().map(|row| row.get::<_, i64>(0)));
        }
        if order.is_empty() {
            found.sort_unstable();
        }
        assert!(found.iter().copied().eq(0..DOCUMENTS as i64), "{order}: {} rows", found.len());
        transaction.commit().await.expect("COMMIT");
    }
}
