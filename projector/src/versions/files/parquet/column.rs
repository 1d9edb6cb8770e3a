//! Reads the values of a column that is not nested in a group or list.

use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray,
    FixedLenByteArrayType, FloatType, Int32Type, Int64Type, Int96, Int96Type,
};
use proto::Result;

use super::errors::{few_rows_error, library_error};
use super::json::{StoredValue, put_id, write_value};
use super::kind::Kind;

/// A type of values to which the Parquet library decodes a column.
pub trait Cell {
    /// Returns the value as the column stores it, before it is converted to JSON.
    fn stored(&self) -> StoredValue<'_>;
}

/// Implements [`Cell`] for types of the Parquet library.
macro_rules! cells {
    ($($cell:ty, $value:ident => $stored:expr;)*) => {
        $(impl Cell for $cell {
            #[inline]
            fn stored(&self) -> StoredValue<'_> {
                let $value = self;
                $stored
            }
        })*
    };
}

cells! {
    bool, value => StoredValue::Bool(*value);
    i32, value => StoredValue::Int((*value).into());
    i64, value => StoredValue::Int(*value);
    Int96, value => StoredValue::Int96(value);
    f32, value => StoredValue::Float(*value);
    f64, value => StoredValue::Double(*value);
    ByteArray, value => StoredValue::Bytes(value.data());
    FixedLenByteArray, value => StoredValue::Bytes(value.data());
}

/// The decoded values of some consecutive rows of a column.
pub struct Values<T: DataType> {
    reader: ColumnReaderImpl<T>,
    kind: Kind,
    values: Vec<T::T>,
    /// For each row of a nullable column, whether the row has a value: 1 or 0.
    levels: Vec<i16>,
    /// The index of the present row's value, if it has one.
    next: usize,
}

impl<T: DataType<T: Cell>> Values<T> {
    fn new(reader: ColumnReader, kind: Kind) -> Self {
        let reader = get_typed_column_reader(reader);
        Self { reader, kind, values: Vec::new(), levels: Vec::new(), next: 0 }
    }

    fn skip(&mut self, rows: usize) -> Result<()> {
        let skipped = self.reader.skip_records(rows).map_err(|error| library_error(&error))?;
        if skipped == rows { Ok(()) } else { Err(few_rows_error()) }
    }

    fn fill(&mut self, rows: usize) -> Result<()> {
        self.values.clear();
        self.levels.clear();
        self.next = 0;
        let levels = Some(&mut self.levels);
        let read = self.reader.read_records(rows, levels, None, &mut self.values);
        let (found, _, _) = read.map_err(|error| library_error(&error))?;
        if found == rows { Ok(()) } else { Err(few_rows_error()) }
    }

    /// Returns the value of the present row; `None` for null.
    #[inline]
    fn value_of_row(&self, row: usize) -> Option<&T::T> {
        let is_there = self.levels.get(row).is_none_or(|level| *level > 0);
        is_there.then(|| self.values.get(self.next)).flatten()
    }

    #[inline]
    fn write(&mut self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        let Some(value) = self.value_of_row(row) else {
            out.extend_from_slice(b"null");
            return Ok(());
        };
        write_value(value.stored(), self.kind, out)?;
        self.next += 1;
        Ok(())
    }

    fn put_id(&self, row: usize, out: &mut String) -> Result<bool> {
        self.value_of_row(row).map_or(Ok(false), |value| put_id(value.stored(), self.kind, out))
    }
}

/// A reader of a column, for each of the physical types that a column may have.
pub enum Column {
    Bool(Values<BoolType>),
    Int32(Values<Int32Type>),
    Int64(Values<Int64Type>),
    Int96(Values<Int96Type>),
    Float(Values<FloatType>),
    Double(Values<DoubleType>),
    Bytes(Values<ByteArrayType>),
    Fixed(Values<FixedLenByteArrayType>),
}

/// Evaluates an expression with the decoded values of a column, whatever their type is.
macro_rules! with_values {
    ($column:expr, $values:ident => $do:expr) => {
        match $column {
            Column::Bool($values) => $do,
            Column::Int32($values) => $do,
            Column::Int64($values) => $do,
            Column::Int96($values) => $do,
            Column::Float($values) => $do,
            Column::Double($values) => $do,
            Column::Bytes($values) => $do,
            Column::Fixed($values) => $do,
        }
    };
}

impl Column {
    /// Creates a reader of a column that is at the column's first row.
    pub fn new(reader: ColumnReader, kind: Kind) -> Self {
        match reader {
            ColumnReader::BoolColumnReader(_) => Self::Bool(Values::new(reader, kind)),
            ColumnReader::Int32ColumnReader(_) => Self::Int32(Values::new(reader, kind)),
            ColumnReader::Int64ColumnReader(_) => Self::Int64(Values::new(reader, kind)),
            ColumnReader::Int96ColumnReader(_) => Self::Int96(Values::new(reader, kind)),
            ColumnReader::FloatColumnReader(_) => Self::Float(Values::new(reader, kind)),
            ColumnReader::DoubleColumnReader(_) => Self::Double(Values::new(reader, kind)),
            ColumnReader::ByteArrayColumnReader(_) => Self::Bytes(Values::new(reader, kind)),
            ColumnReader::FixedLenByteArrayColumnReader(_) => {
                Self::Fixed(Values::new(reader, kind))
            }
        }
    }

    /// Skips a number of rows.
    pub fn skip(&mut self, rows: usize) -> Result<()> {
        with_values!(self, values => values.skip(rows))
    }

    /// Decodes the next `rows` rows.
    pub fn fill(&mut self, rows: usize) -> Result<()> {
        with_values!(self, values => values.fill(rows))
    }

    /// Appends the value of a row as JSON, and advances to the next row.
    #[inline]
    pub fn write(&mut self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        with_values!(self, values => values.write(row, out))
    }

    /// Appends the value of a row as an id; returns false if its type cannot be an id.
    pub fn put_id(&self, row: usize, out: &mut String) -> Result<bool> {
        with_values!(self, values => values.put_id(row, out))
    }
}
