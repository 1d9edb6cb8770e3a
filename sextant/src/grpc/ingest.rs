//! Streaming ingest of documents and mutations.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use proto::grpc::document_write::Kind;
use proto::grpc::ingest_server::Ingest;
use proto::grpc::{
    PositionsReply, PositionsRequest, PushReply, PushRequest, VbucketPosition, WriteReply,
    WriteRequest,
};
use proto::model::bucket::BucketInfo;
use proto::model::cut::Position;
use proto::model::ids::{Seqno, VbucketId, Vbuuid};
use proto::rpc::api;
use proto::rpc::mutation::MutationKind;
use proto::{Error, ErrorCode, Result};
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status, Streaming};

use super::caller::principal;
use super::status::{counted, status};
use crate::backend::ClusterBackend;
use crate::sql::backend::Backend;

/// How long a request is waited for that was begun before the deadline of its stream: a little longer than the projector
/// lets a write wait for its turn.
const OUTCOME_WAIT: Duration = Duration::from_secs(12);

/// Maximum of replies that wait for a slow client.
const REPLIES_WAITING: usize = 16;

pub(super) struct IngestService {
    pub(super) backend: Arc<ClusterBackend>,
}

type Replies<T> = ReceiverStream<std::result::Result<T, Status>>;

fn position((vbucket, position): (VbucketId, Position)) -> VbucketPosition {
    VbucketPosition {
        vbucket: vbucket.0.into(),
        vbuuid: position.vbuuid.0,
        seqno: position.seqno.0,
    }
}

/// Returns the bucket of a request and remembers it, because later requests of a stream may omit it.
async fn stream_bucket(
    backend: &ClusterBackend,
    known: &mut Option<Arc<BucketInfo>>,
    name: &str,
) -> Result<Arc<BucketInfo>> {
    match known {
        Some(bucket) if name.is_empty() || name == bucket.name => Ok(Arc::clone(bucket)),
        None if name.is_empty() => {
            Err(Error::new(ErrorCode::InvalidParameter, "the first request must name a bucket"))
        }
        _ => {
            let bucket = backend.bucket(name).await?;
            *known = Some(Arc::clone(&bucket));
            Ok(bucket)
        }
    }
}

fn decode_write(write: proto::grpc::DocumentWrite) -> Result<api::Write> {
    let kind = match write.kind {
        Some(Kind::Insert(document)) => api::WriteKind::Insert(document),
        Some(Kind::Upsert(document)) => api::WriteKind::Upsert(document),
        Some(Kind::Delete(true)) => api::WriteKind::Delete,
        _ => {
            let message = format!("document {:?} needs one of insert, upsert and delete", write.id);
            return Err(Error::new(ErrorCode::InvalidParameter, message));
        }
    };
    Ok(api::Write { id: write.id, kind })
}

fn decode_push(mutation: proto::grpc::PushMutation) -> Result<api::PushMutation> {
    let vbucket = u16::try_from(mutation.vbucket).map_err(|_| {
        let message = format!("document {:?}: vbucket {}", mutation.id, mutation.vbucket);
        Error::new(ErrorCode::InvalidParameter, message)
    })?;
    Ok(api::PushMutation {
        vbucket: VbucketId(vbucket),
        position: Position { vbuuid: Vbuuid(mutation.vbuuid), seqno: Seqno(mutation.seqno) },
        id: mutation.id,
        kind: match mutation.document {
            Some(_) => MutationKind::Upsert,
            None => MutationKind::Deletion,
        },
        document: mutation.document.unwrap_or_default(),
    })
}

fn decode_branch(branch: VbucketPosition) -> Result<(VbucketId, Position)> {
    let vbucket = u16::try_from(branch.vbucket).map_err(|_| {
        let message = format!("a branch names vbucket {}, which is out of range", branch.vbucket);
        Error::new(ErrorCode::InvalidParameter, message)
    })?;
    let (vbuuid, seqno) = (Vbuuid(branch.vbuuid), Seqno(branch.seqno));
    Ok((VbucketId(vbucket), Position { vbuuid, seqno }))
}

/// Answers one request of a Write stream.
async fn write(
    backend: &ClusterBackend,
    known: &mut Option<Arc<BucketInfo>>,
    request: WriteRequest,
) -> Result<WriteReply> {
    let bucket = stream_bucket(backend, known, &request.bucket).await?;
    let writes = request.writes.into_iter().map(decode_write).collect::<Result<Vec<_>>>()?;
    let reply = backend.write(&bucket, writes).await?;
    Ok(WriteReply { affected: reply.affected, write_position: reply.position.to_string() })
}

/// Answers one request of a Push stream.
async fn push(
    backend: &ClusterBackend,
    known: &mut Option<Arc<BucketInfo>>,
    request: PushRequest,
) -> Result<PushReply> {
    let bucket = stream_bucket(backend, known, &request.bucket).await?;
    let mutations = request.mutations.into_iter().map(decode_push).collect::<Result<Vec<_>>>()?;
    let branches = request.branches.into_iter().map(decode_branch).collect::<Result<Vec<_>>>()?;
    let request = api::PushRequest { bucket: bucket.id, branches, mutations };
    let reply = backend.push(&bucket, request).await?;
    Ok(PushReply { durable: reply.durable.into_iter().map(position).collect() })
}

