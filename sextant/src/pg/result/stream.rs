//! Streams the rows of a result from the cluster to the client.
//!
//! [`Rows`] is a result that can be read in several steps: a suspended portal stores it with the
//! unsent rows of the current batch.
//!
//! The next batch is fetched only after all rows of the current one are in the buffer of answers.
//! When the buffer is full, no row is added until the socket has taken its contents. A slow
//! client therefore slows the scan down, and the memory is bounded by one batch and one buffer.
//! If the socket accepts no bytes for a while, the scan is parked like that of a suspended
//! portal.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use futures::poll;
use proto::rpc::rows::{RowBlock, RowIter};
use proto::{Error, ErrorCode, Result};
use router::ScanBatch;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout, timeout_at};

use super::aggregate_row::{aggregate_row, wrong_result_kind};
use super::documents::Documents;
use super::row_writer::RowWriter;
use crate::access::{Access, BatchSource, TransactionView};
use crate::pg::interrupt::Interrupt;
use crate::pg::message::conn::{Conn, FLUSH_AFTER};
use crate::pg::message::error::WireResult;
use crate::rows::entry::EntryPrinter;
use crate::rows::suspended_result::SUSPENDED_RUNS;
use crate::rows::value::Datum;
use crate::sql::plan::{Cell, ColumnInfo, DocumentPlan, IndexPlan};

/// The rows of a result that are not yet sent.
pub(in crate::pg) struct Rows {
    pub(in crate::pg) columns: Arc<[ColumnInfo]>,
    source: ResultSource,
    tag: &'static str,
    counted: bool,
    sent: u64,
}

/// The source of a result's rows: a scan, documents, or a table of values.
enum ResultSource {
    Table(VecDeque<Vec<Datum>>),
    Scan { batches: Box<dyn BatchSource>, printer: Box<EntryPrinter>, rest: UnwrittenRows },
    Aggregates { batches: Box<dyn BatchSource>, cells: Vec<Cell>, row: VecDeque<Vec<Datum>> },
    Documents(Documents),
}

/// The rows of a batch that are not yet written to the buffer.
#[derive(Default)]
struct UnwrittenRows {
    data: Bytes,
    /// The offset of the next row in the data of the batch, in bytes.
    at: usize,
    rows: u32,
}

/// The progress of a result after some of its rows were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::pg) enum RowsProgress {
    /// All rows are written.
    Finished,
    /// The requested number of rows is written, and more may follow.
    Suspended,
}

impl Rows {
    fn new(columns: impl Into<Arc<[ColumnInfo]>>, source: ResultSource) -> Self {
        Self { columns: columns.into(), source, tag: "SELECT", counted: true, sent: 0 }
    }

    /// Returns a result with the given rows.
    pub(in crate::pg) fn table(
        columns: impl Into<Arc<[ColumnInfo]>>,
        rows: Vec<Vec<Datum>>,
    ) -> Self {
        Self::new(columns, ResultSource::Table(rows.into()))
    }

    /// Returns the result of a scan of an index.
    pub(in crate::pg) fn scan(plan: IndexPlan, batches: Box<dyn BatchSource>) -> Self {
        let aggregates = plan.cells.iter().any(|cell| matches!(cell, Cell::Aggregate(..)));
        let source = match (aggregates, plan.skip_aggregates) {
            (true, true) => ResultSource::Table(VecDeque::new()),
            (true, false) => {
                ResultSource::Aggregates { batches, cells: plan.cells, row: VecDeque::new() }
            }
            (false, _) => ResultSource::Scan {
                batches,
                printer: Box::new(EntryPrinter::new(&plan.index.spec, plan.cells)),
                rest: UnwrittenRows::default(),
            },
        };
        Self::new(plan.columns, source)
    }

    /// Returns the result of a SELECT of documents by id.
    pub(in crate::pg) fn documents(
        access: Access,
        plan: DocumentPlan,
        view: Option<TransactionView>,
    ) -> Self {
        let columns = Arc::clone(&plan.columns);
        Self::new(columns, ResultSource::Documents(Documents::new(access, plan, view)))
    }

    /// Parks the scan, if there is one.
    pub(in crate::pg) fn park(&mut self) {
        match &mut self.source {
            ResultSource::Scan { batches, .. } | ResultSource::Aggregates { batches, .. } => {
                batches.park()
            }
            ResultSource::Table(_) | ResultSource::Documents(_) => {}
        }
    }

    /// Changes the first word of the result's command tag.
    pub(in crate::pg) fn with_tag(self, tag: &'static str) -> Self {
        Self { tag, ..self }
    }

    /// Changes the result's command tag to a text that does not contain the number of rows.
    pub(in crate::pg) fn with_fixed_tag(self, tag: &'static str) -> Self {
        Self { tag, counted: false, ..self }
    }

    /// Returns the command tag. It contains the number of rows since the last Execute, as in
    /// PostgreSQL.
    pub(in crate::pg) fn tag(&self) -> String {
        match self.counted {
            true => format!("{} {}", self.tag, self.sent),
            false => self.tag.to_owned(),
        }
    }

