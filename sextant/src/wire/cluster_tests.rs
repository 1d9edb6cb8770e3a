//! Tests of calls between processes of different clusters, over real sockets.

use proto::env::{Env, Task};
use proto::model::identity::ClusterId;
use proto::model::ids::NodeId;
use proto::{ErrorCode, Result};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;

use super::connect::tcp_connect;
use super::peers::Peers;

const MEMBER: NodeId = NodeId(1);

/// Sends Raft messages from a process of one cluster to a process of another, which has no
/// coordinator; returns the result.
async fn send_raft(caller: Option<u128>, called: Option<u128>) -> Result<()> {
    let peers = Peers::new(Vec::new(), tcp_connect(), &Env::real());
    peers.add_cluster_source(move || called.map(ClusterId));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = tonic::transport::Server::builder()
        .add_service(super::peer_service(peers, crate::wire::PeerTrust::Insecure));
    let _task: Task = Env::real().spawn_request("peer", async move {
        server.serve_with_incoming(TcpListenerStream::new(listener)).await.unwrap();
    });
    let peers = Peers::new(vec![(MEMBER, address)], tcp_connect(), &Env::real());
    peers.add_cluster_source(move || caller.map(ClusterId));
    peers.coordinator_member(MEMBER)?.raft(Vec::new()).await
}

#[tokio::test]
async fn a_process_of_another_cluster_is_refused_by_name() {
    let error = send_raft(Some(1), Some(2)).await.unwrap_err();
    for cluster in [ClusterId(1), ClusterId(2)] {
        assert!(error.message.contains(&cluster.to_string()), "{error}");
    }
    assert_eq!(error.code, ErrorCode::OtherCluster);
    assert!(error.is_retry(), "another process may answer");
    assert!(error.hint.is_some(), "{error}");
    for (caller, called) in [(Some(1), Some(1)), (None, Some(1)), (Some(1), None), (None, None)] {
        let error = send_raft(caller, called).await.unwrap_err();
        assert!(error.message.contains("does not run in this process"), "{error}");
    }
}
