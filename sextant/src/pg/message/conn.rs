//! The connection of a session's client: it reads complete messages and buffers answers.
//!
//! The answers in `out` are flushed in three cases: when the buffer is full, when the client
//! waits for an answer, and when the session has waited for the cluster for [`FLUSH_AFTER`].
//! Short answers before a quick statement are therefore sent together with its answer, in one
//! system call. An interrupted flush loses nothing, since the written bytes are counted and the
//! next flush continues after them.

use std::io::{self, ErrorKind::TimedOut};
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use pgwire::messages::{Message, PgWireFrontendMessage};
use proto::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::error::{WireError, WireResult};
use super::frame::{self, HEADER_BYTES, MESSAGE_BYTES_MAX};
use crate::flow::{ClientCapacity, MemoryBudget, ReservedMemory};
use crate::principal::Principal;

/// The size at which the buffer is flushed, in bytes: a few hundred rows per system call.
const FLUSH_BYTES: usize = 64 << 10;

/// The time after which answers are flushed while the session waits for the cluster.
pub(in crate::pg) const FLUSH_AFTER: Duration = Duration::from_millis(2);

/// The number of buffered bytes from which answers are flushed without waiting for
/// [`FLUSH_AFTER`]. It is much more than the messages before the first row of a result.
const FEW_BYTES: usize = 4 << 10;

/// The capacity, in bytes, above which a flushed buffer is made smaller. A very large row causes
/// such a capacity.
const KEEP_BYTES: usize = 4 * FLUSH_BYTES;

/// The maximum number of bytes that are reserved in the input buffer before they arrive, since
/// the declared length of a message may be wrong.
const AHEAD_BYTES: usize = 256 << 10;

/// The time limit for closing a connection.
const CLOSE_WAIT: Duration = Duration::from_secs(1);

/// The size, in bytes, from which a message reserves memory of the budget of all sessions.
const LARGE_BYTES: usize = 64 << 10;

/// The time limit for the arrival of a large message, because its memory is reserved meanwhile.
const ARRIVES_WITHIN: Duration = Duration::from_secs(60);

/// Returns the error for a large message that does not arrive in time.
fn late_message_error() -> WireError {
    let seconds = ARRIVES_WITHIN.as_secs();
    WireError::protocol(format!("a large message has not arrived within {seconds} s"))
}

/// A message from a client, or the reason why there is none.
pub(in crate::pg) enum Input {
    /// A decoded message of the client.
    Message(PgWireFrontendMessage),
    /// A message over the size limit: its type and size. Its body has been discarded.
    TooLong(u8, usize),
    /// A large message for which there was no memory: its type, and the error. Its body has been
    /// discarded.
    NoRoom(u8, Error),
    /// The end of the input.
    Closed,
}

