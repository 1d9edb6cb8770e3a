//! JSON lines. The documents of a piece of text share its memory.

use bytes::Bytes;
use proto::rpc::api::{check_document_with_id, too_long};
use proto::{Error, Result};

use super::input::{TextInput, read_piece};
use super::row::{Row, RowRules, Rows, document_too_long};

/// The byte order mark in UTF-8, with which some editors begin a file.
pub const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The documents of a file with a JSON object in each line.
pub struct JsonLines {
    input: TextInput,
    rules: RowRules,
    /// The present piece: whole lines, but for the last line of the file.
    piece: Bytes,
    /// The place of the next line in it.
    at: usize,
    /// The beginning of the line behind the piece.
    rest: Vec<u8>,
    is_end: bool,
    /// The number of the last line.
    line: u64,
}

impl JsonLines {
    /// The lines of a text.
    pub fn new(input: TextInput, rules: RowRules) -> Self {
        let (piece, rest) = (Bytes::new(), Vec::new());
        Self { input, rules, piece, at: 0, rest, is_end: false, line: 0 }
    }

    /// Reads the next piece; false at the end.
    fn refill(&mut self) -> Result<bool> {
        // White space around a document does not count, up to as much as the document.
        let bytes_max = 2 * self.rules.document_bytes_max;
        let mut searched = 0;
        while !self.is_end {
            self.is_end = !read_piece(&mut self.input, &mut self.rest)?;
            let end = self.rest[searched..].iter().rposition(|byte| *byte == b'\n');
            if let Some(end) = end {
                let behind = self.rest.split_off(searched + end + 1);
                self.piece = std::mem::replace(&mut self.rest, behind).into();
                self.at = 0;
                return Ok(true);
            }
            searched = self.rest.len();
            if searched > bytes_max {
                self.line += 1;
                return Err(too_long(searched));
            }
        }
        self.piece = std::mem::take(&mut self.rest).into();
        self.at = 0;
        Ok(!self.piece.is_empty())
    }

    fn next_line(&mut self) -> Result<Option<Bytes>> {
        loop {
            if self.at == self.piece.len() && !self.refill()? {
                return Ok(None);
            }
            let left = &self.piece[self.at..];
            let end = left.iter().position(|byte| *byte == b'\n').unwrap_or(left.len());
            let mut line = &left[..end];
            self.at = (self.at + end + 1).min(self.piece.len());
            self.line += 1;
            if self.line == 1 {
                line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
            }
            let line = line.trim_ascii();
            if !line.is_empty() {
                return Ok(Some(self.piece.slice_ref(line)));
            }
        }
    }

    fn read_row(&mut self) -> Result<Option<Row>> {
        let Some(document) = self.next_line()? else { return Ok(None) };
        if document.len() > self.rules.document_bytes_max {
            return Err(document_too_long(document.len(), self.rules.document_bytes_max));
        }
        let id = check_document_with_id(&self.rules.id, &document)?.into_owned();
        Ok(Some(Row { id, document }))
    }
}

impl Rows for JsonLines {
    fn next_row(&mut self) -> Result<Option<Row>> {
        self.read_row().map_err(|error: Error| error.context(format!("line {}", self.line.max(1))))
    }
}
