//! Reader of the values of one flat column.

use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray,
    FixedLenByteArrayType, FloatType, Int32Type, Int64Type, Int96, Int96Type,
};
use proto::Result;

use super::errors::{damaged, few_rows};
use super::json::{StoredValue, put_id, write_value};
use super::kind::Kind;

/// A value in the type to which the library decodes it.
pub trait Cell {
    /// Returns the value in its stored form.
    fn stored(&self) -> StoredValue<'_>;
}

/// Implements [`Cell`] for a type of the library.
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

/// The decoded values of some rows of a column.
pub struct Values<T: DataType> {
    reader: ColumnReaderImpl<T>,
    kind: Kind,
    values: Vec<T::T>,
    /// For each row of a nullable column, whether it has a value.
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
        let skipped = self.reader.skip_records(rows).map_err(|error| damaged(&error))?;
        if skipped == rows { Ok(()) } else { Err(few_rows()) }
    }

    fn fill(&mut self, rows: usize) -> Result<()> {
        self.values.clear();
        self.levels.clear();
        self.next = 0;
        let levels = Some(&mut self.levels);
        let read = self.reader.read_records(rows, levels, None, &mut self.values);
        let (found, _, _) = read.map_err(|error| damaged(&error))?;
        if found == rows { Ok(()) } else { Err(few_rows()) }
    }

    /// The value of the present row; `None` for null.
    #[inline]
    fn of(&self, row: usize) -> Option<&T::T> {
        let is_there = self.levels.get(row).is_none_or(|level| *level > 0);
        is_there.then(|| self.values.get(self.next)).flatten()
    }

    #[inline]
    fn write(&mut self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        let Some(value) = self.of(row) else {
            out.extend_from_slice(b"null");
            return Ok(());
        };
        write_value(value.stored(), self.kind, out)?;
        self.next += 1;
        Ok(())
    }

    fn put_id(&self, row: usize, out: &mut String) -> Result<bool> {
        self.of(row).map_or(Ok(false), |value| put_id(value.stored(), self.kind, out))
    }
}

/// A column, by its physical type.
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

/// Evaluates an expression with the values of a column, for each possible type.
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
    /// A column at its first row.
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

    /// Decodes the next rows, of this number.
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