/// A client's connection.
pub(in crate::pg) struct Conn<S> {
    stream: S,
    input: BytesMut,
    /// The buffered answers. The bytes before `written` are already written to the socket.
    pub(in crate::pg) out: Vec<u8>,
    written: usize,
    /// The limits of clients; `None` during the log-in, which has stricter limits.
    flow: Option<Arc<ClientCapacity>>,
    /// The budget from which memory for large messages is reserved.
    memory: Option<MemoryBudget>,
    /// The reserved memory and the size of the present message, if it is large.
    room: Option<(ReservedMemory, usize)>,
    /// The number of bytes of the present message that are still to be discarded.
    discarding: usize,
    /// True if the client has accepted no bytes for longer than the time limit.
    is_stalled: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Conn<S> {
    /// Returns the connection of a client that has not logged in.
    pub(in crate::pg) fn new(stream: S) -> Self {
        let out = Vec::with_capacity(FLUSH_BYTES + (FLUSH_BYTES >> 2));
        let input = BytesMut::with_capacity(8 << 10);
        Self {
            stream,
            input,
            out,
            written: 0,
            flow: None,
            memory: None,
            room: None,
            discarding: 0,
            is_stalled: false,
        }
    }

    /// Applies the limits of a session to the connection, after the log-in.
    pub(in crate::pg) fn apply_limits(
        &mut self,
        flow: &Arc<ClientCapacity>,
        principal: &Principal,
    ) {
        self.flow = Some(Arc::clone(flow));
        self.memory = Some(flow.session_memory.of(principal));
    }

    /// Moves the reserved memory of the present message to the caller.
    pub(in crate::pg) fn take_memory(&mut self) -> Option<ReservedMemory> {
        self.room.take().map(|(room, _)| room)
    }

    /// Releases the memory of the present message.
    pub(in crate::pg) fn release_memory(&mut self) {
        self.room = None;
    }

    /// Reads until the input buffer contains `bytes` bytes. Returns false if the client closes
    /// the connection before.
    pub(in crate::pg) async fn fill(&mut self, bytes: usize) -> io::Result<bool> {
        while self.input.len() < bytes {
            self.input.reserve((bytes - self.input.len()).min(AHEAD_BYTES));
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the socket, for another protocol. No bytes may be buffered then.
    pub(in crate::pg) fn into_stream(self) -> S {
        self.stream
    }

    /// Closes the connection properly. TLS has a closing message; without it, the client reports
    /// a broken connection.
    pub(in crate::pg) async fn close(&mut self) {
        // The client may have disconnected, and a client that does not read must not keep the connection.
        let _ended_before = tokio::time::timeout(CLOSE_WAIT, self.stream.shutdown()).await;
    }

    /// Returns the input buffer. Start-up packets are read directly from it, because they have no
    /// message type.
    pub(in crate::pg) fn input(&mut self) -> &mut BytesMut {
        &mut self.input
    }

    /// Returns true if the input buffer contains at least a part of a message.
    pub(in crate::pg) fn has_input(&self) -> bool {
        !self.input.is_empty()
    }

    /// Reads the next message. If the future is dropped, no input is lost. If a message was being
    /// discarded then, the next call continues to discard it.
    pub(in crate::pg) async fn read(&mut self) -> WireResult<Input> {
        if !self.discard().await? || !self.fill(HEADER_BYTES).await? {
            return Ok(Input::Closed);
        }
        let head: [u8; HEADER_BYTES] = std::array::from_fn(|n| self.input[n]);
        let (kind, body) = frame::header(head)?;
        let whole = HEADER_BYTES + body;
        if whole > MESSAGE_BYTES_MAX {
            return self.discard_message(whole, Input::TooLong(kind, whole)).await;
        }
        if whole <= LARGE_BYTES {
            self.release_memory();
        } else if let Err(error) = self.reserve_memory(whole).await {
            return self.discard_message(whole, Input::NoRoom(kind, error)).await;
        }
        let is_whole = match self.room {
            None => self.fill(whole).await?,
            Some(_) => timeout(ARRIVES_WITHIN, self.fill(whole))
                .await
                .map_err(|_| late_message_error())??,
        };
        if !is_whole {
            return Ok(Input::Closed);
        }
        frame::decode(self.input.split_to(whole)).map(Input::Message)
    }

    /// Waits for the next message whose type is not `passed`, and returns its type without
    /// reading it. Short messages of type `passed` are skipped. Returns `None` if the client
    /// closes the connection before.
    pub(in crate::pg) async fn next_kind(&mut self, passed: u8) -> WireResult<Option<u8>> {
        let mut at = 0;
        loop {
            if !self.fill(at + HEADER_BYTES).await? {
                return Ok(None);
            }
            let head: [u8; HEADER_BYTES] = std::array::from_fn(|n| self.input[at + n]);
            let (kind, body) = frame::header(head)?;
            at += HEADER_BYTES + body;
            if kind != passed || at > LARGE_BYTES {
                return Ok(Some(kind));
            }
        }
    }

    /// Reserves memory for a large message, unless an interrupted read has already done so.
    async fn reserve_memory(&mut self, bytes: usize) -> proto::Result<()> {
        let Some(memory) = &self.memory else { return Ok(()) };
        if self.room.as_ref().is_none_or(|(_, size)| *size != bytes) {
            // The message before has ended.
            self.room = None;
            self.room = Some((memory.reserve(bytes, None).await?, bytes));
        }
        Ok(())
    }

    /// Reads the next message of a log-in, which must have this type and at most `bytes_max`, and
    /// returns its body. Returns `None` if the client closes the connection. The body is not
    /// decoded, since before the log-in any client can send any bytes.
    pub(in crate::pg) async fn read_body(
        &mut self,
        kind: u8,
        bytes_max: usize,
    ) -> WireResult<Option<BytesMut>> {
        if !self.fill(HEADER_BYTES).await? {
            return Ok(None);
        }
        let head: [u8; HEADER_BYTES] = std::array::from_fn(|n| self.input[n]);
        let (found, body) = frame::header(head)?;
        if found != kind {
            let (found, kind) = (char::from(found).escape_default(), char::from(kind));
            let text = format!("a message of type {found} during the log-in, not {kind}");
            return Err(WireError::protocol(text));
        }
        if body > bytes_max {
            let text = format!("a message of {body} bytes during the log-in; at most {bytes_max}");
            return Err(WireError::protocol(text));
        }
        if !self.fill(HEADER_BYTES + body).await? {
            return Ok(None);
        }
        drop(self.input.split_to(HEADER_BYTES));
        Ok(Some(self.input.split_to(body)))
    }

    /// Runs a write. Returns an error if the client accepts no bytes for too long.
    async fn unless_stalled<T>(
        flow: &Option<Arc<ClientCapacity>>,
        write: impl Future<Output = io::Result<T>>,
    ) -> io::Result<T> {
        let stall = flow.as_ref().and_then(|flow| Some((flow, flow.limits.write_stall?)));
        let Some((flow, stall)) = stall else { return write.await };
        timeout(stall, write).await.unwrap_or_else(|_| Err(flow.stall_error()))
    }

    /// Discards a complete message and returns `told`.
    async fn discard_message(&mut self, bytes: usize, told: Input) -> WireResult<Input> {
        self.discarding = bytes;
        Ok(if self.discard().await? { told } else { Input::Closed })
    }

    /// Discards the remaining bytes of a message. Returns false if the client closes the
    /// connection before their end. A call that was interrupted must be repeated: otherwise the
    /// remaining bytes, which the sender of the message controls, would be read as messages.
    async fn discard(&mut self) -> io::Result<bool> {
        loop {
            let here = self.discarding.min(self.input.len());
            drop(self.input.split_to(here));
            self.discarding -= here;
            if self.discarding == 0 {
                return Ok(true);
            }
            self.input.reserve(FLUSH_BYTES);
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Ok(false);
            }
        }
    }

    /// Appends a message to the buffer of answers.
    pub(in crate::pg) fn send(&mut self, message: impl Message) -> WireResult<()> {
        let mut bytes = BytesMut::new();
        message.encode(&mut bytes).map_err(|e| WireError::protocol(e.to_string()))?;
        self.out.extend_from_slice(&bytes);
        Ok(())
    }

    /// Returns true if the buffer of answers should be flushed.
    pub(in crate::pg) fn is_full(&self) -> bool {
        self.out.len() >= FLUSH_BYTES
    }

    /// Returns the size in bytes at which the buffer of answers is full.
    pub(in crate::pg) fn full_bytes(&self) -> usize {
        FLUSH_BYTES
    }

    /// Returns true if answers are buffered.
    pub(in crate::pg) fn has_answers(&self) -> bool {
        !self.out.is_empty()
    }

    /// Returns true if the buffered answers are so few that they may wait for [`FLUSH_AFTER`].
    pub(in crate::pg) fn has_few_answers(&self) -> bool {
        self.out.len() < FEW_BYTES
    }

    /// Writes all buffered answers to the socket. The future can be dropped without loss.
    pub(in crate::pg) async fn flush(&mut self) -> io::Result<()> {
        if self.is_stalled {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let flushed = self.write_out().await;
        self.is_stalled = flushed.as_ref().is_err_and(|error| error.kind() == TimedOut);
        flushed
    }

    /// Writes the buffered answers to the socket, and counts the written bytes.
    async fn write_out(&mut self) -> io::Result<()> {
        while self.written < self.out.len() {
            let write = self.stream.write(&self.out[self.written..]);
            match Self::unless_stalled(&self.flow, write).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => self.written += written,
            }
        }
        self.written = 0;
        self.out.clear();
        self.out.shrink_to(KEEP_BYTES);
        Self::unless_stalled(&self.flow, self.stream.flush()).await
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_declared_length_allocates_little() {
        let (ours, mut theirs) = tokio::io::duplex(64);
        let mut conn = Conn::new(ours);
        theirs.write_all(b"Q\0\xff\xff\0SELECT").await.expect("room");
        drop(theirs);
        assert!(matches!(conn.read().await, Ok(Input::Closed)));
        assert!(conn.input.capacity() <= 2 * AHEAD_BYTES, "{} bytes", conn.input.capacity());
    }

    #[tokio::test]
    async fn the_next_read_continues_a_discard() {
        const SYNC: &[u8] = b"S\0\0\0\x04";
        let (ours, mut theirs) = tokio::io::duplex(1 << 20);
        let mut conn = Conn::new(ours);
        // The body looks like messages.
        let body = SYNC.repeat(MESSAGE_BYTES_MAX / SYNC.len() + 1);
        let (first, rest) = body.split_at(1000);
        theirs.write_u8(b'd').await.expect("room");
        theirs.write_u32(body.len() as u32 + 4).await.expect("room");
        theirs.write_all(first).await.expect("room");
        assert!(conn.read().now_or_never().is_none(), "the rest of the body is to come");
        let sends = async {
            theirs.write_all(rest).await.expect("it is read");
            theirs.write_all(b"H\0\0\0\x04").await.expect("it is read");
        };
        let (read, ()) = tokio::join!(conn.read(), sends);
        assert!(matches!(read, Ok(Input::Message(PgWireFrontendMessage::Flush(_)))));
    }
}
