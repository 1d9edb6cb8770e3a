//! Rows on their way from the cluster to the client.
//!
//! [`Rows`] is a result that may be read in pieces: a portal that is suspended keeps it, with the rest
//! of the batch that it stopped in. Nothing is fetched before the rows that are there are in the
//! buffer of answers, and nothing more is put there before the socket has taken what is full: so the
//! socket's pace is the scan's, and memory is one batch and one buffer. Where the socket takes nothing for a while the
//! scan is parked, as a suspended portal's is.
//!
//! Documents by id are read in one call, so that all of a statement's are of one moment. There are two
//! exceptions, where they are read in pieces, each of a moment of its own: beyond
//! [`DOCUMENTS_AT_ONCE`] ids, and where the documents are together too long for one answer.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use futures::poll;
use proto::expr::aggregate::AggregateFunction;
use proto::expr::aggregate::Partial;
use proto::rpc::rows::{RowBlock, RowIter};
use proto::value::Value;
use proto::{Error, ErrorCode, Result};
use router::ScanBatch;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::conn::Conn;
use super::error::WireResult;
use super::interrupt::Interrupt;
use super::row_writer::RowWriter;
use crate::rows::entry::EntryPrinter;
use crate::rows::suspended::SUSPENDED_RUNS;
use crate::rows::value::Datum;
use crate::sql::backend::{Backend, BatchSource};
use crate::sql::plan::{Cell, ColumnInfo, DocumentColumn, DocumentPlan, IndexPlan};

/// Documents that are asked for at once: with the longest ids, a request of 4 MiB.
const DOCUMENTS_AT_ONCE: usize = 16_384;

/// Digits behind the point that an average is rounded to; PostgreSQL gives at least 16.
const AVERAGE_SCALE: i64 = 16;

/// A result, as far as it is not sent yet.
pub(super) struct Rows {
    pub(super) columns: Vec<ColumnInfo>,
    source: Source,
    tag: &'static str,
    counted: bool,
    sent: u64,
}

enum Source {
    Table(VecDeque<Vec<Datum>>),
    Scan { batches: Box<dyn BatchSource>, printer: EntryPrinter, rest: Rest },
    Aggregates { batches: Box<dyn BatchSource>, cells: Vec<Cell>, row: VecDeque<Vec<Datum>> },
    Documents(Documents),
}

/// What of a batch is not printed yet.
#[derive(Default)]
struct Rest {
    data: Bytes,
    rows: u32,
}

/// Documents by id.
struct Documents {
    backend: Arc<dyn Backend>,
    /// Its ids are those that are still to be read, in reverse.
    plan: DocumentPlan,
    found: VecDeque<(String, Bytes)>,
    /// How many are asked for at once.
    at_once: usize,
}

/// How a piece of a result ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// There is nothing more.
    Finished,
    /// As many rows as were asked for are written.
    Suspended,
}

impl Rows {
    fn new(columns: Vec<ColumnInfo>, source: Source) -> Self {
        Self { columns, source, tag: "SELECT", counted: true, sent: 0 }
    }

    /// Rows that are known.
    pub(super) fn table(columns: Vec<ColumnInfo>, rows: Vec<Vec<Datum>>) -> Self {
        Self::new(columns, Source::Table(rows.into()))
    }

    /// The rows of a scan.
    pub(super) fn scan(plan: IndexPlan, batches: Box<dyn BatchSource>) -> Self {
        let aggregates = plan.cells.iter().any(|cell| matches!(cell, Cell::Aggregate(..)));
        let source = match (aggregates, plan.skip_aggregates) {
            (true, true) => Source::Table(VecDeque::new()),
            (true, false) => {
                Source::Aggregates { batches, cells: plan.cells, row: VecDeque::new() }
            }
            (false, _) => Source::Scan {
                batches,
                printer: EntryPrinter::new(&plan.index.spec, plan.cells),
                rest: Rest::default(),
            },
        };
        Self::new(plan.columns, source)
    }

    /// Documents by id.
    pub(super) fn documents(backend: Arc<dyn Backend>, mut plan: DocumentPlan) -> Self {
        let columns = std::mem::take(&mut plan.columns);
        plan.ids.reverse();
        let (found, at_once) = (VecDeque::new(), DOCUMENTS_AT_ONCE);
        Self::new(columns, Source::Documents(Documents { backend, plan, found, at_once }))
    }

