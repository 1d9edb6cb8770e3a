//! The gRPC server through which other processes call the services of this process.

use std::marker::PhantomData;

use futures::{Stream, StreamExt, stream};
use proto::Result;
use proto::env::Env;
use proto::grpc::peer_server::{Peer, PeerServer};
use proto::grpc::{PeerAnswer, PeerQuestion, PeerReply, PeerRequest};
use proto::model::identity::ClusterId;
use proto::rpc::api::PEER_MESSAGE_BYTES_MAX;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tonic::metadata::MetadataMap;
use tonic::{Extensions, Request, Response, Status, Streaming};

use super::answers::{Answers, QuestionService, answers};
use super::callers::{
    Caller, PeerTrust, check_heartbeat, check_proposal, check_raft, check_sync, check_watch,
};
use super::clusters::cluster_of;
use super::codec::{decode, encode, no_method, split_method};
use super::methods::*;
use super::peers::Peers;

/// Returns the gRPC service for all services that are registered in this process.
pub fn peer_service(peers: Arc<Peers>, trust: PeerTrust) -> PeerServer<impl Peer> {
    PeerServer::new(PeerEndpoint { peers, trust })
        .max_decoding_message_size(PEER_MESSAGE_BYTES_MAX)
        .max_encoding_message_size(PEER_MESSAGE_BYTES_MAX)
}

/// The number of bytes of arguments up to which they are decoded on the thread of the connection,
/// which takes less than a millisecond.
const INLINE_BYTES_MAX: usize = 64 << 10;

/// The gRPC service for the registered services of a process.
struct PeerEndpoint {
    peers: Arc<Peers>,
    trust: PeerTrust,
}

/// The handler of the requests of one caller.
#[derive(Clone)]
struct CallerAnswers {
    peers: Arc<Peers>,
    caller: Caller,
}

impl QuestionService for CallerAnswers {
    fn env(&self) -> &Env {
        &self.peers.env
    }

    fn failed(number: u64) -> PeerAnswer {
        let error = proto::Error::internal("the work on a question failed; the log says where");
        let body = encode::<Result<()>>(&Err(error));
        PeerAnswer { number, body: body.unwrap_or_default() }
    }

    fn accept(
        &self,
        version: u32,
        headers: &MetadataMap,
        cluster: Option<ClusterId>,
    ) -> std::result::Result<(), Status> {
        self.peers.versions.accept(version, headers)?;
        self.peers.cluster.accept_cluster(cluster)
    }

    fn answer(
        &self,
        PeerQuestion { number, node, body, .. }: PeerQuestion,
    ) -> impl Future<Output = PeerAnswer> + Send + 'static {
        let endpoint = self.clone();
        async move {
            let answered = CallerAnswers::answer(&endpoint, NodeId(node), body).await;
            // An answer that cannot be encoded is replaced by an error, which can be encoded.
            let body = answered.map(|reply| reply.body).or_else(|status| {
                let error = proto::Error::internal(status.message());
                encode::<Result<()>>(&Err(error))
            });
            PeerAnswer { number, body: body.unwrap_or_default() }
        }
    }
}

/// The reply to a call, or the status that refuses it.
type Reply = std::result::Result<PeerReply, Status>;
/// The result of opening a stream. A status means that the caller is refused.
type StreamResult = std::result::Result<Result<Replies>, Status>;
/// A stream of replies.
type Replies = std::pin::Pin<Box<dyn Stream<Item = std::result::Result<PeerReply, Status>> + Send>>;

/// Decodes the arguments of a call. Long arguments are decoded on a blocking thread, because
/// documents in them are checked.
async fn decode_arguments<T>(env: &Env, arguments: Bytes) -> Result<T>
where
    T: DeserializeOwned + Send + 'static,
{
    match arguments.len() > INLINE_BYTES_MAX {
        true => env.blocking(move || decode(&arguments)).await,
        false => decode(&arguments),
    }
}

/// Returns a reply that contains the result of a call.
fn reply<T: Serialize>(answer: Result<T>) -> Reply {
    let body = encode(&answer).map_err(|error| Status::internal(error.message))?;
    Ok(PeerReply { body })
}

/// The dispatch of calls to the methods of one service.
struct Methods<T: ?Sized>(PhantomData<T>);

macro_rules! answer_methods {
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
        impl Methods<dyn $api> {
            /// Answers a call. Returns `None` if the method belongs to another service.
            async fn answer(
                (peers, caller): (&Peers, &Caller),
                node: NodeId,
                number: u32,
                arguments: Bytes,
            ) -> Option<Reply> {
                match number {
                    $($number => {
                        let holders = [$(stringify!($caller)),+];
                        if let Err(refused) = caller.may_call(stringify!($name), &holders) {
                            return Some(Err(refused));
                        }
                        let arguments: Result<($($type,)*)> =
                            decode_arguments(&peers.env, arguments).await;
                        let arguments = match arguments {
                            Ok(arguments) => arguments,
                            Err(error) => return Some(reply::<$answer>(Err(error))),
                        };
                        $(let arguments = match $claims(caller, arguments) {
                            Ok(arguments) => arguments,
                            Err(refused) => return Some(Err(refused)),
                        };)?
                        let ($($argument,)*) = arguments;
                        let answer: Result<$answer> = async {
                            peers.$local(node)?.$name($($argument),*).await
                        }
                        .await;
                        Some(reply(answer))
                    })*
                    _ => None,
                }
            }

            /// Opens a stream. Returns `None` if the method belongs to another service.
            async fn open(
                (peers, caller): (&Peers, &Caller),
                node: NodeId,
                number: u32,
                arguments: &[u8],
            ) -> Option<StreamResult> {
                match number {
                    $($stream_number => {
                        let holders = [$(stringify!($stream_caller)),+];
                        if let Err(refused) = caller.may_call(stringify!($stream), &holders) {
                            return Some(Err(refused));
                        }
                        let arguments: ($($stream_type,)*) = match decode(arguments) {
                            Ok(arguments) => arguments,
                            Err(error) => return Some(Ok(Err(error))),
                        };
                        $(let arguments = match $stream_claims(caller, arguments) {
                            Ok(arguments) => arguments,
                            Err(refused) => return Some(Err(refused)),
                        };)?
                        let ($($stream_argument,)*) = arguments;
                        let opened = async {
                            let items = peers.$local(node)?.$stream($($stream_argument),*).await?;
                            Ok(replies(items))
                        };
                        Some(Ok(opened.await))
                    })*
                    _ => None,
                }
            }
        }
    };
}

