//! The loop of a session, which reads and answers the client's messages.
//!
//! The loop reads and answers message after message. In the simple protocol each query text ends
//! with ReadyForQuery. In the extended protocol an error is sent at once, and all messages up to
//! the next Sync are skipped. The answers therefore match the messages of a client that sends
//! several messages without waiting. Messages of a failed COPY are skipped too.
//!
//! All statements up to a Sync form a transaction (`transact`), which Sync commits. Before a
//! write is executed, the loop therefore waits for the type of the next message. If the next
//! message is Sync, the write is executed without a transaction. A client that needs the answer
//! before Sync sends Flush.

use pgwire::messages::PgWireFrontendMessage as Message;
use proto::{Error, ErrorCode};
use tokio::io::{AsyncRead, AsyncWrite};

use super::session::Session;
use crate::pg::message::conn::Input;
use crate::pg::message::error::{WireError, WireResult};
use crate::pg::message::frame::MESSAGE_BYTES_MAX;
use crate::pg::start::startup;

/// The result of a step: true if the session continues, false if it ends.
type Continues = bool;

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Session<S> {
    /// Runs the session to its end.
    pub(in crate::pg) async fn run(mut self) {
        self.serve().await;
        self.conn.close().await;
    }

    /// Reads and answers messages until the session ends.
    async fn serve(&mut self) {
        let settings = &self.state.settings;
        let welcome = startup::welcome(&mut self.conn, settings, &self.registration);
        if welcome.is_err() || self.send_notices().is_err() || self.send_ready().await.is_err() {
            return;
        }
        loop {
            match self.step().await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    let told = match error.is_fatal() {
                        true => self.conn.send(error.response()),
                        false => self.fail(&error),
                    };
                    if error.is_fatal() || told.is_err() {
                        let _client_may_be_gone = self.conn.flush().await;
                        return;
                    }
                    self.skipping = true;
                    // A client that sent Flush instead of Sync waits for the error.
                    if self.conn.flush().await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    /// Reads and answers one message. After an error, messages up to the next Sync are skipped.
    async fn step(&mut self) -> WireResult<Continues> {
        let message = match self.read_message().await? {
            Input::Message(message) => message,
            Input::Closed => return Ok(false),
            Input::TooLong(kind, bytes) => {
                let error = Error::new(
                    ErrorCode::OverLimit,
                    format!("a message has {bytes} bytes; the limit is {MESSAGE_BYTES_MAX} bytes"),
                );
                let hint = "load documents with COPY … FROM STDIN, which takes any number of them";
                return self.answer_discarded(kind, error.with_hint(hint)).await;
            }
            Input::NoRoom(kind, error) => return self.answer_discarded(kind, error).await,
        };
        match message {
            Message::Terminate(_) => return Ok(false),
            Message::Sync(_) => {
                self.skipping = false;
                if let Err(error) = self.end_block().await {
                    self.send_error(error)?;
                }
                self.release_place();
                self.send_ready().await?;
            }
            Message::Flush(_) => self.conn.flush().await?,
            _ if self.skipping => self.conn.release_memory(),
            message => {
                self.state.login.check()?;
                let answered = self.answer(message).await;
                self.release_place();
                answered?;
            }
        }
        Ok(true)
    }

    /// Answers a message that belongs to a statement.
    async fn answer(&mut self, message: Message) -> WireResult<()> {
        match message {
            Message::Query(query) => self.simple_query(&query.query).await?,
            // Only statements that run are settings and definitions one by one: any other error undoes the settings since the last Sync.
            Message::Parse(parse) => {
                self.parse(parse).await.inspect_err(|_| self.state.block.is_mixed = true)?;
            }
            Message::Bind(bind) => {
                self.bind(bind).inspect_err(|_| self.state.block.is_mixed = true)?;
            }
            Message::Describe(describe) => {
                let described = self.describe(describe).await;
                described.inspect_err(|_| self.state.block.is_mixed = true)?;
            }
            Message::Execute(execute) => self.execute(execute).await?,
            Message::Close(close) => self.close(close)?,
            Message::CopyData(_) | Message::CopyDone(_) | Message::CopyFail(_) => {}
            _ => return Err(WireError::protocol("an unexpected message during a session")),
        }
        Ok(())
    }

    /// Answers a message whose body was discarded because it was too long or there was no memory
    /// for it.
    async fn answer_discarded(&mut self, kind: u8, error: Error) -> WireResult<Continues> {
        if self.skipping || matches!(kind, b'd' | b'c' | b'f') {
            return Ok(true);
        }
        self.state.block.is_mixed = true;
        match kind {
            b'Q' => {
                self.send_error(error.into())?;
                self.send_ready().await?;
                Ok(true)
            }
            _ => Err(error.into()),
        }
    }
}
