//! The memory limit of large messages that are being received.
//!
//! A message begins with a head of five bytes, which contains its length, and is decoded when it
//! is complete. Before the body of a large message is read from its connection, memory for the
//! complete message is reserved. A call keeps the reserved memory of its largest message until it
//! ends. The reasons: the buffer of the decoder does not shrink (it has up to twice the size of
//! the largest message), and a client may send more messages than the call reads. A call that
//! needs more memory first releases its reserved memory, so that calls that wait for memory have
//! none.

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
use crate::flow::{MemoryBudget, ReservedMemory};

/// The maximum size of a message from or to a user, in bytes.
pub(super) const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// The size of a message, in bytes, up to which no memory is reserved for it. The number of such
/// small messages is limited otherwise.
const SMALL_BYTES: usize = 64 << 10;
/// The time limit for the arrival of a large message, because its memory is reserved meanwhile.
const ARRIVES_WITHIN: Duration = Duration::from_secs(60);
/// The size of the head of a message, in bytes: a flag for compression, and the length.
const HEAD_BYTES: usize = 5;
/// The maximum ratio of the size of expanded data to its size after compression by gzip.
const GZIP_RATIO_MAX: usize = 1032;

/// The memory that is reserved for the largest message of a call so far. It may be needed for
/// longer than the body of the request exists.
pub(super) type MessageMemory = Arc<Mutex<Option<ReservedMemory>>>;

/// The body of a request, which reserves memory for large messages before they are read.
pub(super) struct RequestBody {
    body: Body,
    memory: MemoryBudget,
    heads: HeadParser,
    room: MessageMemory,
    /// The number of reserved bytes.
    room_bytes: usize,
    /// A frame in which a large message begins, and the wait for the memory of this message.
    waiting: Option<(Frame<Bytes>, BoxFuture<ReservedMemory, Error>)>,
    /// True while a large message has arrived only partly.
    is_arriving: bool,
    /// The end of the time limit while the next frame of a large message is awaited. The time in
    /// which the call handles the previous message does not count.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl RequestBody {
    /// Returns a body that reserves memory for its messages, and a shared handle of the reserved
    /// memory.
    pub(super) fn new(body: Body, memory: MemoryBudget) -> (Self, MessageMemory) {
        let room = MessageMemory::default();
        let arriving = Self {
            body,
            memory,
            heads: HeadParser::default(),
            room: Arc::clone(&room),
            room_bytes: 0,
            waiting: None,
            is_arriving: false,
            deadline: None,
        };
        (arriving, room)
    }

    /// Inspects a frame and returns it. Returns `None` if a message begins in the frame and must
    /// wait for memory.
    fn inspect_frame(&mut self, frame: Frame<Bytes>) -> Option<Frame<Bytes>> {
        let Some(data) = frame.data_ref() else { return Some(frame) };
        let largest = self.heads.read_heads(data);
        // The decoder refuses a larger message at its head.
        let large = largest.filter(|bytes| (SMALL_BYTES + 1..=MESSAGE_BYTES_MAX).contains(bytes));
        if largest.is_some() {
            (self.is_arriving, self.deadline) = (large.is_some(), None);
        }
        self.is_arriving &= self.heads.body_bytes_left > 0;
        // Reservations grow in large steps. If each message is a little larger than the previous
        // one, a new reservation is then needed only a few times.
        let wanted = large.map_or(0, |bytes| bytes.next_multiple_of(SMALL_BYTES));
        if wanted <= self.room_bytes {
            return Some(frame);
        }
        *lock(&self.room) = None;
        self.room_bytes = wanted;
        let memory = self.memory.clone();
        let room = Box::pin(async move { memory.reserve(wanted, None).await });
        self.waiting = Some((frame, room));
        None
    }
}

