//! The simple protocol: runs the statements of a query text.

use pgwire::messages::response::EmptyQueryResponse;
use proto::{Error, ErrorCode};
use tokio::io::{AsyncRead, AsyncWrite};

use super::error::WireResult;
use super::execute::StatementOutcome;
use super::finish::row_description;
use super::kept::Kept;
use super::row_writer::{RowWriter, Shape};
use super::session::Session;

/// Statements after which other tasks have their turn: it costs more than a small statement.
const TURN_STATEMENTS: usize = 16;

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Session<S> {
    /// Runs the statements of a query text up to the first failure.
    pub(super) async fn simple_query(&mut self, sql: &str) -> WireResult<()> {
        if let Err(error) = self.simple_statements(sql).await {
            self.tell(error)?;
        }
        // The client may send its next statement in another session at once.
        self.give_back();
        self.ready().await
    }

    async fn simple_statements(&mut self, sql: &str) -> WireResult<()> {
        let statements = self.parse_text(sql).await?;
        if statements.is_empty() {
            return self.conn.send(EmptyQueryResponse::new());
        }
        for (n, parsed) in statements.into_iter().enumerate() {
            if n % TURN_STATEMENTS == TURN_STATEMENTS - 1 {
                // Other tasks have their turn between the statements of a long text, and a cancellation ends it.
                self.interrupt.guard(tokio::task::yield_now()).await?;
            }
            if parsed.parameters > 0 {
                return Err(Error::new(
                    ErrorCode::Syntax,
                    "$1 has no value: parameters need the extended protocol",
                )
                .into());
            }
            let place = (sql, parsed.start);
            match self.start_in(place, &parsed, &[], &Kept::default()).await? {
                StatementOutcome::Rows(mut rows) => {
                    self.conn.send(row_description(&rows.columns, &[]))?;
                    let writer = RowWriter::new(Shape::Data, &rows.columns, &[])
                        .with_float_digits(self.state.settings.float_digits());
                    rows.write(&mut self.conn, &mut self.interrupt, &writer, u64::MAX).await?;
                    self.complete(rows.tag())?;
                }
                other => self.finish(other).await?,
            }
        }
        Ok(())
    }
}
