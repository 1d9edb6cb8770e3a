//! Merges the streams of a bucket's projectors, and their backfills, into one stream.
//!
//! A projector that is about to receive its first vbucket is included if its stream begins soon;
//! the other streams do not wait for it.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use tokio::time::{Instant, Sleep, sleep_until};

use super::merge::Merge;
use crate::error::{Error, Result};
use crate::model::cut::Cut;
use crate::model::ids::NodeId;
use crate::rpc::api::ResultStream;
use crate::rpc::mutation::{BackfillMessage, KeyVersionsReader, KeyVersionsWriter, StreamMessage};

/// Maximum time that one stream waits for another: for a change of an index, or for the end of a
/// vbucket.
const HELD_MAX: Duration = Duration::from_secs(2);
/// Maximum wait for the first message of a projector that owns no vbucket yet.
const COMING_WAIT: Duration = Duration::from_millis(500);
/// The approximate size of a merged message with documents, in bytes.
const DOCUMENTS_BYTES: usize = 1 << 20;

/// The stream that results from several streams.
struct MergedStream {
    merge: Merge,
    streams: Vec<ResultStream<StreamMessage>>,
    /// The number of the stream that is polled first; it rotates.
    turn: usize,
    ready: VecDeque<StreamMessage>,
    /// A timer that runs while some stream waits for another.
    held: Option<Pin<Box<Sleep>>>,
    ended: bool,
}

/// Merges several streams of changes. Memory is bounded: the next message is read only after the
/// previous one was passed on.
pub(super) fn merge_streams(
    vbuckets: u16,
    streams: Vec<(NodeId, ResultStream<StreamMessage>)>,
) -> ResultStream<StreamMessage> {
    let (projectors, streams): (Vec<_>, Vec<_>) = streams.into_iter().unzip();
    let merge = Merge::new(vbuckets, projectors);
    let (ready, held) = (VecDeque::new(), None);
    Box::pin(MergedStream { merge, streams, turn: 0, ready, held, ended: false })
}

/// Opens the stream of a projector that owns no vbucket yet. Returns `None` if the stream does
/// not begin within [`COMING_WAIT`]: the merged stream cannot begin before all of its streams
/// have, and needs this one only for a later hand-over.
pub(super) async fn open_joining_stream(
    projector: NodeId,
    opened: impl Future<Output = Result<ResultStream<StreamMessage>>>,
) -> Option<ResultStream<StreamMessage>> {
    let begun = async {
        let mut stream = opened.await?;
        let first = stream.next().await.transpose()?;
        Ok::<_, Error>(first.map(|begin| (begin, stream)))
    };
    match tokio::time::timeout(COMING_WAIT, begun).await {
        Ok(Ok(begun)) => {
            let (begin, rest) = begun?;
            Some(Box::pin(stream::iter([Ok(begin)]).chain(rest)))
        }
        Ok(Err(error)) => {
            tracing::debug!(%projector, %error, "not there yet");
            None
        }
        Err(_) => {
            tracing::debug!(%projector, "not there yet");
            None
        }
    }
}

impl MergedStream {
    /// Polls the streams that may be read, and processes one message of the first that has one.
    fn poll_streams(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let parts = self.streams.len();
        for n in 0..parts {
            let part = (self.turn + n) % parts;
            if !self.merge.may_read(part) {
                continue;
            }
            let message = match self.streams[part].poll_next_unpin(cx) {
                Poll::Pending => continue,
                Poll::Ready(Some(message)) => message,
                Poll::Ready(None) => Err(Error::unavailable("a projector's stream ended")),
            };
            self.turn = part + 1;
            let made = message.and_then(|message| self.merge.process_message(part, message));
            return Poll::Ready(made.map(|made| self.ready.extend(made)));
        }
        Poll::Pending
    }

    /// Returns an error when a stream has waited for another one for [`HELD_MAX`].
    fn poll_wait_limit(&mut self, cx: &mut Context<'_>) -> Poll<Error> {
        if !self.merge.is_waiting() {
            self.held = None;
            return Poll::Pending;
        }
        let held =
            self.held.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + HELD_MAX)));
        held.as_mut().poll(cx).map(|()| {
            Error::unavailable(
                "the projectors of a bucket do not agree on where a vbucket or an index is",
            )
        })
    }
}

