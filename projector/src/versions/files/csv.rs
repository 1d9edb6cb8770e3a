//! CSV (RFC 4180): cells between commas, records at the ends of lines, and a header before them.
//!
//! A cell may be quoted; then it may contain commas, line breaks, and doubled quotes, each of
//! which is read as one quote. A quote inside an unquoted cell is an error, because another quote
//! of the file may be missing. An unquoted carriage return without a line feed is an error too,
//! because it may be meant as the end of a line. Blank lines are skipped.
//!
//! A record becomes an object with a field for each column:
//!
//! | cell | value |
//! |---|---|
//! | empty, without quotes | none: the field is absent |
//! | exactly a number or `true` or `false` of JSON, without quotes | the number or boolean |
//! | anything else | a string |

use proto::rpc::api::too_long_error;
use proto::value::{DOCUMENT_BYTES_MAX, check_json, write_json_text};
use proto::{Error, ErrorCode, Result};

use super::batch::{Batch, RowRules};
use super::input::{TextInput, read_piece};
use super::lines::BYTE_ORDER_MARK;
use super::parts::Rows;

/// The maximum length of a record's text in bytes.
const RECORD_BYTES_MAX: usize = 2 * DOCUMENT_BYTES_MAX;
/// Maximum number of columns.
const COLUMNS_MAX: usize = 4_096;

/// A reader of the records of a CSV file as documents.
pub struct CsvRows {
    text: CsvText,
    header: Option<Header>,
}

/// The header of a CSV file, which names the columns.
struct Header {
    /// The name of each column as a JSON field: quoted, with a colon.
    fields: Vec<Vec<u8>>,
    /// The index of the column with the id.
    id: usize,
}

impl CsvRows {
    /// Creates a reader of the records of a text.
    pub fn new(input: TextInput) -> Self {
        Self { text: CsvText::new(input), header: None }
    }

    fn read_row(&mut self, rules: &RowRules, batch: &mut Batch) -> Result<bool> {
        if self.header.is_none() {
            if !self.text.next_record()? {
                return Err(bad("the file has no header"));
            }
            self.header = Some(self.read_header(&rules.id)?);
        }
        let Some(header) = &self.header else { return Ok(false) };
        if !self.text.next_record()? {
            return Ok(false);
        }
        let (has, wanted) = (self.text.cells.len(), header.fields.len());
        if has != wanted {
            return Err(bad(format!("the record has {has} cells, and the header has {wanted}")));
        }
        let document = batch.document();
        document.push(b'{');
        let mut is_first = true;
        for (at, field) in header.fields.iter().enumerate() {
            let (cell, is_quoted) = self.text.cell(at)?;
            if cell.is_empty() && !is_quoted {
                continue;
            }
            if !std::mem::replace(&mut is_first, false) {
                document.push(b',');
            }
            document.extend_from_slice(field);
            write_value(cell, is_quoted, document);
        }
        document.push(b'}');
        batch.end_row(rules, self.text.cell(header.id)?.0)?;
        Ok(true)
    }

    fn read_header(&self, wanted_id: &str) -> Result<Header> {
        let names = (0..self.text.cells.len()).map(|at| Ok(self.text.cell(at)?.0));
        let names: Vec<&str> = names.collect::<Result<_>>()?;
        for (at, name) in names.iter().enumerate() {
            if name.is_empty() {
                return Err(bad(format!("column {} of the header has no name", at + 1)));
            }
            if names[..at].contains(name) {
                return Err(bad(format!("the header has column {name:?} twice")));
            }
        }
        let Some(id) = names.iter().position(|name| *name == wanted_id) else {
            let what = format!("the header has no column {wanted_id:?} for the id");
            return Err(bad(what).with_hint(format!("the columns are {}", names.join(", "))));
        };
        let field = |name: &&str| {
            let mut field = Vec::with_capacity(name.len() + 3);
            write_json_text(name, &mut field);
            field.push(b':');
            field
        };
        Ok(Header { fields: names.iter().map(field).collect(), id })
    }
}

impl Rows for CsvRows {
    fn next_row(&mut self, rules: &RowRules, batch: &mut Batch) -> Result<bool> {
        let read = self.read_row(rules, batch);
        read.map_err(|error| error.context(format!("line {}", self.text.begun)))
    }
}

fn bad(what: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidText, what)
}

fn write_value(cell: &str, is_quoted: bool, out: &mut Vec<u8>) {
    let is_plain = !is_quoted && (is_number(cell) || matches!(cell, "true" | "false"));
    match is_plain {
        true => out.extend_from_slice(cell.as_bytes()),
        false => write_json_text(cell, out),
    }
}

/// Returns true if a cell is exactly a number as JSON writes it, so that it is read as a number.
fn is_number(cell: &str) -> bool {
    let (first, last) = (cell.as_bytes().first(), cell.as_bytes().last());
    first.is_some_and(|first| *first == b'-' || first.is_ascii_digit())
        && last.is_some_and(u8::is_ascii_digit)
        && check_json(cell.as_bytes()).is_ok()
}

/// A cell of the record that is being read.
#[derive(Clone, Copy)]
struct Cell {
    /// The end of the cell in `contents`; it begins where the previous one ends.
    end: usize,
    is_quoted: bool,
}

/// The element that follows a cell: another cell, or the end of the record.
#[derive(PartialEq)]
enum CellEnd {
    Cell,
    Record,
}

/// A reader of the records of a text.
struct CsvText {
    input: TextInput,
    buffer: Vec<u8>,
    at: usize,
    /// The number of line breaks read so far.
    line_breaks: u64,
    /// The number of the line in which the present record begins.
    begun: u64,
    contents: Vec<u8>,
    cells: Vec<Cell>,
}

