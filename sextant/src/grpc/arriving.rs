//! The memory of large messages that arrive.
//!
//! A message has five bytes of head, with its length, and is decoded once it is there as a whole. Before the body of a large one is taken from
//! its connection, it gets room for all of it, which it keeps until the call ends or its next message begins. So the call of a
//! single message keeps its room while it is carried out, and a stream while it handles the message. A frame with the end of a large
//! message and the begin of the next one is cut between them: the service asks for the second part when it has handled the first message.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body as HttpBody, Frame, SizeHint};
use proto::lock::lock;
use proto::{Error, ErrorCode};
use tokio::time::{Sleep, sleep};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Bytes};

use super::status::status;
use crate::flow::{Room, RoomBudget};

/// Largest message from or to a user.
pub(super) const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// Messages up to this size need no room: their number is limited.
const SMALL_BYTES: usize = 64 << 10;
/// Time limit for the arrival of a large message, which holds room meanwhile.
const ARRIVES_WITHIN: Duration = Duration::from_secs(60);
/// The bytes in front of a message: a flag, and the length.
const HEAD_BYTES: usize = 5;

/// The room of a call's message. It outlives the body of the request.
pub(super) type MessageRoom = Arc<Mutex<Option<Room>>>;

/// The body of a request.
pub(super) struct Arriving {
    body: Body,
    memory: RoomBudget,
    heads: Heads,
    room: MessageRoom,
    /// A frame in which a large message begins, until there is room for it.
    waiting: Option<(Frame<Bytes>, BoxFuture<Room, Error>)>,
    /// The second part of a frame that was cut, and the size of the message that begins there.
    rest: Option<(Frame<Bytes>, usize)>,
    /// The end of the time for a large message.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl Arriving {
    /// Takes room for the messages of a body.
    pub(super) fn new(body: Body, memory: &RoomBudget) -> (Self, MessageRoom) {
        let (room, memory) = (MessageRoom::default(), memory.clone());
        let heads = Heads::default();
        let held = Arc::clone(&room);
        let arriving =
            Self { body, memory, heads, room: held, waiting: None, rest: None, deadline: None };
        (arriving, room)
    }

    /// Notes the data of a frame; the last message that begins in it.
    fn note(&mut self, data: &[u8]) -> Option<Begun> {
        let begun = self.heads.walk(data);
        if begun.is_some() || self.heads.body_bytes_left == 0 {
            self.deadline = None;
        }
        begun
    }

    /// The part of a frame that may be passed on now, and the size of the last message that begins in it.
    fn cut(&mut self, frame: Frame<Bytes>) -> (Frame<Bytes>, Option<usize>) {
        let mut data = match frame.into_data() {
            Ok(data) => data,
            Err(frame) => return (frame, None),
        };
        let Some(begun) = self.note(&data) else { return (Frame::data(data), None) };
        if begun.at == 0 || lock(&self.room).is_none() {
            return (Frame::data(data), Some(begun.bytes));
        }
        let rest = data.split_off(begun.at);
        self.rest = Some((Frame::data(rest), begun.bytes));
        (Frame::data(data), None)
    }

    /// Begins a message: the one before has no room any more. Returns its frame, unless it waits for room.
    fn begin(&mut self, frame: Frame<Bytes>, bytes: usize) -> Option<Frame<Bytes>> {
        *lock(&self.room) = None;
        // The decoder refuses a larger one at its head.
        if bytes <= SMALL_BYTES || bytes > MESSAGE_BYTES_MAX {
            return Some(frame);
        }
        let memory = self.memory.clone();
        let room = Box::pin(async move { memory.take(bytes, None).await });
        self.waiting = Some((frame, room));
        None
    }
}

