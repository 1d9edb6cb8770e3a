//! Waiting for the client's next message, by which the previous statement is known to be the last
//! one or not.

use tokio::io::{AsyncRead, AsyncWrite};

use super::session::Session;
use crate::flow::Limit;
use crate::pg::message::conn::{Conn, Input};
use crate::pg::message::error::{WireError, WireResult};
use crate::pg::session::transaction::Transaction;
use crate::sql::ast::Statement;

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Session<S> {
    /// Reads the next message.
    pub(super) async fn read_message(&mut self) -> WireResult<Input> {
        self.wait_for(async |conn| conn.read().await).await
    }

    /// True if a write is a single-statement transaction: the next message is Sync, possibly after
    /// messages that close its portal or statement. A client that disconnects before Sync has not
    /// requested the write.
    pub(super) async fn is_alone(&mut self, statement: &Statement) -> WireResult<bool> {
        let is_write = matches!(statement, Statement::Insert(_) | Statement::Delete { .. });
        if !is_write || !matches!(self.state.transaction, Transaction::None) {
            return Ok(false);
        }
        self.is_sync_next().await
    }

    /// Checks, after the data of a COPY, whether the COPY is a single-statement transaction. In a
    /// query text this is known before.
    pub(in crate::pg) async fn look_ahead_of_copy(&mut self) -> WireResult<()> {
        let is_extended = !self.state.block.is_last && !self.state.block.in_text;
        if is_extended && matches!(self.state.transaction, Transaction::None) {
            self.state.block.is_last = self.is_sync_next().await?;
        }
        Ok(())
    }

    async fn is_sync_next(&mut self) -> WireResult<bool> {
        match self.wait_for(async |conn| conn.next_kind(b'C').await).await? {
            Some(b'S') => Ok(true),
            Some(b'X') | None => {
                Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into())
            }
            Some(_) => Ok(false),
        }
    }

    /// Waits for the client. Ends the session if its user is dropped or the process stops; an open
    /// transaction then continues until the cut. The wait has a time limit in a transaction, which
    /// holds an epoch and memory, and a limit by a setting otherwise.
    async fn wait_for<T>(
        &mut self,
        next: impl AsyncFnOnce(&mut Conn<S>) -> WireResult<T>,
    ) -> WireResult<T> {
        let limit = match self.state.transaction {
            Transaction::None => self.state.settings.idle_session(),
            _ => self.state.settings.idle_in_transaction(),
        };
        let is_idle = matches!(self.state.transaction, Transaction::None);
        let (conn, login, stop) = (&mut self.conn, &mut self.state.login, &mut self.interrupt.stop);
        let stopped = async {
            match is_idle {
                true => stop.draining().await,
                false => stop.cut().await,
            }
        };
        let next = async {
            tokio::select! {
                biased;
                read = next(conn) => read,
                ended = login.withdrawn() => Err(ended),
                () = stopped => Err(WireError::stopped()),
            }
        };
        let Some(limit) = limit else { return next.await };
        match tokio::time::timeout(limit, next).await {
            Ok(read) => read,
            Err(_) if matches!(self.state.transaction, Transaction::None) => {
                self.state.login.doors.flow().refusals.count(Limit::SessionIdle);
                Err(WireError::idle_session())
            }
            Err(_) => {
                self.state.transaction = Transaction::None;
                Err(WireError::idle_in_transaction())
            }
        }
    }
}