impl Stream for MergedStream {
    type Item = Result<StreamMessage>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(message)));
            }
            if self.ended {
                return Poll::Ready(None);
            }
            let error = match self.poll_streams(cx) {
                Poll::Ready(Ok(())) => continue,
                Poll::Ready(Err(error)) => error,
                Poll::Pending => match self.poll_wait_limit(cx) {
                    Poll::Ready(error) => error,
                    Poll::Pending => return Poll::Pending,
                },
            };
            self.ended = true;
            return Poll::Ready(Some(Err(error)));
        }
    }
}

/// Merges several backfills into one, in the order of document ids, which each backfill has
/// already. `cut` is the beginning of the merged backfill, and covers the snapshots of all of
/// them.
pub(super) fn merge_backfills(
    cut: Cut,
    mut rest: Vec<ResultStream<BackfillMessage>>,
) -> ResultStream<BackfillMessage> {
    let begin = stream::iter([Ok(BackfillMessage::Begin { cut })]);
    if rest.len() == 1
        && let Some(only) = rest.pop()
    {
        return Box::pin(begin.chain(only));
    }
    let part = |stream| ProjectorBackfill {
        stream,
        documents: VecDeque::new(),
        progress: (0, 0),
        is_whole: false,
    };
    let parts: Vec<_> = rest.into_iter().map(part).collect();
    let documents = stream::unfold(Some(parts), |parts| async {
        let mut parts = parts?;
        Some(match next_documents(&mut parts).await {
            Ok(body) if body.is_empty() => (vec![Ok(BackfillMessage::End)], None),
            Ok(body) => {
                let progress = Ok(total_progress(&parts));
                (vec![Ok(BackfillMessage::Documents(body)), progress], Some(parts))
            }
            Err(error) => (vec![Err(error)], None),
        })
    });
    Box::pin(begin.chain(documents.flat_map(stream::iter)))
}

/// Returns the sum of the progress of all backfills.
fn total_progress(parts: &[ProjectorBackfill]) -> BackfillMessage {
    let sum = |(read, of): (u64, u64), part: &ProjectorBackfill| {
        (read + part.progress.0, of + part.progress.1)
    };
    let (read, of) = parts.iter().fold((0, 0), sum);
    BackfillMessage::Progress { read, of }
}

/// The backfill of one projector.
struct ProjectorBackfill {
    stream: ResultStream<BackfillMessage>,
    /// The documents that were read and not yet merged: their ids and packed key-versions.
    documents: VecDeque<(String, Bytes)>,
    /// The progress of the backfill: number of documents read, and total number of documents.
    progress: (u64, u64),
    is_whole: bool,
}

impl ProjectorBackfill {
    /// Reads messages until there is a document to merge, or the backfill has ended.
    async fn fill(&mut self) -> Result<()> {
        while self.documents.is_empty() && !self.is_whole {
            match self.stream.next().await.transpose()? {
                Some(BackfillMessage::Documents(body)) => self.documents = split_documents(&body)?,
                Some(BackfillMessage::Progress { read, of }) => self.progress = (read, of),
                Some(BackfillMessage::End) => self.is_whole = true,
                Some(BackfillMessage::Begin { .. }) | None => {
                    return Err(Error::unavailable("a backfill ended before its end"));
                }
            }
        }
        Ok(())
    }
}

/// Splits the documents of a message into one packed document for each id.
fn split_documents(body: &[u8]) -> Result<VecDeque<(String, Bytes)>> {
    let (mut writer, mut ends) = (KeyVersionsWriter::default(), Vec::new());
    for versions in KeyVersionsReader::new(body) {
        let versions = versions?;
        writer.copy(&versions);
        ends.push((versions.id.to_owned(), writer.len()));
    }
    let (body, mut from) = (writer.finish(), 0);
    let cut = |(id, to)| (id, body.slice(std::mem::replace(&mut from, to)..to));
    Ok(ends.into_iter().map(cut).collect())
}

