//! `COPY b FROM STDIN (FORMAT jsonl)`: one JSON document per line, in messages with arbitrary boundaries.
//!
//! The data is cut into pieces of whole lines (`copy_lines.rs`). Blocking threads check the pieces, some at a time, and the
//! session takes them in their order. The documents of a piece are written atomically, or those of a part of it if they are
//! tiny. One batch is in flight while the next ones are checked. There are never two in flight, so that a later line with the
//! same id wins. A bad line ends the COPY: the lines before it are stored, and the error names the line's number and how many
//! documents are stored. The session skips the rest of the client's data.

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
use proto::model::cut::WritePosition;
use proto::rpc::api::CheckedWrites;
use proto::{Error, ErrorCode, Result};
use tokio::io::{AsyncRead, AsyncWrite};

use super::conn::Input;
use super::copy_lines::{CheckedPiece, Piece, Pieces};
use super::error::{WireError, WireResult};
use super::floors::leaves_open;
use super::frame::MESSAGE_BYTES_MAX;
use super::session::Session;
use super::settings::Settings;
use super::transaction;
use crate::sql::backend::Backend;

/// Maximum of pieces that are being checked: two keep two threads busy, and the third is ready when one of them is.
const CHECKS_MAX: usize = 3;

/// Bytes of lines that are checked on the session's own thread: less than a millisecond.
const INLINE_BYTES: usize = 64 << 10;

/// Writes a batch; the position is known outside of a transaction.
type Writing = Pin<Box<dyn Future<Output = Result<Option<WritePosition>>> + Send>>;

/// A piece that is being checked on a thread, or was.
enum Checking {
    Runs(Pin<Box<dyn Future<Output = CheckedPiece> + Send>>),
    Done(CheckedPiece),
}

