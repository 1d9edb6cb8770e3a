//! The values of one flat column.

use parquet::basic::{ConvertedType, LogicalType, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray,
    FixedLenByteArrayType, FloatType, Int32Type, Int64Type, Int96, Int96Type,
};
use parquet::record::Field;
use parquet::schema::types::ColumnDescPtr;
use proto::Result;

use super::errors::{damaged, few_rows};
use super::json::{id_of, write_bytes, write_field, write_integer};

/// A value as it is stored.
pub trait Cell {
    /// Appends it as JSON, if its column needs no conversion.
    fn write(&self, out: &mut Vec<u8>) -> Result<()>;
    /// Appends it as an id, if its column needs no conversion; false if it cannot be one.
    fn put_id(&self, _out: &mut String) -> bool {
        false
    }
    /// The value that the column's logical type makes of it.
    fn convert(&self, descr: &ColumnDescPtr) -> Result<Field>;
}

impl Cell for bool {
    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        write_field(&Field::Bool(*self), out)
    }

    fn convert(&self, descr: &ColumnDescPtr) -> Result<Field> {
        Ok(Field::convert_bool(descr, *self))
    }
}

impl Cell for i32 {
    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        write_integer(*self, out);
        Ok(())
    }

    fn put_id(&self, out: &mut String) -> bool {
        out.push_str(itoa::Buffer::new().format(*self));
        true
    }

    fn convert(&self, descr: &ColumnDescPtr) -> Result<Field> {
        Ok(Field::convert_int32(descr, *self))
    }
}

impl Cell for i64 {
    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        write_integer(*self, out);
        Ok(())
    }

    fn put_id(&self, out: &mut String) -> bool {
        out.push_str(itoa::Buffer::new().format(*self));
        true
    }

    fn convert(&self, descr: &ColumnDescPtr) -> Result<Field> {
        Ok(Field::convert_int64(descr, *self))
    }
}

impl Cell for Int96 {
    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        write_field(&Field::TimestampMillis(self.to_millis()), out)
    }

    fn convert(&self, descr: &ColumnDescPtr) -> Result<Field> {
        Ok(Field::convert_int96(descr, *self))
    }
}

impl Cell for f32 {
    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        write_field(&Field::Float(*self), out)
    }

    fn convert(&self, descr: &ColumnDescPtr) -> Result<Field> {
        Ok(Field::convert_float(descr, *self))
    }
}

impl Cell for f64 {
    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        write_field(&Field::Double(*self), out)
    }

    fn convert(&self, descr: &ColumnDescPtr) -> Result<Field> {
        Ok(Field::convert_double(descr, *self))
    }
}

impl Cell for ByteArray {
    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        write_bytes(self.data(), out)
    }

    fn put_id(&self, out: &mut String) -> bool {
        let text = std::str::from_utf8(self.data());
        text.map(|text| out.push_str(text)).is_ok()
    }

    fn convert(&self, descr: &ColumnDescPtr) -> Result<Field> {
        Field::convert_byte_array(descr, self.clone()).map_err(|error| damaged(&error))
    }
}

impl Cell for FixedLenByteArray {
    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        write_bytes(self.data(), out)
    }

    fn put_id(&self, out: &mut String) -> bool {
        (**self).put_id(out)
    }

    fn convert(&self, descr: &ColumnDescPtr) -> Result<Field> {
        (**self).convert(descr)
    }
}

/// True for a column whose values need no conversion.
fn is_plain(descr: &ColumnDescPtr) -> bool {
    let converted = descr.converted_type();
    match descr.physical_type() {
        Physical::BOOLEAN | Physical::DOUBLE | Physical::FLOAT | Physical::INT96 => true,
        Physical::INT32 => matches!(converted, ConvertedType::NONE | ConvertedType::INT_32),
        Physical::INT64 => matches!(converted, ConvertedType::NONE | ConvertedType::INT_64),
        Physical::BYTE_ARRAY => matches!(
            converted,
            ConvertedType::NONE
                | ConvertedType::UTF8
                | ConvertedType::ENUM
                | ConvertedType::JSON
                | ConvertedType::BSON
        ),
        Physical::FIXED_LEN_BYTE_ARRAY => {
            let is_float = descr.logical_type_ref() == Some(&LogicalType::Float16);
            converted == ConvertedType::NONE && !is_float
        }
    }
}

/// Some values of a column.
pub struct Values<T: DataType> {
    reader: ColumnReaderImpl<T>,
    descr: ColumnDescPtr,
    values: Vec<T::T>,
    /// For each row of a column that may have nulls, whether it has a value.
    levels: Vec<i16>,
    /// The value of the present row, if it has one.
    next: usize,
    is_plain: bool,
}

impl<T: DataType<T: Cell>> Values<T> {
    fn new(reader: ColumnReader, descr: ColumnDescPtr) -> Self {
        let (values, levels, is_plain) = (Vec::new(), Vec::new(), is_plain(&descr));
        let reader = get_typed_column_reader(reader);
        Self { reader, descr, values, levels, next: 0, is_plain }
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
        match self.is_plain {
            true => value.write(out)?,
            false => write_field(&value.convert(&self.descr)?, out)?,
        }
        self.next += 1;
        Ok(())
    }

    fn put_id(&self, row: usize, out: &mut String) -> Result<bool> {
        let Some(value) = self.of(row) else { return Ok(false) };
        if self.is_plain {
            return Ok(value.put_id(out));
        }
        let id = id_of(&value.convert(&self.descr)?);
        Ok(id.map(|id| out.push_str(&id)).is_some())
    }
}

/// A column by its physical type.
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

/// Does the same with the values of a column, whatever their type is.
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
    pub fn new(reader: ColumnReader, descr: ColumnDescPtr) -> Self {
        match reader {
            ColumnReader::BoolColumnReader(_) => Self::Bool(Values::new(reader, descr)),
            ColumnReader::Int32ColumnReader(_) => Self::Int32(Values::new(reader, descr)),
            ColumnReader::Int64ColumnReader(_) => Self::Int64(Values::new(reader, descr)),
            ColumnReader::Int96ColumnReader(_) => Self::Int96(Values::new(reader, descr)),
            ColumnReader::FloatColumnReader(_) => Self::Float(Values::new(reader, descr)),
            ColumnReader::DoubleColumnReader(_) => Self::Double(Values::new(reader, descr)),
            ColumnReader::ByteArrayColumnReader(_) => Self::Bytes(Values::new(reader, descr)),
            ColumnReader::FixedLenByteArrayColumnReader(_) => {
                Self::Fixed(Values::new(reader, descr))
            }
        }
    }

    /// Passes rows by.
    pub fn skip(&mut self, rows: usize) -> Result<()> {
        with_values!(self, values => values.skip(rows))
    }

    /// Decodes the next rows.
    pub fn fill(&mut self, rows: usize) -> Result<()> {
        with_values!(self, values => values.fill(rows))
    }

    /// Appends the value of the present one of the decoded rows as JSON, and goes on to the next row.
    #[inline]
    pub fn write(&mut self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        with_values!(self, values => values.write(row, out))
    }

    /// Appends the value of the present row as an id; false if it cannot be one.
    pub fn put_id(&self, row: usize, out: &mut String) -> Result<bool> {
        with_values!(self, values => values.put_id(row, out))
    }
}
