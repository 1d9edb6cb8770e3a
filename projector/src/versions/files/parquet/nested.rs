//! Reads Parquet files with nested columns, row by row, through the row interface of the library.

use std::sync::Arc;

use parquet::basic::Type as Physical;
use parquet::file::reader::FileReader;
use parquet::record::Row;
use parquet::record::reader::RowIter;
use parquet::schema::types::Type;
use proto::rpc::api::check_document;
use proto::{Error, ErrorCode, Result};

use super::super::batch::{Batch, RowRules};
use super::super::parts::Rows;
use super::chunks::{Chunks, Reader};
use super::errors::{at_row, catch_panic, in_group, library_error};
use super::fields::Fields;
use super::json::{field_id, write_field};

/// A reader of the rows of a file with nested columns.
pub struct NestedRows {
    rows: RowIter<'static>,
    fields: Fields,
    schema: Arc<Type>,
    /// The file, which is searched for damage after an error.
    file: Chunks,
    /// The number of the last row read.
    row: u64,
}

impl NestedRows {
    /// Creates the reader of an open file.
    pub fn new(file: Chunks, reader: Reader, fields: Fields) -> Result<Self> {
        let schema = reader.metadata().file_metadata().schema_descr().root_schema_ptr();
        let leaves = reader.metadata().file_metadata().schema_descr().columns();
        if let Some(leaf) = leaves.iter().find(|leaf| leaf.physical_type() == Physical::INT96) {
            // The row interface cuts it to milliseconds.
            let what = format!(
                "column {:?} has type INT96, which is not read exactly from a file with nested columns",
                leaf.path().string()
            );
            return Err(Error::new(ErrorCode::Unsupported, what)
                .with_hint("write the column as a timestamp of INT64"));
        }
        let reader: Box<dyn FileReader> = Box::new(reader);
        let rows = catch_panic(|| Ok(RowIter::from_file_into(reader)))?;
        Ok(Self { rows, fields, schema, file, row: 0 })
    }

    fn read_row(&mut self, rules: &RowRules, batch: &mut Batch) -> Result<bool> {
        self.row += 1;
        let next =
            catch_panic(|| self.rows.next().transpose().map_err(|error| library_error(&error)));
        let next = next.map_err(|error| in_damaged_column(&self.file, self.row, error))?;
        next.map_or(Ok(false), |row| catch_panic(|| self.take(&row, rules, batch)).map(|()| true))
    }

    fn take(&self, row: &Row, rules: &RowRules, batch: &mut Batch) -> Result<()> {
        let mut id = None;
        let document = batch.document();
        let columns = row.get_column_iter().zip(self.schema.get_fields());
        for (at, (((_, value), of), head)) in columns.zip(&self.fields.heads).enumerate() {
            if at == self.fields.id {
                id = field_id(value, of)?;
            }
            document.extend_from_slice(head);
            write_field(value, of, document).map_err(|error| self.fields.in_column(at, error))?;
        }
        document.push(b'}');
        let id = id.ok_or_else(|| self.fields.bad_id_error())?;
        // A file may nest deeper than a document.
        check_document(&id, batch.row(), rules.document_bytes_max)?;
        batch.end_row(rules, &id)
    }
}

impl Rows for NestedRows {
    fn next_row(&mut self, rules: &RowRules, batch: &mut Batch) -> Result<bool> {
        self.read_row(rules, batch).map_err(|error| at_row(error, self.row))
    }
}

/// Adds to the error of an unreadable row the number of its row group, and the first damaged
/// column in that group.
fn in_damaged_column(file: &Chunks, row: u64, error: Error) -> Error {
    let Ok(reader) =
        catch_panic(|| Reader::new(file.clone()).map_err(|error| library_error(&error)))
    else {
        return error;
    };
    let mut rows = 0;
    let groups = reader.metadata().row_groups().iter();
    let group = groups.enumerate().find(|(_, group)| {
        rows += u64::try_from(group.num_rows()).unwrap_or_default();
        row <= rows
    });
    let Some((at, group)) = group else { return error };
    let is_damaged = |column: &usize| {
        catch_panic(|| {
            let group = reader.get_row_group(at).map_err(|error| library_error(&error))?;
            let mut pages =
                group.get_column_page_reader(*column).map_err(|error| library_error(&error))?;
            pages.try_for_each(|page| page.map(drop)).map_err(|error| library_error(&error))
        })
        .is_err()
    };
    let damaged = (0..group.num_columns()).find(is_damaged);
    let name = damaged.map(|column| group.column(column).column_path().string());
    let error = name.map_or(error.clone(), |name| error.context(format!("column {name:?}")));
    in_group(at, error)
}
