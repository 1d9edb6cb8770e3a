//! Rows into the buffer of answers.
//!
//! A row of a scan is an encoded entry: key parts, then the id. Only the parts that the result needs
//! are looked at, and each is written straight from its encoded bytes; nothing is allocated for a row
//! unless it has an array, an object or a computed column. A part's place is found by stepping over
//! those before it; places found are kept for the row, so that any order of columns costs one walk.

use std::borrow::Cow;

use proto::expr::ColumnType;
use proto::expr::eval::{Scope, eval};
use proto::model::index::IndexSpec;
use proto::rpc::rows::Row;
use proto::value::Value;
use proto::value::key::{decode_part, skip_part, write_part_text};
use proto::value::path::Step;
use proto::{Error, ErrorCode, Result};

use super::types::Format;
use super::value::{Datum, write_value};
use crate::sql::plan::{Cell, ColumnInfo};

/// How a client wants rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// `DataRow` messages.
    Data,
    /// `CopyData` messages, one for each row, in COPY's text format.
    Copy,
}

/// Writes rows of one result.
pub(super) struct RowWriter {
    shape: Shape,
    columns: Vec<(ColumnType, Format)>,
}

impl RowWriter {
    pub(super) fn new(shape: Shape, columns: &[ColumnInfo], formats: &[Format]) -> Self {
        let formats = formats.iter().copied().chain(std::iter::repeat(Format::Text));
        let columns = columns.iter().zip(formats).map(|(c, format)| (c.column_type, format));
        Self { shape, columns: columns.collect() }
    }

    /// Writes a row; `cell` appends the value of column n and says whether there is one.
    fn row(
        &self,
        out: &mut Vec<u8>,
        mut cell: impl FnMut(usize, ColumnType, Format, &mut Vec<u8>) -> Result<bool>,
    ) -> Result<()> {
        let start = out.len();
        let written = match self.shape {
            Shape::Data => self.data_row(out, &mut cell),
            Shape::Copy => self.copy_row(out, &mut cell),
        };
        match written {
            Ok(()) => {
                let length = (out.len() - start - 1) as u32;
                out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
                Ok(())
            }
            Err(error) => {
                // Half a row must not stand before the error.
                out.truncate(start);
                Err(error)
            }
        }
    }

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
                let length = (out.len() - at - 4) as u32;
                out[at..at + 4].copy_from_slice(&length.to_be_bytes());
            }
        }
        Ok(())
    }

    fn copy_row(
        &self,
        out: &mut Vec<u8>,
        cell: &mut impl FnMut(usize, ColumnType, Format, &mut Vec<u8>) -> Result<bool>,
    ) -> Result<()> {
        out.extend_from_slice(&[b'd', 0, 0, 0, 0]);
        for (n, (column_type, _)) in self.columns.iter().enumerate() {
            if n > 0 {
                out.push(b'\t');
            }
            let at = out.len();
            if cell(n, *column_type, Format::Text, out)? {
                escape(out, at);
            } else {
                out.extend_from_slice(b"\\N");
            }
        }
        out.push(b'\n');
        Ok(())
    }

    /// Writes a row of single values.
    pub(super) fn datums(&self, row: &[Datum], out: &mut Vec<u8>) -> Result<()> {
        self.row(out, |n, column_type, format, out| {
            Ok(row.get(n).is_some_and(|datum| datum.write(column_type, format, out)))
        })
    }
}

