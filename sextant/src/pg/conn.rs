//! The socket of a session: whole messages in, a buffer of answers out.
//!
//! Answers gather in `out` and leave when it is full, when the session waits for the cluster, and when
//! the client waits for the session. A write that is interrupted half way loses nothing: what the
//! socket has taken is counted, and the next flush goes on behind it.

use std::io;

use bytes::BytesMut;
use pgwire::messages::{Message, PgWireFrontendMessage};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::error::{WireError, WireResult};
use super::frame::{self, HEADER_BYTES, MESSAGE_BYTES_MAX};

/// Bytes that are gathered before they are written: a few hundred rows a system call.
const FLUSH_BYTES: usize = 64 << 10;

/// A buffer that once held a very large row is not kept for ever.
const KEEP_BYTES: usize = 4 * FLUSH_BYTES;

/// What a client sent.
pub(super) enum Input {
    /// A message.
    Message(PgWireFrontendMessage),
    /// A message of this type over the limit; it has been read and thrown away.
    TooLong(u8, usize),
    /// Nothing more.
    Closed,
}

/// A client's connection.
pub(super) struct Conn<S> {
    stream: S,
    input: BytesMut,
    /// Answers that are not written yet; what is before `written` is.
    pub(super) out: Vec<u8>,
    written: usize,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Conn<S> {
    pub(super) fn new(stream: S) -> Self {
        let out = Vec::with_capacity(FLUSH_BYTES + (FLUSH_BYTES >> 2));
        Self { stream, input: BytesMut::with_capacity(8 << 10), out, written: 0 }
    }

    /// Waits until `bytes` are in the input buffer; false if the client is gone before.
    pub(super) async fn fill(&mut self, bytes: usize) -> io::Result<bool> {
        while self.input.len() < bytes {
            self.input.reserve(bytes - self.input.len());
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The input buffer, for the start-up packets, which have no type.
    pub(super) fn input(&mut self) -> &mut BytesMut {
        &mut self.input
    }

    /// Is there a message, or part of one, in the input buffer already?
    pub(super) fn has_input(&self) -> bool {
        !self.input.is_empty()
    }

    /// The next message. Dropping the future loses nothing that was read, except inside a message
    /// over the limit.
    pub(super) async fn read(&mut self) -> WireResult<Input> {
        if !self.fill(HEADER_BYTES).await? {
            return Ok(Input::Closed);
        }
        let head: [u8; HEADER_BYTES] = std::array::from_fn(|n| self.input[n]);
        let (kind, body) = frame::header(head)?;
        let whole = HEADER_BYTES + body;
        if whole > MESSAGE_BYTES_MAX {
            return self.discard(whole).await.map(|closed| match closed {
                true => Input::Closed,
                false => Input::TooLong(kind, whole),
            });
        }
        if !self.fill(whole).await? {
            return Ok(Input::Closed);
        }
        frame::decode(self.input.split_to(whole)).map(Input::Message)
    }

    /// Reads and throws away; true if the client is gone before the end.
    async fn discard(&mut self, mut bytes: usize) -> WireResult<bool> {
        loop {
            let here = bytes.min(self.input.len());
            drop(self.input.split_to(here));
            bytes -= here;
            if bytes == 0 {
                return Ok(false);
            }
            self.input.reserve(FLUSH_BYTES);
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Ok(true);
            }
        }
    }

    /// Adds a message to the answers.
    pub(super) fn send(&mut self, message: impl Message) -> WireResult<()> {
        let mut bytes = BytesMut::new();
        message.encode(&mut bytes).map_err(|e| WireError::protocol(e.to_string()))?;
        self.out.extend_from_slice(&bytes);
        Ok(())
    }

    /// Is the buffer of answers full?
    pub(super) fn is_full(&self) -> bool {
        self.out.len() >= FLUSH_BYTES
    }

    /// Writes all answers. Dropping the future is harmless.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        while self.written < self.out.len() {
            match self.stream.write(&self.out[self.written..]).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => self.written += written,
            }
        }
        self.written = 0;
        self.out.clear();
        self.out.shrink_to(KEEP_BYTES);
        self.stream.flush().await
    }
}
