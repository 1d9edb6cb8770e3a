//! A gRPC client for tests.

use std::net::SocketAddr;

use proto::grpc::query_client::QueryClient;
use proto::grpc::{ScanColumn, ScanReply, ScanRequest};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status, Streaming};

/// Opens a gRPC connection.
pub async fn channel(address: SocketAddr) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
    endpoint.connect().await.expect("a gRPC connection")
}

/// Asserts that a call is refused with this code and SQLSTATE, and a message that contains `word`.
pub fn refused<T: std::fmt::Debug>(answer: Result<T, Status>, code: Code, state: &str, word: &str) {
    let status = answer.expect_err("must be refused");
    let told = status.metadata().get("sqlstate").map(|value| value.to_str().expect("text"));
    assert_eq!((status.code(), told.unwrap_or_default()), (code, state), "{}", status.message());
    assert!(status.message().contains(word), "{:?} must say {word:?}", status.message());
}

/// Returns the request for all entries of an index.
pub fn all(index: &str) -> ScanRequest {
    ScanRequest { index: index.into(), ..ScanRequest::default() }
}

/// Begins a scan.
pub async fn open(channel: &Channel, request: ScanRequest) -> Result<Streaming<ScanReply>, Status> {
    QueryClient::new(channel.clone()).scan(request).await.map(tonic::Response::into_inner)
}

/// The complete answer of a scan.
#[derive(Clone, Debug, Default)]
pub struct Scanned {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows of all messages.
    pub rows: Vec<Vec<Option<String>>>,
    /// The epoch of each batch.
    pub epochs: Vec<u64>,
    /// The token of the last batch.
    pub token: String,
}

/// Runs a scan to its end.
pub async fn scan(channel: &Channel, request: ScanRequest) -> Result<Scanned, Status> {
    let mut replies = open(channel, request).await?;
    let mut scanned = Scanned::default();
    while let Some(reply) = replies.message().await? {
        scanned.columns.extend(reply.columns);
        let row =
            |row: proto::grpc::ScanRow| row.values.into_iter().map(|value| value.text).collect();
        scanned.rows.extend(reply.rows.into_iter().map(row));
        let of_columns = |n: usize| reply.values.iter().map(|column| text(column, n)).collect();
        scanned.rows.extend((0..reply.value_rows as usize).map(of_columns));
        scanned.epochs.push(reply.epoch);
        scanned.token = reply.token;
    }
    Ok(scanned)
}

/// Returns the text of a value in a column, as SQL shows it; `None` for NULL.
pub fn text(column: &ScanColumn, row: usize) -> Option<String> {
    if column.nulls.get(row / 8).is_some_and(|byte| byte >> (row % 8) & 1 == 1) {
        return None;
    }
    let eight = |bytes: &[u8]| *bytes[8 * row..].first_chunk::<8>().expect("a value for each row");
    let end = |row: usize| {
        let end = column.text_ends[4 * row..].first_chunk().expect("an end for each row");
        u32::from_le_bytes(*end) as usize
    };
    Some(match column {
        column if !column.ints.is_empty() => i64::from_le_bytes(eight(&column.ints)).to_string(),
        column if !column.doubles.is_empty() => {
            f64::from_le_bytes(eight(&column.doubles)).to_string()
        }
        column if !column.bools.is_empty() => ["f", "t"][usize::from(column.bools[row])].into(),
        column => {
            let from = row.checked_sub(1).map_or(0, end);
            String::from_utf8(column.texts[from..end(row)].into()).expect("a text is UTF-8")
        }
    })
}

/// Returns the values of the first column, the ids.
pub fn ids(scanned: &Scanned) -> Vec<&str> {
    scanned.rows.iter().map(|row| row[0].as_deref().expect("an id")).collect()
}