/// COPY's escapes for what stands in the buffer from `at` on; nearly always nothing.
fn escape(out: &mut Vec<u8>, at: usize) {
    let special = |byte: &u8| matches!(byte, b'\\' | 8..=13);
    let Some(first) = out[at..].iter().position(special) else { return };
    let tail = out.split_off(at + first);
    for byte in tail {
        let letter = match byte {
            8 => b'b',
            b'\t' => b't',
            b'\n' => b'n',
            11 => b'v',
            12 => b'f',
            b'\r' => b'r',
            b'\\' => b'\\',
            other => {
                out.push(other);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', letter]);
    }
}

/// Prints the rows of a scan.
pub struct EntryPrinter {
    cells: Vec<Cell>,
    descending: Vec<bool>,
    included: usize,
}

impl EntryPrinter {
    /// For the rows of an index, of which these cells are wanted.
    pub fn new(spec: &IndexSpec, cells: Vec<Cell>) -> Self {
        Self { cells, descending: spec.descending(), included: spec.include.len() }
    }

    /// Writes one row.
    pub(super) fn print(&self, writer: &RowWriter, row: Row<'_>, out: &mut Vec<u8>) -> Result<()> {
        let mut key = Parts::new(row.entry, &self.descending);
        let mut include = Parts::new(row.include, &[]);
        writer.row(out, |n, column_type, format, out| {
            self.cell(n, row, (&mut key, &mut include), (column_type, format), out)
        })
    }

    /// The cells of one row as text, `None` for NULL and MISSING.
    pub fn texts(&self, columns: &[ColumnInfo], row: Row<'_>) -> Result<Vec<Option<String>>> {
        let mut key = Parts::new(row.entry, &self.descending);
        let mut include = Parts::new(row.include, &[]);
        let mut texts = Vec::with_capacity(columns.len());
        for (n, column) in columns.iter().enumerate() {
            let mut out = Vec::new();
            let as_text = (column.column_type, Format::Text);
            let present = self.cell(n, row, (&mut key, &mut include), as_text, &mut out)?;
            let text = String::from_utf8(out).map_err(|_| corrupt())?;
            texts.push(present.then_some(text));
        }
        Ok(texts)
    }

    /// Appends the value of a cell and says whether there is one.
    fn cell<'r>(
        &self,
        n: usize,
        row: Row<'r>,
        (key, include): (&mut Parts<'r>, &mut Parts<'r>),
        (column_type, format): (ColumnType, Format),
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        match &self.cells[n] {
            Cell::Id => {
                out.extend_from_slice(key.rest(self.descending.len())?);
                Ok(true)
            }
            Cell::Key(part) => key.write(usize::from(*part), column_type, format, out),
            Cell::Include(part) => include.write(usize::from(*part), column_type, format, out),
            Cell::Computed(expr) => {
                let scope = self.decode(row)?;
                Ok(write_value(&eval(expr, &scope), column_type, format, out))
            }
            Cell::Aggregate(..) => Err(Error::internal("an aggregate among the rows of a scan")),
        }
    }

    /// An entry with all its values, for expressions over it.
    fn decode(&self, row: Row<'_>) -> Result<EntryScope> {
        let mut columns = Vec::with_capacity(self.descending.len() + self.included);
        let mut rest = row.entry;
        for &descending in &self.descending {
            columns.push(decode_part(&mut rest, descending)?);
        }
        let id = String::from_utf8(rest.to_vec()).map_err(|_| corrupt())?;
        let mut rest = row.include;
        while !rest.is_empty() {
            columns.push(decode_part(&mut rest, false)?);
        }
        Ok(EntryScope { id, columns })
    }
}

/// The most parts that an entry has.
const PARTS_MAX: usize = proto::model::index::COLUMNS_MAX;

/// Encoded parts behind each other; beyond the given directions they ascend.
struct Parts<'a> {
    bytes: &'a [u8],
    descending: &'a [bool],
    /// Where the first parts begin, as far as that is known.
    starts: [u32; PARTS_MAX + 1],
    known: usize,
}

impl<'a> Parts<'a> {
    fn new(bytes: &'a [u8], descending: &'a [bool]) -> Self {
        Self { bytes, descending, starts: [0; PARTS_MAX + 1], known: 0 }
    }

    fn is_descending(&self, part: usize) -> bool {
        self.descending.get(part).copied().unwrap_or(false)
    }

