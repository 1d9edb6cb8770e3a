//! The client of services in other processes, which calls them over gRPC.

use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use futures::StreamExt;
use proto::env::Env;
use proto::grpc::PeerRequest;
use proto::grpc::peer_client::PeerClient;
use proto::rpc::api::PEER_MESSAGE_BYTES_MAX;
use proto::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tonic::metadata::MetadataMap;
use tonic::transport::Channel;
use tonic::{Request, Status};

use super::clusters::OwnCluster;
use super::codec::{decode, encode};
use super::methods::*;
use super::questions::{LaneParameters, Lanes, LostReason};
use super::versions::ProtocolVersions;

/// A connection to another process. All clients of services in that process share it. A clone is
/// cheap.
#[derive(Clone)]
pub(super) struct Connection {
    channel: Channel,
    /// The protocol versions that this process supports.
    versions: ProtocolVersions,
    /// The protocol version of requests to the other process, which both processes support.
    version: Arc<AtomicU32>,
    /// The cluster of this process.
    cluster: Arc<OwnCluster>,
    questions: Arc<Lanes>,
}

impl Connection {
    /// Returns a connection whose first request has the newest version.
    pub fn new(
        channel: Channel,
        versions: ProtocolVersions,
        cluster: Arc<OwnCluster>,
        env: &Env,
    ) -> Self {
        let version = Arc::new(AtomicU32::new(versions.newest));
        let questions = Arc::new(Lanes::new(env.clone()));
        Self { channel, versions, version, cluster, questions }
    }

    /// Returns a client of the other process.
    fn client(&self) -> PeerClient<Channel> {
        PeerClient::new(self.channel.clone())
            .max_decoding_message_size(PEER_MESSAGE_BYTES_MAX)
            .max_encoding_message_size(PEER_MESSAGE_BYTES_MAX)
    }

    /// Adds the headers of this process to a message.
    fn sign(&self, metadata: &mut MetadataMap) {
        self.versions.write_to(metadata);
        self.cluster.write_to(metadata);
    }

    /// Returns the version in which a refused request should be repeated. Returns `None` if both
    /// processes have no common version.
    fn agree(&self, refused: u32, refusal: &Status) -> Option<u32> {
        let theirs = ProtocolVersions::from_metadata(refusal.metadata())?;
        let common = self.versions.common(theirs).filter(|common| *common != refused)?;
        self.version.store(common, Ordering::Relaxed);
        Some(common)
    }
}

/// A client of a service in another process, of any role.
#[derive(Clone)]
pub(super) struct Remote {
    node: NodeId,
    address: Arc<str>,
    connection: Result<Connection>,
}

impl Remote {
    /// Returns the client of the service of a node.
    pub fn new(node: NodeId, address: &str, connection: Result<Connection>) -> Self {
        let connection =
            connection.map_err(|error| error.context(format!("node {node} at {address}")));
        Self { node, address: address.into(), connection }
    }

    /// Converts a gRPC status to an error. The error for a message that is too large is
    /// permanent. After any other error the caller may try again.
    fn status_to_error(&self, status: Status) -> Error {
        let message = format!("node {} at {}: {}", self.node, self.address, status.message());
        if self.connection.as_ref().is_ok_and(|connection| connection.cluster.is_refusal(&status)) {
            return Error::new(proto::ErrorCode::OtherCluster, message).with_hint(
                "check --coordinators and the addresses of the processes of both clusters",
            );
        }
        match status.code() {
            // The transport also reports `ResourceExhausted` for a connection that was ended
            // because of too many cancelled calls.
            _ if was_lost_midway(&status) => Error::new(proto::ErrorCode::Interrupted, message),
            tonic::Code::OutOfRange | tonic::Code::ResourceExhausted => {
                Error::new(proto::ErrorCode::OverLimit, message)
            }
            _ => Error::unavailable(message),
        }
    }

    /// Sends a request. If the other process refuses its protocol version, sends it again in a
    /// common version, if there is one. The refused request was not executed.
    async fn send<R>(
        &self,
        body: Bytes,
        send: impl AsyncFn(PeerClient<Channel>, Request<PeerRequest>) -> std::result::Result<R, Status>,
    ) -> Result<R> {
        let connection = self.connection.clone()?;
        let client = connection.client();
        let request = |version: u32| {
            let message = PeerRequest { version, node: self.node.0, body: body.clone() };
            let mut request = Request::new(message);
            connection.sign(request.metadata_mut());
            request
        };
        let version = connection.version.load(Ordering::Relaxed);
        let refusal = match send(client.clone(), request(version)).await {
            Ok(reply) => return Ok(reply),
            Err(status) => status,
        };
        match connection.agree(version, &refusal) {
            Some(common) => {
                send(client, request(common)).await.map_err(|status| self.status_to_error(status))
            }
            None => Err(self.status_to_error(refusal)),
        }
    }