impl HttpBody for RequestBody {
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
                        Some(Ok(frame))
                    }
                    (Err(error), _) => Some(Err(status(error))),
                    (Ok(_), None) => None,
                });
            }
            match Pin::new(&mut this.body).poll_frame(context) {
                Poll::Pending => {
                    if !this.is_arriving {
                        return Poll::Pending;
                    }
                    let deadline =
                        this.deadline.get_or_insert_with(|| Box::pin(sleep(ARRIVES_WITHIN)));
                    ready!(deadline.as_mut().poll(context));
                    let seconds = ARRIVES_WITHIN.as_secs();
                    let what = format!("the message has not arrived within {seconds} s");
                    return Poll::Ready(Some(Err(status(Error::new(ErrorCode::Cancelled, what)))));
                }
                Poll::Ready(Some(Ok(frame))) => {
                    let Some(frame) = this.inspect_frame(frame) else { continue };
                    return Poll::Ready(Some(Ok(frame)));
                }
                ended => return ended,
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.waiting.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

/// Returns the maximum memory of a message of which `arriving` bytes arrive and which expands by
/// at most `ratio`. The decoder stops a compressed message at the size limit.
fn message_bytes(arriving: usize, ratio: usize) -> usize {
    arriving.max(MESSAGE_BYTES_MAX.min(arriving.saturating_mul(ratio)))
}

/// A parser that finds the head of each message in a sequence of frames.
#[derive(Default)]
struct HeadParser {
    head: [u8; HEAD_BYTES],
    head_bytes: usize,
    body_bytes_left: usize,
}

impl HeadParser {
    /// Reads the heads of messages in some data. Returns the maximum size of the largest message
    /// that begins there; `None` if none begins.
    fn read_heads(&mut self, data: &[u8]) -> Option<usize> {
        let (mut largest, mut rest) = (None, data);
        while let Some((first, behind)) = rest.split_first() {
            if self.body_bytes_left > 0 {
                let here = self.body_bytes_left.min(rest.len());
                self.body_bytes_left -= here;
                rest = &rest[here..];
                continue;
            }
            self.head[self.head_bytes] = *first;
            self.head_bytes += 1;
            rest = behind;
            if self.head_bytes == HEAD_BYTES {
                let [compressed, length @ ..] = self.head;
                self.head_bytes = 0;
                self.body_bytes_left = u32::from_be_bytes(length) as usize;
                let ratio = if compressed == 0 { 1 } else { GZIP_RATIO_MAX };
                largest = largest.max(Some(message_bytes(self.body_bytes_left, ratio)));
            }
        }
        largest
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
            let mut heads = HeadParser::default();
            let largest: Vec<_> =
                whole.chunks(cut).filter_map(|data| heads.read_heads(data)).collect();
            assert_eq!(largest.iter().max(), Some(&100_000), "cut into {cut}");
            assert_eq!((heads.body_bytes_left, heads.head_bytes), (0, 0));
            if cut <= HEAD_BYTES {
                assert_eq!(largest, sizes, "cut into {cut}");
            }
        }
        let compressed = |bytes| {
            let mut head = head(bytes);
            head[0] = 1;
            HeadParser::default().read_heads(&head)
        };
        assert_eq!(compressed(100), Some(100 * GZIP_RATIO_MAX));
        assert_eq!(compressed(100_000), Some(MESSAGE_BYTES_MAX));
        assert_eq!(compressed(MESSAGE_BYTES_MAX + 1), Some(MESSAGE_BYTES_MAX + 1), "refused");
    }

    /// Returns a body that sends these pieces and then never ends.
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

    async fn frame(body: &mut RequestBody) -> Result<Frame<Bytes>, Status> {
        std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context))
            .await
            .expect("a frame")
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_message_waits_for_memory() {
        const LARGE: usize = 700 << 10;
        const TAKEN: usize = 704 << 10;
        let memory = MemoryBudget::new(Limit::GrpcMemory, 1 << 20, Refusals::default());
        let begins = || vec![head(10), vec![1; 10], head(LARGE)];
        let (mut first, room) = RequestBody::new(body(begins()), memory.clone());
        for _ in 0..3 {
            frame(&mut first).await.expect("room");
        }
        assert_eq!(memory.free_bytes(), (1 << 20) - TAKEN);
        let (mut second, _room) = RequestBody::new(body(begins()), memory.clone());
        frame(&mut second).await.expect("a small one");
        frame(&mut second).await.expect("a small one");
        let refused = frame(&mut second).await.expect_err("no room");
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
        assert!(refused.message().contains("grpc_memory_total_mb"), "{refused}");
        let late = frame(&mut first).await.expect_err("the rest does not come");
        assert_eq!(late.code(), tonic::Code::DeadlineExceeded);
        drop(first);
        assert_eq!(memory.free_bytes(), (1 << 20) - TAKEN, "the call keeps it");
        drop(room);
        assert_eq!(memory.free_bytes(), 1 << 20);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_keeps_its_reserved_memory() {
        let memory = MemoryBudget::new(Limit::GrpcMemory, 1 << 20, Refusals::default());
        let message = |bytes: usize| [head(bytes), vec![7; bytes]].concat();
        let sizes = [100 << 10, 1, 300 << 10, 200 << 10, 2];
        let (mut arriving, room) =
            RequestBody::new(body(sizes.map(message).to_vec()), memory.clone());
        for largest in [128, 128, 320, 320, 320] {
            frame(&mut arriving).await.expect("room");
            assert_eq!(memory.free_bytes(), (1024 - largest) << 10);
            assert!(!arriving.is_arriving, "the message is there");
        }
        drop((arriving, room));
        assert_eq!(memory.free_bytes(), 1 << 20);
    }

    #[tokio::test(start_paused = true)]
    async fn large_messages_inside_a_frame_reserve() {
        let memory = MemoryBudget::new(Limit::GrpcMemory, 1 << 20, Refusals::default());
        let large = [head(200 << 10), vec![7; 200 << 10]].concat();
        let whole = [head(1), vec![0; 1], large, head(2), vec![0; 2]].concat();
        let (mut arriving, _room) = RequestBody::new(body(vec![whole.clone()]), memory.clone());
        let passed_on = frame(&mut arriving).await.expect("room");
        assert_eq!(passed_on.into_data().ok(), Some(whole.into()));
        assert_eq!(memory.free_bytes(), (1 << 20) - (256 << 10));
        assert!(!arriving.is_arriving, "all of it is there");
    }

    #[tokio::test(start_paused = true)]
    async fn busy_calls_stop_the_arrival_clock() {
        let memory = MemoryBudget::new(Limit::GrpcMemory, 1 << 20, Refusals::default());
        let pieces = vec![[head(1), vec![0; 1], head(100 << 10)].concat(), vec![7; 10]];
        let (mut arriving, _room) = RequestBody::new(body(pieces), memory.clone());
        frame(&mut arriving).await.expect("room");
        sleep(2 * ARRIVES_WITHIN).await;
        frame(&mut arriving).await.expect("a part");
        let begun = tokio::time::Instant::now();
        frame(&mut arriving).await.expect_err("the rest does not come");
        assert_eq!(begun.elapsed(), ARRIVES_WITHIN);
    }

    #[tokio::test(start_paused = true)]
    async fn the_largest_message_is_admitted_alone() {
        let memory = MemoryBudget::new(Limit::GrpcMemory, 1 << 20, Refusals::default());
        let message = |bytes: usize| [head(bytes), vec![7; bytes]].concat();
        let pieces = vec![message(500 << 10), message(3 << 20)];
        let (mut arriving, _room) = RequestBody::new(body(pieces), memory.clone());
        for free in [512 << 10, 0] {
            frame(&mut arriving).await.expect("room");
            assert_eq!(memory.free_bytes(), free);
        }
    }
}
