//! `COPY b FROM STDIN (FORMAT jsonl)`: one JSON document per line, in messages with arbitrary
//! boundaries.
//!
//! The data is cut into pieces, each of which consists of complete lines (`lines`). Blocking
//! threads check several pieces at a time. The session passes the documents of the pieces, in
//! order, to `target`, which writes them. A bad line ends the COPY: the error contains the line's
//! number and the number of stored documents. The session skips the client's further data.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use pgwire::messages::PgWireFrontendMessage as Message;
use pgwire::messages::copy::CopyInResponse;
use proto::env::{Bulk, Env};
use proto::model::bucket::BucketInfo;
use proto::{Error, ErrorCode, Result};
use tokio::io::{AsyncRead, AsyncWrite};

use super::lines::{CheckedPiece, PieceBuffer, RowsProgress};
use super::target::CopyWriter;
use crate::pg::message::conn::Input;
use crate::pg::message::error::{WireError, WireResult};
use crate::pg::message::frame::MESSAGE_BYTES_MAX;
use crate::pg::protocol::session::Session;
use crate::pg::session::state::SessionState;
use crate::pg::session::transaction::Transaction;

/// The maximum number of pieces (groups of lines) that are checked at the same time. Two of them
/// occupy two threads; the third is ready when one of the threads becomes free.
const CHECKS_MAX: usize = 3;

/// The number of bytes up to which lines are checked on the session's thread, which takes less
/// than a millisecond.
const INLINE_BYTES: usize = 64 << 10;

/// A piece of the data (some complete lines) that a thread is checking, or its checked documents.
enum PieceCheck {
    Runs(Pin<Box<dyn Future<Output = CheckedPiece> + Send>>),
    Done(CheckedPiece),
}

/// A COPY in progress.
struct CopyIn {
    env: Env,
    target: CopyWriter,
    id_field: Arc<str>,
    pieces: PieceBuffer,
    /// The pieces (groups of lines) that are being checked, in the order of their lines.
    checking: VecDeque<PieceCheck>,
    /// The number of lines before the pieces in `checking`.
    lines: u64,
    /// True after the line `\.`, by which psql ends the data.
    ended: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Session<S> {
    /// Stores documents until the client has sent all of them. Returns their number.
    pub(in crate::pg) async fn copy_in(
        &mut self,
        bucket: Arc<BucketInfo>,
        (id_field, is_atomic): (String, bool),
    ) -> WireResult<u64> {
        let target = CopyWriter::new(bucket, is_atomic, &mut self.state)?;
        self.conn.send(CopyInResponse::new(0, 1, vec![0]))?;
        self.conn.flush().await?;
        let mut copy = CopyIn {
            env: self.env.clone(),
            target,
            id_field: Arc::from(id_field),
            pieces: PieceBuffer::default(),
            checking: VecDeque::new(),
            lines: 0,
            ended: false,
        };
        match self.copy_messages(&mut copy).await {
            Ok(()) => Ok(copy.target.documents()),
            Err(CopyError::Session(error)) => Err(error),
            Err(CopyError::Copy(error)) => Err(copy.target.explain(error).into()),
        }
    }

    /// Reads the messages of the client until the end of the data.
    async fn copy_messages(&mut self, copy: &mut CopyIn) -> std::result::Result<(), CopyError> {
        loop {
            let idle_max = match self.state.transaction {
                Transaction::Open(_) => self.state.settings.idle_in_transaction(),
                _ => None,
            };
            let (conn, login) = (&mut self.conn, &mut self.state.login);
            let read = async {
                tokio::select! {
                    biased;
                    read = conn.read() => read,
                    ended = login.withdrawn() => Err(ended),
                }
            };
            let input = async {
                let Some(idle_max) = idle_max else { return read.await };
                let read = tokio::time::timeout(idle_max, read).await;
                read.unwrap_or_else(|_| Err(WireError::idle_in_transaction()))
            };
            let input = self.interrupt.guard(input).await;
            let input = input.map_err(interrupted)?;
            match input.map_err(CopyError::Session)? {
                Input::Message(Message::CopyData(data)) => {
                    let taken =
                        self.interrupt.guard(copy.add_data(&data.data, &mut self.state)).await;
                    taken.map_err(interrupted)??;
                    if self.send_notices().map_err(CopyError::Session)? {
                        let told = self.interrupt.guard(self.conn.flush()).await;
                        let told = told.map_err(interrupted)?;
                        told.map_err(|error| CopyError::Session(error.into()))?;
                    }
                }
                Input::Message(Message::CopyDone(_)) => {
                    self.check_copy_is_alone().await.map_err(CopyError::Session)?;
                    let taken = self.interrupt.guard(copy.finish_data(&mut self.state)).await;
                    taken.map_err(interrupted)??;
                    self.send_notices().map_err(CopyError::Session)?;
                    return Ok(());
                }
                Input::Message(Message::CopyFail(fail)) => {
                    let message = format!("the client aborted the COPY: {}", fail.message);
                    return Err(Error::new(ErrorCode::Cancelled, message).into());
                }
                // Drivers send these messages after the Execute that began the COPY.
                Input::Message(Message::Flush(_) | Message::Sync(_)) => {}
                Input::TooLong(..) => {
                    let message = format!("a message is longer than {MESSAGE_BYTES_MAX} bytes");
                    return Err(Error::new(ErrorCode::OverLimit, message).into());
                }
                Input::NoRoom(_, error) => return Err(error.into()),
                Input::Message(_) => {
                    let error = WireError::protocol("a message other than COPY data during a COPY");
                    return Err(CopyError::Session(error));
                }
                Input::Closed => {
                    let error = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
                    return Err(CopyError::Session(error.into()));
                }
            }
        }
    }
}

/// The reason why a COPY ends early.
enum CopyError {
    /// The connection failed, or the client broke the protocol.
    Session(WireError),
    /// The COPY failed; the error also contains the number of stored documents.
    Copy(Error),
}

impl From<Error> for CopyError {
    fn from(error: Error) -> Self {
        Self::Copy(error)
    }
}

/// Returns the error of an interrupted COPY. If the interruption ends the session, this is the
/// session's error.
fn interrupted(error: WireError) -> CopyError {
    match error.is_fatal() {
        true => CopyError::Session(error),
        false => CopyError::Copy(Error::new(
            ErrorCode::Cancelled,
            "the statement was cancelled or timed out",
        )),
    }
}

impl CopyIn {
    /// Adds the data of a message: complete pieces are checked, and the rest is buffered.
    async fn add_data(&mut self, data: &Bytes, state: &mut SessionState) -> Result<()> {
        if self.ended {
            return Ok(());
        }
        self.pieces.push(data);
        while let Some(piece) = self.pieces.next() {
            while self.checking.len() >= CHECKS_MAX {
                self.write_next_checked(state).await?;
            }
            self.check(piece);
        }
        if let Err(error) = self.pieces.check() {
            self.write_all_checked(state).await?;
            return self.fail_at_line(error, self.lines + 1, state).await;
        }
        Ok(())
    }

