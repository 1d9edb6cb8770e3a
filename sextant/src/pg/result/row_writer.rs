//! The writer of rows into the buffer of answers.

use proto::Result;
use proto::expr::ColumnType;
use proto::rpc::rows::Row;
use proto::value::Number;

use crate::rows::entry::EntryPrinter;
use crate::rows::format::Format;
use crate::rows::line::{self, escape_nul};
use crate::rows::value::Datum;
use crate::sql::plan::{Cell, ColumnInfo};

/// The kind of message that contains a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::pg) enum RowMessage {
    /// `DataRow` messages.
    Data,
    /// `CopyData` messages: one for each row, in COPY's text format.
    Copy,
}

/// The writer of the rows of one result.
pub(in crate::pg) struct RowWriter {
    shape: RowMessage,
    columns: Vec<(ColumnType, Format)>,
    /// The number of digits to which doubles are rounded in text; `None` for all digits.
    float_digits: Option<usize>,
}

impl RowWriter {
    /// Returns a writer of rows with these columns in these formats.
    pub(in crate::pg) fn new(
        shape: RowMessage,
        columns: &[ColumnInfo],
        formats: &[Format],
    ) -> Self {
        let formats = formats.iter().copied().chain(std::iter::repeat(Format::Text));
        let columns = columns.iter().zip(formats).map(|(c, format)| (c.column_type, format));
        Self { shape, columns: columns.collect(), float_digits: None }
    }

    /// Returns a writer that rounds doubles in text to this number of digits, as the setting
    /// `extra_float_digits` requires.
    pub(in crate::pg) fn with_float_digits(mut self, digits: Option<usize>) -> Self {
        self.float_digits = digits;
        self
    }

    /// Appends a row to `out`. `cell` appends the value of one column and returns true, or
    /// returns false for NULL; its arguments are the column's number, type and format.
    fn row(
        &self,
        out: &mut Vec<u8>,
        mut cell: impl FnMut(usize, ColumnType, Format, &mut Vec<u8>) -> Result<bool>,
    ) -> Result<()> {
        let start = out.len();
        let written = match self.shape {
            RowMessage::Data => self.data_row(out, &mut cell),
            RowMessage::Copy => self.copy_row(out, &mut cell),
        };
        match written {
            Ok(()) => {
                let length = (out.len() - start - 1) as u32;
                out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
                Ok(())
            }
            Err(error) => {
                // The error must not follow half a row.
                out.truncate(start);
                Err(error)
            }
        }
    }

    /// Appends a `DataRow` message.
    fn data_row(
        &self,
        out: &mut Vec<u8>,
        cell: &mut impl FnMut(usize, ColumnType, Format, &mut Vec<u8>) -> Result<bool>,
    ) -> Result<()> {
        let count = (self.columns.len() as u16).to_be_bytes();
        out.extend_from_slice(&[b'D', 0, 0, 0, 0, count[0], count[1]]);
        for (n, (column_type, format)) in self.columns.iter().enumerate() {
            let at = out.len();
            out.extend_from_slice(&(-1i32).to_be_bytes());
            if cell(n, *column_type, *format, out)? {
                escape_nul(*column_type, out, at + 4);
                let length = (out.len() - at - 4) as u32;
                out[at..at + 4].copy_from_slice(&length.to_be_bytes());
            }
        }
        Ok(())
    }

    /// Appends a `CopyData` message.
    fn copy_row(
        &self,
        out: &mut Vec<u8>,
        cell: &mut impl FnMut(usize, ColumnType, Format, &mut Vec<u8>) -> Result<bool>,
    ) -> Result<()> {
        out.extend_from_slice(&[b'd', 0, 0, 0, 0]);
        let types = self.columns.iter().map(|(column_type, _)| *column_type);
        line::write(out, types, |n, column_type, out| cell(n, column_type, Format::Text, out))
    }

    /// Appends a row of a scan to `out`.
    pub(super) fn entry(
        &self,
        printer: &mut EntryPrinter,
        row: Row<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let computed: Vec<bool> = match self.float_digits {
            Some(_) => printer.cells().iter().map(|c| matches!(c, Cell::Computed(_))).collect(),
            None => Vec::new(),
        };
        let mut cells = printer.row(row);
        self.row(out, |n, column_type, format, out| {
            let at = out.len();
            let is_present = cells.write(n, column_type, format, out)?;
            if is_present
                && format == Format::Text
                && let Some(digits) = self.float_digits
            {
                round((column_type, computed[n]), out, at, digits);
            }
            Ok(is_present)
        })
    }

    /// Appends a row of computed values to `out`.
    pub(super) fn datums(&self, row: &[Datum], out: &mut Vec<u8>) -> Result<()> {
        self.row(out, |n, column_type, format, out| {
            let Some(datum) = row.get(n) else { return Ok(false) };
            let at = out.len();
            let is_present = datum.write(column_type, format, out)?;
            if is_present
                && format == Format::Text
                && let Some(digits) = self.float_digits
            {
                // Sums and averages are exact.
                round((column_type, matches!(datum, Datum::Value(_))), out, at, digits);
            }
            Ok(is_present)
        })
    }
}

