//! Tests gRPC scans in pages with continuation tokens, health and reflection, and the HTTP
//! endpoints.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test is a client of the product: real clocks, sockets and tasks"
)]

use std::net::SocketAddr;

use futures::TryStreamExt;
use proto::env::Env;
use proto::grpc::ScanRequest;
use proto::grpc::query_client::QueryClient;
use sextant::wire::{Peers, tcp_connect};
use tests::harness::grpc::{all, channel, open, refused, scan, text};
use tests::harness::{TestCluster, eventually, python, sql};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tonic::Code;
use tonic::codec::CompressionEncoding;
use tonic::transport::Channel;
use tonic::transport::server::TcpIncoming;
use tonic_health::pb::health_check_response::ServingStatus;

/// Starts a cluster with 500 documents and two indexes, and opens an SQL session and a gRPC
/// channel.
async fn numbered() -> (TestCluster, tokio_postgres::Client, Channel) {
    let cluster = TestCluster::start(1, 3).await;
    let client = cluster.sql().await;
    sql::run(
        &client,
        "CREATE BUCKET b; CREATE INDEX i ON b (k, n::int8 DESC) INCLUDE (pad) WITH (slices = 5);
         CREATE INDEX j ON b (k, n::int8 DESC); SET consistency = 'request_plus'",
    )
    .await;
    let pad = "p".repeat(200);
    let line =
        |n: u32| format!("{{\"id\":{n},\"n\":{n},\"k\":\"k{}\",\"pad\":\"{pad}\"}}\n", n % 7);
    let lines: String = (0..500).map(line).collect();
    sql::copy_in(&client, "COPY b FROM STDIN", lines.as_bytes(), 9999).await.expect("COPY");
    let channel = channel(cluster.grpc_address()).await;
    (cluster, client, channel)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pages_of_a_scan_show_one_epoch() {
    let (cluster, client, first) = numbered().await;
    let plain = |reverse, limit, offset, filter: &str| ScanRequest {
        columns: vec!["id".into(), "k".into(), "n".into(), "lower(pad)".into()],
        r#where: filter.into(),
        reverse,
        limit,
        offset,
        consistency: "request_plus".into(),
        ..all("i")
    };
    let mut written = 0;
    for (request, rows, page_rows) in [
        (plain(false, None, 0, ""), 500, 37),
        (plain(true, None, 0, ""), 500, 100),
        (ScanRequest { unordered: true, ..plain(false, None, 0, "") }, 500, 60),
        (ScanRequest { unordered: true, ..plain(false, Some(120), 30, "") }, 120, 50),
        (plain(false, Some(120), 30, ""), 120, 50),
        (plain(true, Some(10), 490, ""), 10, 3),
        (plain(false, None, 0, "k > 'k2' AND n < 100 OR n = 499"), 57, 7),
        (plain(false, None, 0, "k = 'nothing'"), 0, 5),
    ] {
        let request = ScanRequest { r#where: keep_out_new(&request.r#where), ..request };
        let whole = scan(&first, request.clone()).await.expect("rows");
        assert_eq!((whole.rows.len(), &*whole.token), (rows, ""), "{request:?}");
        assert_eq!(whole.columns[..3], ["id", "k", "n"]);
        let (mut pages, mut token) = (Vec::new(), String::new());
        let mut epochs = Vec::new();
        loop {
            // Each page uses a new connection: the token alone is enough.
            let channel = channel(cluster.grpc_address()).await;
            let page = ScanRequest { token, page_rows, ..request.clone() };
            let page = scan(&channel, page).await.expect("a page");
            pages.extend(page.rows);
            epochs.extend(page.epochs);
            token = page.token;
            if token.is_empty() {
                break;
            }
            // Writes between the pages are not in their epoch.
            written += 1;
            let write = format!(
                "INSERT INTO b (id, doc) VALUES ('new{written}', '{{\"k\":\"k3\",\"n\":{written}}}'), \
                 ('{written}', '{{\"k\":\"moved\",\"n\":0}}') \
                 ON CONFLICT (id) DO UPDATE SET doc = excluded.doc"
            );
            sql::run(&client, &write).await;
            sql::run(&client, &format!("DELETE FROM b WHERE id = 'new{written}'")).await;
        }
        assert_eq!(pages.len(), rows, "{request:?}");
        assert!(pages == whole.rows, "pages differ from the whole: {request:?}");
        epochs.dedup();
        assert_eq!(epochs.len(), 1, "one epoch: {epochs:?}");
        restore(&client, written).await;
    }
    assert!(written >= 5, "{written} writes between pages");
}

/// Restricts a filter to documents with a pad. Documents that are written between the pages have
/// none and must not be in the answer.
fn keep_out_new(filter: &str) -> String {
    match filter {
        "" => "length(pad) = 200".to_owned(),
        filter => format!("({filter}) AND length(pad) = 200"),
    }
}

/// Writes the original documents again.
async fn restore(client: &tokio_postgres::Client, written: u32) {
    let pad = "p".repeat(200);
    let line =
        |n: u32| format!("{{\"id\":{n},\"n\":{n},\"k\":\"k{}\",\"pad\":\"{pad}\"}}\n", n % 7);
    let lines: String = (0..=written).map(line).collect();
    sql::copy_in(client, "COPY b FROM STDIN", lines.as_bytes(), 9999).await.expect("COPY");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_are_those_of_copy() {
    let (_cluster, client, channel) = numbered().await;
    let odd = "{\"id\":\"a\\tb\",\"n\":-7,\"k\":\"\\\\N\\n\"}\n{\"id\":\"c\",\"k\":null}\n";
    sql::copy_in(&client, "COPY b FROM STDIN", odd.as_bytes(), 9999).await.expect("COPY");
    let columns = ["id", "k", "n", "n > 3", "pad"];
    let request = ScanRequest {
        columns: columns.map(Into::into).into(),
        consistency: "request_plus".into(),
        lines: true,
        ..all("i")
    };
    let (mut lines, mut names) = (Vec::new(), Vec::new());
    let mut replies = open(&channel, request).await.expect("a scan");
    while let Some(reply) = replies.message().await.expect("a reply") {
        assert!(reply.rows.is_empty(), "not twice");
        lines.extend_from_slice(&reply.lines);
        names.extend(reply.columns);
    }
    let copy = format!("COPY (SELECT {} FROM i ORDER BY k, n DESC) TO STDOUT", columns.join(", "));
    let copied = client.copy_out(&copy).await.expect("COPY").try_collect::<Vec<_>>();
    let copied = copied.await.expect("rows").concat();
    assert_eq!((names.len(), lines.iter().filter(|byte| **byte == b'\n').count()), (5, 502));
    assert_eq!(String::from_utf8_lossy(&lines), String::from_utf8_lossy(&copied));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn columns_have_the_values_of_the_rows() {
    let (_cluster, client, channel) = numbered().await;
    let odd = "{\"id\":\"a\\tb\",\"n\":-7,\"k\":\"\\\\N\\n\"}\n{\"id\":\"c\",\"k\":null}\n";
    sql::copy_in(&client, "COPY b FROM STDIN", odd.as_bytes(), 9999).await.expect("COPY");
    let columns = ["n", "n > 3", "k", "id", "n::float8 / 4", "n::numeric", "pad", "n::int4"];
    let rows = ScanRequest {
        columns: columns.map(Into::into).into(),
        consistency: "request_plus".into(),
        ..all("i")
    };
    let columnar = ScanRequest { columnar: true, ..rows.clone() };
    let expected = scan(&channel, rows).await.expect("rows");
    let got = scan(&channel, columnar.clone()).await.expect("columns");
    assert_eq!((&got.columns, got.rows.len()), (&expected.columns, 502));
    assert_eq!(got.rows, expected.rows);
    assert!(got.rows.iter().any(|row| row.iter().any(Option::is_none)), "NULL is compared too");
    let page = ScanRequest { page_rows: 40, ..columnar.clone() };
    let page = scan(&channel, page).await.expect("a page");
    assert_eq!(page.rows, expected.rows[..40]);
    let rest = ScanRequest { token: page.token, ..columnar.clone() };
    assert_eq!(scan(&channel, rest).await.expect("the rest").rows, expected.rows[40..]);
    let both = ScanRequest { lines: true, ..columnar.clone() };
    refused(open(&channel, both).await.map(drop), Code::InvalidArgument, "22023", "lines");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_of_very_many_columns_comes_in_several_replies() {
    let (_cluster, client, channel) = numbered().await;
    sql::run(&client, "CREATE INDEX numbers ON b (n::int8, (n * 2)::int8 DESC)").await;
    let (columns, consistency) = (["n", "id"].repeat(800), "request_plus".to_owned());
    let columns: Vec<String> = columns.into_iter().map(Into::into).collect();
    let line = |n: i64| format!("{{\"id\":\"long{n}\",\"n\":{n}}}\n");
    let more: String = (1_000..6_000).chain([i64::from(i32::MIN), 1 << 52]).map(line).collect();
    sql::copy_in(&client, "COPY b FROM STDIN", more.as_bytes(), 9_999).await.expect("COPY");
    let few = ScanRequest {
        columns: columns[..2].into(),
        consistency: consistency.clone(),
        ..all("numbers")
    };
    let few = scan(&channel, few).await.expect("two columns").rows;
    assert_eq!(few.len(), 5_502);
    for (lines, columnar) in [(false, false), (true, false), (false, true)] {
        let (columns, consistency) = (columns.clone(), consistency.clone());
        let many = ScanRequest { columns, consistency, lines, columnar, ..all("numbers") };
        let mut replies = open(&channel, many).await.expect("a scan");
        let (mut count, mut rows) = (0, 0);
        while let Some(reply) = replies.message().await.expect("no reply is too long") {
            count += 1;
            for row in 0..reply.value_rows as usize {
                let at = rows + row;
                let told = [&reply.values[0], &reply.values[1599]].map(|column| text(column, row));
                assert_eq!(told, [few[at][0].clone(), few[at][1].clone()]);
            }
            let lines = reply.lines.iter().filter(|byte| **byte == b'\n').count();
            rows += reply.rows.len() + lines + reply.value_rows as usize;
        }
        assert_eq!(rows, 5_502);
        assert!(count > 20, "{count} replies");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_from_elsewhere_is_refused() {
    let (_cluster, client, channel) = numbered().await;
    let request =
        ScanRequest { r#where: "n >= 10".into(), consistency: "request_plus".into(), ..all("i") };
    let page =
        scan(&channel, ScanRequest { page_rows: 20, ..request.clone() }).await.expect("a page");
    let token = page.token;
    assert!(!token.is_empty());
    let with = |token: &str| ScanRequest { token: token.into(), ..request.clone() };
    let rest = scan(&channel, with(&token)).await.expect("the rest");
    assert_eq!(page.rows.len() + rest.rows.len(), 490, "the token is good, and stays so");
    for at in 0..token.len() {
        let mut flipped = token.clone().into_bytes();
        flipped[at] = if flipped[at] == b'A' { b'B' } else { b'A' };
        let flipped = String::from_utf8(flipped).expect("ASCII");
        refused(
            open(&channel, with(&flipped)).await.map(drop),
            Code::InvalidArgument,
            "22023",
            "token",
        );
    }
    let (cut, long) = (&token[..token.len() - 1], "A".repeat(1 << 20));
    for wrong in [cut, &format!("{token}A"), "x", "\u{e9}", &long] {
        refused(
            open(&channel, with(wrong)).await.map(drop),
            Code::InvalidArgument,
            "22023",
            "token",
        );
    }
    for other in [
        ScanRequest { r#where: "n >= 11".into(), ..with(&token) },
        ScanRequest { reverse: true, ..with(&token) },
        ScanRequest { index: "j".into(), ..with(&token) },
        ScanRequest { limit: Some(9), ..with(&token) },
    ] {
        refused(open(&channel, other).await.map(drop), Code::InvalidArgument, "22023", "another");
    }
    sql::run(&client, "DROP INDEX i; CREATE INDEX i ON b (k, n::int8 DESC) INCLUDE (pad)").await;
    refused(
        open(&channel, with(&token)).await.map(drop),
        Code::InvalidArgument,
        "22023",
        "another",
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_scan_is_refused() {
    let (_cluster, _client, channel) = numbered().await;
    for (request, code, state) in [
        (all("nowhere"), Code::NotFound, "42P01"),
        (all("b"), Code::Unimplemented, "0A000"),
        (ScanRequest { r#where: "n >".into(), ..all("i") }, Code::InvalidArgument, "42601"),
        (
            ScanRequest { r#where: "1 = 1) LIMIT 1 --".into(), ..all("i") },
            Code::InvalidArgument,
            "42601",
        ),
        (ScanRequest { r#where: "absent = 1".into(), ..all("i") }, Code::NotFound, "42703"),
        (
            ScanRequest { columns: vec!["count(*)".into()], ..all("i") },
            Code::Unimplemented,
            "0A000",
        ),
        (ScanRequest { consistency: "strong".into(), ..all("i") }, Code::InvalidArgument, "22023"),
        (ScanRequest { at_plus: "x".into(), ..all("i") }, Code::InvalidArgument, "22023"),
    ] {
        let shown = format!("{request:?}");
        let status = open(&channel, request).await.map(drop).expect_err(&shown);
        let told = status.metadata().get("sqlstate").map(|value| value.to_str().expect("text"));
        assert_eq!((status.code(), told), (code, Some(state)), "{shown}: {}", status.message());
    }
}

/// Defines a function that returns the services of a port according to one version of the
/// reflection protocol.
macro_rules! reflected_by {
    ($name:ident, $version:ident) => {
        async fn $name(channel: Channel) -> Vec<String> {
            use tonic_reflection::pb::$version::ServerReflectionRequest;
            use tonic_reflection::pb::$version::server_reflection_client::ServerReflectionClient;
            use tonic_reflection::pb::$version::server_reflection_request::MessageRequest;
            use tonic_reflection::pb::$version::server_reflection_response::MessageResponse;

            let asked = ServerReflectionRequest {
                host: String::new(),
                message_request: Some(MessageRequest::ListServices(String::new())),
            };
            let mut reflection = ServerReflectionClient::new(channel);
            let answers = reflection.server_reflection_info(futures::stream::iter([asked])).await;
            let mut answers = answers.expect("reflection").into_inner();
            let answer = answers.message().await.expect("an answer").expect("an answer");
            let Some(MessageResponse::ListServicesResponse(list)) = answer.message_response else {
                panic!("{answer:?}");
            };
            let mut names: Vec<_> = list.service.into_iter().map(|service| service.name).collect();
            names.sort();
            names
        }
    };
}

reflected_by!(reflected, v1);
reflected_by!(reflected_v1alpha, v1alpha);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_and_reflection_answer() {
    let cluster = TestCluster::start(1, 1).await;
    let channel = channel(cluster.grpc_address()).await;
    let mut health = tonic_health::pb::health_client::HealthClient::new(channel.clone());
    for service in ["sextant.v1.Admin", "sextant.v1.Ingest", "sextant.v1.Query"] {
        let asked = tonic_health::pb::HealthCheckRequest { service: service.to_owned() };
        let answer = health.check(asked).await.expect("health by name").into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving, "{service}");
    }
    let asked = tonic_health::pb::HealthCheckRequest { service: String::new() };
    let answer = health.check(asked).await.expect("health").into_inner();
    assert_eq!(answer.status(), ServingStatus::Serving);
    assert_eq!(
        reflected(channel.clone()).await,
        [
            "grpc.health.v1.Health",
            "grpc.reflection.v1.ServerReflection",
            "sextant.v1.Admin",
            "sextant.v1.Ingest",
            "sextant.v1.Query",
        ]
    );
    assert_eq!(
        reflected_v1alpha(channel.clone()).await[2..],
        reflected(channel.clone()).await[2..]
    );
    let mut peer = proto::grpc::peer_client::PeerClient::new(channel);
    let refused =
        peer.call(proto::grpc::PeerRequest::default()).await.expect_err("no such service");
    assert_eq!(refused.code(), Code::Unimplemented, "{refused:?}");
}

#[tokio::test]
async fn a_port_for_processes_describes_no_service_for_users() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let services = sextant::grpc::peer_services(
        Peers::new(Vec::new(), tcp_connect(), &Env::real()),
        sextant::wire::PeerTrust::Insecure,
    );
    tokio::spawn(services.serve_with_incoming(TcpIncoming::from(listener)));
    assert_eq!(
        reflected(channel(address).await).await,
        ["grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection", "sextant.v1.Peer"]
    );
}

/// Returns the status line, the headers and the body of the answer to a GET.
async fn get(address: SocketAddr, path: &str) -> (String, String) {
    get_as(address, path, "*/*").await
}

/// Requests a page as a client that accepts a media type; returns the head and the body of the
/// answer.
async fn get_as(address: SocketAddr, path: &str, accept: &str) -> (String, String) {
    let mut socket = tokio::net::TcpStream::connect(address).await.expect("a connection");
    let head = format!("GET {path} HTTP/1.1\r\nHost: test\r\nAccept: {accept}\r\n");
    let request = format!("{head}Connection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    (head.to_owned(), body.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_serves_status_and_metrics() {
    let (cluster, client, channel) = numbered().await;
    scan(&channel, all("i")).await.expect("rows");
    let address = cluster.http_address();
    let (head, body) = get(address, "/healthz").await;
    assert!(head.starts_with("HTTP/1.1 200") && body == "ok\n", "{head} {body}");
    let (head, body) = get(address, "/readyz").await;
    assert!(head.starts_with("HTTP/1.1 200") && body == "ready\n", "{head} {body}");
    let (head, body) = get(address, "/status").await;
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("application/json"), "{head}");
    let status: serde_json::Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(status["buckets"][0]["name"], "b");
    assert_eq!(status["indexes"][0]["state"], "online");
    assert_eq!(status["nodes"][0]["role"], "coordinator");
    assert_eq!(status["slices"][0]["state"], "ready");
    assert_eq!(status["local_indexers"].as_array().map(Vec::len), Some(3));
    assert!(status["coordinator"]["leader"].is_u64(), "{body}");
    let open_metrics = "application/openmetrics-text";
    let (head, body) = get_as(address, "/metrics", open_metrics).await;
    assert!(head.contains(open_metrics), "{head}");
    assert!(body.ends_with("# EOF\n"), "{body}");
    for line in [
        "sextant_documents_written_total 500",
        "sextant_scans_total ",
        "sextant_index_scans_total{index=\"i\"} ",
        "sextant_write_seconds_bucket{le=\"+Inf\"} ",
        "sextant_scan_start_seconds_count ",
        "sextant_process_memory_bytes ",
        "sextant_disk_free_bytes ",
        "sextant_refused_total{limit=\"statements_max\"} 0",
        "sextant_failed_logins_total 0",
    ] {
        assert!(body.lines().any(|found| found.starts_with(line)), "{line} in {body}");
    }
    client.simple_query("SELECT nothing FROM i").await.expect_err("no such column");
    sql::run(&client, "SELECT * FROM i; DROP INDEX i; DROP BUCKET b").await;
    let (_, body) = get(address, "/metrics").await;
    assert!(body.contains("sextant_errors_total{sqlstate=\"42703\"} 1\n"), "{body}");
    for gone in ["index=\"i\"", "bucket=\"b\"", "bucket=\"\""] {
        assert!(!body.contains(gone), "{gone} was dropped: {body}");
    }
    let (head, _) = get(address, "/nowhere").await;
    assert!(head.starts_with("HTTP/1.1 404"), "{head}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_of_any_client_are_taken_or_refused_in_a_few_words() {
    let (_cluster, _client, channel) = numbered().await;
    let long = "x".repeat(100_000);
    let status = open(&channel, all(&long)).await.expect_err("no such index");
    assert_eq!(status.code(), Code::NotFound, "{status}");
    assert!(status.message().len() < 3_000 && status.message().contains("bytes left out"));
    let escapes = ScanRequest { r#where: "TRUE) OR (TRUE".into(), ..all("i") };
    let status = open(&channel, escapes).await.expect_err("no expression by itself");
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    let mut compressed = QueryClient::new(channel).send_compressed(CompressionEncoding::Gzip);
    let filter = format!("n < 3 -- {long}");
    let consistency = "request_plus".to_owned();
    let request = ScanRequest { r#where: filter, consistency, ..all("i") };
    let mut replies = compressed.scan(request).await.expect("a scan").into_inner();
    let mut rows = 0;
    while let Some(reply) = replies.message().await.expect("a reply") {
        rows += reply.rows.len() + reply.value_rows as usize;
    }
    assert!(rows > 0, "a compressed request is taken");
}

/// A Python script that reads a page with the reference parser of the format, and prints the number
/// of metrics.
const PARSE: &str = "
import sys
from prometheus_client import parser
from prometheus_client.openmetrics import parser as open_parser
parse = {'open': open_parser, 'classic': parser}[sys.argv[1]].text_string_to_metric_families
metrics = list(parse(sys.stdin.read()))
buckets = [s for m in metrics for s in m.samples if s.name == 'sextant_write_seconds_bucket']
assert buckets and buckets[-1].labels['le'] == '+Inf', buckets
assert any(s.name == 'sextant_documents_written_total' for m in metrics for s in m.samples), metrics
print(len(metrics))
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_parsers_of_prometheus_read_the_metrics() {
    let (cluster, client, channel) = numbered().await;
    sql::run(&client, "CREATE INDEX \"a\"\"b\\c\" ON b (n)").await;
    scan(&channel, all("i")).await.expect("rows");
    let mut counts = Vec::new();
    for (form, accept) in [("open", "application/openmetrics-text"), ("classic", "text/plain")] {
        let (head, body) = get_as(cluster.http_address(), "/metrics", accept).await;
        assert!(head.to_lowercase().contains(&format!("content-type: {accept}")), "{head}");
        let parsed = python::run(&["-c", PARSE, form], &body);
        counts.push(parsed.unwrap_or_else(|error| panic!("{form}: {error}\n{body}")));
    }
    assert_eq!(counts[0], counts[1], "both have the same metrics");
}

/// Only the leader of the coordinators receives the reports of nodes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_have_the_reports_of_nodes_whichever_coordinator_leads() {
    let cluster = TestCluster::start(3, 1).await;
    for node in [1, 2, 3, 100, 200, 300] {
        let figure = format!("sextant_node_silent_ms{{node=\"{node}\"}} ");
        eventually(&figure, async || {
            let (_, body) = get(cluster.http_address(), "/metrics").await;
            body.contains(&figure).then_some(())
        })
        .await;
    }
}