    /// Writes rows until the end of the result, or until `limit` rows are written.
    pub(in crate::pg) async fn write<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        conn: &mut Conn<S>,
        interrupt: &mut Interrupt,
        writer: &RowWriter,
        limit: u64,
    ) -> WireResult<RowsProgress> {
        self.sent = 0;
        // The time at which the oldest buffered answer must go out.
        let mut flush_at = None;
        loop {
            while self.sent < limit && !conn.is_full() {
                let bounds = Bounds { rows: limit - self.sent, bytes: conn.full_bytes() };
                let printed = self.print(writer, &mut conn.out, bounds)?;
                if printed == 0 {
                    break;
                }
                self.sent += printed;
                if self.reset_if_due() {
                    interrupt.guard(tokio::task::yield_now()).await?;
                }
            }
            if self.sent == limit {
                return Ok(RowsProgress::Suspended);
            }
            if conn.is_full() {
                flush_at = None;
                if !flush_soon(conn, interrupt).await? {
                    self.park();
                    interrupt.guard(conn.flush()).await??;
                }
                // A socket that takes everything at once would let this task print for many milliseconds.
                interrupt.guard(tokio::task::yield_now()).await?;
                continue;
            }
            // Buffered rows are flushed before any long wait, so that the first row arrives within milliseconds.
            let (more, is_read) = {
                let mut next = pin!(self.source.fetch());
                let fetched = match poll!(next.as_mut()) {
                    Poll::Ready(more) => Some(Ok(more)),
                    Poll::Pending if conn.has_few_answers() => {
                        let at = *flush_at.get_or_insert_with(|| Instant::now() + FLUSH_AFTER);
                        timeout_at(at, interrupt.guard(next.as_mut())).await.ok()
                    }
                    Poll::Pending => None,
                };
                match fetched {
                    Some(more) => (more??, true),
                    None => {
                        flush_at = None;
                        let is_read = flush_soon(conn, interrupt).await?;
                        (interrupt.guard(next).await??, is_read)
                    }
                }
            };
            if !is_read {
                self.park();
            }
            if !more {
                // Dropping the scan releases its permit; a further read finds no rows.
                self.source = ResultSource::Table(VecDeque::new());
                return Ok(RowsProgress::Finished);
            }
        }
    }

    /// Returns true if the computed columns have taken so much time that other tasks must run.
    /// Then resets the measurement.
    fn reset_if_due(&mut self) -> bool {
        match &mut self.source {
            ResultSource::Scan { printer, .. } => printer.reset_if_due(),
            _ => false,
        }
    }

    /// Writes rows of the current batch up to a bound. Returns their number, which is 0 at the
    /// end of the batch.
    fn print(&mut self, writer: &RowWriter, out: &mut Vec<u8>, bounds: Bounds) -> Result<u64> {
        let row = match &mut self.source {
            ResultSource::Scan { printer, rest, .. } => {
                return rest.print(printer, writer, out, bounds);
            }
            ResultSource::Table(rows) => rows.pop_front(),
            ResultSource::Aggregates { row, .. } => row.pop_front(),
            ResultSource::Documents(documents) => documents.row()?,
        };
        match row {
            Some(row) => writer.datums(&row, out).map(|()| 1),
            None => Ok(0),
        }
    }
}

/// The bounds at which the writing of rows pauses: a number of rows, or a size of the buffer.
#[derive(Clone, Copy)]
struct Bounds {
    /// The maximum number of rows.
    rows: u64,
    /// The size of the buffer of answers, in bytes.
    bytes: usize,
}

/// Flushes the buffer. Returns false if the client does not accept all of it within
/// [`SUSPENDED_RUNS`].
async fn flush_soon<S: AsyncRead + AsyncWrite + Unpin>(
    conn: &mut Conn<S>,
    interrupt: &mut Interrupt,
) -> WireResult<bool> {
    match timeout(SUSPENDED_RUNS, interrupt.guard(conn.flush())).await {
        Ok(flushed) => Ok(flushed?.map(|()| true)?),
        Err(_) => Ok(false),
    }
}

impl UnwrittenRows {
    /// Writes rows up to a bound, or until other tasks must run. Returns the number of rows.
    fn print(
        &mut self,
        printer: &mut EntryPrinter,
        writer: &RowWriter,
        out: &mut Vec<u8>,
        bounds: Bounds,
    ) -> Result<u64> {
        let wanted = bounds.rows.min(self.rows.into()) as u32;
        let mut rows = RowIter::new(&self.data[self.at..]);
        let mut printed = 0;
        while printed < wanted && out.len() < bounds.bytes {
            let row = rows.next().ok_or_else(|| {
                Error::new(ErrorCode::Corrupt, "a batch has fewer rows than its header says")
            })?;
            writer.entry(printer, row, out)?;
            printed += 1;
            if printer.is_due() {
                break;
            }
        }
        self.at = self.data.len() - rows.rest_bytes();
        self.rows -= printed;
        Ok(printed.into())
    }
}

impl From<RowBlock> for UnwrittenRows {
    fn from(block: RowBlock) -> Self {
        Self { data: block.data, at: 0, rows: block.rows }
    }
}

impl ResultSource {
    /// Fetches the next batch. Returns false if there is none.
    async fn fetch(&mut self) -> Result<bool> {
        match self {
            Self::Table(_) => Ok(false),
            Self::Scan { batches, rest, .. } => match batches.next().await? {
                Some(ScanBatch::Rows(block)) => {
                    *rest = block.into();
                    Ok(true)
                }
                Some(ScanBatch::Aggregates(_)) => Err(wrong_result_kind()),
                None => Ok(false),
            },
            Self::Aggregates { batches, cells, row } => match batches.next().await? {
                Some(ScanBatch::Aggregates(partials)) => {
                    row.push_back(aggregate_row(cells, &partials)?);
                    Ok(true)
                }
                Some(ScanBatch::Rows(_)) => Err(wrong_result_kind()),
                None => Ok(false),
            },
            Self::Documents(documents) => documents.fetch().await,
        }
    }
}

/// Returns the row limit of an Execute message, in which 0 means all rows.
pub(in crate::pg) fn row_limit(max_rows: i32) -> u64 {
    match u64::try_from(max_rows) {
        Ok(0) | Err(_) => u64::MAX,
        Ok(rows) => rows,
    }
}
