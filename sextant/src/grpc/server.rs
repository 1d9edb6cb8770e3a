//! Assembles the gRPC services of a process's ports.

use std::sync::Arc;
use std::time::Duration;

use proto::env::Env;
use proto::grpc::admin_server::AdminServer;
use proto::grpc::ingest_server::IngestServer;
use proto::grpc::query_server::QueryServer;
use proto::grpc::{DESCRIPTORS, PEER_DESCRIPTORS};
use tonic::codec::CompressionEncoding;
use tonic::server::NamedService;
use tonic::transport::Server;
use tonic::transport::server::Router;

use super::admission::AdmittedService;
use super::caller::Callers;
use super::health::HealthService;
use super::request_body::MESSAGE_BYTES_MAX;
use super::transactions::{OPEN_MAX, Transactions};
use super::{admin, ingest, query};
use crate::access::AccessProvider;
use crate::auth::login_policy::LoginPolicy;
use crate::flow::{CONNECTION_WINDOW_BYTES, HEADER_LIST_BYTES_MAX, STREAM_WINDOW_BYTES};
use crate::wire::{PeerTrust, Peers, peer_service};

/// The time after which an idle connection gets an HTTP/2 ping. A client that has vanished or is
/// suspended does not answer, so its connection ends and its scans are released.
const QUIET_MAX: Duration = Duration::from_secs(30);
/// The time limit for the answer to a ping. It is long because a ping may queue after megabytes
/// of rows on a slow line.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// The maximum number of concurrent streams of one connection. A client waits before it opens
/// further streams.
const STREAMS_MAX: u32 = 200;
/// The maximum number of concurrent streams of a connection of another process. Such a process
/// has some streams for each bucket and one for each call.
const PEER_STREAMS_MAX: u32 = 64 << 10;
/// The number of streams that the server resets on a connection before it closes the connection.
/// The HTTP/2 library counts each reset for ever, and also counts parts of messages that arrive
/// after the end of their call.
const LOCAL_RESETS_MAX: usize = 1024;
/// The number of streams that a client may open and reset before the server accepts them. If a
/// client exceeds it, the connection is closed (CVE-2023-44487).
const PENDING_RESETS_MAX: usize = 20;

/// Sets the size limits of received and sent messages; tonic has no limit for sent messages.
/// Compressed messages are accepted, and the limit applies to the uncompressed message.
macro_rules! limits {
    ($service:expr) => {
        $service
            .accept_compressed(CompressionEncoding::Gzip)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX)
    };
}

/// Adds reflection for the services of one port, in both versions. Older clients use `v1alpha`.
macro_rules! reflection {
    ($descriptors:expr) => {{
        let described = || {
            tonic_reflection::server::Builder::configure()
                .register_encoded_file_descriptor_set($descriptors)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        };
        let generated = "this build has generated the descriptors";
        let (v1, v1alpha) = (described().build_v1(), described().build_v1alpha());
        (
            v1.expect(generated).accept_compressed(CompressionEncoding::Gzip),
            v1alpha.expect(generated).accept_compressed(CompressionEncoding::Gzip),
        )
    }};
}

/// Returns the services of a port for other processes: Raft, proposals, streams of changes, shard
/// scans. A port for users never has these services.
pub fn peer_services(peers: Arc<Peers>, trust: PeerTrust) -> Router {
    let health = tonic_health::server::health_reporter().1;
    let (v1, v1alpha) = reflection!(PEER_DESCRIPTORS);
    server(QUIET_MAX, ANSWER_WITHIN)
        .max_concurrent_streams(PEER_STREAMS_MAX)
        .add_service(health)
        .add_service(v1)
        .add_service(v1alpha)
        .add_service(peer_service(peers, trust))
}

/// Returns the services of a port for users. All services except health need a principal. Calls
/// of the health service keep their connection open too, because a client may make no other calls
/// for a long time.
pub fn services(provider: Arc<dyn AccessProvider>, doors: &Arc<LoginPolicy>, env: Env) -> Router {
    let transactions = Arc::new(Transactions::new(&env, OPEN_MAX));
    let callers = Callers { provider, doors: Arc::clone(doors), env };
    let admin = AdminServer::new(admin::AdminService { callers: callers.clone() });
    let ingest = IngestServer::new(ingest::IngestService {
        callers: callers.clone(),
        transactions: Arc::clone(&transactions),
    });
    let query = QueryServer::new(query::QueryService { callers, transactions });
    let names = [name_of(&admin), name_of(&ingest), name_of(&query)];
    let health =
        HealthService::server(&names, doors.flow()).accept_compressed(CompressionEncoding::Gzip);
    let (v1, v1alpha) = reflection!(DESCRIPTORS);
    user_server()
        .add_service(AdmittedService::new_public(health))
        .add_service(AdmittedService::new(v1, doors))
        .add_service(AdmittedService::new(v1alpha, doors))
        .add_service(AdmittedService::new(limits!(admin), doors))
        .add_service(AdmittedService::new(limits!(ingest), doors))
        .add_service(AdmittedService::new(limits!(query), doors))
}

fn name_of<S: NamedService>(_: &S) -> &'static str {
    S::NAME
}

/// Returns a gRPC server with the settings of a port for users.
fn user_server() -> Server {
    server(QUIET_MAX, ANSWER_WITHIN)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(STREAMS_MAX)
}

/// Returns a gRPC server with all limits set explicitly, because for some the library has no
/// limit by default.
fn server(quiet_max: Duration, answer_within: Duration) -> Server {
    Server::builder()
        .http2_max_header_list_size(HEADER_LIST_BYTES_MAX)
        .http2_max_local_error_reset_streams(Some(LOCAL_RESETS_MAX))
        .http2_max_pending_accept_reset_streams(Some(PENDING_RESETS_MAX))
        .http2_keepalive_interval(Some(quiet_max))
        .http2_keepalive_timeout(Some(answer_within))
        .initial_stream_window_size(4 << 20)
        .initial_connection_window_size(16 << 20)
}

#[cfg(test)]
mod tests {
    use proto::env::Env;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::timeout;

    use super::*;
    use crate::listen::connections;

    /// The beginning of an HTTP/2 connection: the preface, and settings with default values.
    const BEGIN: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

    #[tokio::test]
    async fn a_connection_whose_client_does_not_answer_pings_is_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let mut client =
            TcpStream::connect(listener.local_addr().expect("an address")).await.expect("a server");
        client.write_all(BEGIN).await.expect("sent");
        let soon = Duration::from_millis(100);
        let services = server(soon, soon).add_service(tonic_health::server::health_reporter().1);
        let _serving = Env::real().spawn_request("grpc", async move {
            services.serve_with_incoming(connections(listener)).await.expect("served");
        });
        client.read_u8().await.expect("the server's settings");
        let mut rest = Vec::new();
        let hung_up = timeout(100 * soon, client.read_to_end(&mut rest)).await;
        hung_up.expect("the connection ends").expect("in order");
    }
}