/// Rounds the number whose text begins at offset `at` of `out`, if it was computed as a double.
/// Integers and exact `numeric` values are not rounded.
fn round(
    (column_type, is_computed): (ColumnType, bool),
    out: &mut Vec<u8>,
    at: usize,
    digits: usize,
) {
    let is_double = match column_type {
        ColumnType::Float8 => true,
        ColumnType::Numeric => is_computed,
        _ => false,
    };
    if !is_double {
        return;
    }
    let text = std::str::from_utf8(&out[at..]).ok().filter(|text| text.contains(['.', 'e']));
    let number = text.and_then(|text| text.parse::<f64>().ok());
    let rounded = number.and_then(|number| format!("{number:.*e}", digits - 1).parse().ok());
    if let Some(rounded) = rounded.and_then(Number::from_f64) {
        out.truncate(at);
        // Writing to a vector cannot fail.
        let _infallible = std::io::Write::write_fmt(out, format_args!("{rounded}"));
    }
}

#[cfg(test)]
mod tests {
    use proto::expr::Expr;
    use proto::value::Value;
    use proto::value::key::{encode_entry, encode_part};

    use super::*;

    fn columns(types: &[ColumnType]) -> Vec<ColumnInfo> {
        let column = |t: &ColumnType| ColumnInfo { name: String::new(), column_type: *t };
        types.iter().map(column).collect()
    }

    fn printer(cells: Vec<Cell>) -> EntryPrinter {
        EntryPrinter::with_directions(cells, vec![false, true])
    }

    fn print(cells: Vec<Cell>, types: &[ColumnType], shape: RowMessage) -> Vec<u8> {
        let parts = [Value::from("a\tb"), Value::int(7)];
        let (mut entry, mut include) = (Vec::new(), Vec::new());
        encode_entry(&parts, &[false, true], "id1", &mut entry).unwrap();
        encode_part(&Value::Null, false, &mut include);
        let writer = RowWriter::new(shape, &columns(types), &[]);
        let mut out = b"before".to_vec();
        let row = Row { entry: &entry, include: &include };
        writer.entry(&mut printer(cells), row, &mut out).unwrap();
        out.split_off(6)
    }

    #[test]
    fn columns_are_written_in_any_order() {
        use ColumnType::{Int8, Text};
        let sum = Expr::Arithmetic(
            proto::expr::ArithmeticOp::Add,
            Box::new(Expr::Column(1)),
            Box::new(Expr::Literal(Value::int(1))),
        );
        let cells =
            vec![Cell::Id, Cell::Key(1), Cell::Key(0), Cell::Include(0), Cell::Computed(sum)];
        let types = [Text, Int8, Text, Text, Int8];
        assert_eq!(
            print(cells.clone(), &types, RowMessage::Copy),
            b"d\0\0\0\x14id1\t7\ta\\tb\t\\N\t8\n"
        );
        let expected = [
            &b"D\0\0\0\x22\0\x05"[..],
            b"\0\0\0\x03id1",
            b"\0\0\0\x017",
            b"\0\0\0\x03a\tb",
            b"\xff\xff\xff\xff",
            b"\0\0\0\x018",
        ];
        assert_eq!(print(cells, &types, RowMessage::Data), expected.concat());
    }

    #[test]
    fn integers_in_both_directions_are_exact() {
        let ints = [0, 1, 9, 255, 256, 65_535, 16_777_216, 2_147_483_647, 2_147_483_648];
        let ints = ints.into_iter().chain([1 << 55, 1 << 56, i64::MAX, i64::MIN + 1]);
        for int in ints.flat_map(|int| [int, -int]) {
            for (column_type, descending) in [ColumnType::Int4, ColumnType::Int8]
                .into_iter()
                .flat_map(|t| [(t, false), (t, true)])
            {
                let mut entry = Vec::new();
                encode_entry([&Value::int(int)], &[descending], "a long id", &mut entry).unwrap();
                let types = [ColumnType::Text, column_type, ColumnType::Text];
                let writer = RowWriter::new(RowMessage::Copy, &columns(&types), &[]);
                let cells = vec![Cell::Id, Cell::Key(0), Cell::Id];
                let mut printer = EntryPrinter::with_directions(cells, vec![descending]);
                let mut out = Vec::new();
                let row = Row { entry: &entry, include: b"" };
                let written = writer.entry(&mut printer, row, &mut out);
                if column_type == ColumnType::Int4 && i32::try_from(int).is_err() {
                    assert_eq!(written.unwrap_err().code, proto::ErrorCode::OutOfRange);
                    assert!(out.is_empty());
                } else {
                    let line = format!("a long id\t{int}\ta long id\n");
                    assert_eq!(out[5..], *line.as_bytes(), "{int}, descending: {descending}");
                }
            }
        }
    }

    #[test]
    fn a_damaged_entry_prints_nothing() {
        let writer = RowWriter::new(RowMessage::Data, &columns(&[ColumnType::Text]), &[]);
        let mut out = Vec::new();
        let row = Row { entry: b"\x40abc", include: b"" };
        assert!(writer.entry(&mut printer(vec![Cell::Id]), row, &mut out).is_err());
        assert!(writer.entry(&mut printer(vec![Cell::Include(0)]), row, &mut out).is_err());
        assert!(out.is_empty());
    }

    #[test]
    fn a_nul_character_in_a_text_is_spelled_out() {
        let row = [Datum::text("a\0b")];
        let mut out = Vec::new();
        RowWriter::new(RowMessage::Data, &columns(&[ColumnType::Text]), &[])
            .datums(&row, &mut out)
            .unwrap();
        assert_eq!(out, b"D\0\0\0\x12\0\x01\0\0\0\x08a\\u0000b");
        out.clear();
        RowWriter::new(RowMessage::Copy, &columns(&[ColumnType::Text]), &[])
            .datums(&row, &mut out)
            .unwrap();
        assert_eq!(out, b"d\0\0\0\x0ea\\\\u0000b\n");
    }
}