impl IngestService {
    /// Answers the requests of a stream in order. The first error ends the stream. A request after the deadline of the stream
    /// is not begun; one that is under way then is waited for, so that its outcome is known.
    fn answer<Q, A, F>(&self, request: Request<Streaming<Q>>, mut ask: F) -> Replies<A>
    where
        Q: Send + 'static,
        A: Send + 'static,
        F: AsyncAnswer<Q, A> + Send + 'static,
    {
        let (replies, stream) = tokio::sync::mpsc::channel(REPLIES_WAITING);
        let backend = self.backend.with_principal(principal(&request));
        let deadline = timeout(request.metadata()).map(|timeout| Instant::now() + timeout);
        let mut requests = request.into_inner();
        let answering = async move {
            loop {
                let Ok(request) = until(deadline, requests.next()).await else {
                    // The reader may be gone.
                    let _ = replies.send(Err(status(nothing_begun()))).await;
                    return;
                };
                let Some(request) = request else { return };
                let answer = match request {
                    Ok(request) => {
                        let until_known = deadline.map(|deadline| deadline + OUTCOME_WAIT);
                        let answer = until(until_known, ask.answer(&backend, request)).await;
                        let answer = answer.unwrap_or_else(|_| Err(outcome_unknown()));
                        answer.map_err(|error| counted(&backend, error))
                    }
                    Err(status) => Err(status),
                };
                let failed = answer.is_err();
                if replies.send(answer).await.is_err() || failed {
                    return;
                }
            }
        };
        // The task ends with the stream of requests, or when the client no longer reads.
        self.backend.env().spawn_request("ingest", answering).detach();
        ReceiverStream::new(stream)
    }
}

async fn until<T>(
    deadline: Option<Instant>,
    work: impl Future<Output = T>,
) -> std::result::Result<T, Elapsed> {
    match deadline {
        Some(deadline) => timeout_at(deadline, work).await,
        None => Ok(work.await),
    }
}

fn nothing_begun() -> Error {
    let what = "the deadline of the stream has passed; all that it began is answered, and nothing else was done";
    Error::new(ErrorCode::Cancelled, what)
}

fn outcome_unknown() -> Error {
    let what = "the deadline of the stream has passed; this request may have been carried out, or may be later";
    Error::new(ErrorCode::Cancelled, what).with_hint("look at the data before you write again")
}

/// The time-out that a client asks for with its stream; `None` if it asks for none, or in an unknown form.
fn timeout(metadata: &MetadataMap) -> Option<Duration> {
    let text = metadata.get("grpc-timeout")?.to_str().ok()?;
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let number: u64 = number.parse().ok().filter(|_| number.len() <= 8)?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

/// Answers the requests of one kind of stream.
#[tonic::async_trait]
trait AsyncAnswer<Q, A> {
    async fn answer(&mut self, backend: &ClusterBackend, request: Q) -> Result<A>;
}

#[derive(Default)]
struct Writes(Option<Arc<BucketInfo>>);

#[tonic::async_trait]
impl AsyncAnswer<WriteRequest, WriteReply> for Writes {
    async fn answer(
        &mut self,
        backend: &ClusterBackend,
        request: WriteRequest,
    ) -> Result<WriteReply> {
        write(backend, &mut self.0, request).await
    }
}

#[derive(Default)]
struct Pushes(Option<Arc<BucketInfo>>);

#[tonic::async_trait]
impl AsyncAnswer<PushRequest, PushReply> for Pushes {
    async fn answer(
        &mut self,
        backend: &ClusterBackend,
        request: PushRequest,
    ) -> Result<PushReply> {
        push(backend, &mut self.0, request).await
    }
}

#[tonic::async_trait]
impl Ingest for IngestService {
    type WriteStream = Replies<WriteReply>;
    type PushStream = Replies<PushReply>;

    async fn write(
        &self,
        request: Request<Streaming<WriteRequest>>,
    ) -> std::result::Result<Response<Self::WriteStream>, Status> {
        Ok(Response::new(self.answer(request, Writes::default())))
    }

    async fn push(
        &self,
        request: Request<Streaming<PushRequest>>,
    ) -> std::result::Result<Response<Self::PushStream>, Status> {
        Ok(Response::new(self.answer(request, Pushes::default())))
    }

    async fn positions(
        &self,
        request: Request<PositionsRequest>,
    ) -> std::result::Result<Response<PositionsReply>, Status> {
        let positions = async {
            let backend = self.backend.with_principal(principal(&request));
            let bucket = backend.bucket(&request.into_inner().bucket).await?;
            backend.positions(&bucket).await
        };
        let cut = positions.await.map_err(|error| counted(&self.backend, error))?;
        Ok(Response::new(PositionsReply { positions: cut.iter().map(position).collect() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_of_a_stream_is_read_in_all_its_units() {
        let read = |text: &str| {
            let mut metadata = MetadataMap::new();
            metadata.insert("grpc-timeout", text.parse().expect("a header"));
            timeout(&metadata)
        };
        let units =
            [("1H", 3_600_000), ("2M", 120_000), ("3S", 3_000), ("250m", 250), ("7000u", 7)];
        for (text, ms) in units {
            assert_eq!(read(text), Some(Duration::from_millis(ms)), "{text}");
        }
        assert_eq!(read("99999999H"), Some(Duration::from_secs(99_999_999 * 3600)));
        for wrong in ["", "S", "5", "5x", "-1S", "123456789S", "é"] {
            assert_eq!(
                wrong.parse().ok().and_then(|_: tonic::metadata::AsciiMetadataValue| read(wrong)),
                None,
                "{wrong}"
            );
        }
        assert_eq!(timeout(&MetadataMap::new()), None);
    }
}
