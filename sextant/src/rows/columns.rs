//! Rows as columns of typed values. This is the form of gRPC's `ScanColumn`, whose layout is
//! described in `sextant.proto`. Numbers are in binary form, so that neither the server nor the
//! client converts digits.

use proto::expr::ColumnType;
use proto::grpc::ScanColumn;
use proto::rpc::rows::Row;
use proto::{Error, ErrorCode, Result};

use super::entry::{EntryPrinter, EntryRow};
use super::format::Format;
use crate::sql::plan::Cell;

/// A set of columns to which rows are appended.
pub(crate) struct Columns {
    columns: Vec<Column>,
    rows: u32,
    /// True if every column is the id, or an integer of the key.
    only_integers: bool,
}

/// The values of one column.
struct Column {
    column_type: ColumnType,
    /// The values: either all of one width, or texts without separators.
    values: Vec<u8>,
    /// The offset of the end of each text in `values`.
    ends: Vec<u8>,
    /// A bit for each row, set if the value is NULL. The bits of the last rows may be missing if
    /// none of them is NULL.
    nulls: Vec<u8>,
}

impl Columns {
    /// Returns empty columns with these types, for the cells of a printer, with capacity for
    /// `rows` rows.
    pub(crate) fn new(printer: &EntryPrinter, types: &[ColumnType], rows: usize) -> Self {
        let column = |column_type: &ColumnType| {
            let column_type = *column_type;
            let width = width(column_type);
            let values = Vec::with_capacity(rows * width.unwrap_or(TEXT_BYTES));
            let ends = Vec::with_capacity(if width.is_none() { 4 * rows } else { 0 });
            Column { column_type, values, ends, nulls: Vec::new() }
        };
        let only_integers = printer.has_only_integers(types);
        Self { columns: types.iter().map(column).collect(), rows: 0, only_integers }
    }

    /// Appends a row. After an error the columns have different lengths and must not be used.
    #[inline]
    pub(crate) fn push(&mut self, printer: &mut EntryPrinter, row: Row<'_>) -> Result<()> {
        self.rows += 1;
        if self.only_integers
            && let Some((integers, id)) = printer.integers(row)
        {
            return self.push_integers(printer.cells(), &integers, id);
        }
        let mut cells = printer.row(row);
        for (n, column) in self.columns.iter_mut().enumerate() {
            if !column.push(&mut cells, n)? {
                column.push_null(self.rows as usize - 1);
            }
        }
        Ok(())
    }

    /// Appends a row in which every column is an integer or the id.
    #[inline]
    fn push_integers(&mut self, cells: &[Cell], integers: &[i64], id: &[u8]) -> Result<()> {
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            match cell {
                Cell::Key(part) => {
                    column.values.extend_from_slice(&integers[usize::from(*part)].to_le_bytes());
                }
                _ => {
                    column.values.extend_from_slice(id);
                    column.end_text()?;
                }
            }
        }
        Ok(())
    }

    /// Returns the size of all columns in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.columns.iter().map(|column| column.values.len() + column.ends.len()).sum()
    }

    /// Returns the columns and the number of rows.
    pub(crate) fn finish(self) -> (Vec<ScanColumn>, u32) {
        let rows = self.rows as usize;
        (self.columns.into_iter().map(|column| column.finish(rows)).collect(), self.rows)
    }
}

/// The usual length of a text in bytes, for the initial capacity of a buffer.
const TEXT_BYTES: usize = 12;

/// Returns the size of a value of a type in bytes; `None` for types that are sent as text.
fn width(column_type: ColumnType) -> Option<usize> {
    match column_type {
        ColumnType::Int4 | ColumnType::Int8 | ColumnType::Float8 => Some(8),
        ColumnType::Bool => Some(1),
        ColumnType::Text | ColumnType::Numeric => None,
    }
}

impl Column {
    /// Appends the value of cell `n` and returns true; returns false for NULL, without appending.
    #[inline]
    fn push(&mut self, cells: &mut EntryRow<'_>, n: usize) -> Result<bool> {
        let Self { column_type, values, .. } = self;
        match column_type {
            ColumnType::Int4 | ColumnType::Int8 => {
                let int = cells.int(n, *column_type)?;
                values.extend_from_slice(int.map(i64::to_le_bytes).as_ref().map_or(&[], |int| int));
                Ok(int.is_some())
            }
            ColumnType::Float8 => {
                let at = values.len();
                let present = cells.write(n, *column_type, Format::Binary, values)?;
                values[at..].reverse();
                Ok(present)
            }
            ColumnType::Bool => cells.write(n, *column_type, Format::Binary, values),
            ColumnType::Text | ColumnType::Numeric => {
                let present = cells.write(n, *column_type, Format::Text, values)?;
                self.end_text()?;
                Ok(present)
            }
        }
    }

    /// Records the end of the text that was appended last.
    #[inline]
    fn end_text(&mut self) -> Result<()> {
        let end = u32::try_from(self.values.len()).map_err(|_| too_long())?;
        self.ends.extend_from_slice(&end.to_le_bytes());
        Ok(())
    }

    /// Makes the value of a row NULL. In a column of texts, also records the end of an empty
    /// text.
    fn push_null(&mut self, row: usize) {
        self.values.resize(self.values.len() + width(self.column_type).unwrap_or(0), 0);
        self.nulls.resize(row / 8 + 1, 0);
        self.nulls[row / 8] |= 1 << (row % 8);
    }