    /// Nobody reads on for now: a scan lets go of what others may want.
    pub(super) fn park(&mut self) {
        match &mut self.source {
            Source::Scan { batches, .. } | Source::Aggregates { batches, .. } => batches.park(),
            Source::Table(_) | Source::Documents(_) => {}
        }
    }

    /// Another word in the command tag.
    pub(super) fn with_tag(self, tag: &'static str) -> Self {
        Self { tag, ..self }
    }

    /// Another command tag, without the number of rows.
    pub(super) fn with_fixed_tag(self, tag: &'static str) -> Self {
        Self { tag, counted: false, ..self }
    }

    /// The command tag, with the number of rows of the last piece, as in PostgreSQL.
    pub(super) fn tag(&self) -> String {
        match self.counted {
            true => format!("{} {}", self.tag, self.sent),
            false => self.tag.to_owned(),
        }
    }

    /// Writes rows until there are no more, or `limit` of them are written.
    pub(super) async fn write<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        conn: &mut Conn<S>,
        interrupt: &mut Interrupt,
        writer: &RowWriter,
        limit: u64,
    ) -> WireResult<Piece> {
        self.sent = 0;
        loop {
            while self.sent < limit && !conn.is_full() && self.print(writer, &mut conn.out)? {
                self.sent += 1;
            }
            if self.sent == limit {
                return Ok(Piece::Suspended);
            }
            if conn.is_full() {
                if !flush_soon(conn, interrupt).await? {
                    self.park();
                    interrupt.guard(conn.flush()).await??;
                }
                continue;
            }
            // Rows go out before anything is waited for, so that the first is there in milliseconds.
            let (more, is_read) = {
                let mut next = pin!(self.source.fetch());
                match poll!(next.as_mut()) {
                    Poll::Ready(more) => (more?, true),
                    Poll::Pending => {
                        let is_read = flush_soon(conn, interrupt).await?;
                        (interrupt.guard(next).await??, is_read)
                    }
                }
            };
            if !is_read {
                self.park();
            }
            if !more {
                // The scan's place is free, and reading on finds nothing.
                self.source = Source::Table(VecDeque::new());
                return Ok(Piece::Finished);
            }
        }
    }

    /// Prints one row of those that are here; false if there is none.
    fn print(&mut self, writer: &RowWriter, out: &mut Vec<u8>) -> Result<bool> {
        let row = match &mut self.source {
            Source::Scan { printer, rest, .. } => return rest.print(printer, writer, out),
            Source::Table(rows) => rows.pop_front(),
            Source::Aggregates { row, .. } => row.pop_front(),
            Source::Documents(documents) => documents.row()?,
        };
        match row {
            Some(row) => writer.datums(&row, out).map(|()| true),
            None => Ok(false),
        }
    }
}

/// Gives the client a while to take what is in the buffer; false: it reads nothing, and may never again.
async fn flush_soon<S: AsyncRead + AsyncWrite + Unpin>(
    conn: &mut Conn<S>,
    interrupt: &mut Interrupt,
) -> WireResult<bool> {
    match timeout(SUSPENDED_RUNS, interrupt.guard(conn.flush())).await {
        Ok(flushed) => Ok(flushed?.map(|()| true)?),
        Err(_) => Ok(false),
    }
}

impl Rest {
    fn print(
        &mut self,
        printer: &EntryPrinter,
        writer: &RowWriter,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        if self.rows == 0 {
            return Ok(false);
        }
        let mut rows = RowIter::new(&self.data);
        let row = rows.next().ok_or_else(|| {
            Error::new(ErrorCode::Corrupt, "a batch with fewer rows than it says")
        })?;
        writer.entry(printer, row, out)?;
        self.rows -= 1;
        let read = self.data.len() - rows.rest_bytes();
        bytes::Buf::advance(&mut self.data, read);
        Ok(true)
    }
}

impl From<RowBlock> for Rest {
    fn from(block: RowBlock) -> Self {
        Self { data: block.data, rows: block.rows }
    }
}

impl Source {
    /// Gets more rows; false if there are no more.
    async fn fetch(&mut self) -> Result<bool> {
        match self {
            Self::Table(_) => Ok(false),
            Self::Scan { batches, rest, .. } => match batches.next().await? {
                Some(ScanBatch::Rows(block)) => {
                    *rest = block.into();
                    Ok(true)
                }
                Some(ScanBatch::Aggregates(_)) => Err(unexpected()),
                None => Ok(false),
            },
            Self::Aggregates { batches, cells, row } => match batches.next().await? {
                Some(ScanBatch::Aggregates(partials)) => {
                    row.push_back(aggregate_row(cells, &partials)?);
                    Ok(true)
                }
                Some(ScanBatch::Rows(_)) => Err(unexpected()),
                None => Ok(false),
            },
            Self::Documents(documents) => documents.fetch().await,
        }
    }
}

