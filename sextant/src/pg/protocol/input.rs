//! Waits for the client's next message. The type of this message shows whether the previous
//! statement was the last one of its transaction.

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

    /// Returns true if a write is the only statement of its transaction: the next message is
    /// Sync, possibly after messages that close the write's portal or statement. If the client
    /// disconnects before Sync, the write is not executed.
    pub(super) async fn is_alone(&mut self, statement: &Statement) -> WireResult<bool> {
        let is_write = matches!(statement, Statement::Insert(_) | Statement::Delete { .. });
        if !is_write || !matches!(self.state.transaction, Transaction::None) {
            return Ok(false);
        }
        self.is_sync_next().await
    }

    /// Determines, after the data of a COPY, whether the COPY is the only statement of its
    /// transaction. In a query text, this is known before.
    pub(in crate::pg) async fn check_copy_is_alone(&mut self) -> WireResult<()> {
        let is_extended = !self.state.block.is_last && !self.state.block.in_text;
        if is_extended && matches!(self.state.transaction, Transaction::None) {
            self.state.block.is_last = self.is_sync_next().await?;
        }
        Ok(())
    }

    /// Returns true if the next message is Sync, after messages that close portals or statements.
    async fn is_sync_next(&mut self) -> WireResult<bool> {
        match self.wait_for(async |conn| conn.next_kind(b'C').await).await? {
            Some(b'S') => Ok(true),
            Some(b'X') | None => {
                Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into())
            }
            Some(_) => Ok(false),
        }
    }

    /// Waits for the client. Returns an error that ends the session if its user is dropped or the
    /// process stops. When the process stops, an open transaction may continue for a few seconds.
    /// In a transaction the wait has a time limit, since the transaction keeps an epoch and
    /// memory; otherwise a setting may limit the wait.
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
