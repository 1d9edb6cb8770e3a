//! The simple protocol, which runs the statements of a query text.

use pgwire::messages::response::EmptyQueryResponse;
use proto::{Error, ErrorCode};
use tokio::io::{AsyncRead, AsyncWrite};

use super::finish::row_description;
use super::session::Session;
use crate::pg::message::error::WireResult;
use crate::pg::result::row_writer::{RowMessage, RowWriter};
use crate::pg::session::resolved_names::ResolvedNames;
use crate::pg::statement::execute::StatementOutcome;

/// The number of statements of a query text after which the session lets other tasks run. A
/// switch of tasks costs more than a small statement.
const TURN_STATEMENTS: usize = 16;

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Session<S> {
    /// Runs the statements of a query text up to the first failure. Several statements form one
    /// transaction, together with earlier statements that no Sync has ended. Statements between
    /// BEGIN and COMMIT belong to the explicit transaction instead.
    pub(super) async fn simple_query(&mut self, sql: &str) -> WireResult<()> {
        if let Err(error) = self.simple_statements(sql).await {
            self.send_error(error)?;
        }
        // The client may send its next statement in another session at once.
        self.release_place();
        self.send_ready().await
    }

    /// Runs the statements of a query text, and returns the first error.
    async fn simple_statements(&mut self, sql: &str) -> WireResult<()> {
        // As in PostgreSQL, the text takes the place of the unnamed statement, and its statements that of the unnamed portal.
        self.prepared.remove("");
        let parsed = self.parse_text(sql).await;
        let statements = parsed.inspect_err(|_| self.state.block.is_mixed = true)?;
        if statements.is_empty() {
            self.end_block().await?;
            return self.conn.send(EmptyQueryResponse::new());
        }
        self.portals.remove("");
        let count = statements.len();
        for (n, parsed) in statements.into_iter().enumerate() {
            if n % TURN_STATEMENTS == TURN_STATEMENTS - 1 {
                // Other tasks have their turn between the statements of a long text, and a cancellation ends it.
                self.interrupt.guard(tokio::task::yield_now()).await?;
            }
            if parsed.parameters > 0 {
                // The settings before it are undone too.
                self.state.block.is_mixed = true;
                return Err(Error::new(
                    ErrorCode::Syntax,
                    "$1 has no value: parameters need the extended protocol",
                )
                .into());
            }
            let place = (sql, parsed.start);
            let is_last = n + 1 == count;
            self.begin_statement(is_last, count > 1);
            match self.start_in(place, &parsed, &[], &ResolvedNames::default()).await? {
                StatementOutcome::Rows(mut rows) => {
                    self.conn.send(row_description(&rows.columns, &[]))?;
                    let writer = RowWriter::new(RowMessage::Data, &rows.columns, &[])
                        .with_float_digits(self.state.settings.float_digits());
                    rows.write(&mut self.conn, &mut self.interrupt, &writer, u64::MAX).await?;
                    if is_last {
                        self.end_block().await?;
                    }
                    self.complete(rows.tag())?;
                }
                other => self.finish(other, is_last).await?,
            }
        }
        Ok(())
    }

    /// Records the begin of a statement, and whether it is the last or one of several statements
    /// of its text.
    fn begin_statement(&mut self, is_last: bool, is_one_of_several: bool) {
        (self.state.block.is_last, self.state.block.in_text) = (is_last, is_one_of_several);
        if is_one_of_several {
            self.state.begin_in_block();
        }
    }
}
