//! The streams of a bucket's projectors, read as one.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::{Stream, StreamExt, future, stream};
use tokio::time::{Instant, Sleep, sleep_until};

use super::Merge;
use crate::api::ResultStream;
use crate::cut::Cut;
use crate::error::{Error, Result};
use crate::ids::NodeId;
use crate::mutation::{BackfillMessage, StreamMessage};

/// How long one stream waits for another: for the same index, or for the end of a vbucket.
const HELD_MAX: Duration = Duration::from_secs(2);
/// How long the stream of a projector that keeps nothing yet is waited for.
pub(super) const COMING_WAIT: Duration = Duration::from_millis(500);

struct Merged {
    merge: Merge,
    streams: Vec<ResultStream<StreamMessage>>,
    /// The part that is asked first; each gets its turn.
    turn: usize,
    ready: VecDeque<StreamMessage>,
    /// Runs while some part waits for another.
    held: Option<Pin<Box<Sleep>>>,
    ended: bool,
}

/// Several maintenance streams as one. Bounded: a part is read only when its message can be given on.
pub(super) fn merged(
    vbuckets: u16,
    streams: Vec<(NodeId, ResultStream<StreamMessage>)>,
) -> ResultStream<StreamMessage> {
    let (projectors, streams): (Vec<_>, Vec<_>) = streams.into_iter().unzip();
    let merge = Merge::new(vbuckets, projectors);
    let (ready, held) = (VecDeque::new(), None);
    Box::pin(Merged { merge, streams, turn: 0, ready, held, ended: false })
}

impl Merged {
    /// The next message of any part that may be read.
    fn poll_parts(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let parts = self.streams.len();
        for n in 0..parts {
            let part = (self.turn + n) % parts;
            if !self.merge.reads(part) {
                continue;
            }
            let message = match self.streams[part].poll_next_unpin(cx) {
                Poll::Pending => continue,
                Poll::Ready(Some(message)) => message,
                Poll::Ready(None) => Err(Error::unavailable("a projector's stream ended")),
            };
            self.turn = part + 1;
            let made = message.and_then(|message| self.merge.message(part, message));
            return Poll::Ready(made.map(|made| self.ready.extend(made)));
        }
        Poll::Pending
    }

    fn poll_held(&mut self, cx: &mut Context<'_>) -> Poll<Error> {
        if !self.merge.waits() {
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

use std::future::Future;

impl Stream for Merged {
    type Item = Result<StreamMessage>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(message)));
            }
            if self.ended {
                return Poll::Ready(None);
            }
            let error = match self.poll_parts(cx) {
                Poll::Ready(Ok(())) => continue,
                Poll::Ready(Err(error)) => error,
                Poll::Pending => match self.poll_held(cx) {
                    Poll::Ready(error) => error,
                    Poll::Pending => return Poll::Pending,
                },
            };
            self.ended = true;
            return Poll::Ready(Some(Err(error)));
        }
    }
}

/// The rests of several backfills, one after another, as one that begins at a cut. The snapshots were all taken
/// before, so that the cut is of all of them.
pub(super) fn backfills(
    cut: Cut,
    rest: Vec<ResultStream<BackfillMessage>>,
) -> ResultStream<BackfillMessage> {
    let documents = rest.into_iter().map(|part| {
        // A part that ends without its End is broken off.
        let broken = stream::iter([Err(Error::unavailable("a backfill ended before its end"))]);
        part.chain(broken).take_while({
            let mut whole = false;
            move |message| {
                let more = !whole;
                whole |= matches!(message, Ok(BackfillMessage::End));
                future::ready(more)
            }
        })
    });
    let is_last = |message: &Result<BackfillMessage>| matches!(message, Ok(BackfillMessage::End));
    let documents = stream::iter(documents).flatten();
    let documents = documents.filter(move |message| future::ready(!is_last(message)));
    let begin = stream::iter([Ok(BackfillMessage::Begin { cut })]);
    Box::pin(begin.chain(documents).chain(stream::iter([Ok(BackfillMessage::End)])))
}
