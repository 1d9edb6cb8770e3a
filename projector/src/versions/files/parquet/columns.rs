//! Files whose columns are all flat, column by column.
//!
//! A part is a range of the rows of a row group. Whoever reads it opens the columns of the group for himself and skips to the range: pages
//! before it are passed by their headers. Some hundred values of each column are decoded at a time, and then rows are written from them.

use std::ops::Range;
use std::sync::Arc;

use parquet::file::reader::FileReader;
use proto::Result;

use super::super::batch::{Batch, RowRules};
use super::super::parts::{PART_BYTES, Part, Parts};
use super::column::Column;
use super::{Fields, Reader, at_row, caught, damaged, few_rows};

/// Rows that are decoded at a time.
const ROWS: usize = 512;

/// The parts of a file.
pub struct FlatParts {
    reader: Arc<Reader>,
    fields: Arc<Fields>,
    group: usize,
    /// The next row in the group.
    row: u64,
    /// The number of rows in the groups before.
    rows_before: u64,
}

impl FlatParts {
    /// The parts of an open file.
    pub fn new(reader: Reader, fields: Fields) -> Self {
        let (reader, fields) = (Arc::new(reader), Arc::new(fields));
        Self { reader, fields, group: 0, row: 0, rows_before: 0 }
    }

    /// The next rows: a group, and a range of its rows.
    fn next_range(&mut self) -> Result<Option<(usize, Range<u64>)>> {
        while self.group < self.reader.metadata().num_row_groups() {
            let group = self.reader.metadata().row_group(self.group);
            let rows = u64::try_from(group.num_rows()).map_err(|_| few_rows())?;
            if self.row < rows {
                let bytes = u64::try_from(group.total_byte_size()).unwrap_or_default();
                let heads: usize = self.fields.heads.iter().map(Vec::len).sum();
                let row_bytes = bytes / rows + heads as u64 + 1;
                let end = rows.min(self.row + (PART_BYTES as u64).div_ceil(row_bytes));
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
        let before = self.rows_before;
        let read = move |rules: &RowRules| {
            let mut row = before + range.start + 1;
            let read = caught(|| read_range(&reader, (group, range), &fields, rules, &mut row));
            read.map_err(|error| at_row(error, row))
        };
        Ok(Some(Part::Unread(Box::new(read))))
    }
}

/// Reads rows of a group; `row` is the number of the row in the file that is being read.
fn read_range(
    reader: &Reader,
    (group, range): (usize, Range<u64>),
    fields: &Fields,
    rules: &RowRules,
    row: &mut u64,
) -> Result<Batch> {
    let mut batch = Batch::new(rules, PART_BYTES + PART_BYTES / 4);
    let mut columns = open_columns(reader, group, range.start)?;
    let mut left = usize::try_from(range.end - range.start).map_err(|_| few_rows())?;
    let mut id = String::new();
    while left > 0 {
        let rows = left.min(ROWS);
        for (at, column) in columns.iter_mut().enumerate() {
            column.fill(rows).map_err(|error| fields.in_column(at, error))?;
        }
        for at_row in 0..rows {
            id.clear();
            if !columns[fields.id].put_id(at_row, &mut id)? {
                return Err(fields.no_id());
            }
            let document = batch.document();
            for (at, (column, head)) in columns.iter_mut().zip(&fields.heads).enumerate() {
                document.extend_from_slice(head);
                column.write(at_row, document).map_err(|error| fields.in_column(at, error))?;
            }
            document.push(b'}');
            batch.end_row(rules, &id)?;
            *row += 1;
        }
        left -= rows;
    }
    Ok(batch)
}

/// Opens the columns of a group, at a row.
fn open_columns(reader: &Reader, group: usize, from: u64) -> Result<Vec<Column>> {
    let group = reader.get_row_group(group).map_err(|error| damaged(&error))?;
    let from = usize::try_from(from).map_err(|_| few_rows())?;
    let descr = group.metadata().schema_descr_ptr();
    let open = |at: usize| {
        let column = group.get_column_reader(at).map_err(|error| damaged(&error))?;
        let mut column = Column::new(column, descr.column(at));
        column.skip(from)?;
        Ok(column)
    };
    (0..group.num_columns()).map(open).collect()
}