    /// The bytes from a part on.
    fn rest(&mut self, part: usize) -> Result<&'a [u8]> {
        if part > PARTS_MAX {
            return Err(corrupt());
        }
        while self.known < part {
            let start = self.starts[self.known] as usize;
            let length = skip_part(&self.bytes[start..], self.is_descending(self.known))?;
            self.known += 1;
            self.starts[self.known] = (start + length) as u32;
        }
        Ok(&self.bytes[self.starts[part] as usize..])
    }

    fn write(
        &mut self,
        part: usize,
        column_type: ColumnType,
        format: Format,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let mut rest = self.rest(part)?;
        let descending = self.is_descending(part);
        // Text is text in both formats; numbers have been cast when the index was fed.
        let straight = match format {
            Format::Text => column_type != ColumnType::Bool,
            Format::Binary => column_type == ColumnType::Text,
        };
        let present = match straight {
            true => write_part_text(&mut rest, descending, out)?,
            false => {
                let value = decode_part(&mut rest, descending)?;
                write_value(&value, column_type, format, out)
            }
        };
        if self.known == part && part < PARTS_MAX {
            self.known += 1;
            self.starts[self.known] = (self.bytes.len() - rest.len()) as u32;
        }
        Ok(present)
    }
}

struct EntryScope {
    id: String,
    columns: Vec<Value>,
}

impl Scope for EntryScope {
    fn path<'a>(&'a self, _: &[Step]) -> Cow<'a, Value> {
        Cow::Owned(Value::Missing)
    }

    fn document_id(&self) -> &str {
        &self.id
    }

    fn column(&self, n: u16) -> Cow<'_, Value> {
        match self.columns.get(usize::from(n)) {
            Some(value) => Cow::Borrowed(value),
            None => Cow::Owned(Value::Missing),
        }
    }
}

fn corrupt() -> Error {
    Error::new(ErrorCode::Corrupt, "an entry that is no entry of its index")
}

#[cfg(test)]
mod tests {
    use proto::expr::Expr;
    use proto::value::key::{encode_entry, encode_part};

    use super::*;

    fn columns(types: &[ColumnType]) -> Vec<ColumnInfo> {
        let column = |t: &ColumnType| ColumnInfo { name: String::new(), column_type: *t };
        types.iter().map(column).collect()
    }

    fn printer(cells: Vec<Cell>) -> EntryPrinter {
        EntryPrinter { cells, descending: vec![false, true], included: 1 }
    }

    fn print(cells: Vec<Cell>, types: &[ColumnType], shape: Shape) -> Vec<u8> {
        let parts = [Value::from("a\tb"), Value::int(7)];
        let (mut entry, mut include) = (Vec::new(), Vec::new());
        encode_entry(&parts, &[false, true], "id1", &mut entry).unwrap();
        encode_part(&Value::Null, false, &mut include);
        let writer = RowWriter::new(shape, &columns(types), &[]);
        let mut out = b"before".to_vec();
        let row = Row { entry: &entry, include: &include };
        printer(cells).print(&writer, row, &mut out).unwrap();
        out.split_off(6)
    }

    #[test]
    fn a_row_is_printed_in_any_order_of_its_columns() {
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
            print(cells.clone(), &types, Shape::Copy),
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
        assert_eq!(print(cells, &types, Shape::Data), expected.concat());
    }

    #[test]
    fn a_damaged_entry_is_an_error_and_leaves_no_half_row() {
        let writer = RowWriter::new(Shape::Data, &columns(&[ColumnType::Text]), &[]);
        let mut out = Vec::new();
        let row = Row { entry: b"\x40abc", include: b"" };
        assert!(printer(vec![Cell::Id]).print(&writer, row, &mut out).is_err());
        assert!(printer(vec![Cell::Include(0)]).print(&writer, row, &mut out).is_err());
        assert!(out.is_empty());
    }

    #[test]
    fn copy_escapes_what_would_break_a_line() {
        let mut out = b"\t\\".to_vec();
        out.extend_from_slice("ä\\\n\r\t\u{8}\u{b}\u{c}x".as_bytes());
        escape(&mut out, 2);
        assert_eq!(out, "\t\\ä\\\\\\n\\r\\t\\b\\v\\fx".as_bytes());
    }
}
