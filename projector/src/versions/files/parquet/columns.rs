//! Files whose columns are all flat, column by column.
//!
//! A part is a range of the rows of a row group. Its reader opens the columns of the group again
//! and skips to the range: earlier pages are skipped by their headers, but the page in which the
//! range begins is decoded again. So a group has few ranges, however many columns it has. Some
//! hundred values of each column are decoded at a time, and then rows are written from them. If the
//! rows of a range are larger than the file's metadata suggests, for example because of
//! dictionaries, the range is read in several batches.

use std::sync::Arc;

use parquet::file::reader::FileReader;
use proto::Result;

use super::super::batch::{Batch, RowRules};
use super::super::parts::{PART_BYTES, Part, Parts};
use super::chunks::Reader;
use super::column::Column;
use super::errors::{at_row, caught, damaged, few_rows, in_group};
use super::fields::Fields;
use super::kind::Kind;

/// The approximate size in bytes of the rows of a range.
const RANGE_BYTES: usize = 2 * PART_BYTES;
/// The maximum number of ranges of a group.
const RANGES_MAX: u64 = 16;
/// The size in bytes at which a batch ends.
const BATCH_BYTES_MAX: usize = 4 * PART_BYTES;
/// The minimum number of rows that are decoded together, except for large rows.
const ROWS_LEAST: u64 = 16;
const ROWS_MAX: u64 = 512;
/// The approximate size in bytes of the rows that are decoded together.
const DECODED_BYTES: usize = 1 << 20;

/// The parts of a file whose columns are all flat.
pub struct FlatParts {
    reader: Arc<Reader>,
    fields: Arc<Fields>,
    group: usize,
    /// The next row in the group.
    row: u64,
    /// The number of rows in the groups before the present one.
    rows_before: u64,
}

impl FlatParts {
    /// The parts of an open file.
    pub fn new(reader: Reader, fields: Fields) -> Self {
        let (reader, fields) = (Arc::new(reader), Arc::new(fields));
        Self { reader, fields, group: 0, row: 0, rows_before: 0 }
    }

    /// Returns the next rows: the number of a group, and a range of its rows; `None` at the end.
    fn next_range(&mut self) -> Result<Option<(usize, std::ops::Range<u64>)>> {
        while self.group < self.reader.metadata().num_row_groups() {
            let group = self.reader.metadata().row_group(self.group);
            let rows = u64::try_from(group.num_rows()).map_err(|_| few_rows())?;
            if self.row < rows {
                let bytes = u64::try_from(group.total_byte_size()).unwrap_or_default();
                let heads: usize = self.fields.heads.iter().map(Vec::len).sum();
                let row_bytes = bytes / rows + heads as u64 + 1;
                let wanted = (RANGE_BYTES as u64 / row_bytes).max(rows.div_ceil(RANGES_MAX));
                let end = rows.min(self.row.saturating_add(wanted));
                let range = self.row..end;
                self.row = end;
                return Ok(Some((self.group, range)));
            }
            self.rows_before += rows;
            (self.group, self.row) = (self.group + 1, 0);
        }
        Ok(None)
    }
}

impl Parts for FlatParts {
    fn next_part(&mut self, _: &RowRules) -> Result<Option<Part>> {
        let range = self.next_range().map_err(|error| at_row(error, self.rows_before + 1))?;
        let Some((group, range)) = range else { return Ok(None) };
        let (reader, fields) = (Arc::clone(&self.reader), Arc::clone(&self.fields));
        let row = self.rows_before + range.start + 1;
        let read = move |rules: &RowRules| {
            let opened = caught(|| open_columns(&reader, &fields, group, range.start));
            let columns = opened.map_err(|error| at_row(error, row))?;
            Range { fields, columns, group, left: range.end - range.start, row }.read(rules)
        };
        Ok(Some(Part::Unread(Box::new(read))))
    }
}

/// The state of reading a range of rows of a group.
struct Range {
    fields: Arc<Fields>,
    columns: Vec<Column>,
    group: usize,
    /// The number of rows that are left.
    left: u64,
    /// The number of the next row, counted in the file.
    row: u64,
}

impl Range {
    /// Reads rows up to a size limit: the size of rows that a file declares may be far from the
    /// real one. Also returns the remaining part.
    fn read(mut self, rules: &RowRules) -> Result<(Batch, Option<Part>)> {
        let mut batch = Batch::new(rules, RANGE_BYTES + RANGE_BYTES / 4);
        let mut id = String::new();
        let mut rows = ROWS_LEAST;
        while self.left > 0 && batch.read_bytes() < BATCH_BYTES_MAX {
            let before = batch.read_bytes();
            rows = rows.min(self.left);
            let decoded = caught(|| self.take(rows, rules, (&mut batch, &mut id)));
            decoded.map_err(|error| at_row(error, self.row))?;
            self.left -= rows;
            // As many as fit into a part of the batch, at their present size.
            let row_bytes = ((batch.read_bytes() - before) as u64 / rows).max(1);
            rows = (DECODED_BYTES as u64 / row_bytes).clamp(ROWS_LEAST, ROWS_MAX);
        }
        let rest = (self.left > 0)
            .then(|| Part::Unread(Box::new(move |rules: &RowRules| self.read(rules))));
        Ok((batch, rest))
    }

    /// Decodes `rows` rows, and adds them to the batch.
    fn take(
        &mut self,
        rows: u64,
        rules: &RowRules,
        (batch, id): (&mut Batch, &mut String),
    ) -> Result<()> {
        let Self { fields, columns, group, row, .. } = self;
        let rows = rows as usize;
        for (at, column) in columns.iter_mut().enumerate() {
            column.fill(rows).map_err(|error| in_group(*group, fields.in_column(at, error)))?;
        }
        for at_row in 0..rows {
            id.clear();
            if !columns[fields.id].put_id(at_row, id)? {
                return Err(fields.no_id());
            }
            let document = batch.document();
            for (at, (column, head)) in columns.iter_mut().zip(&fields.heads).enumerate() {
                document.extend_from_slice(head);
                column.write(at_row, document).map_err(|error| fields.in_column(at, error))?;
            }
            document.push(b'}');
            batch.end_row(rules, id)?;
            *row += 1;
        }
        Ok(())
    }
}

/// Opens the columns of a row group, from row `from` of the group on.
fn open_columns(reader: &Reader, fields: &Fields, group: usize, from: u64) -> Result<Vec<Column>> {
    let from = usize::try_from(from).map_err(|_| few_rows())?;
    let open = reader.get_row_group(group).map_err(|error| in_group(group, damaged(&error)))?;
    let descr = open.metadata().schema_descr_ptr();
    let column = |at: usize| {
        let column = open.get_column_reader(at).map_err(|error| damaged(&error))?;
        let mut column = Column::new(column, Kind::of(descr.column(at).self_type())?);
        column.skip(from)?;
        Ok(column)
    };
    let named =
        |at: usize| column(at).map_err(|error| in_group(group, fields.in_column(at, error)));
    (0..open.num_columns()).map(named).collect()
}
