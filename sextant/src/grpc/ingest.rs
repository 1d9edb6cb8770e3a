//! The gRPC service `Ingest`: streams of documents and mutations, and transactions.

use std::net::SocketAddr;
use std::sync::Arc;

use proto::env::Env;
use proto::grpc::ingest_server::Ingest;
use proto::grpc::{
    AbortPushRequest, AbortReply, AbortRequest, BeginReply, BeginRequest, CommitPushRequest,
    CommitReply, CommitRequest, MutationsReply, MutationsRequest, PositionsReply, PositionsRequest,
    PushReply, PushRequest, WriteReply, WriteRequest,
};
use proto::model::bucket::BucketInfo;
use proto::model::users::Privilege;
use proto::{Error, ErrorCode, Result};
use tonic::{Request, Response, Status, Streaming};

use super::admission::places_of;
use super::caller::Callers;
use super::decode::{decode_writes, position};
use super::push;
use super::request_streams::{AsyncAnswer, Replies, answer};
use super::status::counted_status;
use super::transact::{MutationHandler, TransactionCalls};
use super::transactions::Transactions;
use crate::access::Access;
use crate::limited::remote_address;

/// The implementation of the gRPC service `Ingest`.
pub(super) struct IngestService {
    pub(super) callers: Callers,
    pub(super) transactions: Arc<Transactions>,
}

/// Returns the bucket that a request of a stream names, and remembers it. Later requests may omit
/// the name and then mean the remembered bucket.
async fn stream_bucket(
    access: &Access,
    known: &mut Option<Arc<BucketInfo>>,
    name: &str,
) -> Result<Arc<BucketInfo>> {
    match known {
        Some(bucket) if name.is_empty() || name == bucket.name => Ok(Arc::clone(bucket)),
        None if name.is_empty() => {
            Err(Error::new(ErrorCode::InvalidParameter, "the first request must name a bucket"))
        }
        _ => {
            let bucket = access.bucket(name).await?;
            *known = Some(Arc::clone(&bucket));
            Ok(bucket)
        }
    }
}

/// The handler of a stream of writes: the bucket of the last request, which later requests may
/// omit, and the seams.
struct WriteHandler(Option<Arc<BucketInfo>>, Env);

#[tonic::async_trait]
impl AsyncAnswer<WriteRequest, WriteReply> for WriteHandler {
    async fn answer(&mut self, access: &Access, request: WriteRequest) -> Result<WriteReply> {
        let bucket = stream_bucket(access, &mut self.0, &request.bucket).await?;
        // The privilege is checked before the documents are read, and again when they are sent.
        access.check_privilege(Privilege::Write, bucket.id)?;
        let writes = decode_writes(&self.1, request.writes).await?;
        let reply = access.writer(&bucket)?.write(writes).await?;
        Ok(WriteReply { affected: reply.affected, write_position: reply.position.to_string() })
    }
}

/// The handler of a stream of pushed mutations: the bucket of the last request, which later
/// requests may omit, and the client's address.
struct PushHandler(Option<Arc<BucketInfo>>, Option<SocketAddr>);

#[tonic::async_trait]
impl AsyncAnswer<PushRequest, PushReply> for PushHandler {
    async fn answer(&mut self, access: &Access, request: PushRequest) -> Result<PushReply> {
        let bucket = stream_bucket(access, &mut self.0, &request.bucket).await?;
        push::push(access, &bucket, request, self.1).await
    }
}

#[tonic::async_trait]
impl Ingest for IngestService {
    type WriteStream = Replies<WriteReply>;
    type PushStream = Replies<PushReply>;
    type MutationsStream = Replies<MutationsReply>;

    async fn write(
        &self,
        request: Request<Streaming<WriteRequest>>,
    ) -> std::result::Result<Response<Self::WriteStream>, Status> {
        let writes = WriteHandler(None, self.callers.env.clone());
        Ok(Response::new(answer(&self.callers, request, writes)?))
    }

    async fn push(
        &self,
        request: Request<Streaming<PushRequest>>,
    ) -> std::result::Result<Response<Self::PushStream>, Status> {
        let pushes = PushHandler(None, remote_address(&request));
        Ok(Response::new(answer(&self.callers, request, pushes)?))
    }

    async fn commit_push(
        &self,
        request: Request<CommitPushRequest>,
    ) -> std::result::Result<Response<PushReply>, Status> {
        let access = self.callers.of(&request)?;
        let (env, held) = (&self.callers.env, places_of(&request));
        let committed = push::commit(&access, env, request.into_inner(), held).await;
        Ok(Response::new(committed.map_err(|error| counted_status(&access, error))?))
    }

    async fn abort_push(
        &self,
        request: Request<AbortPushRequest>,
    ) -> std::result::Result<Response<AbortReply>, Status> {
        let access = self.callers.of(&request)?;
        let aborted = push::abort(&access, request.into_inner()).await;
        Ok(Response::new(aborted.map_err(|error| counted_status(&access, error))?))
    }

    async fn positions(
        &self,
        request: Request<PositionsRequest>,
    ) -> std::result::Result<Response<PositionsReply>, Status> {
        let access = self.callers.of(&request)?;
        let positions = async {
            let bucket = access.bucket(&request.into_inner().bucket).await?;
            access.writer(&bucket)?.positions().await
        };
        let cut = positions.await.map_err(|error| counted_status(&access, error))?;
        Ok(Response::new(PositionsReply { positions: cut.iter().map(position).collect() }))
    }

    async fn begin(
        &self,
        request: Request<BeginRequest>,
    ) -> std::result::Result<Response<BeginReply>, Status> {
        let transact = self.transact(&request)?;
        let access = transact.access.clone();
        let from = remote_address(&request);
        let begun = transact.begin(request.into_inner(), from).await;
        Ok(Response::new(begun.map_err(|error| counted_status(&access, error))?))
    }

    async fn mutations(
        &self,
        request: Request<Streaming<MutationsRequest>>,
    ) -> std::result::Result<Response<Self::MutationsStream>, Status> {
        let mutations =
            MutationHandler::new(self.callers.env.clone(), Arc::clone(&self.transactions));
        Ok(Response::new(answer(&self.callers, request, mutations)?))
    }

    async fn commit(
        &self,
        request: Request<CommitRequest>,
    ) -> std::result::Result<Response<CommitReply>, Status> {
        let transact = self.transact(&request)?;
        let access = transact.access.clone();
        let held = places_of(&request);
        let committed = transact.commit(request.into_inner(), held).await;
        Ok(Response::new(committed.map_err(|error| counted_status(&access, error))?))
    }

    async fn abort(
        &self,
        request: Request<AbortRequest>,
    ) -> std::result::Result<Response<AbortReply>, Status> {
        let transact = self.transact(&request)?;
        let access = transact.access.clone();
        let aborted = transact.abort(request.into_inner()).await;
        Ok(Response::new(aborted.map_err(|error| counted_status(&access, error))?))
    }
}

impl IngestService {
    /// Returns the handler of transaction calls for the principal of a request.
    fn transact<T>(&self, request: &Request<T>) -> std::result::Result<TransactionCalls, Status> {
        let access = self.callers.of(request)?;
        let (env, transactions) = (self.callers.env.clone(), Arc::clone(&self.transactions));
        Ok(TransactionCalls { access, env, transactions })
    }
}
