//! The printer of the rows of a scan: it writes the columns of a result from encoded entries.
//!
//! A row of a scan is an encoded entry, which consists of the key parts and the id. Only the
//! required parts are read. Each of them is written directly from its encoded bytes; only an
//! array, an object or a computed column allocates memory. A part is found by skipping the parts
//! before it. Its position is stored for the row, so that columns in any order need one pass over
//! the entry.

use std::borrow::Cow;

use proto::expr::ColumnType;
use proto::expr::cost::CostMeter;
use proto::expr::eval::{Evaluation, Scope};
use proto::model::index::IndexSpec;
use proto::rpc::rows::Row;
use proto::value::key::{decode_part, leading_int, skip_part, write_number, write_part_text};
use proto::value::path::Step;
use proto::value::{Number, Value};
use proto::{Error, ErrorCode, Result};

use super::format::Format;
use super::value::{out_of_range, write_value};
use crate::sql::plan::{Cell, ColumnInfo};

/// The printer of the rows of a scan, for the columns of one result.
pub(crate) struct EntryPrinter {
    cells: Vec<Cell>,
    descending: Vec<bool>,
    /// The cost of the computed columns since the last call of [`Self::reset_if_due`].
    spent: u64,
    /// The positions of the parts in the present entry. The array is not cleared between rows,
    /// which would cost as much as printing a number.
    key_starts: Starts,
    include_starts: Starts,
    /// A reused buffer for one value.
    binary: Vec<u8>,
}

/// The maximum number of key parts for [`EntryPrinter::integers`].
const INTEGERS_MAX: usize = 4;
/// The cost of computed columns after which the session lets other tasks run; it takes about a
/// millisecond.
const TURN_COST: u64 = 1 << 20;

impl EntryPrinter {
    /// Returns a printer of these cells for the rows of an index.
    pub(crate) fn new(spec: &IndexSpec, cells: Vec<Cell>) -> Self {
        Self::with_directions(cells, spec.descending())
    }

    /// Returns a printer of these cells for entries whose key parts are descending as
    /// `descending` says.
    pub(crate) fn with_directions(cells: Vec<Cell>, descending: Vec<bool>) -> Self {
        let (key_starts, include_starts) = ([0; PARTS_MAX + 1], [0; PARTS_MAX + 1]);
        Self { cells, descending, spent: 0, key_starts, include_starts, binary: Vec::new() }
    }

    /// Returns true if the computed columns since the last [`Self::reset_if_due`] have taken so
    /// much time that other tasks must run before the next row.
    pub(crate) fn is_due(&self) -> bool {
        self.spent >= TURN_COST
    }

    /// Returns the value of [`Self::is_due`]. If it is true, sets the cost to zero.
    pub(crate) fn reset_if_due(&mut self) -> bool {
        let is_due = self.is_due();
        if is_due {
            self.spent = 0;
        }
        is_due
    }

    /// Returns one row, whose cells can be written one by one.
    #[inline]
    pub(crate) fn row<'r>(&'r mut self, row: Row<'r>) -> EntryRow<'r> {
        let Self { cells, descending, spent, key_starts, include_starts, binary } = self;
        let key = Parts::new(row.entry, descending, key_starts);
        let include = Parts::new(row.include, &[], include_starts);
        EntryRow { cells, row, key, include, spent, cost: CostMeter::for_evaluation(), binary }
    }

    /// Returns true if each cell is the id, or a key part of a type that [`Self::integers`]
    /// supports.
    pub(crate) fn has_only_integers(&self, types: &[ColumnType]) -> bool {
        let is_plain = |(cell, column_type): (&Cell, &ColumnType)| match cell {
            Cell::Id => *column_type == ColumnType::Text,
            Cell::Key(_) => *column_type == ColumnType::Int8,
            _ => false,
        };
        self.descending.len() <= INTEGERS_MAX && self.cells.iter().zip(types).all(is_plain)
    }