    /// Processes the remaining data after the client has ended it. The last line may lack its
    /// newline.
    async fn finish_data(&mut self, state: &mut SessionState) -> Result<()> {
        let rest = self.pieces.rest();
        self.check(rest);
        self.write_all_checked(state).await?;
        self.target.end(state).await
    }

    /// Starts to check a piece of the data (some complete lines).
    fn check(&mut self, piece: RowsProgress) {
        let id_field = Arc::clone(&self.id_field);
        if piece.bytes() <= INLINE_BYTES {
            self.checking.push_back(PieceCheck::Done(piece.check(&id_field)));
            return;
        }
        let env = self.env.clone();
        let mut check =
            Box::pin(async move { env.bulk(Bulk::Queued, move || piece.check(&id_field)).await });
        // The first poll starts the work; it runs on while the next lines are read.
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        self.checking.push_back(match check.as_mut().poll(&mut context) {
            Poll::Ready(checked) => PieceCheck::Done(checked),
            Poll::Pending => PieceCheck::Runs(check),
        });
    }

    /// Waits until all pieces are checked, and writes their documents.
    async fn write_all_checked(&mut self, state: &mut SessionState) -> Result<()> {
        while !self.checking.is_empty() {
            self.write_next_checked(state).await?;
        }
        Ok(())
    }

    /// Waits until the oldest piece is checked, and writes its documents.
    async fn write_next_checked(&mut self, state: &mut SessionState) -> Result<()> {
        // The piece stays in `self` during the wait, which an interrupt may end.
        if let Some(oldest @ PieceCheck::Runs(_)) = self.checking.front_mut()
            && let PieceCheck::Runs(check) = oldest
        {
            let checked = check.await;
            *oldest = PieceCheck::Done(checked);
        }
        let Some(PieceCheck::Done(piece)) = self.checking.pop_front() else { return Ok(()) };
        for batch in piece.batches {
            self.target.send(batch, state).await?;
        }
        self.lines += piece.lines;
        if piece.ended {
            self.ended = true;
            self.checking.clear();
            self.pieces = PieceBuffer::default();
        }
        match piece.error {
            Some(error) => self.fail_at_line(error, self.lines, state).await,
            None => Ok(()),
        }
    }

    /// Writes the documents before a bad line, so that the number of stored documents is known.
    /// Returns the error of this line.
    async fn fail_at_line(
        &mut self,
        error: Error,
        line: u64,
        state: &mut SessionState,
    ) -> Result<()> {
        self.target.await_write(state).await?;
        Err(error.context(format!("line {line}")))
    }
}
