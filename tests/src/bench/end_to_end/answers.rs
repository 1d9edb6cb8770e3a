//! The comparison of the servers' answers with each other and with the documents. A difference ends
//! the benchmark.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use fastrand::Rng;
use proto::grpc::query_client::QueryClient;
use proto::grpc::{ScanColumn, ScanRequest};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, SimpleQueryMessage, Statement};
use tonic::transport::Channel;
use xxhash_rust::xxh3::Xxh3;

use super::super::Outcome;
use super::copy_out::copy_out;
use super::documents::Documents;
use super::peers::{Index, Peer};
use crate::harness::grpc::text;

/// The number of ranges of each width that are compared.
const RANGES: u64 = 20;
/// The size limit of a gRPC reply, in bytes.
const GRPC_BYTES_MAX: usize = 16 << 20;
/// The number of bytes that a server may send by gRPC before the client has read them. With the 64
/// KiB of HTTP/2, a server would wait after each reply.
const GRPC_WINDOW_BYTES: u32 = 1 << 20;
/// The maximum number of characters of an answer in an error.
const SHOWN_CHARS_MAX: usize = 400;

/// An answer with the name of its server.
pub type Answer<T> = (&'static str, T);

/// Fails and names the query if the answers differ.
pub fn expect_same<T: PartialEq + std::fmt::Debug>(
    query: &str,
    answers: &[Answer<T>],
) -> Outcome<()> {
    let Some((first, rest)) = answers.split_first() else { return Ok(()) };
    let shown = |answer: &Answer<T>| {
        let text: String = format!("{:?}", answer.1).chars().take(SHOWN_CHARS_MAX).collect();
        format!("{}: {text}", answer.0)
    };
    match rest.iter().find(|other| other.1 != first.1) {
        Some(other) => {
            let (ours, theirs) = (shown(first), shown(other));
            Err(format!("the answers to {query} differ:\n{ours}\n{theirs}").into())
        }
        None => Ok(()),
    }
}

/// The rows of an index: id and n.
type Rows = Vec<(String, i64)>;

/// Compares ranges at random places, and the first key of each range, between the servers and with
/// the documents.
pub async fn compare_ranges(
    peers: &[&dyn Peer],
    documents: &Documents,
    bucket: &str,
    index: Index,
    width: u64,
) -> Outcome<()> {
    let mut rng = Rng::with_seed(width);
    let mut sessions = Vec::new();
    for peer in peers {
        let client = session(*peer).await?;
        let range = client.prepare(&peer.range(bucket, index)).await?;
        let key = client.prepare(&peer.one_key(bucket, index)).await?;
        sessions.push((peer.name(), client, range, key));
    }
    for _ in 0..RANGES {
        let from = rng.u64(0..=documents.rows() - width);
        let (first, end) = (from as i64, (from + width) as i64);
        let mut ranges = vec![("the documents", documents.range(from, width))];
        let mut keys = vec![("the documents", documents.range(from, 1))];
        for (name, client, range, key) in &sessions {
            ranges.push((name, rows(client, range, &[&first, &end]).await?));
            keys.push((name, rows(client, key, &[&first]).await?));
        }
        let [range, key] = [peers[0].range(bucket, index), peers[0].one_key(bucket, index)];
        expect_same(&format!("{range} with $1 = {first}, $2 = {end}"), &ranges)?;
        expect_same(&format!("{key} with $1 = {first}"), &keys)?;
    }
    Ok(())
}

async fn rows(
    client: &Client,
    statement: &Statement,
    parameters: &[&(dyn ToSql + Sync)],
) -> Outcome<Rows> {
    let rows = client.query(statement, parameters).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
}

/// Compares the whole index and its totals between the servers, and with the documents if these are
/// given (nothing was written since).
pub async fn compare_whole(
    peers: &[&dyn Peer],
    documents: Option<&Documents>,
    bucket: &str,
    index: Index,
) -> Outcome<()> {
    let of_documents = documents.map(|documents| ("the documents", Whole::of(documents)));
    let mut wholes: Vec<_> = of_documents.into_iter().collect();
    let mut all_totals = Vec::new();
    for peer in peers {
        let client = session(*peer).await?;
        wholes.push((peer.name(), whole(*peer, &peer.all(bucket, index)).await?));
        let query = totals(&peer.relation(bucket, index));
        all_totals.push((peer.name(), texts(&client, &query).await?));
    }
    expect_same(&peers[0].all(bucket, index), &wholes)?;
    expect_same(&totals(&peers[0].relation(bucket, index)), &all_totals)
}

/// Opens a session whose reads include everything acknowledged.
pub async fn session(peer: &dyn Peer) -> Outcome<Client> {
    let client = peer.target().connect().await?;
    if !peer.see_everything().is_empty() {
        client.batch_execute(peer.see_everything()).await?;
    }
    Ok(client)
}

fn totals(relation: &str) -> String {
    format!("SELECT count(*), min(n), max(n), sum(n) FROM {relation}")
}

/// Returns the values of a statement's rows as text.
async fn texts(client: &Client, query: &str) -> Outcome<Vec<Option<String>>> {
    let mut values = Vec::new();
    for message in client.simple_query(query).await? {
        if let SimpleQueryMessage::Row(row) = message {
            values.extend((0..row.len()).map(|n| row.get(n).map(str::to_owned)));
        }
    }
    Ok(values)
}

/// A summary of all rows of a scan: their number and their hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whole {
    /// The number of rows.
    pub rows: u64,
    /// The hash of their text.
    pub hash: u64,
}