/// A COPY in progress.
struct CopyIn {
    env: Env,
    backend: Arc<dyn Backend>,
    bucket: Arc<BucketInfo>,
    /// The transaction that the COPY is a part of.
    transaction: Option<transaction::Writing>,
    id_field: Arc<str>,
    pieces: Pieces,
    /// The pieces that are being checked, in the order of their lines.
    checking: VecDeque<Checking>,
    /// The lines of the pieces before those.
    lines: u64,
    /// True after psql's end of the data.
    ended: bool,
    /// The batch in flight with its number of documents.
    writing: Option<(Writing, u64)>,
    stored: u64,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Session<S> {
    /// Stores documents until the client has sent all; returns their number.
    pub(super) async fn copy_in(
        &mut self,
        bucket: Arc<BucketInfo>,
        id_field: String,
    ) -> WireResult<u64> {
        let transaction = self.state.writing(&bucket)?;
        let id = bucket.id;
        let before = transaction.is_none().then(|| self.state.settings.floors.begin_write(id));
        self.conn.send(CopyInResponse::new(0, 1, vec![0]))?;
        self.conn.flush().await?;
        let mut copy = CopyIn {
            env: self.env.clone(),
            backend: Arc::clone(&self.state.backend),
            bucket,
            transaction,
            id_field: Arc::from(id_field),
            pieces: Pieces::default(),
            checking: VecDeque::new(),
            lines: 0,
            ended: false,
            writing: None,
            stored: 0,
        };
        match self.copy_messages(&mut copy).await {
            Ok(()) => {
                if let Some(before) = before {
                    self.state.settings.floors.end_write(id, before);
                }
                Ok(copy.stored)
            }
            Err(CopyError::Session(error)) => Err(error),
            Err(CopyError::Copy(error)) => {
                if let (Some(before), None, false) = (before, &copy.writing, leaves_open(&error)) {
                    self.state.settings.floors.end_write(id, before);
                }
                Err(copy.explain(error).into())
            }
        }
    }

    async fn copy_messages(&mut self, copy: &mut CopyIn) -> std::result::Result<(), CopyError> {
        let settings = &mut self.state.settings;
        let idle_max = copy.transaction.as_ref().and_then(|_| settings.idle_in_transaction());
        loop {
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
            let input = input.map_err(|_| CopyError::Copy(cancelled()))?;
            match input.map_err(CopyError::Session)? {
                Input::Message(Message::CopyData(data)) => {
                    let taken = self.interrupt.guard(copy.take(&data.data, settings)).await;
                    taken.map_err(|_| CopyError::Copy(cancelled()))??;
                }
                Input::Message(Message::CopyDone(_)) => {
                    let taken = self.interrupt.guard(copy.end(settings)).await;
                    return Ok(taken.map_err(|_| CopyError::Copy(cancelled()))??);
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

/// Why a COPY ends early.
enum CopyError {
    /// The connection failed, or the client broke the protocol.
    Session(WireError),
    /// The COPY failed; its error also says how many documents are stored.
    Copy(Error),
}

impl From<Error> for CopyError {
    fn from(error: Error) -> Self {
        Self::Copy(error)
    }
}

fn cancelled() -> Error {
    Error::new(ErrorCode::Cancelled, "the statement was cancelled or timed out")
}

impl CopyIn {
    /// Takes the data of a message.
    async fn take(&mut self, data: &Bytes, settings: &mut Settings) -> Result<()> {
        if self.ended {
            return Ok(());
        }
        self.pieces.push(data);
        while let Some(piece) = self.pieces.next() {
            while self.checking.len() >= CHECKS_MAX {
                self.checked(settings).await?;
            }
            self.check(piece);
        }
        if let Err(error) = self.pieces.check() {
            self.all_checked(settings).await?;
            return self.refuse(error, self.lines + 1, settings).await;
        }
        Ok(())
    }

    /// Ends the data; the last line may lack its newline.
    async fn end(&mut self, settings: &mut Settings) -> Result<()> {
        let rest = self.pieces.rest();
        self.check(rest);
        self.all_checked(settings).await?;
        self.arrive(settings).await
    }

    /// Begins to check a piece.
    fn check(&mut self, piece: Piece) {
        let id_field = Arc::clone(&self.id_field);
        if piece.bytes() <= INLINE_BYTES {
            self.checking.push_back(Checking::Done(piece.check(&id_field)));
            return;
        }
        let env = self.env.clone();
        let mut check =
            Box::pin(async move { env.bulk(Bulk::Queued, move || piece.check(&id_field)).await });
        // The first poll starts the work; it runs on while the next lines are read.
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        self.checking.push_back(match check.as_mut().poll(&mut context) {
            Poll::Ready(checked) => Checking::Done(checked),
            Poll::Pending => Checking::Runs(check),
        });
    }

    /// Writes the documents of all pieces.
    async fn all_checked(&mut self, settings: &mut Settings) -> Result<()> {
        while !self.checking.is_empty() {
            self.checked(settings).await?;
        }
        Ok(())
    }

    /// Waits until the oldest piece is checked, and writes its documents.
    async fn checked(&mut self, settings: &mut Settings) -> Result<()> {
        // The piece stays in `self` during the wait, which an interrupt may end.
        if let Some(oldest @ Checking::Runs(_)) = self.checking.front_mut()
            && let Checking::Runs(check) = oldest
        {
            let checked = check.await;
            *oldest = Checking::Done(checked);
        }
        let Some(Checking::Done(piece)) = self.checking.pop_front() else { return Ok(()) };
        for batch in piece.batches {
            self.send(batch, settings).await?;
        }
        self.lines += piece.lines;
        if piece.ended {
            self.ended = true;
            self.checking.clear();
            self.pieces = Pieces::default();
        }
        match piece.error {
            Some(error) => self.refuse(error, self.lines, settings).await,
            None => Ok(()),
        }
    }

    /// Waits until the lines before a bad one are stored, and fails.
    async fn refuse(&mut self, error: Error, line: u64, settings: &mut Settings) -> Result<()> {
        self.arrive(settings).await?;
        Err(error.context(format!("line {line}")))
    }

    /// Sends a batch after the one before is stored.
    async fn send(&mut self, writes: CheckedWrites, settings: &mut Settings) -> Result<()> {
        self.arrive(settings).await?;
        let documents = writes.writes().len() as u64;
        let (backend, bucket) = (Arc::clone(&self.backend), Arc::clone(&self.bucket));
        let transaction = self.transaction.clone();
        let mut writing: Writing = Box::pin(async move {
            match transaction {
                Some((changes, snapshot)) => changes.write(snapshot, writes).await.map(|_| None),
                None => Ok(Some(backend.write_checked(&bucket, writes).await?.position)),
            }
        });
        // The first poll starts the write; it runs on while the next lines are read.
        if let Poll::Ready(reply) = futures::poll!(writing.as_mut()) {
            return self.arrived(reply?, documents, settings);
        }
        self.writing = Some((writing, documents));
        Ok(())
    }

    /// Waits for the batch in flight.
    async fn arrive(&mut self, settings: &mut Settings) -> Result<()> {
        // The batch stays in `self` during the wait: after an interrupt the error must still count it.
        let Some((writing, documents)) = &mut self.writing else { return Ok(()) };
        let documents = *documents;
        let reply = writing.await;
        self.writing = None;
        self.arrived(reply?, documents, settings)
    }

    fn arrived(
        &mut self,
        position: Option<WritePosition>,
        documents: u64,
        settings: &mut Settings,
    ) -> Result<()> {
        self.stored += documents;
        if let Some(position) = position {
            settings.note_write(position);
        }
        Ok(())
    }

    /// Adds the bucket's name and the number of stored documents to an error.
    fn explain(&self, error: Error) -> Error {
        let open = match &self.writing {
            Some((_, documents)) => format!(", and perhaps {documents} more"),
            None => String::new(),
        };
        let mut error = error.context(format!("COPY {}", self.bucket.name));
        if self.transaction.is_some() {
            return error;
        }
        error.message = format!("{}; {} documents are stored{open}", error.message, self.stored);
        error
    }
}
