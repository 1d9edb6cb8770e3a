//! Reads Parquet files whose columns are all flat (not nested in groups or lists), column by
//! column.
//!
//! A part is a range of the rows of a row group. Its reader opens the columns of the group again
//! and skips to the range: earlier pages are skipped by their headers, but the page in which the
//! range begins is decoded again. So a row group is cut into few ranges only. Some hundred values
//! of each column are decoded at a time, and then rows are written from them. If the rows of a
//! range are larger than the file's metadata suggests, for example because of dictionaries, the
//! range is read in several batches.

use std::sync::Arc;

use parquet::file::reader::FileReader;
use proto::Result;

use super::super::batch::{Batch, RowRules};
use super::super::parts::{PART_BYTES, Part, Parts};
use super::chunks::Reader;
use super::column::Column;
use super::errors::{at_row, catch_panic, few_rows_error, in_group, library_error};
use super::fields::Fields;
use super::kind::Kind;

/// The approximate size in bytes of the rows of one range, according to the file's metadata.
const RANGE_BYTES: usize = 2 * PART_BYTES;
/// The maximum number of ranges of a row group.
const RANGES_MAX: u64 = 16;
/// The size in bytes of rows at which a batch ends.
const BATCH_BYTES_MAX: usize = 4 * PART_BYTES;
/// The minimum number of rows that are decoded together, unless the rows are large.
const ROWS_LEAST: u64 = 16;
const ROWS_MAX: u64 = 512;
/// The approximate size in bytes of the rows that are decoded together.
const DECODED_BYTES: usize = 1 << 20;

/// A reader of the parts of a file whose columns are all flat.
pub struct FlatParts {
    reader: Arc<Reader>,
    fields: Arc<Fields>,
    group: usize,
    /// The next row in the present row group.
    row: u64,
    /// The number of rows in the row groups before the present one.
    rows_before: u64,
}

impl FlatParts {
    /// Creates the reader of an open file.
    pub fn new(reader: Reader, fields: Fields) -> Self {
        let (reader, fields) = (Arc::new(reader), Arc::new(fields));
        Self { reader, fields, group: 0, row: 0, rows_before: 0 }
    }

    /// Returns the next rows to read: the number of a row group, and a range of its rows. `None`
    /// at the end of the file.
    fn next_range(&mut self) -> Result<Option<(usize, std::ops::Range<u64>)>> {
        while self.group < self.reader.metadata().num_row_groups() {
            let group = self.reader.metadata().row_group(self.group);
            let rows = u64::try_from(group.num_rows()).map_err(|_| few_rows_error())?;
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
            let opened = catch_panic(|| open_columns(&reader, &fields, group, range.start));
            let columns = opened.map_err(|error| at_row(error, row))?;
            RowRange { fields, columns, group, left: range.end - range.start, row }.read(rules)
        };
        Ok(Some(Part::Unread(Box::new(read))))
    }
}

/// The progress of reading a range of rows of a row group.
struct RowRange {
    fields: Arc<Fields>,
    columns: Vec<Column>,
    group: usize,
    /// The number of rows that are left to read.
    left: u64,
    /// The number of the next row, counted in the file.
    row: u64,
}

impl RowRange {
    /// Reads rows of the range up to a size limit. Also returns the rest of the range as a part,
    /// if there is any: the size of rows that a file declares may be far from the real one.
    fn read(mut self, rules: &RowRules) -> Result<(Batch, Option<Part>)> {
        let mut batch = Batch::new(rules, RANGE_BYTES + RANGE_BYTES / 4);
        let mut id = String::new();
        let mut rows = ROWS_LEAST;
        while self.left > 0 && batch.read_bytes() < BATCH_BYTES_MAX {
            let before = batch.read_bytes();
            rows = rows.min(self.left);
            let decoded = catch_panic(|| self.decode_rows(rows, rules, (&mut batch, &mut id)));
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

    /// Decodes the next `rows` rows, and adds them to the batch.
    fn decode_rows(
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
                return Err(fields.bad_id_error());
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
    let from = usize::try_from(from).map_err(|_| few_rows_error())?;
    let open =
        reader.get_row_group(group).map_err(|error| in_group(group, library_error(&error)))?;
    let descr = open.metadata().schema_descr_ptr();
    let column = |at: usize| {
        let column = open.get_column_reader(at).map_err(|error| library_error(&error))?;
        let mut column = Column::new(column, Kind::of(descr.column(at).self_type())?);
        column.skip(from)?;
        Ok(column)
    };
    let named =
        |at: usize| column(at).map_err(|error| in_group(group, fields.in_column(at, error)));
    (0..open.num_columns()).map(named).collect()
}