coordinator_methods!(answer_methods);
projector_methods!(answer_methods);
indexer_methods!(answer_methods);

impl CallerAnswers {
    /// Answers a call by the service to which the method belongs.
    async fn answer(&self, node: NodeId, question: Bytes) -> Reply {
        let (number, arguments) = match split_method(&question) {
            Ok((number, arguments)) => (number, question.slice_ref(arguments)),
            Err(error) => return reply::<()>(Err(error)),
        };
        let peers = (&*self.peers, &self.caller);
        let coordinator =
            <Methods<dyn CoordinatorApi>>::answer(peers, node, number, arguments.clone());
        if let Some(answer) = coordinator.await {
            return answer;
        }
        let projector = <Methods<dyn ProjectorApi>>::answer(peers, node, number, arguments.clone());
        if let Some(answer) = projector.await {
            return answer;
        }
        let indexer = <Methods<dyn IndexerApi>>::answer(peers, node, number, arguments);
        indexer.await.unwrap_or_else(|| reply::<()>(Err(no_method(number))))
    }

    /// Opens a stream of the service to which the method belongs.
    async fn begin(&self, node: NodeId, question: &[u8]) -> StreamResult {
        let (number, arguments) = match split_method(question) {
            Ok(split) => split,
            Err(error) => return Ok(Err(error)),
        };
        let peers = (&*self.peers, &self.caller);
        let coordinator = <Methods<dyn CoordinatorApi>>::open(peers, node, number, arguments);
        if let Some(opened) = coordinator.await {
            return opened;
        }
        let projector = <Methods<dyn ProjectorApi>>::open(peers, node, number, arguments);
        if let Some(opened) = projector.await {
            return opened;
        }
        let indexer = <Methods<dyn IndexerApi>>::open(peers, node, number, arguments);
        indexer.await.unwrap_or_else(|| Ok(Err(no_method(number))))
    }
}

/// Returns the replies of an open stream. The first reply confirms that the stream is open; the
/// items follow.
fn replies<T: Serialize + 'static>(
    answers: impl Stream<Item = Result<T>> + Send + 'static,
) -> Replies {
    let accepted = stream::once(async { reply(Ok(())) });
    Box::pin(accepted.chain(answers.map(reply)))
}

/// Returns a reply with a constant date header. Otherwise the library Hyper adds the system's
/// date; the bytes on the wire, and with them the simulation, would then depend on a clock.
fn with_fixed_date<T>(reply: T) -> Response<T> {
    let mut response = Response::new(reply);
    let epoch = tonic::metadata::MetadataValue::from_static("Thu, 01 Jan 1970 00:00:00 GMT");
    response.metadata_mut().insert("date", epoch);
    response
}

impl PeerEndpoint {
    /// Returns the handler for the caller on a connection.
    fn answering(&self, connection: &Extensions) -> std::result::Result<CallerAnswers, Status> {
        let caller = Caller::on_connection(self.trust, connection)?;
        Ok(CallerAnswers { peers: Arc::clone(&self.peers), caller })
    }
}

#[tonic::async_trait]
impl Peer for PeerEndpoint {
    type OpenStream = Replies;
    type AskStream = Answers;

    async fn ask(
        &self,
        request: Request<Streaming<PeerQuestion>>,
    ) -> std::result::Result<Response<Answers>, Status> {
        let (headers, connection, questions) = request.into_parts();
        let answering = self.answering(&connection)?;
        let cluster = cluster_of(&headers);
        self.peers.cluster.accept_cluster(cluster)?;
        Ok(with_fixed_date(answers(answering, headers, cluster, questions)))
    }

    async fn call(
        &self,
        request: Request<PeerRequest>,
    ) -> std::result::Result<Response<PeerReply>, Status> {
        let (headers, connection, request) = request.into_parts();
        let answering = self.answering(&connection)?;
        self.peers.versions.accept(request.version, &headers)?;
        self.peers.cluster.accept(&headers)?;
        answering.answer(NodeId(request.node), request.body).await.map(with_fixed_date)
    }

    async fn open(
        &self,
        request: Request<PeerRequest>,
    ) -> std::result::Result<Response<Replies>, Status> {
        let (headers, connection, request) = request.into_parts();
        let answering = self.answering(&connection)?;
        self.peers.versions.accept(request.version, &headers)?;
        self.peers.cluster.accept(&headers)?;
        let begun = answering.begin(NodeId(request.node), &request.body).await?;
        let replies = begun
            .unwrap_or_else(|error| Box::pin(stream::once(async move { reply::<()>(Err(error)) })));
        Ok(with_fixed_date(replies))
    }
}
