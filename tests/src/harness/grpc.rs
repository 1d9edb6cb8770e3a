//! A gRPC client for tests.

use std::net::SocketAddr;

use proto::grpc::query_client::QueryClient;
use proto::grpc::{ScanReply, ScanRequest};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status, Streaming};

/// Opens a gRPC connection.
pub async fn channel(address: SocketAddr) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
    endpoint.connect().await.expect("a gRPC connection")
}

/// Asserts the code of a refusal, its SQLSTATE, and that its message contains a word.
pub fn refused<T: std::fmt::Debug>(answer: Result<T, Status>, code: Code, state: &str, word: &str) {
    let status = answer.expect_err("must be refused");
    let told = status.metadata().get("sqlstate").map(|value| value.to_str().expect("text"));
    assert_eq!((status.code(), told.unwrap_or_default()), (code, state), "{}", status.message());
    assert!(status.message().contains(word), "{:?} must say {word:?}", status.message());
}

/// The request for all entries of an index.
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
    /// All rows.
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
        scanned.epochs.push(reply.epoch);
        scanned.token = reply.token;
    }
    Ok(scanned)
}

/// The ids: the values of the first column.
pub fn ids(scanned: &Scanned) -> Vec<&str> {
    scanned.rows.iter().map(|row| row[0].as_deref().expect("an id")).collect()
}