    /// Returns the key parts and the id of a row if all key parts are short integers; otherwise
    /// `None`. One pass over the entry finds them, without storing positions.
    #[inline]
    pub(crate) fn integers<'r>(&self, row: Row<'r>) -> Option<([i64; INTEGERS_MAX], &'r [u8])> {
        let (mut integers, mut rest) = ([0; INTEGERS_MAX], row.entry);
        for (integer, descending) in integers.iter_mut().zip(&self.descending) {
            let (int, length) = leading_int(rest, *descending)?;
            *integer = int;
            rest = &rest[length..];
        }
        Some((integers, rest))
    }

    /// Returns the cells of a row, in the order of the result's columns.
    pub(crate) fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// Returns the cells of one row as text; `None` for NULL and MISSING.
    pub(crate) fn texts(
        &mut self,
        columns: &[ColumnInfo],
        row: Row<'_>,
    ) -> Result<Vec<Option<String>>> {
        let mut row = self.row(row);
        let mut texts = Vec::with_capacity(columns.len());
        for (n, column) in columns.iter().enumerate() {
            let mut out = Vec::new();
            let present = row.write(n, column.column_type, Format::Text, &mut out)?;
            let text = String::from_utf8(out).map_err(|_| corrupt())?;
            texts.push(present.then_some(text));
        }
        Ok(texts)
    }
}

/// One row of a scan, with the positions of its parts as far as they are known.
pub(crate) struct EntryRow<'r> {
    cells: &'r [Cell],
    row: Row<'r>,
    key: Parts<'r>,
    include: Parts<'r>,
    /// The cost counter of the printer, to which this row adds its computed columns.
    spent: &'r mut u64,
    cost: CostMeter,
    /// A reused buffer for one value.
    binary: &'r mut Vec<u8>,
}

impl Drop for EntryRow<'_> {
    fn drop(&mut self) {
        *self.spent += self.cost.spent();
    }
}

impl EntryRow<'_> {
    /// Appends the value of cell `n` and returns true; returns false for NULL, without appending.
    pub(crate) fn write(
        &mut self,
        n: usize,
        column_type: ColumnType,
        format: Format,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let (key, include) = (&mut self.key, &mut self.include);
        match &self.cells[n] {
            Cell::Id => {
                out.extend_from_slice(key.rest(key.descending.len())?);
                Ok(true)
            }
            Cell::Key(part) => key.write(usize::from(*part), column_type, format, out),
            Cell::Include(part) => include.write(usize::from(*part), column_type, format, out),
            Cell::Computed(expr) => {
                self.cost.add_bytes(self.row.entry.len() + self.row.include.len())?;
                let scope = EntryScope::decode(self.row, key.descending)?;
                let value = Evaluation::of_query(&scope, &self.cost).eval(expr)?;
                self.cost.add_value(&value)?;
                write_value(&value, column_type, format, out)
            }
            Cell::Aggregate(..) => Err(Error::internal("a row of a scan has an aggregate column")),
        }
    }

    /// Returns the integer of cell `n`, of type `int4` or `int8`; `None` for NULL.
    #[inline]
    pub(crate) fn int(&mut self, n: usize, column_type: ColumnType) -> Result<Option<i64>> {
        let short = match &self.cells[n] {
            Cell::Key(part) => self.key.leading_int(usize::from(*part), column_type)?,
            Cell::Include(part) => self.include.leading_int(usize::from(*part), column_type)?,
            _ => None,
        };
        if short.is_some() {
            return Ok(short);
        }
        let mut bytes = std::mem::take(self.binary);
        bytes.clear();
        let written = self.write(n, column_type, Format::Binary, &mut bytes);
        // Eight bytes are an int8, four an int4, and none NULL.
        let int8 = bytes.first_chunk().map(|int8| i64::from_be_bytes(*int8));
        let int4 = bytes.first_chunk().map(|int4| i64::from(i32::from_be_bytes(*int4)));
        *self.binary = bytes;
        written.map(|_| int8.or(int4))
    }
}

/// The maximum number of parts of an entry.
const PARTS_MAX: usize = proto::model::index::COLUMNS_MAX;

/// The positions of parts in an entry, in bytes. The first one is always 0.
type Starts = [u32; PARTS_MAX + 1];

/// The encoded parts of an entry, with their positions. Parts for which `descending` has no item
/// are ascending.
struct Parts<'a> {
    bytes: &'a [u8],
    descending: &'a [bool],
    /// The positions of the parts. Only the first `known` ones are valid.
    starts: &'a mut Starts,
    known: usize,
}

