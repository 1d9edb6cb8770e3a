//! Files with nested columns: rows from the row interface of the library, one after another.

use parquet::file::reader::FileReader;
use parquet::record::Row;
use parquet::record::reader::RowIter;
use proto::Result;

use super::super::batch::{Batch, RowRules};
use super::super::parts::Rows;
use super::chunks::Reader;
use super::errors::{at_row, caught, damaged};
use super::fields::Fields;
use super::json::{id_of, write_field};

/// The rows of a file.
pub struct NestedRows {
    rows: RowIter<'static>,
    fields: Fields,
    /// The number of the last row.
    row: u64,
}

impl NestedRows {
    /// The rows of an open file.
    pub fn new(reader: Reader, fields: Fields) -> Result<Self> {
        let reader: Box<dyn FileReader> = Box::new(reader);
        let rows = caught(|| Ok(RowIter::from_file_into(reader)))?;
        Ok(Self { rows, fields, row: 0 })
    }

    fn read_row(&mut self, rules: &RowRules, batch: &mut Batch) -> Result<bool> {
        self.row += 1;
        let next = caught(|| self.rows.next().transpose().map_err(|error| damaged(&error)))?;
        next.map_or(Ok(false), |row| self.take(&row, rules, batch).map(|()| true))
    }

    fn take(&self, row: &Row, rules: &RowRules, batch: &mut Batch) -> Result<()> {
        let mut id = None;
        let document = batch.document();
        for (at, ((_, value), head)) in row.get_column_iter().zip(&self.fields.heads).enumerate() {
            if at == self.fields.id {
                id = id_of(value);
            }
            document.extend_from_slice(head);
            write_field(value, document).map_err(|error| self.fields.in_column(at, error))?;
        }
        document.push(b'}');
        batch.end_row(rules, &id.ok_or_else(|| self.fields.no_id())?)
    }
}

impl Rows for NestedRows {
    fn next_row(&mut self, rules: &RowRules, batch: &mut Batch) -> Result<bool> {
        self.read_row(rules, batch).map_err(|error| at_row(error, self.row))
    }
}