    fn finish(mut self, rows: usize) -> ScanColumn {
        if !self.nulls.is_empty() {
            self.nulls.resize(rows.div_ceil(8), 0);
        }
        let mut column = ScanColumn { nulls: self.nulls.into(), ..ScanColumn::default() };
        let values = self.values.into();
        match self.column_type {
            ColumnType::Int4 | ColumnType::Int8 => column.ints = values,
            ColumnType::Float8 => column.doubles = values,
            ColumnType::Bool => column.bools = values,
            ColumnType::Text | ColumnType::Numeric => {
                (column.texts, column.text_ends) = (values, self.ends.into());
            }
        }
        column
    }
}

/// Returns the error for a column that is too long.
fn too_long() -> Error {
    Error::new(ErrorCode::OutOfRange, "the texts of a column are longer than 4 GiB in one reply")
}

#[cfg(test)]
mod tests {
    use proto::value::Value;
    use proto::value::key::{encode_entry, encode_part};

    use super::*;
    use crate::sql::plan::ColumnInfo;

    /// Returns the encoded entry and included values of row `n`.
    fn encoded(n: usize, key: &Value, included: &Value) -> (Vec<u8>, Vec<u8>) {
        let (mut entry, mut include) = (Vec::new(), Vec::new());
        encode_entry([key], &[true], &format!("a long id {n}"), &mut entry).unwrap();
        encode_part(included, false, &mut include);
        (entry, include)
    }

    fn columns(rows: &[[Value; 2]], cells: &[(Cell, ColumnType)]) -> Result<Vec<ScanColumn>> {
        let printed = cells.iter().map(|(cell, _)| cell.clone()).collect();
        let mut printer = EntryPrinter::with_directions(printed, vec![true]);
        let types: Vec<_> = cells.iter().map(|(_, column_type)| *column_type).collect();
        let mut columns = Columns::new(&printer, &types, 0);
        for (n, [key, included]) in rows.iter().enumerate() {
            let (entry, include) = encoded(n, key, included);
            columns.push(&mut printer, Row { entry: &entry, include: &include })?;
        }
        let (columns, count) = columns.finish();
        assert_eq!(count as usize, rows.len());
        Ok(columns)
    }

    /// Asserts that the values in columns equal the texts of the cells.
    fn compare(rows: &[[Value; 2]], types: &[ColumnType]) {
        let mut cells = vec![(Cell::Id, ColumnType::Text)];
        cells.extend(types.iter().map(|t| (Cell::Key(0), *t)));
        cells.extend(types.iter().map(|t| (Cell::Include(0), *t)));
        compare_cells(rows, &cells);
    }

    fn compare_cells(rows: &[[Value; 2]], cells: &[(Cell, ColumnType)]) {
        for (column, (cell, column_type)) in columns(rows, cells).unwrap().iter().zip(cells) {
            let info = ColumnInfo { name: String::new(), column_type: *column_type };
            let mut printer = EntryPrinter::with_directions(vec![cell.clone()], vec![true]);
            for (n, [key, included]) in rows.iter().enumerate() {
                let (entry, include) = encoded(n, key, included);
                let row = Row { entry: &entry, include: &include };
                let texts = printer.texts(std::slice::from_ref(&info), row).unwrap();
                assert_eq!(text(column, *column_type, n), texts[0], "{cell:?} {column_type:?} {n}");
            }
        }
    }

    #[test]
    fn a_column_has_the_values_of_its_type_and_the_places_of_nulls() {
        use ColumnType::{Bool, Float8, Int4, Int8, Numeric, Text};
        let ints = [0, 7, -7, i64::from(i32::MAX), i64::from(i32::MIN), 1 << 30];
        let mut rows: Vec<_> = ints.map(|n| [Value::int(n), Value::int(-(n / 2))]).into();
        rows.push([Value::Null, Value::Missing]);
        rows.push([Value::Null, Value::int(3)]);
        compare(&rows, &[Int4, Int8, Float8, Numeric, Text]);
        // These columns are read in one pass over the entry, if the key is a short integer.
        compare_cells(&rows, &[(Cell::Key(0), Int8), (Cell::Id, Text), (Cell::Key(0), Int8)]);
        let floats = [[Value::float(1.5), Value::float(-0.25)], [Value::Null, Value::int(1 << 50)]];
        compare(&floats, &[Float8, Numeric, Text]);
        compare(
            &[[Value::Bool(true), Value::Null], [Value::Bool(false), Value::Bool(true)]],
            &[Bool],
        );
        compare(
            &[[Value::from("x"), Value::from("")], [Value::Null, Value::from("a\0b")]],
            &[Text],
        );
    }

    /// Returns the text of a value, decoded as a client decodes it.
    fn text(column: &ScanColumn, column_type: ColumnType, n: usize) -> Option<String> {
        let eight = |bytes: &[u8]| *bytes[8 * n..].first_chunk::<8>().unwrap();
        let is_null = column.nulls.get(n / 8).is_some_and(|byte| byte >> (n % 8) & 1 == 1);
        let end = |n: usize| u32::from_le_bytes(*column.text_ends[4 * n..].first_chunk().unwrap());
        let value = match column_type {
            ColumnType::Int4 | ColumnType::Int8 => {
                i64::from_le_bytes(eight(&column.ints)).to_string()
            }
            ColumnType::Float8 => f64::from_le_bytes(eight(&column.doubles)).to_string(),
            ColumnType::Bool => ["f", "t"][usize::from(column.bools[n])].to_owned(),
            ColumnType::Text | ColumnType::Numeric => {
                let from = n.checked_sub(1).map_or(0, end);
                String::from_utf8(column.texts[from as usize..end(n) as usize].into()).unwrap()
            }
        };
        (!is_null).then_some(value)
    }

    #[test]
    fn a_number_beyond_its_column_is_refused() {
        let error =
            columns(&[[Value::int(1 << 40), Value::Null]], &[(Cell::Key(0), ColumnType::Int4)]);
        assert_eq!(error.unwrap_err().code, ErrorCode::OutOfRange);
    }
}