impl<'a> Parts<'a> {
    fn new(bytes: &'a [u8], descending: &'a [bool], starts: &'a mut Starts) -> Self {
        Self { bytes, descending, starts, known: 0 }
    }

    fn is_descending(&self, part: usize) -> bool {
        self.descending.get(part).copied().unwrap_or(false)
    }

    /// Returns the bytes from the beginning of a part to the end of the entry.
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

    /// Returns the value of a part that is a short integer and fits the column's type; `None` for
    /// any other part.
    #[inline]
    fn leading_int(&mut self, part: usize, column_type: ColumnType) -> Result<Option<i64>> {
        if !matches!(column_type, ColumnType::Int4 | ColumnType::Int8) {
            return Ok(None);
        }
        let rest = self.rest(part)?;
        let Some((int, length)) = leading_int(rest, self.is_descending(part)) else {
            return Ok(None);
        };
        if column_type == ColumnType::Int4 && i32::try_from(int).is_err() {
            return Ok(None);
        }
        self.note_end(part, self.bytes.len() - rest.len() + length);
        Ok(Some(int))
    }

    fn write(
        &mut self,
        part: usize,
        column_type: ColumnType,
        format: Format,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        if format == Format::Text
            && let Some(int) = self.leading_int(part, column_type)?
        {
            write_number(Number::Int(int), out);
            return Ok(true);
        }
        let mut rest = self.rest(part)?;
        let descending = self.is_descending(part);
        // Text is the same in both formats. Numbers have their column's type since they were indexed, but for results of
        // arithmetic.
        let straight = match format {
            Format::Text => column_type != ColumnType::Bool,
            Format::Binary => column_type == ColumnType::Text,
        };
        let present = match straight {
            true => {
                let start = out.len();
                let present = write_part_text(&mut rest, descending, out)?;
                check_integer(&out[start..], column_type)?;
                present
            }
            false => {
                let value = decode_part(&mut rest, descending)?;
                write_value(&value, column_type, format, out)?
            }
        };
        self.note_end(part, self.bytes.len() - rest.len());
        Ok(present)
    }

    /// Records the position at which a part ends, which is the start of the next part.
    fn note_end(&mut self, part: usize, end: usize) {
        if self.known == part && part < PARTS_MAX {
            self.known += 1;
            self.starts[self.known] = end as u32;
        }
    }
}

/// Returns an error if the text of an integer is outside the range of the column's type. Results
/// of arithmetic may be.
fn check_integer(text: &[u8], column_type: ColumnType) -> Result<()> {
    // A short integer needs no check.
    let is_short = |digits: usize| text.len() <= digits && text.iter().all(u8::is_ascii_digit);
    let fits = match column_type {
        ColumnType::Int4 => is_short(9) || fits::<i32>(text),
        ColumnType::Int8 => is_short(18) || fits::<i64>(text),
        _ => true,
    };
    match fits {
        true => Ok(()),
        false => Err(out_of_range(String::from_utf8_lossy(text), column_type)),
    }
}

/// Returns true if a text is a number of the type `T`.
fn fits<T: std::str::FromStr>(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| text.parse::<T>().is_ok())
}

/// The decoded values of an entry, for the evaluation of expressions.
struct EntryScope {
    id: String,
    columns: Vec<Value>,
}

impl EntryScope {
    /// Decodes all values of an entry.
    fn decode(row: Row<'_>, descending: &[bool]) -> Result<Self> {
        let mut columns = Vec::with_capacity(descending.len());
        let mut rest = row.entry;
        for &descending in descending {
            columns.push(decode_part(&mut rest, descending)?);
        }
        let id = String::from_utf8(rest.to_vec()).map_err(|_| corrupt())?;
        let mut rest = row.include;
        while !rest.is_empty() {
            columns.push(decode_part(&mut rest, false)?);
        }
        Ok(Self { id, columns })
    }
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

/// Returns the error for an entry that cannot be decoded.
fn corrupt() -> Error {
    Error::new(ErrorCode::Corrupt, "an entry does not have the parts of its index")
}
