//! Tests of processes with different protocol versions, over real sockets.

use async_trait::async_trait;
use futures::{StreamExt, stream};
use proto::env::{Env, Task};
use proto::model::ids::{Generation, IndexId, SliceNo};
use proto::model::node::{NodeInfo, Role};
use proto::rpc::api::Directory;
use proto::{Error, Result};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;

use super::connect::tcp_connect;
use super::directory::PeerDirectory;
use super::methods::*;
use super::peers::Peers;
use super::versions::ProtocolVersions;

const NODE: NodeId = NodeId(1);

/// An indexer that answers each checksum with its epoch, and sends one report.
struct Answers;

#[async_trait]
impl IndexerApi for Answers {
    async fn scan(&self, _: ShardScan) -> Result<ResultStream<ShardBatch>> {
        Err(Error::unavailable("not here"))
    }
    async fn watch_applied(&self) -> Result<ResultStream<AppliedReport>> {
        let report =
            AppliedReport { node: NODE, applied: Vec::new(), readable: None, rebuilt: Vec::new() };
        Ok(Box::pin(stream::iter([Ok(report)])))
    }
    async fn checksum(&self, _: SliceId, epoch: Epoch) -> Result<(u64, u64)> {
        Ok((epoch.0, epoch.0))
    }
    async fn export(&self, _: ExportRequest) -> Result<ResultStream<ExportMessage>> {
        Err(Error::unavailable("not here"))
    }
}

fn versions(oldest: u32, newest: u32) -> ProtocolVersions {
    ProtocolVersions { oldest, newest }
}

/// Returns the client of an indexer. Its process supports the versions `served`, and the client's
/// process the versions `spoken`.
async fn indexer(
    served: ProtocolVersions,
    spoken: ProtocolVersions,
) -> (Arc<dyn IndexerApi>, Task) {
    let peers = Peers::with_versions(Vec::new(), tcp_connect(), &Env::real(), served);
    peers.add_indexer(NODE, Arc::new(Answers));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = tonic::transport::Server::builder()
        .add_service(super::peer_service(peers, crate::wire::PeerTrust::Insecure));
    let task = Env::real().spawn_request("peer", async move {
        server.serve_with_incoming(TcpListenerStream::new(listener)).await.unwrap();
    });
    let directory =
        PeerDirectory(Peers::with_versions(Vec::new(), tcp_connect(), &Env::real(), spoken));
    let info = NodeInfo { id: NODE, role: Role::Indexer, address, zone: String::new() };
    (directory.indexer(&info), task)
}

fn slice() -> SliceId {
    SliceId { index: IndexId(1), generation: Generation(1), slice: SliceNo(0) }
}

#[tokio::test]
async fn a_process_works_with_one_of_the_next_version() {
    let v = ProtocolVersions::SPOKEN.newest;
    for (served, spoken) in [
        (versions(v, v), versions(v, v + 1)),
        (versions(v, v + 1), versions(v, v)),
        (versions(v, v + 1), versions(v + 1, v + 2)),
        (versions(v + 1, v + 2), versions(v, v + 1)),
    ] {
        let (indexer, _task) = indexer(served, spoken).await;
        for epoch in [Epoch(3), Epoch(4)] {
            let sum = indexer.checksum(slice(), epoch).await.expect("a common version");
            assert_eq!(sum, (epoch.0, epoch.0), "{served} and {spoken}");
        }
        let mut reports = indexer.watch_applied().await.expect("a common version");
        assert_eq!(reports.next().await.expect("a report").expect("a report").node, NODE);
    }
}

#[tokio::test]
async fn the_first_call_may_be_a_stream() {
    let v = ProtocolVersions::SPOKEN.newest;
    let (indexer, _task) = indexer(versions(v, v), versions(v, v + 1)).await;
    assert!(indexer.watch_applied().await.expect("a common version").next().await.is_some());
}

#[tokio::test]
async fn processes_without_a_common_version_refuse_each_other() {
    let v = ProtocolVersions::SPOKEN.newest;
    for (served, spoken) in
        [(versions(v, v), versions(v + 1, v + 1)), (versions(v + 1, v + 2), versions(v, v))]
    {
        let (indexer, _task) = indexer(served, spoken).await;
        let error = indexer.checksum(slice(), Epoch(1)).await.expect_err("no common version");
        assert!(error.message.contains(&served.to_string()), "{error}");
        assert!(error.message.contains(&spoken.to_string()), "{error}");
    }
}
