//! The forms of the rows in the replies of a scan: a message for each row, lines of text, or
//! columns. A reply is limited in bytes and not in rows, so that its size does not depend on the
//! number of requested columns.

use proto::grpc::{ScanReply, ScanRequest, ScanRow, ScanValue};
use proto::rpc::rows::{Row, RowBlock};
use proto::{Error, ErrorCode, Result};

use crate::rows::columns::Columns;
use crate::rows::entry::EntryPrinter;
use crate::rows::format::Format;
use crate::rows::line;
use crate::sql::plan::IndexPlan;

/// The size of a reply, in bytes, above which no further row is added.
const REPLY_BYTES: usize = 1 << 20;
/// The estimated size of a value without its text in a reply, in bytes.
const VALUE_BYTES: usize = 8;

/// The form of the rows in replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A message for each row and each value.
    Rows,
    Lines,
    Columns,
}

/// The rows of a reply that is being built, in one of the forms.
pub(super) enum Rows {
    Messages { rows: Vec<ScanRow>, bytes: usize },
    Lines(Vec<u8>),
    Columns(Columns),
}

impl Form {
    /// Returns the form that a request specifies.
    pub(super) fn of(request: &ScanRequest) -> Result<Self> {
        match (request.lines, request.columnar) {
            (false, false) => Ok(Self::Rows),
            (true, false) => Ok(Self::Lines),
            (false, true) => Ok(Self::Columns),
            (true, true) => {
                let what = "a scan is either lines or columnar, not both";
                Err(Error::new(ErrorCode::InvalidParameter, what))
            }
        }
    }

    /// Returns an empty reply in this form, with capacity for the rows of a block.
    pub(super) fn begin(self, plan: &IndexPlan, printer: &EntryPrinter, block: &RowBlock) -> Rows {
        match self {
            Self::Rows => Rows::Messages { rows: Vec::new(), bytes: 0 },
            Self::Lines => Rows::Lines(Vec::with_capacity(block.data.len() + block.data.len() / 4)),
            Self::Columns => {
                let types: Vec<_> = plan.columns.iter().map(|column| column.column_type).collect();
                let rows_max = REPLY_BYTES / (VALUE_BYTES * types.len()).max(1);
                let rows = (block.rows as usize).min(rows_max);
                Rows::Columns(Columns::new(printer, &types, rows))
            }
        }
    }
}

impl Rows {
    /// Returns true if the reply is so long that no further row should be added.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        let bytes = match self {
            Self::Messages { bytes, .. } => *bytes,
            Self::Lines(lines) => lines.len(),
            Self::Columns(columns) => columns.bytes(),
        };
        bytes >= REPLY_BYTES
    }

    /// Appends a row. After an error, the reply must not be used.
    #[inline]
    pub(super) fn push(
        &mut self,
        plan: &IndexPlan,
        printer: &mut EntryPrinter,
        row: Row<'_>,
    ) -> Result<()> {
        match self {
            Self::Messages { rows, bytes } => {
                let texts = printer.texts(&plan.columns, row)?;
                let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
                *bytes += texts.iter().map(|text| length(text) + VALUE_BYTES).sum::<usize>();
                let values = texts.into_iter().map(|text| ScanValue { text }).collect();
                rows.push(ScanRow { values });
                Ok(())
            }
            Self::Lines(lines) => {
                let types = plan.columns.iter().map(|column| column.column_type);
                let mut cells = printer.row(row);
                line::write(lines, types, |n, column_type, out| {
                    cells.write(n, column_type, Format::Text, out)
                })
            }
            Self::Columns(columns) => columns.push(printer, row),
        }
    }

    /// Moves the collected rows into a reply.
    pub(super) fn finish(self, reply: &mut ScanReply) {
        match self {
            Self::Messages { rows, .. } => reply.rows = rows,
            Self::Lines(lines) => reply.lines = lines.into(),
            Self::Columns(columns) => (reply.values, reply.value_rows) = columns.finish(),
        }
    }
}