impl HttpBody for Arriving {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        loop {
            if let Some((_, room)) = &mut this.waiting {
                let room = ready!(room.as_mut().poll(context));
                let waited = this.waiting.take();
                return Poll::Ready(match (room, waited) {
                    (Ok(room), Some((frame, _))) => {
                        *lock(&this.room) = Some(room);
                        this.deadline = Some(Box::pin(sleep(ARRIVES_WITHIN)));
                        Some(Ok(frame))
                    }
                    (Err(error), _) => Some(Err(status(error))),
                    (Ok(_), None) => None,
                });
            }
            if let Some((rest, bytes)) = this.rest.take() {
                match this.begin(rest, bytes) {
                    Some(frame) => return Poll::Ready(Some(Ok(frame))),
                    None => continue,
                }
            }
            match Pin::new(&mut this.body).poll_frame(context) {
                Poll::Pending => {
                    let Some(deadline) = &mut this.deadline else { return Poll::Pending };
                    ready!(deadline.as_mut().poll(context));
                    let seconds = ARRIVES_WITHIN.as_secs();
                    let what = format!("the message has not arrived within {seconds} s");
                    return Poll::Ready(Some(Err(status(Error::new(ErrorCode::Cancelled, what)))));
                }
                Poll::Ready(Some(Ok(frame))) => {
                    let passed_on = match this.cut(frame) {
                        (frame, Some(bytes)) => this.begin(frame, bytes),
                        (frame, None) => Some(frame),
                    };
                    let Some(frame) = passed_on else { continue };
                    return Poll::Ready(Some(Ok(frame)));
                }
                ended => return ended,
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.waiting.is_none() && self.rest.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

/// The place in a sequence of messages.
#[derive(Default)]
struct Heads {
    head: [u8; HEAD_BYTES],
    head_bytes: usize,
    body_bytes_left: usize,
}

/// A message that begins in some data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Begun {
    /// Its size.
    bytes: usize,
    /// The place of its head, or of the rest of it.
    at: usize,
}

impl Heads {
    /// Walks over data; the last message that begins in it.
    fn walk(&mut self, data: &[u8]) -> Option<Begun> {
        let (mut begun, mut at, mut rest) = (None, 0, data);
        while let Some((first, behind)) = rest.split_first() {
            if self.body_bytes_left > 0 {
                let here = self.body_bytes_left.min(rest.len());
                self.body_bytes_left -= here;
                rest = &rest[here..];
                continue;
            }
            if self.head_bytes == 0 {
                at = data.len() - rest.len();
            }
            self.head[self.head_bytes] = *first;
            self.head_bytes += 1;
            rest = behind;
            if self.head_bytes == HEAD_BYTES {
                let [_, length @ ..] = self.head;
                self.head_bytes = 0;
                self.body_bytes_left = u32::from_be_bytes(length) as usize;
                begun = Some(Begun { bytes: self.body_bytes_left, at });
            }
        }
        begun
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::{Limit, Refusals};

    fn head(bytes: usize) -> Vec<u8> {
        [&[0][..], &(bytes as u32).to_be_bytes()].concat()
    }

    #[test]
    fn heads_are_found_however_the_bytes_are_cut() {
        let sizes = [0, 3, 100_000, 7];
        let whole: Vec<u8> =
            sizes.iter().flat_map(|size| [head(*size), vec![9; *size]].concat()).collect();
        for cut in [1, 2, 5, 16_384, whole.len()] {
            let mut heads = Heads::default();
            let begun = whole.chunks(cut).filter_map(|data| heads.walk(data));
            let begun: Vec<_> = begun.map(|begun| begun.bytes).collect();
            assert_eq!(begun.last(), Some(&7), "cut into {cut}");
            assert_eq!((heads.body_bytes_left, heads.head_bytes), (0, 0));
            if cut <= HEAD_BYTES {
                assert_eq!(begun, sizes, "cut into {cut}");
            }
        }
    }

    /// A body of these pieces, which then sends nothing more.
    fn body(pieces: Vec<Vec<u8>>) -> Body {
        struct Pieces(std::vec::IntoIter<Vec<u8>>);
        impl HttpBody for Pieces {
            type Data = Bytes;
            type Error = Status;
            fn poll_frame(
                mut self: Pin<&mut Self>,
                _: &mut Context<'_>,
            ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
                match self.0.next() {
                    Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece.into())))),
                    None => Poll::Pending,
                }
            }
        }
        Body::new(Pieces(pieces.into_iter()))
    }

    async fn frame(body: &mut Arriving) -> Result<Frame<Bytes>, Status> {
        std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context))
            .await
            .expect("a frame")
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_message_waits_for_room_and_is_refused_with_the_setting() {
        const LARGE: usize = 700 << 10;
        let memory = RoomBudget::new(Limit::GrpcMemory, 1 << 20, Refusals::default());
        let begins = || vec![head(10), vec![1; 10], head(LARGE)];
        let (mut first, room) = Arriving::new(body(begins()), &memory);
        for _ in 0..3 {
            frame(&mut first).await.expect("room");
        }
        assert_eq!(memory.free_bytes(), (1 << 20) - LARGE);
        let (mut second, _room) = Arriving::new(body(begins()), &memory);
        frame(&mut second).await.expect("a small one");
        frame(&mut second).await.expect("a small one");
        let refused = frame(&mut second).await.expect_err("no room");
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
        assert!(refused.message().contains("grpc_memory_total_mb"), "{refused}");
        let late = frame(&mut first).await.expect_err("the rest does not come");
        assert_eq!(late.code(), tonic::Code::DeadlineExceeded);
        drop(first);
        assert_eq!(memory.free_bytes(), (1 << 20) - LARGE, "the call keeps it");
        drop(room);
        assert_eq!(memory.free_bytes(), 1 << 20);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_gives_the_room_of_a_message_back_when_its_next_one_begins() {
        let memory = RoomBudget::new(Limit::GrpcMemory, 1 << 20, Refusals::default());
        let large = vec![7; 100 << 10];
        let pieces = vec![head(large.len()), large, head(1), vec![0; 1]];
        let (mut arriving, room) = Arriving::new(body(pieces), &memory);
        frame(&mut arriving).await.expect("room");
        frame(&mut arriving).await.expect("the message");
        assert!(arriving.deadline.is_none() && lock(&room).is_some(), "while it is handled");
        frame(&mut arriving).await.expect("the next");
        assert!(lock(&room).is_none());
        assert_eq!(memory.free_bytes(), 1 << 20);
    }
    #[tokio::test(start_paused = true)]
    async fn a_frame_with_parts_of_two_messages_is_cut_between_them() {
        const LARGE: usize = 700 << 10;
        for (second, held) in [(1, 0), (LARGE, LARGE)] {
            let memory = RoomBudget::new(Limit::GrpcMemory, 1 << 20, Refusals::default());
            let (tail, next) = (vec![7; 10], [head(second), vec![8; 1]].concat());
            let pieces =
                vec![head(LARGE), vec![7; LARGE - 10], [tail.clone(), next.clone()].concat()];
            let (mut arriving, _room) = Arriving::new(body(pieces), &memory);
            for _ in 0..2 {
                frame(&mut arriving).await.expect("room");
            }
            let passed_on = frame(&mut arriving).await.expect("the end of the first");
            assert_eq!(passed_on.into_data().ok(), Some(tail.into()));
            assert_eq!(memory.free_bytes(), (1 << 20) - LARGE, "the first is not handled yet");
            assert!(!arriving.is_end_stream());
            let passed_on = frame(&mut arriving).await.expect("the begin of the second");
            assert_eq!(passed_on.into_data().ok(), Some(next.into()));
            assert_eq!(memory.free_bytes(), (1 << 20) - held);
        }
    }
}