impl Whole {
    /// Returns the answer that contains all documents in the order of n.
    fn of(documents: &Documents) -> Self {
        let mut hash = Xxh3::new();
        for n in 0..documents.rows() {
            for (id, n) in documents.range(n, 1) {
                hash.update(format!("{id}\t{n}\n").as_bytes());
            }
        }
        Self { rows: documents.rows(), hash: hash.digest() }
    }
}

/// Reads all rows of a SELECT by COPY … TO STDOUT, including all acknowledged writes.
pub async fn whole(peer: &dyn Peer, select: &str) -> Outcome<Whole> {
    copy_out(peer.target(), peer.see_everything(), select).await
}

/// All rows of an index in columns of typed values, reply by reply.
pub struct Received {
    replies: Vec<(Vec<ScanColumn>, u32)>,
    /// The time until the last reply was received and read.
    pub elapsed: Duration,
}

/// Reads all rows of an index by gRPC, including all acknowledged writes. The measured time
/// includes one pass over each byte, as in the client of COPY. The values are converted to text
/// later, for the comparison: a real client of this form would not convert them.
pub async fn all_by_grpc(port: SocketAddr, index: &str) -> Outcome<Received> {
    let begun = Instant::now();
    let endpoint = Channel::from_shared(format!("http://{port}"))?;
    let endpoint = endpoint.initial_stream_window_size(GRPC_WINDOW_BYTES);
    let channel = endpoint.initial_connection_window_size(GRPC_WINDOW_BYTES).connect().await?;
    let request = ScanRequest {
        index: index.into(),
        columns: vec!["id".into(), "n".into()],
        consistency: "request_plus".into(),
        columnar: true,
        ..ScanRequest::default()
    };
    let mut client = QueryClient::new(channel).max_decoding_message_size(GRPC_BYTES_MAX);
    let mut stream = client.scan(request).await?.into_inner();
    let (mut replies, mut read) = (Vec::new(), Xxh3::new());
    while let Some(reply) = stream.message().await? {
        for column in &reply.values {
            for bytes in [&column.ints, &column.texts, &column.text_ends] {
                read.update(bytes);
            }
        }
        replies.push((reply.values, reply.value_rows));
    }
    std::hint::black_box(read.digest());
    Ok(Received { replies, elapsed: begun.elapsed() })
}

impl Received {
    /// Returns the summary that a COPY of these rows has.
    pub fn whole(&self) -> Whole {
        let (mut rows, mut hash) = (0, Xxh3::new());
        for (columns, count) in &self.replies {
            rows += u64::from(*count);
            for row in 0..*count as usize {
                let texts = columns.iter().map(|column| text(column, row).unwrap_or_default());
                hash.update(texts.collect::<Vec<_>>().join("\t").as_bytes());
                hash.update(b"\n");
            }
        }
        Whole { rows, hash: hash.digest() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_the_query_and_both_servers() {
        assert!(expect_same::<u64>("SELECT 1", &[]).is_ok());
        assert!(expect_same("SELECT 1", &[("a", 1), ("b", 1)]).is_ok());
        let error = expect_same("SELECT 1", &[("a", 1), ("b", 1), ("c", 2)]).expect_err("differ");
        let text = error.to_string();
        assert!(["SELECT 1", "a: 1", "c: 2"].iter().all(|part| text.contains(part)), "{text}");
    }
}