/// Returns the next documents of all backfills as packed key-versions; empty at the end.
async fn next_documents(parts: &mut [ProjectorBackfill]) -> Result<Bytes> {
    let mut out = Vec::new();
    while out.len() < DOCUMENTS_BYTES {
        for part in &mut *parts {
            part.fill().await?;
        }
        let waiting = parts.iter_mut().map(|part| &mut part.documents);
        let next = waiting.filter(|documents| !documents.is_empty()).min_by(|one, other| {
            let id = |documents: &VecDeque<(String, Bytes)>| documents.front().map(|d| d.0.clone());
            id(one).cmp(&id(other))
        });
        match next.and_then(VecDeque::pop_front) {
            Some((_, document)) => out.extend_from_slice(&document),
            None => break,
        }
    }
    Ok(out.into())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::assignment::VbucketSet;
    use crate::model::history::FailoverLogs;
    use crate::model::ids::Vbuuid;
    use crate::rpc::mutation::MutationKind;

    fn body(ids: &[&str]) -> Bytes {
        let mut writer = KeyVersionsWriter::default();
        ids.iter().for_each(|id| writer.mutation(1, MutationKind::Upsert, id, 0));
        writer.finish()
    }

    fn part(messages: &[&[&str]], is_whole: bool) -> ResultStream<BackfillMessage> {
        let documents = messages.iter().map(|ids| BackfillMessage::Documents(body(ids)));
        let read = messages.iter().map(|ids| ids.len() as u64).sum();
        let progress = BackfillMessage::Progress { read, of: 10 };
        let end = is_whole.then_some(BackfillMessage::End);
        Box::pin(stream::iter(documents.chain([progress]).chain(end).map(Ok).collect::<Vec<_>>()))
    }

    #[tokio::test]
    async fn backfills_of_several_projectors_come_in_the_order_of_ids() {
        let parts = vec![
            part(&[&["a", "d"], &[], &["x"]], true),
            part(&[], true),
            part(&[&["b", "c", "e"], &["y", "z"]], true),
        ];
        let found: Vec<_> = merge_backfills(Cut::zero(2), parts).collect().await;
        let ids = ["a", "b", "c", "d", "e", "x", "y", "z"];
        let expected = [
            Ok(BackfillMessage::Begin { cut: Cut::zero(2) }),
            Ok(BackfillMessage::Documents(body(&ids))),
            Ok(BackfillMessage::Progress { read: 8, of: 30 }),
            Ok(BackfillMessage::End),
        ];
        assert_eq!(found, expected);
    }

    #[tokio::test]
    async fn a_joining_stream_is_merged_once_begun() {
        let begin =
            |vbuckets| StreamMessage::Begin { at: Cut::zero(1), indexes: Vec::new(), vbuckets };
        let (home, other) = (NodeId(1), NodeId(2));
        let hangs: ResultStream<StreamMessage> = Box::pin(stream::pending());
        assert!(
            open_joining_stream(other, async { Ok(hangs) }).await.is_none(),
            "the stream does not wait for this projector"
        );
        assert!(
            open_joining_stream(other, async { Err(Error::unavailable("down")) }).await.is_none()
        );
        let ended: ResultStream<StreamMessage> = Box::pin(stream::empty());
        assert!(open_joining_stream(other, async { Ok(ended) }).await.is_none());

        let of = |message| -> ResultStream<StreamMessage> {
            Box::pin(stream::iter([Ok(message)]).chain(stream::pending()))
        };
        let coming = of(begin(VbucketSet::default()));
        let coming = open_joining_stream(other, async { Ok(coming) }).await.expect("it has begun");
        let logs = FailoverLogs::new(vec![vec![(Vbuuid(7), 0)]]);
        let history = StreamMessage::History(Arc::new(logs));
        let all = begin(VbucketSet::all(1));
        let both = stream::iter([Ok(all.clone()), Ok(history.clone())]).chain(stream::pending());
        let mut merged = merge_streams(1, vec![(home, Box::pin(both)), (other, coming)]);
        assert_eq!(merged.next().await, Some(Ok(all)));
        assert_eq!(merged.next().await, Some(Ok(history)), "the other has none to tell");
    }

    #[tokio::test]
    async fn an_interrupted_backfill_ends_the_merge() {
        let parts = vec![part(&[&["a"]], true), part(&[&["b"]], false)];
        let found: Vec<_> = merge_backfills(Cut::zero(2), parts).collect().await;
        assert!(found.last().is_some_and(Result::is_err), "{found:?}");
    }
}
