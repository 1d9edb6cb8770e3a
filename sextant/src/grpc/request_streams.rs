//! The handling of streams of requests, in which each request gets one reply.

use std::time::Duration;

use futures::StreamExt;
use proto::{Error, ErrorCode, Result};
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::MetadataMap;
use tonic::{Request, Status, Streaming};

use super::admission::places_of;
use super::caller::Callers;
use super::status::{counted_status, status};
use crate::access::Access;

/// The time limit of a request that began before the deadline of its stream. It is a little
/// longer than a write may wait in the projector.
const OUTCOME_WAIT: Duration = Duration::from_secs(12);

/// The maximum number of replies in the queue to a slow client.
const REPLIES_WAITING: usize = 16;

/// The stream of replies.
pub(super) type Replies<T> = ReceiverStream<std::result::Result<T, Status>>;

/// A handler of the requests of one stream.
#[tonic::async_trait]
pub(super) trait AsyncAnswer<Q, A> {
    /// Handles the next request and returns its reply.
    async fn answer(&mut self, access: &Access, request: Q) -> Result<A>;
}

/// Handles the requests of a stream in order and returns the stream of replies. The first error
/// ends the stream. After the deadline no further request begins. The end of a request in
/// progress is awaited, so that its outcome is known.
pub(super) fn answer<Q, A, F>(
    callers: &Callers,
    request: Request<Streaming<Q>>,
    mut ask: F,
) -> std::result::Result<Replies<A>, Status>
where
    Q: Send + 'static,
    A: Send + 'static,
    F: AsyncAnswer<Q, A> + Send + 'static,
{
    let (replies, stream) = tokio::sync::mpsc::channel(REPLIES_WAITING);
    let (env, access) = (callers.env.clone(), callers.of(&request)?);
    let held = places_of(&request);
    let deadline = timeout(request.metadata()).map(|timeout| Instant::now() + timeout);
    let mut requests = request.into_inner();
    let answering = async move {
        loop {
            let Ok(request) = until_deadline(deadline, requests.next()).await else {
                // The reader may have stopped.
                let _ = replies.send(Err(status(deadline_error()))).await;
                break;
            };
            let Some(request) = request else { break };
            let answer = match request {
                Ok(request) => {
                    let until_known = deadline.map(|deadline| deadline + OUTCOME_WAIT);
                    let answer = until_deadline(until_known, ask.answer(&access, request)).await;
                    let answer = answer.unwrap_or_else(|_| Err(unknown_outcome_error()));
                    answer.map_err(|error| counted_status(&access, error))
                }
                Err(status) => Err(status),
            };
            let failed = answer.is_err();
            if replies.send(answer).await.is_err() || failed {
                break;
            }
        }
        // Order matters: the client may send its next call when the replies have ended.
        drop(held);
        drop(replies);
    };
    // The task ends with the stream of requests, or when the client no longer reads.
    env.spawn_request("ingest", answering).detach();
    Ok(ReceiverStream::new(stream))
}

/// Awaits a future until the deadline, or without a time limit if there is no deadline.
async fn until_deadline<T>(
    deadline: Option<Instant>,
    work: impl Future<Output = T>,
) -> std::result::Result<T, Elapsed> {
    match deadline {
        Some(deadline) => timeout_at(deadline, work).await,
        None => Ok(work.await),
    }
}

/// Returns the error for a stream whose deadline has passed while no request was in progress.
fn deadline_error() -> Error {
    let what = "the deadline of the stream has passed; all that it began is answered, and nothing else was done";
    Error::new(ErrorCode::Cancelled, what)
}

/// Returns the error for a request that was in progress at the deadline and has not ended.
fn unknown_outcome_error() -> Error {
    let what = "the deadline of the stream has passed; this request may have been carried out, or may be later";
    Error::new(ErrorCode::Cancelled, what).with_hint("look at the data before you write again")
}

/// Returns the time limit that a client has sent in the metadata of its stream; `None` if it is
/// absent or unreadable.
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
