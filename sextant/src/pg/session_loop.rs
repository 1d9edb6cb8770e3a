//! The session loop.
//!
//! One message after the other is read and answered. Outside the extended protocol each query text
//! ends with ReadyForQuery. In it, an error is told at once and everything up to the next Sync is
//! skipped, so that a client which has sent ahead knows where it stands. Stray COPY messages, of a COPY
//! that has failed, are skipped too.

use pgwire::messages::PgWireFrontendMessage as Message;
use proto::{Error, ErrorCode};
use tokio::io::{AsyncRead, AsyncWrite};

use super::conn::Input;
use super::error::{WireError, WireResult};
use super::execute::Transaction;
use super::frame::MESSAGE_BYTES_MAX;
use super::session::Session;
use super::startup;

/// Does the session go on?
type GoesOn = bool;

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Session<S> {
    /// Runs the session to its end.
    pub(super) async fn run(mut self) {
        let settings = &self.state.settings;
        let welcome =
            startup::welcome(&mut self.conn, &self.parameters, settings, &self.registration);
        if welcome.is_err() || self.ready().await.is_err() {
            return;
        }
        loop {
            match self.step().await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    let told = self.conn.send(error.response()).is_ok();
                    if error.is_fatal() || !told {
                        let _client_may_be_gone = self.conn.flush().await;
                        return;
                    }
                    self.fail();
                    self.skipping = true;
                    // The client may have asked for a flush and not for Sync: it waits for this.
                    if self.conn.flush().await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    /// Reads and answers one message. An error skips to Sync.
    async fn step(&mut self) -> WireResult<GoesOn> {
        let message = match self.conn.read().await? {
            Input::Message(message) => message,
            Input::Closed => return Ok(false),
            Input::TooLong(kind, bytes) => return self.too_long(kind, bytes).await,
        };
        match message {
            Message::Terminate(_) => return Ok(false),
            Message::Sync(_) => {
                self.skipping = false;
                if matches!(self.state.transaction, Transaction::None) {
                    self.portals.clear();
                }
                self.ready().await?;
            }
            Message::Flush(_) => self.conn.flush().await?,
            _ if self.skipping => {}
            Message::Query(query) => self.simple_query(&query.query).await?,
            Message::Parse(parse) => self.parse(parse).await?,
            Message::Bind(bind) => self.bind(bind)?,
            Message::Describe(describe) => self.describe(describe).await?,
            Message::Execute(execute) => self.execute(execute).await?,
            Message::Close(close) => self.close(close)?,
            Message::CopyData(_) | Message::CopyDone(_) | Message::CopyFail(_) => {}
            _ => return Err(WireError::protocol("a message that is not expected here")),
        }
        Ok(true)
    }

    async fn too_long(&mut self, kind: u8, bytes: usize) -> WireResult<GoesOn> {
        let error = Error::new(
            ErrorCode::OverLimit,
            format!("a message of {bytes} bytes; at most {MESSAGE_BYTES_MAX} are taken"),
        )
        .with_hint("COPY … FROM STDIN takes any number of documents, in messages of any size");
        match kind {
            b'Q' => {
                self.tell(error.into())?;
                self.ready().await?;
                Ok(true)
            }
            b'd' | b'c' | b'f' => Ok(true),
            _ if self.skipping => Ok(true),
            _ => Err(error.into()),
        }
    }
}