impl CsvText {
    fn new(input: TextInput) -> Self {
        let (buffer, contents, cells) = Default::default();
        Self { input, buffer, at: 0, line_breaks: 0, begun: 1, contents, cells }
    }

    fn cell(&self, at: usize) -> Result<(&str, bool)> {
        let from = at.checked_sub(1).map_or(0, |before| self.cells[before].end);
        let Cell { end, is_quoted } = self.cells[at];
        match std::str::from_utf8(&self.contents[from..end]) {
            Ok(text) => Ok((text, is_quoted)),
            Err(_) => Err(bad(format!("cell {} is not UTF-8", at + 1))),
        }
    }

    /// Returns the bytes of the buffer that were not read yet, after refilling it if there are
    /// none. Empty at the end of the file.
    fn unread_bytes(&mut self) -> Result<&[u8]> {
        if self.at == self.buffer.len() {
            let is_first = self.buffer.is_empty() && self.line_breaks == 0;
            self.buffer.clear();
            self.at = 0;
            read_piece(&mut self.input, &mut self.buffer)?;
            if is_first && self.buffer.starts_with(BYTE_ORDER_MARK) {
                self.at = BYTE_ORDER_MARK.len();
            }
        }
        Ok(&self.buffer[self.at..])
    }

    fn peek(&mut self) -> Result<Option<u8>> {
        Ok(self.unread_bytes()?.first().copied())
    }

    /// Reads the next record, and skips blank lines before it. Returns false at the end of the
    /// file.
    fn next_record(&mut self) -> Result<bool> {
        loop {
            self.begun = self.line_breaks + 1;
            self.contents.clear();
            self.cells.clear();
            if self.peek()?.is_none() {
                return Ok(false);
            }
            while self.next_cell()? == CellEnd::Cell {
                if self.cells.len() > COLUMNS_MAX {
                    return Err(bad(format!("a record has more than {COLUMNS_MAX} cells")));
                }
            }
            let is_blank = |cell: &Cell| cell.end == 0 && !cell.is_quoted;
            if self.cells.len() > 1 || !self.cells.iter().all(is_blank) {
                return Ok(true);
            }
        }
    }

    fn next_cell(&mut self) -> Result<CellEnd> {
        let is_quoted = self.peek()? == Some(b'"');
        if is_quoted {
            self.at += 1;
            self.quoted()?;
        } else {
            self.unquoted()?;
        }
        self.cells.push(Cell { end: self.contents.len(), is_quoted });
        let behind = self.peek()?;
        self.at += usize::from(behind.is_some());
        match behind {
            None => Ok(CellEnd::Record),
            Some(b',') => Ok(CellEnd::Cell),
            Some(b'\n') => {
                self.line_breaks += 1;
                Ok(CellEnd::Record)
            }
            Some(b'\r') if self.peek()?.is_none_or(|next| next == b'\n') => {
                self.at += usize::from(self.peek()?.is_some());
                self.line_breaks += 1;
                Ok(CellEnd::Record)
            }
            Some(_) => {
                Err(bad(format!("cell {} goes on behind its closing quote", self.cells.len())))
            }
        }
    }

    /// Reads the rest of an unquoted cell, up to its comma or line break.
    fn unquoted(&mut self) -> Result<()> {
        loop {
            let left = self.unread_bytes()?;
            let is_special = |byte: &u8| matches!(byte, b',' | b'\n' | b'\r' | b'"');
            let end = left.iter().position(is_special);
            let (count, stop) = (end.unwrap_or(left.len()), end.map(|end| left[end]));
            let is_end = left.is_empty();
            self.move_to_cell(count)?;
            match stop {
                None if is_end => return Ok(()),
                None => {}
                Some(b'"') => {
                    let what = format!("cell {} has a quote in its midst", self.cells.len() + 1);
                    return Err(bad(what).with_hint("put the cell in quotes, and double the quote"));
                }
                Some(b'\r') => {
                    self.at += 1;
                    let next = self.peek()?;
                    if next.is_none_or(|next| next == b'\n') {
                        return Ok(());
                    }
                    let at = self.cells.len() + 1;
                    let what =
                        format!("a carriage return without a line feed follows on cell {at}");
                    return Err(bad(what).with_hint(
                        "end the lines with a line feed, or put a cell that has a carriage return in quotes",
                    ));
                }
                Some(_) => return Ok(()),
            }
        }
    }

    /// Reads the rest of a quoted cell, up to its closing quote.
    fn quoted(&mut self) -> Result<()> {
        loop {
            let left = self.unread_bytes()?;
            if left.is_empty() {
                let what = format!("the quotes of cell {} have no end", self.cells.len() + 1);
                return Err(bad(what));
            }
            let end = left.iter().position(|byte| *byte == b'"');
            let count = end.unwrap_or(left.len());
            let breaks = left[..count].iter().filter(|byte| **byte == b'\n').count();
            self.line_breaks += breaks as u64;
            self.move_to_cell(count)?;
            if end.is_some() {
                self.at += 1;
                if self.peek()? != Some(b'"') {
                    return Ok(());
                }
                self.contents.push(b'"');
                self.at += 1;
            }
        }
    }

    /// Moves the next `count` bytes of the buffer into the cell that is being read.
    fn move_to_cell(&mut self, count: usize) -> Result<()> {
        self.contents.extend_from_slice(&self.buffer[self.at..self.at + count]);
        self.at += count;
        match self.contents.len() > RECORD_BYTES_MAX {
            true => Err(too_long_error(self.contents.len())),
            false => Ok(()),
        }
    }
}