    /// Sends a call and returns its reply, as a question or as an ordinary call.
    async fn call<T: DeserializeOwned>(&self, number: u32, arguments: impl Serialize) -> Result<T> {
        let body = encode(&(number, arguments))?;
        if QUESTIONS.contains(&number)
            && body.len() <= QUESTION_BYTES_MAX
            && let Some(answer) = self.send_question(body.clone()).await?
        {
            return decode::<Result<T>>(&answer)?;
        }
        let reply = self.send(body, async |mut client, request| client.call(request).await).await?;
        decode::<Result<T>>(&reply.into_inner().body)?
    }

    /// Sends a short request on a shared stream. Returns `None` if it must be sent as an ordinary
    /// call instead.
    async fn send_question(&self, body: Bytes) -> Result<Option<Bytes>> {
        let connection = self.connection.as_ref().map_err(Error::clone)?;
        let opening = LaneParameters {
            client: connection.client(),
            version: connection.version.load(Ordering::Relaxed),
            cluster: connection.cluster.get(),
            sign: &|metadata| connection.sign(metadata),
        };
        match connection.questions.ask(opening, self.node, body).await {
            Ok(answer) => Ok(Some(answer)),
            Err(LostReason::Refused) => Ok(None),
            Err(LostReason::Ended(status)) => Err(self.status_to_error(status)),
        }
    }

    /// Opens a stream of replies.
    async fn open<T: DeserializeOwned + Send + 'static>(
        &self,
        number: u32,
        arguments: impl Serialize,
    ) -> Result<ResultStream<T>> {
        let body = encode(&(number, arguments))?;
        let replies =
            self.send(body, async |mut client, request| client.open(request).await).await?;
        let mut replies = replies.into_inner();
        let node = self.clone();
        // The first reply shows whether the stream was opened.
        match replies.message().await.map_err(|s| node.status_to_error(s))? {
            Some(first) => decode::<Result<()>>(&first.body)??,
            None => {
                return Err(Error::unavailable(format!("node {} closed the stream", self.node)));
            }
        }
        Ok(Box::pin(replies.map(move |reply| {
            let reply = reply.map_err(|status| node.status_to_error(status))?;
            decode::<Result<T>>(&reply.body)?
        })))
    }
}

/// Returns true if a status comes from the loss of an established connection, and not from the
/// other process.
fn was_lost_midway(status: &Status) -> bool {
    let first = std::error::Error::source(status);
    let mut sources = std::iter::successors(first, |source| source.source());
    first.is_some() && !sources.any(|source| source.is::<tonic::ConnectError>())
}

/// Checks the blocks of rows that a scan returns, because later code reads them without checks.
fn check_rows(batches: ResultStream<ShardBatch>) -> ResultStream<ShardBatch> {
    Box::pin(batches.map(|batch| check_batch(batch?)))
}

/// Checks the blocks of rows in a batch.
fn check_batch(batch: ShardBatch) -> Result<ShardBatch> {
    if let ShardBatch::Rows(block) = &batch {
        block.validate()?;
    }
    Ok(batch)
}

/// Checks the blocks of rows in the first batch of a scan.
fn check_first_batch(first: FirstBatch) -> Result<FirstBatch> {
    Ok(FirstBatch { batch: check_batch(first.batch)?, ..first })
}

macro_rules! call_remote {
    (
        $api:ident, $local:ident;
        calls { $(
            $number:literal $name:ident($($argument:ident: $type:ty),*) -> $answer:ty
            , for $($caller:ident)+ $(, claims $claims:ident)? $(, checked by $check_answer:ident)? $(, via $($via:ident)+)?;
        )* }
        streams { $(
            $stream_number:literal $stream:ident($($stream_argument:ident: $stream_type:ty),*)
            -> $item:ty, for $($stream_caller:ident)+ $(, claims $stream_claims:ident)? $(, checked by $check:ident)? $(, via $($stream_via:ident)+)?;
        )* }
    ) => {
        #[async_trait]
        impl $api for Remote {
            $(async fn $name(&self, $($argument: $type),*) -> Result<$answer> {
                let answer = self.call($number, ($($argument,)*)).await?;
                $(let answer = $check_answer(answer)?;)?
                Ok(answer)
            })*
            $(async fn $stream(&self, $($stream_argument: $stream_type),*)
                -> Result<ResultStream<$item>>
            {
                let items = self.open($stream_number, ($($stream_argument,)*)).await?;
                $(let items = $check(items);)?
                Ok(items)
            })*
        }
    };
}

coordinator_methods!(call_remote);
projector_methods!(call_remote);
indexer_methods!(call_remote);

#[cfg(test)]
mod tests {
    use super::*;

    /// Postcard encodes an enum as its variant's number, then the fields. Earlier releases used
    /// enums for requests, so the number and the arguments of a method must have the same bytes.
    #[test]
    fn a_request_has_the_encoding_of_an_enum() {
        #[derive(Serialize)]
        #[allow(dead_code)]
        enum Call {
            Propose(u8),
            Get(BucketId, Vec<String>),
            Status,
        }
        let names = || vec!["a".to_owned(), String::new()];
        let get = encode(&(1u32, (BucketId(300), names()))).expect("encoded");
        assert_eq!(get, encode(&Call::Get(BucketId(300), names())).expect("encoded"));
        let status = encode(&(2u32, ())).expect("encoded");
        assert_eq!(status, encode(&Call::Status).expect("encoded"));
    }
}
