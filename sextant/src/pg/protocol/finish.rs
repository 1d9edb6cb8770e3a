//! The ends of statements: command tags, COPY data, and the descriptions of rows.

use pgwire::messages::copy::{CopyDone, CopyOutResponse};
use pgwire::messages::data::{FieldDescription, RowDescription};
use proto::Error;
use tokio::io::{AsyncRead, AsyncWrite};

use super::session::Session;
use crate::pg::message::error::WireResult;
use crate::pg::message::types::{oid, size};
use crate::pg::result::row_writer::{RowMessage, RowWriter};
use crate::pg::result::stream::Rows;
use crate::pg::statement::execute::StatementOutcome;
use crate::rows::format::Format;
use crate::sql::plan::ColumnInfo;

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Session<S> {
    /// Finishes a statement with any outcome except rows; the callers send rows in the formats of
    /// their protocol. After the last statement of a query text, commits its transaction.
    pub(super) async fn finish(&mut self, done: StatementOutcome, is_last: bool) -> WireResult<()> {
        let tag = match done {
            StatementOutcome::Tag(tag) => tag,
            StatementOutcome::CopyOut(rows) => self.copy_out(rows).await?,
            StatementOutcome::CopyIn { bucket, id_field, is_atomic } => {
                let copied = self.copy_in(bucket, (id_field, is_atomic)).await?;
                format!("COPY {copied}")
            }
            StatementOutcome::Rows(_) => {
                return Err(Error::internal("rows reached the end of a statement unwritten").into());
            }
        };
        if is_last {
            self.end_block().await?;
        }
        self.complete(tag)
    }

    /// Sends the rows of a COPY … TO STDOUT; returns the command tag.
    async fn copy_out(&mut self, mut rows: Rows) -> WireResult<String> {
        let count = rows.columns.len();
        self.conn.send(CopyOutResponse::new(0, count as i16, vec![0; count]))?;
        let writer = RowWriter::new(RowMessage::Copy, &rows.columns, &[])
            .with_float_digits(self.state.settings.float_digits());
        rows.write(&mut self.conn, &mut self.interrupt, &writer, u64::MAX).await?;
        self.conn.send(CopyDone::new())?;
        Ok(rows.tag())
    }
}

/// Returns the description of a result's columns in the requested formats.
pub(super) fn row_description(columns: &[ColumnInfo], formats: &[Format]) -> RowDescription {
    let fields = columns.iter().enumerate().map(|(n, column)| {
        let format = formats.get(n).copied().unwrap_or_default();
        let column_type = column.column_type;
        // The protocol ends a name with NUL.
        let name = column.name.replace('\0', "");
        FieldDescription::new(name, 0, 0, oid(column_type), size(column_type), -1, format.code())
    });
    RowDescription::new(fields.collect())
}