impl Documents {
    /// Reads more; false if there are no more.
    async fn fetch(&mut self) -> Result<bool> {
        let plan = &mut self.plan;
        if plan.ids.is_empty() || plan.limit == Some(0) {
            return Ok(false);
        }
        let from = plan.ids.len().saturating_sub(self.at_once);
        let ids: Vec<String> = plan.ids[from..].iter().rev().cloned().collect();
        let documents = match self.backend.get(&plan.bucket, ids.clone()).await {
            Err(error) if error.code == ErrorCode::OverLimit && ids.len() > 1 => {
                self.at_once = ids.len().div_ceil(2);
                return Ok(true);
            }
            read => read?,
        };
        plan.ids.truncate(from);
        for (id, document) in ids.into_iter().zip(documents) {
            let Some(document) = document else { continue };
            if plan.offset > 0 {
                plan.offset -= 1;
            } else if plan.limit != Some(0) {
                plan.limit = plan.limit.map(|limit| limit - 1);
                self.found.push_back((id, document));
            }
        }
        Ok(true)
    }

    /// The next row of those that were read.
    fn row(&mut self) -> Result<Option<Vec<Datum>>> {
        let next = self.found.pop_front();
        next.map(|(id, document)| document_row(&self.plan.cells, id, &document)).transpose()
    }
}

fn unexpected() -> Error {
    Error::internal("a scan answered rows for aggregates, or aggregates for rows")
}

fn document_row(cells: &[DocumentColumn], id: String, document: &[u8]) -> Result<Vec<Datum>> {
    let text = std::str::from_utf8(document)
        .map_err(|_| Error::new(ErrorCode::Corrupt, format!("document {id:?} is not UTF-8")))?;
    let cell = |cell: &DocumentColumn| match cell {
        DocumentColumn::Id => Datum::text(&*id),
        DocumentColumn::Document => Datum::text(text),
    };
    Ok(cells.iter().map(cell).collect())
}

fn aggregate_row(cells: &[Cell], partials: &[Partial]) -> Result<Vec<Datum>> {
    if cells.len() != partials.len() {
        return Err(unexpected());
    }
    let datum = |(cell, partial): (&Cell, &Partial)| {
        let Cell::Aggregate(function, cast) = cell else { return Err(unexpected()) };
        let datum = aggregate(*function, partial);
        Ok(match cast {
            Some(to) => datum.cast(*to),
            None => datum,
        })
    };
    cells.iter().zip(partials).map(datum).collect()
}

fn aggregate(function: AggregateFunction, partial: &Partial) -> Datum {
    match (function, partial) {
        (_, Partial::Count(count)) => Datum::int(i64::try_from(*count).unwrap_or(i64::MAX)),
        (_, Partial::Extreme { value, .. }) => Datum::Value(value.clone()),
        (AggregateFunction::Avg, Partial::Sum { count, .. }) => match partial.sum() {
            Some(sum) => Datum::Decimal((sum / *count).round(AVERAGE_SCALE)),
            None => Datum::Value(Value::Null),
        },
        (_, Partial::Sum { .. }) => partial.sum().map_or(Datum::NULL, Datum::Decimal),
    }
}

/// How many rows an Execute may return: none said is all.
pub(super) fn row_limit(max_rows: i32) -> u64 {
    match u64::try_from(max_rows) {
        Ok(0) | Err(_) => u64::MAX,
        Ok(rows) => rows,
    }
}

#[cfg(test)]
mod tests {
    use proto::expr::ColumnType;

    use super::*;

    #[test]
    fn aggregates_are_exact() {
        let mut sum = Partial::new(AggregateFunction::Avg);
        for value in [1, 2, 2] {
            sum.add(&Value::int(value));
        }
        let avg = aggregate(AggregateFunction::Avg, &sum);
        let mut out = Vec::new();
        avg.write(ColumnType::Numeric, Default::default(), &mut out);
        assert_eq!(out, b"1.6666666666666667");
        assert_eq!(aggregate(AggregateFunction::Sum, &sum).cast(ColumnType::Int8), Datum::int(5));
        let none = Partial::new(AggregateFunction::Sum);
        assert_eq!(aggregate(AggregateFunction::Sum, &none), Datum::NULL);
    }
}
