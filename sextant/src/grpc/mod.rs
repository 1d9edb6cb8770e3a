//! The gRPC services: `Admin`, `Ingest` and `Query` for users, `Peer` for other processes, health and
//! reflection.

mod admin;
mod ingest;
mod query;

use std::sync::Arc;

use proto::grpc::DESCRIPTORS;
use proto::grpc::admin_server::AdminServer;
use proto::grpc::ingest_server::IngestServer;
use proto::grpc::query_server::QueryServer;
use proto::{Error, ErrorCode, ErrorKind};
use tonic::transport::Server;
use tonic::transport::server::Router;
use tonic::{Code, Status};

use crate::backend::ClusterBackend;
use crate::wire::{Peers, peer_service};

/// The largest message from or to a user.
const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// Both limits; tonic has none for sending by itself.
macro_rules! limits {
    ($service:expr) => {
        $service
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX)
    };
}

/// What a role without users serves.
pub fn peer_services(peers: Arc<Peers>) -> Router {
    let health = tonic_health::server::health_reporter().1;
    server().add_service(health).add_service(reflection()).add_service(peer_service(peers))
}

/// What a process with a router serves.
pub fn services(backend: Arc<ClusterBackend>, peers: Arc<Peers>) -> Router {
    let admin = AdminServer::new(admin::Service { backend: Arc::clone(&backend) });
    let ingest = IngestServer::new(ingest::Service { backend: Arc::clone(&backend) });
    let query = QueryServer::new(query::Service { backend });
    peer_services(peers)
        .add_service(limits!(admin))
        .add_service(limits!(ingest))
        .add_service(limits!(query))
}

fn server() -> Server {
    Server::builder()
        .tcp_nodelay(true)
        .initial_stream_window_size(4 << 20)
        .initial_connection_window_size(16 << 20)
}

fn reflection() -> impl tonic::codegen::Service<
    tonic::codegen::http::Request<tonic::body::Body>,
    Response = tonic::codegen::http::Response<tonic::body::Body>,
    Error = std::convert::Infallible,
    Future: Send + 'static,
> + tonic::server::NamedService
+ Clone
+ Send
+ Sync
+ 'static {
    tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .expect("the descriptors were made by this build")
}

/// An error as gRPC tells it: the code by who can do something about it, the SQLSTATE in the metadata
/// under `sqlstate`.
fn status(error: Error) -> Status {
    let code = match (error.code, error.code.kind()) {
        (ErrorCode::Unknown, _) => Code::NotFound,
        (ErrorCode::Exists | ErrorCode::DuplicateId, _) => Code::AlreadyExists,
        (ErrorCode::Unsupported, _) => Code::Unimplemented,
        (ErrorCode::OverLimit | ErrorCode::TooComplex, _) => Code::ResourceExhausted,
        (ErrorCode::SnapshotTooOld, _) => Code::Aborted,
        (ErrorCode::Cancelled, _) => Code::DeadlineExceeded,
        (ErrorCode::OutOfOrder, _) => Code::FailedPrecondition,
        (_, ErrorKind::Retry) => Code::Unavailable,
        (_, ErrorKind::Caller) => Code::InvalidArgument,
        (_, ErrorKind::Operator) => Code::Internal,
    };
    let mut status = Status::new(code, error.to_string());
    if let Ok(state) = error.code.sqlstate().parse() {
        status.metadata_mut().insert("sqlstate", state);
    }
    status
}
